"""From words and vectors to scores: what is looked at, what it is worth, and that the work is bounded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.index import rank, vectors, weights
from pegboard.index.intent import understand
from pegboard.index.rank import MOST_WORDS, Field, candidates, sought
from tests.unit.index.given import office, parts_of, static, suite_parts, suite_tools, taking, tool


def scored(parts, query, allowed=None, *, meaning=True):
    """Each candidate's parts, by public name."""
    intent = understand(query)
    rows = static().embedded(intent.embedded) if meaning else None
    found, ranked = candidates(parts, intent, rows, Field(allowed=allowed))
    names = [parts.facts.name(int(each)) for each in ranked.tools]
    return found, ranked, {name: place for place, name in enumerate(names)}


def best(parts, query, **options):
    _, ranked, places = scored(parts, query, **options)
    return max(places, key=lambda name: float(ranked.score[places[name]]))


@pytest.fixture(scope="module")
def parts():
    return parts_of(office())


@pytest.mark.parametrize("meaning", [True, False], ids=["vectors", "words"])
@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("open an issue in the repository", "github__create_issue"),
        ("delete a file", "files__delete_file"),
        ("weather forecast", "weather__get_forecast"),
        ("message to a channel", "slack__send_message"),
    ],
)
def test_the_tool_whose_words_are_said_is_best(parts, query, name, meaning):
    assert best(parts, query, meaning=meaning) == name


def test_the_tool_that_means_it_is_best_though_no_word_is_shared(parts):
    assert best(parts, "will it be sunny or snow on Tuesday?") == "weather__get_forecast"


@pytest.mark.parametrize("query", ["weater forcast", "delette the file", "mesage to a chanel"])
def test_misspelt_words_are_found(parts, query):
    right = {"weater forcast": "weather__get_forecast", "delette the file": "files__delete_file"}
    assert best(parts, query, meaning=False) == right.get(query, "slack__send_message")


def test_a_misspelt_word_is_worth_less_than_the_right_one(parts):
    right, wrong = sought(parts, understand("repository")), sought(parts, understand("repositry"))
    assert right.terms[0] == wrong.terms[0]
    assert wrong.gain[0] < right.gain[0]


def test_words_that_no_tool_has_are_missed_and_not_sought(parts):
    found, without = sought(parts, understand("forecast blorptang")), sought(parts, understand("forecast"))
    assert found.words == without.words
    assert found.total > without.total


def test_of_very_many_words_those_that_tell_most_are_sought():
    every = " ".join(each.description for each in suite_tools())
    found = sought(suite_parts(), understand(every))
    assert len(found.terms) == MOST_WORDS
    assert found.gain.tolist() == sorted(found.gain.tolist(), reverse=True)


def test_a_long_query_is_answered_from_a_bounded_number_of_candidates():
    every = " ".join(each.description for each in suite_tools())
    _, ranked, _ = scored(suite_parts(), every)
    assert 0 < len(ranked.tools) <= 2 * weights.CANDIDATES


def test_shares_are_shares(parts):
    for query in ("create an issue", "github", "files delete_file read_file", "issue issue issue", "x"):
        _, ranked, _ = scored(parts, query)
        for share in (ranked.name, ranked.query, ranked.server):
            assert (share >= 0).all()
            assert (share <= 1 + 1e-5).all()


def test_a_name_that_is_said_in_full_is_covered_in_full(parts):
    _, ranked, places = scored(parts, "create issue please")
    assert ranked.name[places["github__create_issue"]] == pytest.approx(1)
    assert 0 < ranked.name[places["github__list_issues"]] < 1
    assert ranked.name[places["weather__get_forecast"]] == 0


def test_a_server_that_is_named_is_seen(parts):
    _, ranked, places = scored(parts, "slack channels")
    assert ranked.server[places["slack__list_channels"]] == pytest.approx(1)
    assert ranked.server[places["weather__get_forecast"]] == 0


def test_the_server_that_is_named_is_preferred_among_equals():
    twins = [tool("search", "Search all documents.", server) for server in ("alpha", "beta", "gamma")]
    parts = parts_of(twins)
    for server in ("alpha", "beta", "gamma"):
        assert best(parts, f"search documents in {server}") == f"{server}__search"


