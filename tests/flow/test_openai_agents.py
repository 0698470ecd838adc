"""Pegboard in the OpenAI Agents SDK: the framework's own runner, a model that plays a script, a real board."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, function_tool
from agents.exceptions import ModelBehaviorError, UserError
from agents.mcp import MCPServerManager

from pegboard import Pegboard
from pegboard.errors import PegboardError, RemoteError
from pegboard.integrations.openai_agents import PegboardServer
from pegboard.testing import Move, text_result, tool_definition
from tests.flow.openai_agents_board import DELETE, ISSUE, OWN, agent, filler, forge, names, opened
from tests.flow.openai_agents_model import QUIET, PlayedModel, calls, finds, says
from tests.loops import in_a_loop

# ── what is listed ───────────────────────────────────────────────────────────────────────────────────────────────────


@in_a_loop
async def test_a_tool_that_is_found_is_listed_from_the_next_request_on_and_called_by_its_name() -> None:
    source = forge()
    async with opened(source) as board:
        server = PegboardServer(board)
        model = PlayedModel(finds("open an issue"), calls("forge__create_issue", title="Bug"), says("Opened."))
        result = await Runner.run(agent(server, model), "Report the bug.", run_config=QUIET)
    assert result.final_output == "Opened."
    first, second, third = names(model)
    assert first == ()
    assert second == third
    assert "forge__create_issue" in second
    assert source.calls == [("create_issue", {"title": "Bug"})]


@in_a_loop
async def test_the_list_only_grows_at_its_end() -> None:
    async with opened(pinned=["forge__tool_3"]) as board:
        moves = [calls("search_tools", query=f"select:forge__tool_{number}") for number in (9, 1, 5)]
        model = PlayedModel(*moves, says("ok"))
        await Runner.run(agent(PegboardServer(board), model), "go", run_config=QUIET)
    assert names(model)[-1] == ("forge__tool_3", "forge__tool_9", "forge__tool_1", "forge__tool_5")
    for before, after in zip(model.shown, model.shown[1:], strict=False):
        assert after.tools[: len(before.tools)] == before.tools


@in_a_loop
async def test_a_model_that_never_searches_has_what_is_pinned_and_is_told_what_else_there_is() -> None:
    async with opened(pinned=["forge__create_issue"]) as board:
        server = PegboardServer(board)
        model = PlayedModel(calls("forge__create_issue", title="x"), says("ok"))
        instructed = agent(server, model, instructions=server.instructions("You are terse."))
        await Runner.run(instructed, "go", run_config=QUIET)
    assert names(model) == [("forge__create_issue",)] * 2
    assert "forge (42" in model.shown[0].tools[0]["description"]
    assert model.shown[0].system.startswith("You are terse.\n\n41 more tools on 1 server")


@in_a_loop
async def test_the_paragraph_in_the_instructions_stays_the_same_while_tools_are_loaded() -> None:
    async with opened() as board:
        server = PegboardServer(board)
        model = PlayedModel(finds("open an issue"), calls("forge__create_issue", title="x"), says("ok"))

        async def own(context: Any, agent: Any) -> str:
            return f"I am {agent.name}."

        await Runner.run(agent(server, model, instructions=server.instructions(own)), "go", run_config=QUIET)
    assert model.shown[0].system.startswith("I am agent.\n\n")
    assert len({shown.system for shown in model.shown}) == 1


@in_a_loop
async def test_without_the_search_tool_nothing_is_deferred_and_nothing_is_said() -> None:
    async with opened(forge(3)) as board:
        server = PegboardServer(board, search=False)
        model = PlayedModel(calls("forge__tool_1"), says("ok"))
        await Runner.run(agent(server, model, instructions=server.instructions("Hi.")), "go", run_config=QUIET)
    expected = tuple(f"forge__{each}" for each in ("create_issue", "delete_repository", "tool_0", "tool_1", "tool_2"))
    assert [shown.names for shown in model.shown] == [expected, expected]
    assert model.shown[0].system == "Hi."


@in_a_loop
async def test_where_calls_go_through_call_tool_the_list_never_changes() -> None:
    source = forge()
    async with opened(source) as board:
        model = PlayedModel(
            finds("open an issue"),
            calls("call_tool", name="forge__create_issue", arguments={"title": "x"}),
            calls("batch_tools", calls=[{"name": "forge__tool_1"}, {"name": "forge__tool_2"}]),
            says("ok"),
        )
        await Runner.run(agent(PegboardServer(board, reveal="called"), model), "go", run_config=QUIET)
    assert len({shown.names for shown in model.shown}) == 1
    assert model.shown[0].names == ("search_tools", "call_tool", "batch_tools", "read_result")
    assert "title: str" in model.outputs[0]
    assert [name for name, _ in source.calls] == ["create_issue", "tool_1", "tool_2"]


@in_a_loop
async def test_what_is_not_allowed_is_neither_found_nor_called() -> None:
    source = forge()
    async with opened(source) as board:
        server = PegboardServer(board, allow=["forge__tool_*"])
        model = PlayedModel(finds("open an issue"), calls("forge__create_issue", title="x"), says("ok"))
        await Runner.run(agent(server, server.model(model)), "go", run_config=QUIET)
    assert all("forge__create_issue" not in shown for shown in names(model))
    assert "create_issue: " not in model.outputs[0]
    assert "not among the tools that you may use" in model.outputs[1]
    assert source.calls == []


@in_a_loop
async def test_what_a_run_may_use_can_depend_on_its_context() -> None:
    async with opened() as board:
        server = PegboardServer(board, allow=lambda run: run.context["may"])
        for may, expected in ((["forge__tool_7"], ("forge__tool_7",)), ([], ())):
            model = PlayedModel(says("ok"))
            await Runner.run(agent(server, model), "go", context={"may": may}, run_config=QUIET)
            assert names(model) == [expected]
        assert [tool.name for tool in await server.list_tools()] == list(OWN)


# ── the framework's own tools and options ────────────────────────────────────────────────────────────────────────────


@in_a_loop
async def test_the_agents_own_tools_stay_where_they_are_and_win_over_ours_of_the_same_name() -> None:
    async with opened() as board:

        @board.tool
        def greet(name: str) -> str:
            """The board's greeting."""
            return f"board greets {name}"

        def own(name: str) -> str:
            """The agent's greeting."""
            return f"agent greets {name}"

        theirs = function_tool(own, name_override="greet")
        model = PlayedModel(finds("select:greet"), calls("greet", name="Ada"), says("ok"))
        await Runner.run(agent(PegboardServer(board), model, tools=[theirs]), "go", run_config=QUIET)
    assert all(shown.names[-1] == "greet" and shown.names.count("greet") == 1 for shown in model.shown)
    assert model.outputs[1] == "agent greets Ada"


