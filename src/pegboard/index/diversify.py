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


class Shown(msgspec.Struct):
    """A tool in the list, and the copies of it that are not."""

    place: int
    """Its place among the candidates."""
    copies: list[int]


def pick(index: Parts, tools: NDArray[np.int32], limit: int, slots: Mapping[int, int] | None = None) -> list[Shown]:
    """The first `limit` tools of a ranking, without copies; `slots` says how many a server may hold at most."""
    vectors = index.vectors.of(tools) if index.vectors is not None else None
    namesakes, servers = index.facts.namesake[tools], index.facts.server[tools]
    shown: list[Shown] = []
    held: dict[int, int] = {}
    for place in range(len(tools)):
        original = _original(place, shown, namesakes, servers, vectors)
        if original is not None:
            original.copies.append(place)
            continue
        if len(shown) == limit:
            break
        server = int(servers[place])
        if slots is not None and held.get(server, 0) >= slots.get(server, limit):
            continue
        held[server] = held.get(server, 0) + 1
        shown.append(Shown(place, []))
    return shown


def _original(
    place: int,
    shown: list[Shown],
    namesakes: NDArray[np.uint64],
    servers: NDArray[np.int32],
    vectors: NDArray[np.float32] | None,
) -> Shown | None:
    """The tool in the list that this one is a copy of, if it is one."""
    if not shown:
        return None
    before = np.array([each.place for each in shown])
    same_name = namesakes[before] == namesakes[place]
    if vectors is None:
        alike = same_name & (servers[before] != servers[place])
    else:
        likeness = vectors[before] @ vectors[place]
        foreign = servers[before] != servers[place]
        alike = (same_name & (likeness > weights.NAMESAKE_LIKENESS)) | (foreign & (likeness > weights.COPY_LIKENESS))
    found = np.flatnonzero(alike)
    return shown[int(found[0])] if len(found) else None
