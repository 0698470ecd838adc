"""What was saved, and how searching goes."""

from __future__ import annotations

import pytest

from pegboard.telemetry.stats import FOLLOWS_WITHIN, SHARED, Stats, Tally
from pegboard.types import Ending, Exposure, Lookup, Outcome, Record


def tallied(*records: Record, tools=(), server_of=None) -> Stats:
    tally = Tally(server_of) if server_of else Tally()
    for record in records:
        tally(record)
    return tally.stats(tools)


def listed(at: float = 0.5, conversation: str = "c", **more) -> Exposure:
    about = {"deferred": 5, "own_tokens": 600, "deferred_tokens": {"git": 8000, "notes": 2000}, "counted": "by bytes"}
    return Exposure(**{"at": at, "conversation": conversation, **about, **more})


def searched(at: float = 1.0, conversation: str = "c", found=("git__log", "git__show", "notes__add"), **more) -> Lookup:
    costs = {"request_tokens": 40, "answer_tokens": 301}
    return Lookup(**{"at": at, "query": "q", "conversation": conversation, "found": tuple(found), **costs, **more})


def called(tool: str = "git__log", at: float = 2.0, conversation: str = "c", **more) -> Outcome:
    server = tool.partition("__")[0]
    return Outcome(**{"at": at, "tool": tool, "server": server, "conversation": conversation, **more})


def test_net_savings_are_what_was_not_sent_less_all_that_it_cost():
    total = tallied(listed(), searched(), called()).total
    assert (total.not_sent, total.own_tools, total.asked, total.answered) == (10_000, 600, 40, 301)
    assert total.net == 10_000 - 600 - 40 - 301


def test_savings_may_be_negative_and_are_not_hidden():
    assert tallied(listed(deferred=0, deferred_tokens={}), searched()).total.net == -941


def test_every_list_counts_when_it_was_sent_and_turns_are_not_invented():
    assert tallied(listed(at=1.0), listed(at=2.0)).total.not_sent == 20_000
    assert tallied(listed(at=1.0)).total.not_sent == 10_000


def test_conversations_are_kept_apart():
    stats = tallied(listed(conversation="a"), searched(conversation="b"), called(conversation="b"))
    assert stats.conversations["a"].net == 9_400
    assert stats.conversations["b"].net == -341
    assert (stats.conversations["b"].searches, stats.conversations["b"].calls) == (1, 1)


def test_servers_bear_the_searches_that_found_their_tools_and_together_they_are_the_total():
    stats = tallied(listed(), searched(), searched(found=()), called())
    git, notes, shared = stats.servers["git"], stats.servers["notes"], stats.servers[SHARED]
    assert (git.not_sent, git.asked, git.answered, git.searches, git.calls) == (8000, 14 + 13, 101 + 100, 1, 1)
    assert (notes.not_sent, notes.asked, notes.answered, notes.searches) == (2000, 13, 100, 1)
    assert (shared.own_tools, shared.asked, shared.answered) == (600, 40, 301)
    assert git.net + notes.net + shared.net == stats.total.net


def test_the_catalog_says_whose_tool_it_is():
    stats = tallied(searched(found=["x__y"]), server_of=lambda name: "My Server")
    assert stats.servers["My Server"].answered == 301


def test_searches_are_followed_not_followed_or_find_nothing():
    stats = tallied(
        searched(at=1.0),
        searched(at=1.5, found=["notes__list"]),
        searched(at=1.6, found=[]),
        called("git__show", at=2.0),
    )
    searching = stats.searching
    assert (searching.searches, searching.followed, searching.not_followed, searching.found_nothing) == (3, 1, 1, 1)


def test_a_call_follows_a_search_only_in_its_own_conversation_only_after_it_and_only_within_the_hour():
    for outcome in (
        called(conversation="other"),
        called(caller="somebody else"),
        called(at=1.0 + FOLLOWS_WITHIN + 1),
        called("git__push"),
    ):
        assert tallied(searched(), outcome).searching.followed == 0
    assert tallied(called(at=0.5), searched()).searching.followed == 0
    assert tallied(searched(), called(at=1.0 + FOLLOWS_WITHIN)).searching.followed == 1


def test_a_search_is_followed_once_however_many_calls_come_of_it():
    assert tallied(searched(), called(), called(at=3.0), called("git__show", at=4.0)).searching.followed == 1


def test_calls_of_tools_that_no_search_had_found_are_named():
    stats = tallied(called(at=0.5), searched(), called(), called("notes__list"), called("notes__list"))
    assert list(stats.calling.without_search.items()) == [("notes__list", 2), ("git__log", 1)]


def test_names_that_no_tool_has_are_named_and_belong_to_no_server():
    stats = tallied(called("git__lgo", ending=Ending.NOT_FOUND))
    assert stats.calling.made_up == {"git__lgo": 1}
    assert stats.calling.without_search == {}
    assert stats.servers == {}
    assert stats.calling.calls == 1


def test_tools_never_found_and_never_called_are_listed():
    stats = tallied(searched(), called("mail__send"), tools=["git__log", "mail__send", "mail__read", "notes__add"])
    assert stats.never_found == ("mail__read",)


def test_adoption_counts_conversations_with_hidden_tools():
    stats = tallied(
        listed(conversation="a"),
        searched(conversation="a"),
        called(conversation="a"),
        listed(conversation="b"),
        called(conversation="b"),
        listed(conversation="c"),
        listed(conversation="off", deferred=0, deferred_tokens={}),
        searched(conversation="off"),
    )
    assert (stats.adoption.conversations, stats.adoption.searched, stats.adoption.called) == (3, 1, 2)


def test_it_says_how_tokens_were_counted_and_from_when_to_when():
    stats = tallied(listed(at=5.0), listed(at=6.0, counted="o200k"), searched(at=7.0))
    assert stats.counted == ("by bytes", "o200k")
    assert (stats.since, stats.until) == (5.0, 7.0)


def test_endings_ways_repairs_and_cached_answers_are_counted():
    calling = tallied(
        called(via="call_tool", repairs=2), called(via="batch", ending=Ending.TIMEOUT), called(via="batch", cached=True)
    ).calling
    assert calling.by_ending == {"ok": 2, "timeout": 1}
    assert list(calling.by_way.items()) == [("batch", 2), ("call_tool", 1)]
    assert (calling.repaired, calling.cached) == (1, 1)


@pytest.mark.parametrize("records", [(), (listed(deferred=0, own_tokens=0, deferred_tokens={}),)])
def test_with_nothing_saved_and_nothing_spent_all_is_nought(records):
    stats = tallied(*records)
    assert stats.total.net == 0
    assert stats.never_found == ()
