"""Pegboard inside Pydantic AI: what a model is shown, what it may call without being shown it, and what a run keeps."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import BinaryContent, ModelMessage, ModelMessagesTypeAdapter, ModelRequest, ToolReturnPart
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import Tool, ToolDenied
from pydantic_ai.usage import RunUsage

from pegboard import Pegboard
from pegboard.integrations.pydantic_ai import PegboardCapability, PegboardToolset, run_approval
from pegboard.testing import FakeSource, Move, ScriptedModel, Shown, tool_definition
from pegboard.types import CallContext, Json
from tests.flow.pydantic_ai_model import model_of, results
from tests.loops import in_a_loop

NUMBER = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
OWN = ("search_tools", "read_result")


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What boards keep is kept in the test's own folder."""
    for variable in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))


def shop(count: int = 60, **options: Any) -> FakeSource:
    """A shop with many tools that nobody needs, and two that somebody does."""
    fillers = [
        tool_definition(f"count_{number}", f"Counts the boxes on shelf {number}.", inputSchema=NUMBER)
        for number in range(count)
    ]
    needed = [
        tool_definition("send_invoice", "Sends an invoice to a customer.", inputSchema=NUMBER),
        tool_definition("delete_customer", "Deletes a customer for ever.", inputSchema=NUMBER),
    ]
    return FakeSource("shop", [*needed, *fillers], **options)


def board_of(*sources: FakeSource, folder: Path | None = None, **tables: Any) -> Pegboard:
    """A board that defers; with a folder, one that remembers."""
    kept: Json = {"record": {"enabled": False}} if folder is None else {"store": {"state_dir": str(folder)}}
    settings = {"surface": {"mode": "on"}, "search": {"embedder": "none"}, **kept, **tables}
    approve = run_approval if "calls" in tables else None
    return Pegboard(sources=sources or (shop(),), settings=settings, approve=approve)


def calls(*names: str | tuple[str, Json]) -> Move:
    """A turn in which these are called; where it is not said how, with a number."""
    return Move(calls=tuple((each, {"number": 1}) if isinstance(each, str) else each for each in names))


def search(query: str) -> Move:
    return calls(("search_tools", {"query": query}))


def names(script: ScriptedModel) -> list[tuple[str, ...]]:
    """What was listed in each request, but for Pegboard's own tools."""
    return [tuple(name for name in shown.names if name not in OWN) for shown in script.shown]


def agent_of(script: ScriptedModel, board: Pegboard, **options: Any) -> Agent[Any, Any]:
    return Agent(model_of(script), capabilities=[PegboardCapability(board, **options)], retries=0, deps_type=object)


# ── what is listed, and what runs without being listed ───────────────────────────────────────────────────────────────


@in_a_loop
async def test_a_tool_is_listed_once_it_is_found_and_comes_last() -> None:
    source = shop()
    async with board_of(source, surface={"mode": "on", "pinned": ["shop__count_3"]}) as board:
        script = ScriptedModel([search("send an invoice to a customer"), calls("shop__send_invoice")])
        run = await agent_of(script, board).run("bill her")
    assert run.output == "done"
    assert script.shown[0].names == (*OWN, "shop__count_3")
    assert script.shown[1].names[:3] == script.shown[0].names
    assert script.shown[1].names[3] == "shop__send_invoice"
    assert script.shown[2].names == script.shown[1].names
    assert source.calls == [("send_invoice", {"number": 1})]


@in_a_loop
async def test_a_listed_tool_has_the_schema_its_server_gave_it() -> None:
    async with board_of() as board:
        script = ScriptedModel([search("select:shop__send_invoice")])
        await agent_of(script, board).run("bill her")
    [listed] = [each for each in script.shown[1].tools if each["name"] == "shop__send_invoice"]
    assert listed["inputSchema"] == NUMBER
    assert listed["description"] == "Sends an invoice to a customer."


