"""Servers made with the official SDK, over HTTP: both eras, JSON and streams, with sessions and without."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pegboard.errors import ProtocolViolation, RemoteError
from pegboard.types import Json, Progress
from tests.flow.remote import Heard, call, pool_of, run, spec, text_of
from tests.servers import EXAMPLES, example_http
from tests.servers.sdk_http import sdk_http

ERAS = {"handshake": "2025-11-25", "stateless": "2026-07-28"}
KINDS: dict[str, tuple[str, ...]] = {
    "streams": (),
    "json": ("--json",),
    "no sessions": ("--stateless",),
    "json, no sessions": ("--json", "--stateless"),
    "resumable": ("--resumable",),
}


@pytest.fixture(scope="module", params=KINDS)
def far(request: pytest.FixtureRequest) -> Iterator[str]:
    with sdk_http(*KINDS[request.param]) as url:
        yield url


@pytest.fixture(scope="module")
def streaming() -> Iterator[str]:
    with sdk_http() as url:
        yield url


@pytest.mark.parametrize("era", ERAS)
def test_tools_are_listed_and_called_whatever_the_server_answers_with(far: str, era: str) -> None:
    async def scenario() -> None:
        async with pool_of(spec("far", far), known_version=ERAS[era]) as pool:
            listing = await pool.get("far").list_tools()
            assert listing.protocol_version == ERAS[era]
            assert (listing.server_name, listing.server_version) == ("sdk", "1")
            assert {"echo", "steps", "ask", "wait"} <= {tool["name"] for tool in listing.tools}
            results = await asyncio.gather(*(call(pool, "echo", {"text": f"ünï {n}"}) for n in range(30)))
            assert [text_of(each) for each in results] == [f"ünï {n}" for n in range(30)]
            wrong = await call(pool, "echo", {"text": 7})
            assert wrong["isError"]

    run(scenario)


def test_a_server_nobody_knows_yet_is_spoken_to_in_the_newest_way(streaming: str) -> None:
    async def scenario() -> None:
        async with pool_of(spec("far", streaming)) as pool:
            assert (await pool.get("far").list_tools()).protocol_version == "2026-07-28"

    run(scenario)


@pytest.mark.parametrize("era", ERAS)
def test_progress_reaches_whoever_called_and_nobody_else(streaming: str, era: str) -> None:
    async def scenario() -> None:
        heard: dict[int, list[Progress]] = {3: [], 5: []}
        async with pool_of(spec("far", streaming), known_version=ERAS[era]) as pool:
            await asyncio.gather(
                *(call(pool, "steps", {"count": count}, on_progress=told.append) for count, told in heard.items())
            )
        for count, told in heard.items():
            assert told == [Progress(n, count, f"step {n}") for n in range(1, count + 1)]

    run(scenario)


@pytest.mark.parametrize("era", ERAS)
def test_a_question_is_put_to_whoever_called(streaming: str, era: str) -> None:
    async def scenario() -> None:
        def person(sure: bool | None) -> object:
            async def answer(method: str, params: Json) -> Json:
                assert method == "elicitation/create"
                assert params["message"] == "Sure?"
                return {"action": "decline"} if sure is None else {"action": "accept", "content": {"sure": sure}}

            return answer

        async with pool_of(spec("far", streaming), known_version=ERAS[era]) as pool:
            answers = await asyncio.gather(*(call(pool, "ask", on_ask=person(sure)) for sure in (True, False, None)))
            assert [text_of(each) for each in answers] == ["accept True", "accept False", "decline -"]

    run(scenario)


@pytest.mark.parametrize("era", ERAS)
def test_a_question_that_nobody_can_answer_ends_the_call_and_nothing_else(streaming: str, era: str) -> None:
    async def scenario() -> None:
        async with pool_of(spec("far", streaming), known_version=ERAS[era]) as pool:
            with pytest.raises((RemoteError, ProtocolViolation), match="far: "):
                await call(pool, "ask")
            assert text_of(await call(pool, "echo", {"text": "still there"})) == "still there"

    run(scenario)


@pytest.mark.parametrize("era", ERAS)
def test_a_cancelled_call_is_cancelled_over_there(era: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with sdk_http("--log", str(log)) as url:

        async def scenario() -> None:
            async with pool_of(spec("far", url), known_version=ERAS[era]) as pool:
                doomed = asyncio.create_task(call(pool, "wait"))
                await until(lambda: log.exists())
                doomed.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await doomed
                await until(lambda: log.read_text().split() == ["waiting", "cancelled"])
                assert text_of(await call(pool, "echo", {"text": "still there"})) == "still there"

        run(scenario)


@pytest.mark.parametrize("era", ERAS)
def test_a_change_of_the_list_is_heard_of(era: str) -> None:
    with sdk_http() as url:

        async def scenario() -> None:
            heard = Heard()
            async with pool_of(spec("far", url), heard=heard, known_version=ERAS[era]) as pool:
                before = {tool["name"] for tool in (await pool.get("far").list_tools()).tools}
                while not heard.tools_changed.is_set():  # the subscription may begin after the first change
                    await call(pool, "grow")
                    await asyncio.sleep(0)
                after = {tool["name"] for tool in (await pool.get("far").list_tools()).tools}
                assert after - before == {"grown"}

        run(scenario)


@pytest.mark.parametrize("era", ERAS)
def test_a_change_of_the_prompts_is_heard_of_as_such(era: str) -> None:
    with sdk_http() as url:

        async def scenario() -> None:
            heard = Heard()
            async with pool_of(spec("far", url), heard=heard, known_version=ERAS[era]) as pool:
                while not heard.offers_changed.is_set():  # the subscription may begin after the first change
                    await call(pool, "grow_prompts")
                    await asyncio.sleep(0)
                assert not heard.tools_changed.is_set()

        run(scenario)


def test_a_dropped_connection_is_resumed_where_the_server_offers_it() -> None:
    with sdk_http("--resumable") as url:

        async def scenario() -> None:
            async with pool_of(spec("far", url), known_version="2025-11-25") as pool:
                assert text_of(await call(pool, "drop")) == "answered all the same"

        run(scenario)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_the_example_servers_work_over_http(name: str, era: str) -> None:
    with example_http(name) as url:

        async def scenario() -> None:
            async with pool_of(spec("far", url), known_version=ERAS[era]) as pool:
                listing = await pool.get("far").list_tools()
                assert listing.tools
                assert listing.protocol_version == ERAS[era]

        run(scenario)


async def until(is_so: Callable[[], bool]) -> None:
    """Waits for another process, whose doings can only be looked at."""
    while not is_so():
        await asyncio.sleep(0.01)
