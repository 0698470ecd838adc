"""Keeps the index of a catalog: opens it from its file, builds it anew when the catalog changed, swaps it in.

While a new one is built the old one serves; without one, an index by words alone is there in a moment. A file that
cannot be read, or of another format, is as good as none. Above: the engine. Below: `build`, `finder`; files and the
embedder come through seams.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from pegboard.config.model import Config
from pegboard.errors import EmbedderError, IndexDamaged
from pegboard.index.build import Plan, assemble, plan, texts_to_embed
from pegboard.index.embedders.choose import chosen_to_search
from pegboard.index.index import Index
from pegboard.index.parts import FORMAT, About, Parts, from_arrays
from pegboard.protocols import Embedder
from pegboard.store.arrays import ArrayFile, open_arrays, write_arrays
from pegboard.types import Tool

BATCH = 256

OnProgress = Callable[[str, int, int], None]
"""What is being done, how much of it is done, and how much there is."""


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """How a build went."""

    index: Index
    read: int = 0
    """Tools whose texts were read."""
    embedded: int = 0
    kept: bool = True
    """Whether it could be written to its file."""
    by_words: str = ""
    """Why it has no vectors, although there is an embedder."""
    warnings: tuple[str, ...] = ()


def keeper_of(config: Config, on_progress: OnProgress | None = None) -> IndexKeeper:
    """The index file of this configuration, and the embedder it should be made with."""
    # What was read from no file is told apart by its servers.
    said = [str(file) for file in config.files] or [repr(name) for name in sorted(config.servers)]
    which = hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]
    return IndexKeeper(config.cache_dir / f"index/{which}.index", chosen_to_search(config.search), on_progress)


class IndexKeeper:
    """The index file of one configuration."""

    def __init__(self, path: Path, embedder: Embedder | None, on_progress: OnProgress | None = None) -> None:
        self.path = path
        self.embedder = embedder
        self._on_progress = on_progress or (lambda *_: None)

    @property
    def identity(self) -> str:
        """Which embedder the index should be made with; empty for words alone."""
        return self.embedder.identity if self.embedder is not None else ""

    def open(self) -> tuple[Index | None, str]:
        """The index in the file, and what is wrong with the file if it cannot be used."""
        try:
            return Index(read_parts(open_arrays(self.path))), ""
        except FileNotFoundError:
            return None, ""
        except OSError as error:
            return None, f"index ignored: {self.path} cannot be read: {error.strerror or error}"
        except IndexDamaged as error:
            return None, f"index ignored: {error.message}"

    def current(self, index: Index | None, catalog: str) -> bool:
        """Whether the index was made from just this catalog, with the embedder that is configured."""
        return (
            index is not None and index.parts.about.catalog == catalog and index.parts.about.embedder == self.identity
        )

    async def build(self, tools: Mapping[str, Tool], catalog: str, previous: Index | None = None) -> Built:
        """A new index of these tools, kept in the file. What did not change is taken over from the one before."""
        before = self._with_vectors(previous)
        work = await asyncio.to_thread(plan, tools.values(), self.identity, before)
        vectors, by_words = None, ""
        if self.embedder is not None:
            try:
                vectors = await embedded(work, self.embedder, self._on_progress)
                if _of_another_model(work, vectors):
                    work = await asyncio.to_thread(plan, tools.values(), self.identity)
                    vectors = await embedded(work, self.embedder, self._on_progress)
            except EmbedderError as error:
                by_words = f"tools are found by words alone: {error.message}"
        warnings, kept = [by_words] if by_words else [], True
        self._on_progress("indexing", 0, 1)
        parts = await asyncio.to_thread(assemble, work, catalog=catalog, embedder=self.identity, vectors=vectors)
        self._on_progress("indexing", 1, 1)
        index = Index(parts)
        try:
            if not (by_words and before is not None and before.vectors is not None):
                await asyncio.to_thread(write_parts, self.path, parts)
                index = self._mapped(index)
            # Else the file is worth more as it is: its vectors are there when the embedder is again.
        except OSError as error:
            kept = False
            warnings.append(f"index not kept: {self.path} cannot be written: {error.strerror or error}")
        return Built(
            index=index,
            read=len(work.unread),
            embedded=len(work.unembedded) if vectors is not None else 0,
            kept=kept,
            by_words=by_words,
            warnings=tuple(warnings),
        )

    def _with_vectors(self, previous: Index | None) -> Parts | None:
        """The index before; or that in the file, where only that one has this embedder's vectors."""
        if previous is None or not self.identity or previous.parts.about.embedder == self.identity:
            return previous.parts if previous else None
        kept, _ = self.open()
        return kept.parts if kept and kept.parts.about.embedder == self.identity else previous.parts

    def _mapped(self, index: Index) -> Index:
        """The same from the file, so that memory is shared and given back; unless another process was there since."""
        kept, _ = self.open()
        return kept if kept is not None and kept.parts.about == index.parts.about else index


async def embedded(work: Plan, embedder: Embedder, on_progress: OnProgress) -> NDArray[np.float32]:
    """The vectors of what the plan has not embedded, batch by batch."""
    texts = await asyncio.to_thread(texts_to_embed, work)
    parts = []
    for at in range(0, len(texts), BATCH):
        on_progress("embedding", at, len(texts))
        parts.append(await embedder.embed(texts[at : at + BATCH]))
        await asyncio.sleep(0)  # an embedder that never waits must not hold up the loop for the whole build
    on_progress("embedding", len(texts), len(texts))
    if parts:
        return np.concatenate(parts)
    width = work.previous.vectors.rows.shape[1] if work.previous and work.previous.vectors else 1
    return np.empty((0, width), np.float32)


def _of_another_model(work: Plan, fresh: NDArray[np.float32]) -> bool:
    """Whether the new vectors cannot stand beside those kept: behind one name there may be another model since."""
    kept = work.previous.vectors if work.previous and len(work.unembedded) < len(work.tools) else None
    return kept is not None and kept.rows.shape[1] != fresh.shape[1]


def words_only(tools: Mapping[str, Tool], catalog: str) -> Index:
    """An index without vectors, for the time until there is a better one."""
    return Index(assemble(plan(tools.values(), ""), catalog=catalog))


def write_parts(path: Path, parts: Parts) -> int:
    """Keeps an index in a file; gives its size."""
    return write_arrays(path, msgspec.json.encode(parts.about), parts.arrays())


def read_parts(file: ArrayFile) -> Parts:
    """The index in an open file."""
    try:
        about = msgspec.json.decode(file.about, type=About)
        if about.format != FORMAT:
            raise IndexDamaged(f"{file.path} is of another version.")
        parts = from_arrays(about, file.arrays)
    except (KeyError, msgspec.MsgspecError):
        raise IndexDamaged(f"{file.path} is of another version.") from None
    if len(parts.facts.content) != about.tools or len(parts.facts.name_start) != about.tools + 1:
        raise IndexDamaged(f"{file.path} does not have as many tools as it says.")
    return parts
