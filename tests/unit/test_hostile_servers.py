"""Every hostile mode does what its row in the table says, seen through a bare pipe."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers import HOSTILE_MODES, hostile_command
from tests.servers.hostile import HOOKS, LIFETIME

Json = dict[str, Any]
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="watches a process by pidfd")

PATIENCE = 40.0
LINE_CAP = 16 << 20
"""What a careful client takes as one message."""
PROBE = {"id": 0, "method": "server/discover", "params": {}}
HELLO = {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}}
READY = {"method": "notifications/initialized"}
LIST = {"id": 2, "method": "tools/list"}
CALL = {"id": 3, "method": "tools/call", "params": {"name": "poke", "arguments": {}}}
PING = {"id": 4, "method": "ping"}
ROAD = (HELLO, READY, LIST, CALL, PING)

NEED_A_TALK = {
    "asks_back",
    "endless_pages",
    "repeated_cursor",
    "slow_drip",
    "stops_reading",
    "huge_line_no_newline",
    "stdout_closed_but_alive",
    "stdin_closed_but_alive",
    "grandchild_holds_stdout",
    "ignores_sigterm_and_eof",
    "forks_daemon",
}
"""Modes that do not end with their input, or show themselves only in a dialogue: each has a test of its own below."""


def encode(*messages: Json) -> bytes:
    return b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages)


class Transcript:
    """Everything a server said until its end."""

    def __init__(self, mode: str, *messages: Json) -> None:
        done = subprocess.run(
            hostile_command(mode), input=encode(*messages), capture_output=True, timeout=PATIENCE, check=False
        )
        self.code = done.returncode
        self.raw = done.stdout
        self.stderr = done.stderr
        self.lines = done.stdout.split(b"\n")
        self.messages = [message for line in self.lines if (message := decoded(line)) is not None]

    def all(self, request: Json) -> list[Json]:
        """Every answer to a request."""
        return [m for m in self.messages if m.get("id") == request["id"] and "method" not in m]

    def first(self, request: Json) -> Json:
        """The answer that counts; empty when there is none."""
        return next(iter(self.all(request)), {})

    def result(self, request: Json) -> Any:
        return self.first(request).get("result")

    def names(self) -> list[Any]:
        """What the listed entries are called, whatever they are."""
        return [tool.get("name", "?") if isinstance(tool, dict) else tool for tool in self.result(LIST)["tools"]]

    def text(self) -> str:
        return str(self.result(CALL)["content"][0]["text"])

    def outcome(self) -> str:
        """How far a careful client gets."""
        hello, listing, call = (self.result(request) for request in (HELLO, LIST, CALL))
        if not isinstance(hello, dict) or hello.get("protocolVersion") != "2025-11-25":
            return "start_fails"
        if not isinstance(listing, dict) or not isinstance(listing.get("tools"), list):
            return "list_fails"
        return "ok" if isinstance(call, dict) and "ok" in call["content"][0]["text"] else "call_fails"


def decoded(line: bytes) -> Json | None:
    """A message, or None for what a careful client does not take."""
    if len(line) > LINE_CAP:
        return None
    try:
        message = json.loads(line.decode(errors="replace"))
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) and message.get("jsonrpc") == "2.0" else None


def doubling(schema: Json) -> int:
    """Levels of a schema in which each refers to the one below twice."""
    return sum(json.dumps(level).count("$ref") == 2 for level in schema["$defs"].values())


EVIDENCE: dict[str, Callable[[Transcript], bool]] = {
    "hang_at_start": lambda t: t.raw == b"" and t.code == 0,
    "exit_at_start": lambda t: (t.code, t.stderr) == (3, b"hostile: no licence found\n"),
    "crash_at_initialize": lambda t: t.code == 134 and b"assertion" in t.stderr and not t.messages,
    "unsupported_version": lambda t: t.first(HELLO)["error"]["data"]["supported"] == ["2099-01-01"],
    "wrong_version_answer": lambda t: t.result(HELLO)["protocolVersion"] == "1999-12-31",
    "dies_in_a_loop": lambda t: t.code == 1 and len(t.messages) == 1,
    "mute_at_probe": lambda t: t.outcome() == "ok",
    "dies_at_probe": lambda t: t.outcome() == "ok",
    "hang_at_list": lambda t: not t.all(LIST) and t.result(PING) == {},
    "list_not_array": lambda t: isinstance(t.result(LIST)["tools"], dict),
    "lies_about_capabilities": lambda t: (
        t.first(LIST)["error"]["code"] == -32601 and "tools" in t.result(HELLO)["capabilities"]
    ),
    "huge_list": lambda t: len(set(t.names())) == 50_001,
    "tools_missing_name": lambda t: t.names() == ["poke", "?", 7, "", None, "poke", None, 3, []],
    "duplicate_tools": lambda t: t.names() == ["poke"] * 3,
    "control_characters": lambda t: any("\x1b" in name for name in t.names()) and max(map(len, t.names())) == 5000,
    "reserved_names": lambda t: {"search_tools", "call_tool"} <= set(t.names()),
    "ref_bomb": lambda t: all(
        doubling(t.result(LIST)["tools"][0][schema]) == 30 for schema in ("inputSchema", "outputSchema")
    ),
    "redos_pattern": lambda t: (
        t.result(LIST)["tools"][0]["outputSchema"]["properties"]["text"]["pattern"].startswith("^(a+)+$")
        and len(t.result(CALL)["structuredContent"]["text"]) > 40
    ),
    "hang_at_call": lambda t: not t.all(CALL) and t.result(PING) == {},
    "crash_mid_call": lambda t: t.code == 139 and t.lines[-1].startswith(b'{"jsonrpc"'),
    "exit_after_each_call": lambda t: t.code == 0 and not t.all(PING),
    "wrong_id": lambda t: any(m.get("id") == "not-3" for m in t.messages),
    "answer_without_id": lambda t: any("id" not in m and "result" in m for m in t.messages),
    "duplicate_answers": lambda t: len(t.all(CALL)) == 100,
    "answers_twice": lambda t: [m["result"].get("isError", False) for m in t.all(CALL)] == [False, True],
    "not_an_object_result": lambda t: t.result(CALL) == "ok",
    "error_without_message": lambda t: t.first(CALL)["error"] == {"code": "E_NO"},
    "request_flood": lambda t: sum("method" in m and "id" in m for m in t.messages) == 50_000,
    "notification_flood": lambda t: sum("method" in m and "id" not in m for m in t.messages) == 200_000,
    "log_flood": lambda t: len(t.stderr) > 100_000_000,
    "garbage_lines": lambda t: sum(line != b"" and decoded(line) is None for line in t.lines) >= 8 * 4,
    "bad_utf8": lambda t: b"\xff\xc3" in t.raw and t.text() == "ok\ufffd\ufffd",
    "nul_bytes": lambda t: b"\0\0\0" in t.lines and t.text() == "ok\0",
    "crlf_lines": lambda t: all(line.endswith(b"\r") for line in t.lines[:-1]),
    "line_separators": lambda t: t.text() == "ok\u2028\u2029\x85" and len(t.raw.decode().splitlines()) > len(t.lines),
    "lone_surrogate": lambda t: t.text() == "ok\ud800",
    "not_a_number": lambda t: b":NaN" in t.raw and b":Infinity" in t.raw,
    "huge_line": lambda t: max(map(len, t.lines)) > 40_000_000,
    "deep_json": lambda t: b"[" * 100_000 in t.raw,
}


@contextlib.contextmanager
def talking(mode: str, *arguments: str, **env: str) -> Iterator[subprocess.Popen[bytes]]:
    """A hostile server to talk with; dead at the end, with all of its process group."""
    process = subprocess.Popen(
        hostile_command(mode, *arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env={**os.environ, **env},
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()
        process.wait(PATIENCE)


@contextlib.contextmanager
def watched(pid: int) -> Iterator[int]:
    """A descriptor that becomes readable when the process, no child of ours, is dead."""
    descriptor = os.pidfd_open(pid)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def gone(descriptor: int, *, within: float) -> bool:
    return bool(select.select([descriptor], [], [], within)[0])


def read(process: subprocess.Popen[bytes], size: int = 1 << 16) -> bytes:
    """What comes next on stdout; empty at its end."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
    assert ready, "the server is silent"
    return os.read(process.stdout.fileno(), size)


