"""Where a TOML key stands."""

from __future__ import annotations

import tomllib

import pytest

from pegboard.config.locate import line_of, lines

TEXT = '''\
# [not.a.table]
top = 1

[tools]  # [nor.this]
deny = [
  "a", # "b]",
  "c#[", [
    1, { x = 2, y = [
    3] } ],
]
"quoted key" = "a = b"
'literal key' = 'it # is'

[servers.github]
command = """
[servers.fake]
url = "x"
""""
a.b . "c.d" = 1.5
env = { TOKEN = "}", OTHER = { deep = 1979-05-27T07:32:00Z } }
after = \'\'\'
k = 'v'\'\'\'

[ servers . "my.server" ]
command = 'C:\\'
"caf\\u00e9" = 2

[[list]]
x = 1
[list.sub]
y = 1
[[list]]
x = 2
[list.sub]
y = 2
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("top",), 2),
        (("tools",), 4),
        (("tools", "deny"), 5),
        (("tools", "deny", 0), 6),
        (("tools", "deny", 1), 7),
        (("tools", "deny", 2), 7),
        (("tools", "deny", 2, 0), 8),
        (("tools", "deny", 2, 1), 8),
        (("tools", "deny", 2, 1, "x"), 8),
        (("tools", "deny", 2, 1, "y"), 8),
        (("tools", "deny", 2, 1, "y", 0), 9),
        (("tools", "quoted key"), 11),
        (("tools", "literal key"), 12),
        (("servers",), 14),
        (("servers", "github"), 14),
        (("servers", "github", "command"), 15),
        (("servers", "github", "a"), 19),
        (("servers", "github", "a", "b", "c.d"), 19),
        (("servers", "github", "env"), 20),
        (("servers", "github", "env", "TOKEN"), 20),
        (("servers", "github", "env", "OTHER", "deep"), 20),
        (("servers", "github", "after"), 21),
        (("servers", "my.server"), 24),
        (("servers", "my.server", "command"), 25),
        (("servers", "my.server", "café"), 26),
        (("list", 0, "x"), 29),
        (("list", 0, "sub", "y"), 31),
        (("list", 1), 32),
        (("list", 1, "x"), 33),
        (("list", 1, "sub", "y"), 35),
        (("servers", "fake"), None),
        (("servers", "github", "url"), None),
        (("not",), None),
        (("nor",), None),
        (("k",), None),
        (("b",), None),
    ],
)
def test_the_line_of_a_key_is_found(path, line):
    assert line_of(TEXT, path) == line


def test_the_example_is_toml_and_every_value_in_it_has_a_line():
    def paths(value, path):
        yield path
        if isinstance(value, dict):
            for key, item in value.items():
                yield from paths(item, (*path, key))
        elif isinstance(value, list):
            for number, item in enumerate(value):
                yield from paths(item, (*path, number))

    known = lines(TEXT)
    everything = [path for path in paths(tomllib.loads(TEXT), ()) if path and path != ("list",)]
    assert len(everything) > 30
    assert [path for path in everything if path not in known] == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "]",
        "[",
        "[[",
        "}",
        "= = =",
        "a = {",
        "a = [",
        '"',
        '"""',
        "'''",
        "a.",
        "[a",
        '"\\',
        'a = "\\',
        "a = }\n]\n{",
        '"\\q" = 1',
    ],
)
def test_text_that_is_no_toml_is_harmless(text):
    assert line_of(text, ("x", "y")) is None


def test_hostile_text_costs_no_more_than_its_length():
    for text in (
        "[" * 200_000,
        "a = " + "[" * 200_000,
        "a = " + '{a="' * 50_000,
        "a." * 100_000 + "a = 1",
        '"' * 200_001,
    ):
        lines(text)


def test_windows_line_ends_and_a_mark_at_the_start_do_not_shift_lines():
    assert line_of("\ufeff[a]\r\nb = 1\r\n\r\nc = 2\r\n", ("a", "c")) == 4