@in_a_loop
async def test_an_agent_with_a_search_tool_of_its_own_is_told_at_once() -> None:
    def search_tools(query: str) -> str:
        """Something else."""
        return query

    async with opened() as board:
        theirs = function_tool(search_tools)
        clashing = agent(PegboardServer(board), PlayedModel(says("ok")), tools=[theirs])
        with pytest.raises(PegboardError, match="'search_tools', and so has Pegboard"):
            await Runner.run(clashing, "go", run_config=QUIET)
        model = PlayedModel(says("ok"))
        await Runner.run(agent(PegboardServer(board, search=False), model, tools=[theirs]), "go", run_config=QUIET)
        assert model.shown[0].names.count("search_tools") == 1


@in_a_loop
async def test_two_of_our_servers_on_one_agent_need_the_frameworks_prefixes() -> None:
    async with opened() as board:
        pair = [PegboardServer(board, name="one"), PegboardServer(board, name="two")]
        with pytest.raises(UserError, match="Duplicate tool names"):
            await Runner.run(Agent("a", model=PlayedModel(says("ok")), mcp_servers=[*pair]), "go", run_config=QUIET)
        prefixed = PlayedModel(calls("mcp_two__search_tools", query="select:forge__tool_1"), says("ok"))
        both = Agent("a", model=prefixed, mcp_servers=[*pair], mcp_config={"include_server_in_tool_names": True})
        await Runner.run(both, "go", run_config=QUIET)
    assert prefixed.shown[1].names == (
        "mcp_one__search_tools", "mcp_one__read_result",
        "mcp_two__search_tools", "mcp_two__read_result", "mcp_two__forge__tool_1",
    )  # fmt: skip


