"""All sources together: broken files, duplicates, keys, and entries that are not what they should be."""

from __future__ import annotations

import json
import os

import pytest

from pegboard.config.importers import SOURCES
from pegboard.config.load import examine
from pegboard.config.model import ServerConfig
from pegboard.config.write import append_servers
from tests.unit.config.importers.machine import Machine

GITHUB = {"command": "npx", "args": ["-y", "server-github"]}


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def put_cursor(machine, servers):
    return machine.put(".cursor/mcp.json", json.dumps({"mcpServers": servers}))


def put_claude(machine, servers):
    return machine.put(".claude.json", json.dumps({"mcpServers": servers}))


def broken(machine):
    return [(item.file, item.line, item.problem) for item in machine.find() if not item.name]


def test_everything_at_once_is_found_and_every_source_has_something(machine):
    machine.install_everything()

    everything = machine.find()

    assert {source.id for source in SOURCES} - {"codex:project"} == {
        entry.source for item in everything for entry in (item, *item.duplicates)
    }
    assert not broken(machine)


def test_what_is_imported_loads_without_a_problem(machine, tmp_path):
    machine.install_everything()
    servers = {item.key: item.config for item in machine.find() if item.config}
    target = tmp_path / "pegboard.toml"
    target.write_text(append_servers("", servers), encoding="utf-8")

    examination = examine(files=[target], environ={}, cwd=tmp_path)

    assert examination.problems == ()
    assert set(examination.config.servers) == set(servers)


def test_keys_are_legal_and_unlike_each_other(machine):
    from pegboard.catalog.naming import refused_servers, server_prefix
    from pegboard.config.model import ServerSpec

    machine.install_everything()
    put_cursor(
        machine, {name: {"command": name} for name in ("a b", "a-b", "A_B", "a__b", "l0", "1O", "pegboard", "日本")}
    )
    keys = [item.key for item in machine.find() if item.config]

    assert [server_prefix(key) for key in keys] == keys
    assert refused_servers({key: ServerSpec(name=key, config=ServerConfig(command="x")) for key in keys}) == {}


def test_the_same_is_found_in_the_same_order_with_the_same_keys(machine):
    machine.install_everything()

    assert machine.find() == machine.find()


def test_one_launch_in_two_programs_is_one_server(machine):
    put_claude(machine, {"github": GITHUB})
    put_cursor(machine, {"gh": GITHUB})

    (github,) = machine.find()

    assert (github.source, github.key, github.also_in) == ("claude-code:user", "github", ("cursor:user",))


def test_a_token_written_in_two_ways_is_still_one_server(machine):
    put_claude(machine, {"github": {**GITHUB, "env": {"TOKEN": "abc"}}})
    put_cursor(machine, {"gh": {**GITHUB, "env": {"TOKEN": "${env:TOKEN}"}}})

    assert [item.key for item in machine.find()] == ["github"]


def test_one_name_with_two_values_is_one_server_and_the_difference_is_noted_without_the_value(machine):
    put_claude(machine, {"github": {**GITHUB, "env": {"TOKEN": "old-value"}}})
    put_cursor(machine, {"github": {**GITHUB, "env": {"TOKEN": "new-value"}}})

    (github,) = machine.find()

    assert github.config.env == {"TOKEN": "old-value"}
    assert github.notes == ("cursor:user has another value for TOKEN.",)


def test_two_accounts_are_two_servers(machine):
    put_claude(machine, {"work": {**GITHUB, "env": {"TOKEN": "a"}}, "private": {**GITHUB, "env": {"TOKEN": "b"}}})
    put_cursor(machine, {"mine": {**GITHUB, "env": {"TOKEN": "b"}}})

    work, private = machine.find()

    assert (work.key, work.also_in) == ("work", ())
    assert (private.key, private.also_in) == ("private", ("cursor:user",))


def test_one_name_for_two_launches_gets_two_keys(machine):
    put_claude(machine, {"github": GITHUB})
    put_cursor(machine, {"github": {"command": "docker", "args": ["run", "github"]}, "GitHub": {"command": "third"}})

    assert [item.key for item in machine.find()] == ["github", "github-cursor", "GitHub-2"]


def test_the_copy_that_is_switched_on_is_preferred(machine):
    machine.put(".codeium/windsurf/mcp_config.json", json.dumps({"mcpServers": {"github": {**GITHUB}}}))
    machine.put(
        ".cline/data/settings/cline_mcp_settings.json",
        json.dumps({"mcpServers": {"github": {**GITHUB, "disabled": True}}}),
    )

    (github,) = machine.find()

    assert (github.source, github.config.enabled) == ("windsurf", True)


