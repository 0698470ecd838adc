"""A model of this machine: found in a package or a folder, loaded at its first use, run beside the event loop.

Every failure of a model, whatever library it comes from, is an EmbedderError. Above: `minilm`, `fastembed_model`,
`sentence_model`. Below: `rows`.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import importlib.util
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegboard.errors import ConfigError, EmbedderError, MissingExtra
from pegboard.index.embedders.rows import LONGEST_TEXT, checked, placed, readable

Encode = Callable[[list[str], bool], NDArray[Any]]
"""Texts that say something, and whether they are queries, into one row each."""

REST_SECONDS = 300.0
"""How long a model that could not be loaded is not tried again: a download that fails takes a minute to do so."""
_PROBE = "tool"


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