@in_a_loop
async def test_with_prefixes_a_tool_can_be_called_with_and_without() -> None:
    source = forge()
    async with opened(source) as board:
        server = PegboardServer(board)
        model = PlayedModel(
            calls("mcp_pegboard__search_tools", query="select:forge__tool_1"),
            calls("mcp_pegboard__forge__tool_1"),
            calls("forge__tool_1"),
            says("ok"),
        )
        prefixed = agent(server, server.model(model), mcp_config={"include_server_in_tool_names": True})
        await Runner.run(prefixed, "go", run_config=QUIET)
    assert model.outputs[1:] == ["tool_1", "tool_1"]
    assert len(source.calls) == 2


@in_a_loop
async def test_strict_schemas_are_made_by_the_framework_of_what_is_listed() -> None:
    ticket = tool_definition(
        "open_ticket",
        "Open a ticket.",
        inputSchema={
            "type": "object",
            "properties": {"title": {"type": "string"}, "urgent": {"type": "boolean"}},
            "required": ["title"],
            "additionalProperties": False,
        },
    )
    source = forge(3)
    source.tools.append(ticket)
    async with opened(source, pinned=["forge__open_ticket"]) as board:
        model = PlayedModel(calls("forge__open_ticket", title="x", urgent=True), says("ok"))
        strict = agent(PegboardServer(board), model, mcp_config={"convert_schemas_to_strict": True})
        await Runner.run(strict, "go", run_config=QUIET)
    sent = next(each for each in model.shown[0].tools if each["name"] == "forge__open_ticket")
    assert sent["parameters"]["required"] == ["title", "urgent"]
    assert source.calls == [("open_ticket", {"title": "x", "urgent": True})]


@in_a_loop
async def test_structured_content_reaches_the_model_where_that_is_asked_for() -> None:
    answer = {**text_result("in words"), "structuredContent": {"number": 7}}
    async with opened(forge(results={"create_issue": answer}), pinned=["forge__create_issue"]) as board:
        for structured, expected in ((False, "in words"), (True, '{"number": 7}')):
            model = PlayedModel(calls("forge__create_issue", title="x"), says("ok"))
            server = PegboardServer(board, use_structured_content=structured)
            await Runner.run(agent(server, model), "go", run_config=QUIET)
            assert model.outputs == [expected]


@in_a_loop
async def test_an_image_comes_through_as_an_image() -> None:
    answer = {
        "content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}, {"type": "text", "text": "a cat"}]
    }
    async with opened(forge(results={"tool_1": answer}), pinned=["forge__tool_1"]) as board:
        model = PlayedModel(calls("forge__tool_1"), says("ok"))
        await Runner.run(agent(PegboardServer(board), model), "go", run_config=QUIET)
    assert model.outputs == ["data:image/png;base64,AAAA\na cat"]


