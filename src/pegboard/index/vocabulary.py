"""Terms as numbers: a sorted table of hashes, so that a million terms are looked up without loading one.

A second table holds every longer term with one letter left out, which finds the term a misspelt word meant.
Above: `postings`, `build`. Below: numpy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

MOST_MEANT = 3
_SHORTEST_MISSPELT = 5
_LONGEST_MISSPELT = 20


@lru_cache(maxsize=1 << 16)
def term_hash(term: str) -> int:
    """The number that stands for a term, the same in every process."""
    return int.from_bytes(hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


class Vocabulary(msgspec.Struct, frozen=True):
    """All terms of an index, by hash; a term's number is its place in `hashes`."""

    hashes: NDArray[np.uint64]
    near_hashes: NDArray[np.uint64]
    """Hashes of longer terms and of each with one letter left out, sorted."""
    near_terms: NDArray[np.int32]
    """The term each of `near_hashes` came from."""

    def numbers(self, wanted: Sequence[str]) -> list[int]:
        """The number of each term; -1 for those that no tool has."""
        if not wanted or not len(self.hashes):
            return [-1] * len(wanted)
        keys = np.array([term_hash(term) for term in wanted], np.uint64)
        places = np.minimum(np.searchsorted(self.hashes, keys), len(self.hashes) - 1)
        same = self.hashes[places] == keys
        numbers: list[int] = np.where(same, places, -1).tolist()
        return numbers

    def meant(self, misspelt: Sequence[str]) -> dict[str, list[int]]:
        """The numbers of terms that differ by one slip of the keyboard, for each word; short words have none."""
        variants = {word: _with_one_left_out(word) for word in misspelt if _may_be_misspelt(word)}
        if not variants or not len(self.near_hashes):
            return {}
        keys = np.array([term_hash(each) for several in variants.values() for each in several], np.uint64)
        low, high = np.searchsorted(self.near_hashes, keys), np.searchsorted(self.near_hashes, keys, "right")
        found: dict[str, list[int]] = {}
        at = 0
        for word, several in variants.items():
            part = slice(at, at + len(several))
            at = part.stop
            near = {int(self.near_terms[place]) for start, end in zip(low[part], high[part], strict=True)
                    for place in range(start, end)}  # fmt: skip
            found[word] = sorted(near)[:MOST_MEANT]
        return found


EMPTY = Vocabulary(np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.int32))


def merged(
    old: Vocabulary, in_use: NDArray[np.bool_], new_terms: Sequence[str]
) -> tuple[Vocabulary, NDArray[np.int32], NDArray[np.int32]]:
    """The vocabulary of the old terms still in use and the new ones.

    Also gives the new number of each old term (-1 when it is gone) and of each of `new_terms`.
    """
    kept = old.hashes[in_use]
    added = np.array([term_hash(term) for term in new_terms], np.uint64)
    hashes = np.union1d(kept, added)
    places = np.searchsorted(hashes, old.hashes)
    moved = np.where(in_use, places, -1).astype(np.int32)
    numbers = np.searchsorted(hashes, added).astype(np.int32)
    near_hashes, near_terms = _near(new_terms, numbers)
    survives = moved[old.near_terms] >= 0
    near_hashes = np.concatenate((old.near_hashes[survives], near_hashes))
    near_terms = np.concatenate((moved[old.near_terms[survives]], near_terms))
    order = np.lexsort((near_terms, near_hashes))
    near_hashes, near_terms = near_hashes[order], near_terms[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (near_hashes[1:] != near_hashes[:-1]) | (near_terms[1:] != near_terms[:-1])
    return Vocabulary(hashes, near_hashes[first], near_terms[first]), moved, numbers


def _near(terms: Sequence[str], numbers: NDArray[np.int32]) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    hashes: list[int] = []
    owners: list[int] = []
    for term, number in zip(terms, numbers.tolist(), strict=True):
        if _may_be_misspelt(term):
            variants = _with_one_left_out(term)
            hashes += [term_hash(each) for each in variants]
            owners += [number] * len(variants)
    return np.array(hashes, np.uint64), np.array(owners, np.int32)


def _may_be_misspelt(term: str) -> bool:
    return _SHORTEST_MISSPELT <= len(term) <= _LONGEST_MISSPELT and term.isalpha() and term.isascii()


def _with_one_left_out(term: str) -> list[str]:
    return list(dict.fromkeys((term, *(term[:at] + term[at + 1 :] for at in range(len(term))))))
