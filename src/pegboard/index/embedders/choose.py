"""Which embedder the configuration asks for. What is not chosen is not imported; what cannot work says so here.

Above: the engine. Below: one module for each embedder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pegboard.config.model import SearchConfig
from pegboard.errors import ConfigError, EmbedderError, MissingExtra
from pegboard.protocols import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def chosen(config: SearchConfig, environ: Mapping[str, str] | None = None) -> Embedder | None:
    """The embedder, ready to be asked; a model is loaded only when it is. None: searches go by words alone."""
    if config.embedder == "none":
        return None
    if config.embedder == "static":
        return _static()
    from pegboard.index.embedders.cached import CachedQueries

    return CachedQueries(_slower(config, os.environ if environ is None else environ))


def chosen_to_search(config: SearchConfig) -> Embedder | None:
    """The same, but a package that is missing is no reason not to search: then it goes by words, and says so."""
    try:
        return chosen(config)
    except MissingExtra as error:
        return Absent(config.embedder, EmbedderError(f"{error.message} {error.hint}"))


class Absent:
    """Stands for an embedder whose package is not installed: what it is asked, it refuses with the reason."""

    def __init__(self, name: str, reason: EmbedderError) -> None:
        self.identity = f"{name}:absent"
        self._reason = reason

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """Never gives anything."""
        raise EmbedderError(self._reason.message)


def _static() -> Embedder:
    from pegboard.index.embedders.static import StaticEmbedder

    try:
        return StaticEmbedder()
    except (OSError, ValueError, KeyError) as error:  # msgspec's errors are ValueErrors
        raise EmbedderError(f"The built-in table cannot be read: {error}", hint="Install pegboard anew.") from None


def _slower(config: SearchConfig, environ: Mapping[str, str]) -> Embedder:
    if config.embedder == "minilm":
        from pegboard.index.embedders.minilm import MiniLmEmbedder

        return MiniLmEmbedder(config.model)
    if config.embedder == "fastembed":
        from pegboard.index.embedders.fastembed_model import FastEmbedEmbedder

        return FastEmbedEmbedder(config.model)
    if config.embedder == "sentence-transformers":
        from pegboard.index.embedders.sentence_model import SentenceTransformersEmbedder

        return SentenceTransformersEmbedder(config.model)
    return _endpoint(config, environ)


def _endpoint(config: SearchConfig, environ: Mapping[str, str]) -> Embedder:
    from pegboard.index.embedders.endpoint import EndpointEmbedder

    if not config.url:
        raise ConfigError(
            'search.url: the embedder "endpoint" needs an address', hint='url = "https://api.openai.com/v1"'
        )
    if not config.model:
        raise ConfigError(
            'search.model: the embedder "endpoint" needs the name of a model', hint='model = "text-embedding-3-small"'
        )
    variable = config.api_key_env or ""
    if variable and not environ.get(variable, "").strip():
        raise ConfigError(
            f"search.api_key_env: the variable {variable} is not set",
            hint=f"Set {variable} to the endpoint's key, or remove api_key_env if it needs none.",
        )
    return EndpointEmbedder(config.url, config.model, key=lambda: environ.get(variable, "").strip())
