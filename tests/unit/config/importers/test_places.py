"""Where each program's settings lie on each platform."""

from __future__ import annotations

import json

import pytest

from tests.unit.config.importers.machine import Machine

IT = json.dumps({key: {"it": {"command": "x"}} for key in ("mcpServers", "servers", "context_servers")})
STORAGE = "User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
MAC = "Library/Application Support"
ROAMING = "AppData/Roaming"
PACKAGED = "AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude"


@pytest.mark.parametrize(
    ("platform", "source", "place"),
    [
        ("linux", "claude-desktop", ".config/Claude/claude_desktop_config.json"),
        ("darwin", "claude-desktop", f"{MAC}/Claude/claude_desktop_config.json"),
        ("win32", "claude-desktop", f"{ROAMING}/Claude/claude_desktop_config.json"),
        ("win32", "claude-desktop", f"{PACKAGED}/claude_desktop_config.json"),
        ("linux", "vscode:user", ".config/Code/User/mcp.json"),
        ("darwin", "vscode:user", f"{MAC}/Code/User/mcp.json"),
        ("win32", "vscode:user", f"{ROAMING}/Code/User/mcp.json"),
        ("linux", "cline:extension", f".config/Code/{STORAGE}"),
        ("darwin", "cline:extension", f"{MAC}/Code/{STORAGE}"),
        ("win32", "cline:extension", f"{ROAMING}/Code/{STORAGE}"),
        ("linux", "zed:user", ".config/zed/settings.json"),
        ("darwin", "zed:user", ".config/zed/settings.json"),
        ("win32", "zed:user", f"{ROAMING}/Zed/settings.json"),
        ("darwin", "cursor:user", ".cursor/mcp.json"),
        ("win32", "windsurf", ".codeium/windsurf/mcp_config.json"),
        ("linux", "windsurf", ".codeium/mcp_config.json"),
        ("darwin", "gemini:user", ".gemini/settings.json"),
    ],
)
def test_a_program_is_found_where_it_keeps_its_settings(tmp_path, platform, source, place):
    machine = Machine(tmp_path, platform)
    file = machine.put(place, IT)

    assert [item.file for item in machine.found(source).values()] == [file]


@pytest.mark.parametrize(
    ("variable", "platform", "place", "source"),
    [
        ("XDG_CONFIG_HOME", "linux", "Code/User/mcp.json", "vscode:user"),
        ("XDG_CONFIG_HOME", "linux", "zed/settings.json", "zed:user"),
        ("XDG_CONFIG_HOME", "darwin", "zed/settings.json", "zed:user"),
        ("APPDATA", "win32", "Code/User/mcp.json", "vscode:user"),
        ("LOCALAPPDATA", "win32", f"{PACKAGED.partition('Local/')[2]}/claude_desktop_config.json", "claude-desktop"),
        ("GEMINI_CLI_HOME", "linux", ".gemini/settings.json", "gemini:user"),
    ],
)
def test_a_variable_moves_the_settings(tmp_path, variable, platform, place, source):
    machine = Machine(tmp_path, platform)
    machine.environ[variable] = str(tmp_path / "moved")
    machine.put(tmp_path / "moved" / place, IT)

    assert list(machine.found(source)) == ["it"]


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("claude-code:project", ".mcp.json"),
        ("cursor:project", ".cursor/mcp.json"),
        ("vscode:project", ".vscode/mcp.json"),
        ("gemini:project", ".gemini/settings.json"),
        ("zed:project", ".zed/settings.json"),
    ],
)
def test_a_projects_settings_are_found_from_a_folder_inside_it(tmp_path, source, place):
    machine = Machine(tmp_path)
    machine.put(machine.project / place, IT)
    machine.cwd = machine.project / "src" / "deep"
    machine.cwd.mkdir(parents=True)

    assert list(machine.found(source)) == ["it"]


def test_the_nearest_project_counts(tmp_path):
    machine = Machine(tmp_path)
    machine.put(machine.project.parent / ".cursor" / "mcp.json", '{"mcpServers": {"outer": {"command": "x"}}}')
    machine.put(machine.project / ".cursor" / "mcp.json", '{"mcpServers": {"inner": {"command": "y"}}}')

    assert list(machine.found("cursor:project")) == ["inner"]


def test_nothing_above_the_home_folder_is_looked_at(tmp_path):
    machine = Machine(tmp_path)
    machine.put(tmp_path / ".mcp.json", IT)

    assert machine.find() == ()


def test_a_working_folder_outside_the_home_folder_is_searched_to_the_top(tmp_path):
    machine = Machine(tmp_path)
    machine.cwd = tmp_path / "srv" / "app"
    machine.put(tmp_path / "srv" / ".mcp.json", IT)

    assert list(machine.found("claude-code:project")) == ["it"]
