"""Tools in messages, for models that take them there: the exact shapes, and that nothing before them ever changes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ModelFallbackMiddleware, SummarizationMiddleware
from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from pegboard.errors import ConfigError
from pegboard.integrations.langchain import PegboardMiddleware
from pegboard.testing import FakeSource, Move, tool_definition
from tests.flow.langchain_chat import ScriptedChat, as_sent, board_in, calls, chat_of, crm, search

OWN = ("search_tools", "read_result")
THREAD: Any = {"configurable": {"thread_id": "t"}}
SCHEMA = {"type": "object", "properties": {"customer": {"type": "string"}}, "required": ["customer"]}
EXPECTED = {
    "anthropic": {
        "type": "tool_addition",
        "tool": {
            "type": "tool_definition",
            "definition": {
                "name": "crm__create_invoice",
                "description": "Create an invoice for a customer",
                "input_schema": SCHEMA,
            },
        },
    },
    "openai": {
        "type": "additional_tools",
        "role": "developer",
        "tools": [
            {
                "type": "function",
                "name": "crm__create_invoice",
                "description": "Create an invoice for a customer",
                "parameters": SCHEMA,
            }
        ],
    },
}


def says(text: str) -> Any:
    return {"messages": [("user", text)]}


def additions(messages: tuple[BaseMessage, ...]) -> list[tuple[int, list[str]]]:
    """Where tools are added, and which."""
    return [
        (place, _names(message.content)) for place, message in enumerate(messages) if isinstance(message, SystemMessage)
    ]


def _names(content: Any) -> list[str]:
    names = []
    for block in content:
        definitions = block["tools"] if "tools" in block else [block["tool"]["definition"]]
        names += [each["name"] for each in definitions]
    return names


def never_rewritten(chat: ScriptedChat) -> bool:
    sent = [as_sent(shown)[:-1] for shown in chat.script.shown]
    return all(after.startswith(before) for before, after in pairwise(sent))


@pytest.mark.parametrize("speaks", ["anthropic", "openai"])
def test_a_loaded_tool_stands_in_a_message_after_the_one_that_loaded_it(speaks: str, tmp_path: Path) -> None:
    moves = [search("create an invoice", limit=1), calls(("crm__create_invoice", {"customer": "Ada"}))]
    chat = chat_of(moves, speaks=speaks, inline=True)
    with board_in(tmp_path) as board:
        result = create_agent(chat, middleware=[PegboardMiddleware(board)]).invoke(says("go"))
    assert [shown.names for shown in chat.script.shown] == [OWN] * 3
    assert chat.script.shown[1].messages[3].content == [EXPECTED[speaks]]
    assert [each.type for each in chat.script.shown[2].messages] == ["human", "ai", "tool", "system", "ai", "tool"]
    assert [each.type for each in result["messages"]] == ["human", "ai", "tool", "ai", "tool", "ai"]
    assert never_rewritten(chat)


@pytest.mark.parametrize(("speaks", "inline"), [("anthropic", False), ("openai", False), ("google_genai", True)])
def test_models_that_do_not_take_them_there_have_them_on_the_list(speaks: str, inline: bool, tmp_path: Path) -> None:
    chat = chat_of([search("create an invoice", limit=1)], speaks=speaks, inline=inline)
    with board_in(tmp_path) as board:
        create_agent(chat, middleware=[PegboardMiddleware(board)]).invoke(says("go"))
    assert chat.script.shown[-1].names == (*OWN, "crm__create_invoice")
    assert additions(chat.script.shown[-1].messages) == []


def test_append_and_inline_can_be_demanded(tmp_path: Path) -> None:
    appended = chat_of([search("create an invoice", limit=1)], speaks="anthropic", inline=True)
    inline = chat_of([search("create an invoice", limit=1)], speaks="openai")
    with board_in(tmp_path) as board:
        create_agent(appended, middleware=[PegboardMiddleware(board, reveal="append")]).invoke(says("go"))
        create_agent(inline, middleware=[PegboardMiddleware(board, reveal="inline")]).invoke(says("go"))
        unknown = create_agent(chat_of([]), middleware=[PegboardMiddleware(board, reveal="inline")])
        with pytest.raises(ConfigError, match="ScriptedChat cannot be given tools in a message"):
            unknown.invoke(says("go"))
    assert appended.script.shown[-1].names == (*OWN, "crm__create_invoice")
    assert additions(inline.script.shown[-1].messages) == [(3, ["crm__create_invoice"])]


def test_a_bound_model_is_known_by_what_it_binds(tmp_path: Path) -> None:
    chat = chat_of([search("create an invoice", limit=1)], speaks="openai", inline=True)
    with board_in(tmp_path) as board:
        bound: Any = chat.with_config(tags=["x"])
        create_agent(bound, middleware=[PegboardMiddleware(board)]).invoke(says("go"))
    assert additions(chat.script.shown[-1].messages) == [(3, ["crm__create_invoice"])]


@pytest.mark.parametrize("speaks", ["anthropic", "openai"])
def test_over_many_turns_no_request_changes_what_the_one_before_it_said(speaks: str, tmp_path: Path) -> None:
    turns: list[Any] = []
    for n in range(20):
        turns += [calls((f"crm__filler_{n}", {}), (f"crm__filler_{n * 3 % 20}", {})), Move(text=f"done {n}")]
    chat = chat_of(turns, speaks=speaks, inline=True)
    # Few places: what is crowded out stays where it was said, for to take it out would change what was sent.
    with board_in(tmp_path, max_active=4) as board:
        agent = create_agent(
            chat, system_prompt="Be kind.", middleware=[PegboardMiddleware(board)], checkpointer=InMemorySaver()
        )
        for n in range(20):
            agent.invoke(says(f"turn {n}"), THREAD)
    assert never_rewritten(chat)
    named = [name for _, names in additions(chat.script.shown[-1].messages) for name in names]
    assert sorted(named) == sorted(set(named)) == sorted(f"crm__filler_{n}" for n in range(20))


def test_calls_of_one_turn_are_not_split_by_the_message(tmp_path: Path) -> None:
    both = calls(("crm__filler_1", {}), ("search_tools", {"query": "create an invoice", "limit": 1}))
    chat = chat_of([both], speaks="anthropic", inline=True)
    with board_in(tmp_path) as board:
        create_agent(chat, middleware=[PegboardMiddleware(board)]).invoke(says("go"))
    assert [each.type for each in chat.script.shown[1].messages] == ["human", "ai", "tool", "tool", "system"]
    assert sorted(additions(chat.script.shown[1].messages)[0][1]) == ["crm__create_invoice", "crm__filler_1"]


def test_after_a_summary_what_is_loaded_stands_after_it_and_stays_there(tmp_path: Path) -> None:
    ok = Move(text="ok")
    moves = [search("create an invoice", limit=1), ok, ok, calls(("crm__filler_1", {})), ok]
    chat = chat_of(moves, speaks="anthropic", inline=True)
    brief = chat_of([Move(text="They found a tool.")])
    summarises = SummarizationMiddleware(brief, trigger=("messages", 5), keep=("messages", 1))
    with board_in(tmp_path) as board:
        agent = create_agent(chat, middleware=[PegboardMiddleware(board), summarises], checkpointer=InMemorySaver())
        agent.invoke(says("first"), THREAD)
        agent.invoke(says("second"), THREAD)
        plain = create_agent(chat, middleware=[PegboardMiddleware(board)], checkpointer=agent.checkpointer)
        plain.invoke(says("third"), THREAD)
    assert len(brief.script.shown) == 1
    _, _, summarised, third, fourth = chat.script.shown
    assert additions(summarised.messages) == [(2, ["crm__create_invoice"])]
    assert additions(third.messages) == [(2, ["crm__create_invoice"])]
    assert additions(fourth.messages) == [(2, ["crm__create_invoice"]), (7, ["crm__filler_1"])]


def test_a_sub_agent_has_what_it_inherits_after_its_first_message(tmp_path: Path) -> None:
    inner = chat_of([Move(text="done")], speaks="openai", inline=True)
    outer = chat_of([search("create an invoice", limit=1), calls(("ask", {}))], speaks="openai", inline=True)
    with board_in(tmp_path) as board:
        middleware = PegboardMiddleware(board)
        sub = create_agent(inner, middleware=[middleware.fork("clerk")])

        @tool
        def ask() -> str:
            """Asks the clerk."""
            return str(sub.invoke(says("what?"))["messages"][-1].text)

        create_agent(outer, [ask], middleware=[middleware]).invoke(says("go"))
    assert additions(inner.script.shown[0].messages) == [(1, ["crm__create_invoice"])]


def test_what_is_pinned_or_the_agents_own_is_not_said_twice(tmp_path: Path) -> None:
    @tool
    def crm__refund_payment() -> str:
        """Mine."""
        return "mine"

    moves = [search("create an invoice or refund a payment", limit=5)]
    chat = chat_of(moves, speaks="anthropic", inline=True)
    with board_in(tmp_path, pinned=["crm__create_invoice"]) as board:
        create_agent(chat, [crm__refund_payment], middleware=[PegboardMiddleware(board)]).invoke(says("go"))
    listed = set(chat.script.shown[-1].names)
    added = {name for _, names in additions(chat.script.shown[-1].messages) for name in names}
    assert {"crm__create_invoice", "crm__refund_payment"} <= listed
    assert not listed & added


@pytest.mark.parametrize("speaks", ["anthropic", "openai"])
@pytest.mark.parametrize("reveal", ["append", "inline"])
def test_a_schema_that_would_be_refused_is_shown_without_what_is_refused(
    reveal: Any, speaks: str, tmp_path: Path
) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    }
    source = FakeSource("odd", [tool_definition("either", "Takes a or b", inputSchema=schema)])
    chat = chat_of([calls(("odd__either", {"a": "x"}), ("odd__either", {}))], speaks=speaks)
    with board_in(tmp_path, source) as board:
        create_agent(chat, middleware=[PegboardMiddleware(board, reveal=reveal)]).invoke(says("go"))
    last = chat.script.shown[-1]
    if reveal == "inline":
        [block] = last.messages[-1].content
        shown = block["tools"][0]["parameters"] if speaks == "openai" else block["tool"]["definition"]["input_schema"]
    else:
        shown = last.tools[-1]["function"]["parameters"]
    assert shown == {"type": "object", "properties": schema["properties"]}


def test_a_tool_that_is_gone_is_no_longer_shown(tmp_path: Path) -> None:
    source = crm()
    chat = chat_of(
        [search("create an invoice", limit=1), Move(text="ok"), Move(text="ok")], speaks="openai", inline=True
    )
    with board_in(tmp_path, source) as board:
        agent = create_agent(chat, middleware=[PegboardMiddleware(board)], checkpointer=InMemorySaver())
        agent.invoke(says("go"), THREAD)
        source.tools = [each for each in source.tools if each["name"] != "create_invoice"]
        board.wait(board.refresh())
        agent.invoke(says("and now?"), THREAD)
    assert additions(chat.script.shown[1].messages) == [(3, ["crm__create_invoice"])]
    assert additions(chat.script.shown[2].messages) == []


def test_a_model_that_another_middleware_puts_in_has_tools_where_it_takes_them(tmp_path: Path) -> None:
    def fails(_: Any) -> Move:
        raise RuntimeError("overloaded")

    first = chat_of([search("create an invoice", limit=1), fails], speaks="anthropic", inline=True)
    second = chat_of([Move(text="ok")])
    with board_in(tmp_path, crm()) as board:
        middleware: Any = [ModelFallbackMiddleware(second), PegboardMiddleware(board)]
        run = create_agent(first, middleware=middleware).invoke(says("go"))
    assert run["messages"][-1].text == "ok"
    assert additions(first.script.shown[-1].messages) == [(3, ["crm__create_invoice"])]
    assert additions(second.script.shown[0].messages) == []
    assert second.script.shown[0].names == (*OWN, "crm__create_invoice")
