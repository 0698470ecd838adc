"""MCP servers on stdio that misbehave, each in one way: `python hostile.py MODE [FILE]`. Standard library only.

`MODES` is the table of them: what each does and what a caller may expect of it. Apart from its one fault a mode is a
sober handshake-era server with one tool, `poke`, that answers "ok". Whatever happens, the process and all it forks are
gone `LIFETIME` seconds after the start: the kernel's alarm sees to that even when the code is stuck.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

Json = dict[str, Any]
Hook = Callable[["HostileServer", Any], None]

LIFETIME = int(os.environ.get("SERVER_LIFETIME", "110"))
STARTED = time.monotonic()
MEGABYTE = 1 << 20
POKE: Json = {"name": "poke", "description": "Answers ok.", "inputSchema": {"type": "object"}}
OK: Json = {"content": [{"type": "text", "text": "ok"}]}

HELLO: Json = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "hostile", "version": "1"},
}
KINDS = {"initialize": "initialize", "server/discover": "probe", "tools/list": "list", "tools/call": "call"}
"""The moments that have a hook, by method. Besides: start, other (any other message), any (a request without a hook
of its own), end (of input)."""

Expect = Literal["start_fails", "list_fails", "call_fails", "list_ok", "call_ok", "any"]
"""What a caller may expect.

