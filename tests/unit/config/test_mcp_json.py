"""Other programs' JSON files, as they are."""

from __future__ import annotations

import pytest

from pegboard.config.model import ServerConfig
from pegboard.errors import ConfigError


def servers(place, entry, *, name=".mcp.json", **variables):
    path = place.write_json({"mcpServers": {"a": entry}}, name)
    return place.load(files=[path], **variables)


def launch(config: ServerConfig) -> tuple[object, ...]:
    return config.command, config.args, config.url, config.transport


CLAUDE = """\
{
  // project servers
  "mcpServers": {
    "github": {
      "type": "stdio",
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-github"],
      "env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}"},
      "alwaysLoad": true,
      "timeout": 60000,
    },
    "docs": {"type": "http", "url": "${BASE:-https://docs.example.org}/mcp", "headers": {"X-Key": "${KEY}"}},
    "old": {"type": "sse", "url": "https://old.example.org/sse"},
  },
}
"""


def test_claude_codes_project_file_works_as_it_is(place):
    path = place.write(CLAUDE, ".mcp.json")
    config = place.load(files=[path], GITHUB_TOKEN="t", KEY="k")
    github, docs, old = (config.servers[name] for name in ("github", "docs", "old"))
    assert launch(github.config) == ("npx", ("-y", "@modelcontextprotocol/server-github"), None, "stdio")
    assert (github.config.env, github.config.lazy, github.config.call_timeout) == ({"GITHUB_TOKEN": "t"}, False, 60.0)
    assert launch(docs.config) == (None, (), "https://docs.example.org/mcp", "http")
    assert docs.config.headers == {"X-Key": "k"}
    assert old.transport == "sse"
    assert {server.origin for server in config.servers.values()} == {path}
    assert [server.problem for server in config.servers.values()] == ["", "", ""]
    assert config.warnings == ()


@pytest.mark.parametrize(
    "document",
    [
        {"servers": {"a": {"command": "x"}}, "inputs": [{"id": "key", "type": "promptString"}]},
        {"mcp": {"servers": {"a": {"command": "x"}}}, "editor.fontSize": 12},
        {"mcpServers": {"a": {"command": "x"}}, "numStartups": 3},
        {"mcpServers": {}, "servers": {"a": {"command": "x"}}},
    ],
)
def test_every_common_shape_is_understood(place, document):
    path = place.write_json(document, "mcp.json")
    config = place.load(files=[path])
    assert [(name, spec.config.command) for name, spec in config.servers.items()] == [("a", "x")]
    assert config.warnings == ()


@pytest.mark.parametrize("text", ["{}", "[]", "3", '{"mcpServers": []}', '{"mcp": {"a": {"command": ["x"]}}}'])
def test_a_file_in_no_known_shape_says_which_are_known(place, text):
    path = place.write(text, "other.json")
    with pytest.raises(ConfigError) as caught:
        place.load(files=[path])
    assert "mcpServers" in str(caught.value)
    assert '"servers"' in str(caught.value)


def test_json_that_is_broken_is_told_with_its_line(place):
    path = place.write('{\n "mcpServers": {\n  "a": {"command" "x"}\n}}', "x.jsonc")
    assert place.problems(files=[path])[0].startswith("x.jsonc:3: not valid JSON: ")


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"command": "x"}, ("x", (), None, None)),
        ({"url": "https://x.org"}, (None, (), "https://x.org", None)),
        ({"serverUrl": "https://x.org"}, (None, (), "https://x.org", None)),
        ({"httpUrl": "https://x.org"}, (None, (), "https://x.org", None)),
        ({"httpUrl": "https://x.org", "url": "https://y.org"}, (None, (), "https://x.org", None)),
        ({"type": "streamable-http", "url": "https://x.org"}, (None, (), "https://x.org", "http")),
        ({"type": "streamableHttp", "url": "https://x.org"}, (None, (), "https://x.org", "http")),
        ({"type": "SSE", "url": "https://x.org"}, (None, (), "https://x.org", "sse")),
        ({"transport": "sse", "url": "https://x.org"}, (None, (), "https://x.org", "sse")),
        ({"command": "x", "args": ["--port", 80], "url": None}, ("x", ("--port", "80"), None, None)),
    ],
)
def test_each_program_says_it_in_its_own_way(place, entry, expected):
    spec = servers(place, entry).servers["a"]
    assert launch(spec.config) == expected
    assert spec.problem == ""


