"""The client's half: numbering, matching answers, agreeing on a version."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from pegboard.types import Json
from pegboard.wire.client import Agreement, CannotAgree, ClientSide, NoAnswer, Reply, Step
from pegboard.wire.messages import (
    METHOD_NOT_FOUND,
    UNSUPPORTED_VERSION,
    Notification,
    NotJsonRpc,
    Request,
    Response,
    RpcError,
    encode_result,
    read,
)
from pegboard.wire.meta import META_CAPABILITIES, META_CLIENT, META_SERVER, META_VERSION
from pegboard.wire.versions import Era

DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28", "2025-11-25"],
    "capabilities": {"tools": {"listChanged": True}},
    "instructions": "Be kind.",
    "_meta": {META_SERVER: {"name": "modern", "version": "2"}},
}
INITIALIZED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "legacy", "version": "1"},
}
NO_SUCH_METHOD = RpcError(METHOD_NOT_FOUND, "Method not found")


def unsupported(*versions: object) -> RpcError:
    return RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", {"supported": list(versions)})


def side() -> ClientSide:
    return ClientSide("pegboard", "1.0")


def converse(steps: Generator[Step, Reply, Agreement], *replies: Reply) -> tuple[Agreement, list[Step]]:
    """Plays the server's part; the agreement, and what was sent on the way there."""
    sent = [next(steps)]
    waiting = list(replies)
    while True:
        try:
            sent.append(steps.send({} if sent[-1].is_notification else waiting.pop(0)))
        except StopIteration as done:
            assert not waiting, "the negotiation ended before it heard everything"
            return done.value, sent


def methods(steps: list[Step]) -> list[str]:
    return [step.method for step in steps]


# ── requests and answers ─────────────────────────────────────────────────────────────────────────────────────────


def test_every_request_has_an_id_of_its_own() -> None:
    client = side()
    expected = client.next_id
    ids = [client.request("m", {})[0] for _ in range(3)]
    assert ids == [expected, expected + 1, expected + 2]


def test_before_an_agreement_nothing_is_added_to_the_params() -> None:
    _, params, data = side().request("m", {"x": 1})
    assert params == {"x": 1}
    assert read(data)["params"] == {"x": 1}


def test_a_stateless_request_says_who_asks_and_what_it_can_do() -> None:
    client = side()
    client.agreement = Agreement(version="2026-07-28", capabilities={})
    original: Json = {"x": 1, "_meta": {"progressToken": 9}}
    _, params, data = client.request("m", original, capabilities={"elicitation": {}})
    assert read(data)["params"] == params
    assert params["x"] == 1
    assert params["_meta"] == {
        "progressToken": 9,
        META_VERSION: "2026-07-28",
        META_CLIENT: {"name": "pegboard", "version": "1.0"},
        META_CAPABILITIES: {"elicitation": {}},
    }
    assert original == {"x": 1, "_meta": {"progressToken": 9}}


def test_an_answer_is_delivered_once() -> None:
    client = side()
    identity, _, _ = client.request("m", {})
    answer = encode_result(identity, {"ok": True})
    [message] = client.receive(answer)
    assert isinstance(message, Response)
    assert client.receive(answer) == []


@pytest.mark.parametrize("identity", [2, "1", 0, -1, 1.5])
def test_an_answer_to_nothing_we_asked_is_ignored(identity: object) -> None:
    client = side()
    client.request("m", {})
    assert client.receive(b'{"id":%s,"result":{}}' % (str(identity).encode() if identity != "1" else b'"1"')) == []


def test_an_answer_that_nobody_waits_for_any_more_is_ignored() -> None:
    client = side()
    identity, _, _ = client.request("m", {})
    client.forget(identity)
    assert client.receive(encode_result(identity, {})) == []


def test_requests_and_notifications_of_the_server_are_handed_on() -> None:
    frame = b'[{"id":"s1","method":"ping"},{"method":"notifications/tools/list_changed"}]'
    assert side().receive(frame) == [Request("s1", "ping"), Notification("notifications/tools/list_changed")]


def test_garbage_is_named_as_such() -> None:
    with pytest.raises(NotJsonRpc):
        side().receive(b"Server listening on stdio")


def test_a_notification_without_params_has_none() -> None:
    assert read(side().notification("n", {})) == {"jsonrpc": "2.0", "method": "n"}
    assert read(side().notification("n", {"a": 1}))["params"] == {"a": 1}


# ── agreeing on a version ────────────────────────────────────────────────────────────────────────────────────────


