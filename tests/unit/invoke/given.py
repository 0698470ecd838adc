"""A call path over a server in memory, and what it left behind."""

from __future__ import annotations

import asyncio
from typing import Any

from pegboard.catalog.catalog import Catalog, build
from pegboard.config.model import CallsConfig
from pegboard.errors import PegboardError
from pegboard.invoke.path import Invoker
from pegboard.testing import FakeSource
from pegboard.types import CallContext, Caller, Json, Outcome, Tool
from tests.unit.catalog.given import config, snapshot, spec

ISSUE = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 1},
        "count": {"type": "integer", "minimum": 1, "maximum": 100},
        "labels": {"type": "array", "items": {"type": "string"}},
        "draft": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
        "filter": {"$ref": "#/$defs/Filter"},
        "state": {"enum": ["open", "closed"]},
    },
    "required": ["title"],
    "additionalProperties": False,
    "$defs": {
        "Filter": {
            "type": "object",
            "properties": {"maxAge": {"type": "number"}, "deep": {"$ref": "#/$defs/Filter"}},
            "required": ["maxAge"],
        }
    },
}
READS = {"readOnlyHint": True}
ME = Caller(identity="me", conversation="one")


class Time:
    """A clock that stands still until it is told otherwise."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


class Bench:
    """One call path with its sources, its records and its activations."""

    def __init__(
        self, *sources: FakeSource, deny: tuple[str, ...] = (), ask: Any = None, servers: Any = None, **calls: Any
    ) -> None:
        self.sources = {source.name: source for source in sources}
        self.time = Time()
        self.start_seconds = 0.0
        """What starting a server takes."""
        self.start_error: PegboardError | None = None
        self.outcomes: list[Outcome] = []
        self.activated: list[tuple[Caller, str]] = []
        specs = {source.name: spec(source.name, **(servers or {}).get(source.name, {})) for source in sources}
        snapshots = {source.name: snapshot(specs[source.name], *source.tools) for source in sources}
        self.catalog: Catalog = build(config(*specs.values()), snapshots)
        self.invoker = Invoker(
            self.find,
            self.execute,
            calls=CallsConfig(**calls),
            deny=deny,
            approve=ask,
            prepare=self.prepare,
            look=lambda name: self.catalog.find(name),
            record=self.outcomes.append,
            activate=lambda caller, tool: self.activated.append((caller, tool.public_name)),
            count_tokens=lambda text: len(text) // 4,
            now=self.time,
            clock=self.time,
        )

    async def find(self, name: str) -> Tool:
        return self.catalog.find(name)

    async def prepare(self, tool: Tool) -> None:
        self.time.seconds += self.start_seconds
        if self.start_error is not None:
            raise self.start_error

    async def execute(self, tool: Tool, arguments: Json, context: CallContext) -> Json:
        return await self.sources[tool.server].call_tool(tool.name, arguments, context)

    def call(self, name: str, arguments: Any = None, caller: Caller = ME, **more: Any) -> Json:
        context = more.pop("context", CallContext())
        more.setdefault("via", "call_tool")
        return asyncio.run(self.invoker.call(name, arguments, caller, context, **more))

    @property
    def last(self) -> Outcome:
        return self.outcomes[-1]

    @property
    def sent(self) -> Any:
        """The arguments that reached a server last."""
        return next(iter(self.sources.values())).calls[-1][1]


def text_of(result: Json) -> str:
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")
