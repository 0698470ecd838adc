"""Where each client keeps its servers, and what an entry looks like there."""

from __future__ import annotations

import pytest

from pegboard.config.importers.found import Places
from pegboard.config.installers.clients import CLIENTS, Launch, client_named, sites
from pegboard.errors import PegboardError
from tests.unit.config.importers.machine import Machine

LAUNCH = Launch(("/p", "serve"), {"A": "1"})


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def files(machine, client, scope="user"):
    places = Places(home=machine.home, cwd=machine.cwd, environ=machine.environ, platform=machine.platform)
    return [(site.file, site.enters) for site in sites(client_named(client), scope, places)]


def test_every_program_that_can_be_imported_from_is_a_client():
    from pegboard.config.importers import SOURCES

    assert {client.id for client in CLIENTS} == {source.program for source in SOURCES}


def test_every_edition_that_is_there_is_a_place_of_its_own(machine):
    one = machine.put(".config/Code/User/mcp.json", "{}")
    other = machine.put(".config/VSCodium/User/mcp.json", "{}")
    assert files(machine, "vscode") == [(one, True), (other, True)]


def test_a_program_that_reads_its_files_as_one_gets_one_entry(machine):
    one = machine.put(".config/opencode/opencode.jsonc", "{}")
    other = machine.put(".config/opencode/opencode.json", "{}")
    assert files(machine, "opencode") == [(one, True), (other, False)]


def test_a_new_file_goes_to_the_edition_that_is_installed(machine):
    (machine.home / ".config" / "VSCodium" / "User").mkdir(parents=True)
    assert files(machine, "vscode") == [(machine.home / ".config/VSCodium/User/mcp.json", True)]


def test_a_projects_file_is_the_one_in_its_folder_and_not_one_above(machine):
    machine.put("work/.cursor/mcp.json", "{}")
    assert files(machine, "cursor", "project") == [(machine.project / ".cursor/mcp.json", True)]
    assert files(machine, "opencode", "project") == [(machine.project / "opencode.json", True)]


def test_entries_say_the_same_in_each_clients_words():
    plain = {"command": "/p", "args": ["serve"], "env": {"A": "1"}}
    assert client_named("cursor").entry(LAUNCH) == plain
    assert client_named("vscode").entry(LAUNCH) == {"type": "stdio", **plain}
    assert client_named("zed").entry(LAUNCH) == {"source": "custom", **plain}
    assert client_named("opencode").entry(LAUNCH) == {
        "type": "local",
        "command": ["/p", "serve"],
        "enabled": True,
        "environment": {"A": "1"},
    }


def test_an_unknown_client_is_answered_with_the_nearest():
    with pytest.raises(PegboardError) as caught:
        client_named("vs-code")
    assert caught.value.hint == "Did you mean vscode?"
