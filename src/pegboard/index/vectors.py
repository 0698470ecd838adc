"""The dense half: one vector for each tool, compared with the query's by cosine.

A sketch of each vector, its shadow on the directions in which the tools differ most, is compared first; what comes
near is compared exactly. Up to `EXACT_BELOW` tools every sketch is read; beyond that they lie in clusters, and the
nearest are read, which bounds the work. How likenesses spread over all tools is known without reading any (mean and
covariance). Above: `build`, `rank`. Below: numpy.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

SKETCHED = 64
"""Numbers in a sketch."""
EXACT_BELOW = 24_000
PROBED = 0.06
"""Share of the tools whose clusters are read."""
LEAST_PROBED = 8_000
_SAMPLE = 40_000
_ROUNDS = 6
_BLOCK = 8192
_TINY = 1e-6
_FULL = 127

Floats = NDArray[np.float32]


class Vectors(msgspec.Struct, frozen=True):
    """All tools' vectors, of length 1 or 0."""

    rows: NDArray[np.int8]
    """In the tools' order, each in parts of its `scale`."""
    scale: Floats
    sketch: Floats
    """In the order of the clusters."""
    basis: Floats
    """The directions that sketches are made of."""
    tool_of_row: NDArray[np.int32]
    """Which tool each sketch is of."""
    centroids: Floats
    """Of the clusters, as sketches; none when there are few tools."""
    cluster_start: NDArray[np.int64]
    mean: Floats
    covariance: Floats

    @property
    def clustered(self) -> bool:
        """Whether there are too many to look at them all."""
        return len(self.centroids) > 0

    def likenesses(self, query: Floats) -> Floats:
        """About how near the query is to every tool, in the tools' order. For catalogs that are not clustered."""
        # One vector at a time: for a handful of them BLAS multiplies matrices ten times slower than this.
        likeness: Floats = self.sketch @ (self.basis @ query)
        return likeness + np.float32(self.mean @ query)

    def nearest(self, query: Floats, wanted: int, allowed: NDArray[np.bool_] | None = None) -> NDArray[np.int32]:
        """The tools nearest to the query, as far as the nearest clusters have them; in no order."""
        share = max(PROBED * len(self.rows), LEAST_PROBED)
        shadow = self.basis @ query
        order = np.argsort(-(self.centroids @ shadow))
        read = int(np.searchsorted(np.cumsum(np.diff(self.cluster_start)[order]), share)) + 1
        if allowed is not None:
            inside = allowed[self.tool_of_row]
            if int(np.count_nonzero(inside)) <= share:
                # As few as are read anyway: all of them, lest none lies in the nearest clusters.
                rows = np.flatnonzero(inside)
                return _best_of(self.tool_of_row[rows], self.sketch[rows] @ shadow, wanted)
            before = np.concatenate(([0], np.cumsum(inside)))[self.cluster_start]
            read = max(read, int(np.searchsorted(np.cumsum(np.diff(before)[order]), wanted)) + 1)
        parts = [slice(int(self.cluster_start[each]), int(self.cluster_start[each + 1])) for each in order[:read]]
        tools = np.concatenate([self.tool_of_row[part] for part in parts])
        likeness = np.concatenate([self.sketch[part] @ shadow for part in parts])
        if allowed is not None:
            inside = allowed[tools]
            tools, likeness = tools[inside], likeness[inside]
        return _best_of(tools, likeness, wanted)

    def of(self, tools: NDArray[np.int32]) -> Floats:
        """The vectors of these tools."""
        return self.rows[tools] * self.scale[tools, None]

    def spread(self, query: Floats) -> tuple[float, float]:
        """Mean and deviation of the query's likeness to all tools."""
        variance = float(query @ self.covariance @ query)
        return float(self.mean @ query), max(variance, _TINY) ** 0.5


def _best_of(tools: NDArray[np.int32], likeness: Floats, wanted: int) -> NDArray[np.int32]:
    return tools if len(tools) <= wanted else tools[np.argpartition(likeness, -wanted)[-wanted:]]


def vectors_of(exact: Floats) -> Vectors:
    """The vectors of tools 0, 1, 2 …, clustered where there are many."""
    rows, scale = _in_bytes(exact)
    kept = rows * scale[:, None]  # as they will be read, so that an index made from another's vectors is the same
    mean = kept.mean(axis=0) if len(kept) else np.zeros(exact.shape[1], np.float32)
    covariance = _covariance(kept, mean)
    basis = np.linalg.eigh(covariance)[1].T[::-1][:SKETCHED].astype(np.float32)
    sketch = (kept - mean) @ basis.T
    order, centroids, start = _clustered(sketch)
    return Vectors(rows, scale, np.ascontiguousarray(sketch[order]), basis, order, centroids, start, mean, covariance)


def _in_bytes(exact: Floats) -> tuple[NDArray[np.int8], Floats]:
    largest = np.abs(exact).max(axis=1) if len(exact) else np.empty(0, np.float32)
    scale = np.maximum(largest, np.float32(_TINY)) / np.float32(_FULL)
    return np.rint(exact / scale[:, None]).astype(np.int8), scale.astype(np.float32)


def _clustered(sketch: Floats) -> tuple[NDArray[np.int32], Floats, NDArray[np.int64]]:
    """The order of the clusters, their centroids and where each begins; all in one where there are few tools."""
    if len(sketch) < EXACT_BELOW:
        none = np.empty((0, sketch.shape[1]), np.float32)
        return np.arange(len(sketch), dtype=np.int32), none, np.zeros(1, np.int64)
    centroids = _centroids(sketch, round(len(sketch) ** 0.5))
    cluster = _assigned(sketch, centroids)
    start = np.zeros(len(centroids) + 1, np.int64)
    np.cumsum(np.bincount(cluster, minlength=len(centroids)), out=start[1:])
    return np.argsort(cluster, kind="stable").astype(np.int32), centroids, start


def _covariance(rows: Floats, mean: Floats) -> Floats:
    square = np.zeros((rows.shape[1], rows.shape[1]), np.float32)
    for at in range(0, len(rows), _BLOCK):
        part = rows[at : at + _BLOCK] - mean
        square += part.T @ part
    return square / np.float32(max(len(rows), 1))


def _centroids(rows: Floats, count: int) -> Floats:
    """Spherical k-means over a sample, the same for the same rows."""
    chance = np.random.default_rng(7)
    sample = rows[np.sort(chance.choice(len(rows), min(_SAMPLE, len(rows)), replace=False))]
    centroids = sample[np.sort(chance.choice(len(sample), count, replace=False))]
    for _ in range(_ROUNDS):
        cluster = _assigned(sample, centroids)
        sums = np.zeros_like(centroids)
        np.add.at(sums, cluster, sample)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        moved = sums / np.maximum(lengths, np.float32(_TINY))
        centroids = np.where(lengths > _TINY, moved, centroids)
    return centroids


def _assigned(rows: Floats, centroids: Floats) -> NDArray[np.int64]:
    parts = [np.argmax(rows[at : at + _BLOCK] @ centroids.T, axis=1) for at in range(0, len(rows), _BLOCK)]
    return np.concatenate(parts)