def say(process: subprocess.Popen[bytes], *messages: Json) -> None:
    assert process.stdin is not None
    process.stdin.write(encode(*messages))


def fill(process: subprocess.Popen[bytes]) -> None:
    """Writes more than any pipe holds, without waiting."""
    assert process.stdin is not None
    os.set_blocking(process.stdin.fileno(), False)
    for _ in range(1000):
        os.write(process.stdin.fileno(), b"x" * 100_000)


def hear(process: subprocess.Popen[bytes], *, until: Any) -> Json:
    """Reads byte by byte up to the message with this id."""
    line = b""
    while True:
        byte = read(process, 1)
        assert byte, "the server closed its stdout"
        line += byte
        if byte == b"\n":
            message = decoded(line) or {}
            if message.get("id") == until:
                return message
            line = b""


def test_the_table_has_a_behaviour_and_a_test_for_every_mode_and_no_other():
    assert list(HOOKS) == list(HOSTILE_MODES)
    assert set(EVIDENCE) | NEED_A_TALK == set(HOSTILE_MODES)
    assert len(HOSTILE_MODES) >= 26
    assert Counter(mode.does for mode in HOSTILE_MODES.values()).most_common(1)[0][1] == 1


@pytest.mark.parametrize("mode", EVIDENCE)
def test_a_mode_does_what_its_row_says_and_a_careful_client_fares_as_expected(mode):
    transcript = Transcript(mode, *ROAD)
    assert EVIDENCE[mode](transcript), HOSTILE_MODES[mode].does
    outcome = {"list_ok": "ok", "call_ok": "ok"}.get(HOSTILE_MODES[mode].expect, HOSTILE_MODES[mode].expect)
    assert transcript.outcome() == outcome or outcome == "any"


