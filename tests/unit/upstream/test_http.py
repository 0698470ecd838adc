from __future__ import annotations

import asyncio

import pytest

from pegboard.errors import (
    AuthRequired,
    ConnectionLost,
    ProtocolViolation,
    RemoteError,
    StartFailed,
)
from pegboard.types import Json, ServerState
from pegboard.upstream.link import Forbidden
from tests.flow.remote import Heard, call, pool_of, run, spec, text_of
from tests.servers.scripted_http import Asked, scripted, sober

ERAS = ("legacy", "modern")
OK: Json = {"content": [{"type": "text", "text": "ok"}], "resultType": "complete"}


# ── headers and sessions ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_session_is_named_from_its_beginning_to_its_end() -> None:
    async def scenario() -> None:
        async with scripted(sober()) as site:
            async with pool_of(spec("far", site.url)) as pool:
                await call(pool, "one")
            first, *later = [each for each in site.requests if each.method != "server/discover"]
            assert first.method == "initialize"
            assert "mcp-session-id" not in first.headers
            assert "mcp-protocol-version" not in first.headers
            assert {each.verb for each in later} >= {"POST", "GET", "DELETE"}
            assert {each.headers.get("mcp-session-id") for each in later} == {"session-1"}
            assert {each.headers.get("mcp-protocol-version") for each in later} == {"2025-11-25"}
            assert site.requests[-1].verb == "DELETE"

    run(scenario)


def test_a_stateless_server_gets_no_session_and_no_goodbye() -> None:
    honest = sober("modern")

    async def handle(asked: Asked) -> None:
        if asked.method == "tools/call":
            await asked.answer(OK, Mcp_Session_Id="a-trap")
        else:
            await honest(asked)

    async def scenario() -> None:
        async with scripted(handle) as site:
            async with pool_of(spec("far", site.url)) as pool:
                await call(pool, "one")
                await call(pool, "two")
            assert {each.verb for each in site.requests} == {"POST"}
            assert not any("mcp-session-id" in each.headers for each in site.requests)
            last = site.requests[-1].headers
            assert (last["mcp-method"], last["mcp-name"], last["mcp-protocol-version"]) == (
                "tools/call",
                "two",
                "2026-07-28",
            )

    run(scenario)


def test_configured_headers_go_with_every_request() -> None:
    async def scenario() -> None:
        async with scripted(sober()) as site:
            headers = {"X-Key": "käse", "accept-encoding": "gzip", "Accept": "text/html"}
            async with pool_of(spec("far", site.url, headers=headers)) as pool:
                await call(pool, "one")
            assert {each.headers["x-key"].encode("latin-1").decode() for each in site.requests} == {"käse"}
            assert {each.headers["accept-encoding"] for each in site.requests} == {"identity"}
            posts = [each.headers["accept"] for each in site.verbs("POST")]
            assert set(posts) == {"application/json, text/event-stream"}

    run(scenario)


@pytest.mark.parametrize("headers", [{"X-Key": "se\ncret"}, {"X Key": "secret"}, {"X-Key": "secret\0"}])
def test_a_header_that_http_cannot_carry_is_refused_without_being_repeated(headers: dict[str, str]) -> None:
    async def scenario() -> None:
        async with pool_of(spec("far", "http://127.0.0.1:9/mcp", headers=headers)) as pool:
            with pytest.raises(StartFailed, match=r"the header 'X.Key' of its `headers`") as caught:
                await call(pool, "one")
            assert "cret" not in str(caught.value)

    run(scenario)


@pytest.mark.parametrize(
    "url",
    ["http://[::1", "http://127.0.0.1:99999/mcp", "ftp://127.0.0.1/mcp", "http://", "/mcp", "", "http://a\x00b/"],
)
def test_an_address_that_is_none_is_said_to_be_none(url: str) -> None:
    async def scenario() -> None:
        async with pool_of(spec("far", url, transport="http")) as pool:
            with pytest.raises(StartFailed, match=r"far: its `url` is not an address"):
                await call(pool, "one")

    run(scenario)


# ── one call's failure is its own ────────────────────────────────────────────────────────────────────────────────


def test_a_call_under_way_outlives_its_session_and_is_not_made_twice() -> None:
    honest = sober()
    slow_may_end, started = asyncio.Event(), asyncio.Event()

    async def handle(asked: Asked) -> None:
        if asked.tool == "slow":
            started.set()
            await slow_may_end.wait()
            await asked.answer(OK)
        elif asked.tool == "one" and asked.site.count("initialize") == 1:
            await asked.refuse(404, -32600, "Session not found")
        else:
            await honest(asked)

    async def scenario() -> None:
        async with scripted(handle) as site, pool_of(spec("far", site.url)) as pool:
            slow = asyncio.create_task(call(pool, "slow"))
            await started.wait()
            assert text_of(await call(pool, "one")) == "one"
            assert not slow.done()
            slow_may_end.set()
            assert text_of(await slow) == "ok"
            assert sum(each.tool == "slow" for each in site.requests) == 1
            assert site.count("initialize") == 2

    run(scenario)


def test_calls_whose_session_expired_together_share_the_next_one() -> None:
    honest = sober()
    both = asyncio.Event()

    async def handle(asked: Asked) -> None:
        if asked.method == "tools/call" and asked.site.count("initialize") == 1:
            if asked.site.count("tools/call") == 2:
                both.set()
            await both.wait()
            await asked.reply(404)
        else:
            await honest(asked)

    async def scenario() -> None:
        async with scripted(handle) as site, pool_of(spec("far", site.url)) as pool:
            results = await asyncio.gather(call(pool, "one"), call(pool, "two"))
            assert [text_of(each) for each in results] == ["one", "two"]
            assert site.count("initialize") == 2

    run(scenario)


