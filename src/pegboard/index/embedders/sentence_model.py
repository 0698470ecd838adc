"""Any model of sentence-transformers, on PyTorch: the widest choice and by far the heaviest.

Above: `choose`. Below: sentence-transformers, which downloads a model that is named, unless it has it already.
"""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pegboard.index.embedders.model import Encode, ModelInThread, folder_of, imported, is_folder, require, stamp_of

DEFAULT_MODEL = "all-MiniLM-L6-v2"
BATCH = 32


class SentenceTransformersEmbedder:
    """A model by its name on the Hugging Face hub, or in a folder."""

    def __init__(self, model: str | None = None) -> None:
        """`model` is a name or a folder."""
        require("sentence-transformers", "sentence_transformers")
        name = model or DEFAULT_MODEL
        version = importlib.metadata.version("sentence-transformers")
        said, place = name, name
        hint = (
            f"The first use downloads {name}; it needs the network. "
            "Or set search.model to a folder that holds the model, or search.embedder to another."
        )
        if is_folder(name):
            folder = folder_of(name)
            place = str(folder)
            said = stamp_of(file for file in folder.rglob("*") if file.is_file())
            hint = "Check the folder that search.model names."
        self.identity = f"sentence-transformers:{version}:{said}"
        self._model = ModelInThread("sentence-transformers", functools.partial(_load, place), batch=BATCH, hint=hint)

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """One row for each text."""
        return await self._model.embed(texts, query)


def _load(place: str) -> Encode:
    model = imported("sentence_transformers").SentenceTransformer(place)

    def encode(texts: list[str], query: bool) -> NDArray[np.float32]:
        embed = model.encode_query if query else model.encode_document
        return np.asarray(embed(texts, batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True), np.float32)

    return encode