@pytest.mark.parametrize("way", ["run", "run_stream", "iter"])
@in_a_loop
async def test_a_tool_that_nobody_searched_for_runs_and_is_listed_from_then_on(way: str) -> None:
    source = shop()
    async with board_of(source) as board:
        script = ScriptedModel([calls("shop__count_7"), calls("shop__count_7")])
        agent = agent_of(script, board)
        if way == "run":
            await agent.run("count")
        elif way == "run_stream":
            async with agent.run_stream("count") as streamed:
                assert await streamed.get_output() == "done"
        else:
            async with agent.iter("count") as steps:
                async for _ in steps:
                    pass
    assert source.calls == [("count_7", {"number": 1})] * 2
    assert names(script) == [(), ("shop__count_7",), ("shop__count_7",)]


@in_a_loop
async def test_a_bare_name_and_another_spelling_run_too() -> None:
    source = shop()
    async with board_of(source) as board:
        script = ScriptedModel([calls("count_7", "Shop.Count-8")])
        await agent_of(script, board).run("count")
    assert [name for name, _ in source.calls] == ["count_7", "count_8"]
    assert set(names(script)[1]) == {"shop__count_7", "shop__count_8"}


@in_a_loop
async def test_a_name_that_does_not_exist_is_answered_with_what_is_near_and_ends_nothing() -> None:
    def get_wether() -> str:
        return "sunny"

    async with board_of() as board:
        script = ScriptedModel([calls("shop__send_invoic", "get_weather"), calls("nonsense"), calls("nonsense")])
        agent = agent_of(script, board)
        agent.tool_plain(get_wether)
        run = await agent.run("bill her")
    assert run.output == "done"
    answered = results(run.all_messages())
    assert [ending for _, _, ending in answered] == ["failed"] * 4
    assert "shop__send_invoice" in answered[0][1]
    assert "get_wether" in answered[1][1]


@in_a_loop
async def test_wrong_arguments_come_back_as_words_and_spend_no_retries() -> None:
    source = shop()
    async with board_of(source) as board:
        wrong = calls(("shop__send_invoice", {"customer": "Ada"}))
        script = ScriptedModel([wrong, wrong, wrong, calls(("shop__send_invoice", {"number": "7"}))])
        run = await agent_of(script, board).run("bill her")
    answered = results(run.all_messages())
    assert [ending for _, _, ending in answered] == ["failed", "failed", "failed", "success"]
    assert "number is missing" in answered[0][1]
    assert source.calls == [("send_invoice", {"number": 7})]  # text that means a number is one


@in_a_loop
async def test_the_toolset_alone_lists_and_runs_and_leaves_unknown_names_to_the_framework() -> None:
    source = shop()
    async with board_of(source) as board:
        script = ScriptedModel([search("select:shop__count_7"), calls("shop__count_7"), calls("shop__count_8")])
        agent = Agent(model_of(script), toolsets=[PegboardToolset(board)], retries=1)
        run = await agent.run("count")
    assert [name for name, _ in source.calls] == ["count_7"]
    refusal = run.all_messages()[-2].parts[0]
    assert "Unknown tool name" in str(refusal)
    assert "search_tools" in str(refusal)  # it names what is listed, the search among it


@in_a_loop
async def test_with_a_prefix_around_it_unlisted_names_still_run() -> None:
    source = shop()
    async with board_of(source) as board:
        script = ScriptedModel([calls("pb_shop__count_7", "pb_count_8", "pb_nothing"), calls("pb_shop__count_7")])
        tools = PegboardCapability(PegboardToolset(board).prefixed("pb"))
        run = await Agent(model_of(script), capabilities=[tools], retries=0).run("count")
    assert [name for name, _ in source.calls] == ["count_7", "count_8", "count_7"]
    assert script.shown[1].names == ("pb_search_tools", "pb_read_result", "pb_shop__count_7", "pb_shop__count_8")
    assert [ending for _, _, ending in results(run.all_messages())] == ["success", "success", "failed", "success"]


@in_a_loop
async def test_renamed_it_goes_beside_tools_that_the_framework_itself_defers() -> None:
    def paint_the_fence() -> str:
        return "painted"

    async with board_of() as board:
        plain = Agent(model_of(ScriptedModel()), tools=[Tool(paint_the_fence, defer_loading=True)],
                      capabilities=[PegboardCapability(board)])  # fmt: skip
        with pytest.raises(UserError, match="search_tools"):
            await plain.run("paint")
        script = ScriptedModel([calls(("find_tools", {"query": "select:shop__count_7"}))])
        toolset = PegboardToolset(board).renamed({"find_tools": "search_tools"})
        agent = Agent(model_of(script), tools=[Tool(paint_the_fence, defer_loading=True)],
                      capabilities=[PegboardCapability(toolset)])  # fmt: skip
        await agent.run("paint")
    assert "shop__count_7" in script.shown[1].names
    assert script.shown[0].names[:2] == ("find_tools", "read_result")


