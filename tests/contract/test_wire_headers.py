"""Headers, as the official SDK reads and writes them: the same values, the same schemas accepted."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.shared.inbound import (
    classify_inbound_request,
    decode_header_value,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    validate_mcp_param_headers,
    x_mcp_header_map,
)

from pegboard.types import Json
from pegboard.wire.http import decode_value, encode_value, mirrored_arguments, request_headers
from pegboard.wire.http_server import check_headers, check_mirrored
from pegboard.wire.messages import RpcError, encode_request
from pegboard.wire.meta import META_CAPABILITIES, META_VERSION

patiently = settings(deadline=None)
values = st.text() | st.sampled_from(["=?base64?x?=", "=?base64?=", " x", "x\t", "a\tb", "\r\n", ""])


@patiently
@given(values)
def test_each_side_reads_what_the_other_encodes(text: str) -> None:
    assert decode_header_value(encode_value(text)) == text
    assert decode_value(encode_header_value(text)) == text


marks: st.SearchStrategy[Any] = st.sampled_from(["Region", "region", "Count", "", "a b", "X-\u00e9", 5, None])
leaves: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "boolean", "number", "object"]),
        "x-mcp-header": marks,
    },
)
plain_leaves = st.fixed_dictionaries({"type": st.sampled_from(["string", "integer", "boolean"])})
schemas: st.SearchStrategy[Any] = st.recursive(
    leaves | plain_leaves | plain_leaves,
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(
                st.sampled_from(["a", "b", "items", "enum", "x-mcp-header"]), inner, max_size=3
            ),
            "items": inner,
            "anyOf": st.lists(inner, max_size=2),
            "$defs": st.dictionaries(st.sampled_from(["a", "x-mcp-header"]), inner, max_size=1),
            "default": inner,
            "not": inner,
        },
    ),
    max_leaves=6,
)


def ours(schema: Any) -> dict[tuple[str, ...], str] | None:
    try:
        return dict(mirrored_arguments(schema))
    except ValueError:
        return None


@patiently
@given(schemas)
def test_both_sides_accept_and_reject_the_same_schemas(schema: Any) -> None:
    rejected = find_invalid_x_mcp_header(schema) is not None
    assert ours(schema) == (None if rejected else dict(x_mcp_header_map(schema)))


SCHEMA: Json = {
    "properties": {
        "a": {"type": "string", "x-mcp-header": "A"},
        "b": {"type": "integer", "x-mcp-header": "B"},
        "c": {"properties": {"d": {"type": "boolean", "x-mcp-header": "D"}}},
    }
}
arguments = st.fixed_dictionaries(
    {},
    optional={
        "a": st.none() | values,
        "b": st.none() | st.integers(-(2**53), 2**53) | st.integers(-99, 99).map(float),
        "c": st.fixed_dictionaries({}, optional={"d": st.booleans()}),
    },
)


@patiently
@given(arguments, arguments)
def test_each_side_believes_the_headers_of_the_other_and_only_if_they_fit(sent: Json, served: Json) -> None:
    ours_sent = request_headers("2026-07-28", "tools/call", {"arguments": sent}, mirrored_arguments(SCHEMA))
    theirs_sent = mcp_param_headers(x_mcp_header_map(SCHEMA), sent)
    assert validate_mcp_param_headers(SCHEMA, sent, ours_sent) is None
    assert check_mirrored(theirs_sent.items(), sent, SCHEMA) is None
    theirs = validate_mcp_param_headers(SCHEMA, served, ours_sent) is None
    assert (check_mirrored(ours_sent.items(), served, SCHEMA) is None) == theirs


versions = st.sampled_from(["2026-07-28", "2025-11-25", "2099-01-01", ""])
methods = st.sampled_from(["tools/call", "tools/list", "resources/read"])
names = st.none() | st.sampled_from(["t", "=?base64?dA==?=", "=?base64?w7w=?=", "=?base64?%?="])


@patiently
@given(st.none() | versions, st.none() | methods, names, versions, methods, st.sampled_from(["t", "ü"]))
def test_both_sides_judge_the_same_requests_by_their_headers(
    version: str | None, method: str | None, name: str | None, body_version: str, body_method: str, body_name: str
) -> None:
    stated = {"mcp-protocol-version": version, "mcp-method": method, "mcp-name": name}
    headers = {key: value for key, value in stated.items() if value is not None}
    meta = {META_VERSION: body_version, META_CAPABILITIES: {}}
    params = {"name": body_name, "uri": body_name, "_meta": meta}
    theirs = classify_inbound_request({"method": body_method, "params": params}, headers=headers)
    verdict = check_headers(headers.items(), encode_request(1, body_method, params))
    # Whether the version is spoken is not for headers to say; theirs asks that last, ours leaves it to the server.
    assert code_of(verdict) == (-32020 if getattr(theirs, "code", 0) == -32020 else None)


def code_of(error: RpcError | None) -> int | None:
    return error.code if error else None
