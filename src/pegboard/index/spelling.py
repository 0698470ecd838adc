"""A misspelt word of a query put right, when no tool has it and an ordinary word is one slip away.

Above: `finder`. Below: nothing. Names are left alone: what begins with a capital inside a sentence is one.
So are words that are demanded: `+word` is meant to the letter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from string import ascii_lowercase

SHORTEST, LONGEST = 4, 20
_SHORTEST_TO_CHANGE = 5
"""Letters are added, dropped or exchanged only in longer words; in shorter ones they may have changed places."""
COMMON = 6000
"""Words commoner than this may be meant although no tool says them; the next ones only if one does."""
FAIRLY_COMMON = 20_000
MOST = 4
"""Words of one query that are looked at."""

_WORD = re.compile(r"(?<!\S)\+[^\W\d_]\S*|(?<![\w@#/.\-+])[a-z]{4,20}(?![\w@/])")

Frequency = Callable[[str], int | None]
"""How common a word is (0 the most), or None when it is no word."""


def mended(text: str, knows: Callable[[str], bool], frequency: Frequency) -> str:
    """The text with what looks misspelt put right; `knows` says whether some tool has a word.

    A rare word that no tool has is not what was meant: `docker` is not `decker`, nor `redis` `reds`.
    """
    seen = 0

    def mend(match: re.Match[str]) -> str:
        nonlocal seen
        word = match.group()
        if word[0] == "+" or frequency(word) is not None or seen >= MOST or knows(word):
            return word
        seen += 1
        return _nearest(word, knows, frequency) or word

    return _WORD.sub(mend, text)


def _nearest(word: str, knows: Callable[[str], bool], frequency: Frequency) -> str | None:
    """The commonest word that one slip turns into this one; the first letter is nearly always right."""
    found = {
        each: place
        for each in _one_slip_from(word)
        if (place := frequency(each)) is not None and (place < COMMON or (place < FAIRLY_COMMON and knows(each)))
    }
    return min(found, key=lambda each: (found[each], each), default=None)


def _one_slip_from(word: str) -> Iterator[str]:
    for at in range(len(word) - 1):
        yield word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    if len(word) < _SHORTEST_TO_CHANGE:
        return
    for at in range(1, len(word)):
        yield word[:at] + word[at + 1 :]
        for letter in ascii_lowercase:
            yield word[:at] + letter + word[at:]
            yield word[:at] + letter + word[at + 1 :]
    for letter in ascii_lowercase:
        yield word + letter
