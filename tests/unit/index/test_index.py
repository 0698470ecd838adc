"""The index as a value: hits that explain themselves, the servers to go to, and an honest nothing."""

from __future__ import annotations

import numpy as np
import pytest

from pegboard.index.index import Index, Wanted, slots_of
from pegboard.index.intent import understand
from tests.unit.index.given import index_of, names, office, office_index, static, suite_parts, tool

NONSENSE = "qzxv blorptang"


def search(index: Index, query, *, meaning=True, **wanted):
    intent = understand(query)
    return index.search(intent, static().embedded(intent.embedded) if meaning else None, Wanted(**wanted))


def route(index: Index, query, limit=3, allowed=None):
    intent = understand(query)
    return index.route(intent, static().embedded(intent.embedded), limit, allowed)


@pytest.fixture(scope="module")
def index():
    return office_index()


def test_hits_come_best_first_and_no_more_than_asked_for(index):
    for limit in (1, 3, 20):
        hits = search(index, "open an issue", limit=limit, always=True).hits
        assert len(hits) == min(limit, len(office()))
        scores = [hit.match.score for hit in hits]
        assert scores == sorted(scores, reverse=True)
        assert hits[0].name == "github__create_issue"


def test_a_hit_says_why_it_is_one(index):
    hit = search(index, "create an issue on github").hits[0]
    assert hit.server == "github"
    assert hit.match.words["issu"] == ("name", "description")
    assert "server" in hit.match.words["github"]
    assert hit.match.name_covered == pytest.approx(1)
    assert hit.match.lexical > 0
    assert 0 < hit.match.dense <= 1
    assert hit.match.server_named == pytest.approx(1)
    assert hit.match.prior == 0


def test_the_score_is_the_sum_that_decided(index):
    lifts = {"slack__send_message": 0.125}
    usual = {hit.name: hit.match for hit in search(index, "open an issue", limit=20).hits}
    lifted = search(index, "open an issue", limit=20, lift=lambda name: lifts.get(name, 0.0)).hits
    for hit in lifted:
        assert hit.match.prior == pytest.approx(lifts.get(hit.name, 0))
        assert hit.match.score == pytest.approx(usual[hit.name].score + hit.match.prior, abs=1e-5)


def test_by_words_alone_there_is_no_likeness(index):
    answer = search(index, "open an issue", meaning=False)
    assert names(answer)[0] == "github__create_issue"
    assert all(hit.match.dense == 0 for hit in answer.hits)


@pytest.mark.parametrize("meaning", [True, False])
def test_where_nothing_fits_there_are_no_hits_and_the_nearest_servers_are_named(index, meaning):
    answer = search(index, NONSENSE, meaning=meaning)
    assert answer.hits == ()
    assert 0 < len(answer.nearest_servers) <= 3
    assert set(answer.nearest_servers) <= set(index.parts.about.servers)


def test_the_best_there_is_comes_on_request_though_nothing_fits(index):
    assert len(search(index, NONSENSE, always=True, limit=4).hits) == 4


def test_the_nearest_servers_are_those_of_the_hits(index):
    answer = search(index, "open an issue")
    assert answer.nearest_servers == tuple(dict.fromkeys(hit.server for hit in answer.hits))[:3]


def test_what_is_demanded_is_in_every_hit_whatever_else_is_asked(index):
    assert set(names(search(index, "+disk weather forecast", limit=20))) == {"files__read_file", "files__delete_file"}
    assert names(search(index, "+disk +good weather forecast", limit=20)) == ["files__delete_file"]
    assert search(index, "+blorptang weather forecast").hits == ()


def test_demands_and_filters_hold_together(index):
    allowed = index.mask(lambda name: name != "files__delete_file")
    assert names(search(index, "+disk anything", allowed=allowed)) == ["files__read_file"]
    assert allowed.sum() == len(office()) - 1


def test_nothing_is_found_where_nothing_is_allowed(index):
    none = np.zeros(len(office()), np.bool_)
    assert search(index, "open an issue", allowed=none).hits == ()
    assert route(index, "open an issue", allowed=none) == ()


@pytest.mark.parametrize("meaning", [True, False])
def test_an_empty_index_finds_nothing(meaning):
    empty = index_of(meaning=meaning)
    assert search(empty, "open an issue", always=True).hits == ()
    assert route(empty, "open an issue") == ()


def test_equal_tools_stay_in_the_order_of_the_catalog():
    twins = [tool(f"open_door_{letter}", "Opens a door.") for letter in "pqrst"]
    assert names(search(index_of(*twins, meaning=False), "open the door", always=True)) == [
        each.public_name for each in twins
    ]


@pytest.mark.parametrize(
    ("query", "server"),
    [
        ("open an issue", "github"),
        ("delete that file from the disk", "files"),
        ("post something to the team's channel", "slack"),
        ("rain or wind tomorrow", "weather"),
    ],
)
def test_the_server_that_can_do_it_comes_first(index, query, server):
    assert route(index, query)[0] == server
    assert len(route(index, query, limit=2)) == 2


def test_no_server_is_named_twice_or_from_outside():
    suite = Index(suite_parts())
    for query in ("create an issue", "send mail", NONSENSE):
        found = route(suite, query, limit=10)
        assert len(set(found)) == len(found) == 10
        assert set(found) <= set(suite.parts.about.servers)


def test_only_allowed_servers_are_gone_to(index):
    allowed = index.mask(lambda name: not name.startswith("github__"))
    assert "github" not in route(index, "open an issue", 10, allowed)


def test_servers_have_numbers(index):
    assert index.server_number("github") == 0
    assert index.server_number("nobody") == -1


@pytest.mark.parametrize(
    ("share", "limit", "slots"), [(0.4, 5, 2), (0.4, 1, 1), (0.0, 5, 1), (1.0, 5, 5), (0.5, 3, 1), (0.2, 20, 4)]
)
def test_a_share_of_the_places_is_never_less_than_one(share, limit, slots):
    assert slots_of(share, limit) == slots


def test_a_copy_is_named_beside_the_tool_it_is_a_copy_of():
    about = "Open a new issue in a repository, with labels and assignees."
    index = index_of(*(tool("create_issue", about, server) for server in ("a", "b", "c")), *office("slack"))
    hit = search(index, "open an issue").hits[0]
    assert (hit.name, *hit.also) == ("a__create_issue", "b__create_issue", "c__create_issue")