start_fails  it never becomes ready
list_fails   it becomes ready, but its tools cannot be listed
call_fails   its tools can be listed, but a call of `poke` ends in an error
list_ok      `poke` can be listed and called; something else about the list must be refused, dropped or cut short
call_ok      nothing fails: the call gets its answer in spite of all
any          a call of `poke` may succeed or fail, but it ends
"""


class Mode(NamedTuple):
    """One way to misbehave."""

    expect: Expect
    does: str


MODES: dict[str, Mode] = {
    # Starting
    "hang_at_start": Mode("start_fails", "reads and answers nothing at all"),
    "exit_at_start": Mode("start_fails", "exit code 3 with words on stderr, before it reads anything"),
    "crash_at_initialize": Mode("start_fails", "dies when it is asked to initialize"),
    "unsupported_version": Mode("start_fails", "refuses every protocol version, in both eras"),
    "wrong_version_answer": Mode("start_fails", "agrees on a version that never was"),
    "dies_in_a_loop": Mode("list_fails", "shakes hands and exits at once, every time"),
    "mute_at_probe": Mode("call_ok", "ignores `server/discover`, as old servers may; sober after initialize"),
    "dies_at_probe": Mode("call_ok", "exits when its first message is not initialize, as some do; else sober"),
    # Listing
    "hang_at_list": Mode("list_fails", "never answers tools/list"),
    "list_not_array": Mode("list_fails", "`tools` is an object"),
    "lies_about_capabilities": Mode("list_fails", "claims tools and much else, and knows no such method"),
    "endless_pages": Mode("list_ok", "a new page and a new nextCursor, for ever"),
    "repeated_cursor": Mode("list_ok", "the same page and the same nextCursor, for ever"),
    "huge_list": Mode("list_ok", "50,001 tools on one page"),
    "tools_missing_name": Mode("list_ok", "entries without a name, with a wrong one, or that are no objects"),
    "duplicate_tools": Mode("list_ok", "`poke` three times, with different descriptions"),
    "control_characters": Mode("list_ok", "escape sequences, bidi marks, homoglyphs and endless names"),
    "reserved_names": Mode("list_ok", "tools named like the caller's own"),
    "ref_bomb": Mode("call_ok", "input and output schema of 30 doubling $refs"),
    "redos_pattern": Mode("call_ok", "schemas with a pattern that backtracks without end"),
    # Calling
    "hang_at_call": Mode("call_fails", "never answers tools/call"),
    "stops_reading": Mode("call_fails", "lists, and then never reads its stdin again"),
    "crash_mid_call": Mode("call_fails", "dies with half an answer written"),
    "exit_after_each_call": Mode("call_ok", "answers one call and exits"),
    "wrong_id": Mode("call_fails", "answers under an id nobody used"),
    "answer_without_id": Mode("call_fails", "answers without an id"),
    "duplicate_answers": Mode("call_ok", "every answer a hundred times"),
    "answers_twice": Mode("call_ok", "a right answer and then a different one"),
    "not_an_object_result": Mode("call_fails", "the result is a string"),
    "error_without_message": Mode("call_fails", "an error without message, its code a string"),
    "asks_back": Mode("call_ok", "asks for roots, sampling and nonsense; answers when each was replied to"),
    "request_flood": Mode("call_ok", "50,000 requests, reading no reply meanwhile, then the answer"),
    "notification_flood": Mode("call_ok", "200,000 notifications, then the answer"),
    "log_flood": Mode("call_ok", "100 MB on stderr, then the answer"),
    "slow_drip": Mode("call_ok", "every answer one byte per 5 ms"),
    # Bytes
    "garbage_lines": Mode("call_ok", "log lines, half JSON and binary before every answer"),
    "bad_utf8": Mode("call_ok", "bytes in the text that are not UTF-8"),
    "nul_bytes": Mode("call_ok", "lines of NUL bytes, and an escaped NUL in the text"),
    "crlf_lines": Mode("call_ok", "lines end in CR LF"),
    "line_separators": Mode("call_ok", "U+2028, U+2029 and U+0085 in the text, which are no line ends here"),
    "lone_surrogate": Mode("any", "an escape that is half a character"),
    "not_a_number": Mode("any", "NaN and Infinity, which JSON does not have"),
    "huge_line": Mode("call_fails", "an answer of 40 MB"),
    "huge_line_no_newline": Mode("call_fails", "200 MB and no end of line"),
    "deep_json": Mode("call_fails", "100,000 nested arrays as an answer"),
    # Processes
    "stdout_closed_but_alive": Mode("call_fails", "closes its stdout at a call and lives on"),
    "stdin_closed_but_alive": Mode("call_fails", "closes its stdin, lists and lives on"),
    "grandchild_holds_stdout": Mode("call_fails", "dies at a call, but its child keeps stdout and stderr open"),
    "ignores_sigterm_and_eof": Mode("call_ok", "sober, but neither the end of input nor SIGTERM ends it"),
    "forks_daemon": Mode("call_ok", "sober, but starts a daemon in a session of its own; its pid goes to FILE"),
}


class HostileServer:
    """A sober server; the mode's hooks take the place of what it would do."""

    def __init__(self, hooks: dict[str, Hook], arguments: list[str]) -> None:
        self.hooks = hooks
        self.arguments = arguments

    def write(self, data: bytes, descriptor: int = 1) -> None:
        """Raw bytes to the client, all of them."""
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]

    def send(self, **message: Any) -> None:
        """One message on one line."""
        self.write(line_of(message))

    def answer(self, request: Json, result: Any) -> None:
        """The answer to a request."""
        self.send(id=request["id"], result=result)

    def read(self) -> Json | None:
        """The next message, or None when the client closed our stdin."""
        line = sys.stdin.buffer.readline()
        message: Json | None = json.loads(line) if line else None
        return message

    def run(self) -> None:
        """Reads until the end of input."""
        self.hook("start", None)
        while (message := self.read()) is not None:
            self.receive(message)
        self.hook("end", None)

    def receive(self, message: Json) -> None:
        """One message: the hook of its kind, or what a sober server does."""
        is_request = "method" in message and "id" in message
        if self.hook(KINDS.get(message.get("method", ""), "other"), message) or not is_request:
            return
        if not self.hook("any", message):
            self.send(**sober(message))

    def hook(self, kind: str, message: Json | None) -> bool:
        """Runs the mode's own behaviour, if it has one here."""
        run = self.hooks.get(kind)
        if run is not None:
            run(self, message)
        return run is not None


