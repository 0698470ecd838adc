"""TOML settings changed as text."""

from __future__ import annotations

import tomllib

import pytest

from pegboard.config.installers.edit_toml import put_back, with_entry, without

TABLE = ("mcp_servers",)
TEXT = """\
model = "x" # mine

# about a
[mcp_servers.a]
command = "a"
# inside a
args = [
  "[mcp_servers.b]", # no header
]

[mcp_servers.a.env]
KEY = '''
[mcp_servers.b]
'''

# kept, for it stands alone

[mcp_servers."b c"]
command = "b"
"""


def test_a_server_goes_with_its_sections_and_the_comment_above_and_others_stay():
    gone = without(TEXT, TABLE, {"a"})
    assert gone == 'model = "x" # mine\n\n# kept, for it stands alone\n\n[mcp_servers."b c"]\ncommand = "b"\n'
    assert tomllib.loads(put_back(gone, TABLE, {"a"}, TEXT)) == tomllib.loads(TEXT)
    assert "# about a\n[mcp_servers.a]" in put_back(gone, TABLE, {"a"}, TEXT)


def test_what_is_added_and_taken_out_again_leaves_the_text_as_it_was():
    added = with_entry(TEXT, TABLE, "pegboard", {"command": "/p", "args": ["serve"], "env": {"A": "1"}})
    assert added.startswith(TEXT)
    assert tomllib.loads(added)["mcp_servers"]["pegboard"]["env"] == {"A": "1"}
    assert without(added, TABLE, {"pegboard"}) == TEXT


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ('[mcp_servers]\na.command = "a"\nb = {command = "b"}\n', '[mcp_servers]\na.command = "a"\n'),
        ('mcp_servers.b.command = "b"\nx = 1\n', "x = 1\n"),
        ('[mcp_servers.b]\ncommand = "b"', ""),
        ('x = 1\r\n\r\n[mcp_servers.b]\r\ncommand = "b"\r\n', "x = 1\r\n"),
        ('\ufeff[mcp_servers.b]\ncommand = "b"\n[x]\n', "\ufeff[x]\n"),
        ("[[mcp_servers.b.list]]\na = 1\n[[mcp_servers.b.list]]\na = 2\n[x]\n", "[x]\n"),
    ],
)
def test_however_a_server_is_written_it_can_be_taken_out(text, gone):
    assert without(text, TABLE, {"b"}) == gone


def test_pairs_in_a_section_of_others_come_back_as_a_table():
    before = '[mcp_servers]\na.command = "a"\nb = {command = "b"}\n'
    assert put_back("x = 1", TABLE, {"b"}, before) == 'x = 1\n\n[mcp_servers.b]\ncommand = "b"\n'
