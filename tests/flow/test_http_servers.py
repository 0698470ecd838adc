"""Remote servers as they are met in the wild: every way to misbehave, while another server's calls keep flowing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pegboard.errors import (
    AuthRequired,
    CallTimeout,
    ConnectionLost,
    LimitExceeded,
    ProtocolViolation,
    ServerError,
    ServerUnavailable,
    StartFailed,
)
from pegboard.types import Json
from pegboard.upstream.link import Forbidden, SessionExpired, TurnedDown
from pegboard.upstream.pool import Pool
from tests.flow.remote import call, pool_of, run, spec, text_of
from tests.servers import HOSTILE_HTTP_MODES, hostile_http

Failure = tuple[type[ServerError], str]

FAILURES: dict[str, Failure] = {
    "status_401": (AuthRequired, r"it asks for credentials \(HTTP 401\)"),
    "status_403": (Forbidden, r"it does not allow that \(HTTP 403\)"),
    "status_404_html": (TurnedDown, "it answered HTTP 404"),
    "redirect_cross_origin": (ProtocolViolation, "it redirects to http://127.0.0.1:.*, which is not followed"),
    "redirect_loop": (ProtocolViolation, "it redirects more than 3 times"),
    "reset_on_connect": (StartFailed, "127.0.0.1:"),
    "not_http": (StartFailed, "127.0.0.1:|it was not ready within 2 s"),
    "hang_at_start": (StartFailed, "it was not ready within 2 s"),
    "status_500": (TurnedDown, "it answered HTTP 500"),
    "status_429": (ServerUnavailable, r"it asks to be left alone for now \(HTTP 429\)"),
    "accepted_call": (ProtocolViolation, r"its answer is empty \(HTTP 202\)"),
    "wrong_content_type": (ProtocolViolation, r"it answered with text/html \(HTTP 200\) instead of MCP"),
    "empty_body": (ProtocolViolation, "its answer is empty"),
    "wrong_length": (ProtocolViolation, "its answer is not JSON-RPC"),
    "chunked_garbage": (ConnectionLost, "the connection to 127.0.0.1:.* broke"),
    "huge_headers": (ConnectionLost, "the connection to 127.0.0.1:.* broke"),
    "reset_mid_body": (ConnectionLost, "the connection to 127.0.0.1:.* broke"),
    "sse_cut": (ConnectionLost, "the stream ended before the answer came"),
    "sse_wrong_id": (ConnectionLost, "the stream ended before the answer came"),
    "endless_body": (LimitExceeded, "it sent a body of more than 2,000,000 bytes"),
    "endless_sse_line": (LimitExceeded, "it sent an event of more than 2,000,000 bytes"),
    "gzip_bomb": (ProtocolViolation, "it compressed its answer although it was asked not to"),
    "hang_headers": (CallTimeout, "no answer to tools/call within 2 s"),
    "hang_body": (CallTimeout, "no answer to tools/call within 2 s"),
    "wrong_session": (SessionExpired, "it no longer knows our session"),
}
HANGS_AT_START = ("hang_at_start", "not_http")
HANGS_AT_CALL = ("hang_headers", "hang_body")
"""Only those that never answer are given little time: a busy machine must not make the others late."""
ONCE = ("sse_flood", "slow_drip", *HANGS_AT_CALL)
EITHER_WAY = ("closes_idle",)
"""A request may meet the end of the connection it is sent on: then nobody can tell whether the call was made."""
LEGACY_ONLY = ("session_404", "session_changes", "wrong_session", "delete_hangs")
CASES = [  # whoever waits for the tests is content with the newer era, where there are both
    pytest.param(mode, era, marks=pytest.mark.slow if era == "legacy" and mode not in LEGACY_ONLY else ())
    for mode in HOSTILE_HTTP_MODES
    for era in ("legacy", "modern")
    if era == "legacy" or mode not in LEGACY_ONLY
]


@pytest.fixture(scope="module")
def near() -> Iterator[str]:
    """A sober server beside the hostile ones."""
    with hostile_http("ok_json") as url:
        yield url


def test_every_mode_has_its_expectation() -> None:
    failing = {mode for mode, about in HOSTILE_HTTP_MODES.items() if about.expect.endswith("_fails")}
    assert failing == set(FAILURES)


@pytest.mark.parametrize(("mode", "era"), CASES)
def test_each_way_to_misbehave_is_named_and_touches_nobody_else(mode: str, era: str, near: str) -> None:
    with hostile_http(mode, "--era", era) as url:

        async def scenario() -> None:
            hostile = spec("far", url, max_result_bytes=2_000_000, **patience(mode))
            async with pool_of(hostile, spec("near", near), start_timeout=30.0, call_timeout=30.0) as pool:
                await call(pool, "poke", server="near")
                trouble = asyncio.create_task(meet(pool, mode))
                calls = 0
                while not trouble.done() or not calls:
                    assert text_of(await call(pool, "poke", server="near")) == "ok"
                    calls += 1
                await trouble
                assert text_of(await call(pool, "poke", server="near")) == "ok"

        run(scenario)


def patience(mode: str) -> dict[str, float]:
    """The settings of a server that is to be found late."""
    return {
        **({"start_timeout": 2.0} if mode in HANGS_AT_START else {}),
        **({"call_timeout": 2.0} if mode in HANGS_AT_CALL else {}),
    }


async def meet(pool: Pool, mode: str) -> None:
    """Three calls, one after the other: all are answered, or each fails with the reason."""
    for _ in range(1 if mode in ONCE else 3):
        if mode in FAILURES:
            kind, words = FAILURES[mode]
            with pytest.raises(kind, match=words) as caught:
                await call(pool, "poke")
            assert str(caught.value).startswith("far: ")
            if HOSTILE_HTTP_MODES[mode].expect == "start_fails":
                return  # the next try would wait its turn
        elif mode in EITHER_WAY:
            with suppress(ConnectionLost):
                assert text_of(await call(pool, "poke")).startswith("ok")
        else:
            assert text_of(await call(pool, "poke")).startswith("ok")


def test_one_hanging_call_leaves_the_others_of_its_server_alone() -> None:
    with hostile_http("hang_headers") as url:

        async def scenario() -> None:
            async with pool_of(spec("far", url)) as pool:
                hanging = [asyncio.create_task(call(pool, "poke")) for _ in range(150)]
                listings = await asyncio.gather(*(pool.get("far").list_tools() for _ in range(20)))
                assert all(each.tools[0]["name"] == "poke" for each in listings)
                assert not any(each.done() for each in hanging)
                for each in hanging:
                    each.cancel()
                await asyncio.gather(*hanging, return_exceptions=True)

        run(scenario)


def test_credentials_never_follow_a_redirect(tmp_path: Path) -> None:
    log = tmp_path / "requests"
    with hostile_http("redirect_cross_origin", "--log", str(log)) as url:

        async def scenario() -> None:
            async with pool_of(spec("far", url, headers={"Authorization": "Bearer secret"})) as pool:
                with pytest.raises(ProtocolViolation) as caught:
                    await call(pool, "poke")
                assert "secret" not in str(caught.value)

        run(scenario)
    seen = log.read_text().splitlines()
    assert all(line.startswith("mcp ") and line.endswith("with credentials") for line in seen)
    assert seen


def test_a_server_that_never_lets_go_does_not_hold_up_the_end() -> None:
    with hostile_http("delete_hangs") as url:

        async def scenario() -> Json:
            async with pool_of(spec("far", url)) as pool:
                return await call(pool, "poke")

        assert text_of(run(scenario, seconds=10)) == "ok"
