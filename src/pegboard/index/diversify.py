"""Which of the ranked tools are shown: copies folded into the best of them, no distrusted server in too many slots.

Above: `index`. Below: `parts`, `weights`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from pegboard.index import weights
from pegboard.index.parts import Parts

_AT_FIRST = 4
"""Candidates looked at for each place in the list; all of them only if these do not fill it."""


class Shown(msgspec.Struct):
    """A tool in the list, and the copies of it that are not."""

    place: int
    """Its place among the candidates."""
    copies: list[int]


def pick(index: Parts, tools: NDArray[np.int32], limit: int, slots: Mapping[int, int] | None = None) -> list[Shown]:
    """The first `limit` tools of a ranking, without copies; `slots` says how many a server may hold at most."""
    shown = _pick(index, tools[: _AT_FIRST * limit], limit, slots or {})
    if len(shown) < limit and len(tools) > _AT_FIRST * limit:
        shown = _pick(index, tools, limit, slots or {})
    return shown


def _pick(index: Parts, tools: NDArray[np.int32], limit: int, slots: Mapping[int, int]) -> list[Shown]:
    is_copy = _copies(index, tools)
    servers: list[int] = index.facts.server[tools].tolist()
    shown: list[Shown] = []
    held: dict[int, int] = {}
    for place, server in enumerate(servers):
        original = next((each for each in shown if is_copy(place, each.place)), None)
        if original is not None:
            original.copies.append(place)
        elif len(shown) < limit and held.get(server, 0) < slots.get(server, limit):
            held[server] = held.get(server, 0) + 1
            shown.append(Shown(place, []))
    return shown


def _copies(index: Parts, tools: NDArray[np.int32]) -> Callable[[int, int], bool]:
    """Tells whether two of the tools are nearly the same."""
    namesakes: list[int] = index.facts.namesake[tools].tolist()
    servers: list[int] = index.facts.server[tools].tolist()
    if index.vectors is None:
        return lambda one, other: namesakes[one] == namesakes[other] and servers[one] != servers[other]
    vectors = index.vectors.of(tools)
    likeness: list[list[float]] = (vectors @ vectors.T).tolist()

    def is_copy(one: int, other: int) -> bool:
        if namesakes[one] == namesakes[other] and likeness[one][other] > weights.NAMESAKE_LIKENESS:
            return True
        return servers[one] != servers[other] and likeness[one][other] > weights.COPY_LIKENESS

    return is_copy