def test_a_verb_of_the_same_kind_agrees_and_one_of_another_does_not(parts):
    _, ranked, places = scored(parts, "remove the old file")
    assert ranked.verb[places["files__delete_file"]] == 1
    assert ranked.verb[places["files__read_file"]] == -1
    _, ranked, _ = scored(parts, "forecast")
    assert (ranked.verb == 0).all()


def test_each_step_of_a_task_brings_its_tool_up():
    parts = suite_parts()
    query = "Find the customer's last invoice in Stripe, then send a message about it to the sales channel on Slack."
    _, ranked, places = scored(parts, query)
    order = sorted(places, key=lambda name: -float(ranked.score[places[name]]))[:6]
    assert any(name.startswith("slack__") for name in order)
    assert any(name.startswith("stripe__") for name in order)


@pytest.mark.parametrize("meaning", [True, False])
def test_nothing_outside_of_what_is_allowed_is_a_candidate(meaning):
    parts = suite_parts()
    for kept in (3, 100, 250):
        allowed = np.zeros(parts.about.tools, np.bool_)
        allowed[-kept:] = True
        _, ranked, _ = scored(parts, "create an issue", allowed, meaning=meaning)
        assert allowed[ranked.tools].all()
        assert len(ranked.tools) >= min(kept, 20)


def test_where_few_tools_are_allowed_all_of_them_are_candidates():
    parts = suite_parts()
    allowed = np.zeros(parts.about.tools, np.bool_)
    allowed[:5] = True
    _, ranked, _ = scored(parts, "zzz", allowed)
    assert sorted(ranked.tools.tolist()) == [0, 1, 2, 3, 4]


def test_common_words_are_not_added_up_without_end_and_the_best_is_still_found(monkeypatch):
    parts = suite_parts()
    queries = ["create an issue in a github repository", "send a message to a slack channel"]
    usual = [best(parts, query) for query in queries]
    monkeypatch.setattr(rank, "ALL_WORDS_BELOW", 30)
    assert [best(parts, query) for query in queries] == usual
    assert best(parts, queries[0], meaning=False) == "github__create_issue"


def test_clusters_find_what_comparing_all_finds(monkeypatch):
    trades = ["invoice", "weather", "calendar", "music", "database", "email", "video", "hotel", "stock", "recipe"]
    verbs = ["create", "delete", "list", "update", "search", "export"]
    tools = [
        tool(f"{verb}_{trade}_{number}", f"{verb} one {trade} of account {number}", f"{trade}_app")
        for trade in trades
        for verb in verbs
        for number in range(20)
    ]
    exact = parts_of(tools)
    monkeypatch.setattr(vectors, "EXACT_BELOW", 500)
    monkeypatch.setattr(vectors, "LEAST_PROBED", 120)
    clustered = parts_of(tools)
    assert clustered.vectors is not None
    assert clustered.vectors.clustered
    for query in ("delete a hotel", "search recipe account 7", "what will the weather be"):
        same = {best(exact, query), best(clustered, query)}
        assert len(same) == 1


def test_a_query_that_says_nothing_scores_without_a_warning(parts):
    for query in ("", "😀", "the of to", "blorptang"):
        _, ranked, _ = scored(parts, query)
        assert np.isfinite(ranked.score).all()
        _, ranked, _ = scored(parts, query, meaning=False)
        assert np.isfinite(ranked.score).all()


def test_parameters_count_for_less_than_the_name():
    parts = parts_of(
        [
            tool("search_flights", "Looks for seats.", "air"),
            tool("book_seat", "Books one.", "air", schema=taking(flights="")),
        ]
    )
    assert best(parts, "flights", meaning=False) == "air__search_flights"


@given(st.integers(1, 3000), st.integers(1, 120), st.integers(1, 50), st.booleans(), st.integers(0, 99))
def test_of_many_scores_none_is_higher_than_those_taken(total, wanted, different, some_barred, seed):
    chance = np.random.default_rng(seed)
    scores = chance.integers(0, different, total).astype(np.float32)
    allowed = chance.random(total) < 0.5 if some_barred else None
    taken = rank._best(scores, None, allowed, wanted)
    open_to = scores if allowed is None else scores[allowed]
    assert sorted(scores[taken]) == sorted(open_to)[max(0, len(open_to) - wanted) :]
    assert len(set(taken.tolist())) == len(taken)
    assert allowed is None or allowed[taken].all()
