"""What an agent has loaded is in its state: checkpoints, restarts, going back, summaries, sub-agents."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware, before_model
from langchain_core.messages import HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from pegboard.integrations.langchain import PegboardMiddleware
from pegboard.testing import Move
from tests.flow.langchain_chat import ScriptedChat, board_in, calls, chat_of, crm, search
from tests.loops import in_a_loop

OWN = ("search_tools", "read_result")
THREAD: Any = {"configurable": {"thread_id": "thread-1"}}
OK = Move(text="ok")


def says(text: str) -> Any:
    return {"messages": [("user", text)]}


def lists(chat: ScriptedChat) -> list[tuple[str, ...]]:
    return [shown.names for shown in chat.script.shown]


@tool
def ping() -> str:
    """Answers."""
    return "pong"


# ── checkpoints ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_new_board_and_a_new_agent_go_on_from_the_checkpoint(tmp_path: Path) -> None:
    saver = InMemorySaver()
    before = chat_of([search("create an invoice", limit=1), OK])
    with board_in(tmp_path / "one") as board:
        agent = create_agent(before, middleware=[PegboardMiddleware(board)], checkpointer=saver)
        agent.invoke(says("find it"), THREAD)
    after = chat_of([calls(("crm__create_invoice", {"customer": "Ada"}))])
    source = crm()
    with board_in(tmp_path / "two", source) as board:
        agent = create_agent(after, middleware=[PegboardMiddleware(board)], checkpointer=saver)
        agent.invoke(says("do it"), THREAD)
    assert lists(after)[0] == lists(before)[-1] == (*OWN, "crm__create_invoice")
    assert source.calls == [("create_invoice", {"customer": "Ada"})]


def test_threads_do_not_share_what_they_load(tmp_path: Path) -> None:
    chat = chat_of([search("create an invoice", limit=1), OK, OK, OK])
    with board_in(tmp_path) as board:
        agent = create_agent(chat, middleware=[PegboardMiddleware(board)], checkpointer=InMemorySaver())
        agent.invoke(says("find it"), THREAD)
        agent.invoke(says("hello"), {"configurable": {"thread_id": "thread-2"}})
        agent.invoke(says("again"), THREAD)
    assert lists(chat)[2:] == [OWN, (*OWN, "crm__create_invoice")]


def test_an_older_checkpoint_brings_back_what_was_loaded_then(tmp_path: Path) -> None:
    chat = chat_of([search("create an invoice", limit=1), OK, search("refund a payment", limit=1), OK, OK, OK, OK])
    with board_in(tmp_path) as board:
        agent = create_agent(chat, middleware=[PegboardMiddleware(board)], checkpointer=InMemorySaver())
        agent.invoke(says("first"), THREAD)
        [then] = [each.config for each in agent.get_state_history(THREAD) if not each.next]
        agent.invoke(says("second"), THREAD)
        assert lists(chat)[-1] == (*OWN, "crm__create_invoice", "crm__refund_payment")
        agent.invoke(says("another second"), then)
        assert lists(chat)[-1] == (*OWN, "crm__create_invoice")
        begin = list(agent.get_state_history(THREAD))[-1].config
        agent.invoke(says("another first"), begin)
    assert lists(chat)[-1] == OWN


def test_a_run_that_is_repeated_from_before_its_tools_loads_the_same(tmp_path: Path) -> None:
    chat = chat_of([search("create an invoice", limit=1), OK, OK])
    with board_in(tmp_path) as board:
        agent = create_agent(chat, middleware=[PegboardMiddleware(board)], checkpointer=InMemorySaver())
        agent.invoke(says("first"), THREAD)
        [before_tools] = [each.config for each in agent.get_state_history(THREAD) if each.next == ("tools",)]
        agent.invoke(None, before_tools)
    assert lists(chat)[1:] == [(*OWN, "crm__create_invoice")] * 2


def test_a_thread_that_was_begun_without_a_board_goes_on_with_one(tmp_path: Path) -> None:
    saver = InMemorySaver()
    without = create_agent(chat_of([search("create an invoice", limit=1)]), [ping], checkpointer=saver)
    without.invoke(says("first"), THREAD, interrupt_before=["tools"])
    chat = chat_of([calls(("crm__refund_payment", {})), OK])
    with board_in(tmp_path) as board:
        agent = create_agent(chat, [ping], middleware=[PegboardMiddleware(board)], checkpointer=saver)
        agent.invoke(None, THREAD)
    assert lists(chat) == [
        ("ping", *OWN, "crm__create_invoice"),
        ("ping", *OWN, "crm__create_invoice", "crm__refund_payment"),
    ]


def test_a_state_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    chat = chat_of([OK, OK])
    with board_in(tmp_path) as board:
        agent = create_agent(chat, middleware=[PegboardMiddleware(board)], checkpointer=InMemorySaver())
        agent.invoke(says("first"), THREAD)
        agent.update_state(THREAD, {"pegboard": {"conversation": "thread-1", "loaded": "not base64 !"}})
        agent.invoke(says("second"), THREAD)
    assert lists(chat) == [OWN, OWN]


# ── the history shrinks ──────────────────────────────────────────────────────────────────────────────────────────────


def test_summarising_the_history_leaves_what_is_loaded(tmp_path: Path) -> None:
    chat = chat_of([search("create an invoice", limit=1), calls(("crm__create_invoice", {"customer": "Ada"})), OK, OK])
    brief = chat_of([Move(text="They made an invoice.")])
    summarises = SummarizationMiddleware(brief, trigger=("messages", 6), keep=("messages", 1))
    with board_in(tmp_path) as board:
        agent = create_agent(chat, middleware=[PegboardMiddleware(board), summarises], checkpointer=InMemorySaver())
        agent.invoke(says("first"), THREAD)
        result = agent.invoke(says("second"), THREAD)
    assert len(brief.script.shown) == 1
    assert not [each for each in result["messages"] if isinstance(each, ToolMessage)]
    assert lists(chat)[-1] == (*OWN, "crm__create_invoice")


def test_trimming_the_history_leaves_what_is_loaded(tmp_path: Path) -> None:
    @before_model
    def trims(state: Any, runtime: Any) -> Any:
        return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *state["messages"][-1:]]}

    chat = chat_of([search("create an invoice", limit=1), OK, OK])
    with board_in(tmp_path) as board:
        agent = create_agent(chat, middleware=[PegboardMiddleware(board)], checkpointer=InMemorySaver())
        agent.invoke(says("first"), THREAD)
        trimming = create_agent(chat, middleware=[PegboardMiddleware(board), trims], checkpointer=agent.checkpointer)
        trimming.invoke(says("second"), THREAD)
    assert [each.type for each in chat.script.shown[-1].messages] == ["human"]
    assert lists(chat)[-1] == (*OWN, "crm__create_invoice")


def test_the_least_recently_used_make_room(tmp_path: Path) -> None:
    used = [calls((f"crm__filler_{n}", {})) for n in (1, 2, 1, 3)]
    chat = chat_of(used)
    with board_in(tmp_path, max_active=2) as board:
        create_agent(chat, middleware=[PegboardMiddleware(board)]).invoke(says("go"))
    assert lists(chat)[-2:] == [(*OWN, "crm__filler_1", "crm__filler_2"), (*OWN, "crm__filler_1", "crm__filler_3")]


# ── sub-agents ───────────────────────────────────────────────────────────────────────────────────────────────────────


def delegating(sub: Any) -> Any:
    @tool
    def research(question: str) -> str:
        """Has a sub-agent find out."""
        return str(sub.invoke(says(question))["messages"][-1].text)

    return research


ASKS = calls(("research", {"question": "what?"}))


def test_a_sub_agent_begins_with_what_its_parent_had_loaded_and_changes_nothing_there(tmp_path: Path) -> None:
    inner = chat_of([search("refund a payment", limit=1), Move(text="found out")])
    outer = chat_of([search("create an invoice", limit=1), ASKS])
    with board_in(tmp_path) as board:
        middleware = PegboardMiddleware(board)
        sub = create_agent(inner, middleware=[middleware.fork("researcher")])
        result = create_agent(outer, [delegating(sub)], middleware=[middleware]).invoke(says("go"))
    assert lists(inner) == [
        (*OWN, "crm__create_invoice"),
        (*OWN, "crm__create_invoice", "crm__refund_payment"),
    ]
    assert lists(outer)[-1] == ("research", *OWN, "crm__create_invoice")
    assert result["messages"][-2].text == "found out"


def test_a_sub_agent_that_runs_again_has_the_newer_snapshot(tmp_path: Path) -> None:
    inner = chat_of([OK, OK])
    outer = chat_of([ASKS, search("create an invoice", limit=1), ASKS])
    with board_in(tmp_path) as board:
        middleware = PegboardMiddleware(board)
        sub = create_agent(inner, middleware=[middleware.fork("researcher")])
        agent = create_agent(outer, [delegating(sub)], middleware=[middleware], checkpointer=InMemorySaver())
        agent.invoke(says("go"), THREAD)
    assert lists(inner) == [OWN, (*OWN, "crm__create_invoice")]


def test_a_sub_agent_can_begin_with_nothing(tmp_path: Path) -> None:
    inner = chat_of([OK])
    with board_in(tmp_path) as board:
        middleware = PegboardMiddleware(board)
        sub = create_agent(inner, middleware=[middleware.fork("researcher", inherit=False)])
        outer = chat_of([search("create an invoice", limit=1), ASKS])
        create_agent(outer, [delegating(sub)], middleware=[middleware]).invoke(says("go"))
    assert lists(inner) == [OWN]


def test_a_sub_agents_allowlist_binds_its_search_its_calls_and_its_own_sub_agents(tmp_path: Path) -> None:
    source = crm()
    innermost = chat_of([calls(("crm__create_invoice", {"customer": "Ada"}), ("crm__filler_7", {})), OK])
    inner = chat_of([search("create an invoice"), ASKS, OK])
    with board_in(tmp_path, source) as board:
        middleware = PegboardMiddleware(board)
        narrow = middleware.fork("researcher", allow=["crm__filler_*"])
        wide = narrow.fork("clerk", allow=["*"])
        clerk = create_agent(innermost, middleware=[wide])
        sub = create_agent(inner, [delegating(clerk)], middleware=[narrow])
        outer = chat_of([search("create an invoice", limit=1), ASKS])
        create_agent(outer, [delegating(sub)], middleware=[middleware]).invoke(says("go"))
    assert "crm__create_invoice" not in lists(inner)[0]
    assert "create_invoice" not in inner.script.shown[1].messages[-1].text
    refused, ran = [each for each in innermost.script.shown[1].messages if isinstance(each, ToolMessage)]
    assert (refused.status, ran.status) == ("error", "success")
    assert source.calls == [("filler_7", {})]


@in_a_loop
async def test_sub_agents_that_run_at_once_do_not_mix(tmp_path: Path) -> None:
    def finds(shown: Any) -> Move:
        wanted = str(shown.messages[0].text)
        return search(wanted, limit=1) if len(shown.messages) == 1 else Move(text=" ".join(shown.names))

    inner = chat_of([finds] * 4)

    async with board_in(tmp_path) as board:
        middleware = PegboardMiddleware(board)
        sub = create_agent(inner, middleware=[middleware.fork("researcher")])

        @tool
        async def research(question: str) -> str:
            """Has a sub-agent find out."""
            return str((await sub.ainvoke(says(question)))["messages"][-1].text)

        both = [("research", {"question": each}) for each in ("create an invoice", "refund a payment")]
        outer = chat_of([calls(*both)])
        result = await create_agent(outer, [research], middleware=[middleware]).ainvoke(says("go"))
    answers = [each.text for each in result["messages"] if isinstance(each, ToolMessage)]
    assert answers == [f"{' '.join(OWN)} crm__create_invoice", f"{' '.join(OWN)} crm__refund_payment"]


def test_a_sub_agent_that_is_run_by_nobody_has_a_conversation_of_its_own(tmp_path: Path) -> None:
    inner = chat_of([search("refund a payment", limit=1), OK])
    with board_in(tmp_path) as board:
        fork = PegboardMiddleware(board).fork("researcher", allow=["crm__refund_*"])
        create_agent(inner, middleware=[fork]).invoke(says("go"))
    assert "crm__refund_payment" in lists(inner)[-1]


def test_a_sub_agent_that_a_function_on_the_board_runs_inherits_too(tmp_path: Path) -> None:
    inner = chat_of([OK])
    outer = chat_of([search("create an invoice", limit=1), ASKS])
    with board_in(tmp_path) as board:
        middleware = PegboardMiddleware(board)
        sub = create_agent(inner, middleware=[middleware.fork("researcher")])
        board.tool(delegating(sub).func)
        create_agent(outer, middleware=[middleware]).invoke(says("go"))
    assert lists(inner) == [(*OWN, "crm__create_invoice")]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_many_turns_grow_the_list_only_at_its_end(way: str, tmp_path: Path) -> None:
    turns = [calls((f"crm__filler_{n % 7}", {}), (f"crm__filler_{n * 3 % 11}", {})) for n in range(20)]
    chat = chat_of(turns)
    with board_in(tmp_path) as board:
        agent = create_agent(chat, middleware=[PegboardMiddleware(board)])
        given: Any = {"messages": [HumanMessage("go")]}
        asyncio.run(agent.ainvoke(given)) if way == "ainvoke" else agent.invoke(given)
    seen = lists(chat)
    assert all(after[: len(before)] == before for before, after in pairwise(seen))
    assert len(seen[-1]) == len(OWN) + 11
