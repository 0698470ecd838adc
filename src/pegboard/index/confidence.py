"""How sure a match is, from 0 to 1, and when nothing fits at all.

A logistic over what can be seen in the match. It was fitted on queries put to catalogs that can answer them and to
catalogs that cannot, for each embedder whose likenesses we know, for words alone, and for any other embedder by how
far a match stands out. `docs/benchmarks.md` says what it gets right. Above: `index`. Below: `rank`.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from pegboard.index.rank import Candidates

FITS = 0.15
"""When none of the first few is as sure as this, nothing fits."""
CONSIDERED = 5


HOPELESS = 0.05
"""Below this a tool is not listed beside better ones: on labelled queries one in a thousand of them was right."""


class Calibration(msgspec.Struct, frozen=True):
    """What each part of a match says."""

    bias: float
    dense: float
    query: float
    name: float
    fused: float = 0.0


BY_WORDS = Calibration(-2.5, 0.0, 5.5, 2.7)
BY_EMBEDDER = {
    "static": Calibration(-4.6, 8.7, 2.0, 1.3),
    "minilm": Calibration(-4.0, 10.1, 1.7, 1.3),
}
OTHERWISE = Calibration(-3.0, 0.0, 3.6, 2.3, 0.32)


def calibration_of(embedder: str) -> Calibration:
    """The one for an index made with this embedder; its identity begins with what kind it is."""
    return BY_EMBEDDER.get(embedder.partition(":")[0], OTHERWISE) if embedder else BY_WORDS


def confidences(candidates: Candidates, embedder: str) -> NDArray[np.float32]:
    """One figure for each candidate; `embedder` is empty when the search went by words alone."""
    says = calibration_of(embedder)
    evidence = (
        says.bias
        + says.dense * candidates.nearest
        + says.query * candidates.query
        + says.name * candidates.name
        + says.fused * candidates.fused
    )
    # Never quite 1: only what was asked for by name is certain.
    sure: NDArray[np.float32] = (1 / (1 + np.exp(-np.clip(evidence, -9, 9)))).astype(np.float32)
    return sure
