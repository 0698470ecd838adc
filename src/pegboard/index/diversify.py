"""Which of the ranked tools are shown: copies folded into the best of them, no distrusted server in too many slots.

Above: `index`. Below: `parts`, `weights`.
"""

from __future__ import annotations

from collections.abc import Mapping

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
    copies: list[list[bool]] = _copies(index, tools).tolist()
    servers: list[int] = index.facts.server[tools].tolist()
    shown: list[Shown] = []
    held: dict[int, int] = {}
    for place, server in enumerate(servers):
        is_copy_of = copies[place]
        original = next((each for each in shown if is_copy_of[each.place]), None)
        if original is not None and servers[original.place] in slots and server not in slots:
            # A server of limited trust must not stand before the tool it copies.
            held[servers[original.place]] -= 1
            held[server] = held.get(server, 0) + 1
            original.copies.append(original.place)
            original.place = place
        elif original is not None:
            original.copies.append(place)
        elif len(shown) < limit and held.get(server, 0) < slots.get(server, limit):
            held[server] = held.get(server, 0) + 1
            shown.append(Shown(place, []))
    return shown


def _copies(index: Parts, tools: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which of the tools are nearly the same as which."""
    namesakes, servers = index.facts.namesake[tools], index.facts.server[tools]
    same_name: NDArray[np.bool_] = namesakes[:, None] == namesakes
    foreign: NDArray[np.bool_] = servers[:, None] != servers
    if index.vectors is None:
        return same_name & foreign
    vectors = index.vectors.of(tools)
    likeness = vectors @ vectors.T
    return (same_name & (likeness > weights.NAMESAKE_LIKENESS)) | (foreign & (likeness > weights.COPY_LIKENESS))
