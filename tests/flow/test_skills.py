"""Skills from folders to a model: `pegboard serve` to the official client in both eras, the command line, the board."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters

from pegboard import Pegboard
from pegboard.config.load import load
from pegboard.engine import load_catalog
from tests.contract.wire_links import SdkLink, sdk_link
from tests.flow.served import served
from tests.flow.shell import Shell
from tests.servers import example_command
from tests.unit.skills.given import write

OWN = ["search_tools", "call_tool", "batch_tools", "read_result", "load_skill"]
MARATHON: dict[str, Any] = {
    "name": "marathon",
    "description": "How distances of races are given in reports.",
    "header": ["tools: [units__convert, units__convrt]"],
    "body": "Give them in kilometres.",
}


def shell_with_skills(folder: Path, surface: str = 'mode = "on"', skills: str = 'roots = ["skills"]') -> Shell:
    """A configuration whose server has been asked once, and one skill."""
    shell = Shell(folder)
    shell.server("units", example_command("units"))
    path = folder / "pegboard.toml"
    path.write_text(
        f"{path.read_text()}[surface]\n{surface}\n[gateway]\nbackground_refresh = false\n[skills]\n{skills}\n"
    )
    write(folder / "skills", **MARATHON)
    (folder / "skills" / "marathon" / "reference.md").write_text("42.195 km")
    shell.run("refresh")
    return shell


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return shell_with_skills(tmp_path_factory.mktemp("skills"))


@asynccontextmanager
async def official_client(shell: Shell, mode: str) -> AsyncIterator[SdkLink]:
    """The official SDK's client at `pegboard serve`."""
    home = str(shell.folder / "home")
    environ = {**os.environ, "HOME": home, "XDG_CONFIG_HOME": home, "XDG_CACHE_HOME": home}
    arguments = ["-m", "pegboard", "serve"]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=environ, cwd=shell.folder)
    async with sdk_link(server, mode) as link:
        yield link


@pytest.mark.parametrize(("mode", "version"), [("legacy", "2025-11-25"), ("auto", "2026-07-28")])
def test_the_official_client_loads_skills_in_both_eras(shell: Shell, mode: str, version: str) -> None:
    async def scenario() -> None:
        async with official_client(shell, mode) as link:
            assert link.version == version
            assert await link.pages() == [OWN]
            found = await link.call("search_tools", {"query": "how to give the distance of a race in a report"})
            assert 'load_skill("marathon")' in found["text"]
            loaded = await link.call("load_skill", {"name": "marathon"})
            assert loaded["text"].endswith("\n\nGive them in kilometres.")
            assert "units__convert(value: float" in loaded["text"]
            assert "units__convrt (nearest: units__convert)" in loaded["text"]
            assert await link.call("load_skill", {"name": "marathon", "file": "reference.md"}) == {
                "text": "42.195 km",
                "isError": False,
            }
            refused = await link.call("load_skill", {"name": "marathon", "file": "../../pegboard.toml"})
            assert (refused["isError"], "cache_dir" in refused["text"]) == (True, False)
            miles = {"value": 26.2, "from_unit": "mi", "to_unit": "km"}
            called = await link.call("call_tool", {"name": "units__convert", "arguments": miles})
            assert "42.1648" in called["text"]
            assert await link.pages() == [OWN]

    asyncio.run(scenario())


def test_a_skill_that_is_written_meanwhile_is_told_of_and_loaded(tmp_path: Path) -> None:
    shell = shell_with_skills(tmp_path)
    with served(shell) as client:
        client.greet()
        client.ask("tools/list")
        write(tmp_path / "skills", "sprint", "How short races are reported.", body="In seconds.")
        while client.call("load_skill", {"name": "sprint"}).get("isError"):
            continue  # the folders are looked at again every other second
        assert "In seconds." in client.say("load_skill", {"name": "sprint"})
        assert client.notices == ["notifications/tools/list_changed"]
        listed = {tool["name"]: tool for tool in client.ask("tools/list")["tools"]}
        assert "- sprint: How short races are reported." in listed["load_skill"]["description"]


