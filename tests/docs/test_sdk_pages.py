"""The loops on the pages about the SDKs run as they stand: real SDKs, a real socket, real servers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pegboard.testing import FakeLLM, Move
from tests.docs.pages import ROOT, a_project, blocks, run_block
from tests.served_llm import served

PAGES = ROOT / "docs" / "integrations"
ARGUMENTS = {"value": 26.2, "from_unit": "mi", "to_unit": "km"}
SEARCH = Move(calls=(("search_tools", {"query": "convert miles to kilometres"}),))
BY_NAME = Move(calls=(("units__convert", ARGUMENTS),))
BRIDGED = Move(calls=(("call_tool", {"name": "units__convert", "arguments": ARGUMENTS}),))
ANSWER = Move(text="It is 42.2 km.")


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A project with one of the example servers."""
    with a_project(tmp_path_factory.mktemp("project"), "units"):
        yield


def every_block() -> list[Any]:
    pages = [PAGES / f"{name}.md" for name in ("anthropic_sdk", "openai_sdk", "testing")]
    return [
        pytest.param(page, line, source, id=f"{page.stem}-{line}") for page in pages for line, source in blocks(page)
    ]


@pytest.mark.parametrize(("page", "line", "source"), every_block())
def test_each_example_runs_as_it_stands(
    page: Path, line: int, source: str, configured: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))  # what one example loads is no other's
    fake = FakeLLM([SEARCH, BRIDGED if "ChatCompletions" in source else BY_NAME, ANSWER])
    with served(fake) as address:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{address}/v1")
        run_block(page, line, source, {})
    if "while True" in source:
        assert len(fake.requests) == 3
        assert "42.1648" in str(fake.requests[-1].body)


@pytest.mark.parametrize("command", [["anthropic_agent.py"], ["openai_agent.py"], ["openai_agent.py", "chat"]])
def test_the_example_runs_without_a_key(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    script, *rest = command
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / script), *rest],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "A marathon is 42.2 km" in done.stdout
