"""One long conversation in Pydantic AI: found, called, evicted, delegated, summarised, restarted, gone on with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelRequest

from pegboard import Pegboard
from pegboard.integrations.pydantic_ai import PegboardCapability
from pegboard.testing import FakeSource, Move, ScriptedModel, tool_definition
from tests.flow.pydantic_ai_model import model_of, results
from tests.loops import in_a_loop
from tests.servers import plain_command

PARTS = ("engine", "brake", "mirror", "wheel", "door", "lamp", "horn", "seat", "roof", "pedal")
ACTIVE = 4


def garage() -> FakeSource:
    """Five hundred tools, each for one part of one car."""
    tools = [
        tool_definition(f"check_{part}_{car}", f"Checks the {part} of car number {car} in the garage.")
        for car in range(50)
        for part in PARTS
    ]
    return FakeSource("garage", tools)


def board_in(folder: Path, source: FakeSource) -> Pegboard:
    program, *arguments = plain_command("--log", str(folder / "plain.log"))
    return Pegboard(
        servers={"plain": {"command": program, "args": arguments}},
        sources=[source],
        settings={
            "surface": {"mode": "on", "max_active": ACTIVE, "pinned": ["plain__echo"]},
            "search": {"embedder": "none"},
            "store": {"cache_dir": str(folder / "cache"), "state_dir": str(folder / "state")},
        },
    )


def call(name: str, **arguments: Any) -> Move:
    return Move(calls=((name, arguments),))


def check(part: str, car: int) -> Move:
    return call(f"garage__check_{part}_{car}")


@pytest.mark.parametrize("state", ["store", "messages"])
@in_a_loop
async def test_a_long_conversation_keeps_what_it_has_loaded_through_all_that_happens(
    tmp_path: Path, state: str
) -> None:
    source = garage()
    options: Any = {"state": state}
    child = ScriptedModel([check("wheel", 9), call("plain__add", a=1, b=2), check("horn", 3)])
    script = ScriptedModel(
        [
            call("search_tools", query="check the brake of car 7", limit=1),
            check("brake", 7),
            call("plain__add", a=2, b=3),  # nobody searched for it, and its server was not running
            *(check("lamp", car) for car in range(ACTIVE)),
            call("delegate"),
        ]
    )
    async with board_in(tmp_path, source) as board:
        await board.refresh()
        tools = PegboardCapability(board, **options)
        agent = Agent(model_of(script), capabilities=[tools], deps_type=object)

        @agent.tool
        async def delegate(ctx: RunContext[object]) -> str:
            """Has a colleague look at the wheels."""
            mine = tools.fork(ctx, "colleague", allow=["garage__*wheel*", "garage__*lamp*"])
            return (await Agent(model_of(child)).run("look", capabilities=[mine])).output

        run = await agent.run("look at the cars")
    listed = [set(shown.names) for shown in script.shown]
    assert all({"search_tools", "plain__echo", "delegate"} <= names for names in listed)
    assert "garage__check_brake_7" in listed[1]
    assert "plain__add" in listed[3]
    lamps = {f"garage__check_lamp_{car}" for car in range(ACTIVE)}
    assert lamps <= listed[-1]
    assert not {"garage__check_brake_7", "plain__add"} & listed[-1]  # no room: those used longest ago went
    assert lamps <= set(child.shown[0].names)
    assert [ending for _, _, ending in results(run.all_messages())] == ["success"] * 8
    assert "plain__add" not in {name for shown in child.shown for name in shown.names}
    assert ("check_horn_3", {}) not in source.calls  # the colleague may not
    assert lamps <= set(script.shown[-1].names)  # and what the colleague loaded is the colleague's

    kept = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(run.all_messages()))
    summary: list[ModelMessage] = [ModelRequest.user_text_prompt("They looked at the lamps of four cars.")]
    for history in (kept, summary):
        after = ScriptedModel([call("plain__add", a=2, b=3), check("brake", 7)])
        async with board_in(tmp_path, source) as board:
            agent = Agent(model_of(after), capabilities=[PegboardCapability(board, **options)])
            again = await agent.run("go on", message_history=history, conversation_id=run.conversation_id)
        assert again.output == "done"
        assert [ending for _, _, ending in results(again.new_messages())] == ["success", "success"]
        assert len(set(after.shown[0].names) & lamps) == (ACTIVE if history is kept else ACTIVE - 2)
        assert {"garage__check_brake_7", "plain__add"} <= set(after.shown[-1].names)
