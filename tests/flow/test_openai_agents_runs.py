"""Whose loaded tools a run sees: runs at once, sessions, handoffs, agents as tools, restarts."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, RunState, SQLiteSession, function_tool

from pegboard import Pegboard
from pegboard.integrations.openai_agents import PegboardServer, run_approval
from pegboard.integrations.openai_agents.runs import UNKNOWN
from pegboard.testing import Move, Shown
from tests.flow.openai_agents_board import OWN, agent, forge, names, opened
from tests.flow.openai_agents_model import QUIET, PlayedModel, calls, says
from tests.loops import in_a_loop
from tests.servers import plain_command


def selects(*numbers: int) -> Move:
    return calls("search_tools", query="select:" + ",".join(f"forge__tool_{number}" for number in numbers))


def tool(*numbers: int) -> tuple[str, ...]:
    return tuple(f"forge__tool_{number}" for number in numbers)


class Meeting:
    """Has runs wait for each other in the middle of a turn, so that they really go on at once."""

    def __init__(self, parties: int) -> None:
        self._barrier = asyncio.Barrier(parties)

    def as_tool(self) -> Any:
        async def meet() -> str:
            """Waits for the others."""
            await asyncio.wait_for(self._barrier.wait(), 20)
            return "met"

        return function_tool(meet)


# ── runs at once ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("streamed", [False, True])
@in_a_loop
async def test_runs_of_one_agent_at_the_same_time_never_share_what_they_load(streamed: bool) -> None:
    async with opened() as board:
        server, meeting = PegboardServer(board), Meeting(8)
        models = [
            PlayedModel(selects(number), calls("meet"), calls(f"forge__tool_{number + 10}"), calls("meet"), says("ok"))
            for number in range(8)
        ]
        shared = agent(server, None, tools=[meeting.as_tool()])

        async def go(model: PlayedModel) -> None:
            config = RunConfig(tracing_disabled=True, model=server.model(model))
            if streamed:
                async for _ in Runner.run_streamed(shared, "go", run_config=config).stream_events():
                    pass
            else:
                await Runner.run(shared, "go", run_config=config)

        await asyncio.gather(*map(go, models))
    for number, model in enumerate(models):
        listed = [(*shown.names[:2], *(each for each in shown.names[2:] if each != "meet")) for shown in model.shown]
        found, called = tool(number), tool(number, number + 10)
        assert listed == [OWN, (*OWN, *found), (*OWN, *found), (*OWN, *called), (*OWN, *called)]


@in_a_loop
async def test_one_run_after_another_begins_with_nothing_loaded() -> None:
    async with opened() as board:
        server = PegboardServer(board)
        for number in (1, 2):
            model = PlayedModel(selects(number), says("ok"))
            await Runner.run(agent(server, model), "go", run_config=QUIET)
            assert names(model) == [(), tool(number)]


@in_a_loop
async def test_what_a_run_leaves_behind_goes_when_the_run_does() -> None:
    async with opened() as board:
        server = PegboardServer(board)

        async def once() -> weakref.ref[Any]:
            result = await Runner.run(agent(server, PlayedModel(selects(1), says("ok"))), "go", run_config=QUIET)
            return weakref.ref(result.context_wrapper)

        ended = await asyncio.create_task(once())
        await asyncio.sleep(0)
        gc.collect()
        assert ended() is None


# ── conversations that outlast a run ─────────────────────────────────────────────────────────────────────────────────


@in_a_loop
async def test_a_session_is_the_conversation_of_the_runs_that_are_bound_to_it() -> None:
    async with opened() as board:
        server = PegboardServer(board)
        ada, bob = SQLiteSession("ada"), SQLiteSession("bob")

        async def talk(session: SQLiteSession, *moves: Move) -> list[tuple[str, ...]]:
            model = PlayedModel(*moves)
            with server.conversation(session):
                await Runner.run(agent(server, model), "go", session=session, run_config=QUIET)
            return names(model)

        both = tuple(await asyncio.gather(talk(ada, selects(1), says("ok")), talk(bob, selects(2), says("ok"))))
        assert both == ([(), tool(1)], [(), tool(2)])
        assert await talk(ada, says("ok")) == [tool(1)]
        assert await talk(bob, selects(3), says("ok")) == [tool(2), tool(2, 3)]
        assert await talk(SQLiteSession("eve"), says("ok")) == [()]
        for session in (ada, bob):
            session.close()


@in_a_loop
async def test_a_streamed_run_keeps_its_conversation_after_the_block_it_was_started_in() -> None:
    async with opened() as board:
        server = PegboardServer(board)
        model = PlayedModel(selects(1), says("ok"))
        with server.conversation("ada"):
            stream = Runner.run_streamed(agent(server, model), "go", run_config=QUIET)
        async for _ in stream.stream_events():
            pass
        again = PlayedModel(says("ok"))
        with server.conversation("ada"):
            await Runner.run(agent(server, again), "go", run_config=QUIET)
        assert names(again) == [tool(1)]


@pytest.mark.parametrize("conversation", ["ada", lambda run: run.context["user"], lambda run: run.context["session"]])
@in_a_loop
async def test_a_conversation_is_a_key_or_what_a_function_of_the_run_gives(conversation: Any) -> None:
    async with opened() as board:
        server = PegboardServer(board, conversation=conversation)
        context = {"user": "ada", "session": SQLiteSession("ada")}
        for number, before in ((1, ()), (2, tool(1)), (3, tool(1, 2))):
            model = PlayedModel(selects(number), says("ok"))
            await Runner.run(agent(server, model), "go", context=context, run_config=QUIET)
            assert names(model)[0] == before
        context["session"].close()  # type: ignore[attr-defined]


@in_a_loop
async def test_a_function_that_names_no_conversation_leaves_the_run_on_its_own() -> None:
    async with opened() as board:
        server = PegboardServer(board, conversation=lambda run: run.context)
        for _ in range(2):
            model = PlayedModel(selects(1), says("ok"))
            await Runner.run(agent(server, model), "go", run_config=QUIET)
            assert names(model)[0] == ()


@in_a_loop
async def test_a_named_conversation_survives_a_restart_of_the_board(tmp_path: Path) -> None:
    store = {"cache_dir": str(tmp_path / "cache"), "state_dir": str(tmp_path / "state")}
    for before, number in (((), 1), (tool(1), 2), (tool(1, 2), 3)):
        async with Pegboard(sources=[forge()], settings={"surface": {"mode": "on"}, "store": store}) as board:
            await board.refresh()
            model = PlayedModel(selects(number), says("ok"))
            await Runner.run(agent(PegboardServer(board, conversation="ada"), model), "go", run_config=QUIET)
        assert set(names(model)[0]) == set(before)


# ── handoffs and agents as tools ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "begins"),
    [
        ({}, tool(1)),
        ({"inherit": False}, ()),
        ({"allow": ["forge__tool_2*"]}, ()),
        ({"inherit": False, "allow": ["forge__tool_1", "forge__tool_2*"]}, tool(1)),
    ],
)
@in_a_loop
async def test_a_handoff_begins_with_a_snapshot_and_is_independent_from_there_on(
    options: dict[str, Any], begins: tuple[str, ...]
) -> None:
    async with opened() as board:
        server = PegboardServer(board, conversation="ada")
        helper = PlayedModel(selects(22), calls("transfer_to_first"))
        second = agent(server.fork("second", **options), helper, "second")
        model = PlayedModel(selects(1), calls("transfer_to_second"), selects(3), says("ok"))
        first = agent(server, model, "first", handoffs=[second])
        second.handoffs.append(first)
        await Runner.run(first, "go", run_config=QUIET)
    here = [tuple(each for each in listed if "transfer" not in each) for listed in names(helper)]
    assert here == [begins, (*begins, *tool(22))]
    assert [each for each in names(model)[-1] if "transfer" not in each] == list(tool(1, 3))


@in_a_loop
async def test_the_next_run_of_a_conversation_may_begin_with_the_sub_agent_that_had_the_last_word() -> None:
    async with opened() as board:
        server = PegboardServer(board, conversation="ada")
        helper = PlayedModel(selects(22), says("here"), says("again"))
        second = agent(server.fork("second"), helper, "second")
        first = agent(server, PlayedModel(selects(1), calls("transfer_to_second")), "first", handoffs=[second])
        result = await Runner.run(first, "go", run_config=QUIET)
        assert result.last_agent is second
        await Runner.run(result.last_agent, "go on", run_config=QUIET)
    assert names(helper)[-1] == tool(1, 22)


@in_a_loop
async def test_an_agent_that_is_handed_to_with_the_same_server_goes_on_in_the_same_conversation() -> None:
    async with opened() as board:
        server = PegboardServer(board)
        helper = PlayedModel(says("ok"))
        model = PlayedModel(selects(1), calls("transfer_to_second"))
        await Runner.run(
            agent(server, model, "first", handoffs=[agent(server, helper, "second")]), "go", run_config=QUIET
        )
    assert names(helper) == [tool(1)]


@in_a_loop
async def test_what_a_sub_agent_may_not_use_it_neither_finds_nor_calls_nor_gets_by_forking_again() -> None:
    source = forge()
    async with opened(source) as board:
        server = PegboardServer(board)
        child = server.fork("child", allow=["forge__tool_2*"])
        grandchild = child.fork("grandchild", allow=["forge__*"])
        for each in (child, grandchild):
            model = PlayedModel(selects(1, 21), calls("forge__tool_1"), says("ok"))
            await Runner.run(agent(each, each.model(model)), "go", run_config=QUIET)
            assert names(model)[-1] == tool(21)
            assert "not among the tools that you may use" in model.outputs[1]
    assert source.calls == []


@pytest.mark.parametrize("forked", [False, True])
@in_a_loop
async def test_agents_as_tools_that_run_at_once_begin_with_a_snapshot_and_share_nothing(forked: bool) -> None:
    async with opened() as board:
        server, meeting = PegboardServer(board, conversation="ada"), Meeting(2)
        its = server.fork("helper") if forked else server
        shown: dict[str, list[Shown]] = {}

        def played(shown_now: Shown) -> Move:
            task = str(shown_now.messages[0]["content"])
            mine = shown.setdefault(task, [])
            mine.append(shown_now)
            return (selects(int(task)), calls("meet"), says("done"))[len(mine) - 1]

        helper = agent(its, PlayedModel(*[played] * 6), "helper", tools=[meeting.as_tool()])
        both = Move(calls=(("helper", {"input": "11"}), ("helper", {"input": "12"})))
        model = PlayedModel(selects(1), both, selects(3), says("ok"))
        await Runner.run(agent(server, model, tools=[helper.as_tool("helper", "Helps.")]), "go", run_config=QUIET)
    for task in ("11", "12"):
        listed = [tuple(each for each in one.names[2:] if each != "meet") for one in shown[task]]
        assert listed == [tool(1), tool(1, int(task)), tool(1, int(task))]
    assert [each for each in names(model)[-1] if each != "helper"] == list(tool(1, 3))


@in_a_loop
async def test_a_run_that_is_nested_in_one_without_our_server_begins_with_nothing_of_an_earlier_run() -> None:
    async with opened() as board:
        server = PegboardServer(board)
        await Runner.run(agent(server, PlayedModel(selects(1), says("ok"))), "go", run_config=QUIET)
        inner = PlayedModel(says("done"))
        helper = agent(server, inner, "helper")
        model = PlayedModel(calls("helper", input="x"), says("ok"))
        await Runner.run(
            Agent("outer", model=model, tools=[helper.as_tool("helper", "Helps.")]), "go", run_config=QUIET
        )
    assert names(inner) == [()]


# ── approvals ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def approved(run: Any, result: Any, starting: Agent[Any], *, by_way_of: str = "memory", yes: bool = True) -> Any:
    """Answers every question of a paused run, and lets it go on."""
    state = result.to_state()
    if by_way_of == "json":
        state = await RunState.from_json(starting, json.loads(json.dumps(state.to_json())))
    for question in state.get_interruptions():
        (state.approve if yes else state.reject)(question)
    return await Runner.run(starting, state, run_config=run)


@in_a_loop
async def test_looking_for_tools_and_reading_on_never_needs_approval() -> None:
    source = forge(results={"tool_1": {"content": [{"type": "text", "text": "word " * 40_000}]}})
    async with opened(source) as board:
        server = PegboardServer(board, require_approval="always")

        def reads(shown: Shown) -> Move:
            text = json.dumps(shown.messages[-1])
            handle = text.split("handle")[1].split('"')[1].strip("\\:= ") if "handle" in text else ""
            return calls("read_result", handle=handle or "x")

        model = PlayedModel(selects(1), calls("forge__tool_1"), reads, says("ok"))
        asking = agent(server, model)
        paused = await Runner.run(asking, "go", run_config=QUIET)
        assert [each.tool_name for each in paused.interruptions] == ["forge__tool_1"]
        assert source.calls == []
        result = await approved(QUIET, paused, asking)
    assert result.final_output == "ok"
    assert result.interruptions == []
    assert len(source.calls) == 1
    assert len(model.outputs) == 3


@pytest.mark.parametrize("by_way_of", ["memory", "json"])
@pytest.mark.parametrize("first", ["found", "unlisted"])
@pytest.mark.parametrize("yes", [True, False])
@in_a_loop
async def test_a_tool_that_the_boards_configuration_wants_approved_waits_for_the_frameworks_approval(
    by_way_of: str, first: str, yes: bool
) -> None:
    source = forge()
    async with opened(source, calls={"approve": ["*delete*"]}, approve=run_approval) as board:
        # Who goes on with a run in another process has to be able to tell which conversation it was in.
        server = PegboardServer(board, conversation="ada")
        finding = [calls("search_tools", query="select:forge__delete_repository")] if first == "found" else []
        model = PlayedModel(*finding, calls("forge__tool_1"), calls("forge__delete_repository"), says("ok"))
        asking = agent(server, server.model(model))
        paused = await Runner.run(asking, "go", run_config=QUIET)
        assert [each.tool_name for each in paused.interruptions] == ["forge__delete_repository"]
        assert [name for name, _ in source.calls] == ["tool_1"]
        result = await approved(QUIET, paused, asking, by_way_of=by_way_of, yes=yes)
        assert result.final_output == "ok"
    assert ("delete_repository" in [name for name, _ in source.calls]) is yes


@in_a_loop
async def test_a_run_of_its_own_goes_on_after_an_approval_with_what_it_had_loaded() -> None:
    source = forge()
    async with opened(source) as board:
        server = PegboardServer(board, require_approval={"forge__tool_2": "always"})
        model = PlayedModel(selects(1, 2), calls("forge__tool_2"), selects(3), says("ok"))
        asking = agent(server, model)
        paused = await Runner.run(asking, "go", run_config=QUIET)
        await approved(QUIET, paused, asking)
    assert names(model)[-1] == tool(1, 2, 3)
    assert [name for name, _ in source.calls] == ["tool_2"]


@in_a_loop
async def test_after_an_approval_unlisted_calls_and_agents_as_tools_work_as_before() -> None:
    source = forge()
    async with opened(source) as board:
        server = PegboardServer(board, require_approval={"forge__tool_2": "always"})
        inner = PlayedModel(says("done"))
        helper = agent(server, inner, "helper").as_tool("helper", "Helps.")
        moves = [selects(2), calls("forge__tool_2"), calls("forge__tool_3"), calls("helper", input="x"), says("ok")]
        model = PlayedModel(*moves)
        asking = agent(server, model, tools=[helper])
        config = server.run_config(QUIET)
        await approved(config, await Runner.run(asking, "go", run_config=config), asking)
    assert "forge__tool_3 was not on your list of tools. Loaded" in model.outputs[2]
    assert names(inner) == [tool(2, 3)]


@pytest.mark.parametrize(
    ("policy", "asked"),
    [
        ("always", True),
        ("never", False),
        ({"forge__delete_repository": "always"}, True),
        ({"forge__tool_1": "always"}, False),
        ({"always": {"tool_names": ["forge__delete_repository"]}}, True),
        (lambda _run, _agent, tool: tool.name == "forge__delete_repository", True),
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        calls("call_tool", name="forge__delete_repository"),
        calls("call_tool", name="delete_repository"),
        calls("call_tool", name="forge.Delete-Repository"),
        calls("batch_tools", calls=[{"name": "forge__tool_2"}, {"name": "forge__delete_repository"}]),
        calls("batch_tools", calls='[{"name": "forge__delete_repository"}]'),
        calls("call_tool", Name="forge__delete_repository"),
        calls("call_tool", name="batch_tools", arguments={"calls": [{"name": "forge__delete_repository"}]}),
    ],
    ids=["by name", "bare", "misspelt", "batch", "batch as text", "other case", "batch in a call"],
)
@in_a_loop
async def test_what_call_tool_calls_is_what_needs_approval(policy: Any, asked: bool, call: Move) -> None:
    source = forge()
    async with opened(source) as board:
        server = PegboardServer(board, reveal="called", require_approval=policy)
        asking = agent(server, PlayedModel(call, says("ok")))
        result = await Runner.run(asking, "go", run_config=QUIET)
        assert bool(result.interruptions) is asked
        assert ("delete_repository" in [name for name, _ in source.calls]) is not asked
        if asked:
            await approved(QUIET, result, asking)
    assert [name for name, _ in source.calls][-1] == "delete_repository"


@pytest.mark.parametrize("name", ["delete_repository", "forge.Delete-Repository"])
@in_a_loop
async def test_a_call_under_another_name_than_the_lists_is_not_a_way_around_approval(name: str) -> None:
    source = forge()
    async with opened(source, calls={"approve": ["*delete*"]}, approve=run_approval) as board:
        server = PegboardServer(board)
        model = PlayedModel(calls(name), calls("forge__delete_repository"), says("ok"))
        asking = agent(server, server.model(model))
        paused = await Runner.run(asking, "go", run_config=QUIET)
        assert [each.tool_name for each in paused.interruptions] == ["forge__delete_repository"]
        assert source.calls == []
        await approved(QUIET, paused, asking)
    assert "needs the approval of a person" in model.outputs[0]
    assert [each for each, _ in source.calls] == ["delete_repository"]


@pytest.mark.parametrize(("policy", "asked"), [("always", True), ("never", False)])
@in_a_loop
async def test_a_name_that_nobody_knows_yet_may_be_that_of_a_tool_that_needs_approval(policy: str, asked: bool) -> None:
    async with opened() as board:
        server = PegboardServer(board, reveal="called", require_approval={"forge__not_listed_yet": policy})
        model = PlayedModel(calls("call_tool", name="not-listed-yet"), says("ok"))
        result = await Runner.run(agent(server, model), "go", run_config=QUIET)
    assert bool(result.interruptions) is asked


ECHO = {"text": "hello"}


@pytest.mark.parametrize("call", [calls("far__echo", **ECHO), calls("call_tool", name="far__echo", arguments=ECHO)])
@pytest.mark.parametrize("policy", [None, {"far__echo": "always"}], ids=["board", "server"])
@in_a_loop
async def test_a_tool_of_a_server_that_was_never_asked_is_not_called_before_somebody_was(
    call: Move, policy: Any, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    program, *rest = plain_command("--log", str(log))
    settings = {
        "surface": {"mode": "on"},
        "store": {"cache_dir": str(tmp_path), "state_dir": str(tmp_path)},
        "gateway": {"background_refresh": False},
        "calls": {} if policy else {"approve": ["*echo"]},
    }
    servers = {"far": {"command": program, "args": rest}}
    async with Pegboard(servers=servers, settings=settings, approve=run_approval) as board:
        assert not board.catalog.tools
        server = PegboardServer(board, require_approval=policy)
        model = PlayedModel(call, calls("far__echo", **ECHO), says("ok"))
        asking = agent(server, server.model(model))
        result = await Runner.run(asking, "go", run_config=QUIET)
        assert not log.exists() or "tools/call" not in log.read_text()
        assert [each.tool_name for each in result.interruptions] == ["far__echo"]
        while result.interruptions:
            result = await approved(QUIET, result, asking)
    assert result.final_output == "ok"
    assert "tools/call echo" in log.read_text()


@pytest.mark.parametrize(("way", "by_way_of"), [("handoff", "memory"), ("handoff", "json"), ("tool", "memory")])
@in_a_loop
async def test_a_sub_agent_can_be_paused_for_an_approval_and_goes_on_with_what_it_had_loaded(
    way: str, by_way_of: str
) -> None:
    source = forge()
    async with opened(source, calls={"approve": ["*delete*"]}, approve=run_approval) as board:
        server = PegboardServer(board, conversation="ada" if by_way_of == "json" else None)
        child = server.fork("helper")
        inner = PlayedModel(selects(5), calls("forge__delete_repository"), says("deleted"))
        helper = agent(child, child.model(inner), "helper")
        if way == "handoff":
            outer = agent(server, PlayedModel(selects(1), calls("transfer_to_helper")), handoffs=[helper])
        else:
            script = PlayedModel(selects(1), calls("helper", input="x"), says("deleted"))
            outer = agent(server, script, tools=[helper.as_tool("helper", "Helps.")])
        paused = await Runner.run(outer, "go", run_config=QUIET)
        assert [each.tool_name for each in paused.interruptions] == ["forge__delete_repository"]
        assert source.calls == []
        result = await approved(QUIET, paused, outer, by_way_of=by_way_of)
    assert result.final_output == "deleted"
    assert names(inner)[-1] == (*tool(1, 5), "forge__delete_repository")
    assert [name for name, _ in source.calls] == ["delete_repository"]


@in_a_loop
async def test_without_run_approval_the_board_refuses_what_nobody_told_it_was_approved() -> None:
    source = forge()
    async with opened(source, calls={"approve": ["*delete*"]}) as board:
        server = PegboardServer(board)
        model = PlayedModel(calls("forge__delete_repository"), says("ok"))
        asking = agent(server, server.model(model))
        await approved(QUIET, await Runner.run(asking, "go", run_config=QUIET), asking)
    assert "nobody can be asked here" in model.outputs[0]
    assert source.calls == []


@in_a_loop
async def test_a_call_is_approved_only_if_the_framework_could_ask_about_it() -> None:
    source = forge()
    async with opened(source, calls={"approve": ["*delete*"]}, approve=run_approval) as board:
        refused = await board.conversation("ada").call("forge__delete_repository")
        assert refused.is_error
        direct = await PegboardServer(board).call_tool("forge__delete_repository", {})
        assert direct.model_dump()["is_error"]
        server = PegboardServer(board)
        mark = (await server.list_tools())[0].meta or {}
        too_early = await server.call_tool("forge__delete_repository", {}, meta={**mark, UNKNOWN: True})
        assert too_early.model_dump()["is_error"]
        assert source.calls == []
        await server.call_tool("forge__delete_repository", {}, meta=mark)
        assert len(source.calls) == 1
