"""What embedders that are slow to load or to answer have in common: texts made fit, models in threads, queries kept.

Above: every embedder but `static`. Below: numpy. A model is loaded at its first use, once; every failure of a model,
whatever library it comes from, is an EmbedderError.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import importlib.util
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegboard.errors import ConfigError, EmbedderError, MissingExtra
from pegboard.protocols import Embedder

Encode = Callable[[list[str], bool], NDArray[Any]]
"""Texts that say something, and whether they are queries, into one row each."""

QUERIES_KEPT = 512
LONGEST_TEXT = 8000
"""Bytes of a text that are read; also more than any model takes in."""
REST_SECONDS = 300.0
"""How long a model that could not be loaded is not tried again: a download that fails takes a minute to do so."""
_PROBE = "tool"


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


class ModelInThread:
    """A model of this machine, loaded and run beside the event loop; calls may overlap."""

    def __init__(self, name: str, load: Callable[[], Encode], *, batch: int, hint: str = "") -> None:
        self._name = name
        self._load = load
        self._batch = batch
        self._hint = hint
        self._loading = threading.Lock()
        self._encode: Encode | None = None
        self._failure: tuple[float, EmbedderError] | None = None
        self._width: int | None = None

    async def embed(self, texts: Sequence[str], query: bool) -> NDArray[np.float32]:
        """One row for each text."""
        if not texts:
            return np.zeros((0, self._width or 0), np.float32)
        return await asyncio.to_thread(self._embedded, list(texts), query)

    def _embedded(self, texts: list[str], query: bool) -> NDArray[np.float32]:
        encode = self._loaded()
        fit = readable(texts, LONGEST_TEXT)
        order = sorted(fit, key=lambda place: len(fit[place]))
        found = []
        try:
            for at in range(0, len(order), self._batch):
                part = order[at : at + self._batch]
                found.append(checked(encode([fit[place] for place in part], query), len(part)))
            if self._width is None:
                self._width = (found or [checked(encode([_PROBE], query), 1)])[0].shape[1]
        except EmbedderError as error:
            raise EmbedderError(f"{self._name}: {error.message}", hint=self._hint) from None
        except Exception as error:  # whatever the model's library raises
            raise self._failed("the model failed", error) from error
        return placed(len(texts), self._width, order, found)

    def _loaded(self) -> Encode:
        with self._loading:
            if self._encode is not None:
                return self._encode
            if self._failure is not None and time.monotonic() - self._failure[0] < REST_SECONDS:
                raise EmbedderError(self._failure[1].message, hint=self._failure[1].hint)
            try:
                self._encode = self._load()
            except Exception as error:  # whatever the model's library raises
                said = error if isinstance(error, EmbedderError) else self._failed("cannot be loaded", error)
                self._failure = (time.monotonic(), said)
                raise said from error
            return self._encode

    def _failed(self, what: str, error: Exception) -> EmbedderError:
        words = " ".join(str(error).split())[:300]
        return EmbedderError(f"{self._name}: {what}: {words or type(error).__name__}", hint=self._hint)


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


def require(embedder: str, *modules: str) -> None:
    """Nothing is imported: only whether it is there is looked at."""
    if any(importlib.util.find_spec(module) is None for module in modules):
        raise MissingExtra(f'The embedder "{embedder}"', embedder)


def imported(module: str) -> Any:
    """A module of an optional package, whose types are not ours to know."""
    return importlib.import_module(module)


def is_folder(model: str) -> bool:
    """Whether a model is meant as a folder: it is one, or is written like one."""
    return model.startswith((".", "/", "~", "\\")) or Path(model).expanduser().is_dir()


def folder_of(model: str) -> Path:
    """The folder that the configuration names, which must exist."""
    folder = Path(model).expanduser()
    if not folder.is_dir():
        raise ConfigError(f"search.model: there is no folder {model}", hint="Name a folder that holds a model.")
    return folder.resolve()


def stamp_of(files: Iterable[Path]) -> str:
    """Tells one state of files from another without reading them: their names, sizes and times."""
    state = hashlib.sha256()
    for file in sorted(files):
        facts = file.stat()
        state.update(f"{file.name}\0{facts.st_size}\0{facts.st_mtime_ns}\0".encode("utf-8", "surrogateescape"))
    return state.hexdigest()[:16]


def pooling_of(folder: Path) -> str:
    """How a sentence model's folder says that tokens become one vector: `mean` or `cls`."""
    about = folder / "1_Pooling" / "config.json"
    if not about.is_file():
        return "mean"
    import msgspec

    said = msgspec.json.decode(about.read_bytes(), type=dict[str, Any])
    if said.get("pooling_mode_cls_token") or said.get("pooling_mode") == "cls":
        return "cls"
    return "mean"


def onnx_in(folder: Path) -> Path:
    """The model file of a folder: the plain one, else the first by name."""
    inner = folder / "onnx"
    others = (*sorted(folder.glob("model*.onnx")), *sorted(inner.glob("model*.onnx")))
    for file in (folder / "model.onnx", inner / "model.onnx", *others):
        if file.is_file():
            return file
    raise ConfigError(
        f"search.model: {folder} has no model*.onnx, neither itself nor in onnx/",
        hint="Name a folder with an ONNX model.",
    )
