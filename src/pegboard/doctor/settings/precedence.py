"""Which of several values counts.

Above: `read`. Below: the facts.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

import msgspec

from pegboard.doctor.facts import ServerEntry, Setting


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What one agent is set to in one folder, before it is decided which values count."""

    settings: tuple[Setting, ...] = ()
    """The strongest first."""
    servers: tuple[ServerEntry, ...] = ()
    """The strongest first."""
    joined: frozenset[str] = frozenset()
    """Names of lists: all their elements count, wherever they stand."""


def settle(candidates: Iterable[Setting], joined: Container[str]) -> tuple[tuple[Setting, ...], tuple[Setting, ...]]:
    """Those that count and those that a stronger one overrides, of values that come strongest first."""
    counting: list[Setting] = []
    overridden: list[Setting] = []
    taken: set[str] = set()
    for each in candidates:
        if each.name in taken and each.name not in joined:
            overridden.append(each)
        else:
            taken.add(each.name)
            counting.append(each)
    return tuple(counting), tuple(overridden)
