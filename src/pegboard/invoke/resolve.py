"""The tool a name means: as the catalog has it, or as models write names when they misremember them.

Another case, other joints (`github.create-issue`), and the prefixes that clients put before names are read as what they
must mean, if only one tool can be meant. Above: `path`. Below: the catalog's finder, given as a function.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pegboard.catalog.naming import RESERVED_SERVER, SEPARATOR
from pegboard.errors import ToolNotFound
from pegboard.types import Tool

Find = Callable[[str], Awaitable[Tool]]

_PREFIXES = (
    f"mcp{SEPARATOR}{RESERVED_SERVER}{SEPARATOR}",
    f"{RESERVED_SERVER}{SEPARATOR}",
    f"mcp{SEPARATOR}",
    "functions.",
)
_JOINTS = str.maketrans("", "", "_-./: ")
_LONGEST = 512


async def resolve(name: str, find: Find) -> Tool:
    """The tool; raises ToolNotFound, with the nearest names, for what was really asked."""
    try:
        return await find(name)
    except ToolNotFound as error:
        missing = error
    if len(name) > _LONGEST:
        raise missing
    for other in _other_spellings(name):
        try:
            return await find(other)
        except ToolNotFound as error:
            missing = missing if _is_known(missing) or not _is_known(error) else error
            near = "" if _is_known(error) else _same_but_for_spelling(other, error.nearest)
        if near:
            return await find(near)
    near = "" if _is_known(missing) else _same_but_for_spelling(name, missing.nearest)
    if near:
        return await find(near)
    raise missing


def _is_known(error: ToolNotFound) -> bool:
    """Whether there is such a tool, but it may not be used, or is one of several: that is no matter of spelling."""
    return bool(error.reason) and not error.reason.startswith("There is no tool named")


def _other_spellings(name: str) -> list[str]:
    bare = name.strip()
    for prefix in _PREFIXES:
        bare = bare.removeprefix(prefix)
    spellings = [bare]
    for joint in "./:":
        server, found, tool = bare.partition(joint)
        if found:
            spellings.append(server + SEPARATOR + tool)
    return [each for each in dict.fromkeys(spellings) if each and each != name]


def _same_but_for_spelling(name: str, nearest: tuple[str, ...]) -> str:
    """The one of these that differs from the name in case and joints only; empty when there are two, or none."""
    folded = _folded(name)
    same = {each for each in nearest if folded in (_folded(each), _folded(each.partition(SEPARATOR)[2]))}
    return same.pop() if len(same) == 1 and folded else ""


def _folded(name: str) -> str:
    return name.translate(_JOINTS).casefold()
