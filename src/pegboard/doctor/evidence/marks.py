"""What was seen already, as numbers of 64 bits: exact enough for any history, at little more than eight bytes each.

Above: the readers of transcripts, which skip what a resumed session has copied. Below: nothing.
"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from enum import Enum

_BUCKETS = 4096
_SHIFT = 52
_ALL = (1 << 64) - 1
_UUID = 36
_LATEST = 1 << 16


def mark_of(identity: str) -> int:
    """The number that stands for an id. A uuid is random enough to be cut; anything else is hashed."""
    if len(identity) == _UUID:
        try:
            return int(identity[:8] + identity[28:], 16) & _ALL
        except ValueError:
            pass
    digest = hashlib.blake2b(identity.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


class Marks:
    """A set of such numbers. A Python set would take ten times the memory."""

    __slots__ = ("_buckets",)

    def __init__(self, blocks: Iterable[bytes] = ()) -> None:
        self._buckets: list[array[int] | None] = [None] * _BUCKETS
        if blocks := tuple(blocks):
            self._load(blocks)

    def __contains__(self, mark: int) -> bool:
        bucket = self._buckets[mark >> _SHIFT]
        if bucket is None:
            return False
        at = bisect_left(bucket, mark)
        return at < len(bucket) and bucket[at] == mark

    def add(self, mark: int) -> bool:
        """Whether it is new."""
        bucket = self._buckets[mark >> _SHIFT]
        if bucket is None:
            self._buckets[mark >> _SHIFT] = array("Q", (mark,))
            return True
        at = bisect_left(bucket, mark)
        if at < len(bucket) and bucket[at] == mark:
            return False
        bucket.insert(at, mark)
        return True

    def update(self, marks: Iterable[int]) -> None:
        """Adds them all."""
        buckets = self._buckets
        for mark in marks:
            bucket = buckets[mark >> _SHIFT]
            if bucket is None:
                buckets[mark >> _SHIFT] = array("Q", (mark,))
                continue
            at = bisect_left(bucket, mark)
            if at == len(bucket) or bucket[at] != mark:
                bucket.insert(at, mark)

    def dump(self) -> bytes:
        """All of them, as a block that can be loaded again on this machine."""
        return b"".join(bucket.tobytes() for bucket in self._buckets if bucket is not None)

    def _load(self, blocks: Iterable[bytes]) -> None:
        buckets = self._buckets
        for block in blocks:
            marks = array("Q")
            marks.frombytes(block[: len(block) // 8 * 8])
            for mark in marks:
                bucket = buckets[mark >> _SHIFT]
                if bucket is None:
                    buckets[mark >> _SHIFT] = array("Q", (mark,))
                else:
                    bucket.append(mark)
        self._buckets = [None if bucket is None else array("Q", sorted(set(bucket))) for bucket in buckets]


class Sight(Enum):
    """Whether something was seen before, and where."""

    NEW = "new"
    HERE = "here"
    ELSEWHERE = "elsewhere"


class Seen:
    """What one file has, beside what all others have."""

    __slots__ = ("_latest", "_others", "_own", "copied", "fresh")

    def __init__(self, own: Marks | None = None, others: Marks | None = None) -> None:
        self.fresh = array("Q")
        """What came to it in this reading."""
        self.copied = 0
        """How much of it is another file's."""
        self._own = own
        # A set is faster and takes ten times the memory: only the latest are in one.
        self._latest = set[int]()
        self._others = others or Marks()

    def look(self, mark: int) -> Sight:
        """Where it was seen; from now on it was seen here."""
        latest = self._latest
        if mark in latest or (self._own is not None and mark in self._own):
            return Sight.HERE
        latest.add(mark)
        if len(latest) >= _LATEST:
            self._settle()
        if mark in self._others:
            self.copied += 1
            return Sight.ELSEWHERE
        self.fresh.append(mark)
        return Sight.NEW

    def dump(self) -> bytes:
        """All that the file has, as a block."""
        if self._own is None:
            return array("Q", sorted(self._latest)).tobytes()
        self._settle()
        return self._own.dump()

    def _settle(self) -> None:
        self._own = self._own or Marks()
        self._own.update(self._latest)
        self._latest.clear()
