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
"""Candidates looked at for each place in the list; all of them only if these do not fill it, or if one of them may be
a copy that must not stand before its original."""


class Shown(msgspec.Struct):
    """A tool in the list, and the copies of it that are not."""

    place: int
    """Its place among the candidates."""
    copies: list[int]


def pick(
    index: Parts,
    tools: NDArray[np.int32],
    limit: int,
    slots: Mapping[int, int] | None = None,
    *,
    first_stays: bool = False,
) -> list[Shown]:
    """The first `limit` tools of a ranking, without copies; `slots` says how many a server may hold at most."""
    shown = _pick(index, tools[: _AT_FIRST * limit], limit, slots or {}, first_stays)
    copied = slots and np.isin(index.facts.server[tools[[each.place for each in shown]]], [*slots]).any()
    if (len(shown) < limit or copied) and len(tools) > _AT_FIRST * limit:
        shown = _pick(index, tools, limit, slots or {}, first_stays)
    return shown


def _pick(
    index: Parts, tools: NDArray[np.int32], limit: int, slots: Mapping[int, int], first_stays: bool
) -> list[Shown]:
    copies: list[list[bool]] = _copies(index, tools).tolist()
    servers: list[int] = index.facts.server[tools].tolist()
    shown: list[Shown] = []
    held: dict[int, int] = {}
    for place, server in enumerate(servers):
        is_copy_of = copies[place]
        original = next((each for each in shown if is_copy_of[each.place]), None)
        fixed = first_stays and original is not None and original.place == 0
        if original is not None and not fixed and servers[original.place] in slots and server not in slots:
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
    facts = index.facts
    namesakes, spellings, servers = facts.namesake[tools], facts.spelling[tools], facts.server[tools]
    foreign: NDArray[np.bool_] = servers[:, None] != servers
    # On one server `map_to_list` and `list_to_map`, or `get_user` and `get_users`, are two tools; elsewhere another
    # order or ending is another's taste.
    same_name = (namesakes[:, None] == namesakes) & (foreign | (spellings[:, None] == spellings))
    if index.vectors is None:
        gists = facts.gist[tools]
        alike = (gists[:, None, :] == gists[None, :, :]).sum(axis=2) >= weights.SAME_GIST
        return np.asarray(same_name & foreign & alike)
    vectors = index.vectors.of(tools)
    likeness = vectors @ vectors.T
    copies: NDArray[np.bool_] = (same_name & (likeness > weights.NAMESAKE_LIKENESS)) | (
        foreign & (likeness > weights.COPY_LIKENESS)
    )
    return copies
