"""One server under two names has one digest; two accounts have two; nothing can be learnt from either."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pegboard.config.model import ServerConfig
from pegboard.doctor.settings.addresses import without_credentials
from pegboard.doctor.settings.launches import digest_of, digest_of_raw

TOKEN = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
LOCAL = ServerConfig(command="npx", args=("-y", "a-mcp"), env={"TOKEN": TOKEN})
REMOTE = ServerConfig(url="https://a.example/mcp", headers={"Authorization": f"Bearer {TOKEN}"})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (LOCAL, msgspec.structs.replace(LOCAL, env={"TOKEN": "${GH}"})),
        (LOCAL, msgspec.structs.replace(LOCAL, enabled=False, lazy=False, call_timeout=3.0)),
        (REMOTE, msgspec.structs.replace(REMOTE, headers={"authorization": "Bearer ${GH}"})),
        (REMOTE, msgspec.structs.replace(REMOTE, url="HTTPS://A.example/mcp/")),
        (REMOTE, msgspec.structs.replace(REMOTE, transport="sse")),
    ],
)
def test_one_server_has_one_digest(one: ServerConfig, other: ServerConfig) -> None:
    assert digest_of(one, {"GH": TOKEN}) == digest_of(other, {"GH": TOKEN})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (LOCAL, msgspec.structs.replace(LOCAL, env={"TOKEN": TOKEN[::-1]})),
        (LOCAL, msgspec.structs.replace(LOCAL, args=("a-mcp",))),
        (LOCAL, msgspec.structs.replace(LOCAL, command="bunx")),
        (LOCAL, msgspec.structs.replace(LOCAL, cwd="/srv")),
        (LOCAL, msgspec.structs.replace(LOCAL, args=("-y", "a-mcp", "--db", "x"))),
        (REMOTE, msgspec.structs.replace(REMOTE, headers={})),
        (REMOTE, msgspec.structs.replace(REMOTE, url="https://b.example/mcp")),
        (REMOTE, LOCAL),
    ],
)
def test_two_servers_or_two_accounts_have_two(one: ServerConfig, other: ServerConfig) -> None:
    assert digest_of(one, {}) != digest_of(other, {})


def test_guesses_of_a_secret_cannot_be_tried_on_a_digest() -> None:
    """Of many guesses at one password so many fit that none is worth anything."""
    configs = [ServerConfig(command="a", args=("--token", f"{number:032x}")) for number in range(20_000)]
    digests = {digest_of(config, {}) for config in configs}

    assert len(digests) < 18_000


def test_an_entry_that_is_not_imported_has_a_digest_when_it_names_something() -> None:
    assert digest_of_raw({"command": "pegboard", "args": ["serve"]}) == digest_of_raw(
        {"command": ["pegboard", "serve"]}
    )
    assert digest_of_raw({"url": "wss://a.example/x?token=1"}) == digest_of_raw({"url": "wss://a.example/x"})
    nothing: list[object] = [{}, None, "x", {"command": []}, {"command": {"path": "x"}}]
    assert {digest_of_raw(raw) for raw in nothing} == {""}


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://api.anthropic.com", "https://api.anthropic.com"),
        ("http://127.0.0.1:7432/v1/", "http://127.0.0.1:7432/v1/"),
        ("http://[::1]:7432/v1", "http://[::1]:7432/v1"),
        ("https://ada:hush@a.example/v1", "https://a.example/v1"),
        ("https://hush@a.example", "https://a.example"),
        ("https://ada:hu/sh@a.example/v1", "https://a.example/v1"),
        ("https://ada:hu?sh#1@a.example/v1", "https://a.example/v1"),
        ("https://a.example/v1?key=hush", "https://a.example/v1"),
        ("https://a.example/v1#hush", "https://a.example/v1"),
        ("https://a.example/@scope/v1", "https://a.example/@scope/v1"),
        ("https://a.example/v1?to=a@b", "https://a.example/v1"),
        ("ada:hush@a.example", "a.example"),
        ("a.example:8080/v1", "a.example:8080/v1"),
        ("{env:URL}", "{env:URL}"),
        ("", ""),
    ],
)
def test_an_address_is_shown_without_what_is_secret(address: str, shown: str) -> None:
    assert without_credentials(address) == shown


@given(st.text(), st.text(min_size=8), st.sampled_from(["https://", "//", ""]))
def test_no_password_survives(user: str, password: str, scheme: str) -> None:
    assume("@" not in password)
    assume(password not in user)
    assume(password not in "https://a.example/v1")

    assert password not in without_credentials(f"{scheme}{user}:{password}@a.example/v1")


@given(st.text())
def test_anything_can_be_shown(text: str) -> None:
    assert isinstance(without_credentials(text), str)
