"""All servers in few words, for the description of `search_tools`: what there is, so that a model knows to look.

Names stay as long as any can: first the words go, then the counts, and only then are names folded into a number.
Pure, and the same for the same tools. Above: `definitions`. Below: the nouns.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import msgspec

from pegboard.types import Tool

MOST_WORDS = 3
_LONGEST_WORD = 20
"""What is longer is no word: it would cost all servers theirs."""
_LOOKED_AT = 200
"""Tools of one server whose names are read for words."""
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]{3,}")
_SAYS_LITTLE = frozenset(
    """
    add all and any batch build bulk by call change check clear close copy count create current data delete describe
    disable edit enable execute export fetch file files find for from generate get graph import info insert into item
    items list load lookup make manage many move multiple name new one open patch post put query read remove rename
    reset run save search send set show start status stop store submit sync test the tool type update upload use user
    using validate view with write
    """.split()  # noqa: SIM905 - a list would hide the words
)


class Shelf(msgspec.Struct, frozen=True):
    """One server: its name, how many tools it has, and what they are about."""

    server: str
    count: int | None
    """None when it was never asked."""
    words: tuple[str, ...] = ()


def shelves(tools: Iterable[Tool]) -> list[Shelf]:
    """The servers of these tools, in their order."""
    names: dict[str, list[str]] = {}
    for tool in tools:
        names.setdefault(tool.server, []).append(tool.name)
    return [Shelf(server, len(own), _words(server, own[:_LOOKED_AT])) for server, own in names.items()]


def digest(every: Sequence[Shelf], budget: int, count: Callable[[str], int]) -> str:
    """One line for all servers, within so many tokens."""
    for write in (_with_words, _with_counts, _bare):
        line = ", ".join(write(shelf) for shelf in every)
        if count(line) <= budget:
            return line
    return _folded(every, budget, count)


def _folded(every: Sequence[Shelf], budget: int, count: Callable[[str], int]) -> str:
    """As many names as there is room for, and the number of the rest."""
    low, high = 0, len(every)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(_first(every, middle)) <= budget else (low, middle - 1)
    return _first(every, low)


def _first(every: Sequence[Shelf], shown: int) -> str:
    rest = every[shown:]
    more = f"{len(rest):,} more servers with {sum(shelf.count or 0 for shelf in rest):,} tools"
    return ", ".join([*map(_bare, every[:shown]), more])


def _with_words(shelf: Shelf) -> str:
    if shelf.count is None:
        return f"{shelf.server} (not asked yet)"
    about = f": {' '.join(shelf.words)}" if shelf.words else ""
    return f"{shelf.server} ({shelf.count}{about})"


def _with_counts(shelf: Shelf) -> str:
    return f"{shelf.server} ({'?' if shelf.count is None else shelf.count})"


def _bare(shelf: Shelf) -> str:
    return shelf.server


def _words(server: str, names: Sequence[str]) -> tuple[str, ...]:
    """What its tools' names speak of most, other than the server itself and what every tool does."""
    known = {part.lower() for part in _PART.findall(server)}
    found: Counter[str] = Counter()
    for name in names:
        parts = (part.lower() for part in _PART.findall(name) if len(part) <= _LONGEST_WORD)
        found.update(set(map(_singular, parts)) - known - _SAYS_LITTLE)
    best = sorted(found, key=lambda word: (-found[word], word))
    return tuple(best[:MOST_WORDS])


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 4 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word
