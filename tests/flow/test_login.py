"""`pegboard login` as a person runs it: a process of its own, a browser that is a program, a real server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import example_http
from tests.servers.oauth_server import oauth_server

BROWSER = """
import sys, urllib.request
sys.stdout.write(urllib.request.urlopen(sys.argv[1]).read().decode())
"""


class Home:
    """A person's machine: configuration, state, and a browser."""

    def __init__(self, folder: Path, url: str, **options: str) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.write(url, **options)
        browser = folder / "browser.py"
        browser.write_text(BROWSER)
        self.environ = {**os.environ, "HOME": str(folder), "BROWSER": f"{sys.executable} {browser} %s"}

    def write(self, url: str, **options: str) -> None:
        lines = [f'{key} = "{value}"' for key, value in {"url": url, **options}.items()]
        folders = [f'state_dir = "{self.state}"', f'cache_dir = "{self.folder / "cache"}"']
        text = "\n".join(["[servers.vault]", *lines, "[store]", *folders, ""])
        (self.folder / "pegboard.toml").write_text(text)

    def pegboard(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-W", "error", "-m", "pegboard", *arguments],
            cwd=self.folder,
            env={**self.environ, **variables},
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )

    def tokens(self) -> list[Path]:
        return [path for path in (self.state / "oauth").glob("*") if path.suffix == ".json"]


def said(result: subprocess.CompletedProcess[str]) -> str:
    assert "Traceback" not in result.stderr
    return result.stdout + result.stderr


def test_login_opens_the_browser_and_shows_that_it_works(tmp_path: Path) -> None:
    with oauth_server() as url:
        home = Home(tmp_path, url)
        before = home.pegboard("refresh", "vault")
        assert before.returncode == 1
        assert "`pegboard login vault` signs in with OAuth" in said(before)
        login = home.pegboard("login", "vault")
        assert login.returncode == 0, said(login)
        assert "Signed in to vault: 2 tools." in login.stdout
        assert f"{url.removesuffix('/mcp')}/authorize?" in login.stderr
        after = home.pegboard("call", "vault__read")
        assert (after.returncode, "gold" in after.stdout) == (0, True), said(after)
        [path] = home.tokens()
        secrets = [value for value in json.loads(path.read_text()).values() if isinstance(value, str) and "T-" in value]
        assert len(secrets) == 2
        assert not any(secret in said(each) for secret in secrets for each in (before, login, after))


def test_tokens_belong_to_the_address_and_can_be_forgotten(tmp_path: Path) -> None:
    with oauth_server() as url, oauth_server() as other:
        home = Home(tmp_path, url)
        assert home.pegboard("login", "vault", "--json").returncode == 0
        home.write(other)
        moved = home.pegboard("call", "vault__read")
        assert moved.returncode == 1
        assert "pegboard login vault" in said(moved)
        home.write(url)
        forgotten = home.pegboard("login", "--forget", "vault")
        assert "The tokens of vault are deleted." in said(forgotten)
        assert home.tokens() == []
        assert "No tokens of vault were kept." in said(home.pegboard("login", "--forget", "vault"))
        assert json.loads(home.pegboard("login", "--forget", "--json", "vault").stdout) == {
            "server": "vault",
            "forgotten": False,
        }


def test_without_a_browser_the_address_is_printed_and_waited_for(tmp_path: Path) -> None:
    with oauth_server() as url:
        result = Home(tmp_path, url).pegboard("login", "vault", "--no-browser", "--timeout", "1")
        assert result.returncode == 1
        assert "/authorize?" in result.stderr
        assert "vault: nobody signed in within 1 s" in result.stderr


def test_a_registration_made_beforehand_is_used(tmp_path: Path) -> None:
    with oauth_server("--no-registration") as url:
        home = Home(tmp_path, url)
        without = home.pegboard("login", "vault")
        assert "pegboard login vault --client-id" in said(without)
        flags = ("--client-id", "pre", "--client-secret-env", "VAULT_SECRET")
        assert "The variable VAULT_SECRET is not set." in said(home.pegboard("login", "vault", *flags))
        result = home.pegboard("login", "vault", *flags, "--json", VAULT_SECRET="pre-secret")
        assert json.loads(result.stdout) == {"server": "vault", "signed_in": True, "tools": 2, "error": ""}
        assert "pre-secret" not in said(result)


def test_a_server_that_asks_for_nothing_needs_no_login(tmp_path: Path) -> None:
    with example_http("units") as url:
        home = Home(tmp_path, url)
        result = home.pegboard("login", "vault")
        assert (result.returncode, "vault asks for no sign-in" in result.stdout) == (0, True), said(result)
        assert home.tokens() == []


@pytest.mark.parametrize(
    ("options", "arguments", "words"),
    [
        ({}, ("valut",), "There is no server named 'valut'.\n  Did you mean vault?"),
        ({"url": "http://vault.example/mcp"}, ("vault",), "vault is reached in the clear"),
        ({}, ("vault", "--client-secret-env", "HOME"), "no use without its --client-id"),
        ({}, ("vault",), "vault: 127.0.0.1:9 cannot be reached"),
    ],
)
def test_what_cannot_work_is_said_in_plain_words(
    tmp_path: Path, options: dict[str, str], arguments: tuple[str, ...], words: str
) -> None:
    result = Home(tmp_path, **{"url": "http://127.0.0.1:9/mcp", **options}).pegboard("login", *arguments)
    assert result.returncode == 1
    assert words in said(result)


def test_a_folder_that_cannot_be_written_to_is_named_before_the_browser_opens(tmp_path: Path) -> None:
    with oauth_server() as url:
        home = Home(tmp_path, url)
        home.state.write_text("a file, where a folder should be")
        result = home.pegboard("login", "vault")
        assert result.returncode == 1
        assert f"vault: its sign-in cannot be written to {home.state}" in said(result)
        assert "/authorize?" not in said(result)


def test_a_disabled_server_is_not_contacted(tmp_path: Path) -> None:
    home = Home(tmp_path, "http://127.0.0.1:9/mcp")
    result = home.pegboard("--set", "servers.vault.enabled=false", "login", "vault")
    assert "vault: it is disabled" in said(result)
