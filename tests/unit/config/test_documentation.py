"""docs/configuration.md says all there is, and what it says works."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from pegboard.config.check import SECTIONS
from pegboard.config.model import Requires, ServerConfig, Table

PAGE = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text(encoding="utf-8")
TABLES: dict[str, type[Table]] = {**SECTIONS, "servers": ServerConfig}
HEADINGS = {
    "servers": "## Servers",
    "tools": "## All tools",
    "search": "## Finding tools",
    "surface": "## What a model sees",
    "calls": "## Calls",
    "record": "## Records",
    "skills": "## Skills",
    "gateway": "## Connections",
    "proxy": "## The proxy",
    "store": "## Files",
}
EXAMPLES = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)


def section(heading: str) -> str:
    start = PAGE.index(heading)
    end = PAGE.find("\n## ", start + 1)
    return PAGE[start : end if end > 0 else None]


def rows(text: str) -> dict[str, list[str]]:
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:3] == "| `"]
    return {row[0].strip("`"): row[1:] for row in cells}


@pytest.mark.parametrize("name", TABLES)
def test_every_key_is_documented_and_none_that_does_not_exist(name):
    documented = set(rows(section(HEADINGS[name])))
    fields = {field.name for field in msgspec.structs.fields(TABLES[name])}
    if name == "servers":
        fields |= {field.name for field in msgspec.structs.fields(Requires)}
        documented -= {row for row in documented if row in {'["GITHUB_TOKEN"]', "true", "false"}}
    assert documented == fields


@pytest.mark.parametrize("name", ["tools", "search", "surface", "calls", "record", "skills", "gateway"])
def test_documented_defaults_are_the_real_ones(name):
    documented = {key: cells[0].strip("`") for key, cells in rows(section(HEADINGS[name])).items()}
    table = TABLES[name]()
    real = {key: msgspec.json.encode(value).decode().removesuffix(".0") for key, value in _values(table)}
    assert documented == real


def _values(table):
    return [(field.name, getattr(table, field.name)) for field in msgspec.structs.fields(type(table))]


def test_the_toml_examples_load(place):
    texts = [text for language, text in EXAMPLES if language == "toml"]
    assert len(texts) == 2
    for number, text in enumerate(texts):
        path = place.write(text, f"{number}.toml")
        config = place.load(files=[path], GITHUB_TOKEN="t", DATABASE_URL="d")
        assert config.servers
        assert [spec.problem for spec in config.servers.values() if spec.problem] == []
        assert config.warnings == ()


def test_the_json_examples_load(place):
    servers, manifest = (text for language, text in EXAMPLES if language == "json")
    path = place.write(servers, "m.json")
    config = place.load(files=[path], GITHUB_TOKEN="t")
    assert [(spec.name, spec.problem) for spec in config.servers.values()] == [("github", ""), ("docs", "")]
    assert config.warnings == ()
    plugin = place.write(manifest, "plugins/notes/plugin.json")
    notes = place.load(overrides=["tools.plugin_dirs=['plugins']"]).servers["notes"]
    assert (notes.config.command, notes.problem) == (f"{plugin.parent}/bin/notes", "")


def test_the_shell_examples_set_what_they_say(place):
    (text,) = [text for language, text in EXAMPLES if language == "sh"]
    place.write("[servers.github]\ncommand = 'x'\n")
    variables = dict(re.findall(r"^(PEGBOARD_\w+)=(\S+)", text, re.MULTILINE))
    overrides = [quoted or plain for quoted, plain in re.findall(r"--set (?:'([^']+)'|(\S+))", text)]
    config = place.load(overrides=overrides, **variables)
    assert (len(variables), len(overrides)) == (2, 2)
    assert config.gateway.max_starting == 8
    github = config.servers["github"].config
    assert (github.enabled, github.exclude) == (False, ("delete_*",))


def test_every_reference_form_in_the_table_means_what_it_says(place):
    forms = rows(section("## Variables in values"))
    assert list(forms) == ["${VAR}", "${VAR:-default}", "$${"]
    place.write("[servers.a]\ncommand = 'x'\nargs = ['${VAR}', '${VAR:-default}', '$${', '$5']\n")
    assert place.load(VAR="v").servers["a"].config.args == ("v", "v", "${", "$5")
    assert place.load(VAR="").servers["a"].config.args == ("", "default", "${", "$5")
    assert "environment variable VAR is not set" in place.load().servers["a"].problem
