"""Plain BM25, what a search is measured against: bm25s over name and description in one bag of words.

Identifiers are split, words are stemmed, English stop words are left out. The option `parameters` adds their names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.metadata import version

import bm25s  # type: ignore[import-not-found]
import Stemmer  # type: ignore[import-not-found]

from bench.rivals.frame import LIMIT, Definition, Search, main

PARAMETERS = "parameters"
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def about(_option: str) -> str:
    """What was asked."""
    return f"bm25s {version('bm25s')} (lucene, k1 1.5, b 0.75), PyStemmer {version('PyStemmer')}"


def split(text: str) -> str:
    """The text with its identifiers in parts."""
    return _HUMP.sub(" ", text).replace("_", " ")


def text_of(tool: Definition, option: str) -> str:
    """What is indexed of a tool."""
    properties = tool.parameters.get("properties")
    names = list(properties) if option == PARAMETERS and isinstance(properties, dict) else []
    return split(" ".join((tool.name, tool.description, *names)))


async def build(known: list[Definition], option: str) -> Search:
    """An index of all tools."""

    stemmer = Stemmer.Stemmer("english")

    def tokens(texts: list[str]) -> list[list[str]]:
        found: list[list[str]] = bm25s.tokenize(
            texts, stopwords="en", stemmer=stemmer, return_ids=False, show_progress=False
        )
        return found

    index = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    index.index(tokens([text_of(each, option) for each in known]), show_progress=False)
    most = min(LIMIT, len(known))

    async def search(query: str) -> Sequence[Sequence[str]]:
        words = tokens([split(query)])
        if not any(word in index.vocab_dict for word in words[0]):
            return []
        places, scores = index.retrieve(words, k=most, show_progress=False)
        pairs = zip(places[0].tolist(), scores[0].tolist(), strict=True)
        return [(known[place].id,) for place, score in pairs if score > 0]

    return search


if __name__ == "__main__":
    main(about, build)
