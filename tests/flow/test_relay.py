"""Prompts and resources of real servers through the engine: found without a start, used by name, never in the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pegboard.config.model import Config, ServerConfig, ServerSpec, StoreConfig
from pegboard.engine import Engine
from pegboard.errors import PegboardError, RemoteError
from pegboard.gateway.relay import ServerRelay
from pegboard.telemetry.events import Event, OffersChanged, ServerChanged
from pegboard.types import CallContext, Json, ServerState
from tests.servers import hostile_command, offering_command


class House:
    """Servers, where they keep what is known, and how often each was started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "starts"
        self.log.touch()
        self.changed: list[str] = []
        self.news = asyncio.Event()
        self.specs: dict[str, ServerSpec] = {}

    def add(self, name: str, *arguments: str, command: list[str] | None = None) -> None:
        program, *rest = command or offering_command("--id", name, "--log", str(self.log), *arguments)
        self.specs[name] = ServerSpec(name=name, config=ServerConfig(command=program, args=tuple(rest)))

    def starts(self) -> list[str]:
        return self.log.read_text().split()

    def hear(self, kind: str) -> None:
        self.changed.append(kind)
        self.news.set()

    async def lists(self, relay: ServerRelay, *wanted: str) -> None:
        """Looks whenever it is told of a change, until all these are listed."""
        while not {*wanted} <= {each for part in await names(relay) for each in part}:
            await self.news.wait()
            self.news.clear()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[tuple[Engine, ServerRelay]]:
        folder = str(self.folder)
        config = Config(servers=self.specs, store=StoreConfig(cache_dir=folder, state_dir=folder))
        relays: list[ServerRelay] = []

        def heard(event: Event) -> None:
            if isinstance(event, ServerChanged) and event.state is ServerState.READY:
                relays[0].started(event.server)
            elif isinstance(event, OffersChanged):
                relays[0].changed(event.server)

        async with Engine(config, on_event=heard, refresh=False) as engine:
            relay = ServerRelay(engine)
            relay.watch(self.hear)
            relays.append(relay)
            try:
                yield engine, relay
            finally:
                await relay.close()


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path)
    house.add("one")
    house.add("two")
    return house


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 40))


async def ask(relay: ServerRelay, method: str, **params: Any) -> Json:
    return await relay.answer(method, params, CallContext())


async def names(relay: ServerRelay) -> tuple[list[str], list[str], list[str]]:
    prompts, resources = await ask(relay, "prompts/list"), await ask(relay, "resources/list")
    templates = await ask(relay, "resources/templates/list")
    return (
        [each["name"] for each in prompts["prompts"]],
        [each["uri"] for each in resources["resources"]],
        [each["uriTemplate"] for each in templates["resourceTemplates"]],
    )


ALL = (
    ["one__greet", "one__part", "two__greet", "two__part"],
    ["note://shared", "note://one", "pegboard://two/note://shared", "note://two"],
    ["page://{n}", "pegboard://two/page://{n}"],
)


async def learn(engine: Engine) -> None:
    """Both servers have run once, as they do when their tools are listed or called."""
    await engine.call("one__nothing", {})
    await engine.call("two__nothing", {})


def test_a_list_starts_nobody(house: House) -> None:
    async def scenario() -> None:
        async with house.open() as (_, relay):
            assert await names(relay) == ([], [], [])
            assert house.starts() == []

    run(scenario())


def test_what_servers_offer_is_learnt_when_they_run_and_announced(house: House) -> None:
    async def scenario() -> None:
        async with house.open() as (engine, relay):
            await learn(engine)
            assert await names(relay) == ALL
            assert set(house.changed) == {"prompts", "resources"}

    run(scenario())


def test_what_was_learnt_outlives_the_process_and_needs_no_start(house: House) -> None:
    async def scenario() -> None:
        async with house.open() as (engine, relay):
            await learn(engine)
            await names(relay)
        before = house.starts()
        async with house.open() as (_, relay):
            assert await names(relay) == ALL
        assert house.starts() == before

    run(scenario())


