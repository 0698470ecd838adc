"""Keys for imported servers: legal in Pegboard, unique, and the same on every run."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import count

MAX_KEY = 32
"""Longer keys would be cut in the names that a model sees."""

_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]+")
_RUNS = re.compile(r"_{2,}")
_RESERVED = "pegboard"
# The catalog refuses names that a hasty reader cannot tell apart, so no two keys may look alike.
_LOOKALIKE = str.maketrans("i1|0-", "lllo_")


def legal_key(name: str, room: int = MAX_KEY) -> str:
    """The name with nothing but letters, digits, `_` and `-`, and without the `__` that parts server from tool.

    Of a name like a registry's or a package's, the last part says most.
    """
    last = name.rstrip("/").rpartition("/")[2]
    plain = "".join(char for char in unicodedata.normalize("NFKD", last) if not unicodedata.combining(char))
    key = _RUNS.sub("_", _ILLEGAL.sub("-", plain)).strip("_-")
    return key[:room].rstrip("_-") or "server"


def skeleton(key: str) -> str:
    """What is left of a key for a hasty reader."""
    return key.lower().translate(_LOOKALIKE)


class Keys:
    """Hands out each key once."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {skeleton(key) for key in (_RESERVED, *taken)}

    def claim(self, name: str, program: str) -> str:
        """A key for this name that no one has yet: with the program's name added if need be, then with a number."""
        key = next(key for key in _candidates(name, program) if skeleton(key) not in self._taken)
        self._taken.add(skeleton(key))
        return key


def _candidates(name: str, program: str) -> Iterator[str]:
    yield legal_key(name)
    yield _ending(name, program)
    for number in count(2):
        yield _ending(name, str(number))


def _ending(name: str, suffix: str) -> str:
    return f"{legal_key(name, MAX_KEY - len(suffix) - 1)}-{suffix}"
