"""On which terms a request is served: the two eras, their versions, and servers that speak only one."""

from __future__ import annotations

import pytest

from pegboard.types import Json
from pegboard.wire.asked import Handshake, missing_capability
from pegboard.wire.messages import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    UNSUPPORTED_VERSION,
    encode_request,
    read,
)
from pegboard.wire.meta import META_CAPABILITIES, META_SERVER, META_VERSION
from pegboard.wire.versions import HANDSHAKE_VERSIONS, SPOKEN_VERSIONS, STATELESS_VERSIONS, Era
from tests.unit.wire.speaking import (
    CAPABILITIES,
    CLIENT,
    answered,
    asked,
    greeted,
    initialize,
    modern,
    refused,
    side,
)

# ── the handshake era ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
def test_initialize_is_answered_in_the_version_the_client_asked_for(version: str) -> None:
    server = side(instructions="Be kind.")
    assert answered(server, initialize(version))["result"] == {
        "protocolVersion": version,
        "capabilities": CAPABILITIES,
        "serverInfo": {"name": "board", "version": "1.0"},
        "instructions": "Be kind.",
    }
    assert server.handshake == Handshake(version, {"elicitation": {}}, CLIENT)


@pytest.mark.parametrize("version", ["1999-01-01", "2099-01-01", "2026-07-28", ""])
def test_initialize_in_a_version_we_cannot_greet_in_is_answered_in_the_newest_we_can(version: str) -> None:
    assert answered(side(), initialize(version))["result"]["protocolVersion"] == "2025-11-25"


def test_initialize_without_a_version_is_refused() -> None:
    assert refused(side(), initialize(5)) == (0, INVALID_PARAMS)


def test_a_request_after_the_handshake_is_handed_on_with_what_it_settled() -> None:
    request = asked(
        greeted("2025-06-18"), encode_request("a", "tools/call", {"name": "t", "_meta": {"progressToken": 4}})
    )
    assert (request.id, request.method, request.params["name"]) == ("a", "tools/call", "t")
    assert (request.version, request.era) == ("2025-06-18", Era.HANDSHAKE)
    assert (request.capabilities, request.client, request.progress_token) == ({"elicitation": {}}, CLIENT, 4)
    assert read(request.raw) == request.params


def test_ping_is_answered_before_and_after_the_handshake() -> None:
    ping = encode_request(5, "ping", {"_meta": {"progressToken": 1}})
    assert answered(side(), ping)["result"] == {}
    assert answered(greeted(), ping)["result"] == {}


def test_any_other_request_before_the_handshake_is_refused() -> None:
    assert refused(side(), encode_request(5, "tools/list", {})) == (5, INVALID_PARAMS)


@pytest.mark.parametrize("method", ["server/discover", "subscriptions/listen"])
def test_what_only_the_stateless_era_has_does_not_exist_after_a_handshake(method: str) -> None:
    assert refused(greeted(), encode_request(5, method, {})) == (5, METHOD_NOT_FOUND)


def test_a_second_handshake_replaces_the_first() -> None:
    server = greeted("2025-11-25")
    answered(server, initialize("2024-11-05"))
    assert asked(server, encode_request(1, "tools/list")).version == "2024-11-05"


# ── the stateless era ────────────────────────────────────────────────────────────────────────────────────────────


def test_discover_says_who_we_are_and_what_we_speak() -> None:
    result = answered(side(instructions="Be kind."), modern("server/discover"))["result"]
    assert result.pop("ttlMs") >= 0
    assert result == {
        "resultType": "complete",
        "supportedVersions": list(SPOKEN_VERSIONS),
        "capabilities": CAPABILITIES,
        "instructions": "Be kind.",
        "cacheScope": "public",
        "_meta": {META_SERVER: {"name": "board", "version": "1.0"}},
    }