def test_a_broken_file_is_named_with_its_line_and_stops_no_other(machine):
    put_claude(machine, {"github": GITHUB})
    cursor = machine.put(".cursor/mcp.json", '{\n  "mcpServers": {\n    "x": oops\n  }\n}')
    codex = machine.put(".codex/config.toml", 'model = "x"\n[mcp_servers.x\n')

    assert [item.key for item in machine.find() if item.name] == ["github"]
    (file, line, problem), (other, other_line, other_problem) = broken(machine)
    assert (file, line) == (cursor, 3)
    assert "not valid JSON" in problem
    assert (other, other_line) == (codex, 2)
    assert "not valid TOML" in other_problem


@pytest.mark.parametrize(
    "content", ["", "  \n", "\ufeff", "{}", '{"mcpServers": {}}', '{"mcpServers": null}', "// nothing\n{}"]
)
def test_an_empty_file_says_nothing(machine, content):
    machine.put(".cursor/mcp.json", content)

    assert machine.find() == ()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[]", "is a list"),
        ('"text"', "is text"),
        ('{"mcpServers": []}', "`mcpServers` should be a table of servers, but is a list"),
        ('{"mcpServers": 3}', "is a number"),
        (b'{"mcpServers": {"\xff": {}}}', "UTF-8"),
        ("[" * 5000, "levels deep"),
    ],
)
def test_a_file_of_the_wrong_shape_is_reported(machine, content, words):
    machine.put(".cursor/mcp.json", content)

    ((_, _, problem),) = broken(machine)

    assert words in problem


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (None, "is null"),
        ("npx", "is text"),
        ({}, "neither a command nor an address"),
        ({"command": ""}, "neither a command nor an address"),
        ({"command": ["npx"]}, "`command` should be text, but is a list"),
        ({"command": "x", "args": "-y"}, "`args` should be a list of strings, but is text"),
        ({"command": "x", "args": [["y"]]}, "`args` should be text, but is a list"),
        ({"command": "x", "env": ["A=b"]}, "`env` should be a table of strings"),
        ({"command": "x", "env": {"A": {}}}, "`env.A` should be text, but is a table"),
        ({"command": "x", "env": {"A=B": "c"}}, "environment variable"),
        ({"command": "x\0y"}, "NUL"),
        ({"type": 3, "command": "x"}, "'3'"),
        ({"url": "ftp://x.example"}, "not an http or https address"),
        ({"url": "https://"}, "Pegboard cannot use it"),
        ({"url": "https://x.example", "headers": {"Bad Name": "x"}}, "HTTP header"),
    ],
)
def test_an_entry_of_the_wrong_shape_says_what_is_wrong_and_stops_no_other(machine, entry, words):
    put_cursor(machine, {"wrong": entry, "right": {"command": "x"}})

    wrong = machine.found("cursor:user")["wrong"]

    assert words in wrong.problem
    assert (wrong.config, wrong.key, wrong.line) == (None, "", 1)
    assert machine.found("cursor:user")["right"].config == ServerConfig(command="x")


def test_a_server_without_a_name_is_not_mistaken_for_a_broken_file(machine):
    put_cursor(machine, {"": {"command": "x"}})

    (item,) = machine.find()

    assert (item.name, item.problem) == ("(no name)", "It has no name.")


def test_ports_and_switches_without_quotes_become_text(machine):
    put_cursor(machine, {"it": {"command": "x", "args": [8080, 1.5, True], "env": {"DEBUG": False}}})

    it = machine.found("cursor:user")["it"].config

    assert (it.args, it.env) == (("8080", "1.5", "true"), {"DEBUG": "false"})


def test_a_pipe_in_place_of_a_file_does_not_hang(machine):
    (machine.home / ".cursor").mkdir()
    os.mkfifo(machine.home / ".cursor" / "mcp.json")

    ((_, _, problem),) = broken(machine)

    assert problem == "This is not a file."


def test_a_file_larger_than_any_settings_is_reported_and_not_read(machine):
    os.truncate(put_cursor(machine, {}), 17 * 1024 * 1024)

    ((_, _, problem),) = broken(machine)

    assert "could not be read: larger than" in problem


def test_a_broken_file_that_two_sources_share_is_reported_once(machine):
    machine.put(".claude.json", "{")

    assert len(broken(machine)) == 1


def test_a_broken_settings_file_that_only_holds_switches_is_reported_too(machine):
    machine.put(".claude/settings.json", "{ nope")

    ((file, line, _),) = broken(machine)

    assert (file.name, line) == ("settings.json", 1)


def test_two_entries_of_one_file_stay_two_even_when_they_launch_the_same(machine):
    put_cursor(machine, {"one": GITHUB, "two": GITHUB})

    assert [(item.key, item.duplicates) for item in machine.find()] == [("one", ()), ("two", ())]