@in_a_loop
async def test_the_agents_own_tools_and_its_output_tool_stay_where_they_are() -> None:
    class Bill(BaseModel):
        total: int

    def add(one: int, other: int) -> int:
        return one + other

    async with board_of() as board:
        script = ScriptedModel(
            [calls(("add", {"one": 1, "other": 2})), calls("shop__count_7"), calls(("final_result", {"total": 3}))]
        )
        agent = Agent(model_of(script), tools=[add], output_type=Bill, capabilities=[PegboardCapability(board)])
        run = await agent.run("add")
    assert run.output == Bill(total=3)
    assert [shown.names[0] for shown in script.shown] == ["add"] * 3


@in_a_loop
async def test_two_boards_in_one_agent_each_answer_for_their_own_tools() -> None:
    farm = FakeSource("farm", [tool_definition(f"feed_{number}", "Feeds an animal.") for number in range(40)])
    source = shop()
    async with board_of(source) as one, board_of(farm) as other:
        script = ScriptedModel([calls(("b_feed_7", {}), "shop__count_7")])
        tools = [
            PegboardCapability(one, id="one"),
            PegboardCapability(PegboardToolset(other, id="other").prefixed("b"), id="other"),
        ]
        run = await Agent(model_of(script), capabilities=tools).run("feed")
    assert [ending for _, _, ending in results(run.all_messages())] == ["success", "success"]
    assert farm.calls == [("feed_7", {})]
    assert source.calls == [("count_7", {"number": 1})]


@in_a_loop
async def test_a_board_with_few_tools_lists_them_all_and_adds_nothing() -> None:
    source = FakeSource("farm", [tool_definition(name, f"Does {name}.") for name in ("feed", "milk", "shear")])
    async with Pegboard(sources=[source], settings={"record": {"enabled": False}}) as board:
        script = ScriptedModel([calls(("farm__milk", {}))])
        await agent_of(script, board).run("milk")
    assert [shown.names for shown in script.shown] == [("farm__feed", "farm__milk", "farm__shear")] * 2
    assert script.shown[0].system == ""
    assert source.calls == [("milk", {})]


@in_a_loop
async def test_the_frameworks_own_test_model_can_call_what_it_is_shown() -> None:
    async with board_of() as board:
        model = TestModel()
        run = await Agent(model, capabilities=[PegboardCapability(board)], retries=0).run("try everything")
    assert [(name, ending) for name, _, ending in results(run.all_messages())] == [
        ("search_tools", "success"),
        ("read_result", "failed"),  # there is no such handle
    ]


@in_a_loop
async def test_a_tool_that_joins_the_board_in_the_middle_of_a_run_can_be_found_and_called() -> None:
    async with board_of() as board:

        def join(_: Shown) -> Move:
            board.tool(polish_the_silver)
            return calls(("polish_the_silver", {}))

        def polish_the_silver() -> str:
            """Polishes the silver."""
            return "it shines"

        run = await agent_of(ScriptedModel([search("select:shop__count_1"), join]), board).run("polish")
    assert results(run.all_messages())[-1] == ("polish_the_silver", "it shines", "success")


@in_a_loop
async def test_called_leaves_the_list_as_it_is() -> None:
    source = shop()
    async with board_of(source) as board:
        script = ScriptedModel(
            [
                search("send an invoice"),
                calls(("call_tool", {"name": "shop__send_invoice", "arguments": {"number": 1}})),
            ]
        )
        await agent_of(script, board, reveal="called").run("bill her")
    assert len({shown.names for shown in script.shown}) == 1
    assert source.calls == [("send_invoice", {"number": 1})]


