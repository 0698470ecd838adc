"""Skills in words: what a search says of those that fit, and what is told of one that is loaded.

Pure. Above: `load`, `desk`, the command line. Below: `surface.render`, the skills.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from pegboard.catalog.catalog import Catalog
from pegboard.catalog.filter import compile_globs, named
from pegboard.errors import ToolNotFound
from pegboard.skills.read import Listing
from pegboard.skills.source import Skill
from pegboard.surface.render import rendered, summary
from pegboard.surface.visible import one_line
from pegboard.types import Tool

_LONGEST_FOUND = 160
_SIGNED = 8
"""Tools that are shown with how to call them; of the others the names."""
_MOST_NAMES = 24
_MOST_MISSING = 10
_MOST_FILES = 40
_GLOB = frozenset("*?[")
_FOREIGN_PREFIX = "mcp__"
"""What some agents put before a server's name."""


class Missing(msgspec.Struct, frozen=True):
    """A tool that a skill names and this caller does not have."""

    name: str
    near: tuple[str, ...] = ()
    unasked: bool = False
    """Its server was never asked for its tools."""


class Declared(msgspec.Struct, frozen=True):
    """What became of the tools that a skill names."""

    found: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()


def found_text(skills: Sequence[Skill], load: str) -> str:
    """What a search's answer says of skills that fit."""
    rows = [
        f'skill: {skill.name} — {one_line(skill.description, _LONGEST_FOUND)}; {load}("{skill.name}")'
        for skill in skills
    ]
    return "\n".join(rows)


def declared(skill: Skill, catalog: Catalog, permitted: Mapping[str, Tool], *, bound: bool) -> Declared:
    """The tools that a skill names, as far as this caller may use them; `bound`: by an allowlist."""
    found: dict[str, None] = {}
    missing: list[Missing] = []
    for name in skill.tools:
        if len(missing) >= _MOST_MISSING and name not in permitted:
            missing.append(Missing(name))  # near misses are looked for among all tools: for a few names, not for all
            continue
        names = _matching(name, permitted) if _GLOB.intersection(name) else _named(name, catalog, permitted)
        if isinstance(names, Missing):
            missing.append(names if not bound else msgspec.structs.replace(names, unasked=False))
        else:
            found |= dict.fromkeys(names)
    return Declared(tuple(found), tuple(missing))


def _matching(pattern: str, permitted: Mapping[str, Tool]) -> list[str] | Missing:
    globs = compile_globs((pattern, pattern.removeprefix(_FOREIGN_PREFIX)))
    found = [name for name, tool in permitted.items() if globs.match(named(tool.server, tool.name, tool.public_name))]
    return found or Missing(pattern)


def _named(name: str, catalog: Catalog, permitted: Mapping[str, Tool]) -> list[str] | Missing:
    near: tuple[str, ...] = ()
    for spelling in dict.fromkeys((name, name.removeprefix(_FOREIGN_PREFIX))):
        try:
            tool = catalog.find(spelling)
        except ToolNotFound as error:
            near = near or tuple(each for each in error.nearest if each in permitted)
            continue
        return [tool.public_name] if tool.public_name in permitted else Missing(name)
    server = name.removeprefix(_FOREIGN_PREFIX).partition("__")[0]
    unasked = any(
        entry.usable and entry.listed is None and server in (entry.name, entry.prefix)
        for entry in catalog.servers.values()
    )
    return Missing(name, near, unasked)


def loaded_text(
    skill: Skill,
    body: str,
    files: Listing,
    tools: Sequence[str],
    *,
    load: str,
    folder: bool,
) -> str:
    """What is told when a skill is loaded: where it lies, its tools and files, then the body itself."""
    where = f" Its folder: {_plain(skill.folder)}" if folder else ""
    facts = [f"Skill {skill.name}.{where}", *tools, _files(skill, files, load)]
    return "\n".join(fact for fact in facts if fact) + f"\n\n{body}"


def tools_text(
    found: Sequence[str], permitted: Mapping[str, Tool], call: Callable[[Tool], str] | None, *, shown: bool
) -> str:
    """The tools that a skill speaks of; `shown`: as they are on the list, their names will do."""
    if not found:
        return ""
    more = _more(found[_SIGNED:])
    if shown:
        return f"Its tools: {', '.join(found[:_SIGNED])}{more}."
    if call is None:
        lines = [f"{name}: {summary(permitted[name])}" for name in found[:_SIGNED]]
        return "\n".join(["Its tools, loaded; call each by its name:", *lines]) + (f"\n{more[2:]}" if more else "")
    lines = [f"[{call(permitted[name])}] {rendered(permitted[name])}" for name in found[:_SIGNED]]
    head = f"Its tools; call each with what stands before it, as in {call(permitted[found[0]])}(name, arguments):"
    return "\n".join([head, *lines]) + (f"\n{more[2:]}" if more else "")


def missing_text(missing: Sequence[Missing]) -> str:
    """Which of the tools that a skill names are not to be had."""
    if not missing:
        return ""
    shown = "; ".join(map(_missing, missing[:_MOST_MISSING]))
    rest = len(missing) - _MOST_MISSING
    return f"Named by the skill, but not available here: {shown}{f' and {rest} more' if rest > 0 else ''}."


def _missing(each: Missing) -> str:
    name = one_line(each.name, 80)
    if each.unasked:
        return f"{name} (its server was not asked yet; call it by its name all the same)"
    return f"{name} (nearest: {', '.join(each.near)})" if each.near else name


def _files(skill: Skill, listing: Listing, load: str) -> str:
    if not listing.files:
        return ""
    shown = ", ".join(f"{each.path} ({_size(each.size)})" for each in listing.files[:_MOST_FILES])
    rest = len(listing.files) - _MOST_FILES
    more = f" and {rest} more" if rest > 0 else ""
    more += "" if listing.complete else " and others"
    return f'Further files, read by {load}("{skill.name}", file): {shown}{more}'


def _more(names: Sequence[str]) -> str:
    if not names:
        return ""
    rest = len(names) - _MOST_NAMES
    return f", {', '.join(names[:_MOST_NAMES])}" + (f" and {rest} more" if rest > 0 else "")


def _size(size: int) -> str:
    return f"{size} B" if size < 1000 else f"{size / 1000:.1f} kB"


def _plain(path: Path) -> str:
    """A path as text that every message can carry."""
    return os.fsencode(path).decode("utf-8", "replace")
