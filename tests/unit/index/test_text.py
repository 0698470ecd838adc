"""What is written alike is found alike: identifiers, endings, accents, scripts without spaces."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.index.text import STOP_WORDS, WHOLE, fold, spoken, stem, terms, words
from tests.often import often

several = settings(max_examples=often(150), deadline=None)


@pytest.mark.parametrize(
    "written",
    [
        "createIssue",
        "CreateIssue",
        "create-issue",
        "create.issue",
        "create/issue",
        "create:issue",
        "CREATE_ISSUE",
        "ｃｒｅａｔｅ＿ｉｓｓｕｅ",  # noqa: RUF001 - full width is the point
    ],
)
def test_an_identifier_is_the_same_terms_however_its_parts_are_joined(written):
    assert terms(written, brands=False) == terms("create_issue")


def test_an_identifier_is_found_whole_and_in_parts():
    found = terms("create_issue")
    assert [term for term in found if not term.startswith(WHOLE)] == [stem("create"), stem("issue")]
    assert len([term for term in found if term.startswith(WHOLE)]) == 1


def test_no_plain_word_is_ever_taken_for_a_whole_identifier():
    assert not set(terms("create issue")) & {term for term in terms("create_issue") if term.startswith(WHOLE)}
    assert words("createIssue of repo.name") == [stem(each) for each in ("create", "issue", "repo", "name")]


@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        ("HTTPServer", ["http", "server"]),
        ("ListObjectsV2", ["list", "objects", "v", "2"]),
        ("list_objects_v2", ["list", "objects", "v", "2"]),
        ("S3Bucket", ["s", "3", "bucket"]),
        ("oauth2_token", ["oauth", "2", "token"]),
        ("v2.10", ["v", "2", "10"]),
        ("parseJSONFile", ["parse", "json", "file"]),
        ("github__create_issue", ["github", "create", "issue"]),
        ("get_by_id", ["get", "id"]),
    ],
)
def test_parts_end_where_case_digits_and_joints_say_so(identifier, parts):
    assert words(identifier) == [stem(part) for part in parts]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("issue", "issues"),
        ("create", "creating"),
        ("delete", "deleted"),
        ("repository", "repositories"),
        ("translate", "translation"),
        ("Message", "messages"),
    ],
)
def test_a_word_is_found_with_other_endings(one, other):
    assert terms(one) == terms(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("réunion café", "reunion cafe"),
        ("naïve", "naive"),
        ("Grüße", "gruße"),
        ("Ｇｉｔｈｕｂ", "github"),  # noqa: RUF001
        ("ﬁle", "file"),
        ("ﾌｧｲﾙ", "ファイル"),
        ("r\u0065\u0301sum\u0065\u0301", "résumé"),
        ("ПОИСК", "поиск"),
        ("v②", "v2"),
    ],
)
def test_what_reads_alike_is_spelt_alike(one, other):
    assert terms(one) == terms(other)
    assert terms(one)


def test_kana_keep_their_marks_and_hangul_stays_in_one_piece():
    assert fold("ガ") != fold("カ")
    for text in ("ガイドブック", "검색합니다"):
        assert fold(unicodedata.normalize("NFD", text)) == text


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("日本語の文書を検索する", "検索"),
        ("日本語の文書を検索する", "文書"),
        ("ファイルを削除します", "ファイル"),
        ("查询城市的天气预报", "天气"),
        ("搜索文件和文件夹", "文件夹"),
        ("파일을 검색합니다", "검색"),
        ("이메일을보내기", "이메일"),
    ],
)
def test_scripts_without_spaces_are_found_by_a_part_of_a_run(text, asked):
    assert set(terms(asked)) <= set(terms(text))
    assert terms(asked)


def test_endings_in_hiragana_say_nothing():
    assert terms("検索する") == terms("検索")


def test_a_single_character_of_such_a_script_is_a_term():
    assert terms("水") == ["水"]


def test_words_of_two_scripts_side_by_side_are_both_found():
    assert set(terms("GitHubのissueを作成")) >= {stem("issue"), "作成"}


def test_stop_words_are_left_out_of_texts_and_kept_in_names():
    assert terms("what is in the box for us") == [stem("box")]
    assert terms("to_do", keep_stop_words=True)[:2] == ["to", "do"]
    assert [term for term in terms("to_do") if not term.startswith(WHOLE)] == []


def test_an_identifier_of_stop_words_is_still_found_whole():
    assert terms("to_do") == terms("toDo") != []


def test_every_stop_word_is_one_however_it_is_written():
    assert terms(" ".join(STOP_WORDS).upper()) == []
    assert len(terms(" ".join(STOP_WORDS), keep_stop_words=True)) == len(STOP_WORDS)


@pytest.mark.parametrize("text", ["", " ", "_", "---", "...", "😀🚀", "\x00\x1b\x7f", "\ud83d", "\u200b", "()[]{}"])
def test_what_has_no_words_has_no_terms(text):
    assert terms(text, keep_stop_words=True) == []
    assert spoken(text) == ""


@pytest.mark.parametrize("text", ["x" * 100_000, "a_" * 50_000, "e" + "\u0301" * 50_000, "あ" * 50_000, "aB" * 50_000])
def test_absurd_words_make_terms_of_bounded_length(text):
    assert max(len(term) for term in terms(text, keep_stop_words=True)) <= 80


def test_identifiers_are_spoken_as_words():
    assert spoken("createJiraIssue") == "create Jira Issue"
    assert spoken("github__list-issues") == "github list issues"


@several
@given(st.text(max_size=200))
def test_any_text_has_terms_of_its_own_and_they_never_depend_on_the_moment(text):
    found = terms(text)
    assert all(found)
    assert found == terms(text)
    assert words(text) == [term for term in terms(text, brands=False) if not term.startswith(WHOLE)]
    assert len(terms(text, keep_stop_words=True)) >= len(found)


@several
@given(st.text(max_size=80), st.text(max_size=80))
def test_the_terms_of_a_text_are_those_of_its_halves(one, other):
    assert terms(f"{one} {other}") == terms(one) + terms(other)


@several
@given(st.text(max_size=80))
def test_folding_what_is_folded_changes_nothing(text):
    assert fold(fold(text)) == fold(text)


@several
@given(st.lists(st.sampled_from(["send", "message", "user", "v", "2", "by", "id", "list"]), min_size=2, max_size=5))
def test_any_identifier_is_the_same_in_every_style(parts):
    snake = terms("_".join(parts), keep_stop_words=True)
    assert terms("-".join(parts), keep_stop_words=True) == snake
    assert terms(".".join(parts), keep_stop_words=True) == snake
