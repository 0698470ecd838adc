"""Whatever a model and its user do, in whatever order: no API refuses a request, and no prefix is rewritten."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegboard.testing import FakeLLM, FakeSource, Move, tool_definition
from tests.flow.test_sdk_loops import NATIVE, WAYS
from tests.sdk_agents import OnCompletions, board_of, hub

ODD = (
    tool_definition("either", "Takes a or b", inputSchema={"anyOf": [{"properties": {"$a": {"type": "array"}}}]}),
    tool_definition("blank", "Says nothing", inputSchema={"type": "object"}),
    tool_definition("picture", "Draws", inputSchema={"type": "object"}),
    tool_definition("a" * 100, "A long name", inputSchema={"type": "object"}),
    tool_definition("dotted.name/with slash", "An odd name", inputSchema={"type": "object"}),
)
RESULTS: Any = {
    "blank": {"content": [{"type": "text", "text": " \n"}]},
    "picture": {"content": [{"type": "image", "data": "aWNvbg==", "mimeType": "image/png"}]},
}
OLD = {"claude-opus-5": "claude-3-haiku", "gpt-5.5": "gpt-5"}
QUERIES = ("count ticket of shelf 0", "select:hub__create_invoice_0,odd__blank", "odd name", "", "zzz qqq", "draws")
NAMES = ("hub__create_invoice_0", "hub__count_ticket_0", "odd__either", "odd__blank", "odd__picture", "nobody",
         "create_ticket_0", "read_result", "load_skill")  # fmt: skip

a_call = st.one_of(
    st.tuples(st.just("search_tools"), st.fixed_dictionaries({"query": st.sampled_from(QUERIES)})),
    st.tuples(st.just("search_tools"), st.just({"querry": 3})),
    st.tuples(st.sampled_from(NAMES), st.sampled_from([{}, {"id": 1}, {"id": "x"}])),
    st.tuples(st.just("call_tool"), st.fixed_dictionaries({"name": st.sampled_from(NAMES), "arguments": st.just({})})),
)
a_turn = st.builds(
    Move, text=st.sampled_from(["", "hm"]), calls=st.lists(a_call, min_size=1, max_size=4).map(tuple), stop=st.just("")
)
a_step = st.one_of(
    st.tuples(st.just("say"), st.lists(a_turn, max_size=3)),
    st.sampled_from(
        [(each, None) for each in ("trim", "compact", "restart", "fork", "shrink", "load", "rebuild", "switch")]
    ),
)


class Life:
    """One conversation over all that can befall it."""

    def __init__(self, folder: Path, way: str) -> None:
        self.kind, self.model, self.reveal = WAYS[way]
        self.folder, self.fake = folder, FakeLLM([])
        self.sources = (hub(60), FakeSource("odd", ODD, results=RESULTS))
        self.history: list[Any] = []
        self.state = b""
        self.stable_from = 0
        """The first request since which nothing but the model and the user changed the prompt."""

    async def live(self, steps: list[tuple[str, Any]]) -> None:
        while steps:
            async with board_of(self.folder, *self.sources, max_active=3) as board:
                await board.refresh()
                self.board = board
                self.one = self.kind(
                    self.fake, board.conversation("u", state=self.state, reveal=self.reveal), self.model
                )
                self.one.history, self.reads = self.history, True
                self.stable_from = len(self.fake.requests)
                while steps:
                    name, what = steps.pop(0)
                    if name == "restart":
                        break
                    await getattr(self, f"_{name}")(what)
                    self.reads = self.reads and name != "say"
                self.state, self.history = self.one.tools.chat.state(), self.one.history

    async def _say(self, moves: list[Move]) -> None:
        self.fake.model.moves = [*moves, Move(text="ok")]
        assert await self.one.say("go", reads=self.reads) == "ok"
        self._check()

    async def _trim(self, _: None) -> None:
        self.one.history = self.one.tools.mended(self.one.history[len(self.one.history) // 3 | 1 :])
        await self._compact(None, history=self.one.history)

    async def _compact(self, _: None, history: list[Any] | None = None) -> None:
        self.one.history = history or [{"role": "user", "content": "We spoke."}]
        if hasattr(self.one.tools, "compacted"):
            self.one.tools.compacted(self.one.history)
        self.stable_from = len(self.fake.requests)

    async def _rebuild(self, _: None) -> None:
        self.one.tools.rebuild(self.one.history)
        self.stable_from = len(self.fake.requests)

    async def _load(self, _: None) -> None:
        await self.one.tools.chat.search("archive recipe of shelf 0", limit=2)

    async def _shrink(self, _: None) -> None:
        self.sources[0].tools = self.sources[0].tools[: len(self.sources[0].tools) // 2]
        await self.board.refresh()
        self.stable_from = len(self.fake.requests)

    async def _switch(self, _: None) -> None:
        """From here on with a model that knows no deferral."""
        self.one.model = self.model = OLD.get(self.model, self.model)
        self.one.tools.tools(*([self.model] if self.kind is not OnCompletions else []))
        self.one.history = self.one.tools.mended(self.one.history)
        self.stable_from = len(self.fake.requests)

    async def _fork(self, _: None) -> None:
        """A sub-agent that is given the history so far."""
        child = self.kind(FakeLLM([Move(calls=(("search_tools", {"query": "share"}),)), Move(text="ok")]),
                          self.one.tools.chat, self.model)  # fmt: skip
        child.tools = self.one.tools.fork("child", allow=["hub__share_*"])
        child.history = list(self.one.history)
        assert await child.say("go", reads=True) == "ok"

    def _check(self) -> None:
        seen = self.fake.requests[self.stable_from :]
        assert not any(each.refused for each in self.fake.requests)
        if (self.kind, self.model, self.reveal) in [WAYS[way] for way in (*NATIVE, "completions")]:
            assert [each.reading.shared for each in seen[1:]] == [each.reading.total for each in seen[:-1]]


@pytest.mark.parametrize("way", WAYS)
@given(steps=st.lists(a_step, min_size=2, max_size=8))
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_nothing_is_refused_and_no_prefix_is_rewritten(way: str, steps: list[tuple[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(Life(Path(folder), way).live([*steps, ("say", [])]))
