"""What an install would do to a client's file and to a pegboard.toml."""

from __future__ import annotations

import json

import pytest

from pegboard.config.importers.found import Places
from pegboard.config.installers.clients import Launch, client_named, sites
from pegboard.config.installers.plan import Wish, plan
from pegboard.errors import ConfigError
from tests.unit.config.importers.machine import Machine

WISH = Wish(launch=Launch(("/p", "serve")))


class Desk(Machine):
    def plan(self, client, content, wish=WISH, config="", **environ):
        places = Places(home=self.home, cwd=self.cwd, environ=environ, platform="linux")
        [site] = sites(client_named(client), "user", places)
        text = json.dumps(content) if isinstance(content, dict) else content
        self.put(site.file, text)
        return plan(site, text, config, wish, places)


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


def test_a_server_whose_variable_is_not_set_stays_unless_it_is_named(desk):
    content = {"mcpServers": {"a": {"command": "a", "env": {"T": "${T}"}}}}
    assert "T, which is not set" in desk.plan("claude-code", content).stays["a"]
    assert desk.plan("claude-code", content, T="x").change.moved == ("a",)
    named = Wish(launch=WISH.launch, only=("a",))
    assert desk.plan("claude-code", content, named).change.moved == ("a",)


def test_what_vscode_would_ask_for_keeps_its_server_there(desk):
    content = {
        "inputs": [{"id": "key", "type": "promptString", "password": True}],
        "servers": {"a": {"command": "a", "env": {"K": "${input:key}"}}},
    }
    assert "KEY, which is not set" in desk.plan("vscode", content).stays["a"]


@pytest.mark.parametrize("field", ["envFile", "headersHelper"])
def test_a_server_that_needs_its_client_stays(desk, field):
    content = {"mcpServers": {"a": {"command": "a", field: "x"}}}
    assert "only the client" in desk.plan("cursor", content).stays["a"]


def test_a_server_that_cannot_be_imported_stays_with_the_reason(desk):
    planned = desk.plan("cursor", {"mcpServers": {"a": {"command": "a"}, "b": {"type": "ws", "url": "ws://x"}}})
    assert planned.change.moved == ("a",)
    assert "'ws'" in planned.stays["b"]


def test_a_foreign_server_that_is_called_pegboard_is_moved_or_refused(desk):
    content = {"mcpServers": {"pegboard": {"command": "wood"}}}
    planned = desk.plan("cursor", content)
    assert [(move.name, move.key) for move in planned.moves] == [("pegboard", "pegboard-cursor")]
    assert json.loads(planned.after)["mcpServers"] == {"pegboard": {"command": "/p", "args": ["serve"]}}
    with pytest.raises(ConfigError, match="Another server is called 'pegboard'"):
        desk.plan("cursor", content, Wish(launch=WISH.launch, keep_servers=True))


def test_an_entry_that_is_there_already_needs_nothing_even_with_fields_of_the_clients_own(desk):
    entry = {"command": "/p", "args": ["serve"], "disabled": False, "alwaysAllow": ["x"]}
    wish = Wish(launch=Launch(("/opt/pegboard", "serve")))
    content = {"mcpServers": {"pegboard": {**entry, "command": "/opt/pegboard"}}}
    assert not desk.plan("cline", content, wish).is_needed
    replaced = desk.plan("cline", {"mcpServers": {"pegboard": {**entry, "command": "/old/pegboard"}}}, wish)
    assert replaced.is_needed
    assert json.loads(replaced.after)["mcpServers"]["pegboard"] == {**entry, "command": "/opt/pegboard"}


def test_gemini_is_warned_of_when_it_would_not_use_the_entry(desk):
    planned = desk.plan("gemini", {"mcp": {"allowed": ["a"]}, "mcpServers": {"a": {"command": "a"}}})
    assert "`mcp.allowed`" in planned.warnings[0]


def test_an_inline_table_of_codex_is_left_alone_with_words(desk):
    with pytest.raises(ConfigError, match="cannot be taken out one by one") as caught:
        desk.plan("codex", 'mcp_servers = { a = { command = "a" } }\n')
    assert "[mcp_servers.<name>]" in caught.value.hint


def test_both_versions_of_opencode_get_the_entry_where_they_look_for_it(desk):
    first = desk.plan("opencode", {"mcp": {"a": {"type": "local", "command": ["a"]}}})
    assert json.loads(first.after) == {
        "mcp": {"pegboard": {"type": "local", "command": ["/p", "serve"], "enabled": True}}
    }


def test_opencodes_second_version_keeps_its_own_table(desk):
    second = desk.plan("opencode", {"mcp": {"timeout": 5, "servers": {"a": {"type": "local", "command": ["a"]}}}})
    assert list(json.loads(second.after)["mcp"]["servers"]) == ["pegboard"]


def test_a_token_written_as_a_reference_in_pegboards_file_is_the_same_server(desk):
    config = '[servers.gh]\ncommand = "a"\nenv = {TOKEN = "${TOKEN}"}\n'
    planned = desk.plan("cursor", {"mcpServers": {"a": {"command": "a", "env": {"TOKEN": "t"}}}}, config=config)
    assert [(move.key, move.is_new) for move in planned.moves] == [("gh", False)]
    assert planned.imported.text == config
