"""Host, Origin and token, before anything else."""

from __future__ import annotations

import pytest

from pegboard.wire.admission import LOCAL_NAMES, Admission, Turned, is_loopback

TOKENS = {"A": "a" * 20, "B": "ü" + "b" * 20}


def status(admission: Admission, *headers: tuple[str, str]) -> int | str:
    answer = admission.admit(headers)
    return answer.status if isinstance(answer, Turned) else answer


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:80", "LOCALHOST:1", "127.0.0.1:9", "[::1]:9", "[::1]", "localhost."]
)
def test_this_machine_is_known_by_its_names(host: str) -> None:
    assert status(Admission(), ("Host", host)) == ""


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        "localhost:x",
        "[::1",
        "[::1]x",
    ],
)
def test_other_hosts_are_turned_away(host: str) -> None:
    assert status(Admission(), ("host", host)) == 403


def test_exactly_one_host_is_needed() -> None:
    assert status(Admission()) == 403
    assert status(Admission(), ("host", "localhost"), ("host", "evil.example")) == 403
    assert status(Admission(), ("host", "localhost"), ("host", "localhost")) == 403


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "http://evil.example",
        "https://localhost.evil.example",
        "http://a@localhost",
        "ws://localhost",
        "http://localhost/x",
        "",
    ],
)
def test_pages_from_elsewhere_are_turned_away(origin: str) -> None:
    assert status(Admission(), ("host", "localhost"), ("origin", origin)) == 403


@pytest.mark.parametrize("origin", ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:1"])
def test_pages_of_this_machine_are_let_in(origin: str) -> None:
    assert status(Admission(), ("host", "localhost"), ("origin", origin)) == ""


def test_an_open_listener_takes_addresses_but_no_names_it_does_not_know() -> None:
    admission = Admission(names=LOCAL_NAMES | {"box.lan"}, any_address=True)
    assert status(admission, ("host", "192.168.1.5:80")) == ""
    assert status(admission, ("host", "box.lan")) == ""
    assert status(admission, ("host", "rebound.example")) == 403


def test_a_token_proves_one_identity() -> None:
    admission = Admission(tokens=TOKENS)
    assert status(admission, ("host", "localhost"), ("authorization", f"Bearer {TOKENS['A']}")) == "A"
    for wrong in (
        "",
        "Bearer",
        "Bearer ",
        "Bearer \xff",
        f"Basic {TOKENS['A']}",
        f"Bearer {TOKENS['A']}x",
        "Bearer \udcff",
    ):
        assert status(admission, ("host", "localhost"), ("authorization", wrong)) == 401
    twice = ("authorization", f"Bearer {TOKENS['A']}")
    assert status(admission, ("host", "localhost"), twice, twice) == 401


def test_the_host_is_judged_before_the_token() -> None:
    assert status(Admission(tokens=TOKENS), ("host", "evil.example"), ("authorization", f"Bearer {TOKENS['A']}")) == 403


def test_only_loopback_is_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "example.com", "")))
