"""Picking from what was found."""

from __future__ import annotations

from pathlib import Path

import pytest

from pegboard.config.importers.choose import by_answer, by_names, from_sources, importable
from pegboard.config.importers.found import Found
from pegboard.config.model import ServerConfig
from pegboard.errors import PegboardError

KNOWN = ("claude-code:local", "claude-code:project", "claude-desktop", "cursor:project", "cursor:user", "codex:user")


def server(key, source="cursor:user", name="", command="", duplicates=()):
    config = ServerConfig(command=command or key)
    return Found(source=source, file=Path("/f"), name=name or key, key=key, config=config, duplicates=tuple(duplicates))


A, B, C = server("a"), server("b", name="b with spaces"), server("c", "codex:user")
WRONG = Found(source="cursor:user", file=Path("/f"), name="wrong", problem="It is wrong.")
BROKEN = Found(source="cursor:user", file=Path("/g"), name="", problem="This is not valid JSON.")
FOUND = (A, WRONG, B, C, BROKEN)


@pytest.mark.parametrize(
    ("answer", "chosen"),
    [
        ("all", (A, B, C)),
        (" all \n", (A, B, C)),
        ("none", ()),
        ("", ()),
        ("1", (A,)),
        ("2-3", (B, C)),
        ("3,1", (C, A)),
        ("1 1 1-2", (A, B)),
        ("a, c", (A, C)),
        ("b with spaces", (B,)),
        ("b", (B,)),
    ],
)
def test_numbers_ranges_names_all_and_none_are_understood(answer, chosen):
    assert by_answer(FOUND, answer) == chosen


@pytest.mark.parametrize("answer", ["0", "4", "2-9", "3-2", "nope", "1,nope", "wrong", "all 1", "--all", "1-"])
def test_an_answer_that_means_nothing_is_an_error_that_says_so(answer):
    with pytest.raises(PegboardError) as caught:
        by_answer(FOUND, answer)

    assert caught.value.hint


def test_a_server_may_be_called_like_a_number():
    seven = server("7")

    assert by_answer((A, seven), "7") == (seven,)


def test_names_are_keys_first_and_then_the_programs_own():
    shadow = server("other", name="a")

    assert by_names((shadow, A), ["a"]) == (A,)
    assert by_names(FOUND, ["b with spaces", "a", "a"]) == (B, A)


def test_a_name_that_several_programs_use_must_be_told_apart_by_key():
    one, two = server("x-1", name="x"), server("x-2", "codex:user", name="x")

    with pytest.raises(PegboardError, match="Several servers are named 'x'") as caught:
        by_names((one, two), ["x"])

    assert "x-1, x-2" in caught.value.hint


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(PegboardError) as caught:
        by_names((server("github"),), ["githbu"])

    assert caught.value.hint == "Did you mean github?"


def test_what_cannot_be_imported_says_why_when_it_is_asked_for_by_name():
    with pytest.raises(PegboardError, match="wrong cannot be imported: It is wrong"):
        by_names(FOUND, ["wrong"])


def test_only_what_can_be_imported_is_numbered():
    assert importable(FOUND) == (A, B, C)


@pytest.mark.parametrize(
    ("prefixes", "sources"),
    [
        ((), ["cursor:user", "cursor:project", "codex:user", "claude-desktop"]),
        (("cursor",), ["cursor:user", "cursor:project"]),
        (("cursor:project",), ["cursor:project"]),
        (("claude", "codex:user"), ["codex:user", "claude-desktop"]),
        (("claude-code",), []),
    ],
)
def test_sources_are_named_by_how_they_begin(prefixes, sources):
    found = [server(source, source) for source in ("cursor:user", "cursor:project", "codex:user", "claude-desktop")]

    assert [item.source for item in from_sources(found, prefixes, KNOWN)] == sources


@pytest.mark.parametrize(("typed", "near"), [("curser", "cursor"), ("claude-code:projekt", "claude-code:project")])
def test_an_unknown_source_suggests_the_nearest(typed, near):
    with pytest.raises(PegboardError) as caught:
        from_sources([], [typed], KNOWN)

    assert near in caught.value.hint


def test_a_source_is_given_its_own_copy_of_a_shared_server_under_the_same_key():
    copy = server("github", "codex:user", command="from codex")
    first = server("github", "cursor:user", command="from cursor", duplicates=[copy])

    (chosen,) = from_sources([first], ["codex"], KNOWN)

    assert (chosen.key, chosen.also_in) == ("github", ("cursor:user",))
    assert chosen.config == ServerConfig(command="from codex")
