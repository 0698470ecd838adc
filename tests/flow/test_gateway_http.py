"""The gateway on HTTP: who is let in, whose answers are whose, and what happens when clients go away. Real sockets."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from pegboard.wire.sse import SseDecoder
from tests.servers import gateway_http

LIMIT = 100_000
TOKEN = "a-token-that-is-long-enough"
OTHER = "another-one-that-will-also-do"
BOTH = "application/json, text/event-stream"
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
}
ROUTES = [("GET", "/healthz"), ("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp"), ("GET", "/"), ("PUT", "/mcp")]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with gateway_http("--limit", str(LIMIT)) as address:
        yield address


@pytest.fixture(scope="module")
def guarded() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FIRST", TOKEN)
        patch.setenv("SECOND", OTHER)
        with gateway_http("--token-env", "FIRST", "--token-env", "SECOND") as address:
            yield address


class Caller:
    """A client of either era, made of single requests."""

    def __init__(self, url: str, client: httpx2.AsyncClient, **headers: str) -> None:
        self.url, self.client = url, client
        self.headers = {"accept": BOTH, "content-type": "application/json", **headers}

    async def post(self, message: Any, **headers: str) -> httpx2.Response:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        return await self.client.post(self.url, content=body, headers={**self.headers, **headers})

    async def stateless(self, method: str, params: Any = None, identity: Any = 1, **headers: str) -> httpx2.Response:
        params = {**(params or {}), "_meta": {**META, **(params or {}).get("_meta", {})}}
        named = {"mcp-name": params["name"]} if "name" in params else {}
        fixed = {"mcp-protocol-version": "2026-07-28", "mcp-method": method, **named}
        return await self.post(request(method, params, identity), **fixed, **headers)

    async def greet(self) -> str:
        response = await self.post(request("initialize", HELLO, 1))
        assert response.status_code == 200
        self.headers["mcp-session-id"] = name = response.headers["mcp-session-id"]
        assert (await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})).status_code == 202
        return str(name)

    async def call(self, tool: str, arguments: Any = None, identity: Any = 1, **headers: str) -> str:
        params = {"name": tool, "arguments": arguments or {}}
        response = await self.post(request("tools/call", params, identity), **headers)
        assert response.json()["id"] == identity
        return str(response.json()["result"]["content"][0]["text"])


def request(method: str, params: Any, identity: Any) -> Any:
    return {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}


@asynccontextmanager
async def calling(url: str, **headers: str) -> AsyncIterator[Caller]:
    limits = httpx2.Limits(max_connections=None)
    async with httpx2.AsyncClient(timeout=30, trust_env=False, limits=limits) as client:
        yield Caller(url, client, **headers)


def events(data: bytes) -> list[Any]:
    return [json.loads(event.data) for event in SseDecoder(1_000_000).feed(data) if event.data]


# ── who is let in ────────────────────────────────────────────────────────────────────────────────────────────────


async def _turned_away(url: str, method: str, path: str, headers: dict[str, str]) -> int:
    async with calling(url) as caller:
        base = url.removesuffix("/mcp")
        return (await caller.client.request(method, base + path, headers=headers)).status_code


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "localhost.evil.example:80"},
        {"host": "127.0.0.1:80:80"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost@evil.example"},
        {"origin": "file://localhost"},
    ],
    ids=str,
)
def test_no_route_is_open_to_another_host_or_origin(url: str, method: str, path: str, headers: dict[str, str]) -> None:
    assert asyncio.run(_turned_away(url, method, path, headers)) == 403


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": f"Bearer {TOKEN}x"},
        {"authorization": f"Bearer {TOKEN[:-1]}"},
        {"authorization": TOKEN},
    ],
    ids=str,
)
def test_no_route_is_open_without_the_token(guarded: str, method: str, path: str, headers: dict[str, str]) -> None:
    assert asyncio.run(_turned_away(guarded, method, path, headers)) == 401


def test_a_token_says_who_it_is_and_keeps_conversations_apart(guarded: str) -> None:
    async def scenario() -> None:
        one, other = f"Bearer {TOKEN}", f"bearer {OTHER}"
        async with calling(guarded, authorization=one) as first, calling(guarded, authorization=other) as second:
            name = await first.greet()
            await second.greet()
            first.headers["pegboard-conversation"] = second.headers["pegboard-conversation"] = "same"
            assert await first.call("whoami") == "FIRST|FIRST:same|"
            assert await second.call("whoami") == "SECOND|SECOND:same|"
            stolen = await second.post(request("tools/list", {}, 2), **{"mcp-session-id": name})
            assert stolen.status_code == 404

    asyncio.run(scenario())


def test_a_list_may_be_shared_by_caches_only_where_it_is_the_same_for_all(url: str, guarded: str) -> None:
    async def listed(address: str, **headers: str) -> Any:
        async with calling(address, **headers) as caller:
            return (await caller.stateless("tools/list")).json()["result"]

    open_to_all, known = asyncio.run(listed(url)), asyncio.run(listed(guarded, authorization=f"Bearer {TOKEN}"))
    assert (open_to_all["cacheScope"], known["cacheScope"]) == ("public", "private")
    assert open_to_all["ttlMs"] > 0  # nought would mean that it is out of date as soon as it arrives


def test_health_is_told_to_whoever_is_let_in(url: str) -> None:
    async def scenario() -> Any:
        async with calling(url) as caller:
            return (await caller.client.get(url.removesuffix("/mcp") + "/healthz")).json()

    assert asyncio.run(scenario())["status"] == "ok"


# ── whose answers are whose ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.timeout(120)
@pytest.mark.parametrize("era", [pytest.param("handshake", marks=pytest.mark.slow), "stateless"])
def test_two_hundred_clients_with_the_same_ids_get_their_own_answers(url: str, era: str) -> None:
    async def one(number: int, gate: asyncio.Event) -> None:
        async with calling(url) as caller:
            if era == "handshake":
                await caller.greet()
            await gate.wait()
            for turn in range(3):
                said = f"client {number} turn {turn}"
                params = {"name": "echo", "arguments": {"text": said}}
                if era == "handshake":
                    response = await caller.post(request("tools/call", params, 1))
                else:
                    response = await caller.stateless("tools/call", params, 1)
                assert response.json()["id"] == 1
                assert response.json()["result"]["content"][0]["text"] == said

    async def scenario() -> None:
        gate = asyncio.Event()
        clients = [asyncio.ensure_future(one(number, gate)) for number in range(200)]
        gate.set()
        await asyncio.gather(*clients)

    asyncio.run(scenario())


def test_two_requests_of_one_id_on_one_session_each_get_an_answer_of_their_own(url: str) -> None:
    async def scenario() -> None:
        async with calling(url) as caller:
            await caller.greet()
            body = json.dumps(request("tools/call", {"name": "wait", "_meta": {"progressToken": "p"}}, 7)).encode()
            async with caller.client.stream("POST", url, content=body, headers=caller.headers) as first:
                chunks = first.aiter_raw()
                assert events(await anext(chunks))[0]["method"] == "notifications/progress"
                second = await caller.post(request("tools/list", {}, 7))
                assert second.status_code == 400
                assert second.json()["error"]["code"] == -32600

    asyncio.run(scenario())


def test_the_conversation_is_what_the_header_or_the_request_says(url: str) -> None:
    async def scenario() -> None:
        async with calling(url) as caller:
            await caller.greet()
            assert await caller.call("whoami") == "|raw|"
            assert await caller.call("whoami", **{"pegboard-conversation": "blue"}) == "|blue|"
            meta = {"pegboard/conversation": "red"}
            answer = await caller.stateless("tools/call", {"name": "whoami", "_meta": meta})
            assert answer.json()["result"]["content"][0]["text"] == "|red|"

    asyncio.run(scenario())


# ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_session_that_is_deleted_or_never_was_is_not_found(url: str) -> None:
    async def scenario() -> None:
        async with calling(url) as caller:
            await caller.greet()
            assert (await caller.client.delete(url, headers=caller.headers)).status_code == 200
            assert (await caller.post(request("tools/list", {}, 2))).status_code == 404
            assert (await caller.client.get(url, headers=caller.headers)).status_code == 404
            caller.headers["mcp-session-id"] = "x" * 5000
            assert (await caller.post(request("tools/list", {}, 2))).status_code == 404

    asyncio.run(scenario())


def test_deleting_a_session_ends_its_calls(url: str) -> None:
    async def scenario() -> None:
        async with calling(url) as caller:
            await caller.greet()
            body = json.dumps(request("tools/call", {"name": "wait", "_meta": {"progressToken": "p"}}, 7)).encode()
            async with caller.client.stream("POST", url, content=body, headers=caller.headers) as first:
                chunks = first.aiter_raw()
                assert events(await anext(chunks))
                await caller.client.delete(url, headers=caller.headers)
                assert [chunk async for chunk in chunks if chunk.strip()] == []
            del caller.headers["mcp-session-id"]
            await caller.greet()
            assert await caller.call("cancelled") == "yes"

    asyncio.run(scenario())


def test_session_names_cannot_be_guessed_from_one_another(url: str) -> None:
    async def scenario() -> set[str]:
        async with calling(url) as caller:
            names = set()
            for _ in range(20):
                caller.headers.pop("mcp-session-id", None)
                names.add(await caller.greet())
            return names

    names = asyncio.run(scenario())
    assert len(names) == 20
    assert all(len(name) >= 43 for name in names)


def test_a_change_that_nobody_listened_for_is_told_when_somebody_does(url: str) -> None:
    async def scenario() -> Any:
        async with calling(url) as caller:
            await caller.greet()
            await caller.post(request("tools/list", {}, 2))
            await caller.call("grow", {"name": "later"}, 3)
            async with caller.client.stream("GET", url, headers=caller.headers) as stream:
                async for chunk in stream.aiter_raw():
                    if found := events(chunk):
                        return found[0]["method"]
        return None

    assert asyncio.run(scenario()) == "notifications/tools/list_changed"


# ── clients that go away, or send what they should not ───────────────────────────────────────────────────────────


@pytest.mark.parametrize("era", ["handshake", "stateless"])
def test_hanging_up_in_the_middle_of_a_call_cancels_it(url: str, era: str) -> None:
    async def scenario() -> None:
        async with calling(url) as caller:
            if era == "handshake":
                await caller.greet()
            params: Any = {"name": "wait", "_meta": {"progressToken": "p", **(META if era == "stateless" else {})}}
            named = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "wait"}
            headers = {**caller.headers, **(named if era == "stateless" else {})}
            body = json.dumps(request("tools/call", params, 7)).encode()
            async with caller.client.stream("POST", url, content=body, headers=headers) as stream:
                chunks = stream.aiter_raw()
                assert events(await anext(chunks))
            response = await caller.stateless("tools/call", {"name": "cancelled"})
            assert response.json()["result"]["content"][0]["text"] == "yes"

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"garbage", {}, 400),
        (b"[]", {}, 400),
        (b"{}", {"content-type": "text/plain"}, 415),
        (b"{}", {"content-type": "application/x-www-form-urlencoded"}, 415),
        (b"{}", {"content-encoding": "gzip"}, 415),
        (b"x" * (LIMIT + 1), {}, 413),
        (json.dumps(request("tools/list", {}, 1)).encode(), {}, 400),
        (json.dumps(request("tools/list", {}, 1)).encode(), {"mcp-protocol-version": "1999-01-01"}, 400),
        (json.dumps(request("tools/list", {"_meta": META}, 1)).encode(), {}, 400),
    ],
    ids=repr,
)
def test_a_bad_request_is_refused_with_the_status_for_it(url: str, body: bytes, headers: Any, status: int) -> None:
    async def scenario() -> int:
        async with calling(url) as caller:
            return (await caller.post(body, **headers)).status_code

    assert asyncio.run(scenario()) == status


def test_a_body_without_a_length_is_cut_off_at_the_limit(url: str) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(50):
            yield b"x" * 10_000

    async def scenario() -> int:
        async with calling(url) as caller:
            return (await caller.client.post(url, content=pieces(), headers=caller.headers)).status_code

    assert asyncio.run(scenario()) == 413


def test_arguments_that_a_header_mirrors_must_be_the_same_there(url: str) -> None:
    async def scenario() -> tuple[int, int, int]:
        async with calling(url) as caller:
            params = {"name": "route", "arguments": {"region": "eu"}}
            wrong = await caller.stateless("tools/call", params, **{"mcp-param-region": "us"})
            missing = await caller.stateless("tools/call", params)
            right = await caller.stateless("tools/call", params, **{"mcp-param-region": "eu"})
            return wrong.status_code, missing.status_code, right.status_code

    assert asyncio.run(scenario()) == (400, 400, 200)


def test_connections_that_send_half_a_request_keep_nobody_else_waiting(url: str) -> None:
    host, port = urlsplit(url).hostname, urlsplit(url).port
    assert host is not None
    assert port is not None
    halves = [b"POST /mcp HTTP/1.1\r\nHost: ", b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{"]
    sockets = [socket.create_connection((host, port)) for _ in range(100)]
    try:
        for number, each in enumerate(sockets):
            each.sendall(halves[number % 2])

        async def scenario() -> str:
            async with calling(url) as caller:
                await caller.greet()
                return await caller.call("echo", {"text": "served"})

        assert asyncio.run(scenario()) == "served"
    finally:
        for each in sockets:
            each.close()


def test_a_client_that_takes_no_events_still_gets_its_answer(url: str) -> None:
    async def scenario() -> Any:
        async with calling(url) as caller:
            await caller.greet()
            params = {"name": "count", "_meta": {"progressToken": 1}}
            return await caller.post(request("tools/call", params, 1), accept="application/json")

    response = asyncio.run(scenario())
    assert response.headers["content-type"] == "application/json"
    assert response.json()["result"]["content"][0]["text"] == "counted"


def test_a_batch_of_older_times_is_answered_on_one_stream(url: str) -> None:
    calls = [request("tools/call", {"name": "echo", "arguments": {"text": str(n)}}, n) for n in range(4)]

    async def scenario() -> Any:
        async with calling(url) as caller:
            await caller.greet()
            return events((await caller.post(calls)).content)

    assert {each["id"]: each["result"]["content"][0]["text"] for each in asyncio.run(scenario())} == {
        n: str(n) for n in range(4)
    }


def test_an_answer_to_a_question_in_the_stateless_era_is_only_taken_from_who_was_asked(guarded: str) -> None:
    able: Any = {"_meta": {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}}
    one, other = f"Bearer {TOKEN}", f"Bearer {OTHER}"

    async def scenario() -> None:
        async with calling(guarded, authorization=one) as asked, calling(guarded, authorization=other) as thief:
            params = {"name": "ask", "arguments": {}, **able}
            result = (await asked.stateless("tools/call", params)).json()["result"]
            assert result["resultType"] == "input_required"
            [key] = result["inputRequests"]
            answers = {key: {"action": "accept", "content": {"name": "Ada"}}}
            retry = {**params, "requestState": result["requestState"], "inputResponses": answers}
            assert (await thief.stateless("tools/call", retry)).json()["error"]["code"] == -32602
            elsewhere = {**retry, "name": "ask_twice"}
            assert (await asked.stateless("tools/call", elsewhere)).json()["error"]["code"] == -32602
            done = (await asked.stateless("tools/call", retry)).json()["result"]
            assert done["content"][0]["text"] == "hello Ada"
            assert (await asked.stateless("tools/call", retry)).json()["error"]["code"] == -32602

    asyncio.run(scenario())
