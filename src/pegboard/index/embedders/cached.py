"""The vectors of the latest queries, kept in memory, for embedders that are slow to answer.

Above: `choose`. Below: any embedder.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pegboard.index.embedders.rows import LONGEST_TEXT
from pegboard.protocols import Embedder

QUERIES_KEPT = 512


class CachedQueries:
    """An embedder that remembers the vectors of the latest queries."""

    def __init__(self, embedder: Embedder, kept: int = QUERIES_KEPT) -> None:
        self.embedder = embedder
        self._kept = kept
        self._vectors: OrderedDict[str, NDArray[np.float32]] = OrderedDict()

    @property
    def identity(self) -> str:
        """That of the embedder inside."""
        return self.embedder.identity

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """One row for each text; documents are never kept."""
        if not query or not texts:
            return await self.embedder.embed(texts, query=query)
        known = {text: self._vectors[text] for text in texts if text in self._vectors}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            known |= zip(missing, await self.embedder.embed(missing, query=True), strict=True)
        for text in dict.fromkeys(texts):
            self._keep(text, known[text])
        return np.stack([known[text] for text in texts])

    def _keep(self, text: str, vector: NDArray[np.float32]) -> None:
        if len(text) > LONGEST_TEXT:
            return  # such a text would be kept whole
        self._vectors[text] = vector.copy() if vector.base is not None else vector
        self._vectors.move_to_end(text)
        while len(self._vectors) > self._kept:
            self._vectors.popitem(last=False)
