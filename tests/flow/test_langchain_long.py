"""One long life of an agent: 500 tools, a server that is a process, sub-agents, a summary, a restart, and on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from pegboard import Pegboard
from pegboard.integrations.langchain import PegboardMiddleware
from pegboard.testing import FakeSource, Move, tool_definition
from tests.flow.langchain_chat import ScriptedChat, board_in, calls, chat_of, crm, search
from tests.loops import in_a_loop
from tests.servers import plain_command

OWN = ("search_tools", "read_result")
THREAD: Any = {"configurable": {"thread_id": "a long one"}}


def says(text: str) -> Any:
    return {"messages": [("user", text)]}


def results(run: Any) -> list[str]:
    return [each.text for each in run["messages"] if isinstance(each, ToolMessage)]


def archive() -> FakeSource:
    """As many tools as it takes to make five hundred."""
    return FakeSource("archive", [tool_definition(f"shelf_{n}", f"Reads shelf number {n}") for n in range(447)])


def opened(folder: Path) -> Pegboard:
    program, *arguments = plain_command()
    servers = {"plain": {"command": program, "args": arguments}}
    return board_in(folder, crm(), archive(), servers=servers, max_active=4)


class Life:
    """An agent with a sub-agent, as a program would set them up each time it starts."""

    def __init__(self, board: Pegboard, saver: InMemorySaver, way: dict[str, Any], **moves: list[Any]) -> None:
        self.chat = chat_of(moves["outer"], **way)
        self.inner = chat_of(moves.get("inner", []), **way)
        self.brief = chat_of([Move(text="So far: invoices, shelves and sums.")])
        middleware = PegboardMiddleware(board)
        helper = create_agent(self.inner, middleware=[middleware.fork("helper", allow=["archive__*", "plain__*"])])

        @tool
        async def delegate(task: str) -> str:
            """Has a helper do it."""
            return str((await helper.ainvoke(says(task)))["messages"][-1].text)

        summarises = SummarizationMiddleware(self.brief, trigger=("messages", 18), keep=("messages", 2))
        self.agent = create_agent(self.chat, [delegate], middleware=[middleware, summarises], checkpointer=saver)


def known(chat: ScriptedChat) -> set[str]:
    """All the tools that the last request told of, on the list or in messages."""
    shown = chat.script.shown[-1]
    inside = [block for each in shown.messages if each.type == "system" for block in each.content]
    definitions = [each for block in inside for each in block.get("tools", [block.get("tool", {}).get("definition")])]
    return {*shown.names, *(each["name"] for each in definitions)}


@pytest.mark.parametrize("way", [{}, {"speaks": "anthropic", "inline": True}], ids=["append", "inline"])
@in_a_loop
async def test_a_long_life(way: dict[str, Any], tmp_path: Path) -> None:
    saver = InMemorySaver()
    async with opened(tmp_path / "first") as board:
        await board.refresh()
        assert len(board.catalog.tools) == 500
        life = Life(
            board,
            saver,
            way,
            outer=[
                search("create an invoice for a customer", limit=1),
                calls(("crm__create_invoice", {"customer": "Ada"})),
                calls(("plain__add", {"a": 2, "b": 3})),
                calls(("archive__shelf_7", {})),
                Move(text="made"),
                calls(("archive__shelf_8", {}), ("archive__shelf_9", {})),
                calls(("delegate", {"task": "add and look"})),
                Move(text="done"),
            ],
            inner=[
                search("adds two numbers", limit=1),
                calls(("plain__add", {"a": 20, "b": 3}), ("crm__create_invoice", {"customer": "Eve"})),
                lambda shown: Move(text=f"{shown.messages[-2].text} / {shown.messages[-1].text}"),
            ],
        )
        first = await life.agent.ainvoke(says("an invoice, a sum and a shelf"), THREAD)
        assert results(first)[2:] == ["5", "shelf_7"]
        second = await life.agent.ainvoke(says("more shelves, and help"), THREAD)
        assert results(second)[-1].startswith("23 / ")
        assert "create_invoice" not in {name.removeprefix("crm__") for name in known(life.inner)}
        # Four places: the invoice had to make room, but for models that have tools in messages it stays said.
        active = {"plain__add", "archive__shelf_7", "archive__shelf_8", "archive__shelf_9"}
        assert known(life.chat) - {*OWN, "delegate"} - {"crm__create_invoice"} == active
        assert ("crm__create_invoice" in known(life.chat)) is bool(way)
    async with opened(tmp_path / "second") as board:
        await board.refresh()
        life = Life(
            board,
            saver,
            way,
            outer=[Move(text="hello again"), calls(("crm__create_invoice", {"customer": "Bob"})), Move(text="made")],
        )
        third = await life.agent.ainvoke(says("are you still there?"), THREAD)
        assert len(life.brief.script.shown) == 1
        assert results(third) == []
        assert known(life.chat) == {*OWN, "delegate", *active}
        last = await life.agent.ainvoke(says("another invoice"), THREAD)
        assert results(last) == ["create_invoice"]
        assert known(life.chat) == {*OWN, "delegate", "crm__create_invoice", *(active - {"plain__add"})}
