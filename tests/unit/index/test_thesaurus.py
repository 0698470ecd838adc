"""Words that stand for each other, and words of other languages in English."""

from __future__ import annotations

import pytest

from pegboard.index.text import fold, stem
from pegboard.index.thesaurus import ENGLISH, SAME, in_english, same_as


@pytest.mark.parametrize("line", SAME)
def test_the_words_of_a_line_stand_for_each_other_and_never_for_themselves(line):
    stems = {stem(word) for word in line.split()}
    for each in stems:
        assert stems - {each} <= set(same_as(each))
        assert each not in same_as(each)


def test_a_word_that_is_not_listed_stands_for_itself_alone():
    assert same_as("zygote") == ()
    assert same_as("") == ()


@pytest.mark.parametrize("words", sorted(ENGLISH))
def test_every_listed_word_is_found_in_a_text_as_people_write_it(words):
    for word in words.split():
        assert ENGLISH[words] in in_english(f"... {word.upper()} ...") or ENGLISH[words] in in_english(f"x {word} y")


@pytest.mark.parametrize("words", [words for words in ENGLISH if words.isascii()])
def test_listed_words_are_written_as_they_are_after_folding(words):
    assert fold(words).lower() == words


def test_accents_do_not_matter():
    assert in_english("Réunion") == in_english("reunion") != []


def test_words_of_scripts_without_spaces_are_found_inside_a_run():
    assert "weather" in in_english("明日の天気を教えて")
    assert "send" in in_english("给他发送邮件")


def test_english_words_come_once_and_in_their_order():
    assert in_english("sende nachricht senden") == ["send", "message"]


def test_english_needs_no_translation():
    assert in_english("send a message to the channel") == []
    assert in_english("") == []


def test_an_invoice_is_known_in_japanese_and_in_chinese():
    assert in_english("請求書を作成") == ["invoice", "create"]
    assert in_english("创建发票") == ["create", "invoice"]