def test_loading_puts_tools_on_the_list_where_it_may_grow(tmp_path: Path) -> None:
    shell = shell_with_skills(tmp_path, 'mode = "on"\nlist_active = true')
    with served(shell, "--conversation", "talk") as client:
        client.greet()
        assert client.tools() == OWN
        assert "Loaded: units__convert." in client.say("load_skill", {"name": "marathon"})
        assert client.tools() == [*OWN, "units__convert"]
    assert [each["tool"] for each in shell.json("context", "talk")["active"]] == ["units__convert"]


def test_where_nothing_is_deferred_skills_are_there_and_tools_are_as_they_were(tmp_path: Path) -> None:
    shell = shell_with_skills(tmp_path, 'mode = "off"')
    catalog = load_catalog(load(files=[tmp_path / "pegboard.toml"]))
    with served(shell) as client:
        client.greet()
        *tools, last = client.ask("tools/list")["tools"]
        assert tools == [{**tool.parsed(), "name": name} for name, tool in catalog.tools.items()]
        assert last["name"] == "load_skill"
        assert "Its tools: units__convert." in client.say("load_skill", {"name": "marathon"})


def test_an_allowlist_holds_for_what_skills_surface(shell: Shell) -> None:
    with served(shell, "--allow", "units__list_units") as client:
        client.greet()
        said = client.say("load_skill", {"name": "marathon"})
        assert "Give them in kilometres." in said
        assert "units__convert(" not in said
        assert "not available here: units__convert; units__convrt." in said


def test_what_was_used_last_is_described_after_a_restart(tmp_path: Path) -> None:
    shell = shell_with_skills(tmp_path, skills='roots = ["skills"]\nindex_tokens = 60')
    for number in range(30):
        write(tmp_path / "skills", f"zone-{number:02}", f"What zone number {number} of the course is like, and why.")

    def index() -> str:
        with served(shell) as client:
            client.greet()
            shown = client.ask("tools/list")["tools"][-1]["description"]
            client.say("load_skill", {"name": "zone-29"})
            assert client.ask("tools/list")["tools"][-1]["description"] == shown
            return str(shown)

    first, second = index(), index()
    assert "- zone-29: " not in first
    assert "- zone-29: What zone number 29" in second
    names = ["marathon", *(f"zone-{number:02}" for number in range(30))]
    assert all(name in first and name in second for name in names)


def test_without_roots_there_are_no_skills_even_if_folders_are_there(tmp_path: Path) -> None:
    shell = shell_with_skills(tmp_path, skills="")
    write(tmp_path / ".pegboard" / "skills", "here")
    write(tmp_path / "home" / ".claude" / "skills", "there")
    with served(shell) as client:
        client.greet()
        assert client.tools() == OWN[:-1]
    assert "Skills are off." in shell.run("skills", code=1).stderr


# ── the command line ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_list_says_what_there_is_and_what_is_wrong(tmp_path: Path) -> None:
    shell = shell_with_skills(tmp_path)
    write(tmp_path / "skills", "My Skill", folder="odd")
    done = shell.run("skills")
    assert "marathon  How distances of races are given in reports." in done.stdout
    assert "tools: units__convert" in done.stdout
    assert "units__convrt (nearest: units__convert)" in done.stderr
    assert "odd/SKILL.md: skipped: its name 'My Skill'" in done.stderr
    found = shell.json("skills")
    [skill] = found["skills"]
    assert (skill["name"], skill["tools"], skill["unknown"]) == ("marathon", ["units__convert"], ["units__convrt"])
    assert skill["root"] == str(tmp_path / "skills")
    assert len(found["problems"]) == 1
    [denied] = shell.json("--set", 'tools.deny=["units__convert"]', "skills")["skills"]
    assert (denied["tools"], denied["unknown"]) == ([], ["units__convert", "units__convrt"])


def test_the_status_counts_skills_where_there_are_to_be_any(tmp_path):
    shell = shell_with_skills(tmp_path)
    assert "skills   1\n" in shell.run("status").stdout
    write(tmp_path / "skills", "My Skill", folder="odd")
    assert "skills   1; 1 problem, see `pegboard skills`\n" in shell.run("status").stdout
    assert shell.json("status")["skills"] == {"found": 1, "problems": 1}
    off = shell.run("--set", "skills.enabled=false", "status").stdout
    assert "skills" not in off.replace(str(tmp_path), "")