@in_a_loop
async def test_without_the_search_nothing_is_deferred() -> None:
    async with board_of() as board:
        script = ScriptedModel()
        await agent_of(script, board, search=False).run("count")
    assert len(script.shown[0].names) == 62
    assert not set(OWN) & set(script.shown[0].names)
    assert script.shown[0].system == ""


@in_a_loop
async def test_the_guidance_is_in_the_instructions_and_the_same_in_every_request() -> None:
    async with board_of() as board:
        script = ScriptedModel([search("send an invoice"), calls("shop__count_7")])
        await agent_of(script, board).run("bill her")
        silent = ScriptedModel()
        await agent_of(silent, board, instructions=False).run("bill her")
    assert len({shown.system for shown in script.shown}) == 1
    assert "search_tools" in script.shown[0].system
    assert silent.shown[0].system == ""


@in_a_loop
async def test_where_a_model_takes_tools_in_the_conversation_the_list_is_never_touched() -> None:
    async with board_of() as board:
        script = ScriptedModel([search("send an invoice"), calls("shop__count_7"), calls("shop__count_8")])
        model = model_of(script, profile={"tool_addition_mode": "with_definitions"})
        await Agent(model, capabilities=[PegboardCapability(board)]).run("bill her")
    assert {shown.names for shown in script.shown} == {OWN}


# ── what a tool gives back ───────────────────────────────────────────────────────────────────────────────────────────


