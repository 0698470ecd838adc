"""The models of Qdrant's fastembed: ONNX files that it downloads at first use, or that lie in a folder.

Above: `choose`. Below: fastembed, whose cache is put beside ours so that it outlives the next restart.
"""

from __future__ import annotations

import functools
import importlib.metadata
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from pegboard.config.places import user_folder
from pegboard.index.embedders.model import (
    Encode,
    ModelInThread,
    folder_of,
    imported,
    is_folder,
    onnx_in,
    pooling_of,
    require,
    stamp_of,
)

DEFAULT_MODEL = "BAAI/bge-small-en-v1.5"
BATCH = 16
THREADS = 2
CACHE_VARIABLE = "FASTEMBED_CACHE_PATH"


class FastEmbedEmbedder:
    """A model of fastembed; queries and documents are embedded each in their own way, where the model has one."""

    def __init__(self, model: str | None = None) -> None:
        """`model` is a name that fastembed knows, or a folder."""
        require("fastembed", "fastembed")
        name = model or DEFAULT_MODEL
        version = importlib.metadata.version("fastembed")
        load = functools.partial(_by_name, name)
        hint = (
            f"The first use downloads {name}; it needs the network. "
            "Or set search.model to a folder that holds the model, or search.embedder to another."
        )
        if is_folder(name):
            folder = folder_of(name)
            pooling, weights = pooling_of(folder), onnx_in(folder)
            name = f"{pooling}-{stamp_of([weights, *weights.parent.glob(f'{weights.name}*'), *folder.glob('*.json')])}"
            load = functools.partial(_in_folder, folder, f"folder/{name}", pooling)
            hint = "Check the folder that search.model names."
        self.identity = f"fastembed:{version}:{name}"
        self._model = ModelInThread("fastembed", load, batch=BATCH, hint=hint)

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """One row for each text."""
        return await self._model.embed(texts, query)


def _by_name(name: str) -> Encode:
    library = imported("fastembed")
    cache = os.environ.get(CACHE_VARIABLE) or str(user_folder("cache") / "fastembed")
    return _encoder(library.TextEmbedding(name, cache_dir=cache, threads=THREADS))


def _in_folder(folder: Path, name: str, pooling: str) -> Encode:
    """fastembed takes a folder only for a model it knows, so the folder is made known to it."""
    library, described = imported("fastembed"), imported("fastembed.common.model_description")
    if name not in {each["model"] for each in library.TextEmbedding.list_supported_models()}:
        about = folder / "config.json"
        said = msgspec.json.decode(about.read_bytes(), type=dict[str, Any]) if about.is_file() else {}
        library.TextEmbedding.add_custom_model(
            model=name,
            pooling=described.PoolingType[pooling.upper()],
            normalization=True,
            sources=described.ModelSource(hf=name),
            dim=int(said.get("hidden_size", 0)),
            model_file=onnx_in(folder).relative_to(folder).as_posix(),
        )
    return _encoder(library.TextEmbedding(name, threads=THREADS, specific_model_path=str(folder)))


def _encoder(model: Any) -> Encode:
    def encode(texts: list[str], query: bool) -> NDArray[Any]:
        embed = model.query_embed if query else model.passage_embed
        return np.stack(list(embed(texts)))

    return encode
