"""Which of the servers found are meant: by source, by name, or by what a person types at the prompt.

Pure. Above: `pegboard import`. Below: the nouns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from pegboard.config.importers.found import Found
from pegboard.config.problems import nearest
from pegboard.errors import PegboardError

_RANGE = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?")
_BREAKS = re.compile(r"[\s,;]+")


def from_sources(found: Iterable[Found], prefixes: Sequence[str], known: Sequence[str]) -> tuple[Found, ...]:
    """Only what these sources have; keys stay the same, whichever of several programs is asked."""
    for prefix in prefixes:
        if not any(_matches(source, (prefix,)) for source in known):
            programs = tuple(dict.fromkeys(source.partition(":")[0] for source in known))
            near = nearest(prefix, (*known, *programs))
            hint = f"Did you mean {near}?" if near else f"There are {', '.join(known)}."
            raise PegboardError(f"There is no source named {prefix!r}.", hint=hint)
    if not prefixes:
        return tuple(found)
    return tuple(kept for item in found if (kept := _narrowed(item, prefixes)) is not None)


def by_names(found: Sequence[Found], names: Iterable[str]) -> tuple[Found, ...]:
    """The servers of these keys, or of these names as their programs have them."""
    chosen: dict[int, Found] = {}
    for name in names:
        item = _by_name(found, name)
        chosen[id(item)] = item
    return tuple(chosen.values())


def by_answer(found: Sequence[Found], answer: str) -> tuple[Found, ...]:
    """What a person typed: numbers as listed, ranges, names, `all` or `none`."""
    listed = importable(found)
    words = [word for word in _BREAKS.split(answer.strip()) if word]
    if words == ["all"]:
        return listed
    if words in ([], ["none"]):
        return ()
    # A name may hold spaces, so the whole answer is tried first.
    if any(answer.strip() in {item.name, item.key} for item in listed):
        return by_names(found, [answer.strip()])
    chosen: dict[int, Found] = {}
    for word in words:
        numbered = _RANGE.fullmatch(word)
        picked = _by_numbers(listed, numbered) if numbered else by_names(found, [word])
        chosen.update((id(item), item) for item in picked)
    return tuple(chosen.values())


def importable(found: Iterable[Found]) -> tuple[Found, ...]:
    """Those that can be imported at all, in the order in which they are numbered."""
    return tuple(item for item in found if item.config is not None)


def _matches(source: str, prefixes: Sequence[str]) -> bool:
    return source.startswith(tuple(prefixes))


def _narrowed(item: Found, prefixes: Sequence[str]) -> Found | None:
    if _matches(item.source, prefixes):
        return item
    chosen = next((other for other in item.duplicates if _matches(other.source, prefixes)), None)
    if chosen is None:
        return None
    plain = msgspec.structs.replace(item, duplicates=())
    others = tuple(other for other in item.duplicates if other is not chosen)
    return msgspec.structs.replace(chosen, duplicates=(plain, *others))


def _by_name(found: Sequence[Found], name: str) -> Found:
    exact = [item for item in found if name and item.key == name]
    called = exact or [item for item in found if name and item.name == name]
    usable = importable(called)
    if len(usable) == 1:
        return usable[0]
    if usable:
        keys = ", ".join(item.key for item in usable)
        raise PegboardError(f"Several servers are named {name!r}.", hint=f"Pick one by its key: {keys}.")
    if called:
        item = called[0]
        raise PegboardError(f"{name} cannot be imported: {item.problem}", hint=f"It is in {item.file}.")
    near = nearest(name, {item.key for item in found if item.key} | {item.name for item in found if item.name})
    hint = f"Did you mean {near}?" if near else "`pegboard import` without names lists all that were found."
    raise PegboardError(f"No server named {name!r} was found.", hint=hint)


def _by_numbers(listed: Sequence[Found], numbered: re.Match[str]) -> Sequence[Found]:
    first = int(numbered[1])
    last = int(numbered[2] or first)
    if not 1 <= first <= last <= len(listed):
        raise PegboardError(f"There is no {numbered[0]}.", hint=f"The numbers go from 1 to {len(listed)}.")
    return listed[first - 1 : last]
