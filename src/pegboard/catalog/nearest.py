"""Which known names a mistyped one probably meant, with bounded work however many names there are.

Above: whoever says "there is no such …". Below: nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

_LIKENESS = 0.6
_SHORTLIST = 48
_LONGEST = 128


def nearest(name: str, candidates: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """The closest candidates, best first; none when nothing is close."""
    wanted = name[:_LONGEST].casefold()
    scored = [(likeness(wanted, candidate.casefold()), candidate) for candidate in _shortlist(wanted, candidates)]
    close = sorted((-score, candidate) for score, candidate in scored if score >= _LIKENESS)
    return tuple(candidate for _, candidate in close[:limit])


def likeness(left: str, right: str) -> float:
    """From 0 (nothing in common) to 1 (equal)."""
    import difflib

    return difflib.SequenceMatcher(None, left[:_LONGEST], right[:_LONGEST], autojunk=False).ratio()


def _shortlist(wanted: str, candidates: Iterable[str]) -> list[str]:
    """The candidates that share the most letter pairs with what was asked: cheap, so that likeness runs on few."""
    names = dict.fromkeys(candidates)
    if len(names) <= _SHORTLIST:
        return list(names)
    import heapq

    pairs = {wanted[i : i + 2] for i in range(len(wanted) - 1)} or {wanted}

    def overlap(candidate: str) -> float:
        low = candidate.casefold()
        return sum(pair in low for pair in pairs) / (len(pairs) + len(low))

    return heapq.nlargest(_SHORTLIST, names, key=overlap)
