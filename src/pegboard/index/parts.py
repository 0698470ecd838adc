"""The arrays an index is made of, and what is known of each tool. Immutable; on disk they lie just as here.

Above: `build` makes it, `rank` reads it. Below: `vocabulary`, `postings`, `vectors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from pegboard.index.postings import Postings
from pegboard.index.vectors import Vectors
from pegboard.index.vocabulary import Vocabulary

FORMAT = 3
"""Raised whenever older files would be misread, or would rank differently."""


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What an index was made from."""

    format: int = FORMAT
    catalog: str = ""
    """Digest of the tools in it."""
    embedder: str = ""
    """Which model its vectors come from; empty when it has none."""
    tools: int = 0
    servers: tuple[str, ...] = ()
    built_at: float = 0.0


class Facts(msgspec.Struct, frozen=True):
    """One row for each tool."""

    names: NDArray[np.uint8]
    """All public names, one after the other."""
    name_start: NDArray[np.int64]
    server: NDArray[np.int32]
    """Place in About.servers."""
    content: NDArray[np.uint64]
    """documents.content_of: what is equal need not be read again."""
    namesake: NDArray[np.uint64]
    """Equal for tools whose own names have the same words."""
    spelling: NDArray[np.uint64]
    """Equal for tools whose own names have the same words, endings and all, in the same order."""
    gist: NDArray[np.uint8]
    """A sketch of the description's words; the more columns are equal, the more alike two descriptions are."""
    verb: NDArray[np.uint8]
    name_mass: NDArray[np.float32]
    """Rarity of all words in the tool's own name, added up."""
    server_mass: NDArray[np.float32]

    def name(self, tool: int) -> str:
        """The public name of one tool."""
        start, end = self.name_start[tool : tool + 2]
        return self.names[start:end].tobytes().decode("utf-8", "surrogatepass")


class Statistics(msgspec.Struct, frozen=True):
    """One row for each term."""

    rarity: NDArray[np.float32]
    mass: NDArray[np.float32]
    """Mean impact over all tools."""
    square: NDArray[np.float32]
    """Mean squared impact over all tools."""


class Parts(msgspec.Struct, frozen=True):
    """A whole index."""

    about: About
    facts: Facts
    vocabulary: Vocabulary
    postings: Postings
    statistics: Statistics
    vectors: Vectors | None = None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All arrays by name, for the disk."""
        groups: dict[str, Any] = {
            "facts": self.facts,
            "vocabulary": self.vocabulary,
            "postings": self.postings,
            "statistics": self.statistics,
            "vectors": self.vectors,
        }
        return {
            f"{group}.{field}": getattr(value, field)
            for group, value in groups.items()
            if value is not None
            for field in value.__struct_fields__
        }


def from_arrays(about: About, arrays: Mapping[str, NDArray[Any]]) -> Parts:
    """The index whose arrays these are; KeyError when one is missing."""

    def group(kind: type[Any], name: str) -> Any:
        return kind(*(arrays[f"{name}.{field}"] for field in kind.__struct_fields__))

    return Parts(
        about,
        group(Facts, "facts"),
        group(Vocabulary, "vocabulary"),
        group(Postings, "postings"),
        group(Statistics, "statistics"),
        group(Vectors, "vectors") if about.embedder else None,
    )
