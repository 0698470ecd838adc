"""The legacy HTTP+SSE transport, against a server of its own time and against scripted ones that misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from pegboard.errors import AuthRequired, ConnectionLost, LimitExceeded, ProtocolViolation, ServerError, StartFailed
from pegboard.types import Json, Progress
from pegboard.upstream.link import TurnedDown
from tests.flow.remote import call, pool_of, run, spec, text_of
from tests.servers import legacy_sse
from tests.servers.scripted_http import Asked, scripted

OK: Json = {"content": [{"type": "text", "text": "ok"}]}
HELLO: Json = {
    "protocolVersion": "2024-11-05",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "old", "version": "1"},
}


class Old:
    """A scripted legacy server: the stream of the last GET takes every answer."""

    def __init__(self, on_call: Callable[[Old, Asked], Awaitable[None]] | None = None) -> None:
        self.stream: Asked | None = None
        self.endpoint = b"/messages?s=1"
        self._on_call = on_call

    async def __call__(self, asked: Asked) -> None:
        if asked.verb == "GET":
            self.stream = asked
            await asked.begin_events()
            await asked.chunk(b"event: endpoint\ndata: " + self.endpoint + b"\n\n")
            await asked.gone()
        elif asked.target == "/sse":
            await asked.reply(405)
        elif asked.tool and self._on_call is not None:
            await self._on_call(self, asked)
        else:
            await asked.reply(202)
            if "id" in asked.message:
                await self.answer(asked, HELLO if asked.method == "initialize" else OK)

    async def answer(self, asked: Asked, result: Json) -> None:
        assert self.stream is not None
        await self.stream.result_event(result, asked.message["id"])


def test_a_legacy_server_is_found_behind_an_ordinary_url() -> None:
    with legacy_sse() as url:

        async def scenario() -> None:
            async with pool_of(spec("far", url)) as pool:
                listing = await pool.get("far").list_tools()
                assert "echo" in [tool["name"] for tool in listing.tools]
                assert text_of(await call(pool, "echo", {"text": "hello"})) == "hello"

        run(scenario)


def test_a_legacy_server_works_in_full_when_it_is_named_as_one() -> None:
    with legacy_sse() as url:

        async def scenario() -> None:
            told: list[Progress] = []
            async with pool_of(spec("far", url, transport="sse")) as pool:
                results = await asyncio.gather(*(call(pool, "echo", {"text": str(n)}) for n in range(20)))
                assert [text_of(each) for each in results] == [str(n) for n in range(20)]
                await call(pool, "progress", {"steps": 3}, on_progress=told.append)
                assert [each.progress for each in told] == [1, 2, 3]

        run(scenario)


def test_the_older_way_is_spoken_from_the_first_message_on() -> None:
    async def scenario() -> None:
        old = Old()
        async with scripted(old) as site, pool_of(spec("far", f"{site.origin}/sse", transport="sse")) as pool:
            await call(pool, "one")
            assert [each.method for each in site.verbs("POST")] == [
                "initialize",
                "notifications/initialized",
                "tools/call",
            ]

    run(scenario)


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        (b"http://127.0.0.1:1/steal?k=secret", "another origin, http://127.0.0.1:1/steal"),
        (b"//elsewhere.example/steal", "another origin"),
        (b"http://[::1", "no address"),
    ],
)
def test_messages_are_never_sent_to_another_origin(endpoint: bytes, words: str) -> None:
    async def scenario() -> None:
        old = Old()
        old.endpoint = endpoint
        async with scripted(old) as site, pool_of(spec("far", f"{site.origin}/sse", transport="sse")) as pool:
            with pytest.raises(ProtocolViolation, match=words) as caught:
                await call(pool, "one")
            assert "secret" not in str(caught.value)
            assert not site.verbs("POST")

    run(scenario)


def test_an_answer_may_come_before_its_post_is_answered() -> None:
    async def hold(old: Old, asked: Asked) -> None:
        await old.answer(asked, OK)
        await asked.gone()  # the POST itself is never answered

    async def scenario() -> None:
        async with scripted(Old(hold)) as site, pool_of(spec("far", f"{site.origin}/sse", transport="sse")) as pool:
            assert text_of(await call(pool, "one")) == "ok"

    run(scenario)


def test_a_session_that_was_forgotten_is_begun_anew_without_the_caller_noticing() -> None:
    async def forget_first(old: Old, asked: Asked) -> None:
        if asked.site.count("initialize") == 1:
            await asked.reply(404)
        else:
            await asked.reply(202)
            await old.answer(asked, OK)

    async def scenario() -> None:
        async with scripted(Old(forget_first)) as site:
            async with pool_of(spec("far", f"{site.origin}/sse", transport="sse")) as pool:
                assert text_of(await call(pool, "one")) == "ok"
            assert site.count("initialize") == 2

    run(scenario)


def test_a_stream_that_ends_fails_the_calls_under_way_and_the_next_one_opens_another() -> None:
    async def hang_up_first(old: Old, asked: Asked) -> None:
        await asked.reply(202)
        if asked.site.count("initialize") == 1:
            assert old.stream is not None
            old.stream.cut()
        else:
            await old.answer(asked, OK)

    async def scenario() -> None:
        old = Old(hang_up_first)
        async with scripted(old) as site, pool_of(spec("far", f"{site.origin}/sse", transport="sse")) as pool:
            with pytest.raises(ConnectionLost, match="far: "):
                await call(pool, "one")
            assert text_of(await call(pool, "one")) == "ok"

    run(scenario)


@pytest.mark.parametrize(
    ("status", "kind", "error", "words"),
    [
        (401, "text/plain", AuthRequired, "asks for credentials"),
        (404, "text/html", TurnedDown, "HTTP 404"),
        (200, "text/html", ProtocolViolation, "answered with text/html instead of events"),
        (302, "text/html", ProtocolViolation, "redirects to"),
    ],
)
def test_an_address_that_is_no_stream_is_described(
    status: int, kind: str, error: type[ServerError], words: str
) -> None:
    async def handle(asked: Asked) -> None:
        await asked.reply(status, b"x", kind, Location="http://elsewhere.example/")

    async def scenario() -> None:
        async with scripted(handle) as site, pool_of(spec("far", site.url, transport="sse")) as pool:
            with pytest.raises(error, match=words):
                await call(pool, "one")

    run(scenario)


def test_an_event_without_end_is_cut_at_the_limit() -> None:
    async def flood(old: Old, asked: Asked) -> None:
        await asked.reply(202)
        assert old.stream is not None
        for _ in range(100):
            await old.stream.chunk(b"data: " + b"x" * 4096)

    async def scenario() -> None:
        async with scripted(Old(flood)) as site:
            limited = spec("far", f"{site.origin}/sse", transport="sse", max_result_bytes=10_000)
            async with pool_of(limited) as pool:
                with pytest.raises(LimitExceeded, match="an event of more than 10,000 bytes"):
                    await call(pool, "one")

    run(scenario)


def test_a_stream_that_never_names_its_endpoint_is_given_up_in_time() -> None:
    async def handle(asked: Asked) -> None:
        await asked.begin_events()
        await asked.gone()

    async def scenario() -> None:
        async with scripted(handle) as site, pool_of(spec("far", site.url, transport="sse"), start_timeout=0.5) as pool:
            with pytest.raises(StartFailed, match=r"far: it was not ready within 0\.5 s"):
                await call(pool, "one")

    run(scenario)


def test_what_is_neither_kind_of_server_is_described_by_what_it_said_first() -> None:
    async def handle(asked: Asked) -> None:
        await asked.reply(404 if asked.verb == "POST" else 500, b'{"error":"not found"}')

    async def scenario() -> None:
        async with scripted(handle) as site, pool_of(spec("far", site.url)) as pool:
            with pytest.raises(TurnedDown, match="far: it answered HTTP 404") as caught:
                await call(pool, "one")
            assert caught.value.hint == f"Is {site.url} the address of its MCP endpoint?"
            assert [each.verb for each in site.requests] == ["POST", "POST", "GET"]

    run(scenario)
