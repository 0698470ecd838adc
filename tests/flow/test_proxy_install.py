"""`pegboard proxy install` and `uninstall` as people run them."""

from __future__ import annotations

import json
import os
import pty
import select
import stat
import subprocess
import sys
import tomllib
from itertools import count
from pathlib import Path

import pytest

from tests.flow.proxy_desk import PATIENCE, PEGBOARD, ProxyDesk

CRASHING = Path(__file__).with_name("crashing_installer.py")
SECRET = "sk-or-0123456789abcdef"
OPENCODE = """\
\ufeff{\r
\t// mine\r
\t"provider": {"openrouter": {"options": {"apiKey": "@", "baseURL": "https://openrouter.ai/api/v1"}}}, // last\r
}"""
FILES = {
    "opencode": (
        ".config/opencode/opencode.jsonc",
        OPENCODE.replace("@", SECRET),
        ["openrouter/v1", "anthropic/v1", "openai/v1"],
    ),
    "kilo": (".config/kilo/kilo.json", '{"model": "x"}\n', ["anthropic/v1", "openai/v1"]),
    "cline": (
        ".cline/data/settings/providers.json",
        f'{{"providers": {{"anthropic": {{"settings": {{"apiKey": "{SECRET}"}}}}}}}}',
        ["anthropic/v1"],
    ),
    "zed": (".config/zed/settings.json", '// Zed\n{\n  "theme": "One",\n}\n', ["anthropic", "openai/v1"]),
    "gemini": (".gemini/.env", f"GEMINI_API_KEY={SECRET}", ["gemini"]),
    "codex": (".codex/config.toml", '# Codex\nmodel = "x"\n\n[mcp_servers.a]\ncommand = "a"\n', ["openai/v1"]),
}  # fmt: skip


@pytest.fixture
def desk(tmp_path):
    return ProxyDesk(tmp_path)


@pytest.mark.parametrize("agent", FILES)
def test_an_agent_is_pointed_at_the_proxy_and_gets_its_bytes_back(desk, agent):
    place, text, addresses = FILES[agent]
    file = desk.put(place, text)
    file.chmod(0o640)
    before = desk.everything()
    shown = desk.run("install", agent, "--yes").stdout
    for address in addresses:
        assert f"{desk.base}/{address}" in file.read_text("utf-8")
        assert f"{desk.base}/{address}" in shown
    assert SECRET not in shown
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert "There is nothing to do" in desk.run("install", agent, "--yes").stdout
    assert [(row["agent"], row["state"]) for row in desk.json("install")] == [(agent, "yes")]
    undone = desk.run("uninstall", agent).stdout
    assert f"{file} is what it was before, to the byte." in undone
    assert desk.everything() == before
    assert list((desk.state / "install-backups").iterdir()) == []
    assert "is on record" in desk.run("uninstall", agent, code=1).stderr


@pytest.mark.parametrize("agent", [agent for agent in FILES if agent != "cline"])
def test_a_file_that_is_made_is_gone_afterwards_with_its_folders(desk, agent):
    before = {path for path in desk.home.rglob("*") if desk.state not in (path, *path.parents)}
    desk.run("install", agent, "--yes")
    assert "was made by the install and is gone" in desk.run("uninstall", agent).stdout
    after = {path for path in desk.home.rglob("*") if desk.state not in (path, *path.parents)}
    assert after - {desk.state.parent, desk.state.parent.parent} == before


def test_cline_without_a_provider_is_left_alone(desk):
    before = desk.everything()
    assert "no provider set up" in desk.run("install", "cline", "--yes").stdout
    assert desk.everything() == before


