"""The examples on the page about LangChain run, against real servers; and so does the one in `examples`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool

from pegboard.testing import Move, Shown
from tests.docs.pages import ROOT, a_project, blocks, run_block
from tests.flow.langchain_chat import chat_of

PAGE = ROOT / "docs" / "integrations" / "langchain.md"
DOES: dict[str, tuple[str, dict[str, Any]]] = {
    "marathon": ("units__convert", {"value": 26.2, "from_unit": "mi", "to_unit": "km"}),
    "secretary": ("delegate", {"task": "Note it."}),
    "Note it": ("notes__add_note", {"text": "noted by the secretary"}),
    "Count": ("desk__message_count", {}),
    "Delete": ("notes__delete_note", {"note_id": 1}),
}
SAYS = {"marathon": "42.", "secretary": "done", "Note it": "noted by the secretary", "Count": "2", "Delete": "note"}


@pytest.fixture(scope="module", autouse=True)
def configured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A project with two of the example servers, in which everything is deferred."""
    with a_project(tmp_path_factory.mktemp("project"), "units", "notes", settings='[surface]\nmode = "on"\n'):
        yield


@tool
def weather(city: str) -> str:
    """Tells the weather of a city."""
    return f"sunny in {city}"


def answers(shown: Shown) -> Move:
    """Calls what the prompt is about, and then says that it is done."""
    if isinstance(shown.messages[-1], ToolMessage):
        return Move(text="done")
    asked = shown.messages[0].text
    return Move(calls=tuple(call for word, call in DOES.items() if word in asked))


@pytest.mark.parametrize(
    ("line", "source"), blocks(PAGE), ids=lambda value: f"line {value}" if isinstance(value, int) else ""
)
def test_each_example_runs_as_it_stands(line: int, source: str) -> None:
    model = chat_of([answers] * 8)
    run_block(PAGE, line, source, {"model": model, "weather": weather, "__name__": __name__})
    heard = {
        word: shown.messages[-1].text
        for shown in model.script.shown
        for word in DOES
        if isinstance(shown.messages[-1], ToolMessage) and word in shown.messages[0].text
    }
    assert heard
    assert [word for word, text in heard.items() if SAYS[word] not in text] == []


def test_the_example_runs_without_a_key() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / "langchain_agent.py")],
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    assert "(the model sees delegate, search_tools, read_result)\n" in done.stdout
    assert "(the model sees delegate, search_tools, read_result, units__convert, shipping_cost)\n" in done.stdout
    assert "26.2188 mi = 42.1951 km" in done.stdout
    assert "delegate: Noted." in done.stdout
