"""Servers that come as folders with a manifest."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from pegboard.config.layer import Findings
from pegboard.config.model import ServerConfig
from pegboard.config.plugins import find_manifests


@pytest.fixture
def plug(place):
    """Writes manifests into a plug-in folder that the project names."""
    place.write("[tools]\nplugin_dirs = ['plugins']\n[servers.taken]\ncommand = 'x'\n")
    folder = place.project / "plugins"
    folder.mkdir()

    def write(where: str, manifest: object) -> Path:
        path = Path(folder) / where / "plugin.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = manifest if isinstance(manifest, bytes) else msgspec.json.encode(manifest)
        path.write_bytes(raw)
        return path

    return write


def only_plugins(config):
    return {name: spec for name, spec in config.servers.items() if name != "taken"}


@pytest.mark.parametrize("table", [None, "server", "mcp"])
def test_a_manifest_is_a_server(place, plug, table):
    start = {"command": "./run", "args": ["${PLUGIN_DIR}/x", "${WHO:-me}"], "tags": ["t"]}
    path = plug("a", {"name": "notes", "version": "1.2", "description": "d", **({table: start} if table else start)})
    spec = place.load().servers["notes"]
    folder = str(path.parent)
    assert (spec.name, spec.version, spec.origin, spec.problem) == ("notes", "1.2", path, "")
    assert spec.cache_path == path.parent / "tools-cache.json"
    assert (spec.config.command, spec.config.args) == (f"{folder}/run", (f"{folder}/x", "me"))
    assert (spec.config.cwd, spec.config.tags, spec.config.call_timeout) == (folder, ("t",), 120.0)


def test_a_plug_in_may_have_its_own_working_folder_or_be_remote(place, plug):
    path = plug("a", {"name": "a", "version": "1", "command": "x", "cwd": "sub"})
    plug("b", {"name": "b", "version": "1", "server": {"url": "https://x.org"}})
    servers = place.load().servers
    assert servers["a"].config.cwd == f"{path.parent}/sub"
    assert (servers["b"].config.url, servers["b"].config.cwd) == ("https://x.org", None)


def test_manifests_are_found_one_and_two_levels_deep_in_a_stable_order(place, plug):
    for where in ("b", "a/z", "a", "a/b", "c/d/e", ".hidden", "a/.hidden", "."):
        plug(where, {"name": f"n-{where.replace('/', '-')}", "version": "1", "command": "x"})
    assert list(only_plugins(place.load())) == ["n-a", "n-a-b", "n-a-z", "n-b"]


GOOD = {"name": "good", "version": "1", "command": "x"}


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        (b"{", "plugin.json:1: not valid JSON: the text ends too early"),
        (b"\xff", "plugin.json: not UTF-8 text"),
        ([], "plugin.json: expected a JSON object, got a list"),
        ({"version": "1", "command": "x"}, "plugin.json: name: missing"),
        ({"name": 3, "version": "1", "command": "x"}, "plugin.json:1: name: expected a string, got a whole number"),
        ({"name": " ", "version": "1", "command": "x"}, "plugin.json:1: name: must not be empty"),
        ({"name": "n", "command": "x"}, "plugin.json: version: missing"),
        ({"name": "n", "version": 1, "command": "x"}, "plugin.json:1: version: expected a string, got a whole"),
        ({"name": "n", "version": "1"}, "plugin.json: needs a command (a local server) or a url (a remote one)"),
        ({"name": "n", "version": "1", "comand": "x"}, "plugin.json:1: comand: unknown key; did you mean command?"),
        ({"name": "n", "version": "1", "mcp": {"comand": "x"}}, "plugin.json:1: mcp.comand: unknown key; did you"),
        ({"name": "n", "version": "1", "mcp": {"command": "x", "args": 3}}, "plugin.json:1: mcp.args: expected a list"),
        ({"name": "n", "version": "1", "command": "${"}, "plugin.json:1: command: the ${ at character 1"),
        ({"name": "n", "version": "1", "url": "x"}, "plugin.json:1: url: expected an address"),
        ({"name": "n", "version": "1", "command": "x", "url": "https://x.org"}, "plugin.json:1: url: a server has a"),
        ({"name": "taken", "version": "1", "command": "x"},
         "plugin.json: name: the name taken is already taken by a configured server"),
    ],
)  # fmt: skip
def test_a_bad_manifest_is_a_server_with_its_reason_and_stops_no_other(place, plug, manifest, told):
    path = plug("bad/one", manifest)
    plug("good", GOOD)
    config = place.load()
    bad = config.servers["bad/one"]
    assert told in bad.problem
    assert bad.problem.startswith(str(path))
    assert (bad.name, bad.origin, bad.config.command, bad.config.url) == ("bad/one", path, None, None)
    assert config.servers["good"].problem == ""
    assert config.servers["taken"].config.command == "x"


def test_of_two_plug_ins_with_one_name_the_second_is_bad(place, plug):
    first = plug("a", GOOD)
    plug("b", GOOD)
    config = place.load()
    assert config.servers["good"].origin == first
    assert config.servers["b"].problem.endswith(f"the name good is already taken by the plug-in in {first.parent}")


def test_a_bad_plug_in_never_hides_a_good_one_of_its_folders_name(place, plug):
    bad = plug("good", {"name": "x"})
    taken = plug("taken", {"name": "x"})
    plug("other", GOOD)
    config = place.load()
    assert config.servers["good"].problem == ""
    assert config.servers["taken"].problem == ""
    assert config.servers[str(bad.parent)].problem
    assert config.servers[str(taken.parent)].problem


def test_a_variable_that_is_not_set_leaves_the_plug_in_its_name(place, plug):
    plug("a", {**GOOD, "env": {"K": "${NOT_SET}"}})
    assert "environment variable NOT_SET is not set; env.K in" in place.load().servers["good"].problem


def test_keys_of_other_programs_in_a_manifest_do_not_disturb(place, plug):
    plug("a", {**GOOD, "author": "x", "license": "y", "homepage": "z", "keywords": []})
    assert place.load().servers["good"].problem == ""


def test_a_missing_plug_in_folder_is_a_warning(place):
    place.write("[tools]\nplugin_dirs = ['nowhere']\n")
    assert place.load().warnings == (
        f"{place.project}/nowhere: plug-in folder cannot be read: No such file or directory",
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_entered_is_a_warning(place, plug):
    locked = plug("a", GOOD).parent
    locked.chmod(0)
    try:
        assert any("cannot be read" in warning for warning in place.load().warnings)
    finally:
        locked.chmod(0o700)


def test_a_plug_in_reached_by_two_ways_counts_once(place, plug):
    folder = plug("a", GOOD).parent.parent
    (folder / "z").symlink_to(folder / "a")
    place.write("[tools]\nplugin_dirs = ['plugins', './plugins']\n")
    assert [(spec.name, spec.problem) for spec in place.load().servers.values()] == [("good", "")]


def test_a_manifest_that_leads_nowhere_is_bad(place, plug):
    path = plug("a", GOOD)
    path.unlink()
    path.symlink_to(path.parent / "gone.json")
    assert "there is no such file" in place.load().servers["a"].problem


def test_a_disabled_plug_in_stays_disabled(place, plug):
    plug("a", {**GOOD, "enabled": False, "env": {"K": "${NOT_SET}"}})
    spec = place.load().servers["good"]
    assert (spec.config.enabled, spec.problem) == (False, "")


def test_a_huge_folder_given_by_mistake_is_not_walked_to_its_end(tmp_path):
    for number in range(5):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}" / "plugin.json").write_text("{}", encoding="utf-8")
    findings = Findings()
    found = [manifest.key for manifest in find_manifests(tmp_path, findings, limit=3)]
    assert found == ["0", "1", "2"]
    assert "only the first 3 folders" in findings.warnings[0]


def test_fields_of_a_bad_plug_in_are_all_unset(place, plug):
    plug("a", {"name": "n", "version": "1", "mcp": {"command": "x", "args": 3}})
    spec = place.load().servers["a"]
    assert spec.config == msgspec.structs.replace(
        ServerConfig(), start_timeout=30.0, call_timeout=120.0, idle_timeout=300.0, max_result_bytes=16 * 1024 * 1024
    )
    assert spec.cache_path is None


def test_a_manifest_with_endless_faults_is_told_in_few_words(place, plug):
    plug("a", {"name": "n", "version": "1", "mcp": {f"wrong{number}": 1 for number in range(5000)}})
    plug("b", {"name": "m", "version": "1", "command": "x", "env": {f"A{number}": [] for number in range(5000)}})
    servers = place.load().servers
    assert "5000 unknown keys, of which the first 20 are listed" in servers["a"].problem
    assert servers["b"].problem.endswith("; and 4980 more")
    assert max(len(servers[name].problem) for name in "ab") < 20_000
