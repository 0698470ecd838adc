"""Where requests go: redirects, proxies, this machine and others."""

from __future__ import annotations

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.errors import ProtocolViolation, StartFailed
from pegboard.upstream.http_client import is_loopback, network_error, same_origin, shown
from pegboard.upstream.link import Unreachable
from tests.flow.remote import call, pool_of, run, spec, text_of
from tests.servers.scripted_http import Asked, scripted, sober


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_redirect_within_the_origin_is_followed_once_and_remembered(era: str) -> None:
    honest = sober(era)

    async def handle(asked: Asked) -> None:
        await (honest(asked) if asked.target == "/mcp/" else asked.reply(307, Location="/mcp/"))

    async def scenario() -> None:
        async with scripted(handle) as site:
            async with pool_of(spec("far", site.url)) as pool:
                assert text_of(await call(pool, "one")) == "one"
                assert text_of(await call(pool, "two")) == "two"
            assert sum(each.target == "/mcp" for each in site.requests) == 1
            assert all(each.target == "/mcp/" for each in site.requests if each.verb in ("GET", "DELETE"))

    run(scenario)


@pytest.mark.parametrize(
    ("status", "location"),
    [
        (307, "http://127.0.0.1:1/mcp?token=secret"),
        (308, "https://127.0.0.1/mcp"),
        (307, "//elsewhere.example/mcp"),
        (307, "http://user:secret@{host}/mcp"),
        (302, "/mcp/"),
        (303, "/mcp/"),
        (307, "http://[oops/"),
        (307, "http://a\x01b/"),
    ],
)
def test_a_redirect_that_leaves_the_origin_or_drops_the_message_is_refused(status: int, location: str) -> None:
    async def handle(asked: Asked) -> None:
        await asked.reply(status, Location=location.format(host=asked.headers["host"]))

    async def scenario() -> None:
        async with scripted(handle) as site, pool_of(spec("far", site.url)) as pool:
            with pytest.raises((ProtocolViolation, StartFailed), match="far: ") as caught:
                await call(pool, "one")
            assert "secret" not in str(caught.value)

    run(scenario)


def test_this_machine_is_never_reached_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with scripted(sober()) as proxy, scripted(sober()) as site:
            for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy"):
                monkeypatch.setenv(name, proxy.origin)
            for host in ("127.0.0.1", "localhost", "127.0.0.2"):
                local = spec("far", site.url.replace("127.0.0.1", host))
                try:
                    async with pool_of(local, start_timeout=5.0) as pool:
                        await call(pool, "one")
                except StartFailed:
                    assert host == "127.0.0.2", "only that one may not be listening"
            assert proxy.requests == []

    run(scenario)


def test_other_machines_are_reached_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with scripted(sober()) as proxy:
            monkeypatch.setenv("HTTP_PROXY", proxy.origin)
            async with pool_of(spec("far", "http://mcp.example.test/mcp")) as pool:
                assert text_of(await call(pool, "one")) == "one"
            assert {each.target for each in proxy.requests} == {"http://mcp.example.test/mcp"}

    run(scenario)


@pytest.mark.parametrize("proxy", ["carrier-pigeon://coop:1", "socks5://127.0.0.1:1"])
def test_proxy_settings_that_make_no_sense_are_named(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    async def scenario() -> None:
        monkeypatch.setenv("HTTP_PROXY", proxy)
        async with pool_of(spec("far", "http://mcp.example.test/mcp")) as pool:
            with pytest.raises(StartFailed, match=r"proxy settings of the environment|cannot be reached"):
                await call(pool, "one")

    run(scenario)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "127.8.9.1", "::1", "[::1]"])
def test_this_machine_is_known_by_all_its_names(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["localhost.example.com", "notlocalhost", "10.0.0.1", "0.0.0.0", "::2", "", "1270.0.1"]
)
def test_other_machines_are_not_this_one(host: str) -> None:
    assert not is_loopback(host)


def test_an_origin_is_scheme_host_and_port_and_brings_no_credentials_of_its_own() -> None:
    home = httpx2.URL("https://a.example/mcp")
    assert same_origin(home, httpx2.URL("https://A.example:443/other?x=1"))
    for other in ("http://a.example/mcp", "https://b.example/mcp", "https://a.example:444/mcp", "https://u@a.example/"):
        assert not same_origin(home, httpx2.URL(other))
    with_user = httpx2.URL("https://u:p@a.example/mcp")
    assert same_origin(with_user, with_user.join("/other"))


@given(st.text(alphabet="abc123", min_size=1), st.text(alphabet="xyz", min_size=1))
def test_what_people_see_of_an_address_has_no_secret_in_it(path: str, secret: str) -> None:
    url = httpx2.URL(f"https://SEC{secret}:PW{secret}@host.example/{path}?token=TK{secret}#FR{secret}")
    words = shown(url)
    assert words == f"https://host.example/{path}"[:200]


def test_the_words_for_a_network_failure_name_the_host_and_repeat_no_header() -> None:
    url = "http://user:secret@host.example:8000/mcp"
    refused = network_error("far", url, httpx2.ConnectError("refused"))
    assert isinstance(refused, Unreachable)
    assert str(refused) == "far: host.example:8000 cannot be reached: refused"
    assert isinstance(network_error("far", url, httpx2.ConnectTimeout("")), Unreachable)
    illegal = network_error("far", url, httpx2.LocalProtocolError("Illegal header value b'Bearer secret'"))
    assert "secret" not in str(illegal)
    cut = network_error("far", url, httpx2.ReadError(""))
    assert str(cut) == "far: the connection to host.example:8000 broke while waiting for the answer"
