"""Sign-ins against a real authorisation server: made, used, renewed, lost."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import msgspec
import pytest

from pegboard.config.model import ServerSpec
from pegboard.errors import AuthRequired, MissingExtra, PegboardError, ServerUnavailable
from pegboard.upstream.auth import keep, stored_auth
from pegboard.upstream.link import Forbidden
from pegboard.upstream.oauth import Registration
from pegboard.upstream.sign_in import sign_in
from pegboard.upstream.tokens import SignIn, forget_sign_in, keep_sign_in, read_sign_in
from tests.flow.remote import Browser, call, pool_of, run, spec, text_of
from tests.servers.oauth_server import oauth_server
from tests.servers.scripted_http import Asked, scripted, sober


async def sign_in_by_browser(far: ServerSpec, state: Path, registration: Registration | None = None) -> Browser:
    browser = Browser()
    assert await sign_in(far, state, open_url=browser.open, timeout=20, registration=registration)
    await browser.close()
    return browser


async def touch(url: str, what: str) -> None:
    async with httpx2.AsyncClient() as client:
        await client.get(url.replace("/mcp", f"/test/{what}"))


def events(log: Path) -> list[str]:
    return log.read_text().splitlines()


@pytest.mark.parametrize("method", ["none", "client_secret_basic", "client_secret_post"])
def test_whoever_signed_in_can_call(tmp_path: Path, method: str) -> None:
    log = tmp_path / "log"
    with oauth_server("--method", method, "--log", str(log)) as url:

        async def scenario() -> None:
            far = spec("far", url)
            async with pool_of(far, state_dir=tmp_path) as pool:
                with pytest.raises(AuthRequired, match="asks for credentials") as caught:
                    await call(pool, "read")
                assert "`pegboard login far`" in caught.value.hint
                await sign_in_by_browser(far, tmp_path)
                assert text_of(await call(pool, "read")) == "gold", "the pool notices the sign-in by itself"

        run(scenario)
    seen = events(log)
    assert [seen.count(each) for each in ("register Pegboard", "authorize notes", "token authorization_code")] == [
        1
    ] * 3


def test_a_token_near_its_end_is_renewed_before_it_is_used(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with oauth_server("--expires", "20", "--log", str(log)) as url:

        async def scenario() -> None:
            far = spec("far", url)
            await sign_in_by_browser(far, tmp_path)
            before = read_sign_in(far, tmp_path)
            refused = events(log).count("refused 401")
            async with pool_of(far, state_dir=tmp_path) as pool:
                assert text_of(await call(pool, "read")) == "gold"
            after = read_sign_in(far, tmp_path)
            assert before is not None
            assert after is not None
            assert after.access_token != before.access_token
            assert after.refresh_token != before.refresh_token, "the server rotates them"
            assert events(log).count("refused 401") == refused, "no request went out with the old token"

        run(scenario)


def test_a_token_that_was_revoked_is_renewed_once_for_all_calls_that_meet_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with oauth_server("--log", str(log)) as url:

        async def scenario() -> None:
            far = spec("far", url)
            await sign_in_by_browser(far, tmp_path)
            async with pool_of(far, state_dir=tmp_path) as pool:
                await call(pool, "read")
                await touch(url, "expire")
                results = await asyncio.gather(*(call(pool, "read") for _ in range(10)))
                assert [text_of(each) for each in results] == ["gold"] * 10
            assert events(log).count("token refresh_token") == 1

        run(scenario)


def test_two_processes_with_one_sign_in_renew_it_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with oauth_server("--log", str(log)) as url:

        async def scenario() -> None:
            far = spec("far", url)
            await sign_in_by_browser(far, tmp_path)
            async with pool_of(far, state_dir=tmp_path) as one, pool_of(far, state_dir=tmp_path) as other:
                for pool in (one, other):
                    await call(pool, "read")
                await touch(url, "expire")
                await asyncio.gather(call(one, "read"), call(other, "read"))
            assert events(log).count("token refresh_token") == 1

        run(scenario)


@pytest.mark.parametrize(("arguments", "words"), [((), "could not be renewed"), (("--no-refresh",), "has expired")])
def test_a_sign_in_that_cannot_be_renewed_asks_for_a_person_and_never_opens_a_browser(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    with oauth_server(*arguments) as url:

        async def scenario() -> None:
            far = spec("far", url)
            await sign_in_by_browser(far, tmp_path)
            async with pool_of(far, state_dir=tmp_path) as pool:
                await call(pool, "read")
                await touch(url, "forget")
                for _ in range(2):
                    with pytest.raises(AuthRequired, match=f"far: its sign-in {words}") as caught:
                        await call(pool, "read")
                    assert caught.value.hint == "`pegboard login far` signs in again."
                await sign_in_by_browser(far, tmp_path)
                assert text_of(await call(pool, "read")) == "gold"

        run(scenario)


def test_a_call_that_needs_more_than_the_sign_in_allows_makes_the_next_one_ask_for_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with oauth_server("--log", str(log)) as url:

        async def scenario() -> None:
            far = spec("far", url)
            await sign_in_by_browser(far, tmp_path)
            async with pool_of(far, state_dir=tmp_path) as pool:
                with pytest.raises(Forbidden, match="insufficient_scope") as caught:
                    await call(pool, "shred")
                assert caught.value.hint == "`pegboard login far` asks for more."
                assert text_of(await call(pool, "read")) == "gold", "the rest stays allowed"
                await sign_in_by_browser(far, tmp_path)
                assert text_of(await call(pool, "shred")) == "dust", "the connection takes up the wider sign-in"
            asked = [line for line in events(log) if line.startswith("authorize")]
            assert asked == ["authorize notes", "authorize notes admin"]

        run(scenario)


def test_an_authorisation_server_out_of_order_is_no_reason_to_sign_in_again(tmp_path: Path) -> None:
    with oauth_server("--expires", "20") as url:

        async def scenario() -> None:
            far = spec("far", url)
            await sign_in_by_browser(far, tmp_path)
            kept = read_sign_in(far, tmp_path)
            assert kept is not None
            assert kept.authorization_server is not None
            broken = {**kept.authorization_server, "token_endpoint": "http://127.0.0.1:1/token"}
            keep_sign_in(far, tmp_path, msgspec.structs.replace(kept, authorization_server=broken))
            async with pool_of(far, state_dir=tmp_path) as pool:
                with pytest.raises(PegboardError, match=r"127\.0\.0\.1:1 cannot be reached") as caught:
                    await call(pool, "read")
                assert not isinstance(caught.value, AuthRequired)
                keep_sign_in(far, tmp_path, kept)
                assert text_of(await call(pool, "read")) == "gold"

        run(scenario)


def test_a_refusal_without_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    honest = sober()

    async def handle(asked: Asked) -> None:
        if asked.headers["authorization"] == "Bearer new":
            await honest(asked)
            return
        await asked.send(b"HTTP/1.1 401 Status\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            await asked.chunk(b"x" * 65536)

    async def scenario() -> None:
        async with scripted(handle) as site:
            far = spec("far", site.url)
            old = SignIn(server="far", url=site.url, access_token="old")
            keep_sign_in(far, tmp_path, old)
            auth = stored_auth(far, tmp_path)
            keep_sign_in(far, tmp_path, msgspec.structs.replace(old, access_token="new"))
            async with httpx2.AsyncClient(auth=auth) as client:
                answer = await client.post(site.url, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
            assert answer.status_code == 200

    run(scenario)


def test_a_server_registered_by_hand_is_signed_in_to_with_that_registration_again_and_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with oauth_server("--no-registration", "--log", str(log)) as url:

        async def scenario() -> None:
            far = spec("far", url)
            with pytest.raises(AuthRequired, match="did not register Pegboard") as caught:
                await sign_in(far, tmp_path, open_url=Browser().open)
            assert "--client-id" in caught.value.hint
            given = Registration(client_id="pre", client_secret="pre-secret")
            await sign_in_by_browser(far, tmp_path, given)
            await sign_in_by_browser(far, tmp_path)
            async with pool_of(far, state_dir=tmp_path) as pool:
                assert text_of(await call(pool, "read")) == "gold"
            assert "pre-secret" not in repr(given)

        run(scenario)
    assert "register Pegboard" not in events(log)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--deny",), r"the sign-in was refused \(access_denied\)"),
        (("--token-fails", "400"), r"did not issue a token \(server_error, HTTP 400\)"),
        (("--token-fails", "200"), r"did not issue a token \(server_error, HTTP 200\)"),
        (("--elsewhere", "http://10.0.0.1/authorize"), "its sign-in leads to http://10.0.0.1/authorize, which is not"),
    ],
)
def test_a_sign_in_that_fails_says_why_without_giving_anything_away(
    tmp_path: Path,
    arguments: tuple[str, ...],
    words: str,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with oauth_server(*arguments) as url:

        async def scenario() -> None:
            far, browser = spec("far", url), Browser()
            with pytest.raises(AuthRequired, match=words) as caught:
                await sign_in(far, tmp_path, open_url=browser.open, timeout=20)
            await browser.close()
            assert read_sign_in(far, tmp_path) is None
            assert not [part for part in ("code_verifier", "client_secret", "<script>") if part in str(caught.value)]

        run(scenario)
    shown = capfd.readouterr()
    assert "Traceback" not in shown.err
    assert "code_verifier" not in shown.err
    assert not [record for record in caplog.records if record.name.startswith("mcp.")]


def test_nobody_is_waited_for_for_ever(tmp_path: Path) -> None:
    with oauth_server() as url:

        async def scenario() -> None:
            async def nobody(_url: str) -> None:
                return

            with pytest.raises(AuthRequired, match=r"far: nobody signed in within 0\.2 s"):
                await sign_in(spec("far", url), tmp_path, open_url=nobody, timeout=0.2)

        run(scenario)


def test_the_browser_is_sent_with_a_proof_and_a_state_that_change_every_time(tmp_path: Path) -> None:
    with oauth_server() as url:

        async def scenario() -> None:
            queries = []
            for _ in range(2):
                browser = await sign_in_by_browser(spec("far", url), tmp_path)
                queries.append(parse_qs(urlsplit(browser.urls[0]).query))
            assert all(query["code_challenge_method"] == ["S256"] for query in queries)
            assert all(query["resource"] == [url] for query in queries)
            for changing in ("state", "code_challenge"):
                assert queries[0][changing] != queries[1][changing]

        run(scenario)


@pytest.mark.parametrize(
    ("far", "words"),
    [
        (spec("far", "https://far.example/mcp", headers={"authorization": "Bearer x"}), "has an Authorization header"),
        (spec("far", "http://far.example/mcp"), "reached in the clear"),
        (spec("far", "", transport="stdio"), "nothing to sign in to"),
    ],
)
def test_a_sign_in_that_could_not_work_is_refused_at_once(far: ServerSpec, words: str, tmp_path: Path) -> None:
    with pytest.raises(PegboardError, match=words):
        run(lambda: sign_in(far, tmp_path, open_url=Browser().open))


def test_without_the_sdk_a_good_token_works_and_everything_else_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with oauth_server() as url:

        async def scenario() -> None:
            far = spec("far", url)
            await sign_in_by_browser(far, tmp_path)
            monkeypatch.setitem(sys.modules, "mcp.client", None)
            with pytest.raises(MissingExtra, match="Signing in to a remote server") as missing:
                await sign_in(far, tmp_path, open_url=Browser().open)
            assert "pegboard[oauth]" in missing.value.hint
            async with pool_of(far, state_dir=tmp_path) as pool:
                assert text_of(await call(pool, "read")) == "gold"
                await touch(url, "expire")
                with pytest.raises(AuthRequired, match="must be renewed") as caught:
                    await call(pool, "read")
                assert "pegboard[oauth]" in caught.value.hint

        run(scenario)


def test_a_token_in_the_configuration_goes_before_a_sign_in(tmp_path: Path) -> None:
    far = spec("far", "https://far.example/mcp")
    keep_sign_in(far, tmp_path, SignIn(server="far", url=far.config.url or "", access_token="AT"))

    async def scenario() -> None:
        assert stored_auth(far, tmp_path) is not None
        assert stored_auth(spec("far", "https://far.example/mcp", headers={"AUTHORIZATION": "x"}), tmp_path) is None
        assert stored_auth(spec("far", "https://far.example/other"), tmp_path) is None
        assert forget_sign_in(far, tmp_path)
        assert stored_auth(far, tmp_path) is None

    run(scenario)


def test_a_sign_in_that_cannot_be_written_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    far = spec("far", "https://far.example/mcp")
    state = tmp_path / "a file, not a folder"
    state.write_text("")
    with pytest.raises(
        ServerUnavailable, match=r"far: its sign-in cannot be written to .*far-[0-9a-f]{16}\.json"
    ) as caught:
        keep(far, state, SignIn(server="far", url="", access_token="AT-secret"))
    assert "AT-secret" not in str(caught.value)
