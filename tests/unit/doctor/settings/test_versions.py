"""The version of an agent, from wherever an installer has left it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pegboard.doctor.facts import Agent
from pegboard.doctor.settings.machine import Machine, Shelf
from pegboard.doctor.settings.versions import installed
from tests.homes import HomeBuilder


def script(home: HomeBuilder, place: str, text: str = "#!/bin/sh\n") -> Path:
    home.file(place, text)
    (home.folder / place).chmod(0o755)
    return home.folder / place


def on_path(home: HomeBuilder, target: Path, name: str = "claude") -> HomeBuilder:
    folder = home.folder / "bin"
    folder.mkdir(exist_ok=True)
    (folder / name).symlink_to(target)
    return home.process(PATH=str(folder))


@pytest.mark.parametrize("agent", ["claude-code", "codex", "opencode", "kilo", "cline", "gemini"])
def test_a_package_from_npm_says_its_version(agent: Agent, tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).installed(agent, "2.1.240")

    assert installed(agent, home.machine, Shelf()) == (True, "2.1.240")
    # Also where it is not on this process's path.
    del home.environ["PATH"]
    assert installed(agent, home.machine, Shelf()) == (True, "2.1.240")


@pytest.mark.parametrize(
    "place",
    [
        ".npm-global/lib/node_modules/@anthropic-ai/claude-code",
        ".nvm/versions/node/v24.1.0/lib/node_modules/@anthropic-ai/claude-code",
        ".claude/local/node_modules/@anthropic-ai/claude-code",
        "../../usr/lib/node_modules/@anthropic-ai/claude-code",
    ],
)
def test_global_folders_are_looked_into(place: str, tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    home.json(f"{place}/package.json", {"name": "@anthropic-ai/claude-code", "version": "2.1.9"})

    assert installed("claude-code", home.machine, Shelf()) == (True, "2.1.9")


def test_a_native_install_is_called_by_its_version(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    script(home, ".local/share/claude/versions/2.1.325")
    on_path(home, script(home, ".local/share/claude/versions/2.1.304"))

    assert installed("claude-code", home.machine, Shelf()) == (True, "2.1.304")


def test_the_newest_native_version_is_taken_when_no_link_tells(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    for version in ("2.1.99", "2.1.325", "2.1.100", "latest"):
        script(home, f".local/share/claude/versions/{version}")

    assert installed("claude-code", home.machine, Shelf()) == (True, "2.1.325")


def test_homebrew_names_a_folder_by_the_version(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    on_path(home, script(home, "Cellar/codex/0.166.0/bin/codex"), "codex")

    assert installed("codex", home.machine, Shelf()) == (True, "0.166.0")


def test_claude_code_is_asked_when_no_file_says(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    on_path(home, script(home, "tools/claude", "#!/bin/sh\necho '2.1.71 (Claude Code)'\n"))
    asked = Machine(home=home.folder, cwd=home.project, environ=home.environ, platform="linux", root=home.root)

    assert installed("claude-code", asked, Shelf()) == (True, "2.1.71")
    assert installed("claude-code", home.machine, Shelf()) == (True, "")


def test_nobody_else_is_ever_started(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    on_path(home, script(home, "tools/codex", f"#!/bin/sh\ntouch {tmp_path}/started\necho 1.2.3\n"), "codex")
    asked = Machine(home=home.folder, cwd=home.project, environ=home.environ, platform="linux", root=home.root)

    assert installed("codex", asked, Shelf()) == (True, "")
    assert not (tmp_path / "started").exists()


def test_a_package_of_another_name_says_nothing(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).json("tools/package.json", {"name": "wrapper", "version": "9.9.9"})
    on_path(home, script(home, "tools/bin/cli.js"))

    assert installed("claude-code", home.machine, Shelf()) == (True, "")


@pytest.mark.parametrize("about", ["{", "[]", '{"name": "@openai/codex", "version": 3}'])
def test_a_broken_package_says_nothing(about: str, tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).file(".local/lib/node_modules/@openai/codex/package.json", about)

    assert installed("codex", home.machine, Shelf()) == (False, "")


def test_an_agent_that_is_not_there_is_not_there(tmp_path: Path) -> None:
    machine = HomeBuilder(tmp_path).machine

    assert {installed(agent, machine, Shelf()) for agent in ("zed", "cursor", "vscode", "claude-code")} == {(False, "")}
