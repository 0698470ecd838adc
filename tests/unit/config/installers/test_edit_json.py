"""JSON settings changed as text."""

from __future__ import annotations

import pytest

from pegboard.config.installers import edit_json
from pegboard.config.installers.edit_json import put_back, with_entry, without
from pegboard.errors import ConfigError

TABLE = ("mcpServers",)
ENTRY = {"command": "/p", "args": ["serve"]}
TEXT = """\
{
\t// of the first
\t"mcpServers": {
\t\t// about a
\t\t"a": {"command": "a"}, // behind a
\t\t"b": {
\t\t\t"command": "b"
\t\t}
\t}
}
"""


def test_a_member_goes_with_its_comments_and_comes_back_with_them():
    gone = without(TEXT, TABLE, {"a"})
    assert gone == '{\n\t// of the first\n\t"mcpServers": {\n\t\t"b": {\n\t\t\t"command": "b"\n\t\t}\n\t}\n}\n'
    assert put_back(gone, TABLE, {"a"}, TEXT) == TEXT


def test_no_comma_is_left_behind_when_the_last_member_goes():
    assert without('{"mcpServers": {"a": 1, "b": 2}}', TABLE, {"b"}) == '{"mcpServers": {"a": 1}}'


def test_a_trailing_comma_stays_the_habit_of_a_file_that_has_one():
    text = '{"mcpServers": {\n  "a": 1,\n},}'
    assert with_entry(text, TABLE, "p", 2) == '{"mcpServers": {\n  "a": 1,\n  "p": 2,\n},}'


def test_a_new_member_is_indented_as_its_neighbours_are():
    text = with_entry(TEXT, TABLE, "p", ENTRY)
    assert (
        '\t\t},\n\t\t"p": {\n\t\t\t"command": "/p",\n\t\t\t"args": [\n\t\t\t\t"serve"\n\t\t\t]\n\t\t}\n\t}\n}\n' in text
    )


def test_a_table_in_one_line_stays_in_one_line():
    assert with_entry('{"mcpServers": {"a": 1}}\n', TABLE, "p", ENTRY) == (
        '{"mcpServers": {"a": 1, "p": {"command": "/p", "args": ["serve"]}}}\n'
    )


def test_windows_lines_stay_windows_lines():
    text = with_entry('{\r\n  "x": 1\r\n}\r\n', TABLE, "p", ENTRY)
    assert "\n" not in text.replace("\r\n", "")


def test_tables_that_are_missing_are_made_and_an_empty_one_is_filled():
    made = with_entry('{\n    "x": 1\n}\n', ("mcp", "servers"), "p", 1)
    assert made == '{\n    "x": 1,\n    "mcp": {\n        "servers": {\n            "p": 1\n        }\n    }\n}\n'
    assert with_entry('{\n  "mcpServers": {}\n}', TABLE, "p", 1) == '{\n  "mcpServers": {\n    "p": 1\n  }\n}'


@pytest.mark.parametrize("blank", ["", "\n", "\ufeff", " \r\n"])
def test_a_file_that_says_nothing_becomes_one_that_says_only_this(blank):
    text = with_entry(blank, TABLE, "p", 1)
    assert text.startswith("\ufeff") == blank.startswith("\ufeff")
    assert text.removeprefix("\ufeff").split() == ["{", '"mcpServers":', "{", '"p":', "1", "}", "}"]


def test_of_two_equal_keys_both_go_and_the_last_table_counts():
    text = '{"mcpServers": {"x": 0}, "mcpServers": {"a": 1, "b": 2, "a": 3}}'
    assert without(text, TABLE, {"a"}) == '{"mcpServers": {"x": 0}, "mcpServers": { "b": 2}}'


def test_a_comment_never_swallows_what_comes_behind_it():
    text = '{"mcpServers": {"a": 1, // one\n "b": 2, "c": 3}}'
    assert without(text, TABLE, {"b"}) == '{"mcpServers": {"a": 1, // one\n "c": 3}}'


def test_keys_written_with_escapes_are_known():
    assert without('{"mcpServers": {"\\u0061": 1}}', TABLE, {"a"}) == '{"mcpServers": {}}'


def test_what_is_no_table_is_refused():
    with pytest.raises(ConfigError, match="`mcpServers` should be a table"):
        with_entry('{"mcpServers": null}', TABLE, "p", 1)


def test_members_come_back_behind_the_one_they_stood_behind():
    before = '{"mcpServers": {"a": 1, "b": 2, "c": 3}}'
    now = '{"mcpServers": {"new": 0, "b": 2, "last": 9}}'
    assert put_back(now, TABLE, {"a", "c"}, before) == '{"mcpServers": {"a": 1,"new": 0, "b": 2, "c": 3, "last": 9}}'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"deny": ["a", "b"]}', '{"deny": [ "b"]}'),
        ('{"deny": ["b", "a"]}', '{"deny": ["b"]}'),
        ('{"deny": ["a"]}', '{"deny": []}'),
        ('{"deny": [\n  "a", // x\n  "b", // y\n]}', '{"deny": [\n  "b", // y\n]}'),
        ('{"deny": [\r\n  1,\r\n  "a"\r\n]}', '{"deny": [\r\n  1\r\n]}'),
        ('{"deny": [["a"], {"a": "a"}]}', '{"deny": [["a"], {"a": "a"}]}'),
        ("{}", "{}"),
    ],
)
def test_an_element_leaves_a_list_with_its_comment(before, after):
    assert edit_json.without_elements(before, ("deny",), ("a",)) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"off": ["b"]}', '{"off": ["b", "a"]}'),
        ('{"off": []}', '{"off": ["a"]}'),
        ('{\n  "off": [\n    "b" // x\n  ]\n}', '{\n  "off": [\n    "b", // x\n    "a"\n  ]\n}'),
        ('{\n  "off": []\n}', '{\n  "off": [\n    "a"\n  ]\n}'),
        ('{\n  "x": 1\n}\n', '{\n  "x": 1,\n  "off": [\n    "a"\n  ]\n}\n'),
    ],
)
def test_an_element_comes_last_in_a_list(before, after):
    assert edit_json.with_element(before, ("off",), "a") == after


def test_what_is_no_list_gets_no_elements():
    with pytest.raises(ConfigError, match="`off` should be a list"):
        edit_json.with_element('{"off": {}}', ("off",), "a")
