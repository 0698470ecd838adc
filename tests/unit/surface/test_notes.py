"""When a parameter's description is worth its tokens."""

from __future__ import annotations

import pytest

from pegboard.surface.notes import LONGEST, note


@pytest.mark.parametrize(
    ("name", "description"),
    [
        ("repo", "Repository name"),
        ("repository", "The name of the repository"),
        ("title", "Issue title"),
        ("message", "Text of the message"),
        ("userId", "The id of the user"),
        ("name", ""),
        ("name", "   "),
        ("name", None),
        ("name", 7),
        ("name", ["e.g. x"]),
    ],
)
def test_what_the_name_says_already_is_not_said_again(name, description):
    assert note(name, description, needed=True) == ""


@pytest.mark.parametrize(
    ("description", "said"),
    [
        ("ISO 8601 date", "ISO 8601 date"),
        ("Comma-separated list of labels.", "Comma-separated list of labels"),
        ("The absolute path of the file", "absolute path of the file"),
        ("Optional. Duration in seconds", "Duration in seconds"),
        ("How long to wait. Must be between 1 and 60.", "Must be between 1 and 60"),
        ("The channel, e.g. C0123. Private ones need an invitation.", "channel, e.g. C0123"),
        ("Time zone, e.g. Europe/Berlin", "Time zone, e.g. Europe/Berlin"),
    ],
)
def test_formats_units_limits_and_examples_are_said(description, said):
    assert note("value", description, needed=False) == said


def test_a_needed_parameter_with_a_name_that_says_nothing_is_explained():
    assert note("q", "Words to look for", needed=True) == "Words to look for"
    assert note("q", "Words to look for", needed=False) == ""


def test_a_note_is_short_and_closes_its_brackets():
    said = note(
        "x", "The disease or condition to search for in the whole library (e.g. diabetes, asthma, gout)", needed=True
    )
    assert len(said) <= LONGEST
    assert said.count("(") == said.count(")")


def test_a_note_of_any_length_is_found_quickly():
    assert len(note("x", "a. " * 500_000 + "e.g. 5", needed=True)) <= LONGEST
