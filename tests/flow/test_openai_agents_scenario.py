"""A long piece of work in the OpenAI Agents SDK: five hundred tools, a real server, sub-agents, a history that is cut
short, a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agents import Runner, SQLiteSession

from pegboard import Pegboard
from pegboard.integrations.openai_agents import PegboardServer
from pegboard.testing import FakeSource, Move
from tests.flow.openai_agents_board import DELETE, ISSUE, OWN, agent, filler
from tests.flow.openai_agents_model import QUIET, PlayedModel, calls, finds, says
from tests.loops import in_a_loop
from tests.servers import plain_command

MOST = 4
"""Tools that may be loaded at once."""


def board_in(folder: Path) -> tuple[Pegboard, FakeSource]:
    forge = FakeSource("forge", [ISSUE, DELETE, *filler(489)])
    program, *rest = plain_command()
    settings = {
        "surface": {"mode": "on", "max_active": MOST},
        "store": {"cache_dir": str(folder / "cache"), "state_dir": str(folder / "state")},
    }
    servers = {"far": {"command": program, "args": rest}}
    return Pegboard(sources=[forge], servers=servers, settings=settings), forge


async def talk(server: PegboardServer, session: SQLiteSession, *moves: Move, **more: Any) -> PlayedModel:
    """One run of the agent in its session; what was on the lists is checked as it goes."""
    model = PlayedModel(*moves)
    await Runner.run(agent(server, server.model(model), **more), "go on", session=session, run_config=QUIET)
    for shown in model.shown:
        assert shown.names[:2] == OWN
        assert len([each for each in shown.names[2:] if "__" in each]) <= MOST
    return model


@in_a_loop
async def test_a_long_piece_of_work_with_five_hundred_tools(tmp_path: Path) -> None:
    session = SQLiteSession("ada", tmp_path / "history.db")
    board, forge = board_in(tmp_path)
    async with board:
        await board.refresh()
        await board.ready()
        assert len(board.catalog.tools) == 500
        server = PegboardServer(board, conversation=session)

        # Found, called, on a real server as well.
        model = await talk(
            server, session, finds("open an issue in a repository"), calls("forge__create_issue", title="a"),
            calls("search_tools", query="select:far__echo"), calls("far__echo", text="hello"), says("ok"),
        )  # fmt: skip
        assert {"forge__create_issue", "far__echo"} <= set(model.shown[-1].names)
        assert "hello" in model.outputs[-1]

        # More than fit: the least recently used go, and stay callable.
        model = await talk(server, session, *(calls(f"forge__tool_{number}") for number in range(6)), says("ok"))
        assert set(model.shown[-1].names[2:]) == {f"forge__tool_{number}" for number in range(2, 6)}
        again = await talk(server, session, calls("forge__create_issue", title="b"), says("ok"))
        assert "forge__create_issue" in again.shown[-1].names
        assert [given for name, given in forge.calls if name == "create_issue"] == [{"title": "a"}, {"title": "b"}]

        # A sub-agent begins with a snapshot of what it may use, and leaves nothing behind.
        inner = PlayedModel(calls("forge__tool_100"), calls("far__echo", text="not allowed"), says("done"))
        child = server.fork("helper", allow=["forge__*"])
        helper = agent(child, child.model(inner), "helper").as_tool("helper", "Helps.")
        outer = await talk(server, session, calls("helper", input="help"), says("ok"), tools=[helper])
        assert inner.shown[0].names[2:] == tuple(name for name in outer.shown[0].names[2:] if "__" in name)
        assert "forge__tool_100" in inner.shown[1].names
        assert "not among the tools that you may use" in inner.outputs[1]
        assert "forge__tool_100" not in outer.shown[-1].names

        # The history is summed up: what is loaded does not hang on it.
        before = outer.shown[-1].names
        await session.clear_session()
        await session.add_items([{"role": "user", "content": "So far: two issues were opened."}])
        short = await talk(server, session, says("ok"))
        assert len(short.shown[0].messages) == 2
        assert short.shown[0].names == tuple(name for name in before if name != "helper")
        assert short.shown[0].names[2:] != ()

    # Another process: a new board, the same session.
    board, forge = board_in(tmp_path)
    async with board:
        await board.refresh("forge")
        server = PegboardServer(board, conversation=session)
        model = await talk(server, session, calls("far__echo", text="again"), finds("delete a repository"), says("ok"))
        assert set(model.shown[0].names) == set(short.shown[0].names)
        assert "again" in model.outputs[-2]
        assert "forge__delete_repository" in model.shown[-1].names
    session.close()