def test_an_upstream_is_shared_until_the_last_agent_has_gone(desk):
    text = '{"provider": {"corp": {"options": {"baseURL": "https://llm.corp.example/v1"}}}}'
    for agent, place in (("opencode", ".config/opencode/opencode.json"), ("kilo", ".config/kilo/kilo.json")):
        desk.put(place, text)
        desk.run("install", agent, "--yes")
    before = desk.config.read_text()
    assert tomllib.loads(before)["proxy"]["upstreams"] == {"corp": "https://llm.corp.example"}
    assert "corp stays in" in desk.run("uninstall", "opencode").stdout
    assert desk.config.read_text() == before
    desk.run("uninstall", "kilo")
    assert "upstreams" not in desk.config.read_text()


def test_a_file_that_was_changed_since_keeps_what_is_new(desk):
    file = desk.put(
        ".config/zed/settings.json", '{\n  "language_models": {"openai": {"api_url": "https://x.example"}}\n}\n'
    )
    desk.run("install", "zed", "--yes")
    file.write_text(file.read_text().replace("{\n", '{\n  "theme": "One",\n', 1))
    undone = desk.run("uninstall", "zed").stdout
    assert "was changed since the install: the proxy is out" in undone
    assert file.read_text() == (
        '{\n  "theme": "One",\n  "language_models": {"openai": {"api_url": "https://x.example"}}\n}\n'
    )


def test_an_address_that_you_changed_since_is_yours(desk):
    file = desk.put(".codex/config.toml", "")
    desk.run("install", "codex", "--yes")
    file.write_text('openai_base_url = "https://mine.example/v1"\n')
    assert "left as they are: openai_base_url." in desk.run("uninstall", "codex").stdout
    assert file.read_text() == 'openai_base_url = "https://mine.example/v1"\n'


def test_when_the_proxy_moves_an_agent_follows_and_finds_home_again(desk):
    file = desk.put(
        ".config/opencode/opencode.json", '{"provider": {"a": {"options": {"baseURL": "https://a.example"}}}}'
    )
    desk.run("install", "opencode", "--yes")
    before, moved = desk.everything(), desk.port + 1
    desk.config.write_text(desk.config.read_text().replace(str(desk.port), str(moved)))
    told = desk.json("install", "opencode", "--yes")
    assert told["upstreams"] == {}
    assert file.read_text().count(f"127.0.0.1:{moved}/") == 3
    desk.run("uninstall", "opencode")
    assert json.loads(file.read_text()) == {"provider": {"a": {"options": {"baseURL": "https://a.example"}}}}
    assert before.keys() == desk.everything().keys()


def test_a_symbolic_link_stays_one(desk):
    real = desk.put("dotfiles/zed.json", "{}")
    link = desk.home / ".config" / "zed" / "settings.json"
    link.parent.mkdir()
    link.symlink_to(real)
    desk.run("install", "zed", "--yes")
    assert link.is_symlink()
    assert "api_url" in real.read_text()
    desk.run("uninstall", "zed")
    assert (link.is_symlink(), real.read_text()) == (True, "{}")


def test_without_anybody_to_ask_nothing_is_written_and_a_look_costs_nothing(desk):
    desk.put(".config/zed/settings.json", "{}")
    before = desk.everything()
    assert "nobody to ask" in desk.run("install", "zed", code=1).stderr
    assert "Nothing was written." in desk.run("install", "zed", "--dry-run").stdout
    assert desk.json("install", "zed", "--dry-run")["installed"] is False
    assert desk.everything() == before
    desk.run("install", "zed", "--yes")
    installed = desk.everything()
    assert "Nothing was written." in desk.run("uninstall", "zed", "--dry-run").stdout
    assert desk.json("uninstall", "zed", "--dry-run")[0]["settings"] == [
        "language_models.anthropic.api_url",
        "language_models.openai.api_url",
    ]
    assert desk.everything() == installed
    assert [each["action"] for each in desk.json("uninstall", "zed")] == ["restored"]