def test_a_stateless_request_brings_its_own_terms() -> None:
    request = asked(side(), modern("tools/call", "r1", name="t", meta={"progressToken": "p"}))
    assert (request.version, request.era) == ("2026-07-28", Era.STATELESS)
    assert (request.capabilities, request.client, request.progress_token) == ({"elicitation": {}}, CLIENT, "p")


def test_nothing_is_carried_over_from_one_stateless_request_to_the_next() -> None:
    server = side()
    asked(server, modern("tools/list", 1))
    bare = {META_VERSION: "2026-07-28", META_CAPABILITIES: {}}
    second = asked(server, encode_request(2, "tools/list", {"_meta": bare}))
    assert (second.capabilities, second.client, second.progress_token) == ({}, {}, None)
    assert refused(server, encode_request(3, "tools/list", {})) == (3, INVALID_PARAMS)


@pytest.mark.parametrize(
    "meta",
    [
        {META_VERSION: "2026-07-28"},
        {META_CAPABILITIES: {}},
        {META_VERSION: 5, META_CAPABILITIES: {}},
        {META_VERSION: "2026-07-28", META_CAPABILITIES: "all"},
    ],
)
def test_a_stateless_request_without_what_it_must_say_is_refused(meta: Json) -> None:
    assert refused(greeted(), encode_request(1, "tools/list", {"_meta": meta})) == (1, INVALID_PARAMS)


def test_a_version_we_do_not_speak_is_refused_with_those_we_do() -> None:
    error = answered(side(), modern("tools/list", version="2099-01-01"))["error"]
    assert error["code"] == UNSUPPORTED_VERSION
    assert error["data"] == {"supported": list(SPOKEN_VERSIONS), "requested": "2099-01-01"}


def test_a_handshake_version_without_a_handshake_is_not_offered_again() -> None:
    error = answered(side(), modern("tools/list", version="2025-11-25"))["error"]
    assert error["data"] == {"supported": ["2026-07-28"], "requested": "2025-11-25"}


@pytest.mark.parametrize("method", ["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"])
def test_what_the_stateless_era_gave_up_does_not_exist_in_it(method: str) -> None:
    assert refused(greeted(), modern(method)) == (1, METHOD_NOT_FOUND)


def test_both_eras_may_be_spoken_on_one_connection() -> None:
    server = greeted("2025-06-18")
    assert asked(server, modern("tools/list", 1)).era is Era.STATELESS
    assert asked(server, encode_request(2, "tools/list")).era is Era.HANDSHAKE


# ── servers of one era ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_stateless_server_refuses_the_handshake_and_names_what_it_speaks() -> None:
    server = side(versions=STATELESS_VERSIONS)
    error = answered(server, initialize())["error"]
    assert (error["code"], error["data"]["supported"]) == (UNSUPPORTED_VERSION, ["2026-07-28"])
    assert refused(server, encode_request(1, "ping")) == (1, INVALID_PARAMS)


def test_a_handshake_server_does_not_discover() -> None:
    server = side(versions=HANDSHAKE_VERSIONS)
    assert refused(server, modern("server/discover")) == (1, INVALID_PARAMS)
    answered(server, initialize())
    assert refused(server, modern("server/discover")) == (1, METHOD_NOT_FOUND)


@pytest.mark.parametrize("versions", [(), ("2099-01-01",)])
def test_a_server_must_speak_something_that_we_know(versions: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="versions must be some of"):
        side(versions=versions)


# ── what a request needs of its client ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("required", "missing"),
    [
        ({}, {}),
        ({"elicitation": {}}, {}),
        ({"sampling": {}}, {"sampling": {}}),
        ({"elicitation": {"url": {}}, "sampling": {}}, {"elicitation": {"url": {}}, "sampling": {}}),
    ],
)
def test_capabilities_that_a_client_lacks_are_named(required: Json, missing: Json) -> None:
    error = missing_capability(asked(side(), modern("tools/call")), required)
    assert (error.data if error else {"requiredCapabilities": {}}) == {"requiredCapabilities": missing}