@pytest.mark.parametrize(
    ("entry", "enabled"),
    [
        ({"disabled": True}, False),
        ({"disabled": False}, True),
        ({"enabled": False}, False),
        ({"enabled": False, "disabled": False}, False),
    ],
)
def test_a_server_that_is_switched_off_stays_off(place, entry, enabled):
    assert servers(place, {"command": "x", **entry}).servers["a"].config.enabled is enabled


@pytest.mark.parametrize(("said", "seconds"), [(60_000, 60.0), (1000, 1.0), (999, 999.0), (30, 30.0), (2500.0, 2.5)])
def test_a_timeout_is_in_milliseconds_unless_that_makes_no_sense(place, said, seconds):
    assert servers(place, {"command": "x", "timeout": said}).servers["a"].config.call_timeout == seconds


def test_variables_that_are_no_strings_become_strings_and_null_is_nothing(place):
    entry = {"command": "x", "env": {"PORT": 8080, "DEBUG": True, "RATIO": 0.5, "GONE": None}}
    assert servers(place, entry).servers["a"].config.env == {"PORT": "8080", "DEBUG": "true", "RATIO": "0.5"}


def test_editors_references_are_filled_in(place):
    entry = {
        "command": "${workspaceFolder}/run",
        "args": ["${userHome}", "${workspaceFolderBasename}", "${env:A}${pathSeparator}${/}"],
    }
    config = servers(place, entry, name=".vscode/mcp.json", A="1").servers["a"].config
    assert config.command == f"{place.project}/run"
    assert config.args == (str(place.home), "project", "1//")


def test_a_value_an_editor_would_ask_for_is_a_fault_that_says_what_to_do(place):
    entry = {"command": "x", "env": {"KEY": "${input:api-key}"}}
    problem = servers(place, entry).servers["a"].problem
    assert ".mcp.json:6: mcpServers.a.env.KEY: ${input:api-key} is asked for by an editor" in problem
    assert "${VARIABLE}" in problem


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("npx server", "mcpServers.a: expected a table, got a string"),
        ({}, "mcpServers.a: needs a command (a local server) or a url (a remote one)"),
        ({"type": "ws", "url": "wss://x"}, 'mcpServers.a.type: "ws" is not supported; Pegboard speaks stdio, http'),
        ({"type": 3, "command": "x"}, "mcpServers.a.type: this is not supported"),
        ({"command": "x", "args": "y"}, "mcpServers.a.args: expected a list of strings, got a string"),
        ({"command": ["x", "y"]}, "mcpServers.a.command: expected a string, got a list"),
        ({"command": "x", "env": {"A": {}}}, "mcpServers.a.env.A: expected a string, got a table"),
        ({"command": "x", "url": "https://x.org"}, "mcpServers.a.url: a server has a command or a url, not both"),
        ({"serverUrl": "x.org"}, "mcpServers.a.serverUrl: expected an address such as https://example.org/mcp"),
        ({"type": "http", "command": "x"}, "mcpServers.a.type: http needs a url, but the server has a command"),
        ({"command": "x", "disabled": "yes"}, "mcpServers.a.disabled: expected true or false, got a string"),
        ({"command": "x", "timeout": "1m"}, "mcpServers.a.timeout: expected a number, got a string"),
        ({"command": "x", "timeout": 0}, "mcpServers.a.timeout: must be greater than 0, got 0"),
        ({"command": "${"}, "mcpServers.a.command: the ${ at character 1 is not closed"),
    ],
)
def test_a_broken_entry_is_a_server_with_its_reason_and_stops_no_other(place, entry, told):
    path = place.write_json({"mcpServers": {"good": {"command": "x"}, "a": entry}})
    config = place.load(files=[path])
    assert told in config.servers["a"].problem
    assert config.servers["a"].problem.startswith(f"{path}:")
    assert config.servers["good"].problem == ""


