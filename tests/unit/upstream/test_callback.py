from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import httpx2
import pytest

from pegboard.errors import PegboardError
from pegboard.upstream.callback import Answer, Callback
from tests.flow.remote import run

SENT_OUT = "https://auth.example/authorize?client_id=x&state=right"


async def visit(url: str) -> httpx2.Response:
    async with httpx2.AsyncClient() as browser:
        return await browser.get(url)


def test_the_browser_that_comes_back_is_heard() -> None:
    async def scenario() -> None:
        async with Callback() as callback:
            assert urlsplit(callback.url).hostname == "127.0.0.1"
            callback.expect(SENT_OUT)
            page = await visit(f"{callback.url}?code=abc&state=right&iss=https%3A%2F%2Fauth.example")
            assert page.status_code == 200
            assert "close this window" in page.text
            assert await callback.answer() == Answer("abc", "right", "https://auth.example")

    run(scenario)


def test_an_error_is_an_answer_without_a_code() -> None:
    async def scenario() -> None:
        async with Callback() as callback:
            callback.expect(SENT_OUT)
            page = await visit(f"{callback.url}?error=access_denied&code=abc&state=right&error_description=<script>")
            assert "script" not in page.text
            assert await callback.answer() == Answer("", "right", None, "access_denied")

    run(scenario)


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/callback?code=abc&state=wrong", 400),
        ("/callback?code=abc", 400),
        ("/callback?state=right", 400),
        ("/callback?error=x&state=wrong", 400),
        ("/favicon.ico", 404),
        ("/", 404),
        ("/callback/more?code=abc&state=right", 404),
    ],
)
def test_whoever_else_comes_is_turned_away_and_the_wait_goes_on(target: str, status: int) -> None:
    async def scenario() -> None:
        async with Callback() as callback:
            callback.expect(SENT_OUT)
            origin = callback.url.removesuffix("/callback")
            assert (await visit(origin + target)).status_code == status
            waiting = asyncio.ensure_future(callback.answer())
            await asyncio.sleep(0)
            assert not waiting.done()
            await visit(f"{callback.url}?code=abc&state=right")
            assert (await waiting).code == "abc"

    run(scenario)


def test_nothing_counts_before_a_browser_was_sent_out() -> None:
    async def scenario() -> None:
        async with Callback() as callback:
            assert (await visit(f"{callback.url}?code=abc&state=")).status_code == 400

    run(scenario)


@pytest.mark.parametrize(
    "noise", [b"", b"\xff\xfe\r\n\r\n", b"GET\r\n\r\n", b"GET //[ HTTP/1.1\r\n\r\n", b"x" * 100_000]
)
def test_what_is_no_browser_does_no_harm(noise: bytes) -> None:
    async def scenario() -> None:
        async with Callback() as callback:
            callback.expect(SENT_OUT)
            parts = urlsplit(callback.url)
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            writer.write(noise)
            if noise:
                writer.write_eof()
                await reader.read()
            await visit(f"{callback.url}?code=abc&state=right")
            assert (await callback.answer()).code == "abc"
        writer.close()

    run(scenario)


def test_a_port_that_is_taken_is_named() -> None:
    async def scenario() -> None:
        async with Callback() as first:
            port = urlsplit(first.url).port
            assert port is not None
            with pytest.raises(PegboardError, match=f"cannot listen on port {port}"):
                async with Callback(port):
                    pass

    run(scenario)