def test_a_probe_is_ignored_refused_or_deadly():
    assert not Transcript("mute_at_probe", PROBE, *ROAD).all(PROBE)
    assert Transcript("mute_at_probe", PROBE, *ROAD).outcome() == "ok"
    deadly = Transcript("dies_at_probe", PROBE, *ROAD)
    assert (deadly.code, deadly.raw) == (1, b"")
    assert b"expected initialize" in deadly.stderr
    assert Transcript("hang_at_call", PROBE).first(PROBE)["error"]["code"] == -32601
    assert Transcript("unsupported_version", PROBE).first(PROBE)["error"]["code"] == -32022


@pytest.mark.parametrize(("mode", "new"), [("endless_pages", True), ("repeated_cursor", False)])
def test_pages_never_end(mode, new):
    pages = [{**LIST, "id": n, "params": {"cursor": str(n) if new else "again"}} for n in range(10, 200)]
    transcript = Transcript(mode, HELLO, READY, LIST, *pages, CALL)
    results = [transcript.result(page) for page in (LIST, *pages)]
    assert all("nextCursor" in result for result in results)
    assert len({result["nextCursor"] for result in results}) == (len(results) if new else 1)
    assert results[0]["tools"][0]["name"] == "poke"
    assert transcript.outcome() == "ok"


def test_asks_back_answers_only_when_every_question_has_a_reply():
    with talking("asks_back") as process:
        say(process, HELLO, CALL)
        for question in ("roots/list", "sampling/createMessage", "no/such-method", "ping"):
            assert hear(process, until=f"q-{question}")["method"] == question
            say(process, {"id": f"q-{question}", "error": {"code": -32601, "message": "no"}})
        assert hear(process, until=3)["result"]["content"][0]["text"] == "ok"


def test_slow_drip_comes_in_pieces():
    with talking("slow_drip") as process:
        say(process, HELLO, LIST, CALL)
        pieces = [read(process)]
        while pieces[-1][-1:] != b"\n":
            pieces.append(read(process))
        assert len(pieces) > 10
        assert hear(process, until=3)["result"]["content"][0]["text"] == "ok"


