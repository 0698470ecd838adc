"""Calls that a person has to approve stop the run, whatever name the model has for the tool."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from pegboard.integrations.langchain import PegboardMiddleware, run_approval
from pegboard.testing import FakeSource
from tests.flow.langchain_chat import board_in, calls, chat_of, crm, search
from tests.loops import in_a_loop

THREAD: Any = {"configurable": {"thread_id": "t"}}
HELLO: Any = {"messages": [("user", "hello")]}
ADA = {"customer": "Ada"}
ASKS = {"asks": ["crm__create_*"], "approve": run_approval}


def decision(kind: str) -> Any:
    return Command(resume={"decisions": [{"type": kind}]})


def last(result: Any) -> ToolMessage:
    return [each for each in result["messages"] if isinstance(each, ToolMessage)][-1]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize(
    "call",
    [
        ("crm__create_invoice", ADA),
        ("create_invoice", ADA),
        ("call_tool", {"name": "crm__create_invoice", "arguments": ADA}),
    ],
    ids=lambda call: call[0],
)
def test_the_run_stops_and_makes_the_call_once_somebody_agrees(call: Any, way: str, tmp_path: Path) -> None:
    source = crm()
    with board_in(tmp_path, source, **ASKS) as board:
        chat = chat_of([search("create an invoice", limit=1), calls(call)])
        agent = create_agent(chat, middleware=[PegboardMiddleware(board)], checkpointer=InMemorySaver())

        def go(given: Any) -> Any:
            return agent.invoke(given, THREAD) if way == "invoke" else asyncio.run(agent.ainvoke(given, THREAD))

        [asked] = go(HELLO)["__interrupt__"]
        assert asked.value["action_requests"][0]["name"] == "crm__create_invoice"
        assert asked.value["action_requests"][0]["args"] == ADA
        assert source.calls == []
        assert last(go(decision("approve"))).text == "create_invoice"
    assert source.calls == [("create_invoice", ADA)]


@in_a_loop
async def test_calls_of_one_turn_are_asked_for_one_by_one_and_those_that_need_nobody_are_made_once(
    tmp_path: Path,
) -> None:
    source, bob = crm(), {"customer": "Bob"}
    async with board_in(tmp_path, source, **ASKS) as board:
        chat = chat_of([calls(("crm__create_invoice", ADA), ("crm__create_invoice", bob), ("crm__send_reminder", {}))])
        agent: Any = create_agent(chat, middleware=[PegboardMiddleware(board)], checkpointer=InMemorySaver())
        asked = (await agent.ainvoke(HELLO, THREAD))["__interrupt__"]
        kinds = {each.id: "approve" if each.value["action_requests"][0]["args"] == bob else "reject" for each in asked}
        assert sorted(kinds.values()) == ["approve", "reject"]
        answers = {key: {"decisions": [{"type": kind}]} for key, kind in kinds.items()}
        done = await agent.ainvoke(Command(resume=answers), THREAD)
    assert "__interrupt__" not in done
    assert [each.status for each in done["messages"] if isinstance(each, ToolMessage)][:2] == ["error", "success"]
    assert source.calls.count(("create_invoice", bob)) == 1
    assert ("create_invoice", ADA) not in source.calls
    assert [name for name, _ in source.calls].count("send_reminder") == 1


@pytest.mark.parametrize(
    "answer", [decision("reject"), decision("edit"), Command(resume="yes"), Command(resume={"decisions": []})]
)
@in_a_loop
async def test_nothing_but_a_plain_yes_is_one(answer: Any, tmp_path: Path) -> None:
    source = crm()
    async with board_in(tmp_path, source, **ASKS) as board:
        chat = chat_of([calls(("crm__create_invoice", ADA))])
        agent = create_agent(chat, middleware=[PegboardMiddleware(board)], checkpointer=InMemorySaver())
        await agent.ainvoke(HELLO, THREAD)
        result = await agent.ainvoke(answer, THREAD)
    assert last(result).status == "error"
    assert source.calls == []


@in_a_loop
async def test_of_several_calls_in_one_those_that_need_a_person_are_refused(tmp_path: Path) -> None:
    source = crm()
    batch = [{"name": "crm__create_invoice", "arguments": ADA}, {"name": "crm__send_reminder"}]
    async with board_in(tmp_path, source, **ASKS) as board:
        chat = chat_of([calls(("batch_tools", {"calls": batch}))])
        middleware = PegboardMiddleware(board, reveal="bridge")
        agent = create_agent(chat, middleware=[middleware], checkpointer=InMemorySaver())
        result = await agent.ainvoke(HELLO, THREAD)
    assert "__interrupt__" not in result
    assert source.calls == [("send_reminder", {})]


@in_a_loop
async def test_a_call_that_no_agent_makes_is_refused(tmp_path: Path) -> None:
    source = FakeSource("crm", ["create_invoice"])
    async with board_in(tmp_path, source, **ASKS) as board:
        assert (await board.conversation("x").call("crm__create_invoice")).is_error
    assert source.calls == []
