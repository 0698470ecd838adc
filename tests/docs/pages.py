"""Runs the Python on a page of the documentation, block by block, as a reader would."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SERVERS = ROOT / "examples" / "servers"
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(page: Path) -> list[tuple[int, str]]:
    """Each block with the line it begins at."""
    text = page.read_text("utf-8")
    return [(text.count("\n", 0, found.start(1)), found[1]) for found in _BLOCK.finditer(text)]


def run_block(page: Path, line: int, source: str, given: dict[str, Any]) -> dict[str, Any]:
    """Runs one block with these names given, top-level `await` and all; what it defines afterwards."""
    names = {"__name__": "page", **given}
    # Line numbers of an error are those of the page.
    code = compile("\n" * line + source, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

    async def run() -> None:
        outcome = eval(code, names)
        if inspect.isawaitable(outcome):
            await outcome

    asyncio.run(run())
    return names


@contextmanager
def a_project(folder: Path, *servers: str, settings: str = "") -> Iterator[None]:
    """The folder as a project with some of the example servers, listed before; and as the user's home."""
    from pegboard.cli.main import main

    entries = [
        f'[servers.{name}]\ncommand = "{sys.executable}"\nargs = ["{SERVERS / name}.py"]\n'
        f'env = {{ NOTES_FILE = "{folder}/notes.db" }}\n'
        for name in servers
    ]
    (folder / "pegboard.toml").write_text(settings + "".join(entries))
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "HOME"):
            patch.setenv(variable, str(folder / variable.lower()))
        patch.chdir(folder)
        assert main(["refresh"]) == 0
        yield
