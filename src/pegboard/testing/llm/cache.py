"""A prompt cache, simulated by bytes: what begins as an earlier prompt did need not be read again.

It counts a token for four bytes and knows no time and no smallest size, so it says which share was cached, not what it
costs. Above: `FakeLLM`. Below: nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from pegboard.testing.llm.asked import Segment

LOOK_BACK = 20
"""Pieces before a breakpoint in which an earlier entry is looked for."""


class Reading(msgspec.Struct, frozen=True):
    """How one prompt fared, in bytes."""

    total: int
    cached: int
    """Read from the cache."""
    written: int
    """Written to it, up to the last breakpoint."""
    shared: int
    """The beginning that some earlier prompt had too, whether or not a breakpoint made use of it."""
    written_for_hour: int = 0
    """Of what is written, what lasts an hour."""


class PromptCache:
    """All prompts so far. With breakpoints (`explicit`) it caches where one stands, else every beginning."""

    def __init__(self, *, explicit: bool) -> None:
        self._explicit = explicit
        self._entries: set[bytes] = set()
        self._seen: set[bytes] = set()

    def read(self, seed: str, prompt: Sequence[Segment]) -> Reading:
        """How much of the prompt is cached; from now on this one is too. Another `seed` is another cache."""
        digests, sizes = _running(seed, prompt)
        shared = next((size for digest, size in _backwards(digests, sizes) if digest in self._seen), 0)
        self._seen |= set(digests)
        total = sizes[-1] if sizes else 0
        if not self._explicit:
            return Reading(total, shared, total - shared, shared)
        marks = [at for at, piece in enumerate(prompt) if piece.is_marked]
        cached = max((self._hit(digests, sizes, mark) for mark in marks), default=0)
        self._entries |= {digests[mark] for mark in marks}
        written = max(0, sizes[marks[-1]] - cached) if marks else 0
        return Reading(total, cached, written, shared, _for_hour(prompt, sizes, marks, cached))

    def _hit(self, digests: list[bytes], sizes: list[int], mark: int) -> int:
        looked_at = range(mark, max(-1, mark - LOOK_BACK), -1)
        return next((sizes[at] for at in looked_at if digests[at] in self._entries), 0)


def _for_hour(prompt: Sequence[Segment], sizes: list[int], marks: list[int], cached: int) -> int:
    """Of what is written, what lasts an hour: each stretch lasts as long as the breakpoint at its end says."""
    size, start = 0, cached
    for mark in marks:
        size += max(0, sizes[mark] - start) if prompt[mark].is_hour else 0
        start = max(start, sizes[mark])
    return size


def _running(seed: str, prompt: Sequence[Segment]) -> tuple[list[bytes], list[int]]:
    """The digest and the size of every beginning."""
    state, size = hashlib.sha256(seed.encode()), 0
    digests, sizes = [], []
    for piece in prompt:
        state.update(len(piece.data).to_bytes(8, "big") + piece.data)
        size += len(piece.data)
        digests.append(state.digest())
        sizes.append(size)
    return digests, sizes


def _backwards(digests: list[bytes], sizes: list[int]) -> list[tuple[bytes, int]]:
    return list(zip(reversed(digests), reversed(sizes), strict=True))
