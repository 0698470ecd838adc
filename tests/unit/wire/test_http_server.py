"""Headers must say what the body says."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard.types import Json
from pegboard.wire.http import mirrored_arguments, request_headers
from pegboard.wire.http_server import check_headers, check_mirrored, status_of
from pegboard.wire.messages import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    RpcError,
    encode_notification,
    encode_request,
)
from pegboard.wire.meta import META_CAPABILITIES, META_VERSION
from pegboard.wire.versions import Era

MODERN = "2026-07-28"
SCHEMA: Json = {
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "deep": {"properties": {"flag": {"type": "boolean", "x-mcp-header": "Flag"}}},
    }
}


def call(arguments: Any = None, version: str = MODERN, name: Any = "tool") -> bytes:
    meta = {META_VERSION: version, META_CAPABILITIES: {}}
    return encode_request(1, "tools/call", {"name": name, "arguments": arguments or {}, "_meta": meta})


def headers(**changed: str | None) -> list[tuple[str, str]]:
    lines: dict[str, str | None] = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "tool"}
    lines |= {name.replace("_", "-"): value for name, value in changed.items()}
    return [(name, value) for name, value in lines.items() if value is not None]


def code_of(error: RpcError | None) -> int | None:
    return error.code if error else None


def test_headers_that_agree_with_the_body_pass() -> None:
    assert check_headers(headers(), call()) is None


def test_header_names_are_compared_without_case() -> None:
    assert check_headers([(name.title(), value) for name, value in headers()], call()) is None


def test_what_our_own_client_sends_passes() -> None:
    arguments = {"region": "Zürich\n", "count": 7, "deep": {"flag": False}}
    sent = request_headers(
        MODERN, "tools/call", {"name": "ein Täst", "arguments": arguments}, mirrored_arguments(SCHEMA)
    )
    assert check_headers(sent.items(), call(arguments, name="ein Täst"), schema=SCHEMA) is None


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"mcp_protocol_version": None}, "MCP-Protocol-Version is missing"),
        ({"mcp_method": None}, "Mcp-Method is missing"),
        ({"mcp_name": None}, "Mcp-Name is missing"),
        ({"mcp_protocol_version": "2025-11-25"}, "MCP-Protocol-Version says '2025-11-25', the body '2026-07-28'"),
        ({"mcp_method": "tools/list"}, "Mcp-Method says 'tools/list', the body 'tools/call'"),
        ({"mcp_method": "TOOLS/CALL"}, "Mcp-Method says"),
        ({"mcp_name": "other"}, "Mcp-Name says 'other', the body 'tool'"),
        ({"mcp_name": "=?base64?%%%?="}, "Mcp-Name is not well-formed Base64"),
        ({"mcp_name": "to\x00ol"}, "characters that no header may have"),
        ({"mcp_method": "tools/call\x7f"}, "characters that no header may have"),
    ],
)
def test_a_missing_or_different_header_is_refused(changed: dict[str, str | None], words: str) -> None:
    error = check_headers(headers(**changed), call())
    assert error is not None
    assert error.code == HEADER_MISMATCH
    assert words in error.message


def test_a_header_that_comes_twice_is_refused_even_if_both_agree() -> None:
    error = check_headers([*headers(), ("Mcp-Name", "tool")], call())
    assert error is not None
    assert (error.code, "more than once" in error.message) == (HEADER_MISMATCH, True)


def test_an_encoded_name_is_decoded_before_it_is_compared() -> None:
    assert check_headers(headers(mcp_name="=?base64?dG9vbA==?="), call()) is None


def test_methods_without_a_target_need_no_name() -> None:
    meta = {META_VERSION: MODERN, META_CAPABILITIES: {}}
    body = encode_request(1, "tools/list", {"_meta": meta})
    assert check_headers(headers(mcp_method="tools/list", mcp_name=None), body) is None


def test_a_version_that_we_do_not_speak_is_not_our_question_if_both_say_it() -> None:
    assert check_headers(headers(mcp_protocol_version="2099-01-01"), call(version="2099-01-01")) is None


@pytest.mark.parametrize("version", [None, "2024-11-05", "2025-11-25"])
def test_a_request_of_the_handshake_era_needs_no_more_headers(version: str | None) -> None:
    lines = [] if version is None else [("MCP-Protocol-Version", version)]
    assert check_headers(lines, encode_request(1, "tools/call", {"name": "t"})) is None


@pytest.mark.parametrize(("version", "code"), [(MODERN, INVALID_PARAMS), ("2099-01-01", UNSUPPORTED_VERSION)])
@pytest.mark.parametrize("meta", [{}, {META_CAPABILITIES: {}}])
def test_a_stateless_header_over_a_body_that_does_not_say_so_is_refused(version: str, code: int, meta: Json) -> None:
    body = encode_request(1, "tools/call", {"name": "t", "_meta": meta})
    assert code_of(check_headers([("MCP-Protocol-Version", version)], body)) == code


@pytest.mark.parametrize(
    "body",
    [
        b"not json",
        b"[]",
        encode_notification("notifications/cancelled", {"requestId": 1}),
        encode_request(1, "initialize", {"protocolVersion": "2025-11-25"}),
        b'{"id":1,"result":{}}',
        b'{"id":1,"method":"m","params":[]}',
        b'{"id":1,"method":"m","params":{"n":' + b"9" * 5000 + b"}}",
    ],
)
def test_what_is_not_one_plain_request_is_left_for_the_server_to_answer(body: bytes) -> None:
    assert check_headers([("MCP-Protocol-Version", MODERN)], body) is None


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"region": "eu"}, [("Mcp-Param-Region", "eu")]),
        ({"region": "eu"}, [("mcp-param-region", "=?base64?ZXU=?=")]),
        ({"count": 42}, [("Mcp-Param-Count", "42.0")]),
        ({"count": 42.0}, [("Mcp-Param-Count", "42")]),
        ({"count": 2**60 + 1}, [("Mcp-Param-Count", str(2**60 + 1))]),
        ({"deep": {"flag": True}}, [("Mcp-Param-Flag", "true")]),
        ({"region": None}, []),
        ({}, [("Mcp-Param-Unknown", "x")]),
        (None, []),
    ],
)
def test_mirrored_arguments_that_agree_pass(arguments: Any, lines: list[tuple[str, str]]) -> None:
    assert check_mirrored(lines, arguments, SCHEMA) is None


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"region": "eu"}, []),
        ({"region": "eu"}, [("Mcp-Param-Region", "us")]),
        ({"region": "eu"}, [("Mcp-Param-Region", "eu"), ("mcp-param-region", "eu")]),
        ({"region": "eu"}, [("Mcp-Param-Region", "=?base64?e?=")]),
        ({"region": "eu"}, [("Mcp-Param-Region", "eu\x01")]),
        ({}, [("Mcp-Param-Region", "eu")]),
        ({"region": None}, [("Mcp-Param-Region", "null")]),
        ({"count": 42}, [("Mcp-Param-Count", "42.5")]),
        ({"count": 42}, [("Mcp-Param-Count", "4.2e1")]),
        ({"count": 42}, [("Mcp-Param-Count", "٤٢")]),
        ({"count": 2**60 + 1}, [("Mcp-Param-Count", str(2**60))]),
        ({"deep": {"flag": True}}, [("Mcp-Param-Flag", "True")]),
        ({"deep": {"flag": True}}, [("Mcp-Param-Flag", "1")]),
    ],
)
def test_mirrored_arguments_that_disagree_are_refused(arguments: Any, lines: list[tuple[str, str]]) -> None:
    assert code_of(check_mirrored(lines, arguments, SCHEMA)) == HEADER_MISMATCH


def test_a_schema_that_breaks_the_rules_checks_nothing() -> None:
    broken = {"properties": {"a": {"type": "number", "x-mcp-header": "A"}}}
    assert check_mirrored([("Mcp-Param-A", "1")], {"a": 2}, broken) is None


def test_mirrored_arguments_are_checked_with_the_rest_when_the_schema_is_known() -> None:
    body = call({"region": "eu"})
    assert check_headers(headers(), body) is None
    assert code_of(check_headers(headers(), body, schema=SCHEMA)) == HEADER_MISMATCH
    assert check_headers(headers(mcp_param_region="eu"), body, schema=SCHEMA) is None


@pytest.mark.parametrize(
    ("code", "stateless", "handshake"),
    [
        (None, 200, 200),
        (PARSE_ERROR, 400, 400),
        (INVALID_REQUEST, 400, 400),
        (INVALID_PARAMS, 400, 200),
        (HEADER_MISMATCH, 400, 200),
        (MISSING_CAPABILITY, 400, 200),
        (UNSUPPORTED_VERSION, 400, 200),
        (METHOD_NOT_FOUND, 404, 200),
        (INTERNAL_ERROR, 200, 200),
        (1234, 200, 200),
    ],
)
def test_every_error_has_its_http_status(code: int | None, stateless: int, handshake: int) -> None:
    error = None if code is None else RpcError(code, "m")
    assert status_of(error, Era.STATELESS) == stateless
    assert status_of(error, Era.HANDSHAKE) == handshake
    assert status_of(error, None) == stateless
