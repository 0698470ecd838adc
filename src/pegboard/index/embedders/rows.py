"""Texts made fit for a model, and what it gives made fit for the index. Above: every embedder but `static`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegboard.errors import EmbedderError

LONGEST_TEXT = 8000
"""Bytes of a text that are read; also more than any model takes in."""


def readable(texts: Sequence[str], most_bytes: int) -> dict[int, str]:
    """The texts that say something, by their places: cut, and without halves of characters."""
    fit = {}
    for place, text in enumerate(texts):
        whole = text[:most_bytes].encode("utf-8", "replace")[:most_bytes].decode("utf-8", "ignore").strip()
        if whole:
            fit[place] = whole
    return fit


def checked(vectors: NDArray[Any], count: int) -> NDArray[np.float32]:
    """Rows of length 1 (or 0), which is what a model must have given."""
    with np.errstate(over="ignore"):  # what does not fit is infinite then, and refused below
        rows = np.asarray(vectors, np.float32)
    if rows.ndim != 2 or len(rows) != count or not rows.shape[1]:
        raise EmbedderError(f"{count} texts gave an array of shape {rows.shape}")
    if not np.isfinite(rows).all():
        raise EmbedderError("a vector has something in it that is not a number")
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(lengths, 1e-12), np.float32)


def placed(count: int, width: int, places: Sequence[int], found: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """All rows in their places; the others are zero."""
    rows = np.zeros((count, width), np.float32)
    if found:
        rows[list(places)] = np.concatenate(found)
    return rows
