"""`${VAR}` in text."""

from __future__ import annotations

import pytest

from pegboard.config.expand import Expansion, Malformed, escape, expand

ENVIRON = {"HOME": "/home/ada", "EMPTY": "", "A_1": "one", "ODD": "${HOME}"}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("plain", "plain"),
        ("${HOME}/x", "/home/ada/x"),
        ("${A_1}${A_1}-${HOME}", "oneone-/home/ada"),
        ("${EMPTY}", ""),
        ("${NONE:-fallback}", "fallback"),
        ("${NONE:-}", ""),
        ("${HOME:-fallback}", "/home/ada"),
        ("${EMPTY:-fallback}", "fallback"),
        ("${NONE:-a:-b}", "a:-b"),
        ("${NONE:-two\nlines}", "two\nlines"),
        ("$HOME", "$HOME"),
        ("$", "$"),
        ("$$", "$$"),
        ("cost: $5", "cost: $5"),
        ("$${HOME}", "${HOME}"),
        ("$$${HOME}", "$${HOME}"),
        ("{HOME}", "{HOME}"),
        ("${ODD}", "${HOME}"),
    ],
)
def test_references_are_filled_in_and_the_rest_stays(text, expanded):
    assert expand(text, ENVIRON).text == expanded


@pytest.mark.parametrize(
    "text", ["${", "a${HOME", "${}", "${1A}", "${HOME:x}", "${A B}", "${A:-${B}}", "${A:-{}}", "${env:HOME}", "${A-b}"]
)
def test_what_begins_like_a_reference_and_is_none_is_an_error(text):
    with pytest.raises(Malformed):
        expand(text, ENVIRON)


def test_what_was_asked_for_and_what_is_missing_is_told():
    assert expand("${B}${HOME}${B}${C:-x}", ENVIRON) == Expansion("${B}/home/ada${B}x", ("B", "HOME", "C"), ("B",))


def test_known_names_come_before_the_environment_and_are_no_variables():
    assert expand("${HOME}/${my/own}", ENVIRON, {"HOME": "/h", "my/own": "x"}) == Expansion("/h/x")


def test_editors_references_are_understood_where_they_are_usual():
    assert expand("${env:HOME}", ENVIRON, editors=True) == Expansion("/home/ada", ("HOME",))
    assert expand("${env:NONE:-x}", ENVIRON, editors=True).text == "x"
    with pytest.raises(Malformed, match=r"\$\{input:token\} is asked for by an editor"):
        expand("${input:token}", ENVIRON, editors=True)


def test_the_error_says_where_and_how_to_write_it():
    with pytest.raises(Malformed, match=r"the \$\{ at character 3 is not closed"):
        expand("ab${", ENVIRON)


@pytest.mark.parametrize("text", ["${HOME}", "$${HOME}", "a ${", "$$$${${", "plain $"])
def test_escaped_text_expands_to_itself(text):
    assert expand(escape(text), ENVIRON).text == text
