"""The command line as a person uses it: real processes, real exit codes, words and no tracebacks."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flow.shell import Shell
from tests.servers import example_command, plain_command

BROKEN = "import sys; print('the licence has expired', file=sys.stderr); sys.exit(3)"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_without_any_configuration_it_says_how_to_begin(shell: Shell) -> None:
    done = shell.run("tools", code=1)
    assert "No servers are configured" in done.stderr
    assert "pegboard import" in done.stderr


def test_an_empty_configuration_is_named(shell: Shell) -> None:
    (shell.folder / "pegboard.toml").write_text("")
    assert "pegboard.toml" in shell.run("servers", code=1).stderr


def test_tools_before_the_first_refresh_says_who_was_not_asked_and_starts_nobody(shell: Shell) -> None:
    shell.plain("one")
    done = shell.run("tools")
    assert done.stdout == ""
    assert "Not listed yet: one" in done.stderr
    assert not shell.started("one")


def test_refresh_then_tools_then_show_then_call(shell: Shell) -> None:
    shell.plain("one", "--tools", "3", extra='exclude = ["tool_00[12]"]\ntags = ["demo"]')
    refreshed = shell.run("refresh")
    assert "✓ one: 10 tools (+10)" in refreshed.stdout
    assert "1 of 1 servers answered; 10 tools may be used." in refreshed.stdout
    tools = shell.run("tools").stdout
    assert "one__echo" in tools
    assert "one__tool_001" not in tools
    assert "left out: one tool_001: " in shell.run("tools", "--refused").stdout
    shown = shell.run("show", "echo").stdout
    assert "server       one" in shown
    assert '"required"' in shown
    assert "tags         demo" in shown
    assert shell.run("call", "one__echo", '{"text": "hello"}').stdout == "hello\n"


def test_tools_can_be_narrowed_by_pattern_and_by_server(shell: Shell) -> None:
    shell.plain("one")
    shell.plain("two")
    shell.run("refresh")
    assert [tool["name"] for tool in shell.json("tools", "*ech*")["tools"]] == ["one__echo", "two__echo"]
    assert [tool["name"] for tool in shell.json("tools", "echo", "--server", "two")["tools"]] == ["two__echo"]
    assert "Did you mean two" in shell.run("tools", "--server", "tow", code=1).stderr


def test_the_roster_shows_state_source_age_and_how_to_mend(shell: Shell) -> None:
    shell.plain("good")
    shell.plain("off", extra="enabled = false")
    shell.plain("gated", extra='requires = { command = ["no-such-program"] }')
    shell.server("missing", ["no-such-command"])
    shell.server("broken", [sys.executable, "-c", BROKEN])
    shell.run("refresh", code=1)
    rows = {row["name"]: row for row in shell.json("servers")["servers"]}
    assert {name: row["state"] for name, row in rows.items()} == {
        "good": "idle",
        "off": "disabled",
        "gated": "unavailable",
        "missing": "error",
        "broken": "error",
    }
    assert rows["good"]["source"] == "cache"
    assert rows["good"]["tools"] == 9
    assert rows["good"]["age_seconds"] >= 0
    assert "needs no-such-program on PATH" in rows["gated"]["reason"]
    assert "'no-such-command' was not found on PATH" in rows["missing"]["reason"]
    assert "exited with code 3" in rows["broken"]["reason"]
    assert "the licence has expired" in rows["broken"]["hint"]
    text = shell.run("servers").stdout
    assert "the licence has expired" in text
    assert "server" in text.splitlines()[0]


def test_a_refused_name_is_told_by_the_check_the_roster_and_the_refresh(shell: Shell) -> None:
    shell.plain("good")
    shell.plain("pegboard")
    checked = shell.run("config", "check", code=1).stdout
    assert "pegboard.toml: servers.pegboard: the name 'pegboard' is kept" in checked
    assert "- pegboard: the name 'pegboard' is kept" in shell.run("refresh").stdout
    assert not shell.started("pegboard")


def test_the_roster_shows_what_the_configuration_warns_of(shell: Shell) -> None:
    shell.plain("one")
    warned = shell.run("--set", 'tools.plugin_dirs=["nowhere"]', "servers").stderr
    assert "nowhere: plug-in folder cannot be read" in warned


def test_a_pattern_that_matches_no_tool_says_so(shell: Shell) -> None:
    shell.plain("one")
    shell.run("refresh")
    assert "None of the 9 tools match." in shell.run("tools", "nothing*").stderr


def test_the_roster_can_be_asked_live(shell: Shell) -> None:
    shell.plain("one")
    shell.server("missing", ["no-such-command"])
    shell.plain("gated")
    shell.run("refresh", "gated")
    gate = 'servers.gated.requires.env=["NOT_SET_ANYWHERE"]'
    rows = {row["name"]: row for row in shell.json("servers", "--live", "--set", gate)["servers"]}
    assert rows["one"]["source"] == "live"
    assert rows["gated"]["source"] == "cache"
    assert rows["missing"]["state"] == "error"
    assert shell.started("one")


def test_a_server_that_works_again_is_no_longer_in_error(shell: Shell) -> None:
    script = shell.folder / "server.py"
    command = plain_command()
    shell.server("one", [sys.executable, str(script)])
    shell.run("refresh", code=1)
    assert shell.json("servers")["servers"][0]["state"] == "error"
    script.write_bytes(Path(next(each for each in command if each.endswith("plain.py"))).read_bytes())
    shell.run("call", "one__echo", '{"text": "x"}')
    assert shell.json("servers")["servers"][0]["state"] == "idle"


def test_a_failing_refresh_reports_each_server_and_exits_with_1(shell: Shell) -> None:
    shell.plain("good")
    shell.server("broken", [sys.executable, "-c", BROKEN])
    done = shell.run("refresh", code=1)
    assert "✓ good" in done.stdout
    assert "✗ broken: its process exited with code 3 before it was ready" in done.stdout
    outcome = {row["server"]: row for row in shell.json("refresh", code=1)["servers"]}
    assert outcome["broken"]["error"]
    assert outcome["good"]["tools"] == 9


def test_a_server_that_talks_on_stdout_before_it_fails_is_quoted(shell: Shell) -> None:
    shell.server("usage", ["sh", "-c", "echo 'usage: server --stdio'; exit 2"])
    shell.server("chatty", ["sh", "-c", "echo Welcome; cat >/dev/null"], extra="start_timeout = 1")
    rows = {row["server"]: row for row in shell.json("refresh", code=1)["servers"]}
    assert "the first line: 'usage: server --stdio'" in rows["usage"]["hint"]
    assert "the first line: 'Welcome'" in rows["chatty"]["hint"]


def test_a_server_that_cannot_be_reached_says_what_to_mend(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    done = shell.run("--set", f"servers.far.url=http://127.0.0.1:{port}/mcp", "refresh", code=1)
    assert f"far: 127.0.0.1:{port} cannot be reached" in done.stdout
    assert "mend `url` of servers.far" in done.stdout


def test_a_bare_name_that_nobody_listed_says_who_was_not_asked(shell: Shell) -> None:
    shell.plain("one")
    done = shell.run("call", "echo", code=1)
    assert "Not listed yet: one; `pegboard refresh` asks" in done.stderr


def test_refresh_of_an_unknown_server_names_the_nearest(shell: Shell) -> None:
    shell.plain("github")
    done = shell.run("refresh", "gihub", code=1)
    assert "There is no server named 'gihub'" in done.stderr
    assert "Did you mean github?" in done.stderr


def test_an_unknown_tool_is_answered_with_the_nearest_names(shell: Shell) -> None:
    shell.plain("one")
    shell.run("refresh")
    done = shell.run("call", "one__ecko", "{}", code=1)
    assert "There is no tool named 'one__ecko'" in done.stderr
    assert "one__echo" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("nope", "are not JSON"),
        ("[1]", "not an array"),
        ("@missing.json", "The arguments in missing.json cannot be read"),
    ],
)
def test_wrong_arguments_are_answered_with_the_schema(shell: Shell, arguments: str, words: str) -> None:
    shell.plain("one")
    shell.run("refresh")
    done = shell.run("call", "one__echo", arguments, code=1)
    assert words in done.stderr
    assert '"required":["text"]' in done.stderr


def test_arguments_that_the_server_turns_down_are_held_against_the_schema(shell: Shell) -> None:
    shell.server("units", example_command("units"))
    done = shell.run("call", "units__convert", '{"value": "x", "to_unit": "km"}', code=1)
    assert "from_unit is missing; value must be of type number, not a string" in done.stderr
    assert '"required":["value","from_unit","to_unit"]' in done.stderr


def test_wrong_arguments_give_scripts_the_schema_too(shell: Shell) -> None:
    shell.plain("one")
    assert shell.json("call", "one__echo", "[1]", code=1)["error"]["schema"]["required"] == ["text"]


@pytest.mark.parametrize("value", ["-1", "0", "nan", "inf", "soon"])
def test_a_timeout_is_a_length_of_time(shell: Shell, value: str) -> None:
    shell.plain("one")
    assert "argument --timeout: expected seconds" in shell.run("call", "one__echo", f"--timeout={value}", code=2).stderr
    assert not shell.started("one")


def test_arguments_may_come_from_stdin_or_a_file(shell: Shell) -> None:
    shell.plain("one")
    shell.run("refresh")
    assert shell.run("call", "one__echo", "-", stdin='{"text": "piped"}').stdout == "piped\n"
    (shell.folder / "arguments.json").write_text('{"text": "filed"}')
    assert shell.run("call", "one__echo", "@arguments.json").stdout == "filed\n"


def test_a_tool_that_fails_prints_its_words_and_exits_with_1(shell: Shell) -> None:
    shell.plain("one")
    assert "It failed" in shell.run("call", "one__fail", code=1).stdout
    assert shell.json("call", "one__fail", code=1)["isError"] is True


def test_progress_goes_to_stderr(shell: Shell) -> None:
    shell.plain("one")
    done = shell.run("call", "one__progress")
    assert done.stdout == "3 steps\n"
    assert "… 1 of 3" in done.stderr


def test_a_call_that_takes_too_long_says_so(shell: Shell) -> None:
    shell.plain("one")
    done = shell.run("call", "one__slow", '{"seconds": 20}', "--timeout", "0.3", code=1)
    assert "one: no answer to tools/call within 0.3 s" in done.stderr
    assert "call_timeout" in done.stderr


def test_a_file_of_another_program_works_as_it_is(shell: Shell) -> None:
    program, *arguments = plain_command()
    servers = {"mcpServers": {"one": {"command": program, "args": arguments}}}
    (shell.folder / ".mcp.json").write_text(json.dumps(servers))
    cache = f'store.cache_dir="{shell.folder}/cache"'
    assert "✓ one" in shell.run("--config", ".mcp.json", "--set", cache, "refresh").stdout
    assert "one__echo" in shell.run("tools", "--config", ".mcp.json", "--set", cache).stdout


def test_errors_are_json_when_json_was_asked_for(shell: Shell) -> None:
    shell.plain("one")
    error = json.loads(shell.run("show", "nothing", "--json", code=1).stdout)["error"]
    assert error["type"] == "ToolNotFound"
    assert error["message"]


def test_a_reader_that_goes_away_is_no_error(shell: Shell) -> None:
    shell.plain("one", "--tools", "999")
    shell.run("refresh")
    command = f"{sys.executable} -m pegboard tools | head -n 1"
    done = subprocess.run(
        command, shell=True, cwd=shell.folder, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.stdout.startswith("one__")
    assert done.stderr == ""


def test_what_a_server_says_cannot_steer_the_terminal(shell: Shell) -> None:
    script = shell.folder / "server.py"
    source = Path(next(each for each in plain_command() if each.endswith("plain.py"))).read_text()
    script.write_text(source.replace("Returns the text it is given.", "\\u001b[2J\\u202eevil\\u200b"))
    shell.server("one", [sys.executable, str(script)])
    shell.run("refresh")
    shown = shell.run("tools").stdout + shell.run("show", "one__echo").stdout
    assert "evil" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_version_and_help(shell: Shell) -> None:
    assert shell.run("--version").stdout.startswith("pegboard ")
    assert "commands:" in shell.run("--help").stdout
    assert "usage: pegboard call" in shell.run("call", "--help").stdout
    assert "invalid choice" in shell.run("nonsense", code=2).stderr
