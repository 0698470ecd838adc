"""The engine over real servers: the catalog is there before any of them runs, and survives them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pegboard.catalog.cache import cache_path
from pegboard.config.model import Config, GatewayConfig, Requires, ServerConfig, ServerSpec, StoreConfig, ToolsConfig
from pegboard.engine import Engine, load_catalog
from pegboard.errors import PegboardError, ServerNotFound, ServerUnavailable, ToolNotFound
from pegboard.telemetry.events import Event, ServerChanged, ToolsUpdated
from pegboard.types import CallContext, Progress, ServerState
from tests.servers import plain_command

ERAS = ["legacy", "modern"]


class House:
    """A configuration under construction, and the log of what its servers were asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.specs: dict[str, ServerSpec] = {}
        self.tools = ToolsConfig()

    def add(self, name: str, *arguments: str, **fields: Any) -> None:
        """A plain server that runs from a file of its own, which a test may change or take away."""
        program, *rest = plain_command("--log", str(self.log_path(name)), *arguments)
        original = next(each for each in rest if each.endswith("plain.py"))
        self.script(name).write_bytes(Path(original).read_bytes())
        rest[rest.index(original)] = str(self.script(name))
        self.specs[name] = ServerSpec(name=name, config=ServerConfig(command=program, args=tuple(rest), **fields))

    def script(self, name: str) -> Path:
        return self.folder / f"{name}.py"

    def add_broken(self, name: str) -> None:
        config = ServerConfig(command=sys.executable, args=("-c", "import sys; sys.exit('out of coffee')"))
        self.specs[name] = ServerSpec(name=name, config=config)

    def log_path(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def starts(self, name: str) -> int:
        path = self.log_path(name)
        return path.read_text().count("start") if path.exists() else 0

    @property
    def config(self) -> Config:
        return Config(
            servers=self.specs,
            tools=self.tools,
            gateway=GatewayConfig(start_timeout=10, call_timeout=10),
            store=StoreConfig(cache_dir=str(self.folder / "cache"), state_dir=str(self.folder / "state")),
        )


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def in_engine(
    house: House,
    work: Callable[[Engine], Awaitable[None]],
    on_event: Callable[[Event], None] | None = None,
    *,
    refresh: bool = False,
) -> None:
    async def scenario() -> None:
        async with asyncio.timeout(30), Engine(house.config, on_event=on_event, refresh=refresh) as engine:
            await work(engine)

    asyncio.run(scenario())


def refresh(house: House) -> None:
    async def work(engine: Engine) -> None:
        await engine.refresh()

    in_engine(house, work)


@pytest.mark.parametrize("era", ERAS)
def test_all_tools_are_known_from_the_cache_while_no_server_runs(house: House, era: str) -> None:
    house.add("one", "--era", era)
    house.add("two", "--era", era, "--tools", "30")
    refresh(house)
    assert house.starts("one") == house.starts("two") == 1

    catalog = load_catalog(house.config)
    assert "one__echo" in catalog.tools
    assert catalog.find("tool_029").server == "two"
    assert house.starts("one") == house.starts("two") == 1


def test_a_call_starts_the_one_server_it_needs(house: House) -> None:
    house.add("one")
    house.add("two")
    refresh(house)

    async def work(engine: Engine) -> None:
        result = await engine.call("two__echo", {"text": "hello"})
        assert result["content"][0]["text"] == "hello"
        assert engine.server("two").state is ServerState.READY
        assert engine.server("one").state is ServerState.IDLE

    in_engine(house, work)
    assert (house.starts("one"), house.starts("two")) == (1, 2)


def test_a_refresh_stops_the_server_again_unless_it_is_in_use(house: House) -> None:
    house.add("one")

    async def work(engine: Engine) -> None:
        await engine.refresh()
        assert not engine.server("one").is_running
        await engine.call("one__echo", {"text": "x"})
        await engine.refresh()
        assert engine.server("one").is_running

    in_engine(house, work)


def test_a_refresh_says_what_was_added_removed_and_changed(house: House) -> None:
    house.add("one")
    refresh(house)
    script = house.script("one").read_text()
    script = script.replace('"name": "add"', '"name": "sum"').replace("Returns the text it is given.", "Says it again.")
    house.script("one").write_text(script)
    events: list[Event] = []

    async def work(engine: Engine) -> None:
        [outcome] = await engine.refresh()
        assert (outcome.added, outcome.removed, outcome.changed) == (("one__sum",), ("one__add",), ("one__echo",))
        assert engine.catalog.tools["one__echo"].description == "Says it again."

    in_engine(house, work, events.append)
    [update] = [event for event in events if isinstance(event, ToolsUpdated)]
    assert (update.server, update.added, update.removed) == ("one", ("one__sum",), ("one__add",))


def test_a_server_that_cannot_start_keeps_its_cached_tools_and_says_why(house: House) -> None:
    house.add("one")
    refresh(house)
    house.script("one").unlink()

    async def work(engine: Engine) -> None:
        [outcome] = await engine.refresh()
        assert "exited with code 2" in outcome.error
        assert "No such file" in outcome.hint
        assert engine.server("one").state is ServerState.ERROR
        assert "one__echo" in engine.catalog.tools
        with pytest.raises(PegboardError, match="one: its process exited with code 2"):
            await engine.call("one__echo", {"text": "x"})

    in_engine(house, work)
    assert "one__echo" in load_catalog(house.config).tools


def test_a_server_launched_in_another_way_does_not_get_the_old_cache(house: House) -> None:
    house.add("one")
    refresh(house)
    house.add("one", "--tools", "3")
    catalog = load_catalog(house.config)
    assert catalog.tools == {}
    assert catalog.servers["one"].listed is None


def test_one_broken_server_disturbs_no_other(house: House) -> None:
    house.add("good")
    house.add_broken("bad")

    async def work(engine: Engine) -> None:
        outcomes = {outcome.server: outcome for outcome in await engine.refresh()}
        assert outcomes["good"].error == ""
        assert "bad: its process exited with code 1" in outcomes["bad"].error
        assert "out of coffee" in outcomes["bad"].hint
        assert (await engine.call("good__add", {"a": 1, "b": 2}))["content"]

    in_engine(house, work)


def test_a_tool_of_a_server_that_was_never_listed_can_be_called(house: House) -> None:
    house.add("one")

    async def work(engine: Engine) -> None:
        assert engine.catalog.tools == {}
        assert (await engine.call("one__echo", {"text": "hi"}))["structuredContent"] == {"text": "hi"}

    in_engine(house, work)


def test_a_corrupt_cache_is_a_warning_and_prevents_no_call(house: House) -> None:
    house.add("one")
    refresh(house)
    path = cache_path(house.config.cache_dir, house.specs["one"])
    path.write_bytes(path.read_bytes()[:-100])

    async def work(engine: Engine) -> None:
        assert any("one" in warning and "checksum" in warning for warning in engine.catalog.warnings)
        assert (await engine.call("one__echo", {"text": "hi"}))["content"]

    in_engine(house, work)


def test_a_tool_that_is_newer_than_the_cache_can_be_called(house: House) -> None:
    house.add("one")
    refresh(house)
    source = house.script("one").read_text()
    house.script("one").write_text(source.replace('"echo"', '"repeat"').replace("tool_echo", "tool_repeat"))

    async def work(engine: Engine) -> None:
        assert "one__repeat" not in engine.catalog.tools
        assert (await engine.call("one__repeat", {"text": "hi"}))["content"]

    in_engine(house, work)


def test_a_name_that_does_not_exist_costs_at_most_one_list_and_one_that_is_denied_costs_none(house: House) -> None:
    house.add("one")
    house.tools = ToolsConfig(deny=("*__add",))
    refresh(house)

    async def work(engine: Engine) -> None:
        for name in ("one__add", "one__ecko", "one__ecko", "nobody__echo"):
            with pytest.raises(ToolNotFound):
                await engine.find(name)

    in_engine(house, work)
    assert house.starts("one") == 2


def test_a_wrong_name_is_still_answered_with_the_nearest_when_the_server_is_down(house: House) -> None:
    house.add("one")
    refresh(house)
    house.script("one").write_text("raise SystemExit(2)")

    async def work(engine: Engine) -> None:
        with pytest.raises(ToolNotFound) as caught:
            await engine.find("one__ecko")
        assert caught.value.nearest == ("one__echo",)

    in_engine(house, work)


def test_a_server_whose_name_is_refused_is_never_started(house: House) -> None:
    house.add("one")
    house.add("0ne")
    house.add("pegboard")

    async def work(engine: Engine) -> None:
        assert engine.stale() == ["0ne"]
        assert [outcome.server for outcome in await engine.refresh()] == ["0ne"]
        with pytest.raises(ServerUnavailable, match="easily confused"):
            await engine.refresh(["one"])

    in_engine(house, work)
    assert house.starts("one") == house.starts("pegboard") == 0


def test_a_cache_that_cannot_be_written_is_a_warning_and_the_tools_serve_all_the_same(house: House) -> None:
    house.add("one")
    (house.folder / "cache").write_text("a file where the folder should be")

    async def work(engine: Engine) -> None:
        [outcome] = await engine.refresh()
        assert outcome.error == ""
        assert any("not cached" in warning for warning in outcome.warnings)
        assert (await engine.call("one__echo", {"text": "hi"}))["content"]

    in_engine(house, work)


@pytest.mark.parametrize("era", ERAS)
def test_a_server_that_says_its_tools_changed_is_listed_again(house: House, era: str) -> None:
    house.add("one", "--era", era, "--changed-after", "1")
    changed = asyncio.Event()

    def heard(event: Event) -> None:
        if isinstance(event, ToolsUpdated) and not event.removed and len(event.added) == 1:
            changed.set()

    async def work(engine: Engine) -> None:
        await engine.refresh()
        before = set(engine.catalog.tools)
        await engine.call("one__echo", {"text": "x"})
        await asyncio.wait_for(changed.wait(), 20)
        assert len(set(engine.catalog.tools) - before) == 1

    in_engine(house, work, heard)


def test_stale_servers_are_refreshed_in_the_background_and_fresh_ones_are_left_alone(house: House) -> None:
    house.add("fresh")
    refresh(house)
    house.add("stale")

    updated = asyncio.Event()

    async def work(engine: Engine) -> None:
        assert engine.stale() == ["stale"]
        assert set(engine.catalog.servers) == {"fresh", "stale"}
        assert "stale__echo" not in engine.catalog.tools
        await asyncio.wait_for(updated.wait(), 20)
        assert "stale__echo" in engine.catalog.tools

    in_engine(house, work, lambda event: updated.set() if isinstance(event, ToolsUpdated) else None, refresh=True)
    assert house.starts("fresh") == 1


def test_a_server_that_was_down_at_the_start_is_asked_again_by_itself(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard.engine.LOOK_AGAIN_SECONDS", 0.2)
    house.add("late")
    program = house.script("late").read_bytes()
    house.script("late").unlink()
    failed, updated = asyncio.Event(), asyncio.Event()

    def heard(event: Event) -> None:
        if isinstance(event, ServerChanged) and event.state is ServerState.ERROR:
            failed.set()
        elif isinstance(event, ToolsUpdated):
            updated.set()

    async def work(engine: Engine) -> None:
        await failed.wait()
        assert engine.catalog.tools == {}
        house.script("late").write_bytes(program)
        await updated.wait()
        assert "late__echo" in engine.catalog.tools

    in_engine(house, work, heard, refresh=True)


def test_a_list_that_grows_old_while_pegboard_runs_is_asked_anew(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pegboard.engine.LOOK_AGAIN_SECONDS", 0.2)
    house.tools = ToolsConfig(refresh_after=0.1)
    house.add("one")
    added: list[str] = []
    updated = asyncio.Event()

    def heard(event: Event) -> None:
        if isinstance(event, ToolsUpdated):
            added.extend(event.added)
            updated.set()

    async def work(_: Engine) -> None:
        await updated.wait()
        script = house.script("one")
        script.write_text(script.read_text().replace('"echo"', '"shout"'))
        while "one__shout" not in added:
            updated.clear()
            await updated.wait()

    in_engine(house, work, heard, refresh=True)


def test_a_list_that_its_server_calls_short_lived_does_not_start_it_time_and_again(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard.engine.LOOK_AGAIN_SECONDS", 0.05)
    house.add("one", "--era", "modern", "--ttl", "1")
    house.add("two")
    script = house.script("two")
    program = script.read_bytes()
    script.unlink()
    seen: list[str] = []
    updated = asyncio.Event()

    def heard(event: Event) -> None:
        if isinstance(event, ToolsUpdated):
            seen.append(event.server)
            updated.set()
        elif isinstance(event, ServerChanged) and event.server == "two" and event.state is ServerState.ERROR:
            script.write_bytes(program)

    async def work(engine: Engine) -> None:
        while sorted(seen) != ["one", "two"]:  # by then it has been looked again at least once
            updated.clear()
            await updated.wait()
        assert "one" in engine.stale()

    in_engine(house, work, heard, refresh=True)
    assert house.starts("one") == 1


def test_a_disabled_server_is_never_contacted(house: House) -> None:
    house.add("off", enabled=False)

    async def work(engine: Engine) -> None:
        assert await engine.refresh() == []
        with pytest.raises(ServerUnavailable, match="disabled"):
            await engine.refresh(["off"])
        with pytest.raises(ToolNotFound, match="disabled"):
            await engine.call("off__echo", {})

    in_engine(house, work)
    assert house.starts("off") == 0


def test_a_gated_server_is_not_surfaced_until_what_it_requires_is_there(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.add("one", requires=Requires(env=("PEG_TEST_TOKEN",)))
    monkeypatch.setenv("PEG_TEST_TOKEN", "x")
    refresh(house)
    monkeypatch.delenv("PEG_TEST_TOKEN")

    async def work(engine: Engine) -> None:
        assert engine.catalog.tools == {}
        assert "PEG_TEST_TOKEN, which is not set" in engine.catalog.servers["one"].unavailable
        monkeypatch.setenv("PEG_TEST_TOKEN", "x")
        engine._prober._known.clear()  # half a minute later
        assert "one__echo" in (await engine.current()).tools

    in_engine(house, work)


def test_an_unknown_server_is_answered_with_the_nearest_name(house: House) -> None:
    house.add("github")

    async def work(engine: Engine) -> None:
        with pytest.raises(ServerNotFound) as caught:
            await engine.refresh(["githb"])
        assert caught.value.nearest == ("github",)

    in_engine(house, work)


def test_a_server_that_cannot_work_now_is_not_started_by_a_refresh_of_its_name(house: House) -> None:
    house.add("one", requires=Requires(env=("PEG_TEST_MISSING",)))

    async def work(engine: Engine) -> None:
        (outcome,) = await engine.refresh(["one"])
        assert "PEG_TEST_MISSING" in outcome.error

    in_engine(house, work)
    assert house.starts("one") == 0


ASKS_THE_OLDER_WAY = """
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("asks")

class Name(BaseModel):
    name: str

@server.tool()
async def greet(ctx: Context) -> str:
    answer = await ctx.elicit("Who are you?", Name)
    return f"Hello, {answer.data.name}"

server.run()
"""


def test_a_server_that_asks_in_the_older_way_can_be_told_to_speak_the_older_protocol(house: House) -> None:
    (house.folder / "asks.py").write_text(ASKS_THE_OLDER_WAY)
    command = ServerConfig(command=sys.executable, args=(str(house.folder / "asks.py"),), protocol="handshake")
    house.specs["asks"] = ServerSpec(name="asks", config=command)

    async def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"action": "accept", "content": {"name": "Ada"}}

    async def work(engine: Engine) -> None:
        result = await engine.call("asks__greet", {}, CallContext(on_ask=answer))
        assert result["content"][0]["text"] == "Hello, Ada"

    in_engine(house, work)


@pytest.mark.parametrize("era", ERAS)
def test_progress_and_questions_reach_whoever_called(house: House, era: str) -> None:
    house.add("one", "--era", era)
    heard: list[Progress] = []

    async def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert method == "elicitation/create"
        assert params["message"]
        return {"action": "accept", "content": {"name": "Ada"}}

    async def work(engine: Engine) -> None:
        await engine.call("one__progress", {}, CallContext(on_progress=heard.append))
        result = await engine.call("one__ask", {}, CallContext(on_ask=answer))
        assert "Ada" in result["content"][0]["text"]

    in_engine(house, work)
    assert [each.progress for each in heard] == [1, 2, 3]


def test_cancelling_a_call_tells_the_server_and_leaves_the_connection_alone(house: House) -> None:
    house.add("one")

    async def work(engine: Engine) -> None:
        call = asyncio.create_task(engine.call("one__slow", {"seconds": 30}))
        while "tools/call" not in (house.log_path("one").read_text() if house.log_path("one").exists() else ""):
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await engine.call("one__echo", {"text": "still here"}))["content"]

    refresh(house)
    in_engine(house, work)
    assert house.starts("one") == 2  # once to list, once for both calls
    assert "notifications/cancelled" in house.log_path("one").read_text()