def test_stops_reading_lets_the_pipe_fill_up():
    with talking("stops_reading") as process:
        say(process, HELLO, LIST)
        assert hear(process, until=2)["result"]["tools"][0]["name"] == "poke"
        with pytest.raises(BlockingIOError):
            fill(process)
        assert process.stdin is not None
        assert select.select([], [process.stdin], [], 0.3)[1] == [], "somebody reads on"
        assert process.poll() is None


def test_huge_line_no_newline_sends_200_megabytes_and_no_end_of_line():
    with talking("huge_line_no_newline") as process:
        say(process, HELLO, LIST, CALL)
        hear(process, until=2)
        size = 0
        while size < 200 << 20:
            block = read(process, 1 << 20)
            assert block
            assert b"\n" not in block
            size += len(block)


def test_stdout_closed_but_alive_ends_its_output_and_not_itself():
    with talking("stdout_closed_but_alive") as process:
        say(process, HELLO, LIST, CALL)
        hear(process, until=2)
        assert read(process) == b""
        assert process.poll() is None


def test_stdin_closed_but_alive_lists_and_can_be_told_nothing_more():
    with talking("stdin_closed_but_alive") as process:
        say(process, HELLO, LIST)
        hear(process, until=2)
        with pytest.raises(BrokenPipeError):
            say(process, CALL)
        assert process.poll() is None


def test_grandchild_holds_stdout_after_the_server_is_dead():
    with talking("grandchild_holds_stdout") as process:
        say(process, HELLO, LIST)
        hear(process, until=2)
        say(process, CALL)
        assert process.wait(PATIENCE) == 1
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], 0)[0] == [], "an end of file would show as readable"
        os.killpg(process.pid, signal.SIGKILL)
        assert read(process) == b""


def test_ignores_sigterm_and_eof_serves_on_and_dies_of_sigkill_alone():
    with talking("ignores_sigterm_and_eof") as process:
        say(process, HELLO)
        hear(process, until=1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            process.send_signal(number)
        say(process, LIST, CALL)
        assert hear(process, until=3)["result"]["content"][0]["text"] == "ok"
        assert process.stdin is not None
        process.stdin.close()
        assert process.stderr is not None
        assert process.stderr.readline() == b"hostile: the end of input does not end me\n"
        process.kill()
        assert process.wait(PATIENCE) == -signal.SIGKILL


@linux_only
def test_forks_daemon_leaves_a_daemon_outside_its_group_and_session(tmp_path: Path):
    pid_file = tmp_path / "pid"
    with talking("forks_daemon", str(pid_file)) as process:
        say(process, HELLO, LIST, CALL)
        assert hear(process, until=3)["result"]["content"][0]["text"] == "ok"
        pid = int(pid_file.read_text())
        with watched(pid) as daemon:
            assert os.getsid(pid) not in (process.pid, os.getsid(0))
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(PATIENCE)
            assert not gone(daemon, within=0)
            os.kill(pid, signal.SIGKILL)
            assert gone(daemon, within=PATIENCE)


@pytest.mark.parametrize("mode", ["ignores_sigterm_and_eof", "stops_reading", "hang_at_start"])
def test_the_alarm_ends_a_server_that_nobody_stops(mode):
    assert 0 < LIFETIME < 120
    with talking(mode, SERVER_LIFETIME="1") as process:
        say(process, HELLO, LIST)
        assert process.wait(PATIENCE) == -signal.SIGALRM


@linux_only
def test_the_alarm_ends_the_daemon_too(tmp_path: Path):
    pid_file = tmp_path / "pid"
    with talking("forks_daemon", str(pid_file), SERVER_LIFETIME="2") as process:
        say(process, HELLO)
        hear(process, until=1)
        with watched(int(pid_file.read_text())) as daemon:
            assert gone(daemon, within=PATIENCE)


def test_an_unknown_mode_is_refused_with_the_list_of_modes():
    wrong = subprocess.run(hostile_command("friendly"), capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert wrong.returncode == 1
    assert set(re.findall(r"\w+", wrong.stderr)) >= set(HOSTILE_MODES)
