"""Answers that come as event streams: cut, resumed, left open, cancelled; and the stream a server speaks on its own."""

from __future__ import annotations

import asyncio

import pytest

from pegboard.errors import ConnectionLost, LimitExceeded, ProtocolViolation
from pegboard.types import Json
from tests.flow.remote import Heard, call, pool_of, run, spec, text_of
from tests.servers.scripted_http import Asked, scripted, sober

ERAS = ("legacy", "modern")
OK: Json = {"content": [{"type": "text", "text": "ok"}], "resultType": "complete"}
PRIMING = b"id: e0\nretry: 60\ndata:\n\n"


def is_resumption(asked: Asked) -> bool:
    return asked.verb == "GET" and "last-event-id" in asked.headers


# ── resumption ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_cut_stream_is_resumed_where_it_was_cut_as_often_as_it_takes() -> None:
    honest = sober()
    seen: list[str] = []

    async def handle(asked: Asked) -> None:
        if asked.tool == "one":
            await asked.begin_events()
            await asked.chunk(PRIMING)
            await asked.end()
        elif is_resumption(asked):
            seen.append(asked.headers["last-event-id"])
            await asked.begin_events()
            if len(seen) == 2:
                await asked.chunk(b": nothing new\n\n")  # and no id: the old one still holds
            elif len(seen) < 8:
                await asked.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}, f"e{len(seen)}")
            else:
                call_id = next(each.message["id"] for each in asked.site.requests if each.tool == "one")
                await asked.result_event(OK, call_id)
            await asked.end()
        else:
            await honest(asked)

    async def scenario() -> None:
        async with scripted(handle) as site, pool_of(spec("far", site.url)) as pool:
            assert text_of(await call(pool, "one")) == "ok"
        assert seen == ["e0", "e1", "e1", "e3", "e4", "e5", "e6", "e7"]
        assert sum(each.tool == "one" for each in site.requests) == 1, "the call itself is made once"

    run(scenario)


def test_an_event_that_was_cut_in_the_middle_is_asked_for_again() -> None:
    honest = sober()
    seen: list[str] = []

    async def handle(asked: Asked) -> None:
        if asked.tool == "one":
            await asked.begin_events()
            await asked.chunk(PRIMING)
            await asked.chunk(b'id: e1\ndata: {"jsonrpc":"2.0",')
            asked.cut()
        elif is_resumption(asked):
            seen.append(asked.headers["last-event-id"])
            call_id = next(each.message["id"] for each in asked.site.requests if each.tool == "one")
            await asked.begin_events()
            await asked.result_event(OK, call_id, "e1")
            await asked.end()
        else:
            await honest(asked)

    async def scenario() -> None:
        async with scripted(handle) as site, pool_of(spec("far", site.url)) as pool:
            assert text_of(await call(pool, "one")) == "ok"
        assert seen == ["e0"], "e1 never came whole"

    run(scenario)


@pytest.mark.parametrize("identity", ["", "id: ünïcode\n", "id:  padded \n"])
def test_a_stream_that_cannot_be_resumed_fails_the_call_that_it_answered(identity: str) -> None:
    honest = sober()

    async def handle(asked: Asked) -> None:
        if asked.tool == "one":
            await asked.begin_events()
            await asked.chunk(identity.encode() + b"data:\n\n")
            await asked.end()
        else:
            assert not is_resumption(asked)
            await honest(asked)

    async def scenario() -> None:
        async with scripted(handle) as site, pool_of(spec("far", site.url)) as pool:
            with pytest.raises(ConnectionLost, match="far: the stream ended before the answer came"):
                await call(pool, "one")
            assert text_of(await call(pool, "two")) == "two"

    run(scenario)


def test_a_server_that_does_not_resume_is_not_asked_for_ever() -> None:
    honest = sober()

    async def handle(asked: Asked) -> None:
        if asked.tool == "one":
            await asked.begin_events()
            await asked.chunk(PRIMING)
            await asked.end()
        else:
            await honest(asked)  # 405 to every GET

    async def scenario() -> None:
        async with scripted(handle) as site, pool_of(spec("far", site.url)) as pool:
            with pytest.raises(ConnectionLost, match="and is not resumed"):
                await call(pool, "one")
            assert sum(map(is_resumption, site.requests)) == 1

    run(scenario)


def test_the_stateless_era_resumes_nothing() -> None:
    honest = sober("modern")

    async def handle(asked: Asked) -> None:
        if asked.tool == "one":
            await asked.begin_events()
            await asked.chunk(PRIMING)
            await asked.end()
        else:
            await honest(asked)

    async def scenario() -> None:
        async with scripted(handle) as site, pool_of(spec("far", site.url)) as pool:
            with pytest.raises(ConnectionLost, match="the stream ended before the answer came"):
                await call(pool, "one")
            assert not site.verbs("GET")

    run(scenario)