def line_of(message: Json) -> bytes:
    """A message as it goes over the wire."""
    return (json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")) + "\n").encode()


def sober(request: Json) -> Json:
    """The answer of a server in its right mind."""
    method = request["method"]
    results: Json = {"initialize": HELLO, "tools/list": {"tools": [POKE]}, "tools/call": OK, "ping": {}}
    if method in results:
        return {"id": request["id"], "result": results[method]}
    return {"id": request["id"], "error": {"code": -32601, "message": f"Method not found: {method}"}}


def hang(*_: Any) -> NoReturn:
    """Waits for the alarm."""
    while True:
        time.sleep(LIFETIME)


def leave(words: str, code: int = 1) -> NoReturn:
    """Says something on stderr and is gone."""
    os.write(2, words.encode() + b"\n")
    os._exit(code)


def dies(words: str, code: int = 1) -> Hook:
    """Leaves, when the moment comes."""
    return lambda _server, _message: leave(words, code)


def says(result: Any) -> Hook:
    """Answers with this result instead."""
    return lambda server, request: server.answer(request, result)


def around(before: bytes = b"", change: Callable[[bytes], bytes] = bytes) -> Hook:
    """Answers soberly, but with other bytes before the line or in it."""
    return lambda server, request: server.write(before + change(line_of(sober(request))))


def text(replacement: bytes) -> Callable[[bytes], bytes]:
    """Puts other bytes in the place of the text."""
    return lambda line: line.replace(b'"ok"', b'"' + replacement + b'"')


def flood(block: bytes, times: int, *, descriptor: int = 1) -> Hook:
    """Writes a block many times over, and then the sober answer."""

    def run(server: HostileServer, request: Json) -> None:
        for _ in range(times):
            server.write(block, descriptor)
        server.send(**sober(request))

    return run


def fails_with(error: Json) -> Hook:
    """Answers with this JSON-RPC error."""
    return lambda server, request: server.send(id=request["id"], error=error)


def ignore(*_: Any) -> None:
    """Takes the message and says nothing."""


def crash_mid_call(server: HostileServer, request: Json) -> None:
    line = line_of({"id": request["id"], "result": OK})
    server.write(line[: len(line) // 2])
    leave("hostile: segmentation fault (not really)", 139)


def exit_after_each_call(server: HostileServer, request: Json) -> None:
    server.send(**sober(request))
    os._exit(0)


def endless_pages(server: HostileServer, request: Json) -> None:
    page = int((request.get("params") or {}).get("cursor") or 0)
    tools = [POKE] if page == 0 else [{**POKE, "name": f"page_{page}"}]
    server.answer(request, {"tools": tools, "nextCursor": str(page + 1)})


def huge_line_no_newline(server: HostileServer, _request: Json) -> None:
    server.write(b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"')
    for _ in range(200):
        server.write(b"x" * MEGABYTE)
    hang()


def deep_json(server: HostileServer, request: Json) -> None:
    depth = 100_000
    nested = b"[" * depth + b"]" * depth
    server.write(b'{"jsonrpc":"2.0","id":%s,"result":%s}\n' % (json.dumps(request["id"]).encode(), nested))


def wrong_id(server: HostileServer, request: Json) -> None:
    server.send(id=f"not-{request['id']}", result=OK)


def duplicate_answers(server: HostileServer, request: Json) -> None:
    for _ in range(100):
        server.send(**sober(request))


def answers_twice(server: HostileServer, request: Json) -> None:
    server.send(**sober(request))
    server.answer(request, {"content": [{"type": "text", "text": "on second thoughts"}], "isError": True})


def asks_back(server: HostileServer, request: Json) -> None:
    """Asks what the client cannot know, and goes on only when each question has its answer."""
    for method in ("roots/list", "sampling/createMessage", "no/such-method", "ping"):
        server.send(id=f"q-{method}", method=method, params={})
        while (message := server.read()) is not None and message.get("id") != f"q-{method}":
            pass
    server.send(**sober(request))


def stdout_closed_but_alive(*_: Any) -> None:
    os.close(1)
    hang()


def stdin_closed_but_alive(server: HostileServer, request: Json) -> None:
    os.close(0)
    server.send(**sober(request))
    hang()


def stops_reading(server: HostileServer, request: Json) -> None:
    server.send(**sober(request))
    hang()


def leave_behind() -> int:
    """Forks: the child's pid, or 0 in the child, whose alarm is set to what is left."""
    child = os.fork()
    if not child:
        signal.alarm(max(1, LIFETIME - int(time.monotonic() - STARTED)))
    return child


def grandchild_holds_stdout(*_: Any) -> None:
    if not leave_behind():
        hang()
    leave("hostile: gone, but my child still holds your pipe")


def ignore_signals(*_: Any) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def lingers(*_: Any) -> None:
    os.write(2, b"hostile: the end of input does not end me\n")
    hang()


def forks_daemon(server: HostileServer, _: Any) -> None:
    if leave_behind():
        os.wait()
        return
    os.setsid()
    if daemon := leave_behind():
        if server.arguments:
            Path(server.arguments[0]).write_text(str(daemon))
        os._exit(0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    hang()


def slow_drip(server: HostileServer, request: Json) -> None:
    for byte in line_of(sober(request)):
        server.write(bytes([byte]))
        time.sleep(0.005)


def bomb(levels: int = 30) -> Json:
    """A schema that doubles at every level: small to send, 2^levels to walk."""
    doubled = {
        f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n - 1}"}, {"$ref": f"#/$defs/l{n - 1}"}]} for n in range(1, levels + 1)
    }
    return {"type": "object", "$defs": {"l0": {"type": "object"}, **doubled}, "allOf": [{"$ref": f"#/$defs/l{levels}"}]}


def tools(*changes: Json) -> Hook:
    """Lists `poke`, and `poke` with each of these changes."""
    return says({"tools": [POKE, *({**POKE, **change} for change in changes)]})


def huge_list(server: HostileServer, request: Json) -> None:
    tools(*({"name": f"tool_{n}"} for n in range(50_000)))(server, request)


def huge_line(server: HostileServer, request: Json) -> None:
    server.answer(request, {"content": [{"type": "text", "text": "x" * (40 * MEGABYTE)}]})


GARBAGE = b'Listening on stdio ...\n{"jsonrpc": "2.0", "id"\n[]\nnull\n42\n{}\n"text"\n\r\n\xff\xfe\x80\n{"id":{}}\n'
PATTERN = "^(a+)+$|^a*!$"
"""Matches the answer, but only after a backtracking engine has tried the first half in every way."""
SLOW_TEXT = {"type": "object", "properties": {"text": {"type": "string", "pattern": PATTERN}}}
NOTE = line_of({"method": "notifications/message", "params": {"level": "info", "data": "x"}})
QUESTIONS = b"".join(line_of({"id": f"q{n}", "method": "ping"}) for n in range(100))
EVIL_NAMES: list[Json] = [
    {"name": "new\nline", "description": "\x1b[2J\x1b[31mred\x1b]0;title\x07"},
    {"name": "\x1b[8mhidden", "description": "\x00\x08\x7f\x9b"},
    {"name": "right\u202eot\u2066left", "description": "zero\u200bwidth\ufeff"},
    {"name": "\u0440oke", "title": "\x1b[1A\x1b[2K", "description": "a Cyrillic letter at the start"},
    {"name": " ", "description": "\u2028\u2029\x85"},
    {"name": "x" * 5000, "description": "y" * 100_000},
]
RESERVED = ("search_tools", "call_tool", "call_tools", "run_code", "pegboard", "__proto__", "a__b", "poke__poke")
CLAIMS: Json = {"tools": {"listChanged": True}, "resources": {"subscribe": True}, "prompts": {}, "logging": {}}
NO_SUCH_VERSION: Json = {
    "message": "Unsupported protocol version",
    "data": {"supported": ["2099-01-01"], "requested": "?"},
}
NO_NAMES: list[Any] = [{"inputSchema": {}}, *({**POKE, "name": name} for name in (7, "", None)), "poke", None, 3, []]

HOOKS: dict[str, dict[str, Hook]] = {
    "hang_at_start": {"any": ignore},
    "exit_at_start": {"start": dies("hostile: no licence found", 3)},
    "crash_at_initialize": {"initialize": dies("hostile: assertion failed", 134)},
    "unsupported_version": {
        "probe": fails_with({"code": -32022, **NO_SUCH_VERSION}),
        "initialize": fails_with({"code": -32602, **NO_SUCH_VERSION}),
    },
    "wrong_version_answer": {"initialize": says({**HELLO, "protocolVersion": "1999-12-31"})},
    "dies_in_a_loop": {"other": dies("hostile: bye")},
    "mute_at_probe": {"probe": ignore},
    "dies_at_probe": {"probe": dies("hostile: expected initialize as the first message")},
    "hang_at_list": {"list": ignore},
    "list_not_array": {"list": says({"tools": {"poke": POKE}})},
    "lies_about_capabilities": {
        "initialize": says({**HELLO, "capabilities": CLAIMS}),
        "list": fails_with({"code": -32601, "message": "Method not found"}),
    },
    "endless_pages": {"list": endless_pages},
    "repeated_cursor": {"list": says({"tools": [POKE], "nextCursor": "again"})},
    "huge_list": {"list": huge_list},
    "tools_missing_name": {"list": says({"tools": [POKE, *NO_NAMES]})},
    "duplicate_tools": {"list": tools({"description": "two"}, {"description": "three"})},
    "control_characters": {"list": tools(*EVIL_NAMES)},
    "reserved_names": {"list": tools(*({"name": name} for name in RESERVED))},
    "ref_bomb": {
        "list": says({"tools": [{**POKE, "inputSchema": bomb(), "outputSchema": bomb()}]}),
        "call": says({**OK, "structuredContent": {}}),
    },
    "redos_pattern": {
        "list": says({"tools": [{**POKE, "inputSchema": SLOW_TEXT, "outputSchema": SLOW_TEXT}]}),
        "call": says({**OK, "structuredContent": {"text": "a" * 40 + "!"}}),
    },
    "hang_at_call": {"call": ignore},
    "stops_reading": {"list": stops_reading},
    "crash_mid_call": {"call": crash_mid_call},
    "exit_after_each_call": {"call": exit_after_each_call},
    "wrong_id": {"call": wrong_id},
    "answer_without_id": {"call": lambda server, _: server.send(result=OK)},
    "duplicate_answers": {"any": duplicate_answers},
    "answers_twice": {"call": answers_twice},
    "not_an_object_result": {"call": says("ok")},
    "error_without_message": {"call": fails_with({"code": "E_NO"})},
    "asks_back": {"call": asks_back},
    "request_flood": {"call": flood(QUESTIONS, 500)},
    "notification_flood": {"call": flood(NOTE * 100, 2_000)},
    "log_flood": {"call": flood(b"hostile: all is well\n" * 5_000, 1_000, descriptor=2)},
    "slow_drip": {"any": slow_drip},
    "garbage_lines": {"any": around(GARBAGE)},
    "bad_utf8": {"call": around(change=text(b"ok\xff\xc3"))},
    "nul_bytes": {"call": around(b"\0\0\0\n\0\n", text(b"ok\\u0000"))},
    "crlf_lines": {"any": around(change=lambda line: line.replace(b"\n", b"\r\n"))},
    "line_separators": {"call": around(change=text("ok\u2028\u2029\x85".encode()))},
    "lone_surrogate": {"call": around(change=text(b"ok\\ud800"))},
    "not_a_number": {"call": says({**OK, "structuredContent": {"a": float("nan"), "b": float("inf")}})},
    "huge_line": {"call": huge_line},
    "huge_line_no_newline": {"call": huge_line_no_newline},
    "deep_json": {"call": deep_json},
    "stdout_closed_but_alive": {"call": stdout_closed_but_alive},
    "stdin_closed_but_alive": {"list": stdin_closed_but_alive},
    "grandchild_holds_stdout": {"call": grandchild_holds_stdout},
    "ignores_sigterm_and_eof": {"start": ignore_signals, "end": lingers},
    "forks_daemon": {"start": forks_daemon},
}


def main() -> None:
    """Runs one mode under the alarm."""
    if len(sys.argv) < 2 or sys.argv[1] not in HOOKS:
        sys.exit(f"usage: hostile.py MODE [FILE]\nmodes: {' '.join(HOOKS)}")
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
    signal.alarm(LIFETIME)
    try:
        HostileServer(HOOKS[sys.argv[1]], sys.argv[2:]).run()
    except BrokenPipeError:
        os._exit(0)


if __name__ == "__main__":
    main()
