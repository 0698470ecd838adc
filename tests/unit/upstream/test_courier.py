from __future__ import annotations

import httpx2
import pytest

from pegboard.errors import AuthRequired, ConnectionLost, LimitExceeded, ProtocolViolation, ServerUnavailable
from pegboard.upstream.courier import MOST_BYTES, Courier, is_error_code
from tests.flow.remote import run
from tests.servers.scripted_http import Asked, scripted

FAR, HERE = "https://far.example/mcp", "http://127.0.0.1:8000/mcp"


@pytest.mark.parametrize(
    ("server", "url"),
    [
        (FAR, "https://far.example/.well-known/x"),
        (FAR, "https://auth.example/token"),
        (FAR, "https://8.8.8.8/token"),
        (HERE, "http://127.0.0.1:9999/token"),
        (HERE, "http://localhost:9999/token"),
        (HERE, "https://auth.example/token"),
        ("http://corp.internal/mcp", "http://corp.internal/token"),
        ("https://10.0.0.1/mcp", "https://10.0.0.1/token"),
    ],
)
def test_a_sign_in_may_lead_to_places_that_are_safe(server: str, url: str) -> None:
    async def scenario() -> None:
        async with Courier("far", server) as courier:
            courier.must_be_allowed(httpx2.URL(url))

    run(scenario)


@pytest.mark.parametrize(
    ("server", "url"),
    [
        (FAR, "http://auth.example/token"),
        (FAR, "http://127.0.0.1/admin"),
        (FAR, "https://127.0.0.1/admin"),
        (FAR, "https://localhost/admin"),
        (FAR, "https://[::1]/admin"),
        (FAR, "https://192.168.1.1/admin"),
        (FAR, "https://169.254.169.254/latest/meta-data?secret"),
        (FAR, "https://[fd00::1]/admin"),
        (HERE, "http://auth.example/token"),
        (HERE, "http://10.0.0.1/admin"),
        (FAR, "file:///etc/passwd"),
        (FAR, "javascript:alert(1)"),
    ],
)
def test_a_sign_in_may_not_lead_into_the_clear_or_into_our_own_network(server: str, url: str) -> None:
    async def scenario() -> None:
        async with Courier("far", server) as courier:
            with pytest.raises(AuthRequired, match=r"far: its sign-in leads to .* not a safe place to go") as caught:
                await courier.carry(httpx2.Request("GET", url))
            assert "secret" not in str(caught.value)

    run(scenario)


def test_an_answer_is_carried_back_whole_with_where_it_redirects_to() -> None:
    async def handle(asked: Asked) -> None:
        assert asked.headers["accept-encoding"] == "identity"
        await asked.reply(307, b'{"error":"invalid_grant"}', Location="/token2")

    async def scenario() -> None:
        async with scripted(handle) as site, Courier("far", site.url) as courier:
            answer = await courier.carry(httpx2.Request("POST", f"{site.origin}/token", data={"a": "b"}))
            assert (answer.status_code, answer.json()) == (307, {"error": "invalid_grant"})
            assert answer.next_request is not None
            assert answer.next_request.url.path == "/token2"
            assert courier.reason() == " (invalid_grant, HTTP 307)"

    run(scenario)


def test_an_answer_has_its_limits() -> None:
    async def handle(asked: Asked) -> None:
        if asked.target == "/large":
            await asked.reply(200, b"x" * (MOST_BYTES + 1))
        elif asked.target == "/zip":
            await asked.reply(200, b"x", Content_Encoding="gzip")
        else:
            asked.cut()

    async def scenario() -> None:
        async with scripted(handle) as site, Courier("far", site.url) as courier:
            for target, error in {"/large": LimitExceeded, "/zip": ProtocolViolation, "/cut": ConnectionLost}.items():
                with pytest.raises(error, match="far: "):
                    await courier.carry(httpx2.Request("GET", site.origin + target))

    run(scenario)


@pytest.mark.parametrize(("status", "is_down"), [(500, True), (503, True), (429, True), (400, False), (401, False)])
def test_a_server_out_of_order_is_told_from_one_that_says_no(status: int, is_down: bool) -> None:
    async def handle(asked: Asked) -> None:
        await asked.reply(status, b'{"error":"<b>not a code</b>","access_token":"secret"}')

    async def scenario() -> None:
        async with scripted(handle) as site, Courier("far", site.url) as courier:
            assert courier.reason() == ""
            await courier.carry(httpx2.Request("GET", site.origin))
            assert courier.reason() == f" (HTTP {status})"
            if is_down:
                with pytest.raises(ServerUnavailable, match="out of order"):
                    courier.complain_if_down()
            else:
                courier.complain_if_down()

    run(scenario)


@pytest.mark.parametrize(
    ("text", "verdict"), [("invalid_grant", True), ("a" * 65, False), ("a b", False), ("", False), ("a\n", False)]
)
def test_error_codes_are_words(text: str, verdict: bool) -> None:
    assert is_error_code(text) is verdict