@in_a_loop
async def test_pictures_come_as_files_and_text_between_them_as_text() -> None:
    picture = base64.b64encode(b"\x89PNG").decode()
    blocks = [
        {"type": "text", "text": "before"},
        {"type": "image", "data": picture, "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "f:///x", "mimeType": "application/zip", "blob": picture}},
        {"type": "resource_link", "name": "more", "uri": "https://example.com/more"},
    ]
    source = shop(results={"count_7": {"content": blocks}})
    async with board_of(source) as board:
        run = await agent_of(ScriptedModel([calls("shop__count_7")]), board).run("look")
    [(_, content, _)] = results(run.all_messages())
    assert content[0] == "before"
    assert isinstance(content[1], BinaryContent)
    assert (content[1].data, content[1].media_type) == (b"\x89PNG", "image/png")
    assert "application/zip" in content[2]
    assert "https://example.com/more" in content[3]


@in_a_loop
async def test_structured_content_is_for_the_program_and_text_for_the_model() -> None:
    result: Json = {"content": [{"type": "text", "text": "three boxes"}], "structuredContent": {"boxes": 3}}
    async with board_of(shop(results={"count_7": result})) as board:
        run = await agent_of(ScriptedModel([calls("shop__count_7")]), board).run("count")
    [part] = [part for message in run.all_messages() for part in message.parts if isinstance(part, ToolReturnPart)]
    assert part.content == "three boxes"
    assert part.metadata["structured_content"] == {"boxes": 3}


@in_a_loop
async def test_a_run_that_is_cancelled_cancels_the_call() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def forever(_: Json, __: CallContext) -> Json:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return {}

    async with board_of(shop(results={"count_7": forever})) as board:
        task = asyncio.create_task(agent_of(ScriptedModel([calls("shop__count_7")]), board).run("count"))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await ended.wait()


# ── conversations ────────────────────────────────────────────────────────────────────────────────────────────────────


@in_a_loop
async def test_runs_of_one_agent_at_once_share_nothing() -> None:
    async with board_of() as board:

        async def one(number: int) -> ScriptedModel:
            script = ScriptedModel([calls(f"shop__count_{number}"), calls(f"shop__count_{number}")])
            await agent.run("count", model=model_of(script))
            return script

        agent = agent_of(ScriptedModel(), board)
        finished = await asyncio.gather(*(one(number) for number in range(12)))
    for number, script in enumerate(finished):
        assert names(script)[2] == (f"shop__count_{number}",)


@in_a_loop
async def test_a_run_that_goes_on_from_messages_has_what_they_loaded_and_a_new_one_does_not() -> None:
    async with board_of() as board:
        first = await agent_of(ScriptedModel([calls("shop__count_7")]), board).run("count")
        script, other = ScriptedModel(), ScriptedModel()
        await agent_of(script, board).run("again", message_history=first.all_messages())
        await agent_of(other, board).run("again")
    assert names(script) == [("shop__count_7",)]
    assert names(other) == [()]


@dataclass
class User:
    name: str
    may: tuple[str, ...] = ("*",)


@in_a_loop
async def test_the_key_and_the_allowlist_can_come_from_the_runs_dependencies() -> None:
    async with board_of() as board:

        async def run(user: User, script: ScriptedModel) -> list[ModelMessage]:
            agent = agent_of(script, board, conversation=lambda ctx: ctx.deps.name, allow=lambda ctx: ctx.deps.may)
            return (await agent.run("count", deps=user)).all_messages()

        await run(User("ada"), ScriptedModel([calls("shop__count_7")]))
        again, bound = ScriptedModel(), ScriptedModel([calls("shop__count_7")])
        await run(User("ada"), again)
        refused = await run(User("bob", may=("*invoice*",)), bound)
    assert names(again) == [("shop__count_7",)]
    assert [ending for _, _, ending in results(refused)] == ["failed"]
    assert "shop__count_7" not in bound.shown[1].names


@in_a_loop
async def test_a_factory_may_choose_the_board_by_who_asks() -> None:
    farm = FakeSource("farm", [tool_definition(f"feed_{number}", "Feeds an animal.") for number in range(40)])
    async with board_of(farm) as ada, board_of() as bob:
        boards = {"ada": PegboardToolset(ada), "bob": PegboardToolset(bob)}

        def chosen(ctx: RunContext[User]) -> PegboardToolset:
            return boards[ctx.deps.name]

        script = ScriptedModel([search("select:farm__feed_3"), calls(("farm__feed_3", {}))])
        agent = Agent(model_of(script), deps_type=User)
        agent.toolset(chosen, id="pegboard", per_run_step=False)  # type: ignore[call-overload]
        await agent.run("feed", deps=User("ada"))
    assert names(script)[1] == ("farm__feed_3",)
    assert farm.calls == [("feed_3", {})]


@in_a_loop
async def test_a_toolset_that_was_bound_to_no_run_finds_the_conversation_by_itself() -> None:
    """As durable execution uses it, in a process that has nothing but the run's context."""
    source = shop()
    async with board_of(source) as board:

        def context() -> RunContext[Any]:
            return RunContext(deps=None, model=TestModel(), usage=RunUsage(), conversation_id="ada", run_id="1")

        toolset = PegboardToolset(board)
        [listed] = [tool for name, tool in (await toolset.get_tools(context())).items() if name == "search_tools"]
        rebuilt = await toolset.get_tool_for_tool_def(listed.tool_def, context())
        await toolset.call_tool("search_tools", {"query": "select:shop__count_7"}, context(), rebuilt)
        assert "shop__count_7" in await PegboardToolset(board).get_tools(context())


@in_a_loop
async def test_what_is_loaded_outlives_the_board_in_its_store(tmp_path: Path) -> None:
    async with board_of(folder=tmp_path) as board:
        await agent_of(ScriptedModel([calls("shop__count_7")]), board, conversation="ada").run("count")
    script = ScriptedModel()
    async with board_of(folder=tmp_path) as board:
        await agent_of(script, board, conversation="ada").run("again")
    assert names(script) == [("shop__count_7",)]


def through_json(messages: Iterable[ModelMessage]) -> list[ModelMessage]:
    """As a program keeps them between two requests."""
    return ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(list(messages)))


@in_a_loop
async def test_messages_bring_along_what_was_loaded_to_a_board_that_knows_nothing_of_them() -> None:
    async with board_of() as board:
        script = ScriptedModel([calls("shop__count_7", "shop__count_8"), calls("shop__count_9")])
        run = await agent_of(script, board, state="messages").run("count")
    kept = through_json(run.all_messages())
    everything, early = ScriptedModel(), ScriptedModel()
    async with board_of() as board:
        await agent_of(everything, board, state="messages").run("again", message_history=kept)
        await agent_of(early, board, state="messages").run("again", message_history=kept[:3])
    assert set(names(everything)[0]) == {"shop__count_7", "shop__count_8", "shop__count_9"}
    assert set(names(early)[0]) == {"shop__count_7", "shop__count_8"}  # back to an earlier point is back to its tools


