"""The examples on the page about the OpenAI Agents SDK run, against real servers; and so does the one in `examples`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from agents import set_tracing_disabled

from pegboard.testing import Move, Shown
from tests.docs.pages import ROOT, a_project, blocks, run_block
from tests.flow.openai_agents_model import PlayedModel, calls, output_text, says

PAGE = ROOT / "docs" / "integrations" / "openai_agents.md"


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A project with two of the example servers, in which everything is deferred."""
    set_tracing_disabled(True)
    with a_project(tmp_path_factory.mktemp("project"), "units", "notes", settings='[surface]\nmode = "on"\n'):
        yield
    set_tracing_disabled(False)


def played(shown: Shown) -> Move:
    """Calls what the prompt is about, through the helper where there is one, and then says what it was told."""
    results = [each for each in shown.messages if each.get("type") == "function_call_output"]
    if results:
        return says(output_text(results[-1]["output"]))
    if "helper" in shown.names:
        return calls("helper", input="How many kilometres are 26.2 miles?")
    if "Delete" in str(shown.messages):
        return calls("notes__delete_note", note_id=1)
    return calls("units__convert", value=26.2, from_unit="mi", to_unit="km")


@pytest.mark.parametrize(
    ("line", "source"), blocks(PAGE), ids=lambda value: f"line {value}" if isinstance(value, int) else ""
)
def test_each_example_runs_as_it_stands(line: int, source: str, configured: None) -> None:
    model = PlayedModel(*[played] * 8)
    run_block(PAGE, line, source, {"model": model})
    [answer] = set(model.outputs)
    assert ("42" in answer) or ("Delete" in source and "note" in answer and "approv" not in answer)


def test_the_example_runs_without_a_key() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "openai_agents_agent.py")],
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    assert "listed: search_tools, read_result, secretary\n" in done.stdout
    assert "listed: search_tools, read_result, units__convert, shipping_cost, secretary\n" in done.stdout
    assert "listed: search_tools, read_result, notes__add_note\n" in done.stdout
    assert "26.2188 mi = 42.1951 km" in done.stdout
