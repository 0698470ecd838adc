"""Pegboard, asked as its rivals are. The option is an embedder's name, or `dense` for the built-in vectors alone."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

import numpy as np

from bench.rivals.frame import LIMIT, Search, main
from pegboard.config.model import SearchConfig
from pegboard.index.build import assemble, plan, texts_to_embed
from pegboard.index.embedders.choose import chosen
from pegboard.index.embedders.static import StaticEmbedder
from pegboard.index.evaluate import read_tools
from pegboard.index.finder import Finder, Terms
from pegboard.index.index import Index
from pegboard.types import Tool

DENSE = "dense"
_BATCH = 256


def about(option: str) -> str:
    """What was asked."""
    if option == DENSE:
        return f"pegboard {version('pegboard')}, cosine of the built-in vectors"
    return f"pegboard {version('pegboard')}, Finder.search (limit {LIMIT}, always)"


async def finder_of(tools: Sequence[Tool], embedder: str) -> Finder:
    """A catalog with its index, made as `pegboard eval` makes it."""
    model = chosen(SearchConfig(embedder=embedder))  # type: ignore[arg-type]
    identity = model.identity if model else ""
    work = plan(tools, identity)
    vectors = None
    if model is not None:
        texts = texts_to_embed(work)
        vectors = np.concatenate([await model.embed(texts[at : at + _BATCH]) for at in range(0, len(texts), _BATCH)])
    index = Index(assemble(work, catalog="", embedder=identity, vectors=vectors))
    return Finder({tool.public_name: tool for tool in tools}, index, model)


async def build(tools: list[Tool], option: str) -> Search:
    """A finder, or the bare vectors."""
    if option == DENSE:
        return _by_vectors(tools)
    finder = await finder_of(tools, option)
    terms = Terms(limit=LIMIT, always=True)

    async def search(query: str) -> Sequence[Sequence[str]]:
        return [(hit.name, *hit.also) for hit in (await finder.search(query, terms)).hits]

    return search


def _by_vectors(tools: Sequence[Tool]) -> Search:
    """The tools whose vectors are nearest to the query's; no words, no re-ranking, copies stay where they are."""
    embedder = StaticEmbedder()
    rows = embedder.embedded(texts_to_embed(plan(tools, embedder.identity)))
    most = min(LIMIT, len(tools))

    async def search(query: str) -> Sequence[Sequence[str]]:
        likeness = rows @ embedder.embedded([query])[0]
        near = np.argpartition(-likeness, most - 1)[:most]
        return [(tools[place].public_name,) for place in near[np.lexsort((near, -likeness[near]))].tolist()]

    return search


if __name__ == "__main__":
    main(about, build, read_tools)
