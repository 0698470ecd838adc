"""Where requests go: by the configuration alone, whatever they say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.proxy.routes import BUILT_IN, Address, NoRoute, Route, address_of, route, wire_of

ADDRESSES = {
    **{name: address_of(url) for name, url in BUILT_IN.items()},
    "local": address_of("http://127.0.0.1:8000/v1/"),
    "deep": address_of("https://gate.example/llm/anthropic"),
}


def routed(path: bytes, method: str = "POST", query: bytes = b"", *headers: bytes) -> Route | NoRoute:
    return route(ADDRESSES, method, path, query, [(name, b"x") for name in headers])


@pytest.mark.parametrize(
    ("path", "upstream", "target", "wire"),
    [
        (b"/anthropic/v1/messages", "anthropic", b"/v1/messages", "messages"),
        (b"/anthropic/v1/messages/count_tokens", "anthropic", b"/v1/messages/count_tokens", "count_tokens"),
        (b"/anthropic/v1/messages/batches", "anthropic", b"/v1/messages/batches", None),
        (b"/openai/v1/chat/completions", "openai", b"/v1/chat/completions", "completions"),
        (b"/openai/v1/responses", "openai", b"/v1/responses", "responses"),
        (b"/openai/v1/responses/resp_1/cancel", "openai", b"/v1/responses/resp_1/cancel", None),
        (b"/local/messages", "local", b"/v1/messages", "messages"),
        (b"/local/chat/completions", "local", b"/v1/chat/completions", "completions"),
        (b"/deep/v1/messages", "deep", b"/llm/anthropic/v1/messages", "messages"),
        (b"/gemini/v1beta/models/x:generateContent", "gemini", b"/v1beta/models/x:generateContent", None),
        (b"/openai", "openai", b"/", None),
        (b"/openai/", "openai", b"/", None),
        (b"/openai//evil.example/v1/x", "openai", b"//evil.example/v1/x", None),
        (b"/openai/v1/files%2F..%2Fx", "openai", b"/v1/files%2F..%2Fx", None),
        (b"/v1/messages", "anthropic", b"/v1/messages", "messages"),
        (b"/v1/messages/batches", "anthropic", b"/v1/messages/batches", None),
        (b"/v1/messagesx", "openai", b"/v1/messagesx", None),
        (b"/v1/models", "openai", b"/v1/models", None),
        (b"/v1/responses", "openai", b"/v1/responses", "responses"),
    ],
)
def test_a_path_has_one_upstream_and_maybe_a_wire(path: bytes, upstream: str, target: bytes, wire: str | None) -> None:
    assert routed(path) == Route(upstream, target, wire)  # type: ignore[arg-type]


@pytest.mark.parametrize("header", [b"anthropic-version", b"X-Api-Key"])
def test_a_nameless_path_goes_where_its_headers_belong(header: bytes) -> None:
    assert routed(b"/v1/models", "GET", b"", header) == Route("anthropic", b"/v1/models", None)


def test_the_query_is_untouched() -> None:
    assert routed(b"/v1/messages", query=b"beta=true&x=%2F?&&") == Route(
        "anthropic", b"/v1/messages?beta=true&x=%2F?&&", "messages"
    )


def test_only_a_post_is_looked_into() -> None:
    assert routed(b"/v1/messages", "GET") == Route("anthropic", b"/v1/messages", None)


@pytest.mark.parametrize("path", [b"evil.example:443", b"/openai/v1/models"])
def test_nothing_is_connected_to(path: bytes) -> None:
    found = routed(path, "CONNECT")
    assert isinstance(found, NoRoute)
    assert found.status == 405


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (b"http://evil.example/v1/messages", 400),
        (b"*", 400),
        (b"", 400),
        (b"//evil.example/v1/messages", 404),
        (b"/%61nthropic/v1/messages", 404),
        (b"/openai%2f..%2fanthropic/v1", 404),
        (b"/nobody/v1/messages", 404),
        (b"/", 404),
        (b"/openai/../anthropic/v1/messages", 400),
        (b"/openai/v1/%2e%2E/x", 400),
        (b"/openai/v1/..", 400),
        (b"/openai/v1/..%2fx", 400),
        (b"/openai/v1/..\\x", 400),
        (b"/_pegboard/other", 404),
    ],
)
def test_a_path_that_goes_nowhere_is_refused(path: bytes, status: int) -> None:
    found = routed(path)
    assert isinstance(found, NoRoute)
    assert found.status == status


@given(st.binary(max_size=60).map(lambda tail: b"/openai" + tail) | st.binary(max_size=60))
def test_no_path_becomes_anything_but_a_path(path: bytes) -> None:
    found = routed(path)
    if isinstance(found, Route):
        assert found.target.startswith(b"/")
        assert b"\r" not in found.target
        assert b" " not in found.target
        assert found.upstream in ADDRESSES


def test_an_address_is_shown_without_its_secrets() -> None:
    address = address_of("https://user:secret@api.example:8443/base/?key=secret#x")
    assert address == Address("https", "api.example", 8443, b"/base")
    assert address.shown == "https://api.example:8443/base"
    assert address_of("http://[::1]:80/").authority == b"[::1]"


@pytest.mark.parametrize("url", ["", "api.example", "ftp://x", "https://", "http://x:99999", "https:///v1"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        address_of(url)


def test_a_wire_is_told_by_the_end_of_the_path() -> None:
    assert wire_of(b"/v1/messages") == "messages"
    assert wire_of(b"/v1/messages/") is None
    assert wire_of(b"/xmessages") is None