@in_a_loop
async def test_a_servers_guardrails_and_meta_apply_to_every_tool_of_it() -> None:
    from agents import ToolGuardrailFunctionOutput, ToolInputGuardrailData, tool_input_guardrail

    seen: list[str] = []

    @tool_input_guardrail
    def watch(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        seen.append(data.context.tool_name)
        if data.context.tool_name == "forge__delete_repository":
            return ToolGuardrailFunctionOutput.reject_content("Not on a Friday.")
        return ToolGuardrailFunctionOutput.allow()

    source = forge()
    async with opened(source) as board:
        server = PegboardServer(
            board, tool_input_guardrails=[watch], tool_meta_resolver=lambda call: {"com.example/who": call.tool_name}
        )
        model = PlayedModel(finds("open an issue"), calls("forge__delete_repository"), calls("tool_1"), says("ok"))
        await Runner.run(agent(server, server.model(model)), "go", run_config=QUIET)
    assert seen == ["search_tools", "forge__delete_repository", "tool_1"]
    assert model.outputs[1] == "Not on a Friday."
    assert [name for name, _ in source.calls] == ["tool_1"]


# ── calls of tools that are not on the list ──────────────────────────────────────────────────────────────────────────


@in_a_loop
async def test_by_itself_the_framework_ends_a_run_over_a_tool_that_is_not_on_the_list() -> None:
    async with opened() as board:
        model = PlayedModel(calls("forge__create_issue", title="x"))
        with pytest.raises(ModelBehaviorError, match="forge__create_issue not found"):
            await Runner.run(agent(PegboardServer(board), model), "go", run_config=QUIET)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("called", ["forge__create_issue", "create_issue"])
@in_a_loop
async def test_a_call_without_a_search_runs_and_loads_the_tool(streamed: bool, called: str) -> None:
    source = forge()
    async with opened(source) as board:
        server = PegboardServer(board)
        model = PlayedModel(calls(called, title="x"), says("ok"))
        unlisted = agent(server, server.model(model))
        if streamed:
            stream = Runner.run_streamed(unlisted, "go", run_config=QUIET)
            events = [event.name async for event in stream.stream_events() if event.type == "run_item_stream_event"]
            assert events == ["tool_called", "tool_output", "message_output_created"]
        else:
            await Runner.run(unlisted, "go", run_config=QUIET)
    assert source.calls == [("create_issue", {"title": "x"})]
    assert names(model) == [(), ("forge__create_issue",)]


@in_a_loop
async def test_several_calls_at_once_some_listed_some_not_some_unknown_are_all_answered() -> None:
    async with opened(forge(), pinned=["forge__tool_1"]) as board:
        server = PegboardServer(board)
        many = Move(calls=(("forge__tool_1", {}), ("forge__tool_2", {}), ("forge__tool_2", {}), ("forge__tol_3", {})))
        model = PlayedModel(many, says("ok"))
        await Runner.run(agent(server, server.model(model)), "go", run_config=QUIET)
    assert model.outputs[:3] == ["tool_1", "tool_2", "tool_2"]
    assert "Did you mean forge__tool_3" in model.outputs[3]
    assert names(model)[1] == ("forge__tool_1", "forge__tool_2")


@in_a_loop
async def test_a_model_found_by_name_is_wrapped_through_the_run_config() -> None:
    from agents import Model, ModelProvider

    class Played(ModelProvider):
        def get_model(self, model_name: str | None) -> Model:
            assert model_name == "played-1"
            return model

    source = forge()
    model = PlayedModel(calls("forge__tool_2"), calls("forge__tool_3"), says("ok"))
    async with opened(source) as board:
        server = PegboardServer(board)
        config = server.run_config(RunConfig(tracing_disabled=True, model_provider=Played()))
        await Runner.run(agent(server, "played-1"), "go", run_config=config)
    assert [name for name, _ in source.calls] == ["tool_2", "tool_3"]


@in_a_loop
async def test_a_model_that_is_not_wrapped_is_told_that_the_tool_is_loaded_and_calls_it_again() -> None:
    source = forge()
    async with opened(source) as board:
        server = PegboardServer(board)
        model = PlayedModel(calls("forge__tool_2"), calls("forge__tol_3"), calls("forge__tool_2"), says("ok"))
        await Runner.run(agent(server, model), "go", run_config=server.run_config(QUIET))
    assert model.outputs[0].startswith("forge__tool_2 was not on your list of tools. Loaded")
    assert "forge__tool_3" in model.outputs[1]
    assert model.outputs[2] == "tool_2"
    assert len(source.calls) == 1


@in_a_loop
async def test_a_formatter_of_the_user_is_asked_first() -> None:
    async with opened() as board:
        server = PegboardServer(board)
        theirs = RunConfig(
            tracing_disabled=True,
            tool_error_formatter=lambda args: "No such thing." if args.tool_name == "nope" else None,
        )
        model = PlayedModel(calls("nope"), calls("forge__tool_1"), says("ok"))
        await Runner.run(agent(server, model), "go", run_config=server.run_config(theirs))
    assert model.outputs[0] == "No such thing."
    assert "Loaded" in model.outputs[1]


@in_a_loop
async def test_an_agent_without_our_server_gets_none_of_our_tools_from_a_wrapped_model() -> None:
    source = forge()
    async with opened(source) as board:
        server = PegboardServer(board)
        stranger = Agent("stranger", model=server.model(PlayedModel(calls("forge__tool_1"))))
        first = PlayedModel(finds("open an issue"), calls("transfer_to_stranger"))
        with pytest.raises(ModelBehaviorError, match="not found in agent stranger"):
            await Runner.run(agent(server, server.model(first), handoffs=[stranger]), "go", run_config=QUIET)
    assert source.calls == []


# ── failures ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@in_a_loop
async def test_a_tool_that_fails_and_arguments_that_do_not_fit_are_results() -> None:
    broken = forge(results={"tool_1": RemoteError("forge", -32000, "disk full")})
    async with opened(broken, pinned=["forge__tool_1", "forge__create_issue"]) as board:
        model = PlayedModel(calls("forge__tool_1"), calls("forge__create_issue", titel=1), says("ok"))
        result = await Runner.run(agent(PegboardServer(board), model), "go", run_config=QUIET)
    assert result.final_output == "ok"
    assert "disk full" in model.outputs[0]
    assert "title" in model.outputs[1]


@in_a_loop
async def test_a_tool_that_fails_is_a_result_also_where_nothing_is_deferred() -> None:
    broken = forge(2, results={"tool_1": RemoteError("forge", -32000, "disk full")})
    async with opened(broken, mode="off") as board:
        model = PlayedModel(calls("forge__tool_1"), says("ok"))
        server = PegboardServer(board, failure_error_function=None)
        await Runner.run(agent(server, model), "go", run_config=QUIET)
    assert "disk full" in model.outputs[0]


@in_a_loop
async def test_a_cancelled_run_cancels_the_call_and_the_board_goes_on() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def hang(*_: Any) -> dict[str, Any]:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    async with opened(forge(results={"tool_1": hang}), pinned=["forge__tool_1"]) as board:
        server = PegboardServer(board)
        hanging = agent(server, PlayedModel(calls("forge__tool_1")))
        run = asyncio.create_task(Runner.run(hanging, "go", run_config=QUIET))
        await began.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        await asyncio.wait_for(ended.wait(), 10)
        model = PlayedModel(calls("forge__tool_2"), says("ok"))
        await Runner.run(agent(server, server.model(model)), "go", run_config=QUIET)
        assert model.outputs == ["tool_2"]


@in_a_loop
async def test_a_board_that_is_closed_says_so() -> None:
    async with opened() as board:
        server = PegboardServer(board)
    with pytest.raises(PegboardError, match="not open"):
        await Runner.run(agent(server, PlayedModel(says("ok"))), "go", run_config=QUIET)


# ── lifetimes and loops ──────────────────────────────────────────────────────────────────────────────────────────────


@in_a_loop
async def test_a_server_may_be_connected_and_cleaned_up_again_and_again_and_leaves_the_board_open() -> None:
    async with opened() as board:
        server = PegboardServer(board)
        for _ in range(2):
            async with MCPServerManager([server]) as servers:
                assert servers.active_servers == [server]
        assert (await server.list_prompts()).prompts == []
        with pytest.raises(PegboardError, match="no prompt"):
            await server.get_prompt("x")
        assert (await server.call_tool("forge__tool_1", None)).model_dump()["content"][0]["text"] == "tool_1"
        assert [tool.name for tool in await server.list_tools()] == [*OWN, "forge__tool_1"]


def test_a_run_without_a_loop_uses_a_board_in_a_thread_of_its_own() -> None:
    settings = {"surface": {"mode": "on"}, "record": {"enabled": False}}
    with Pegboard(sources=[forge()], settings=settings) as board:
        board.wait(board.refresh())
        server = PegboardServer(board)
        for _ in range(2):
            model = PlayedModel(calls("forge__tool_1"), finds("open an issue"), says("ok"))
            sync = agent(server, server.model(model), instructions=server.instructions("Hi."))
            with asyncio.Runner() as runner:
                asyncio.set_event_loop(runner.get_loop())
                result = Runner.run_sync(sync, "go", run_config=QUIET)
            assert result.final_output == "ok"
            assert model.outputs[0] == "tool_1"
            assert {"forge__tool_1", "forge__create_issue"} <= set(names(model)[-1])


@in_a_loop
async def test_tools_that_come_and_go_are_listed_from_the_next_request_on() -> None:
    source = forge(3)
    async with opened(source, pinned=["forge__*"]) as board:

        def more(_: Any) -> Move:
            source.tools[:] = [ISSUE, DELETE, *filler(2), tool_definition("tool_new", "New.")]
            return calls("refresh_board")

        async def refresh_board() -> str:
            """Asks again."""
            await board.refresh()
            return "done"

        model = PlayedModel(more, says("ok"))
        await Runner.run(
            agent(PegboardServer(board), model, tools=[function_tool(refresh_board)]), "go", run_config=QUIET
        )
    assert "forge__tool_2" in model.shown[0].names
    assert "forge__tool_2" not in model.shown[1].names
    assert "forge__tool_new" in model.shown[1].names
