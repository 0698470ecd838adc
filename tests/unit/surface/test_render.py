"""A tool as an answer shows it."""

from __future__ import annotations

import msgspec
import pytest

from pegboard.surface.render import FULL_WITHIN, LONGEST_SUMMARY, fits, full_schema, rendered, summary
from pegboard.surface.tokens import WORD_PIECES, tool_tokens
from tests.unit.index.given import suite_tools, taking, tool

CHOICE = {"oneOf": [taking(url="Where"), taking(file="Which")]}


def test_an_answer_has_a_line_to_call_it_by_and_one_on_what_it_does():
    shown = rendered(tool("add", "Adds a note. Keeps the old ones.", "notes", schema=taking(text="")))
    assert shown == "notes__add(text?: str)\n  Adds a note."


def test_a_tool_that_says_nothing_of_itself_takes_one_line():
    assert rendered(tool("add", "", "notes")) == "notes__add()"


def test_the_full_schema_stands_in_where_a_line_cannot_say_it():
    odd = tool("get", "Gets it.", "web", schema=CHOICE)
    assert not fits(odd)
    name, about, arguments = rendered(odd).split("\n  ")
    assert (name, about) == ("web__get", "Gets it.")
    assert msgspec.json.decode(arguments.removeprefix("arguments: ")) == CHOICE


def test_a_schema_that_is_too_large_to_stand_in_is_pointed_at():
    large = {**CHOICE, "description": "x" * FULL_WITHIN}
    shown = rendered(tool("get", "Gets it.", "web", schema=large))
    assert shown.startswith("web__get(")
    assert 'not all of it: it is one of several shapes (oneOf); ask with detail "schema"' in shown
    assert len(shown) < 300


def test_more_or_less_detail_can_be_asked_for():
    plain = tool("add", "Adds a note.", "notes", schema=taking(text="The text"))
    assert rendered(plain, "names") == "notes__add"
    assert rendered(plain, "schema").endswith(f"arguments: {full_schema(plain)}")
    assert msgspec.json.decode(full_schema(plain)) == plain.input_schema


def test_a_full_schema_says_the_same_and_hides_nothing():
    nasty = {"properties": {"a\u200b\U000e0041\u202e": {"description": "x\u2028y"}}}
    shown = full_schema(tool("t", schema=nasty))
    assert shown.isprintable()
    assert msgspec.json.decode(shown) == nasty


@pytest.mark.parametrize(
    ("description", "said"),
    [
        ("Reads a file.", "Reads a file."),
        ("Reads a file. Only inside the allowed folders.", "Reads a file."),
        ("Reads a file\n\nArgs:\n  path: the path", "Reads a file"),
        ("Reads files of many kinds, e.g. text. More follows.", "Reads files of many kinds, e.g. text."),
        ("Go. Reads a file.", "Go. Reads a file."),
        ("Reads\n  a\tfile", "Reads a file"),
        ("", ""),
    ],
)
def test_a_summary_is_the_first_sentence(description, said):
    assert summary(tool("t", description)) == said


def test_a_summary_is_short_and_hides_nothing():
    said = summary(tool("t", "word\u200b " * 9000))
    assert len(said) <= LONGEST_SUMMARY
    assert said.isprintable()
    assert said.endswith("…")


def test_a_title_stands_in_for_a_missing_description():
    assert summary(tool("t", title="Read a file")) == "Read a file"


def test_over_the_suite_an_answer_costs_less_than_half_of_the_definitions():
    shown = sum(WORD_PIECES.count(rendered(each)) for each in suite_tools())
    assert shown < 0.5 * sum(tool_tokens(each) for each in suite_tools())
    assert all(WORD_PIECES.count(rendered(each)) < tool_tokens(each) for each in suite_tools())
