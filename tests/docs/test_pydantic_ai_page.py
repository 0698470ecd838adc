"""The examples on the page about Pydantic AI run, against real servers; and so does the one in `examples`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from tests.docs.pages import ROOT, a_project, blocks, run_block

PAGE = ROOT / "docs" / "integrations" / "pydantic_ai.md"
CONVERT = ("units__convert", {"value": 26.2, "from_unit": "mi", "to_unit": "km"})
DELETE = ("notes__delete_note", {"note_id": 1})


@pytest.fixture(scope="module", autouse=True)
def configured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A project with two of the example servers, in which everything is deferred."""
    with a_project(tmp_path_factory.mktemp("project"), "units", "notes", settings='[surface]\nmode = "on"\n'):
        yield


class Model:
    """Calls what the prompt is about, once, under the name that its list suggests, and then says that it is done."""

    def __init__(self) -> None:
        self.answers: list[ToolReturnPart] = []

    def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        parts: list[Any] = [part for message in messages for part in message.parts]
        asked = " ".join(str(part.content) for part in parts if isinstance(part, UserPromptPart))
        given = [part for part in parts if isinstance(part, ToolReturnPart)]
        if "Find it first" in asked and not given:
            return ModelResponse(parts=[ToolCallPart("search_tools", {"query": "select:units__convert"})])
        self.answers += (answers := [part for part in given if part.tool_name != "search_tools"])
        if answers:
            return ModelResponse(parts=[TextPart("done")])
        name, arguments = DELETE if "Delete" in asked else CONVERT
        prefix = "pb_" if info.function_tools[0].name.startswith("pb_") else ""
        return ModelResponse(parts=[ToolCallPart(prefix + name, arguments)])


@pytest.mark.parametrize(
    ("line", "source"), blocks(PAGE), ids=lambda value: f"line {value}" if isinstance(value, int) else ""
)
def test_each_example_runs_as_it_stands(line: int, source: str) -> None:
    model = Model()
    run_block(PAGE, line, source, {"model": FunctionModel(model.answer), "__name__": __name__})
    [answer] = model.answers
    assert ("42" in str(answer.content)) if "convert" in answer.tool_name else (answer.tool_name == DELETE[0])


def test_the_example_runs_without_a_key() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "pydantic_ai_agent.py")],
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    assert "listed: delegate, search_tools, read_result\n" in done.stdout
    assert "units__convert, shipping_cost\n" in done.stdout
    assert "26.2188 mi = 42.1951 km" in done.stdout