def test_a_server_none_of_whose_tools_are_allowed_offers_nothing(house: House) -> None:
    async def scenario() -> None:
        async with house.open() as (engine, relay):
            await learn(engine)
            await names(relay)
            allowed = ServerRelay(engine, allow=("one__*",))
            prompts, resources, templates = await names(allowed)
            assert prompts == ["one__greet", "one__part"]
            assert resources == ["note://shared", "note://one"]
            assert templates == ["page://{n}"]
            for method, params in (
                ("prompts/get", {"name": "two__greet"}),
                ("resources/read", {"uri": "pegboard://two/x"}),
            ):
                with pytest.raises(PegboardError):
                    await ask(allowed, method, **params)
            await allowed.close()

    run(scenario())


def test_using_a_prompt_or_resource_starts_its_server_alone(house: House) -> None:
    async def scenario() -> None:
        async with house.open() as (engine, relay):
            await learn(engine)
            await names(relay)
        before = house.starts()
        async with house.open() as (_, relay):
            got = await ask(relay, "prompts/get", name="two__greet", arguments={"who": "Ada"})
            assert got["messages"][0]["content"]["text"].startswith("two greet Ada")
        assert house.starts() == [*before, "two"]

    run(scenario())


def test_names_and_uris_lead_back_to_the_right_server(house: House) -> None:
    async def scenario() -> None:
        async with house.open() as (engine, relay):
            await learn(engine)
            await names(relay)
            for uri, text in [
                ("note://shared", "one has note://shared"),
                ("pegboard://two/note://shared", "two has note://shared"),
                ("note://two", "two has note://two"),
                ("page://5", "one has page://5"),
                ("pegboard://two/page://5", "two has page://5"),
            ]:
                [content] = (await ask(relay, "resources/read", uri=uri))["contents"]
                assert content == {"uri": uri, "text": text}

    run(scenario())


def test_completions_go_to_whose_prompt_or_template_it_is(house: House) -> None:
    async def scenario() -> None:
        async with house.open() as (engine, relay):
            await learn(engine)
            await names(relay)
            argument = {"name": "who", "value": "A"}
            for ref, text in [
                ({"type": "ref/prompt", "name": "two__greet"}, 'two {"type": "ref/prompt", "name": "greet"}'),
                (
                    {"type": "ref/resource", "uri": "pegboard://two/page://{n}"},
                    'two {"type": "ref/resource", "uri": "page://{n}"}',
                ),
                ({"type": "ref/resource", "uri": "page://{n}"}, 'one {"type": "ref/resource", "uri": "page://{n}"}'),
            ]:
                result = await ask(relay, "completion/complete", ref=ref, argument=argument)
                assert result["completion"]["values"] == [text]

    run(scenario())


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("prompts/get", {"name": "nobody__greet"}),
        ("prompts/get", {"name": "greet"}),
        ("prompts/get", {"name": 5}),
        ("prompts/get", {}),
        ("resources/read", {"uri": "pegboard://nobody/note://one"}),
        ("resources/read", {"uri": "unheard-of://x"}),
        ("resources/read", {}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "nobody__x"}}),
        ("completion/complete", {"ref": "odd"}),
        ("prompts/list", {"cursor": "x"}),
    ],
)
def test_what_leads_nowhere_is_refused_and_starts_nobody(house: House, method: str, params: Json) -> None:
    async def scenario() -> None:
        async with house.open() as (engine, relay):
            await learn(engine)
            await names(relay)
            before = house.starts()
            with pytest.raises(PegboardError):
                await ask(relay, method, **params)
            assert house.starts() == before

    run(scenario())


