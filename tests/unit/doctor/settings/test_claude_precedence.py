"""Of two places that say something, the one counts that Claude Code listens to."""

from __future__ import annotations

import itertools
import json
import os
import plistlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from pegboard.doctor.facts import AgentState, Setting
from pegboard.doctor.settings.read import read_states
from tests.homes import HomeBuilder

Say = Callable[[HomeBuilder, str, str], object]


def _file(home: HomeBuilder, place: Path, name: str, value: str) -> None:
    home.json(place, {"env": {name: value}})


# The strongest first.
PLACES: dict[str, Say] = {
    "delivered": lambda home, name, value: _file(home, home.claude_folder / "remote-settings.json", name, value),
    "second addition": lambda home, name, value: _file(
        home, home.root / "etc/claude-code/managed-settings.d/20-b.json", name, value
    ),
    "first addition": lambda home, name, value: _file(
        home, home.root / "etc/claude-code/managed-settings.d/10-a.json", name, value
    ),
    "managed": lambda home, name, value: home.managed(env={name: value}),
    "local": lambda home, name, value: home.env(scope="local", **{name: value}),
    "project": lambda home, name, value: home.env(scope="project", **{name: value}),
    "user": lambda home, name, value: home.settings(env={name: value}),
    "environment": lambda home, name, value: home.process(**{name: value}),
    "shell": lambda home, name, value: home.shell(f"export {name}={value}"),
}
SCOPES = {"delivered": "managed", "second addition": "managed", "first addition": "managed"}
PAIRS = list(itertools.combinations(PLACES, 2))


def state_of(home: HomeBuilder, *, project: bool = True) -> AgentState:
    states = [each for each in read_states(home.machine, [home.project]) if each.agent == "claude-code"]
    return states[-1] if project else states[0]


def counting(home: HomeBuilder, name: str = "ENABLE_TOOL_SEARCH") -> Setting:
    setting = state_of(home).setting(name)
    assert setting is not None
    return setting


