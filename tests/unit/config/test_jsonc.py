"""JSON with comments and trailing commas: the value, and where things stand."""

from __future__ import annotations

import pytest

from pegboard.config.jsonc import MAX_DEPTH, JsoncError, line_of, parse
from pegboard.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('\ufeff{"a": 1}', {"a": 1}),
        ('// head\n{"a": 1 /* one */, // rest\n}', {"a": 1}),
        ("[1, 2, /* three */ ]", [1, 2]),
        ('{"a": [1,],}', {"a": [1]}),
        ('{"a": 1}\r\n// tail without newline', {"a": 1}),
        ("/**/[/***/]", []),
        ("[1 // carriage return ends a comment\r]", [1]),
    ],
)
def test_comments_trailing_commas_and_a_byte_order_mark_are_accepted(text, value):
    assert parse(text) == value


@pytest.mark.parametrize("inner", ["http://example.org", "/* not a comment */", ",]", 'a \\" // b', "\\\\", "[{"])
def test_what_looks_like_a_comment_or_comma_inside_a_string_stays(inner):
    text = f'{{"a": "{inner}", // real comment\n}}'
    assert parse(text) == {"a": inner.replace('\\"', '"').replace("\\\\", "\\")}


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', 3, 3),
        ('{"a": 1 /* never\nends', 1, 9),
        ('// é é é\n{"é": @}', 2, 7),
        ("[,]", 1, 2),
        ("{ /* nothing */ , }", 1, 17),
        ("[1,,]", 1, 4),
        ("", 1, 1),
        ('{\n"a": [1, 2\n', 3, 1),
        ("/*/", 1, 1),
    ],
)
def test_an_error_says_line_and_column(text, line, column):
    with pytest.raises(JsoncError) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).startswith(f"line {line}, column {column}: ")


@pytest.mark.parametrize("text", ['"\ud800"', "1e999", "NaN", "9" * 5000, "'a'", "/", '"a\nb"'])
def test_what_is_no_json_is_an_error_of_ours(text):
    with pytest.raises(ConfigError):
        parse(text)


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":', "[ /* { */"])
def test_deep_nesting_is_an_error_and_never_exhausts_the_stack(opening):
    with pytest.raises(JsoncError, match="levels deep"):
        parse(opening * 100_000)


def test_nesting_up_to_the_limit_is_read():
    assert parse("[" * MAX_DEPTH + "]" * MAX_DEPTH) is not None
    with pytest.raises(JsoncError, match="levels deep"):
        parse("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))


def test_brackets_in_strings_and_comments_are_not_nesting():
    assert parse('["' + "[" * 1000 + '" /* ' + "{" * 1000 + " */]") == ["[" * 1000]


@pytest.mark.parametrize("text", ['"' + '\\"' * 200_000, "/*" * 200_000, "[" + "," * 200_000, "[1," + " " * 200_000])
def test_hostile_text_is_refused_without_quadratic_work(text):
    with pytest.raises(JsoncError):
        parse(text)


SETTINGS = """\
// settings
{
  "mcpServers": {  /* "github": no */
    "github": {
      "command": "npx", "args": ["-y",
        "server-github",
      ],
      "env": {"T": "{"}
    },
    "git\\u0068ub2": {"command": "x"},
  },
  "other": {"github": 1}
}
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 2),
        (("mcpServers",), 3),
        (("mcpServers", "github"), 4),
        (("mcpServers", "github", "command"), 5),
        (("mcpServers", "github", "args"), 5),
        (("mcpServers", "github", "args", 0), 5),
        (("mcpServers", "github", "args", 1), 6),
        (("mcpServers", "github", "env", "T"), 8),
        (("mcpServers", "github2"), 10),
        (("other", "github"), 12),
        (("other", "command"), None),
        (("github",), None),
        (("mcpServers", "github", "args", 2), None),
        (("mcpServers", "github", "command", "x"), None),
    ],
)
def test_the_line_of_a_key_is_found(path, line):
    assert line_of(SETTINGS, path) == line


def test_of_two_equal_keys_the_line_is_that_of_the_one_which_counts():
    text = '{"a": {"x": 1,\n"y": 2},\n"a": {"x": 3}}'
    assert parse(text) == {"a": {"x": 3}}
    assert line_of(text, ("a", "x")) == 3
    assert line_of(text, ("a", "y")) is None


@pytest.mark.parametrize("text", ["", "]]]}", '{"a', "{,,:", "/* open", "[[[", '{1: "a"}'])
def test_asking_for_a_line_in_broken_text_is_harmless(text):
    assert line_of(text, ("a", 0)) is None