@in_a_loop
async def test_two_branches_of_one_history_do_not_change_each_others_list() -> None:
    gate = asyncio.Barrier(2)

    async def meet(_: Json, __: CallContext) -> Json:
        await gate.wait()
        return {"content": []}

    source = shop(results={"count_2": meet, "count_3": meet})
    async with board_of(source) as board:
        options: Any = {"state": "messages"}
        kept = (await agent_of(ScriptedModel([calls("shop__count_1")]), board, **options).run("count")).all_messages()

        async def branch(number: int) -> tuple[str, ...]:
            script = ScriptedModel([calls(f"shop__count_{number}"), calls(f"shop__count_{number}")])
            await agent_of(script, board, **options).run("go on", message_history=kept)
            return names(script)[2]

        assert list(await asyncio.gather(branch(2), branch(3))) == [
            ("shop__count_1", "shop__count_2"),
            ("shop__count_1", "shop__count_3"),
        ]


@in_a_loop
async def test_a_history_that_was_summarised_keeps_what_is_loaded() -> None:
    def summarised(messages: list[ModelMessage]) -> list[ModelMessage]:
        return [ModelRequest.user_text_prompt("They counted the boxes.")]

    async with board_of() as board:
        first = await agent_of(ScriptedModel([calls("shop__count_7")]), board, state="messages").run("count")
        script = ScriptedModel()
        await agent_of(script, board, state="messages").run(
            "again", message_history=summarised(first.all_messages()), conversation_id=first.conversation_id
        )
    assert names(script) == [("shop__count_7",)]


@in_a_loop
async def test_messages_that_somebody_forged_load_nothing_that_may_not_be_used() -> None:
    async with board_of() as board:
        forged = (
            await agent_of(ScriptedModel([calls("shop__delete_customer")]), board, state="messages").run("delete")
        ).all_messages()
        bound, broken = ScriptedModel([calls("shop__delete_customer")]), ScriptedModel()
        run = await agent_of(bound, board, state="messages", allow=["*count*"]).run("go on", message_history=forged)
        for message in forged:
            for part in message.parts:
                if isinstance(part, ToolReturnPart):
                    part.metadata = {"pegboard": {"toolset": "pegboard", "state": "no state at all"}}
        await agent_of(broken, board, state="messages").run("go on", message_history=forged)
    assert names(bound) == [(), ()]
    assert results(run.new_messages())[0][2] == "failed"
    assert names(broken) == [()]


# ── approval ─────────────────────────────────────────────────────────────────────────────────────────────────────────

APPROVE = {"approve": ["*delete*"]}


def careful(script: ScriptedModel, board: Pegboard, **options: Any) -> Agent[Any, Any]:
    tools = PegboardCapability(board, **options)
    return Agent(model_of(script), capabilities=[tools], output_type=[str, DeferredToolRequests], retries=0)


@in_a_loop
async def test_a_call_that_needs_approval_waits_for_it_and_runs_when_it_comes() -> None:
    source = shop()
    async with board_of(source, calls=APPROVE) as board:
        script = ScriptedModel([search("delete a customer"), calls("shop__delete_customer")])
        agent = careful(script, board)
        waiting = await agent.run("delete her")
        assert isinstance(waiting.output, DeferredToolRequests)
        [call] = waiting.output.approvals
        assert source.calls == []
        assert waiting.output.metadata[call.tool_call_id] == {
            "tool": "shop__delete_customer",
            "arguments": {"number": 1},
        }
        agreed = DeferredToolResults(approvals={call.tool_call_id: True})
        run = await agent.run(message_history=waiting.all_messages(), deferred_tool_results=agreed)
    assert run.output == "done"
    assert source.calls == [("delete_customer", {"number": 1})]


