"""What the loops of all wires do alike: run the calls of a turn side by side, and say what a history had loaded.

Above: the SDK plug-ins. Below: a conversation, through three of its methods.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Container, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from pegboard.errors import PegboardError
from pegboard.integrations.dialects.plain import Call
from pegboard.integrations.dialects.uses import OWN
from pegboard.surface.compose import Reason, Surface
from pegboard.types import Json

if TYPE_CHECKING:
    from pegboard.board import Chat

PARALLEL = 8
"""Calls of one turn that run at once."""


class Rebuilt(msgspec.Struct, frozen=True):
    """What a conversation has loaded after its history was read."""

    loaded: tuple[str, ...]
    """Most recently used first."""
    unknown: tuple[str, ...] = ()
    """Names in the history that no tool has now, or none that this conversation may use."""


async def answered(calls: Sequence[Call], one: Callable[[Call], Awaitable[Json]]) -> list[Json]:
    """The answers to all calls, in their order; a cancel ends them all."""
    slots = asyncio.Semaphore(PARALLEL)

    async def in_turn(call: Call) -> Json:
        async with slots:
            return await one(call)

    return list(await asyncio.gather(*map(in_turn, calls)))


def rebuilt(chat: Chat, names: Sequence[str], own: Iterable[str]) -> Rebuilt:
    """Loads what a history used, least recently used first, into the conversation; nothing else stays loaded."""
    theirs = {*own, *OWN}
    known = {name: tool.public_name for name in names if name not in theirs and (tool := chat.knows(name))}
    loaded = chat.load(list(known.values()))
    return Rebuilt(loaded, tuple(name for name in names if name not in known and name not in theirs))


def forked(chat: Chat, name: str, *, inherit: bool, allow: Sequence[str] | None) -> Chat:
    """The conversation of a sub-agent; of two that have one name, and may run at once, each has its own."""
    return chat.fork(f"{name}/{uuid.uuid4().hex[:12]}", inherit=inherit, allow=allow)


def checked(own: Iterable[Json], name_of: Callable[[Json], str]) -> tuple[Json, ...]:
    """The caller's own tools; none may have the name of one of Pegboard's, nor of another."""
    kept = tuple(own)
    names = [name for name in map(name_of, kept) if name]
    if taken := sorted(OWN.intersection(names)):
        raise PegboardError(
            f"One of your own tools is named {taken[0]!r}, as one of Pegboard's is.",
            hint="Rename yours: Pegboard's have the same names in every conversation.",
        )
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise PegboardError(f"Two of your own tools are named {twice[0]!r}.", hint="Give one of them another name.")
    return kept


def steady(surface: Surface, kept: dict[str, Json]) -> list[Json]:
    """The list, with Pegboard's own tools as they were first sent: what a search says of the servers follows the
    catalog, and may not change the beginning of a prompt in the middle of a conversation."""
    shown = [(str(each["name"]), each) for each in surface.definitions]
    own = {name for name, reason in surface.reasons.items() if reason is Reason.OWN}
    return [kept.setdefault(name, each) if name in own else each for name, each in shown]


def beside(text: str) -> str:
    """What a search says besides what it found: names nobody has, notes, news. Where the definitions are part of the
    answer, nothing is unloaded or left out."""
    rest = text.split("\n\n")[1:]
    return "\n\n".join(each for each in rest if not each.startswith(("Unloaded ", "Not loaded ")))


def without_trace(surface: Surface, spoken_of: Container[str]) -> tuple[str, ...]:
    """What is loaded though its history never speaks of it, least recently used first: inherited, or compacted away."""
    loaded = [name for name in reversed(surface.activation.names) if name in surface.permitted]
    return tuple(name for name in loaded if name not in spoken_of and name not in surface.pinned)