@pytest.mark.parametrize("era", ERAS)
def test_credentials_turned_down_rest_the_server_but_not_the_call_under_way(era: str) -> None:
    honest = sober(era)
    slow_may_end, started = asyncio.Event(), asyncio.Event()

    async def handle(asked: Asked) -> None:
        if asked.tool == "slow":
            started.set()
            await slow_may_end.wait()
            await asked.answer(OK)
        elif asked.tool == "one":
            await asked.reply(401, b'{"error":"invalid_token"}')
        else:
            await honest(asked)

    async def scenario() -> None:
        heard = Heard()
        async with scripted(handle) as site, pool_of(spec("far", site.url), heard=heard) as pool:
            slow = asyncio.create_task(call(pool, "slow"))
            await started.wait()
            with pytest.raises(AuthRequired, match="asks for credentials") as caught:
                await call(pool, "one")
            assert "pegboard login far" in caught.value.hint
            slow_may_end.set()
            assert text_of(await slow) == "ok"
            asked_before = len(site.verbs("POST"))
            with pytest.raises(AuthRequired, match="asks for credentials"):
                await call(pool, "two")
            assert len(site.verbs("POST")) == asked_before, "a server that refused us is left alone"
            assert heard.states[-1][1] is ServerState.ERROR
            pool.get("far").retry()
            assert text_of(await call(pool, "two")) == "two"

    run(scenario)


@pytest.mark.parametrize("era", ERAS)
def test_one_thing_forbidden_leaves_the_rest_allowed(era: str) -> None:
    honest = sober(era)

    async def handle(asked: Asked) -> None:
        await (asked.reply(403) if asked.tool == "one" else honest(asked))

    async def scenario() -> None:
        async with scripted(handle) as site, pool_of(spec("far", site.url)) as pool:
            with pytest.raises(Forbidden, match=r"far: it does not allow that \(HTTP 403\)"):
                await call(pool, "one")
            assert text_of(await call(pool, "two")) == "two"
            assert site.count("initialize") + site.count("server/discover") <= 2

    run(scenario)


def test_a_server_that_is_gone_is_called_unreachable_and_comes_back_by_itself() -> None:
    async def scenario() -> None:
        heard = Heard()
        async with scripted(sober()) as site:
            port = int(site.origin.rpartition(":")[2])
            async with pool_of(spec("far", site.url), heard=heard) as pool:
                await call(pool, "one")
                await site.close()
                with pytest.raises((ConnectionLost, StartFailed), match=r"127\.0\.0\.1"):
                    await call(pool, "one")
                with pytest.raises(StartFailed, match=f"127.0.0.1:{port} cannot be reached"):
                    await call(pool, "one")
                assert heard.states[-1][1] is ServerState.ERROR
                await site.listen(port)
                assert text_of(await call(pool, "one")) == "one"

    run(scenario)


# ── answers that are none ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("body", "error", "words"),
    [
        (b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"busy"}}', RemoteError, "busy"),
        (b'{"jsonrpc":"2.0","id":"other","error":{"code":-32000,"message":"busy"}}', RemoteError, "busy"),
        (b'{"jsonrpc":"2.0","id":99999,"result":{}}', ProtocolViolation, "does not belong to the request"),
        (b"[]", ProtocolViolation, "does not belong to the request"),
        (b"  ", ProtocolViolation, r"its answer is empty \(HTTP 200\)"),
        (b"null", ProtocolViolation, "not JSON-RPC"),
        (b'{"jsonrpc":"2.0"}', ProtocolViolation, "not JSON-RPC"),
    ],
)
def test_a_body_that_is_no_answer_fails_the_call_with_the_reason(
    era: str, body: bytes, error: type[Exception], words: str
) -> None:
    honest = sober(era)

    async def handle(asked: Asked) -> None:
        await (asked.reply(200, body) if asked.tool == "one" else honest(asked))

    async def scenario() -> None:
        async with scripted(handle) as site, pool_of(spec("far", site.url)) as pool:
            with pytest.raises(error, match=words):
                await call(pool, "one")
            assert text_of(await call(pool, "two")) == "two"

    run(scenario)


def test_arguments_that_must_be_headers_are_learned_when_the_server_misses_them() -> None:
    schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    honest = sober("modern", [{"name": "one", "inputSchema": schema}])

    async def handle(asked: Asked) -> None:
        if asked.tool == "one" and asked.headers.get("mcp-param-region") != "here":
            await asked.refuse(400, -32020, "Header mismatch")
        else:
            await honest(asked)

    async def scenario() -> None:
        heard = Heard()
        async with scripted(handle) as site, pool_of(spec("far", site.url), heard=heard) as pool:
            assert text_of(await call(pool, "one", {"region": "here"})) == "one"
            assert [each.method for each in site.requests][1:] == ["tools/call", "tools/list", "tools/call"]
            assert heard.tools_changed.is_set(), "the catalog must learn of it too"
        async with scripted(handle) as site, pool_of(spec("far", site.url), schemas={"one": schema}) as pool:
            assert text_of(await call(pool, "one", {"region": "here"})) == "one"
            assert site.count("tools/list") == 0

    run(scenario)