@in_a_loop
async def test_a_call_without_a_search_that_needs_approval_runs_in_another_process_once_it_is_approved() -> None:
    source = shop()
    async with board_of(calls=APPROVE) as board:
        prefixed = PegboardCapability(PegboardToolset(board).prefixed("pb"))
        agent = Agent(
            model_of(ScriptedModel([calls("pb_shop__delete_customer")])),
            capabilities=[prefixed],
            output_type=[str, DeferredToolRequests],
        )
        waiting = await agent.run("delete her")
    assert isinstance(waiting.output, DeferredToolRequests)
    [call] = waiting.output.approvals
    kept = through_json(waiting.all_messages())
    async with board_of(source, calls=APPROVE) as board:
        agent = Agent(
            model_of(ScriptedModel()),
            capabilities=[PegboardCapability(PegboardToolset(board).prefixed("pb"))],
            output_type=[str, DeferredToolRequests],
        )
        agreed = DeferredToolResults(approvals={call.tool_call_id: True})
        await agent.run(message_history=kept, deferred_tool_results=agreed)
    assert source.calls == [("delete_customer", {"number": 1})]


@in_a_loop
async def test_a_call_that_is_denied_never_runs() -> None:
    source = shop()
    async with board_of(source, calls=APPROVE) as board:
        agent = careful(ScriptedModel([calls("shop__delete_customer")]), board)
        waiting = await agent.run("delete her")
        assert isinstance(waiting.output, DeferredToolRequests)
        denied = DeferredToolResults(approvals={waiting.output.approvals[0].tool_call_id: ToolDenied("no")})
        run = await agent.run(message_history=waiting.all_messages(), deferred_tool_results=denied)
    assert run.output == "done"
    assert source.calls == []


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("delete_customer", {"number": 1}),
        ("Shop.Delete-Customer", {"number": 1}),
        ("batch_tools", {"calls": [{"name": "shop__delete_customer", "arguments": {"number": 1}}]}),
        ("call_tool", {"Name": "delete_customer", "arguments": '{"number": 1}'}),
    ],
)
@in_a_loop
async def test_no_other_way_to_call_it_gets_round_the_approval(name: str, arguments: Json) -> None:
    source = shop()
    async with board_of(source, calls=APPROVE) as board:
        await careful(ScriptedModel([calls((name, arguments))]), board, reveal="called").run("delete her")
    assert source.calls == []


@in_a_loop
async def test_a_batch_runs_what_needs_no_approval_and_only_once() -> None:
    source = shop()
    both = [{"name": name, "arguments": {"number": 1}} for name in ("shop__count_7", "shop__delete_customer")]
    async with board_of(source, calls=APPROVE) as board:
        script = ScriptedModel([calls(("batch_tools", {"calls": both}))])
        run = await careful(script, board, reveal="called").run("delete her")
    assert run.output == "done"
    assert source.calls == [("count_7", {"number": 1})]