# ── the end of a stream ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("era", ERAS)
def test_a_stream_that_stays_open_after_the_answer_is_closed_by_us(era: str) -> None:
    honest = sober(era)
    closed = asyncio.Event()

    async def handle(asked: Asked) -> None:
        if asked.tool == "one":
            await asked.begin_events()
            await asked.result_event(OK)
            await asked.gone()
            closed.set()
        else:
            await honest(asked)

    async def scenario() -> None:
        async with scripted(handle) as site, pool_of(spec("far", site.url)) as pool:
            assert text_of(await call(pool, "one")) == "ok"
            await closed.wait()

    run(scenario)


@pytest.mark.parametrize("era", ERAS)
def test_calls_one_after_the_other_share_a_connection_though_streams_answer_them(era: str) -> None:
    honest = sober(era)

    async def handle(asked: Asked) -> None:
        if asked.method == "tools/call":
            await asked.begin_events()
            await asked.result_event(OK)
            await asked.end()
        else:
            await honest(asked)

    async def scenario() -> None:
        async with scripted(handle) as site, pool_of(spec("far", site.url)) as pool:
            for _ in range(20):
                await call(pool, "one")
            assert site.connections <= 5, "a stream read to its end leaves a connection that can be used again"

    run(scenario)


@pytest.mark.parametrize("era", ERAS)
def test_a_cancelled_call_closes_its_stream_and_older_servers_are_told_in_words_too(era: str) -> None:
    honest = sober(era)
    started, closed, told = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def handle(asked: Asked) -> None:
        if asked.tool == "one":
            await asked.begin_events()
            started.set()
            await asked.gone()
            closed.set()
        elif asked.method == "notifications/cancelled":
            assert asked.message["params"]["requestId"] == next(e for e in asked.site.requests if e.tool).message["id"]
            told.set()
            await asked.reply(202)
        else:
            await honest(asked)

    async def scenario() -> None:
        async with scripted(handle) as site, pool_of(spec("far", site.url)) as pool:
            doomed = asyncio.create_task(call(pool, "one"))
            await started.wait()
            doomed.cancel()
            with pytest.raises(asyncio.CancelledError):
                await doomed
            await closed.wait()
            if era == "legacy":
                await told.wait()
            assert text_of(await call(pool, "two")) == "two"
            assert told.is_set() == (era == "legacy")

    run(scenario)


@pytest.mark.parametrize("era", ERAS)
def test_an_answer_before_an_oversized_event_counts(era: str) -> None:
    honest = sober(era)

    async def handle(asked: Asked) -> None:
        if asked.tool in ("one", "big"):
            await asked.begin_events()
            answer = b'data: {"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"ok"}]}}\n\n'
            first = answer % asked.message["id"] if asked.tool == "one" else b""
            await asked.chunk(first + b"data: " + b"x" * 5000 + b"\n\n")
            await asked.end()
        else:
            await honest(asked)

    async def scenario() -> None:
        async with scripted(handle) as site, pool_of(spec("far", site.url, max_result_bytes=4096)) as pool:
            assert text_of(await call(pool, "one")) == "ok"
            with pytest.raises(LimitExceeded, match="an event of more than 4,096 bytes"):
                await call(pool, "big")

    run(scenario)


def test_a_compressed_stream_is_refused() -> None:
    honest = sober()

    async def handle(asked: Asked) -> None:
        if asked.tool == "one":
            await asked.reply(200, b"\x1f\x8b\x08", "text/event-stream", Content_Encoding="gzip")
        else:
            await honest(asked)

    async def scenario() -> None:
        async with scripted(handle) as site, pool_of(spec("far", site.url)) as pool:
            with pytest.raises(ProtocolViolation, match="compressed its answer although it was asked not to"):
                await call(pool, "one")

    run(scenario)


# ── what the server says on its own ──────────────────────────────────────────────────────────────────────────────


def test_the_standalone_stream_brings_changes_and_is_opened_again_after_it_was_cut() -> None:
    honest = sober()
    opened: list[str | None] = []
    second = asyncio.Event()

    async def handle(asked: Asked) -> None:
        if asked.verb != "GET":
            await honest(asked)
            return
        opened.append(asked.headers.get("last-event-id"))
        await asked.begin_events()
        if len(opened) == 1:
            await asked.chunk(b"id: s1\nretry: 60\ndata:\n\n")
            await asked.end()
            return
        await asked.event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}, "s2")
        second.set()
        await asked.gone()

    async def scenario() -> None:
        heard = Heard()
        async with scripted(handle) as site, pool_of(spec("far", site.url), heard=heard) as pool:
            await call(pool, "one")
            await second.wait()
            await heard.tools_changed.wait()
        assert opened == [None, "s1"]

    run(scenario)


def test_a_server_without_a_standalone_stream_is_asked_for_it_once() -> None:
    async def scenario() -> None:
        async with scripted(sober()) as site, pool_of(spec("far", site.url)) as pool:
            for _ in range(5):
                await call(pool, "one")
            assert len(site.verbs("GET")) == 1

    run(scenario)