def test_a_stateless_server_is_agreed_with_after_one_question() -> None:
    agreement, sent = converse(side().negotiate({}), DISCOVERED)
    assert sent == [Step("server/discover", {}, "2026-07-28", is_probe=True)]
    assert agreement == Agreement(
        version="2026-07-28",
        capabilities={"tools": {"listChanged": True}},
        server_name="modern",
        server_version="2",
        instructions="Be kind.",
    )
    assert agreement.era is Era.STATELESS


@pytest.mark.parametrize(
    "reply",
    [
        NO_SUCH_METHOD,
        RpcError(-32602, "Invalid request parameters"),
        RpcError(0, ""),
        NoAnswer(),
        unsupported("2025-11-25", "2024-11-05"),
        RpcError(UNSUPPORTED_VERSION, "no data"),
        RpcError(UNSUPPORTED_VERSION, "odd data", {"supported": "2026-07-28"}),
        {},
        {"supportedVersions": ["2025-11-25"]},
        {"supportedVersions": "2026-07-28"},
    ],
    ids=repr,
)
def test_a_server_that_does_not_discover_is_greeted_with_the_handshake(reply: Reply) -> None:
    agreement, sent = converse(side().negotiate({"roots": {}}), reply, INITIALIZED)
    assert methods(sent) == ["server/discover", "initialize", "notifications/initialized"]
    assert sent[1].params == {
        "protocolVersion": "2025-11-25",
        "capabilities": {"roots": {}},
        "clientInfo": {"name": "pegboard", "version": "1.0"},
    }
    assert not sent[1].is_probe
    assert (sent[2].is_notification, sent[2].version) == (True, "2025-06-18")
    assert (agreement.version, agreement.server_name, agreement.era) == ("2025-06-18", "legacy", Era.HANDSHAKE)


def test_a_server_that_advertises_what_it_just_refused_is_asked_once_more() -> None:
    agreement, sent = converse(side().negotiate({}), unsupported("2026-07-28"), DISCOVERED)
    assert methods(sent) == ["server/discover", "server/discover"]
    assert agreement.version == "2026-07-28"
    agreement, sent = converse(side().negotiate({}), *[unsupported("2026-07-28")] * 2, INITIALIZED)
    assert methods(sent)[:3] == ["server/discover", "server/discover", "initialize"]
    assert agreement.version == "2025-06-18"


def test_a_server_known_to_shake_hands_is_not_probed() -> None:
    _, sent = converse(side().negotiate({}, "2025-11-25"), INITIALIZED)
    assert methods(sent) == ["initialize", "notifications/initialized"]


def test_a_server_that_no_longer_shakes_hands_is_asked_what_it_speaks() -> None:
    agreement, sent = converse(side().negotiate({}, "2025-11-25"), unsupported("2026-07-28"), DISCOVERED)
    assert methods(sent) == ["initialize", "server/discover"]
    assert agreement.version == "2026-07-28"


def test_a_server_that_refuses_the_handshake_it_used_to_know_is_probed() -> None:
    agreement, sent = converse(side().negotiate({}, "2025-11-25"), NO_SUCH_METHOD, DISCOVERED)
    assert methods(sent) == ["initialize", "server/discover"]
    assert agreement.version == "2026-07-28"


def test_a_stateless_server_too_slow_for_the_probe_is_found_in_the_end() -> None:
    agreement, sent = converse(side().negotiate({}), NoAnswer(), unsupported("2026-07-28"), DISCOVERED)
    assert methods(sent) == ["server/discover", "initialize", "server/discover"]
    assert agreement.version == "2026-07-28"


def test_a_server_of_the_future_is_named_with_what_it_speaks() -> None:
    with pytest.raises(CannotAgree, match="only 2099-01-01, 2098-01-01"):
        converse(side().negotiate({}), unsupported("2099-01-01", "2098-01-01", 7))


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (RpcError(-32603, "out of order"), r"refused `initialize`: out of order \(JSON-RPC error -32603\)"),
        (NoAnswer(), "did not answer `initialize`"),
        ({"protocolVersion": "1999-01-01"}, "protocol version '1999-01-01'"),
        ({"protocolVersion": "2026-07-28"}, "protocol version '2026-07-28'"),
        ({}, "protocol version None"),
    ],
)
def test_a_handshake_that_fails_says_why(reply: Reply, words: str) -> None:
    with pytest.raises(CannotAgree, match=words):
        converse(side().negotiate({}), NO_SUCH_METHOD, reply)


def test_a_server_that_describes_itself_badly_is_agreed_with_all_the_same() -> None:
    odd = {"protocolVersion": "2024-11-05", "capabilities": [], "serverInfo": "me", "instructions": 5}
    agreement, _ = converse(side().negotiate({}), NO_SUCH_METHOD, odd)
    assert agreement == Agreement(version="2024-11-05", capabilities={})
