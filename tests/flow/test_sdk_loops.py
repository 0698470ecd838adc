"""Loops on the three wires do the same: search, call, evict, fork, compact, restart, go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pegboard.errors import PegboardError
from pegboard.testing import FakeLLM, Move, Shown
from tests.loops import in_a_loop
from tests.sdk_agents import OnCompletions, OnMessages, OnResponses, board_of, bridged, call, hub, search

WAYS: dict[str, tuple[Any, str, Any]] = {
    "messages": (OnMessages, "claude-opus-5", "listed"),
    "messages-called": (OnMessages, "claude-opus-5", "called"),
    "messages-old": (OnMessages, "anthropic.claude-3-haiku", "listed"),
    "messages-old-called": (OnMessages, "anthropic.claude-3-haiku", "called"),
    "responses": (OnResponses, "gpt-5.5", "listed"),
    "responses-called": (OnResponses, "gpt-5.5", "called"),
    "responses-old": (OnResponses, "gpt-5", "listed"),
    "responses-old-called": (OnResponses, "gpt-5", "called"),
    "completions": (OnCompletions, "gpt-4.1", "called"),
    "completions-listed": (OnCompletions, "gpt-4.1", "listed"),
}
NATIVE = ("messages", "messages-called", "responses", "responses-called")
BRIDGED = ("messages-old-called", "responses-old-called", "completions")
every_way = pytest.mark.parametrize("way", WAYS)
each_wire = pytest.mark.parametrize(
    "way", ["messages", "messages-old", "responses", "responses-old-called", "completions"]
)


def by_name(way: str, name: str, /, **arguments: Any) -> Move:
    """A call of a tool that was found, as the way has it."""
    return bridged(name, **arguments) if way in BRIDGED else call(name, **arguments)


def agent(way: str, fake: FakeLLM, board: Any, key: str = "u", **more: Any) -> Any:
    kind, model, reveal = WAYS[way]
    return kind(fake, board.conversation(key, reveal=reveal), model, **more)


@every_way
@in_a_loop
async def test_a_tool_is_found_and_called(tmp_path: Path, way: str) -> None:
    await _find_and_call(tmp_path, way, stream=False)


@each_wire
@in_a_loop
async def test_a_tool_is_found_and_called_in_streams(tmp_path: Path, way: str) -> None:
    await _find_and_call(tmp_path, way, stream=True)


async def _find_and_call(folder: Path, way: str, *, stream: bool) -> None:
    source = hub()
    fake = FakeLLM(
        [search("archive a camera of shelf 3"), by_name(way, "hub__archive_camera_3", id=7), Move(text="ok")]
    )
    async with board_of(folder, source) as board:
        await board.refresh()
        one = agent(way, fake, board, stream=stream)
        assert await one.say("archive it") == "ok"
    assert source.calls == [("archive_camera_3", {"id": 7})]
    first, last = fake.model.shown[0].names, fake.model.shown[-1].names
    assert len(first) <= 4
    assert ("hub__archive_camera_3" in last) == (way not in BRIDGED)


@each_wire
@in_a_loop
async def test_a_tool_is_called_without_a_search_and_unknown_names_get_near_misses(tmp_path: Path, way: str) -> None:
    source = hub()
    wrong = call("hub__archive_camra_3", id=1)
    fake = FakeLLM([call("hub__share_budget_1", id=2), wrong, Move(text="ok")])
    async with board_of(tmp_path, source) as board:
        await board.refresh()
        one = agent(way, fake, board)
        assert await one.say("go") == "ok"
        assert "hub__archive_camera_3" in one.answers()
        assert "hub__share_budget_1" in one.tools.chat.surface().activation.names
    assert source.calls == [("share_budget_1", {"id": 2})]


@each_wire
@in_a_loop
async def test_calls_made_at_once_are_answered_in_their_order(tmp_path: Path, way: str) -> None:
    names = [f"hub__count_{thing}_0" for thing in ("ticket", "parcel", "sensor")]
    calls = Move(calls=(("search_tools", {"query": "count"}), *((name, {"id": 1}) for name in names), ("nobody", {})))
    fake = FakeLLM([calls, Move(text="ok")])
    async with board_of(tmp_path, hub()) as board:
        await board.refresh()
        one = agent(way, fake, board)
        assert await one.say("go") == "ok"
        told = one.answers()
    at = [told.index(text) for text in ("count_ticket_0", "count_parcel_0", "count_sensor_0", "nobody")]
    assert at == sorted(at)


@pytest.mark.parametrize("way", [*NATIVE, *BRIDGED])
@in_a_loop
async def test_the_cached_prefix_grows_and_never_breaks(tmp_path: Path, way: str) -> None:
    moves = [move for thing in ("ticket", "parcel", "sensor") for move in (
        search(f"count {thing} of shelf 2"), by_name(way, f"hub__count_{thing}_2", id=1))]  # fmt: skip
    fake = FakeLLM([*moves, Move(text="ok")])
    async with board_of(tmp_path, hub(), max_active=2) as board:
        await board.refresh()
        await agent(way, fake, board).say("go")
    sizes = [seen.reading.total for seen in fake.requests]
    assert [seen.reading.shared for seen in fake.requests[1:]] == sizes[:-1]


@each_wire
@in_a_loop
async def test_a_catalog_that_grows_meanwhile_does_not_change_the_prefix(tmp_path: Path, way: str) -> None:
    source = hub(20)
    async with board_of(tmp_path, source) as board:
        await board.refresh()
        fake = FakeLLM(
            [Move(text="a"), search("select:hub__create_ticket_0"), by_name(way, "hub__create_ticket_0", id=1)]
        )
        one = agent(way, fake, board)
        await one.say("go")
        source.tools = hub(40).tools
        await board.refresh()
        await one.say("go on")
    first, *rest = [seen.body["tools"] for seen in fake.requests]
    assert all(tools[: len(first)] == first for tools in rest)
    assert source.calls == [("create_ticket_0", {"id": 1})]


@every_way
@in_a_loop
async def test_the_tools_of_a_skill_are_there_once_it_is_read(tmp_path: Path, way: str) -> None:
    folder = tmp_path / "skills" / "billing"
    folder.mkdir(parents=True)
    head = "name: billing\ndescription: How invoices are written here.\ntools: [hub__create_invoice_0]"
    (folder / "SKILL.md").write_text(f"---\n{head}\n---\nCreate it, then breathe.\n")
    source = hub(20)
    fake = FakeLLM([call("load_skill", name="billing"), by_name(way, "hub__create_invoice_0", id=1), Move(text="ok")])
    async with board_of(tmp_path, source, skills=tmp_path / "skills") as board:
        await board.refresh()
        one = agent(way, fake, board)
        assert await one.say("go") == "ok"
        assert "then breathe" in str(one.history)
    assert ("hub__create_invoice_0" in fake.model.shown[1].names) == (way not in BRIDGED)
    assert source.calls == [("create_invoice_0", {"id": 1})]
    if way in (*NATIVE, *BRIDGED):
        sizes = [seen.reading.total for seen in fake.requests]
        assert [seen.reading.shared for seen in fake.requests[1:]] == sizes[:-1]


@each_wire
@in_a_loop
async def test_without_a_search_everything_is_on_the_list_and_below_the_threshold_too(tmp_path: Path, way: str) -> None:
    kind, model, reveal = WAYS[way]
    async with board_of(tmp_path, hub(30)) as board:
        await board.refresh()
        fake = FakeLLM([])
        await kind(fake, board.conversation("a", reveal=reveal, search=False), model).say("go")
        assert len(fake.model.shown[0].names) == 30
    async with board_of(tmp_path, hub(3), mode="auto") as board:
        await board.refresh()
        fake = FakeLLM([call("hub__create_invoice_0", id=1)])
        await kind(fake, board.conversation("b", reveal=reveal), model).say("go")
        assert fake.model.shown[-1].names == (
            "hub__create_invoice_0",
            "hub__delete_invoice_0",
            "hub__archive_invoice_0",
        )


@each_wire
@in_a_loop
async def test_no_tools_at_all_are_no_tools_argument(tmp_path: Path, way: str) -> None:
    async with board_of(tmp_path, mode="auto") as board:
        fake = FakeLLM([])
        one = agent(way, fake, board)
        assert await one.say("hello") == "done"
        assert "tools" not in fake.requests[0].body


@each_wire
@in_a_loop
async def test_pinned_tools_are_always_there_and_a_model_that_never_searches_uses_them(
    tmp_path: Path, way: str
) -> None:
    source = hub()
    fake = FakeLLM([search("count budgets of shelf 0"), call("hub__count_budget_0", id=1), Move(text="ok")])
    async with board_of(tmp_path, source, pinned=["*__count_budget_0"]) as board:
        await board.refresh()
        assert await agent(way, fake, board).say("go") == "ok"
    assert all("hub__count_budget_0" in shown.names for shown in fake.model.shown)
    assert all(shown.names.count("hub__count_budget_0") == 1 for shown in fake.model.shown)
    assert "hub (500" in str(fake.requests[0].body["tools"])


@each_wire
@in_a_loop
async def test_a_sub_agent_inherits_a_snapshot_searches_for_itself_and_cannot_widen_its_list(
    tmp_path: Path, way: str
) -> None:
    source = hub()
    kind, model, _ = WAYS[way]
    fake = FakeLLM([search("export lesson of shelf 1"), by_name(way, "hub__export_lesson_1", id=1)])
    async with board_of(tmp_path, source) as board:
        await board.refresh()
        parent = agent(way, fake, board)
        await parent.say("go")
        inside, outside = by_name(way, "hub__export_recipe_4", id=2), by_name(way, "hub__delete_recipe_4", id=3)
        script = FakeLLM([search("recipe of shelf 4", limit=20), inside, outside, Move(text="ok")])
        child = kind(script, parent.tools.chat, model)
        child.tools = parent.tools.fork("cook", allow=["hub__export_*"])
        assert await child.say("export") == "ok"
        seen: Any = script.model.shown[0].names
        assert ("hub__export_lesson_1" in seen) == (way not in BRIDGED)
        loaded = child.tools.chat.surface().activation.names
        assert "hub__export_recipe_4" in loaded
        assert all(name.startswith("hub__export_") for name in loaded)
        assert "hub__export_recipe_4" not in parent.tools.chat.surface().activation.names
        alone = parent.tools.fork("alone", inherit=False)
        assert alone.chat.surface().activation.names == ()
    assert ("delete_recipe_4", {"id": 3}) not in source.calls
    assert ("export_recipe_4", {"id": 2}) in source.calls


@each_wire
@in_a_loop
async def test_sub_agents_of_one_name_do_not_mix(tmp_path: Path, way: str) -> None:
    async with board_of(tmp_path, hub(60)) as board:
        await board.refresh()
        parent = agent(way, FakeLLM([]), board)
        await parent.tools.chat.search("select:hub__share_ticket_0")
        one, other = (parent.tools.fork("helper") for _ in range(2))
        await one.chat.search("select:hub__create_invoice_0")
        await other.chat.search("select:hub__count_ticket_0")
        late = parent.tools.fork("helper")
        assert set(one.chat.surface().activation.names) == {"hub__share_ticket_0", "hub__create_invoice_0"}
        assert set(other.chat.surface().activation.names) == {"hub__share_ticket_0", "hub__count_ticket_0"}
        assert late.chat.surface().activation.names == ("hub__share_ticket_0",)


@each_wire
@in_a_loop
async def test_two_of_your_own_tools_of_one_name_are_refused_at_once(tmp_path: Path, way: str) -> None:
    function: Any = {"name": "weather", "parameters": {"type": "object", "properties": {}}}
    own = {
        "messages": {"name": "weather", "input_schema": {"type": "object"}},
        "responses": {"type": "function", **function},
        "completions": {"type": "function", "function": function},
    }[way.partition("-")[0]]
    nameless = [{"type": "mcp", "server_label": "a"}, {"type": "mcp", "server_label": "b"}]
    async with board_of(tmp_path, hub(20)) as board:
        agent(way, FakeLLM([]), board, own=[own, *nameless])
        with pytest.raises(PegboardError, match="Two of your own tools are named 'weather'"):
            agent(way, FakeLLM([]), board, own=[own, own])


@each_wire
@in_a_loop
async def test_what_a_history_used_is_loaded_again_from_the_history_alone(tmp_path: Path, way: str) -> None:
    moves = [search("count ticket of shelf 2", limit=1), by_name(way, "hub__count_ticket_2", id=1),
             call("hub__share_sensor_0", id=1), by_name(way, "hub__count_ticket_2", id=2)]  # fmt: skip
    fake = FakeLLM(moves)
    async with board_of(tmp_path / "one", hub()) as board:
        await board.refresh()
        before = agent(way, fake, board)
        await before.say("go")
    async with board_of(tmp_path / "two", hub()) as board:
        await board.refresh()
        after = agent(way, FakeLLM([Move(text="still here")]), board)
        after.history = [*before.history, *_called(way, "gone__tool")]
        done = after.tools.rebuild(after.history)
        assert done.loaded == ("hub__count_ticket_2", "hub__share_sensor_0")
        assert done.unknown == ("gone__tool",)
        after.history = before.history
        assert await after.say("go on") == "still here"


def _called(way: str, name: str) -> list[Any]:
    """A call of this tool, as a history has it."""
    if way.startswith("messages"):
        return [{"role": "assistant", "content": [{"type": "tool_use", "id": "x", "name": name, "input": {}}]}]
    if way.startswith("responses"):
        return [{"type": "function_call", "call_id": "x", "name": name, "arguments": "{}"}]
    function = {"name": name, "arguments": "{}"}
    return [{"role": "assistant", "tool_calls": [{"id": "x", "type": "function", "function": function}]}]


def _then(way: str, query: str, name: str, **arguments: Any) -> list[Any]:
    """Search for a tool, see that it was found, call it, say that it is done."""

    def calls(shown: Shown) -> Move:
        assert name in shown.names or way in BRIDGED
        return by_name(way, name, **arguments)

    return [search(query), calls, Move(text=f"did {name}")]


@every_way
@in_a_loop
async def test_a_long_session_searches_evicts_forks_compacts_restarts_and_goes_on(tmp_path: Path, way: str) -> None:
    source = hub(480)
    moves = [
        *_then(way, "archive camera of shelf 3", "hub__archive_camera_3", id=1),
        *_then(way, "add two numbers", "plain__add", a=2, b=3),
        *_then(way, "export lesson of shelf 1", "hub__export_lesson_1", id=2),
        *_then(way, "rename vehicle of shelf 0", "hub__rename_vehicle_0", id=3),
    ]
    fake = FakeLLM(moves)
    async with board_of(tmp_path, source, process=True, max_active=4) as board:
        await board.refresh()
        one = agent(way, fake, board)
        for text in ("archive it", "what is 2 + 3", "export it", "rename it"):
            assert (await one.say(text)).startswith("did ")
        assert len(one.tools.chat.surface().activation.names) == 4
        assert "hub__archive_camera_3" not in one.tools.chat.surface().activation.names
        fake.model.moves = [by_name(way, "hub__archive_camera_3", id=4), Move(text="evicted, called all the same")]
        assert await one.say("once more") == "evicted, called all the same"

        kind, model, _ = WAYS[way]
        child = kind(FakeLLM(_then(way, "add numbers", "plain__add", a=1, b=1)), one.tools.chat, model)
        child.tools = one.tools.fork("sums", allow=["plain__*"])
        assert await child.say("add") == "did plain__add"

        one.history = [{"role": "user", "content": "What was said so far, in short."}]
        if hasattr(one.tools, "compacted"):
            one.tools.compacted(one.history)
        fake.model.moves = [Move(text="I have what I had")]
        assert await one.say("and now?") == "I have what I had"
        loaded = one.tools.chat.surface().activation.names
        assert way in BRIDGED or set(loaded) <= set(fake.model.shown[-1].names)
        state, history, shown = one.tools.chat.state(), one.history, fake.model.shown[-1].names

    fake = FakeLLM([Move(text="back"), *_then(way, "approve contract of shelf 2", "hub__approve_contract_2", id=5)])
    async with board_of(tmp_path, source, process=True, max_active=4) as board:
        kind, model, reveal = WAYS[way]
        two = kind(fake, board.conversation("u", state=state, reveal=reveal), model)
        two.history = history
        assert await two.say("are you there?", reads=True) == "back"
        assert set(fake.model.shown[0].names) == set(shown)
        assert await two.say("approve it") == "did hub__approve_contract_2"
    assert source.calls[-1] == ("approve_contract_2", {"id": 5})
    assert [seen.refused for seen in fake.requests] == [""] * len(fake.requests)
