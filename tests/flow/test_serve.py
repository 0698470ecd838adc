"""`pegboard serve` over real servers: the whole road from a client to a tool and back."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from pegboard.config.load import load
from pegboard.engine import load_catalog
from tests.flow.served import Served, served
from tests.flow.shell import Shell
from tests.servers import example_command, offering_command

OWN = ["search_tools", "call_tool", "batch_tools", "read_result"]
MILES = {"value": 26.2, "from_unit": "mi", "to_unit": "km"}
QUIET = "[gateway]\nbackground_refresh = false\n"


def gateway_over(folder: Path, surface: str = 'mode = "on"') -> Shell:
    """A configuration whose servers have been asked once."""
    shell = Shell(folder)
    shell.server("units", example_command("units"))
    shell.plain("plain", "--tools", "3")
    (folder / "pegboard.toml").write_text((folder / "pegboard.toml").read_text() + f"[surface]\n{surface}\n{QUIET}")
    shell.run("refresh")
    (folder / "plain.log").unlink()
    return shell


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return gateway_over(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def client(shell: Shell):
    with served(shell) as found:
        found.greet()
        yield found


def test_it_is_an_mcp_server_that_says_how_to_use_it(shell: Shell) -> None:
    with served(shell) as client:
        about = client.greet()
    assert about["serverInfo"]["name"] == "pegboard"
    assert about["capabilities"]["tools"] == {"listChanged": True}
    assert "search before you say that something cannot be done" in about["instructions"]


def test_the_list_is_short_and_starts_no_server(client: Served, shell: Shell) -> None:
    assert client.tools() == OWN
    assert not shell.started("plain")


def test_it_searches_calls_and_mends(client: Served) -> None:
    assert "units__convert(" in client.say("search_tools", {"query": "how many km is a marathon in miles"})
    result = client.call("call_tool", {"name": "units__convert", "arguments": {**MILES, "value": "26.2"}})
    assert "42.1648" in json.dumps(result)
    assert result["_meta"]["pegboard/repairs"] == ["value: text read as a number"]


def test_a_deferred_tool_is_called_by_its_own_name_as_well(client: Served) -> None:
    assert "42.1648" in client.say("units__convert", MILES)


def test_a_batch_goes_to_several_servers(client: Served) -> None:
    said = client.say("batch_tools", {"calls": [{"name": "units__convert", "arguments": MILES}, {"name": "nope"}]})
    assert "[1] units__convert: ok" in said
    assert "[2] nope: failed" in said


def test_a_wrong_name_is_answered_with_the_nearest(client: Served) -> None:
    assert "units__convert" in client.say("call_tool", {"name": "units__convrt", "arguments": MILES})


STATELESS = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}


def test_a_search_says_that_it_loaded_tools_only_where_they_are_then_listed(tmp_path: Path) -> None:
    shell = gateway_over(tmp_path, 'mode = "on"\nlist_active = true')
    query = {"query": "select:units__convert"}
    with served(shell) as client:
        said = client.say("search_tools", query, _meta=STATELESS)
        assert "units__convert(" in said
        assert "Loaded" not in said
        assert [tool["name"] for tool in client.ask("tools/list", {"_meta": STATELESS})["tools"]] == OWN
        client.greet()
        assert "Loaded: units__convert." in client.say("search_tools", query)
        assert client.tools() == [*OWN, "units__convert"]


def test_the_stateless_era_sees_the_same(shell: Shell) -> None:
    with served(shell) as client:
        listed = client.ask("tools/list", {"_meta": STATELESS})
        assert [tool["name"] for tool in listed["tools"]] == OWN
        assert listed["resultType"] == "complete"
        assert isinstance(listed["ttlMs"], int)
        assert "42.1648" in client.say("units__convert", MILES, _meta=STATELESS)


def test_a_client_hears_that_a_server_has_other_prompts_and_resources_now(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.server("one", offering_command("--grows"))
    with served(shell) as client:
        about = client.greet()
        assert about["capabilities"]["prompts"] == about["capabilities"]["resources"] == {"listChanged": True}
        client.call("one__nothing")
        while "one__new2" not in [prompt["name"] for prompt in client.ask("prompts/list")["prompts"]]:
            client.notices.clear()  # its first list may be told of before
            client.hear("notifications/prompts/list_changed")
        client.hear("notifications/resources/list_changed")
        assert "note://offering/new2" in [each["uri"] for each in client.ask("resources/list")["resources"]]


def test_what_was_loaded_is_there_after_a_restart_and_can_be_shown(tmp_path: Path) -> None:
    shell = gateway_over(tmp_path, 'mode = "on"\nlist_active = true')
    with served(shell, "--conversation", "talk") as client:
        client.greet()
        assert client.tools() == OWN
        client.call("units__convert", MILES)
        assert client.tools() == [*OWN, "units__convert"]
        assert "notifications/tools/list_changed" in client.notices
    shown = shell.json("context", "talk")
    assert [each["tool"] for each in shown["active"]] == ["units__convert"]
    with served(shell, "--conversation", "talk") as client:
        client.greet()
        client.say("search_tools", {"query": "select:units__list_units"})
        assert client.tools() == [*OWN, "units__convert", "units__list_units"]
    assert "talk" in shell.json("context")["conversations"]


def test_the_first_list_after_a_restart_has_what_was_loaded(tmp_path: Path) -> None:
    shell = gateway_over(tmp_path, 'mode = "on"\nlist_active = true')
    for _ in range(2):
        with served(shell, "--conversation", "talk") as client:
            client.greet()
            client.tools()
            client.call("units__convert", MILES)
    with served(shell, "--conversation", "talk") as client:
        client.greet()
        assert client.tools() == [*OWN, "units__convert"]
    assert [each["tool"] for each in shell.json("context", "talk")["active"]] == ["units__convert"]


def test_looking_at_a_conversation_does_not_make_one(tmp_path: Path) -> None:
    shell = gateway_over(tmp_path)
    assert shell.json("context", "typo")["active"] == []
    assert shell.json("context") == {"conversations": {}}


def test_a_search_tells_of_a_server_that_cannot_start_instead_of_asking_for_patience(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.server("dead", [sys.executable, "-c", "import sys; sys.exit('SECRET')"])
    with served(shell) as client:
        client.greet()
        said = client.say("search_tools", {"query": "open an issue"})
        while "being asked" in said:
            said = client.say("search_tools", {"query": "open an issue"})
    assert "The tools of dead are not known, for it failed: " in said
    assert "SECRET" not in said


def test_off_is_off(tmp_path: Path) -> None:
    shell = gateway_over(tmp_path, 'mode = "off"')
    catalog = load_catalog(load(files=[tmp_path / "pegboard.toml"]))
    with served(shell) as client:
        assert "instructions" not in client.greet()
        listed = client.ask("tools/list")["tools"]
    assert listed == [{**tool.parsed(), "name": name} for name, tool in catalog.tools.items()]


def test_an_allowlist_holds_on_every_road(shell: Shell) -> None:
    with served(shell, "--allow", "units__*") as client:
        assert "on 1 server " in client.greet()["instructions"]
        assert "Servers: units (" in json.dumps(client.ask("tools/list"))
        assert "plain" not in client.say("call_tool", {"name": "echo"})
        for refused in (client.call("plain__echo", {}), client.call("call_tool", {"name": "plain__echo"})):
            assert refused["isError"] is True
        said = client.say("search_tools", {"query": "select:plain__echo"})
        assert said.startswith("No tool is named: plain__echo.")
        assert "plain__echo(" not in said
    assert not shell.started("plain")


def test_what_happened_is_on_record(tmp_path: Path) -> None:
    shell = gateway_over(tmp_path)
    with served(shell, "--conversation", "talk") as client:
        client.greet()
        client.tools()
        client.say("search_tools", {"query": "miles to kilometres"})
        client.call("call_tool", {"name": "units__convert", "arguments": MILES})
    stats = shell.json("stats")
    talk = stats["conversations"]["talk"]
    assert (talk["lists"], talk["searches"], talk["calls"]) == (1, 1, 1)
    assert talk["net"] == talk["not_sent"] - talk["own_tools"] - talk["asked"] - talk["answered"]
    shell.run("priors", "refresh")
    assert "units__convert" in shell.run("priors").stdout
    found = shell.json("search", "convert miles to kilometres", "--max-latency", "0.001")
    assert "units__convert" not in [hit["name"] for hit in found["hits"]]


def test_nothing_but_mcp_is_on_stdout_when_the_configuration_is_empty(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    (tmp_path / "pegboard.toml").write_text("")
    with served(shell) as client:
        client.greet()
        assert client.tools() == []
