"""Answers over a catalog: exact names without the engine, filters that never leak, and no embedder that is needed."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec
import pytest

from pegboard.index.finder import BY_WORDS, DEFAULT_LIMIT, MOST_SURFACED, Finder, Terms
from pegboard.index.index import Index, slots_of
from pegboard.index.narrow import Narrow
from pegboard.index.priors import BOUND
from pegboard.types import Priors
from tests.unit.index.given import (
    BrokenEmbedder,
    CountingEmbedder,
    ask,
    by_name,
    finder_of,
    index_of,
    names,
    office,
    office_index,
    static,
    suite_finder,
    suite_parts,
    suite_tools,
    tool,
)

ISSUE = "Open a new issue in a repository, with labels and assignees."


@pytest.fixture(scope="module")
def finder():
    return Finder(by_name(office()), office_index(), static())


class Untouched(Index):
    """An engine that must not be asked."""

    def search(self, *_):
        raise AssertionError("the engine was asked")


# ── exact names ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", [each.public_name for each in office()])
def test_an_exact_public_name_is_found_alone_and_without_the_engine(name):
    embedder = CountingEmbedder()
    finder = Finder(by_name(office()), Untouched(office_index().parts), embedder)
    for query in (name, f"  {name}\n"):
        (hit,) = ask(finder, query).hits
        assert (hit.name, hit.confidence) == (name, 1.0)
    assert embedder.queries == []


def test_select_asks_no_engine_either_and_says_what_no_tool_is_called():
    finder = Finder(by_name(office()), Untouched(office_index().parts), BrokenEmbedder())
    answer = ask(finder, "select: send_message, github__create_issue, nope, create_issue, files__nothing")
    assert names(answer) == ["slack__send_message", "github__create_issue"]
    assert answer.unknown == ("nope", "files__nothing")
    assert answer.notes == ()


@pytest.mark.parametrize(
    "query",
    [
        'select:"send_message", "create_issue"',
        "select:`send_message`,'create_issue'",
        'select:["send_message","create_issue"]',
    ],
)
def test_names_to_select_may_be_quoted(finder, query):
    answer = ask(finder, query)
    assert names(answer) == ["slack__send_message", "github__create_issue"]
    assert answer.unknown == ()


def test_select_gives_all_that_are_named_whatever_the_limit(finder):
    every = [each.public_name for each in office()]
    assert names(ask(finder, "select:" + ",".join(every), limit=1)) == every


def test_select_of_a_name_that_two_servers_have_is_not_guessed():
    finder = finder_of(tool("search", "In mail.", "gmail"), tool("search", "In flights.", "travel"))
    assert ask(finder, "select:search").unknown == ("search",)
    assert names(ask(finder, "select:search", servers=("travel",))) == ["travel__search"]


def test_a_unique_bare_name_is_first_and_others_follow(finder):
    answer = ask(finder, "list_issues")
    assert names(answer)[0] == "github__list_issues"
    assert answer.hits[0].confidence == 1.0
    assert "github__create_issue" in names(answer)
    assert names(answer).count("github__list_issues") == 1
    assert len(ask(finder, "list_issues", DEFAULT_LIMIT, always=True).hits) == DEFAULT_LIMIT
    assert names(ask(finder, "list_issues", limit=1)) == ["github__list_issues"]


def test_a_bare_name_that_says_nothing_is_first_all_the_same():
    finder = finder_of(tool("qzxv", "Zzz."), *office())
    assert names(ask(finder, "qzxv"))[0] == "github__qzxv"
    assert names(ask(finder, "about")) == names(ask(finder, "about"))


def test_a_bare_name_that_two_servers_have_is_exact_for_neither():
    finder = finder_of(
        tool("search", "Search mail in the inbox.", "gmail"), tool("search", "Find flights to a city.", "travel")
    )
    answer = ask(finder, "search")
    assert sorted(names(answer)) == ["gmail__search", "travel__search"]
    assert all(hit.confidence < 1 for hit in answer.hits)
    assert names(ask(finder, "search", servers=("travel",))) == ["travel__search"]


def test_a_public_name_comes_before_a_bare_name_that_is_spelt_the_same():
    finder = finder_of(tool("a__b", "Something.", "c"), tool("b", "Something else.", "a"))
    assert names(ask(finder, "a__b")) == ["a__b"]
    assert ask(finder, "a__b").hits[0].server == "a"


@pytest.mark.parametrize("query", ["github__create_issue", "create_issue", "select:create_issue"])
def test_a_filter_holds_for_exact_names_too(finder, query):
    narrows: list[dict[str, Any]] = [{"servers": ("slack",)}, {"allow": ("slack__*",)}, {"tags": ("none",)}]
    for narrow in narrows:
        assert "github__create_issue" not in names(ask(finder, query, always=True, **narrow))


# ── how many ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("limit", [-3, 0, 1, 2, 5, 19, 20, 21, 1000])
def test_at_least_one_and_at_most_twenty_are_shown(limit):
    found = names(ask(suite_finder(), "send a message to a person", limit=limit, always=True))
    assert len(found) == len(set(found)) == min(max(limit, 1), MOST_SURFACED)


def test_a_shorter_list_is_the_beginning_of_a_longer_one():
    every = names(ask(suite_finder(), "list all issues of a project", limit=20))
    for limit in range(1, 20):
        assert names(ask(suite_finder(), "list all issues of a project", limit=limit)) == every[:limit]


# ── filters ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("meaning", [True, False])
def test_the_list_of_one_server_is_full_whatever_is_asked(meaning):
    finder = finder_of(*suite_tools(), meaning=meaning)
    for query in ("create an issue", "weather tomorrow", "blorptang"):
        found = ask(finder, query, 10, always=True, servers=("github",))
        assert len(found.hits) == 10
        assert {hit.server for hit in found.hits} == {"github"}
        assert all(name.startswith("github__") for hit in found.hits for name in hit.also)


def test_a_server_that_has_no_tools_has_no_hits(finder):
    assert ask(finder, "open an issue", always=True, servers=("nobody",)).hits == ()


CRM = ["account", "deal", "lead", "ticket", "quote", "order", "task", "note", "call", "visit"]


def test_tags_and_scopes_and_allowlists_leave_the_list_full():
    tools = [
        tool(
            f"open_{thing}",
            f"Open one {thing} for a customer.",
            tags=("crm",) if number % 2 else (),
            scopes=("admin",) if number % 3 else (),
        )
        for number, thing in enumerate(CRM)
    ]
    finder = finder_of(*tools)
    tagged = {each.public_name for each in tools if each.tags}
    free = {each.public_name for each in tools if not each.scopes}
    assert set(names(ask(finder, "open one", 5, always=True, tags=("crm",)))) == tagged
    assert set(names(ask(finder, "open one", 4, always=True, scopes=()))) == free
    assert len(names(ask(finder, "open one", 10, always=True, scopes=("admin",)))) == 10
    assert set(names(ask(finder, "open one", 5, always=True, tags=("crm",), scopes=()))) == tagged & free
    assert set(names(ask(finder, "open an account", 5, always=True, allow=("*_deal", "github__open_l*")))) == {
        "github__open_deal",
        "github__open_lead",
    }
    assert ask(finder, "open an account", always=True, allow=()).hits == ()


def test_price_and_latency_leave_out_what_is_known_to_be_too_much():
    tools = [tool(f"draw_{kind}", f"Draw a {kind}.", cost_usd=price) for kind, price in COSTS.items()]
    priors = {
        "github__draw_circle": Priors(calls=3, p95_ms=100, p99_ms=5000),
        "github__draw_square": Priors(calls=3, p95_ms=5000, p99_ms=5000),
        "github__draw_line": Priors(calls=3, cost_usd=7.0),
    }
    finder = finder_of(*tools, priors=priors)

    def left(**narrow):
        return {name.removeprefix("github__draw_") for name in names(ask(finder, "draw", 10, always=True, **narrow))}

    assert left() == set(COSTS)
    assert left(max_cost_usd=0.5) == {"circle", "square", "star"}
    assert left(max_latency_ms=1000) == {"circle", "line", "star", "cube"}
    assert left(max_latency_ms=1000, latency="p99") == {"line", "star", "cube"}
    assert left(max_latency_ms=1000, latency="p99", max_cost_usd=0.5) == {"star"}


COSTS: dict[str, float | None] = {"circle": 0.1, "square": None, "line": 0.2, "star": None, "cube": 3.0}


def test_many_different_filters_one_after_the_other_give_what_each_gives_alone(finder):
    for _ in range(2):
        for number in range(40):
            rule = f"{'github' if number % 2 else 'slack'}__*"
            found = ask(finder, "list", 20, always=True, allow=(rule, f"x{number}"))
            assert {hit.server for hit in found.hits} == {"github" if number % 2 else "slack"}


# ── copies ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("meaning", [True, False])
def test_copies_on_other_servers_are_folded_and_named(meaning):
    copies = [tool("create_issue", ISSUE, server) for server in ("alpha", "beta", "gamma")]
    answer = ask(finder_of(*copies, *office("slack", "files"), meaning=meaning), "open a new issue")
    found = next(hit for hit in answer.hits if hit.name.endswith("create_issue"))
    assert {found.name, *found.also} == {each.public_name for each in copies}
    assert sum(name.endswith("create_issue") for name in names(answer)) == 1


def test_different_tools_of_one_server_are_all_listed():
    tools = [
        tool(f"{verb}_issue", f"{verb.title()} an issue in a repository.") for verb in ("create", "delete", "close")
    ]
    answer = ask(finder_of(*tools, *office("slack")), "issue in a repository")
    assert {each.public_name for each in tools} <= set(names(answer))
    assert all(hit.also == () for hit in answer.hits)


# ── trust ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("limit", "share"), [(5, 0.4), (5, 0.2), (10, 0.4), (1, 0.4), (20, 0.1)])
def test_a_server_of_limited_trust_holds_no_more_than_its_share(limit, share):
    rogue = [tool(f"create_issue_{thing}", "Open a new issue.", "rogue") for thing in ("red", "green", "blue", "black")]
    finder = finder_of(*rogue, *suite_tools(), limited=["rogue"], max_share=share)
    answer = ask(finder, "open a new issue", limit)
    assert sum(hit.server == "rogue" for hit in answer.hits) <= slots_of(share, limit)
    assert len(answer.hits) == limit


def test_a_server_of_full_trust_may_hold_every_place(finder):
    answer = ask(finder_of(*suite_tools(), limited=["nobody"], max_share=0.1), "github repository", 5)
    assert {hit.server for hit in answer.hits} == {"github"}


# ── priors ───────────────────────────────────────────────────────────────────────────────────────────────────────────

GOOD = Priors(calls=1e6, success_rate=1.0, p95_ms=1.0, cost_usd=1e-6, last_used=4e9)
BAD = Priors(calls=1e6, success_rate=0.0, p95_ms=1e6, cost_usd=1e6, last_used=1.0)
TWINS = [tool(f"open_door_{letter}", "Opens a door.") for letter in "pqrs"]


@pytest.mark.parametrize("first", [each.public_name for each in TWINS])
def test_a_record_decides_between_equals(first):
    others = {each.public_name: BAD for each in TWINS}
    finder = finder_of(*TWINS, meaning=False, priors={**others, first: GOOD})
    assert names(ask(finder, "open the door", always=True))[0] == first


def test_no_record_lifts_a_poor_match_over_a_good_one():
    priors = {each.public_name: GOOD for each in suite_tools()}
    for query in ("create an issue on github", "send a message to a slack channel", "take a screenshot"):
        plain = ask(suite_finder(), query, 20, always=True)
        best = plain.hits[0]
        finder = Finder(by_name(suite_tools()), Index(suite_parts()), static(), priors={**priors, best.name: BAD})
        after = names(ask(finder, query, 20, always=True))
        beaten = {hit.name for hit in plain.hits if best.match.score - hit.match.score > 2 * BOUND}
        assert not beaten & set(after[: after.index(best.name)])
        assert beaten


def test_what_a_record_added_is_told(finder):
    told = ask(finder_of(*office(), priors={"github__create_issue": GOOD}), "open an issue").hits[0].match
    assert 0 < told.prior <= BOUND
    assert ask(finder, "open an issue").hits[0].match.prior == 0


def test_a_declared_price_orders_equals_without_any_record():
    tools = [tool("open_door_p", "Opens a door.", cost_usd=5.0), tool("open_door_q", "Opens a door.", cost_usd=0.0001)]
    assert names(ask(finder_of(*tools, meaning=False), "open the door", always=True))[0] == "github__open_door_q"
    assert time.time() < 4e9, "the records above say that they were used just now"


# ── nothing fits ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "query", ["", "   ", "😀", "\x00\x1b[31m", "qzxv blorptang", "select:", "+", "\ud83d", "。。。"]
)
def test_where_nothing_fits_nothing_is_given(finder, query):
    answer = ask(finder, query)
    assert answer.hits == ()
    assert answer.notes == ()


def test_where_nothing_fits_the_nearest_servers_are_named(finder):
    answer = ask(finder, "qzxv blorptang")
    assert 0 < len(answer.nearest_servers) <= 3
    assert set(answer.nearest_servers) <= {each.server for each in office()}


def test_among_the_allowed_only_are_the_nearest_servers_sought(finder):
    assert ask(finder, "qzxv blorptang", servers=("slack",)).nearest_servers == ("slack",)


def test_a_word_that_is_demanded_and_that_no_tool_has_finds_nothing(finder):
    assert ask(finder, "+blorptang open an issue", always=True).hits == ()


@pytest.mark.parametrize("meaning", [True, False])
def test_demanded_words_are_in_every_hit(meaning):
    finder = finder_of(*suite_tools(), meaning=meaning)
    answer = ask(finder, "+repository +issue anything at all", 20)
    assert answer.hits
    for hit in answer.hits:
        text = finder.tools[hit.name].definition.decode().lower()
        assert "repositor" in text
        assert "issue" in text


# ── the embedder ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_embedder_that_fails_leaves_a_search_by_words_and_a_note():
    finder = Finder(by_name(office()), office_index(), BrokenEmbedder())
    answer = ask(finder, "open an issue")
    assert names(answer)[0] == "github__create_issue"
    assert answer.notes == (f"{BY_WORDS}: the model is asleep",)
    assert asyncio.run(finder.servers("open an issue"))[0] == "github"


@pytest.mark.parametrize("embedder", [None, BrokenEmbedder("another:1")])
def test_an_index_of_another_embedder_is_searched_by_words_and_says_so(embedder):
    finder = Finder(by_name(office()), office_index(), embedder)
    answer = ask(finder, "open an issue")
    assert names(answer)[0] == "github__create_issue"
    (note,) = answer.notes
    assert note.startswith(BY_WORDS)


def test_without_an_embedder_words_are_all_there_is_to_say():
    answer = ask(finder_of(*office(), meaning=False), "open an issue")
    assert names(answer)[0] == "github__create_issue"
    assert answer.notes == ()


def test_a_query_is_embedded_once(finder):
    embedder = CountingEmbedder()
    ask(Finder(by_name(office()), office_index(), embedder), "open an issue")
    assert embedder.queries[0] == "open an issue"
    assert embedder.tools == []


# ── a catalog that went on ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_tool_that_left_the_catalog_is_not_in_the_answer():
    copy = tool("create_issue", ISSUE, "zeta")
    made = [tool("create_issue", ISSUE, "alpha"), copy, *office("slack", "files")]
    index = index_of(*made)
    gone = "alpha__create_issue"
    finder = Finder(
        by_name(each for each in made if each.public_name not in (gone, "files__read_file")),
        index,
        static(),
        current=False,
    )
    for query in ("open an issue", "read the file", gone, f"select:{gone}", "create_issue"):
        answer = ask(finder, query, 20, always=True)
        assert {gone, "files__read_file"}.isdisjoint(name for hit in answer.hits for name in (hit.name, *hit.also))


def test_a_copy_that_left_the_catalog_is_not_named():
    made = [tool("create_issue", ISSUE, server) for server in ("alpha", "beta", "gamma")] + office("slack")
    index = index_of(*made)
    lead = ask(Finder(by_name(made), index, static()), "open an issue").hits[0]
    gone = lead.also[0]
    finder = Finder(by_name(each for each in made if each.public_name != gone), index, static(), current=False)
    found = ask(finder, "open an issue").hits[0]
    assert (found.name, found.also) == (lead.name, lead.also[1:])


def test_a_tool_that_changed_is_held_to_its_filters_as_it_is_now():
    made = office()
    index = index_of(*made)
    now = by_name(msgspec.structs.replace(each, scopes=("admin",)) for each in made)
    assert ask(Finder(now, index, static()), "open an issue", always=True, scopes=()).hits == ()


def test_a_tool_that_is_too_new_for_the_index_is_found_by_its_name():
    finder = Finder(by_name([*office(), tool("ring", "Rings.", "door")]), office_index(), static())
    assert names(ask(finder, "door__ring")) == ["door__ring"]
    assert names(ask(finder, "ring"))[0] == "door__ring"


# ── servers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_servers_for_an_intent_are_named_best_first(finder):
    assert asyncio.run(finder.servers("delete a file from the disk"))[0] == "files"
    assert len(asyncio.run(finder.servers("delete a file", 2))) == 2
    assert asyncio.run(finder.servers("delete a file", 5, Narrow(servers=("slack", "bank")))) in (
        ("slack", "bank"),
        ("bank", "slack"),
    )


def test_many_searches_at_once_do_not_disturb_each_other():
    finder = suite_finder()
    queries = ["create an issue", "send a message", "take a screenshot", "list buckets", "merge a pull request"]

    async def together():
        return await asyncio.gather(*(finder.search(query, Terms(limit=3)) for query in queries * 8))

    alone = [names(ask(finder, query, 3)) for query in queries]
    assert [names(answer) for answer in asyncio.run(together())] == alone * 8