def test_one_skill_and_one_file_are_shown(shell: Shell) -> None:
    assert "Give them in kilometres." in shell.run("skills", "show", "marathon").stdout
    assert shell.run("skills", "show", "marathon", "reference.md").stdout == "42.195 km\n"
    assert shell.json("skills", "show", "marathon")["files"] == [{"path": "reference.md", "bytes": 9}]
    assert "Did you mean marathon?" in shell.run("skills", "show", "maraton", code=1).stderr
    assert "not a path inside" in shell.run("skills", "show", "marathon", "../../pegboard.toml", code=1).stderr
    assert "Which skill?" in shell.run("skills", "show", code=1).stderr


def test_a_search_names_skills_that_fit(shell: Shell) -> None:
    query = "how to give the distance of a race in a report"
    assert "skill: marathon — How distances" in shell.run("search", query).stdout
    assert [skill["name"] for skill in shell.json("search", query)["skills"]] == ["marathon"]
    assert shell.json("search", "convert miles to kilometres")["skills"] == []


def test_skills_are_found_where_no_tools_are_known_or_no_servers_configured(tmp_path):
    shell = Shell(tmp_path)
    write(tmp_path / "skills", **MARATHON)
    (tmp_path / "pegboard.toml").write_text('[skills]\nroots = ["skills"]\n')
    query = "how to give the distance of a race in a report"
    done = shell.run("search", query)
    assert "skill: marathon — How distances" in done.stdout
    assert done.stderr == "No tool fits.\n"
    assert "No servers are configured." in shell.run("search", "--servers", query, code=1).stderr
    assert shell.run("search", "grind some coffee", code=1).stderr == "Nothing fits.\n"
    shell.server("units", example_command("units"))
    done = shell.run("--set", 'skills.roots=["skills"]', "search", query)
    assert "skill: marathon — How distances" in done.stdout
    assert "No tools are known yet. `pegboard refresh` asks the servers for them." in done.stderr


def test_roots_are_stronger_the_nearer_and_named_ones_strongest(tmp_path: Path) -> None:
    shell = shell_with_skills(tmp_path, skills='roots = ["skills"]\nagent_folders = true')
    home = tmp_path / "home"
    places = [
        home / ".claude/skills",
        home / ".agents/skills",
        home / "pegboard/skills",
        tmp_path / ".claude/skills",
        tmp_path / ".agents/skills",
        tmp_path / ".pegboard/skills",
        tmp_path / "skills",
    ]
    assert shell.json("skills")["roots"] == [str(place) for place in places]
    for number, place in enumerate(places):
        write(place, "shared", f"Number {number}.")
        [skill] = [each for each in shell.json("skills")["skills"] if each["name"] == "shared"]
        assert (skill["description"], skill["root"]) == (f"Number {number}.", str(place))


# ── the board ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_agents_code_has_skills_too(tmp_path: Path) -> None:
    write(tmp_path, "adding", "How sums are done here.", header=["tools: add"], body="Carry the one.")

    def add(one: int, other: int) -> int:
        """Adds two numbers."""
        return one + other

    async def scenario() -> None:
        settings = {
            "skills": {"roots": [str(tmp_path)]},
            "surface": {"mode": "on"},
            "store": {"state_dir": str(tmp_path / "state"), "cache_dir": str(tmp_path / "cache")},
        }
        async with Pegboard(tools=[add], settings=settings) as board:
            chat = board.conversation("one")
            assert chat.surface().names == ("search_tools", "read_result", "load_skill")
            assert chat.is_own("load_skill")
            result = await chat.call("load_skill", {"name": "adding"})
            assert "Carry the one." in result.text
            assert result.meta["pegboard/found"] == ["add"]
            assert chat.surface().names[-1] == "add"
            assert json.loads((await chat.call("add", {"one": 1, "other": 2})).text) == 3
            everything = board.conversation("two", search=False)
            assert everything.surface().names == ("add", "load_skill")

    asyncio.run(scenario())