def test_a_servers_own_refusal_passes_as_it_came(house: House) -> None:
    async def scenario() -> None:
        async with house.open() as (engine, relay):
            await learn(engine)
            with pytest.raises(RemoteError) as caught:
                await ask(relay, "resources/read", uri="pegboard://one/other://x")
            assert (caught.value.code, caught.value.remote_message) == (-32002, "no such resource")

    run(scenario())


def test_a_server_that_fails_is_missing_and_the_others_are_listed(house: House) -> None:
    house.add("broken", "--broken")
    house.add("bare", "--bare")
    house.add("dead", command=["/nonexistent/program"])
    house.add("hostile", command=hostile_command("mute"))

    async def scenario() -> None:
        async with house.open() as (engine, relay):
            await learn(engine)
            await engine.call("broken__nothing", {})
            await engine.call("bare__nothing", {})
            with pytest.raises(PegboardError):
                await engine.server("dead").request("ping", {})
            assert await names(relay) == ALL

    run(scenario())


def test_a_file_that_was_made_for_another_command_or_damaged_is_not_believed(house: House) -> None:
    async def scenario() -> None:
        async with house.open() as (engine, relay):
            await learn(engine)
            await names(relay)
        house.add("one", "--another-flag")
        async with house.open() as (_, relay):
            assert (await names(relay))[0] == ["two__greet", "two__part"]
        for path in (house.folder / "offers").rglob("*.json"):
            path.write_bytes(path.read_bytes()[:-20])
        async with house.open() as (_, relay):
            assert await names(relay) == ([], [], [])

    run(scenario())


def test_nothing_that_a_server_was_given_is_written_down(house: House) -> None:
    spec = house.specs["one"]
    config = msgspec.structs.replace(spec.config, env={"TOKEN": "canary-4711"})
    house.specs["one"] = msgspec.structs.replace(spec, config=config)

    async def scenario() -> None:
        async with house.open() as (engine, relay):
            await learn(engine)
            await names(relay)
        written = b"".join(path.read_bytes() for path in (house.folder / "offers").rglob("*.json"))
        assert written
        assert b"canary-4711" not in written

    run(scenario())


def test_a_bare_prompt_name_finds_a_server_that_runs_but_was_never_listed(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.add("one")
    house.add("bare", "--bare")

    async def scenario() -> None:
        async with house.open() as (engine, relay):
            await engine.call("one__nothing", {})
            await engine.call("bare__nothing", {})
            got = await ask(relay, "prompts/get", name="part")
            assert got["messages"][0]["content"]["text"].startswith("one part")

    run(scenario())


def test_a_server_that_says_its_offers_changed_is_asked_again_and_clients_are_told(house: House) -> None:
    house.add("one", "--grows")

    async def scenario() -> None:
        async with house.open() as (engine, relay):
            await learn(engine)
            await house.lists(relay, "one__new2", "note://one/new2")
            await engine.call("one__nothing", {})
            await house.lists(relay, "one__new3", "note://one/new3")

    run(scenario())


@pytest.mark.parametrize("pause", [0.0, 0.3])
def test_what_changes_while_it_is_being_asked_for_is_asked_for_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pause: float
) -> None:
    monkeypatch.setattr("pegboard.gateway.relay.RELEARN_SECONDS", pause)
    house = House(tmp_path)
    house.add("one", "--restless", "3")

    async def scenario() -> None:
        async with house.open() as (engine, relay):
            await engine.call("one__nothing", {})
            await house.lists(relay, "one__late0")

    run(scenario())


def test_what_a_server_offered_stays_listed_when_it_ends_before_it_is_asked(house: House) -> None:
    async def scenario() -> None:
        async with house.open() as (engine, relay):
            await learn(engine)
            await names(relay)
        house.changed.clear()
        async with house.open() as (engine, relay):
            relay.changed("one")
            relay.started("one")  # the news of a server that is gone by now
            await engine.call("two__nothing", {})
            assert await names(relay) == ALL
            assert house.changed == []

    run(scenario())