def test_a_transport_that_is_not_spoken_is_the_only_thing_told_of_its_entry(place):
    problem = servers(place, {"type": "ws", "url": "wss://x.org"}).servers["a"].problem
    assert "address" not in problem
    assert problem.count("mcpServers.a") == 1


def test_a_broken_entry_that_is_disabled_is_a_warning(place):
    config = servers(place, {"type": "ws", "url": "wss://x.org", "disabled": True})
    assert config.servers["a"].problem == ""
    assert "servers.a is disabled" in config.warnings[0]


def test_a_variable_that_is_not_set_is_told_in_the_files_own_words(place):
    spec = servers(place, {"serverUrl": "https://${HOST}/"}).servers["a"]
    assert spec.problem == (f"environment variable HOST is not set; mcpServers.a.serverUrl in {spec.origin}:4 needs it")


def test_keys_that_only_another_program_knows_are_a_warning(place):
    entry = {"command": "x", "autoApprove": ["y"], "trust": True, "description": "mine", "name": "a"}
    config = servers(place, entry)
    (warning,) = config.warnings
    assert warning.endswith(".mcp.json:3: mcpServers.a: ignored, as only another program knows it: autoApprove, trust")


def test_a_slip_in_a_key_is_told_with_the_key_that_was_meant(place):
    (warning,) = servers(place, {"command": "x", "arg": ["y"], "alwaysAllow": []}).warnings
    assert warning.endswith("only another program knows it: arg (did you mean args?), alwaysAllow")


def test_a_server_without_a_name_is_an_error(place):
    path = place.write('{"mcpServers": {"": {"command": "x"}}}', "m.json")
    assert place.problems(files=[path]) == ['m.json:1: mcpServers."": a server needs a name']


def test_a_stronger_json_entry_replaces_the_whole_server(place):
    weak = place.write("[servers.a]\ncommand = 'x'\nargs = ['y']\ntags = ['t']\n", "weak.toml")
    strong = place.write_json({"mcpServers": {"a": {"url": "https://x.org"}}})
    server = place.load(files=[weak, strong]).servers["a"]
    assert (launch(server.config), server.config.tags) == ((None, (), "https://x.org", None), ())
    assert server.origin == strong


def test_a_stronger_toml_file_adds_to_a_json_entry(place):
    weak = place.write_json({"mcpServers": {"a": {"command": "x", "args": ["y"]}}})
    strong = place.write("[servers.a]\ninclude = ['read_*']\n", "strong.toml")
    server = place.load(files=[weak, strong]).servers["a"]
    assert (server.config.command, server.config.args, server.config.include) == ("x", ("y",), ("read_*",))
    assert server.origin == weak


def test_a_fault_of_a_weaker_json_entry_is_forgotten_with_it(place):
    weak = place.write_json({"mcpServers": {"a": {"type": "ws", "url": "wss://x"}}}, "weak.json")
    strong = place.write_json({"mcpServers": {"a": {"command": "x"}}}, "strong.json")
    assert place.load(files=[weak, strong]).servers["a"].problem == ""
    assert place.load(files=[strong, weak]).servers["a"].problem != ""


def test_relative_paths_start_at_the_json_file(place):
    config = servers(place, {"command": "./run", "cwd": "w"}, name="sub/mcp.json").servers["a"].config
    assert (config.command, config.cwd) == (f"{place.project}/sub/run", f"{place.project}/sub/w")
