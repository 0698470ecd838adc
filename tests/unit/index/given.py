"""Small tools, and the indexes made from them, that the tests of the index start from."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegboard.catalog.snapshot import canonical, fingerprint
from pegboard.errors import EmbedderError
from pegboard.index.build import assemble, plan, texts_to_embed
from pegboard.index.embedders.static import StaticEmbedder
from pegboard.index.evaluate import read_tools
from pegboard.index.finder import Finder, Terms
from pegboard.index.index import Index
from pegboard.index.intents import SUITE
from pegboard.index.narrow import Narrow
from pegboard.index.parts import Parts
from pegboard.types import Answer, Json, Tool

OFFICE = {
    "github": {
        "create_issue": "Open a new issue in a GitHub repository.",
        "list_issues": "List the issues of a GitHub repository, by state and label.",
        "merge_pull_request": "Merge a pull request into its base branch.",
    },
    "slack": {
        "send_message": "Send a message to a Slack channel or to a person.",
        "list_channels": "List all channels of the workspace.",
    },
    "weather": {"get_forecast": "Weather forecast for a city for the next days: temperature, rain, wind."},
    "files": {
        "read_file": "Read the contents of a file on the disk.",
        "delete_file": "Delete a file from the disk for good.",
    },
    "bank": {"refund_payment": "Give a customer the money of a payment back, in whole or in part."},
}


def tool(name: str, description: str = "", server: str = "github", **more: Any) -> Tool:
    """One tool of one server. The schema, meta, annotations and title go into its definition."""
    definition: Json = {"name": name, "description": description, "inputSchema": more.pop("schema", {"type": "object"})}
    title = more.pop("title", "")
    definition |= {"title": title} if title else {}
    definition |= {"_meta": more.pop("meta")} if "meta" in more else {}
    definition |= {"annotations": more.pop("annotations")} if "annotations" in more else {}
    encoded = canonical(definition)
    return Tool(
        server=server,
        name=name,
        public_name=more.pop("public_name", f"{server}__{name}"),
        definition=encoded,
        fingerprint=fingerprint(encoded),
        title=title,
        description=description,
        **more,
    )


def taking(**parameters: str | Json) -> Json:
    """A schema of parameters, each with its description or its own schema."""
    return {
        "type": "object",
        "properties": {
            name: {"type": "string", "description": about} if isinstance(about, str) else about
            for name, about in parameters.items()
        },
    }


def office(*servers: str) -> list[Tool]:
    """A handful of tools of different trades."""
    return [
        tool(name, about, server)
        for server, tools in OFFICE.items()
        if not servers or server in servers
        for name, about in tools.items()
    ]


@cache
def static() -> StaticEmbedder:
    """The embedder that is always there, loaded once."""
    return StaticEmbedder()


class ThinEmbedder:
    """The first numbers of the static embedder's vectors: quick, for where it does not matter what they mean."""

    identity = "static:thin"

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """One row for each text."""
        return self.embedded(texts)

    def embedded(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The same, without an event loop."""
        rows = static().embedded(texts)[:, :24]
        unit: NDArray[np.float32] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-9))
        return unit


class BrokenEmbedder:
    """An embedder that never answers; `after` so many batches, where it should start well."""

    def __init__(self, identity: str = "", after: int = 0) -> None:
        self.identity = identity or static().identity
        self._left = after

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """Fails as an embedder may."""
        if self._left <= 0:
            raise EmbedderError("the model is asleep")
        self._left -= 1
        return static().embedded(texts)


class CountingEmbedder:
    """The static embedder, which remembers what it was asked; `embed` can be held up."""

    def __init__(self, identity: str = "") -> None:
        self.identity = identity or static().identity
        self.tools: list[str] = []
        self.queries: list[str] = []
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """One row for each text, once it may go on."""
        (self.queries if query else self.tools).extend(texts)
        if not query:
            await self.may_go_on.wait()
        return static().embedded(texts)


def parts_of(
    tools: Iterable[Tool],
    previous: Parts | None = None,
    *,
    meaning: bool = True,
    thin: bool = False,
    catalog: str = "v1",
) -> Parts:
    """The arrays of an index; with `meaning` also by vectors."""
    embedder = ThinEmbedder() if thin else static()
    identity = embedder.identity if meaning else ""
    work = plan(tools, identity, previous)
    vectors = embedder.embedded(texts_to_embed(work)) if meaning else None
    return assemble(work, catalog=catalog, embedder=identity, vectors=vectors)


def index_of(*tools: Tool, meaning: bool = True, thin: bool = False) -> Index:
    """An index of these tools."""
    return Index(parts_of(tools, meaning=meaning, thin=thin))


def by_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    """The tools as a catalog has them."""
    return {each.public_name: each for each in tools}


def finder_of(*tools: Tool, meaning: bool = True, thin: bool = False, **options: Any) -> Finder:
    """A finder over these tools; options are the Finder's own."""
    embedder = ThinEmbedder() if thin else static()
    return Finder(
        by_name(tools), index_of(*tools, meaning=meaning, thin=thin), embedder if meaning else None, **options
    )


def ask(finder: Finder, query: str, limit: int = 5, *, always: bool = False, **narrow: Any) -> Answer:
    """What is found; keywords narrow it."""
    return asyncio.run(finder.search(query, Terms(limit=limit, always=always, narrow=Narrow(**narrow))))


def names(answer: Answer) -> list[str]:
    """The public names of the hits, best first."""
    return [hit.name for hit in answer.hits]


def arrays_equal(one: Mapping[str, NDArray[Any]], other: Mapping[str, NDArray[Any]]) -> bool:
    """Whether two indexes are made of the same arrays."""
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype and np.array_equal(one[name], other[name]) for name in one
    )


@cache
def office_index() -> Index:
    """The index of the handful of tools, made once."""
    return index_of(*office())


@cache
def suite_tools() -> tuple[Tool, ...]:
    """The tools of the suite that comes with Pegboard."""
    return tuple(read_tools(SUITE / "tools.jsonl"))


@cache
def suite_parts() -> Parts:
    """Their index."""
    return parts_of(suite_tools())


@cache
def suite_finder() -> Finder:
    """A finder over the suite's tools."""
    return Finder(by_name(suite_tools()), Index(suite_parts()), static())
