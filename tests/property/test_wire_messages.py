"""What must hold of messages whatever arrives: garbage, strangers' answers, servers that never agree."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from typing import Any

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pegboard.types import Json
from pegboard.wire.asked import Asked
from pegboard.wire.client import Agreement, CannotAgree, ClientSide, NoAnswer, Reply, Step
from pegboard.wire.framing import LineDecoder
from pegboard.wire.http import decode_value, encode_value, mirrored_arguments, request_headers
from pegboard.wire.http_server import check_headers, check_mirrored
from pegboard.wire.messages import (
    UNSUPPORTED_VERSION,
    Notification,
    NotJsonRpc,
    Request,
    Response,
    RpcError,
    encode_error,
    encode_notification,
    encode_request,
    encode_result,
    parse,
    read,
)
from pegboard.wire.meta import META_CAPABILITIES, META_VERSION
from pegboard.wire.paging import Pages
from pegboard.wire.server import Answer, ServerSide
from pegboard.wire.versions import era_of

patiently = settings(deadline=None)
"""The machine may be busy; how long an example takes proves nothing."""

# ── JSON as it really arrives ────────────────────────────────────────────────────────────────────────────────────

integers = st.integers(-(2**63), 2**64 - 1)
plain_json = st.recursive(
    st.none() | st.booleans() | integers | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(st.text(max_size=8), plain_json, max_size=4)
request_ids = integers | st.text()

names = st.sampled_from(
    ["jsonrpc", "id", "method", "params", "result", "error", "code", "message", "_meta", META_VERSION]
)
odd_values = st.sampled_from(
    [
        "NaN",
        "Infinity",
        "-Infinity",
        "1e999",
        "9" * 25,
        "9" * 5000,
        "-0",
        "1.0",
        "01",
        r'"\ud800"',
        r'"\udc00\ud800"',
        r'"\x"',
        '"\x01"',
        '"2.0"',
        '"2026-07-28"',
        '"initialize"',
        '"subscriptions/listen"',
        "[" * 2000 + "]" * 2000,
        "[" * 60_000,
        "",
        "null",
        "{}",
    ]
)


def object_text(pairs: list[tuple[str, str]]) -> str:
    """An object with its keys as they come, doubles included."""
    return "{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in pairs) + "}"


json_texts = st.recursive(
    odd_values | plain_json.map(json.dumps),
    lambda inner: (
        st.lists(st.tuples(names, inner), max_size=6).map(object_text)
        | st.lists(inner, max_size=4).map(lambda parts: "[" + ",".join(parts) + "]")
    ),
    max_leaves=10,
)
frames = (
    st.binary()
    | json_texts.map(str.encode)
    | st.builds(
        lambda text, junk, at: text.encode()[:at] + junk + text.encode()[at:],
        json_texts,
        st.binary(max_size=3),
        st.integers(0, 40),
    )
)


@patiently
@given(frames)
@example(b'{"id":1,"error":' + b"[" * 900 + b"]" * 900 + b"}")
@example(b'{"method":"\xff\\ud800"}')
def test_reading_a_frame_succeeds_or_says_that_it_is_not_json_rpc(frame: bytes) -> None:
    assert read_wholly(frame) != ""


def read_wholly(frame: bytes) -> list[Any] | str:
    """What a frame says, down to the bottom, or why it says nothing; any other error escapes."""
    try:
        messages = parse(frame)
        bodies = [each.result if isinstance(each, Response) else each.params for each in messages]
        return [None if body is None else read(body) for body in bodies]
    except NotJsonRpc as error:
        return str(error)


@patiently
@given(st.lists(frames, max_size=4), st.booleans())
def test_a_server_survives_any_frame_and_answers_in_json_rpc(arrived: list[bytes], greeted: bool) -> None:
    server = ServerSide("s", "1", capabilities={"tools": {"listChanged": True}})
    if greeted:
        server.receive(encode_request(0, "initialize", {"protocolVersion": "2025-11-25"}))
    for frame in arrived:
        for event in server.receive(frame):
            if isinstance(event, Answer):
                [message] = parse(event.data)
                assert isinstance(message, Response)
            if isinstance(event, Asked):
                assert server.result(event, {}) is not None


header_lines = st.lists(
    st.tuples(st.sampled_from(["MCP-Protocol-Version", "mcp-method", "Mcp-Name", "Mcp-Param-A"]), st.text(max_size=12)),
    max_size=5,
)


@patiently
@given(header_lines, frames, json_texts)
def test_checking_headers_never_fails_but_with_a_verdict(
    lines: list[tuple[str, str]], body: bytes, schema: str
) -> None:
    try:
        known = read(schema.encode())
    except NotJsonRpc:
        known = None
    verdict = check_headers(lines, body, schema=known)
    assert verdict is None or (verdict.code < 0 and verdict.message)


# ── there and back ───────────────────────────────────────────────────────────────────────────────────────────────


@patiently
@given(request_ids, st.text(), objects, st.integers(-(2**31), 2**31), st.booleans())
def test_what_is_encoded_is_one_line_and_reads_the_same(
    identity: int | str, text: str, body: Json, code: int, raw: bool
) -> None:
    sent: Any = msgspec.Raw(json.dumps(body, indent=2).encode()) if raw else body
    lines = [
        encode_request(identity, text, sent),
        encode_notification(text, sent),
        encode_result(identity, sent),
        encode_error(identity, RpcError(code, text, body)),
    ]
    framed = LineDecoder(10**9).feed(b"\n".join(lines) + b"\n")
    assert framed == lines
    [request, notification, result, error] = [message for line in lines for message in parse(line)]
    assert isinstance(request, Request)
    assert (request.id, request.method, read(request.params)) == (identity, text, body)
    assert isinstance(notification, Notification)
    assert (notification.method, read(notification.params)) == (text, body)
    assert isinstance(result, Response)
    assert result.result is not None
    assert (result.id, read(result.result)) == (identity, body)
    assert error == Response(identity, error=RpcError(code, text, body))


@patiently
@given(st.text() | st.integers() | st.booleans() | st.sampled_from(["=?base64?x?=", "=?base64?=", " x", "x\t", "\r\n"]))
def test_header_values_survive_the_trip_and_carry_nothing_but_visible_ascii(value: str | int | bool) -> None:
    encoded = encode_value(value)
    assert all(" " <= each <= "~" or each == "\t" for each in encoded)
    assert encoded
    assert encoded == encoded.strip()
    spelled = str(value).lower() if isinstance(value, bool) else str(value)
    assert decode_value(encoded) == spelled


arguments = st.fixed_dictionaries(
    {},
    optional={
        "a": st.none() | st.text(),
        "b": st.integers(),
        "c": st.fixed_dictionaries({}, optional={"d": st.booleans()}),
    },
)
SCHEMA = {
    "properties": {
        "a": {"type": "string", "x-mcp-header": "A"},
        "b": {"type": "integer", "x-mcp-header": "B"},
        "c": {"properties": {"d": {"type": "boolean", "x-mcp-header": "D"}}},
    }
}


@patiently
@given(st.text(), arguments, arguments)
def test_headers_made_from_a_body_fit_that_body_and_no_other(name: str, given_: Json, other: Json) -> None:
    def present(values: Json) -> Json:
        flat = {**values, **values.get("c", {})}
        return {key: flat[key] for key in ("a", "b", "d") if flat.get(key) is not None}

    params = {"name": name, "arguments": given_, "_meta": {META_VERSION: "2026-07-28", META_CAPABILITIES: {}}}
    headers = request_headers("2026-07-28", "tools/call", params, mirrored_arguments(SCHEMA)).items()
    assert check_headers(headers, encode_request(1, "tools/call", params), schema=SCHEMA) is None
    assert (check_mirrored(headers, other, SCHEMA) is None) == (present(given_) == present(other))


# ── whose answer is it ───────────────────────────────────────────────────────────────────────────────────────────

answers = st.integers(-2, 12) | st.sampled_from(["1", 1.0, 2.5, None, True])
actions = st.lists(
    st.just("ask") | st.tuples(st.just("forget"), st.integers(0, 12)) | st.lists(answers, max_size=4), max_size=40
)


@patiently
@given(actions)
def test_an_answer_reaches_only_who_asked_and_only_once(script: list[Any]) -> None:
    client = ClientSide("c", "1")
    waiting: set[int] = set()
    for action in script:
        if action == "ask":
            waiting.add(client.request("m", {})[0])
        elif isinstance(action, tuple):
            client.forget(action[1])
            waiting.discard(action[1])
        else:
            batch = [{"jsonrpc": "2.0", "id": each, "result": {}} for each in action]
            wanted = {each for each in action if not isinstance(each, bool | str) and each in waiting}
            delivered = _delivered(client, batch)
            assert sorted(delivered) == sorted(wanted)
            waiting -= wanted


def _delivered(client: ClientSide, batch: list[Json]) -> list[int]:
    try:
        messages = client.receive(msgspec.json.encode(batch))
    except NotJsonRpc:
        return []
    return [each.id for each in messages if isinstance(each, Response) and isinstance(each.id, int)]


@patiently
@given(st.lists(st.tuples(st.sampled_from(["ask", "cancel", "answer", "progress"]), st.integers(0, 3)), max_size=40))
def test_a_server_answers_each_open_request_once_and_a_cancelled_one_never(script: list[tuple[str, int]]) -> None:
    server = ServerSide("s", "1", capabilities={})
    server.receive(encode_request("hello", "initialize", {"protocolVersion": "2025-11-25"}))
    latest: dict[int, Asked] = {}
    open_: set[int] = set()
    for step, (action, identity) in enumerate(script):
        if action == "ask":
            [event] = server.receive(encode_request(identity, "tools/call", {"_meta": {"progressToken": identity}}))
            assert isinstance(event, Answer if identity in open_ else Asked)
            if isinstance(event, Asked):
                latest[identity] = event
                open_.add(identity)
        elif action == "cancel":
            told = server.receive(encode_notification("notifications/cancelled", {"requestId": identity}))
            assert bool(told) == (identity in open_)
            open_.discard(identity)
        elif identity in latest:
            sent = (
                server.progress(latest[identity], step) if action == "progress" else server.result(latest[identity], {})
            )
            assert (sent is not None) == (identity in open_)
            if action == "answer":
                open_.discard(identity)


# ── servers that never agree, and lists that never end ───────────────────────────────────────────────────────────

version_lists = st.lists(
    st.sampled_from(["2026-07-28", "2025-11-25", "2024-11-05", "2099-01-01", ""]) | plain_json, max_size=3
)
reply_objects = st.fixed_dictionaries(
    {},
    optional={
        "supportedVersions": version_lists | plain_json,
        "protocolVersion": st.sampled_from(["2026-07-28", "2025-06-18", "x"]) | plain_json,
        "capabilities": plain_json,
        "serverInfo": plain_json,
        "instructions": plain_json,
        "_meta": plain_json,
    },
)
errors = st.builds(
    RpcError,
    st.sampled_from([UNSUPPORTED_VERSION, -32601, -32602, 0]),
    st.text(),
    st.fixed_dictionaries({"supported": version_lists}) | plain_json,
)


@patiently
@given(st.data(), st.sampled_from(["", "2026-07-28", "2025-11-25", "nonsense"]))
def test_agreeing_on_a_version_comes_to_an_end_whatever_the_server_says(data: st.DataObject, known: str) -> None:
    replies: st.SearchStrategy[Reply] = reply_objects | errors | st.just(NoAnswer())
    outcome = outcome_of(ClientSide("c", "1").negotiate({}, known), lambda: data.draw(replies))
    if isinstance(outcome, Agreement):
        assert era_of(outcome.version) is outcome.era
    else:
        assert str(outcome)


def outcome_of(steps: Generator[Step, Reply, Agreement], reply: Callable[[], Reply]) -> Agreement | CannotAgree:
    """Where a negotiation leads; it fails the test if that takes more than a dozen replies."""
    try:
        step = next(steps)
        for _ in range(12):
            step = steps.send({} if step.is_notification else reply())
    except StopIteration as done:
        agreement: Agreement = done.value
        return agreement
    except CannotAgree as reason:
        return reason
    raise AssertionError("it still asks after a dozen replies")


pages = st.fixed_dictionaries(
    {},
    optional={
        "tools": st.lists(st.integers(), max_size=5) | plain_json,
        "nextCursor": st.sampled_from(["", "a", "b"]) | plain_json,
    },
)


@patiently
@given(st.data(), st.integers(1, 5), st.integers(1, 8))
def test_a_list_comes_to_an_end_within_its_limits(data: st.DataObject, max_pages: int, max_entries: int) -> None:
    collected = Pages("tools", max_pages=max_pages, max_entries=max_entries)
    taken, cursor = 0, ""
    while True:
        following = collected.add(data.draw(pages))
        taken += 1
        if following is None:
            break
        cursor = following
        assert isinstance(cursor, str)
    assert taken <= max_pages
    assert len(collected.entries) <= max_entries
