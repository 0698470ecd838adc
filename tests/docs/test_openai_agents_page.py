"""The examples on the page about the OpenAI Agents SDK run, against real servers; and so does the one in `examples`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from agents import set_tracing_disabled

from pegboard.testing import Move, Shown
from tests.docs.pages import ROOT, blocks, run_block
from tests.flow.openai_agents_model import PlayedModel, calls, output_text, says

PAGE = ROOT / "docs" / "integrations" / "openai_agents.md"
SERVERS = ROOT / "examples" / "servers"


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A project with two of the example servers, listed before, in which everything is deferred."""
    for variable in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pegboard.toml").write_text(
        '[surface]\nmode = "on"\n'
        + "".join(
            f'[servers.{name}]\ncommand = "{sys.executable}"\nargs = ["{SERVERS / name}.py"]\n'
            f'env = {{ NOTES_FILE = "{tmp_path}/notes.db" }}\n'
            for name in ("units", "notes")
        )
    )
    set_tracing_disabled(True)
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
    from pegboard.cli.main import main

    assert main(["refresh"]) == 0
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
