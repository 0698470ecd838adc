"""The gateway on stdio before clients that misbehave, and its end. Real processes; what is written is checked whole."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers import gateway_command

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
}


class Raw:
    """A client that writes what it likes, and reads line by line."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            gateway_command(*arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, method: str, params: Any = None, identity: Any = None) -> None:
        message = {"jsonrpc": "2.0", "method": method}
        if identity is not None:
            message["id"] = identity
        if params is not None:
            message["params"] = params
        self.write(json.dumps(message).encode() + b"\n")

    def read(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ask(self, method: str, params: Any = None, identity: Any = 1) -> Any:
        self.send(method, params, identity)
        return self.read()

    def greet(self) -> Raw:
        self.ask("initialize", HELLO, "hello")
        self.send("notifications/initialized")
        return self

    def call(self, tool: str, arguments: Any = None, identity: Any = 1) -> Any:
        return self.ask("tools/call", {"name": tool, "arguments": arguments or {}}, identity)

    def end(self) -> tuple[int, bytes, str]:
        """Closes the input: exit code, what was still written, and stderr."""
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, out, err.decode()


@pytest.fixture
def raw() -> Iterator[Raw]:
    client = Raw("--limit", "100000")
    yield client
    client.process.kill()
    client.process.communicate()


def text(message: Any) -> str:
    return str(message["result"]["content"][0]["text"])


def test_the_end_of_the_input_ends_the_process_quietly(raw: Raw) -> None:
    raw.greet()
    assert raw.end() == (0, b"", "")


def test_the_end_of_the_input_cancels_what_is_under_way(raw: Raw) -> None:
    raw.greet().send("tools/call", {"name": "wait"}, 7)
    code, out, err = raw.end()
    assert (code, out, err) == (0, b"", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_in_order(raw: Raw, number: signal.Signals) -> None:
    raw.greet().send("tools/call", {"name": "wait"}, 7)
    assert raw.call("echo", {"text": "here"}, 8)["id"] == 8
    raw.process.send_signal(number)
    assert raw.process.wait(20) == 0


def test_a_client_that_stops_reading_for_good_ends_the_process(raw: Raw) -> None:
    raw.greet()
    assert raw.process.stdout is not None
    raw.process.stdout.close()
    raw.send("tools/call", {"name": "echo", "arguments": {"text": "?"}}, 1)
    assert raw.process.wait(20) == 0


def test_nothing_but_mcp_is_written_on_stdout(raw: Raw) -> None:
    assert text(raw.greet().call("noise")) == "quiet"
    assert text(raw.call("echo", {"text": "next"})) == "next"
    code, out, err = raw.end()
    assert (code, out) == (0, b"")
    assert "what a library prints" in err
    assert "the descriptor itself" in err


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"garbage", -32700),
        (b"\xff\xfe\x00", -32700),
        (b"[]", -32600),
        (b'{"id": 5}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}', -32600),
        (b"[" * 20_000, -32700),
        (b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":[1]}', -32602),
        (b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":{}}}', -32602),
        (b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{}}', -32602),
        (b'{"jsonrpc":"2.0","id":5,"method":"prompts/list"}', -32601),
        (b'{"jsonrpc":"2.0","id":5,"method":"' + b"x" * 50_000 + b'"}', -32601),
    ],
)
def test_a_bad_message_is_refused_and_the_next_one_served(raw: Raw, line: bytes, code: int) -> None:
    raw.greet().write(line + b"\n")
    assert raw.read()["error"]["code"] == code
    assert text(raw.call("echo", {"text": "next"}, 6)) == "next"


def test_a_giant_line_is_refused_under_its_own_id_without_being_kept(raw: Raw) -> None:
    raw.greet().send("tools/call", {"name": "echo", "arguments": {"text": "x" * 3_000_000}}, "giant")
    answer = raw.read()
    assert (answer["id"], answer["error"]["code"]) == ("giant", -32600)
    assert "over the limit of 100,000" in answer["error"]["message"]
    assert text(raw.call("echo", {"text": "next"})) == "next"


def test_a_line_in_small_pieces_is_one_message(raw: Raw) -> None:
    message = b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"text":"ok"}}}\n'
    raw.greet()
    for at in range(0, len(message), 7):
        raw.write(message[at : at + 7])
    assert text(raw.read()) == "ok"


def test_half_a_message_before_the_end_is_no_message(raw: Raw) -> None:
    raw.greet().write(b'{"jsonrpc":"2.0","id":3,"method":"tools/li')
    assert raw.end() == (0, b"", "")


def test_an_id_in_use_is_refused_and_the_first_request_lives_on(raw: Raw) -> None:
    raw.greet().send("tools/call", {"name": "wait"}, 7)
    assert raw.ask("tools/list", {}, 7)["error"]["code"] == -32600
    raw.send("notifications/cancelled", {"requestId": 7})
    assert text(raw.call("cancelled", identity=8)) == "yes"
    assert text(raw.call("echo", {"text": "again"}, 7)) == "again"


def test_cancelling_what_nobody_asked_for_does_nothing(raw: Raw) -> None:
    raw.greet()
    odd: list[Any] = [{"requestId": 99}, {"requestId": {}}, {}, None, [1]]
    for params in odd:
        raw.send("notifications/cancelled", params)
    raw.write(b'{"jsonrpc":"2.0","id":99,"result":{}}\n')
    assert text(raw.call("echo", {"text": "fine"})) == "fine"


def test_before_the_handshake_only_a_handshake_or_the_stateless_era_will_do(raw: Raw) -> None:
    assert raw.ask("tools/list", {})["error"]["code"] == -32602
    listed = raw.ask("tools/list", {"_meta": META}, 2)["result"]
    assert (listed["resultType"], listed["cacheScope"]) == ("complete", "public")
    assert listed["ttlMs"] > 0


def test_a_batch_of_older_times_is_answered_one_by_one(raw: Raw) -> None:
    calls = [
        {"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": str(n)}}}
        for n in range(5)
    ]
    raw.greet().write(json.dumps(calls).encode() + b"\n")
    assert {answer["id"]: text(answer) for answer in (raw.read() for _ in calls)} == {n: str(n) for n in range(5)}


def test_a_client_that_reads_late_gets_every_answer(raw: Raw) -> None:
    raw.greet()
    wanted = 60
    for n in range(wanted):  # far more than the pipe holds: the gateway must stop reading rather than pile up
        raw.send("tools/call", {"name": "big", "arguments": {"size": 100_000}}, n)
    assert sorted(raw.read()["id"] for _ in range(wanted)) == list(range(wanted))


def test_too_many_requests_at_once_are_refused_and_not_queued(raw: Raw) -> None:
    raw.greet()
    for n in range(1001):
        raw.send("tools/call", {"name": "wait"}, n)
    refused = raw.read()
    assert (refused["id"], refused["error"]["code"]) == (1000, -32603)


def test_files_will_do_for_both_ends(tmp_path: Path) -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    (tmp_path / "in").write_text(json.dumps(hello) + "\n")
    with (tmp_path / "in").open("rb") as source, (tmp_path / "out").open("wb") as target:
        assert subprocess.run(gateway_command(), stdin=source, stdout=target, timeout=20, check=False).returncode == 0
    assert json.loads((tmp_path / "out").read_text())["result"]["serverInfo"]["name"] == "pegboard"


def test_no_input_at_all_is_an_end() -> None:
    done = subprocess.run(gateway_command(), stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
