"""Whether an agent runs is told by the list of processes."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pegboard.doctor.settings.processes import agent_of, running, words_of
from pegboard.doctor.settings.read import read_states
from tests.homes import HomeBuilder


@pytest.mark.parametrize(
    ("words", "agent"),
    [
        (["claude"], "claude-code"),
        (["claude --resume"], None),
        (["/home/ada/.local/bin/claude", "-p", "hi"], "claude-code"),
        (["/home/ada/.local/share/claude/versions/2.1.325"], "claude-code"),
        (["node", "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js"], "claude-code"),
        (["node", "--max-old-space-size=8192", "/usr/bin/gemini"], "gemini"),
        (["bun", "/x/node_modules/opencode-ai/bin/opencode"], "opencode"),
        (["/x/@openai/codex/vendor/x86_64/codex/codex", "exec"], "codex"),
        (["C:\\Program Files\\nodejs\\node.exe", "C:\\npm\\node_modules\\@kilocode\\cli\\bin\\kilo"], "kilo"),
        (["node", "/x/node_modules/cline/cli.mjs"], "cline"),
        (["/usr/lib/zed/zed-editor"], "zed"),
        (["/usr/share/code/code", "--unity-launch"], "vscode"),
        (["/Applications/Visual", "Studio", "Code.app/Contents/MacOS/Electron"], "vscode"),
        (["/Applications/Cursor.app/Contents/MacOS/Cursor"], "cursor"),
        (["/usr/share/windsurf/windsurf"], "vscode"),
        (["/h/.vscode-server/bin/1a2b/node", "/h/.vscode-server/out/bootstrap-fork", "--type=extensionHost"], "vscode"),
        (["/h/.cursor-server/bin/1a2b/node", "/h/.cursor-server/out/bootstrap-fork", "--type=extensionHost"], "cursor"),
        (["/h/.vscode-server/bin/1a2b/node", "/h/.vscode-server/out/server-main.js"], None),
        (["vim", "/home/ada/claude"], None),
        (["grep", "claude"], None),
        (["node", "server.js", "/x/@openai/codex/"], None),
        (["python", "claude"], None),
        ([], None),
    ],
)
def test_an_agent_is_known_by_how_it_was_started(words: list[str], agent: str | None) -> None:
    assert agent_of(words) == agent


def test_states_say_whether_their_agent_runs(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).runs("bash").runs("claude").runs("node", "/x/node_modules/cline/cli.mjs")

    assert [state.agent for state in read_states(home.machine) if state.running] == ["claude-code", "cline"]


def test_a_process_that_calls_itself_by_a_title_is_known(tmp_path: Path) -> None:
    assert running(HomeBuilder(tmp_path).runs("opencode run  ").machine) == {"opencode"}


def test_without_a_list_nothing_runs(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    (tmp_path / "proc" / "12").mkdir(parents=True)
    (tmp_path / "proc" / "self").mkdir()

    assert running(home.machine) == frozenset()


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_where_nothing_may_be_started_nothing_is_asked(platform: str, tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).runs("claude")

    assert running(msgspec.structs.replace(home.machine, platform=platform)) == frozenset()


def test_a_command_line_of_windows_is_taken_apart() -> None:
    line = r'"C:\Program Files\nodejs\node.exe" --no-warnings "C:\npm\node_modules\@openai\codex\bin\codex.js" exec'

    assert agent_of(words_of(line)) == "codex"
