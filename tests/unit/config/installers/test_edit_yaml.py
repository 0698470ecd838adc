"""YAML is changed as text: only the lines of one key are others afterwards."""

from __future__ import annotations

import pytest

from pegboard.config.installers import edit_yaml
from pegboard.config.installers.documents import format_of
from pegboard.errors import ConfigError

GOOSE = """\
# mine
extensions:
  github:   # for work
    cmd: npx
    args: ["-y", 'x']   # two
    enabled: true  # for now
    envs: {}
  # the clock
  time:
    cmd: uvx
GOOSE_MODEL: gpt-5.5
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (GOOSE, GOOSE.replace("enabled: true  # for now", "enabled: false  # for now")),
        (GOOSE.replace("    enabled: true  # for now\n", ""), None),
        (
            "extensions: {github: {cmd: npx, enabled: true}}\r\n",
            "extensions: {github: {cmd: npx, enabled: false}}\r\n",
        ),
        ("extensions: {github: {cmd: npx,}}", "extensions: {github: {cmd: npx, enabled: false,}}"),
        ("extensions:\n  github:\n    enabled:\n", "extensions:\n  github:\n    enabled: false\n"),
        ("a: |\n  b\n", "a: |\n  b\nextensions:\n  github:\n    enabled: false\n"),
        ("a: 1", "a: 1\nextensions:\n  github:\n    enabled: false\n"),
        ("\ufeff# nothing", "\ufeff# nothing\nextensions:\n  github:\n    enabled: false\n"),
    ],
)
def test_a_value_is_set_where_it_belongs(before, after):
    found = edit_yaml.with_value(before, ("extensions", "github"), "enabled", False)
    if after is None:
        assert found == before.replace("    envs: {}\n", "    envs: {}\n    enabled: false\n")
    else:
        assert found == after
    assert edit_yaml.parse(found)["extensions"]["github"]["enabled"] is False


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a:\n  x: 1\n  # y\n  y: 2 # z\n  z: 3\n", "a:\n  x: 1\n  # y\n  z: 3\n"),
        ("a:\n  y:\n    - 1\n    - 2\n  z: 3", "a:\n  z: 3"),
        ("a:\n  y: 2\nb: 3\n", "a:\n  {}\nb: 3\n"),
        ("a: {x: 1, y: 2}", "a: {x: 1}"),
        ("a: { y: 2 , x: 1}", "a: { x: 1}"),
        ("a: {y: 2}", "a: {}"),
        ("\ufeffa: {y: 2, y: 3}\r\n", "\ufeffa: {}\r\n"),
        ("a: {}\n", "a: {}\n"),
    ],
)
def test_a_key_is_taken_out_with_its_lines_alone(before, after):
    found = edit_yaml.without(before, ("a",), ("y",))
    assert found == after
    assert "y" not in edit_yaml.parse(found)["a"]


def test_words_that_mean_something_else_are_quoted():
    text = edit_yaml.with_value("", ("no",), "it is", "off")
    assert edit_yaml.parse(text) == {"no": {"it is": "off"}}
    assert edit_yaml.with_value("a: 'b' # c\n", (), "a", "d e") == "a: 'd e' # c\n"


@pytest.mark.parametrize("text", ["a: [", "- 1\n", "a: 2001-99-99\n", "a: &x 1\nb: *y\n", "--- 1\n--- 2\n", "[" * 300])
def test_what_is_no_table_of_settings_is_refused_with_words(text):
    with pytest.raises(ConfigError) as caught:
        edit_yaml.parse(text)
    assert caught.value.hint == "Mend the file first."


def test_formats_are_known_by_the_name_of_the_file():
    names = {"config.toml": "toml", "c.YAML": "yaml", "x.yml": "yaml", ".env": "env", "opencode.jsonc": "json"}
    assert {name: format_of(name) for name in names} == names