@in_a_loop
async def test_a_handler_in_the_run_can_approve_at_once() -> None:
    async def agree(_: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        return DeferredToolResults(approvals={call.tool_call_id: True for call in requests.approvals})

    source = shop()
    async with board_of(source, calls=APPROVE) as board:
        script = ScriptedModel([calls("shop__delete_customer")])
        tools = [PegboardCapability(board), HandleDeferredToolCalls(agree)]
        run = await Agent(model_of(script), capabilities=tools).run("delete her")
    assert run.output == "done"
    assert source.calls == [("delete_customer", {"number": 1})]


# ── sub-agents ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("inherit", [True, False])
@in_a_loop
async def test_a_sub_agent_begins_with_what_is_loaded_and_goes_its_own_way(inherit: bool) -> None:
    async with board_of() as board:
        tools = PegboardCapability(board)
        child = ScriptedModel([calls("shop__count_2", "shop__send_invoice")])
        researcher = Agent(model_of(child), deps_type=object)
        script = ScriptedModel([calls("shop__count_1"), calls(("delegate", {})), Move(text="all done")])
        agent = Agent(model_of(script), capabilities=[tools], deps_type=object)

        @agent.tool
        async def delegate(ctx: RunContext[object]) -> str:
            """Has somebody look it up."""
            mine = tools.fork(ctx, "researcher", inherit=inherit, allow=["*count*"])
            return (await researcher.run("look it up", capabilities=[mine])).output

        run = await agent.run("count")
    assert run.output == "all done"
    assert names(child)[0] == (("shop__count_1",) if inherit else ())
    assert set(names(child)[1]) == {*(("shop__count_1",) if inherit else ()), "shop__count_2"}  # never the invoice
    assert names(script)[2] == ("delegate", "shop__count_1")  # the parent's list is as it was


@in_a_loop
async def test_sub_agents_that_are_delegated_to_at_once_share_nothing() -> None:
    async with board_of() as board:
        tools, both = PegboardCapability(board), asyncio.Barrier(2)
        children = [ScriptedModel([calls(f"shop__count_{number}")]) for number in range(2)]
        script = ScriptedModel([calls(("delegate", {"number": 0}), ("delegate", {"number": 1}))])
        agent = Agent(model_of(script), capabilities=[tools], deps_type=object)

        @agent.tool
        async def delegate(ctx: RunContext[object], number: int) -> str:
            """Has somebody look it up."""
            mine = tools.fork(ctx, "researcher", allow=[f"*count_{number}"])
            await both.wait()
            return (await Agent(model_of(children[number])).run("look it up", capabilities=[mine])).output

        await agent.run("count")
    assert [names(child)[-1] for child in children] == [("shop__count_0",), ("shop__count_1",)]


@in_a_loop
async def test_what_a_sub_agent_loads_is_not_kept_as_its_parents() -> None:
    async with board_of() as board:
        options: Any = {"state": "messages", "conversation": "ada"}
        tools = PegboardCapability(board, **options)
        researcher = Agent(model_of(ScriptedModel([calls("shop__count_2")])), deps_type=object)
        script = ScriptedModel([calls("shop__count_1"), calls(("delegate", {}))])
        agent = Agent(model_of(script), capabilities=[tools], deps_type=object)

        @agent.tool
        async def delegate(ctx: RunContext[object]) -> str:
            """Has somebody look it up."""
            return (await researcher.run("look it up", capabilities=[tools.fork(ctx, "researcher")])).output

        await agent.run("count")
        after = ScriptedModel()
        await agent_of(after, board, **options).run("again")  # without any messages: what was kept counts
    assert names(after) == [("shop__count_1",)]


@in_a_loop
async def test_a_fork_takes_the_place_of_the_board_that_the_sub_agent_has_anyway() -> None:
    async with board_of() as board:
        tools = PegboardCapability(board)
        child = ScriptedModel([calls("shop__send_invoice")])
        researcher = Agent(model_of(child), capabilities=[tools], deps_type=object)
        agent = Agent(model_of(ScriptedModel([calls("shop__count_1"), calls(("delegate", {}))])), capabilities=[tools],
                      deps_type=object)  # fmt: skip

        @agent.tool
        async def delegate(ctx: RunContext[object]) -> str:
            """Has somebody look it up."""
            return (await researcher.run("go", capabilities=[tools.fork(ctx, "r", allow=["*count*"])])).output

        await agent.run("count")
    assert names(child) == [("shop__count_1",)] * 2


# ── threads and loops ────────────────────────────────────────────────────────────────────────────────────────────────


def run_sync(agent: Agent[Any, Any], prompt: str) -> Any:
    """As the framework does it for code without a loop; but it leaves the loop that it makes open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return agent.run_sync(prompt).output
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def test_code_without_a_loop_runs_on_a_board_that_lives_in_its_own_thread() -> None:
    source = shop()
    with board_of(source) as board:
        script = ScriptedModel([calls("shop__count_7")])
        assert run_sync(agent_of(script, board), "count") == "done"
    assert source.calls == [("count_7", {"number": 1})]
    assert names(script)[1] == ("shop__count_7",)


@in_a_loop
async def test_a_run_in_another_thread_uses_a_board_of_this_loop() -> None:
    source = shop()
    async with board_of(source, calls=APPROVE) as board:
        script = ScriptedModel([calls("shop__count_7"), calls("shop__delete_customer")])
        output = await asyncio.to_thread(run_sync, careful(script, board), "count")
    assert isinstance(output, DeferredToolRequests)  # the approval is asked for across the threads
    assert source.calls == [("count_7", {"number": 1})]


@in_a_loop
async def test_options_are_given_to_the_toolset_or_the_capability_but_not_to_both() -> None:
    async with board_of() as board:
        with pytest.raises(TypeError, match="reveal"):
            PegboardCapability(PegboardToolset(board), reveal="called")