@pytest.mark.parametrize(("stronger", "weaker"), PAIRS)
def test_the_stronger_of_two_places_counts(stronger: str, weaker: str, tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    PLACES[weaker](home, "ENABLE_TOOL_SEARCH", "weak")
    PLACES[stronger](home, "ENABLE_TOOL_SEARCH", "strong")

    state = state_of(home)

    setting = state.setting("ENABLE_TOOL_SEARCH")
    assert setting is not None
    assert (setting.value, setting.scope) == ("strong", SCOPES.get(stronger, stronger))
    # What a server delivers counts alone among managed ones: the others would not even count without it.
    silent = stronger == "delivered" and weaker in ("second addition", "first addition", "managed")
    assert [each.value for each in state.overridden] == ([] if silent else ["weak"])


@pytest.mark.parametrize(("stronger", "weaker"), PAIRS)
def test_variables_that_only_one_place_sets_are_merged(stronger: str, weaker: str, tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    PLACES[weaker](home, "ENABLE_TOOL_SEARCH", "auto")
    PLACES[stronger](home, "CLAUDE_CODE_USE_BEDROCK", "1")

    names = {each.name for each in state_of(home).settings}

    silent = stronger == "delivered" and weaker in ("second addition", "first addition", "managed")
    assert names == {"CLAUDE_CODE_USE_BEDROCK"} | (set() if silent else {"ENABLE_TOOL_SEARCH"})


def test_what_a_server_delivers_can_ask_for_the_files_to_be_merged(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).managed(env={"ENABLE_TOOL_SEARCH": "auto", "ANTHROPIC_MODEL": "a"})
    delivered = {"managedSourcesBehavior": "merge", "env": {"ENABLE_TOOL_SEARCH": "force"}}
    home.json(home.claude_folder / "remote-settings.json", delivered)

    assert counting(home).value == "force"
    assert counting(home, "ANTHROPIC_MODEL").value == "a"


def test_an_empty_delivery_leaves_the_files_in_force(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).managed(env={"ENABLE_TOOL_SEARCH": "auto"})
    home.json(home.claude_folder / "remote-settings.json", {})

    assert counting(home).scope == "managed"


@pytest.mark.parametrize("scope", ["local", "project", "user"])
def test_a_model_in_a_stronger_file_overrides_one_in_a_weaker(scope: str, tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    order = ["local", "project", "user"]
    for each in order[order.index(scope) :]:
        home.settings(scope=each, model=each)  # type: ignore[arg-type]

    assert counting(home, "model").value == scope


def test_denials_of_all_files_count_together(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    home.settings(permissions={"deny": ["Bash(rm *)", "ToolSearch", " ToolSearch "]})
    home.settings(scope="local", permissions={"deny": ["ToolSearch()"]})
    home.managed(permissions={"deny": ["ToolSearch( * )", "ToolSearchers", "ToolSearch(a)"]})

    state = state_of(home)

    assert [(each.scope, each.value, each.line) for each in state.settings] == [
        ("managed", "ToolSearch( * )", 4),
        ("local", "ToolSearch()", 4),
        ("user", "ToolSearch", 5),
    ]
    assert {each.key for each in state.settings} == {("permissions", "deny")}
    assert state.overridden == ()


def test_an_empty_text_in_a_file_takes_a_variable_of_the_shell_away(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).shell("export ENABLE_TOOL_SEARCH=false").env(ENABLE_TOOL_SEARCH="")

    assert counting(home).value == ""


@pytest.mark.parametrize(("written", "said"), [(False, "false"), (True, "true"), (0, "0"), ("auto:5", "auto:5")])
def test_values_without_quotes_are_taken_as_text(written: object, said: str, tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).settings(env={"ENABLE_TOOL_SEARCH": written})

    assert counting(home).value == said


def test_a_moved_folder_has_the_users_files(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).env(ENABLE_TOOL_SEARCH="false").server("old")
    home.process(CLAUDE_CONFIG_DIR=str(home.folder / "moved")).env(ENABLE_TOOL_SEARCH="auto").server("new")

    state = state_of(home)

    assert counting(home).value == "auto"
    assert [each.name for each in state.servers] == ["new"]
    assert state.setting("CLAUDE_CONFIG_DIR") is not None


def test_in_the_home_folder_the_projects_file_is_the_users(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).env(ENABLE_TOOL_SEARCH="false")
    home.json(".claude/settings.local.json", {"env": {"ENABLE_TOOL_SEARCH": "auto"}})

    states = [each for each in read_states(home.machine, [home.folder]) if each.agent == "claude-code"]

    assert [[each.scope for each in (*state.settings, *state.overridden)] for state in states] == [
        ["user"],
        ["local", "user"],
    ]


def test_a_folder_without_anything_of_its_own_has_no_state(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).env(ENABLE_TOOL_SEARCH="false").server("github")

    states = read_states(home.machine, [home.project, home.folder / "gone", home.project])

    assert {state.project for state in states} == {""}


def test_a_folder_below_one_with_servers_has_them(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).server("github", scope="project").server("db", scope="local")
    inner = home.project / "packages" / "parser"
    inner.mkdir(parents=True)

    [_, state] = [each for each in read_states(home.machine, [inner]) if each.agent == "claude-code"]

    assert [(each.name, each.project) for each in state.servers] == [
        ("db", str(home.project)),
        ("github", str(home.project)),
    ]


def test_states_say_when_their_files_were_written_but_for_those_that_are_always_written(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).env(ENABLE_TOOL_SEARCH="false").server("github").server("gh", scope="project")
    os.utime(home.folder / ".claude/settings.json", (1_000, 1_000))
    os.utime(home.project / ".mcp.json", (2_000, 2_000))

    plain, own = (state_of(home, project=each) for each in (False, True))

    assert (plain.changed_at, own.changed_at) == (1_000, 2_000)
    assert [setting.changed_at for setting in own.settings] == [1_000]
    assert {server.name: server.changed_at for server in own.servers} == {"gh": 2_000, "github": 0}


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_managed_files_have_their_own_place_on_every_platform(platform: str, tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    folder = {"darwin": "Library/Application Support/ClaudeCode", "win32": "Program Files/ClaudeCode"}[platform]
    home.json(home.root / folder / "managed-settings.json", {"env": {"ENABLE_TOOL_SEARCH": "false"}})

    setting = read_states(msgspec.structs.replace(home.machine, platform=platform))[0].setting("ENABLE_TOOL_SEARCH")
    assert setting is not None
    assert setting.scope == "managed"
    assert not setting.editable


@pytest.mark.parametrize("form", [plistlib.FMT_BINARY, plistlib.FMT_XML])
def test_what_a_company_manages_on_macs_comes_before_its_files(form: plistlib.PlistFormat, tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    folder = home.root / "Library/Application Support/ClaudeCode"
    home.json(folder / "managed-settings.json", {"env": {"ENABLE_TOOL_SEARCH": "auto", "ANTHROPIC_MODEL": "a"}})
    profile = home.root / "Library/Managed Preferences/com.anthropic.claudecode.plist"
    profile.parent.mkdir(parents=True)
    profile.write_bytes(plistlib.dumps({"env": {"ENABLE_TOOL_SEARCH": "false"}}, fmt=form))

    state = read_states(msgspec.structs.replace(home.machine, platform="darwin"))[0]

    assert [(each.name, each.value, each.scope) for each in state.settings] == [
        ("ENABLE_TOOL_SEARCH", "false", "managed")
    ]


def test_a_broken_profile_of_a_mac_is_a_problem(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    profile = home.root / "Library/Managed Preferences/ada/com.anthropic.claudecode.plist"
    profile.parent.mkdir(parents=True)
    profile.write_bytes(b"bplist00 and no more")

    state = read_states(msgspec.structs.replace(home.machine, platform="darwin"))[0]

    assert state.problems[0].startswith(f"{profile}: not a valid property list")


def test_every_file_that_has_a_say_is_named_whether_it_is_there_or_not(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).env(scope="project", ENABLE_TOOL_SEARCH="false")

    looked = {str(file.relative_to(tmp_path)) for file in state_of(home).looked_at}

    assert {
        "etc/claude-code/managed-settings.json",
        "etc/claude-code/managed-mcp.json",
        "home/ada/.claude/remote-settings.json",
        "home/ada/.claude/settings.json",
        "home/ada/.claude.json",
        "home/ada/code/engine/.claude/settings.json",
        "home/ada/code/engine/.claude/settings.local.json",
        "home/ada/code/engine/.mcp.json",
        "home/ada/.zshrc",
        "home/ada/.profile",
    } <= looked


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", "not valid JSON, line 1"),
        (b"[]", "should hold a table of settings, but is a list"),
        (b"\xff\xfe", "not UTF-8"),
        (b'{"env": []}', "`env` should be a table of variables, but is a list"),
        (b'{"env": {"ENABLE_TOOL_SEARCH": {}}}', "`env.ENABLE_TOOL_SEARCH` should be text, but is a table"),
        (b'{"permissions": {"deny": "ToolSearch"}}', "`permissions.deny` should be a list, but is text"),
    ],
)
def test_a_broken_file_is_a_problem_and_stops_no_other(content: bytes, problem: str, tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).env(ENABLE_TOOL_SEARCH="auto")
    broken = home.project / ".claude" / "settings.json"
    broken.parent.mkdir()
    broken.write_bytes(content)

    state = state_of(home)

    assert len(state.problems) == 1
    assert state.problems[0].startswith(f"{broken}: {problem}")
    assert counting(home).value == "auto"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_a_problem(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).env(ENABLE_TOOL_SEARCH="auto")
    (home.folder / ".claude/settings.json").chmod(0)

    assert "Permission denied" in state_of(home).problems[0]


def test_a_pipe_in_place_of_a_file_is_a_problem_and_is_not_waited_for(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).env(scope="local", ENABLE_TOOL_SEARCH="auto")
    os.mkfifo(home.project / ".claude" / "settings.json")

    assert state_of(home).problems == (f"{home.project / '.claude' / 'settings.json'}: not a file",)


def test_a_file_with_a_mark_and_windows_lines_says_the_right_line(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    text = json.dumps({"a": 1, "env": {"ENABLE_TOOL_SEARCH": "false"}}, indent=1).replace("\n", "\r\n")
    file = home.folder / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_bytes(b"\xef\xbb\xbf" + text.encode())

    assert counting(home).line == 4
