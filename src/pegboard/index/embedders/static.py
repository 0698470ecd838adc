"""The embedder that is always there: a table with one vector for each word piece; a text is their sum.

No network, no inference engine: 8 MB beside this file, numpy, and a dictionary. `docs/embedders.md` says where the
table comes from. Above: `choose`. Below: numpy.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

TABLE = Path(__file__).with_name("table")
_WORD = re.compile(r"[^\W_]+|[^\w\s]|_")
_IDEOGRAPH = re.compile(r"([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")
_LONGEST_WORD = 100
_LONGEST_TEXT = 8000
_KEPT_WORDS = 1 << 17


class About(msgspec.Struct):
    """What the table's own description says."""

    rows: int
    dims: int
    sha256: dict[str, str]


@lru_cache(maxsize=2)
def pieces(folder: Path = TABLE) -> dict[str, int]:
    """Every word piece and its row; whole words come commonest first."""
    return {piece: row for row, piece in enumerate((folder / "tokens.txt").read_text("utf-8").split("\n")) if piece}


class StaticEmbedder:
    """Sums the vectors of a text's word pieces; the result has length 1, or 0 for a text without known pieces."""

    def __init__(self, folder: Path = TABLE) -> None:
        about = msgspec.json.decode((folder / "about.json").read_bytes(), type=About)
        self.identity = f"static:{about.sha256['table.bin'][:16]}"
        self.dimensions = about.dims
        self._rows = pieces(folder)
        mapped = np.memmap(folder / "table.bin", np.int8, mode="r", shape=(about.rows, about.dims))
        self._table: NDArray[np.int8] = np.asarray(mapped)  # a plain view of it: a memmap's own indexing is slow
        self._known: dict[str, tuple[int, ...]] = {}

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """One row for each text."""
        return self.embedded(texts)

    def embedded(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The same, without an event loop."""
        sums = np.zeros((len(texts), self.dimensions), np.float32)
        for place, text in enumerate(texts):
            if place and text == texts[place - 1]:
                sums[place] = sums[place - 1]
                continue
            rows = self._pieces(text)
            if rows:
                sums[place] = self._table[rows].sum(axis=0, dtype=np.int32)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        unit: NDArray[np.float32] = sums / np.maximum(lengths, np.float32(1e-9))
        return unit

    def _pieces(self, text: str) -> list[int]:
        lowered = text[:_LONGEST_TEXT].lower()
        if not lowered.isascii():
            apart = unicodedata.normalize("NFD", lowered)
            bare = "".join(each for each in apart if unicodedata.category(each) != "Mn")
            lowered = _IDEOGRAPH.sub(r" \1 ", bare)
        found: list[int] = []
        for word in _WORD.findall(lowered):
            rows = self._known.get(word)
            found += self._learn(word) if rows is None else rows
        return found

    def _learn(self, word: str) -> tuple[int, ...]:
        if len(self._known) >= _KEPT_WORDS:
            self._known.clear()
        rows = self._known[word] = self._split(word)
        return rows

    def _split(self, word: str) -> tuple[int, ...]:
        """The longest known piece, then the longest after it; a word that cannot be covered counts for nothing."""
        if len(word) > _LONGEST_WORD:
            return ()
        found: list[int] = []
        start = 0
        while start < len(word):
            mark = "##" if start else ""
            ends = range(len(word), start, -1)
            piece = next((end for end in ends if mark + word[start:end] in self._rows), 0)
            if not piece:
                return ()
            found.append(self._rows[mark + word[start:piece]])
            start = piece
        return tuple(found)
