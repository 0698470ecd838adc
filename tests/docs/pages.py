"""Runs the Python on a page of the documentation, block by block, as a reader would."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
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
