"""Misspelt words of a query are put right; what is not misspelt is left alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.index.embedders.static import pieces
from pegboard.index.spelling import MOST, mended
from tests.unit.index.given import ask, finder_of, names, tool


def mend(text: str, *known: str) -> str:
    return mended(text, set(known).__contains__, pieces().get)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("sned a mesage", "send a message"),
        ("driving dirctions", "driving directions"),
        ("trasnlate this", "translate this"),
    ],
)
def test_one_slip_is_put_right(written: str, meant: str) -> None:
    assert mend(written, "directions", "translate") == meant


@pytest.mark.parametrize(
    "word",
    "docker redis gmail paypal prisma oauth stdin stdout pandas cron kafka vite nginx".split(),  # noqa: SIM905
)
def test_a_word_of_the_trade_that_no_tool_has_stays_as_it_is(word: str) -> None:
    assert mend(f"restart {word} now") == f"restart {word} now"


def test_a_rarer_word_is_meant_only_if_some_tool_has_it() -> None:
    assert mend("trasnlate this") == "trasnlate this"
    assert mend("trasnlate this", "translate") == "translate this"


@pytest.mark.parametrize(
    "text",
    [
        "send a message",
        "ask Dana and Luiz",
        "kubectl rollout",
        "open ./src/mian.py and mail it to jhon@exmaple.com",
        "tag #genral",
        "x",
        "",
        "日本語の検索",
    ],
)
def test_words_names_paths_and_addresses_are_left_alone(text: str) -> None:
    assert mend(text, "kubectl") == text


def test_a_word_that_some_tool_has_is_right_however_odd_it_looks() -> None:
    assert mend("list grafna boards", "grafna") == "list grafna boards"


def test_the_commonest_of_several_words_is_taken() -> None:
    assert mend("tihs") == "this"


def test_the_work_is_bounded() -> None:
    misspelt = " ".join(["mesage"] * (MOST + 5))
    assert mend(misspelt).split().count("message") == MOST


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_text_can_be_mended(text: str) -> None:
    assert isinstance(mend(text), str)


def test_a_search_finds_what_was_meant() -> None:
    finder = finder_of(
        tool("send_message", "Sends a message to a channel.", "slack"),
        tool("create_issue", "Opens an issue.", "github"),
        tool("get_weather", "Weather for a place.", "sky"),
    )
    assert names(ask(finder, "sned a mesage"))[0] == "slack__send_message"
