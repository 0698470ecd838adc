"""The dense half: one vector for each tool, compared with the query's by cosine.

Up to `EXACT_BELOW` tools every vector is compared. Beyond that they are kept in clusters and the nearest clusters are
read, which bounds the work. How likenesses spread over all tools is known without reading any (mean and covariance).
Above: `build`, `rank`. Below: numpy.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

EXACT_BELOW = 24_000
PROBED = 0.06
"""Share of the tools whose clusters are read."""
LEAST_PROBED = 8_000
_SAMPLE = 40_000
_ROUNDS = 6
_BLOCK = 8192
_TINY = 1e-6


class Vectors(msgspec.Struct, frozen=True):
    """All tools' vectors, of length 1 or 0, in the order of their clusters."""

    rows: NDArray[np.float32]
    tool_of_row: NDArray[np.int32]
    row_of_tool: NDArray[np.int32]
    centroids: NDArray[np.float32]
    cluster_start: NDArray[np.int64]
    mean: NDArray[np.float32]
    covariance: NDArray[np.float32]

    @property
    def clustered(self) -> bool:
        """Whether there are too many to compare them all."""
        return len(self.centroids) > 0

    def likenesses(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """The query against every tool, in the tools' order. For catalogs that are not clustered."""
        # One vector at a time: for a handful of them BLAS multiplies matrices ten times slower than this.
        likeness: NDArray[np.float32] = self.rows @ query
        return likeness

    def nearest(
        self, query: NDArray[np.float32], wanted: int, allowed: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int32]:
        """The tools nearest to the query, as far as the nearest clusters have them; in no order."""
        share = max(PROBED * len(self.rows), LEAST_PROBED)
        order = np.argsort(-(self.centroids @ query))
        read = int(np.searchsorted(np.cumsum(np.diff(self.cluster_start)[order]), share)) + 1
        found: list[NDArray[np.int32]] = []
        scores: list[NDArray[np.float32]] = []
        for cluster in order[:read]:
            part = slice(int(self.cluster_start[cluster]), int(self.cluster_start[cluster + 1]))
            found.append(self.tool_of_row[part])
            scores.append(self.rows[part] @ query)
        tools, likeness = np.concatenate(found), np.concatenate(scores)
        if allowed is not None:
            inside = allowed[tools]
            tools, likeness = tools[inside], likeness[inside]
        if len(tools) <= wanted:
            return tools
        return tools[np.argpartition(likeness, -wanted)[-wanted:]]

    def of(self, tools: NDArray[np.int32]) -> NDArray[np.float32]:
        """The vectors of these tools."""
        return self.rows[self.row_of_tool[tools]]

    def spread(self, query: NDArray[np.float32]) -> tuple[float, float]:
        """Mean and deviation of the query's likeness to all tools."""
        variance = float(query @ self.covariance @ query)
        return float(self.mean @ query), max(variance, _TINY) ** 0.5


def vectors_of(rows: NDArray[np.float32]) -> Vectors:
    """The vectors of tools 0, 1, 2 …, clustered where there are many."""
    total, width = rows.shape
    mean = rows.mean(axis=0) if total else np.zeros(width, np.float32)
    covariance = _covariance(rows, mean)
    if total < EXACT_BELOW:
        same = np.arange(total, dtype=np.int32)
        none = np.empty((0, width), np.float32)
        return Vectors(rows, same, same, none, np.zeros(1, np.int64), mean, covariance)
    centroids = _centroids(rows, round(total**0.5))
    cluster = _assigned(rows, centroids)
    order = np.argsort(cluster, kind="stable").astype(np.int32)
    back = np.empty(total, np.int32)
    back[order] = np.arange(total, dtype=np.int32)
    start = np.zeros(len(centroids) + 1, np.int64)
    np.cumsum(np.bincount(cluster, minlength=len(centroids)), out=start[1:])
    return Vectors(rows[order], order, back, centroids, start, mean, covariance)


def _covariance(rows: NDArray[np.float32], mean: NDArray[np.float32]) -> NDArray[np.float32]:
    square = np.zeros((rows.shape[1], rows.shape[1]), np.float32)
    for at in range(0, len(rows), _BLOCK):
        part = rows[at : at + _BLOCK] - mean
        square += part.T @ part
    return square / np.float32(max(len(rows), 1))


def _centroids(rows: NDArray[np.float32], count: int) -> NDArray[np.float32]:
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


def _assigned(rows: NDArray[np.float32], centroids: NDArray[np.float32]) -> NDArray[np.int64]:
    parts = [np.argmax(rows[at : at + _BLOCK] @ centroids.T, axis=1) for at in range(0, len(rows), _BLOCK)]
    return np.concatenate(parts)
