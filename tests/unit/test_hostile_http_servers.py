"""Every hostile HTTP mode does what its row in the table says, seen through a bare connection."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable
from contextlib import ExitStack, closing
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from mcp import Client

from tests.servers import HOSTILE_HTTP_MODES, hostile_http
from tests.servers.hostile_http import FAULTS, LIFETIME

Json = dict[str, Any]

PATIENCE = 40.0
CAP = 16 << 20
"""What a careful client takes as one answer."""
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
LEGACY_ONLY = {"delete_hangs", "session_404", "session_changes", "wrong_session"}
NEED_A_TALK = {*LEGACY_ONLY, "hang_at_start", "hang_headers", "hang_body", "slow_drip", "closes_idle"}
"""Modes that keep silent, or show themselves only over several requests: each has a test of its own below."""


class Answer(NamedTuple):
    """What came back, as far as it came."""

    status: int
    headers: Json
    body: bytes
    error: str = ""

    def message(self) -> Json:
        """The last whole JSON-RPC message in it, if a careful client would take it; else empty."""
        kind = self.headers.get("content-type", "").partition(";")[0]
        if self.error or len(self.body) > CAP or "content-encoding" in self.headers:
            return {}
        text = self.body.decode(errors="replace")
        if kind == "text/event-stream":
            events = text.replace("\r\n", "\n").split("\n\n")[:-1]
            text = "".join(line[5:].strip() for line in events[-1].split("\n") if line.startswith("data:"))
        elif kind != "application/json":
            return {}
        try:
            message: Json = json.loads(text)
        except ValueError:
            return {}
        return message


class Caller:
    """A careful client of one server, in one era; a new connection for every request."""

    def __init__(self, url: str, era: str = "legacy") -> None:
        self.netloc = urlsplit(url).netloc
        self.era = era
        self.session = ""

    def send(self, verb: str, message: Json | None = None, **headers: str) -> HTTPConnection:
        """A request on its way."""
        connection = HTTPConnection(self.netloc, timeout=PATIENCE)
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        try:
            connection.request(verb, "/mcp", json.dumps(message) if message else None, headers)
        except OSError:
            connection.close()
            raise
        return connection

    def post(self, number: int, method: str, **params: Any) -> Answer:
        """One MCP request and whatever comes back."""
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self.era == "modern":
            meta = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}
            params = {**params, "_meta": meta}
            headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        return received(
            lambda: self.send("POST", {"jsonrpc": "2.0", "id": number, "method": method, "params": params}, **headers)
        )

    def hello(self) -> Answer:
        """The opening of the era; keeps the session."""
        if self.era == "modern":
            return self.post(1, "server/discover")
        answer = self.post(1, "initialize", protocolVersion="2025-11-25", capabilities={})
        self.session = answer.headers.get("mcp-session-id", "")
        return answer

    def list(self) -> Answer:
        return self.post(2, "tools/list")

    def call(self) -> Answer:
        return self.post(3, "tools/call", name="poke", arguments={})

    def outcome(self) -> str:
        """How far it gets."""
        steps = ((self.hello, "start_fails", 1), (self.list, "list_fails", 2), (self.call, "call_fails", 3))
        for step, failure, number in steps:
            message = step().message()
            if message.get("id") != number or not isinstance(message.get("result"), dict):
                return failure
        return "call_ok"


def received(send: Callable[[], HTTPConnection]) -> Answer:
    """The answer to a request, up to the cap."""
    status, headers, body = 0, {}, b""
    with ExitStack() as stack:
        try:
            connection = stack.enter_context(closing(send()))
            response = stack.enter_context(closing(connection.getresponse()))
            status = response.status
            headers = {name.lower(): value for name, value in response.getheaders()}
            while len(body) <= CAP and (block := response.read1(1 << 20)):
                body += block
        except (OSError, HTTPException, ValueError) as error:
            return Answer(status, headers, body, type(error).__name__)
    return Answer(status, headers, body)


def inflated(body: bytes) -> int:
    """How large a gzip body is, without keeping it."""
    stream = zlib.decompressobj(16 + zlib.MAX_WBITS)
    size = 0
    while not stream.eof:
        size += len(stream.decompress(body, 1 << 20))
        body = stream.unconsumed_tail
    return size


EVIDENCE: dict[str, Callable[[Answer], bool]] = {
    "ok_json": lambda a: a.headers["content-type"] == "application/json",
    "ok_sse": lambda a: a.headers["content-type"] == "text/event-stream" and a.body.count(b"data: ") == 2,
    "odd_sse": lambda a: b"\r\n" in a.body and a.body.count(b"data:") == 2 and b"retry: 10" in a.body,
    "status_401": lambda a: a.status == 401 and a.headers["www-authenticate"].startswith("Bearer"),
    "status_403": lambda a: a.status == 403,
    "status_404_html": lambda a: a.status == 404 and a.body.startswith(b"<!doctype html>"),
    "redirect_cross_origin": lambda a: a.status == 307 and a.headers["location"].startswith("http://127.0.0.1:"),
    "redirect_loop": lambda a: a.status == 307 and a.headers["location"] == "/mcp",
    "reset_on_connect": lambda a: a.error in ("ConnectionResetError", "BrokenPipeError", "RemoteDisconnected"),
    "not_http": lambda a: a.error == "BadStatusLine",
    "status_500": lambda a: a.status == 500,
    "status_429": lambda a: a.status == 429 and a.headers["retry-after"] == "3600",
    "accepted_call": lambda a: (a.status, a.body) == (202, b""),
    "wrong_content_type": lambda a: a.headers["content-type"] == "text/html" and b'"ok"' in a.body,
    "empty_body": lambda a: (a.status, a.body) == (200, b""),
    "wrong_length": lambda a: a.status == 200 and a.body.startswith(b'{"jsonrpc"') and b"}" not in a.body[-1:],
    "chunked_garbage": lambda a: a.status == 200 and a.error == "IncompleteRead",
    "huge_headers": lambda a: a.error == "HTTPException",
    "reset_mid_body": lambda a: a.body.startswith(b'{"jsonrpc"') or a.error == "ConnectionResetError",
    "sse_cut": lambda a: b"notifications/message" in a.body and a.body.endswith(b"data: {"),
    "sse_wrong_id": lambda a: a.message()["id"] == "nobody's",
    "sse_flood": lambda a: a.body.count(b"notifications/message") == 100_000,
    "endless_body": lambda a: len(a.body) > CAP and a.headers["content-type"] == "application/json",
    "endless_sse_line": lambda a: len(a.body) > CAP and a.body.count(b"\n") == 1,
    "gzip_bomb": lambda a: len(a.body) < 1 << 19 and inflated(a.body) > 256 << 20,
    "bad_utf8": lambda a: b"\xff\xc3" in a.body,
}


def test_the_table_has_a_behaviour_and_a_test_for_every_mode_and_no_other():
    assert list(FAULTS) == list(HOSTILE_HTTP_MODES)
    assert set(EVIDENCE) | NEED_A_TALK == set(HOSTILE_HTTP_MODES)


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("mode", EVIDENCE)
def test_a_mode_does_what_its_row_says_and_a_careful_client_fares_as_expected(mode, era):
    row = HOSTILE_HTTP_MODES[mode]
    with hostile_http(mode, "--era", era) as url:
        assert Caller(url, era).outcome() == row.expect
        caller = Caller(url, era)
        caller.hello()
        assert EVIDENCE[mode](caller.call()), row.does


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("mode", ["ok_json", "ok_sse", "odd_sse"])
def test_the_official_client_is_served_by_the_modes_that_are_well(mode, era):
    async def scenario(url: str) -> None:
        async with asyncio.timeout(PATIENCE), Client(url, mode="legacy" if era == "legacy" else "auto") as client:
            assert client.protocol_version == ("2025-11-25" if era == "legacy" else MODERN)
            assert [tool.name for tool in (await client.list_tools()).tools] == ["poke"]
            assert not (await client.call_tool("poke", {})).is_error

    with hostile_http(mode, "--era", era) as url:
        asyncio.run(scenario(url))


@pytest.mark.parametrize(("mode", "piece"), [("hang_headers", b""), ("hang_body", b'{"jsonrpc":"2.0","id":3')])
def test_a_hanging_call_gets_nothing_more_while_others_are_served(mode, piece):
    with hostile_http(mode) as url:
        caller = Caller(url)
        assert caller.hello().status == 200
        params = {"name": "poke", "arguments": {}}
        hanging = caller.send("POST", {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params})
        assert Caller(url).hello().status == 200
        sock = hanging.sock
        assert sock is not None
        if piece:
            response = hanging.getresponse()
            assert response.read(len(piece)) == piece
            rest = response.read1(1 << 16)
            assert b"}" not in rest[-1:]
            response.close()
        else:
            sock.setblocking(False)
            with pytest.raises(BlockingIOError):
                sock.recv(1)
        hanging.close()


def test_hang_at_start_accepts_and_says_nothing():
    with hostile_http("hang_at_start") as url:
        first, second = (Caller(url).send("POST", {"jsonrpc": "2.0", "id": 1, "method": "initialize"}) for _ in "ab")
        for connection in (first, second):
            assert connection.sock is not None
            connection.sock.settimeout(0.2)
            with pytest.raises(TimeoutError):
                connection.sock.recv(1)
            connection.close()


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_slow_drip_comes_in_pieces_and_comes_whole(era):
    with hostile_http("slow_drip", "--era", era) as url:
        assert Caller(url, era).outcome() == "call_ok"
        caller = Caller(url)
        caller.hello()
        with closing(caller.send("POST", {"jsonrpc": "2.0", "id": 3, "method": "tools/call"})) as connection:
            assert connection.sock is not None
            pieces = [connection.sock.recv(1 << 16) for _ in range(20)]
            assert max(map(len, pieces)) < 100


def test_closes_idle_ends_the_connection_after_an_answer_that_did_not_say_so():
    with hostile_http("closes_idle") as url:
        assert Caller(url).outcome() == "call_ok"
        with closing(Caller(url).send("POST", {"jsonrpc": "2.0", "id": 1, "method": "initialize"})) as connection:
            sock = connection.sock
            response = connection.getresponse()
            assert response.getheader("connection") is None
            assert response.read()
            assert sock is not None
            assert sock.recv(1) == b""


def test_session_404_expires_a_session_after_two_calls_and_a_new_one_works():
    with hostile_http("session_404") as url:
        caller = Caller(url)
        for _ in range(2):
            assert caller.outcome() == "call_ok"
            assert caller.call().status == 200
            assert (caller.call().status, caller.list().status) == (404, 404)


def test_session_changes_names_a_session_that_it_does_not_know():
    with hostile_http("session_changes") as url:
        caller = Caller(url)
        assert caller.outcome() == "call_ok"
        caller.session = caller.list().headers["mcp-session-id"]
        assert caller.session == "other"
        assert caller.call().status == 404


def test_wrong_session_refuses_the_session_it_gave_every_time():
    with hostile_http("wrong_session") as url:
        assert [Caller(url).outcome() for _ in range(3)] == ["list_fails"] * 3


def test_delete_hangs_serves_calls_and_never_answers_the_delete():
    with hostile_http("delete_hangs") as url:
        caller = Caller(url)
        assert caller.outcome() == "call_ok"
        deleting = caller.send("DELETE")
        assert Caller(url).outcome() == "call_ok"
        assert deleting.sock is not None
        deleting.sock.setblocking(False)
        with pytest.raises(BlockingIOError):
            deleting.sock.recv(1)
        deleting.close()


def test_a_sober_session_ends_with_delete_and_needs_its_id():
    with hostile_http("ok_json") as url:
        caller = Caller(url)
        assert caller.list().status == 400
        assert caller.outcome() == "call_ok"
        assert received(lambda: caller.send("DELETE")).status == 200
        assert caller.list().status == 404
        assert received(lambda: caller.send("GET")).status == 405


def test_a_modern_server_checks_version_and_headers():
    with hostile_http("ok_json", "--era", "modern") as url:
        assert Caller(url, "legacy").hello().message()["error"]["code"] == -32022
        meta = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}
        bare = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
        answer = received(lambda: Caller(url).send("POST", bare))
        assert (answer.status, answer.message()["error"]["code"]) == (400, -32020)


def test_who_follows_the_redirect_is_found_in_the_log_with_the_credentials_it_carried(tmp_path: Path):
    log = tmp_path / "log"
    with hostile_http("redirect_cross_origin", "--log", str(log)) as url:
        caller = Caller(url)
        elsewhere = caller.hello().headers["location"]
        assert log.read_text() == "mcp POST initialize\n"
        careless = Caller(elsewhere)
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
        assert received(lambda: careless.send("POST", hello, Authorization="Bearer secret")).status == 200
        assert log.read_text().splitlines()[1:] == ["other POST initialize with credentials"]


def test_the_alarm_ends_a_server_that_nobody_stops():
    assert 0 < LIFETIME < 120
    script = sys.modules[FAULTS["redirect_cross_origin"]["any"].__module__].__file__
    command = ["env", "SERVER_LIFETIME=1", sys.executable, str(script), "hang_at_start"]
    assert subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False).returncode == -signal.SIGALRM