def test_a_person_is_asked(desk):
    file = desk.put(".config/zed/settings.json", "{}")
    for answer, written in ((b"n\n", False), (b"y\n", True)):
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [*PEGBOARD, "proxy", "install", "zed"],
            cwd=desk.cwd, env=desk.variables(), stdin=theirs, stdout=theirs, stderr=theirs,
        )  # fmt: skip
        os.close(theirs)
        seen = b""
        try:
            while b"[y/N]" not in seen:
                assert select.select([ours], [], [], PATIENCE)[0]
                seen += os.read(ours, 4096)
            os.write(ours, answer)
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()
            process.wait(PATIENCE)
            os.close(ours)
        assert ("api_url" in file.read_text()) is written


def test_variables_are_printed_for_a_shell_and_nothing_is_edited(desk):
    before = desk.everything()
    assert desk.run("install", "env").stdout == (
        f"export ANTHROPIC_BASE_URL={desk.base}/anthropic\n"
        f"export OPENAI_BASE_URL={desk.base}/openai/v1\n"
        f"export GOOGLE_GEMINI_BASE_URL={desk.base}/gemini\n"
    )
    claude = desk.run("install", "claude-code")
    assert claude.stdout == f"export ANTHROPIC_BASE_URL={desk.base}/anthropic\n"
    assert "there is nothing to be won" in claude.stderr
    assert desk.json("install", "claude-code")["variables"] == {"ANTHROPIC_BASE_URL": f"{desk.base}/anthropic"}
    assert "unset ANTHROPIC_BASE_URL" in desk.run("uninstall", "claude-code", code=1).stderr
    assert desk.everything() == before


def test_the_files_of_a_project_are_never_touched(desk):
    for name in ("opencode.json", ".zed/settings.json", ".codex/config.toml", ".gemini/.env", "kilo.json"):
        path = desk.cwd / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    for agent in FILES:
        desk.run("install", agent, "--yes")
    assert all(path.read_text() == "" for path in desk.cwd.rglob("*") if path.is_file())


def test_a_file_that_cannot_be_understood_is_left_alone_with_words(desk):
    file = desk.put(".config/opencode/opencode.json", '{"provider": ')
    told = desk.run("install", "opencode", "--yes", code=1).stderr
    assert str(file) in told
    assert "Nothing was changed." in told
    assert str(file) in desk.run("install").stderr


def test_both_kinds_of_install_go_in_and_out_of_one_file_in_any_order(desk):
    text = '{\n  "mcp": {"a": {"type": "local", "command": ["a"]}}\n}\n'
    file = desk.put(".config/opencode/opencode.json", text)
    gateway = [*PEGBOARD, "install", "opencode", "--yes"]
    away = [*PEGBOARD, "uninstall", "opencode"]
    desk.run("install", "opencode", "--yes")
    subprocess.run(gateway, cwd=desk.cwd, env=desk.variables(), check=True, capture_output=True, timeout=PATIENCE)
    desk.run("uninstall", "opencode")
    assert "8722" not in file.read_text()
    subprocess.run(away, cwd=desk.cwd, env=desk.variables(), check=True, capture_output=True, timeout=PATIENCE)
    assert json.loads(file.read_text()) == json.loads(text)


@pytest.mark.parametrize("when", [pytest.param("before", marks=pytest.mark.slow), "after"])
@pytest.mark.parametrize("action", ["install", "uninstall"])
def test_whatever_a_kill_leaves_behind_can_be_taken_back(tmp_path, when, action):
    place, text, _ = FILES["opencode"]
    for number in count(1):
        desk = ProxyDesk(tmp_path / f"{number}")
        desk.put(place, text)
        before = desk.everything()
        if action == "uninstall":
            desk.run("install", "opencode", "--yes")
        flags = ["--yes"] if action == "install" else []
        done = subprocess.run(
            [sys.executable, CRASHING, when, str(number), "proxy", action, "opencode", *flags],
            cwd=desk.cwd, env=desk.variables(), capture_output=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        if (desk.state / "installs.json").exists() and json.loads((desk.state / "installs.json").read_text())[
            "redirects"
        ]:
            desk.run("uninstall", "opencode")
        assert desk.everything() == before
        if done.returncode == 0:
            break
    assert number > 3
