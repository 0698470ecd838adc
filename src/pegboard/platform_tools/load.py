"""`load_skill`: a skill's body with the tools and files that belong to it, or one of its files.

Loading surfaces the tools that a skill names, as a search does: a hint, never a gate. Files are read by a thread.
Above: `desk`. Below: `skill_text`, the skills.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from pegboard.catalog.catalog import Catalog
from pegboard.platform_tools.definitions import LOAD
from pegboard.platform_tools.search import truth_about
from pegboard.platform_tools.skill_text import Declared, declared, loaded_text, missing_text, tools_text
from pegboard.skills.read import Listing
from pegboard.skills.source import Skill
from pegboard.surface.activation import Change
from pegboard.surface.compose import Surface
from pegboard.types import Caller, Tool

MOST_FOUND = 200
"""Names of tools that a result carries beside its text; a pattern may stand for thousands."""


async def read_file(skill: Skill, path: str) -> str:
    """One of the skill's files."""
    return await asyncio.to_thread(skill.text, path)


async def read_skill(
    skill: Skill,
    surface: Surface,
    catalog: Catalog,
    caller: Caller,
    *,
    call: Callable[[Tool], str] | None,
    activate: Callable[[Sequence[str]], Change],
) -> tuple[str, tuple[str, ...]]:
    """What the skill says, and which of its tools this caller has; they count as loaded from now on."""

    def read() -> tuple[str, Listing, Declared]:
        # In a thread too: a pattern is held against every tool there is.
        return skill.body(), skill.files(), declared(skill, catalog, surface.permitted, bound=bool(caller.lists))

    body, files, tools = await asyncio.to_thread(read)
    change = activate(tools.found)
    deferring = surface.verdict.deferring
    facts = [tools_text(tools.found, surface.permitted, call, shown=not deferring)]
    if surface.basis.list_active and deferring:
        facts += truth_about(change, told=call is None)
    facts.append(missing_text(tools.missing))
    # Who has an identity may sit at another machine, where the folder means nothing.
    text = loaded_text(skill, body, files, facts, load=LOAD, folder=not caller.identity)
    return text, tools.found[:MOST_FOUND]
