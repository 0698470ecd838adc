"""Every state a change can be in, and the exact borders between them."""

import pytest

from pegboard.doctor.facts import Fix, Session, Usage
from pegboard.doctor.report.outcome import State
from pegboard.doctor.report.samples import by_day
from pegboard.doctor.report.sides import since_of
from tests.unit.doctor.report.stories import (
    DISABLE,
    ENABLE,
    at,
    change,
    outcome,
    report,
    server,
    session,
    sessions,
)

BEFORE = sessions(28, -14, 0)
DEFERRED = {"": 4_000}


def _usage(read: int, write: int, messages: int = 10) -> Usage:
    return Usage(input=0, cache_read=read, cache_write=write, messages=messages)


# States


def test_a_change_after_which_no_session_began_is_pending():
    found = outcome(change(known=BEFORE), BEFORE)
    assert found.state is State.PENDING
    assert (found.saved, found.confidence, found.measure) == (None, None, None)
    assert found.saved_in_all == 0
    assert (found.before.definition_tokens, found.after.definition_tokens) == (15_000, None)


def test_a_session_that_began_before_the_change_and_goes_on_does_not_end_the_wait():
    going_on = session(-0.001, ended_at=at(3))
    assert outcome(change(known=BEFORE), [*BEFORE, going_on]).state is State.PENDING


def test_a_session_of_another_agent_or_folder_does_not_end_the_wait():
    fix = Fix(kind="server-disable", agent="claude-code", servers=(server("github", project="/home/ada/engine"),))
    others = [session(1, agent="codex"), session(1, project="/home/ada/other")]
    assert outcome(change(fix, known=BEFORE), [*BEFORE, *others]).state is State.PENDING


def test_a_session_that_began_with_the_change_ends_the_wait():
    assert outcome(change(known=BEFORE), [*BEFORE, session(0, DEFERRED)]).state is State.MEASURED


def test_a_change_that_brought_what_it_should_is_measured():
    found = outcome(change(known=BEFORE), [*BEFORE, *sessions(28, 0, 14, DEFERRED)])
    assert found.state is State.MEASURED
    assert (found.before.definition_tokens, found.after.definition_tokens) == (15_000, 4_000)
    assert found.saved == 11_000
    assert found.saved_in_all == 28 * 11_000
    assert (found.confidence, found.doubts) == ("high", ())


def test_what_was_saved_in_all_is_rounded_down():
    before = [session(-3, {"": 1_000}), session(-2, {"": 1_000}), session(-1, {"": 1_001})]
    assert outcome(change(known=before), [session(1, {"": 0})]).saved_in_all == 1_000
    assert outcome(change(known=before), [session(1, {"": 2_000})]).saved_in_all == -1_000


def test_a_change_that_changed_nothing_has_no_effect():
    found = outcome(change(known=BEFORE), [*BEFORE, *sessions(28, 0, 14)])
    assert (found.state, found.saved) == (State.NO_EFFECT, 0)


def test_a_change_after_which_more_is_paid_is_worse():
    found = outcome(change(known=BEFORE), [*BEFORE, *sessions(28, 0, 14, {"": 5_000, "github": 14_000})])
    assert (found.state, found.saved) == (State.WORSE, -4_000)
    assert found.saved_in_all == -4_000 * 28


def test_a_change_that_is_gone_from_its_file_was_reverted_by_hand_whatever_was_measured():
    after = sessions(28, 0, 14, DEFERRED)
    assert outcome(change(known=BEFORE, stands=False), [*BEFORE, *after]).state is State.REVERTED
    assert outcome(change(known=BEFORE, stands=False), BEFORE).state is State.REVERTED


def test_a_change_of_which_nobody_can_tell_whether_it_stands_is_judged_and_says_so():
    found = outcome(change(known=BEFORE, stands=None), [*BEFORE, *sessions(28, 0, 14, DEFERRED)])
    assert found.state is State.MEASURED
    assert found.notes == ("Whether its files still say so could not be told.",)


def test_an_undone_change_counts_only_while_it_lasted():
    known = [*BEFORE, *sessions(10, 0, 5, DEFERRED), *sessions(10, 5, 10)]
    found = outcome(change(known=BEFORE, undone_at=at(5), stands=False), known)
    assert found.state is State.UNDONE
    assert found.after.known == 10
    assert found.saved_in_all == 110_000


def test_a_change_undone_before_anything_began_is_undone_with_nothing_saved():
    found = outcome(change(known=BEFORE, undone_at=at(0.1)), [*BEFORE, *sessions(5, 1, 2)])
    assert (found.state, found.saved, found.after.sessions) == (State.UNDONE, None, 0)


def test_without_sessions_before_it_nothing_is_claimed():
    found = outcome(change(known=[]), sessions(28, 0, 14, DEFERRED))
    assert (found.state, found.saved, found.confidence) == (State.UNKNOWN, None, None)
    assert "No sessions before it are known to compare with." in found.notes


def test_a_change_whose_sessions_are_all_swept_away_is_not_pending():
    found = outcome(change(known=BEFORE), sessions(5, 40, 50, DEFERRED), day=60)
    assert (found.state, found.saved) == (State.UNKNOWN, None)
    assert found.notes == ("The sessions of the days after it are gone from this machine, and no report saw them.",)


def test_what_an_earlier_report_saw_outlives_the_transcripts():
    after = sessions(28, 0, 14, DEFERRED)
    seen = by_day(since_of(change(), after, now=at(14)), until=at(0))
    later = [session(20, DEFERRED), session(45, DEFERRED)]
    found = outcome(change(known=BEFORE, since=seen), [after[-1], *later], day=60)
    assert (found.state, found.saved, found.after.sessions) == (State.MEASURED, 11_000, 29)
    assert outcome(change(known=BEFORE, since=seen), [*after, *later], day=60).after.sessions == 29


def test_what_was_swept_counts_still_where_more_is_left_than_was_seen():
    early, late = sessions(8, 0, 4, DEFERRED), sessions(20, 4, 14, DEFERRED)
    seen = by_day(since_of(change(), early, now=at(4)), until=at(0))
    assert outcome(change(known=BEFORE, since=seen), late).after.sessions == 28
    assert outcome(change(known=BEFORE, since=seen), [*early, *late]).after.sessions == 28


# What is compared


def test_the_baseline_outlives_the_transcripts_it_was_made_from():
    after = sessions(28, 0, 14, DEFERRED)
    swept, there = outcome(change(known=BEFORE), after), outcome(change(known=BEFORE), [*BEFORE, *after])
    assert swept == there
    assert swept.saved == 11_000


def test_a_baseline_of_fewer_sessions_than_there_were_gives_way_to_the_transcripts():
    found = outcome(change(known=BEFORE[-3:]), [*BEFORE, *sessions(28, 0, 14, DEFERRED)])
    assert (found.before.sessions, found.confidence) == (28, "high")


def test_a_change_without_a_baseline_is_compared_with_the_transcripts():
    found = outcome(change(), [*BEFORE, *sessions(28, 0, 14, DEFERRED)])
    assert (found.state, found.saved, found.confidence) == (State.MEASURED, 11_000, "high")


def test_without_a_baseline_a_session_that_went_on_after_the_change_is_on_neither_side():
    going_on = session(-1, {"": 1}, ended_at=at(1))
    found = outcome(change(), [*BEFORE, going_on, *sessions(28, 0, 14, DEFERRED)])
    assert found.before.sessions == 28


def test_what_began_thirty_days_after_the_change_or_later_counts_no_more():
    late = [session(29.999, DEFERRED), session(30, DEFERRED)]
    assert outcome(change(known=BEFORE), [*BEFORE, *late], day=60).after.sessions == 1


def test_only_the_servers_meant_count_however_others_grow():
    after = sessions(28, 0, 14, {"": 50_000, "sentry": 90_000})
    found = outcome(change(DISABLE, known=BEFORE), [*BEFORE, *after])
    assert found.saved == 8_000
    assert found.before.by_server == {"github": 8_000}
    assert found.after.by_server == {"github": 0}


def test_what_the_gateway_adds_is_set_against_what_it_takes_away():
    fix = Fix(kind="gateway-install", agent="claude-code")
    found = outcome(change(fix, known=BEFORE), [*BEFORE, *sessions(28, 0, 14, {"": 9_999, "pegboard": 900})])
    assert found.saved == 8_000 + 2_000 - 900
    assert found.after.by_server == {"github": 0, "pegboard": 900, "sentry": 0}


def test_sessions_that_pay_for_no_server_at_all_count_as_much_as_others():
    fix = Fix(kind="gateway-install", agent="claude-code")
    after = [*sessions(14, 0, 14, {"": 1}), *sessions(14, 0, 14, {"": 1, "github": 8_000})]
    found = outcome(change(fix, known=BEFORE), [*BEFORE, *after])
    assert found.after.by_server == {"github": 4_000, "sentry": 0}


def test_where_no_definitions_are_known_what_goes_in_for_each_reply_is_compared():
    fix = Fix(kind="proxy-install", agent="opencode")
    before = sessions(28, -14, 0, {}, agent="opencode", usage=_usage(90_000, 10_000))
    after = sessions(28, 0, 14, {}, agent="opencode", usage=_usage(63_000, 7_000))
    found = outcome(change(fix, known=before), [*before, *after])
    assert (found.state, found.measure, found.saved) == (State.MEASURED, "input tokens per reply", 3_000)
    assert found.confidence == "medium"
    assert found.saved_in_all == 0


# Borders


@pytest.mark.parametrize(
    ("after", "state"),
    [
        (14_250, State.MEASURED),
        (14_251, State.NO_EFFECT),
        (15_749, State.NO_EFFECT),
        (15_750, State.WORSE),
    ],
)
def test_a_twentieth_is_worth_telling(after: int, state: State):
    found = outcome(change(known=BEFORE), [*BEFORE, *sessions(28, 0, 14, {"": after})])
    assert found.state is state


@pytest.mark.parametrize(("after", "state"), [(100, State.MEASURED), (101, State.NO_EFFECT)])
def test_less_than_a_hundred_tokens_are_not(after: int, state: State):
    before = sessions(28, -14, 0, {"": 200})
    assert outcome(change(known=before), sessions(28, 0, 14, {"": after})).state is state


@pytest.mark.parametrize(("write", "state"), [(91_000, State.NO_EFFECT), (90_000, State.MEASURED)])
def test_what_goes_in_has_to_move_by_a_tenth(write: int, state: State):
    fix = Fix(kind="proxy-install", agent="opencode")
    before = sessions(28, -14, 0, {}, agent="opencode", usage=_usage(0, 100_000))
    after = sessions(28, 0, 14, {}, agent="opencode", usage=_usage(0, write))
    assert outcome(change(fix, known=before), after).state is state


@pytest.mark.parametrize(("before", "after", "mark"), [(20, 20, "high"), (19, 20, "low"), (20, 19, "low")])
def test_twenty_sessions_on_both_sides_are_enough(before: int, after: int, mark: str):
    earlier = sessions(before, -14, 0)
    found = outcome(change(known=earlier), sessions(after, 0, 14, DEFERRED))
    assert found.confidence == mark
    assert len(found.doubts) == (mark == "low")


@pytest.mark.parametrize(
    ("after", "mark", "doubts"),
    [
        (56, "high", ()),
        (57, "low", ("2.0 times as many sessions a day as before",)),
        (84, "low", ("3.0 times as many sessions a day as before",)),
    ],
)
def test_more_than_twice_as_many_sessions_a_day_make_it_doubtful(after: int, mark: str, doubts: tuple[str, ...]):
    oldest = session(-20)
    found = outcome(change(known=[oldest, *BEFORE]), sessions(after, 0, 14, DEFERRED))
    assert (found.confidence, found.doubts) == (mark, doubts)


@pytest.mark.parametrize(("before", "mark"), [(56, "high"), (57, "low")])
def test_less_than_half_as_many_do_too(before: int, mark: str):
    earlier = [session(-20), *sessions(before, -14, 0)]
    assert outcome(change(known=earlier), sessions(28, 0, 14, DEFERRED)).confidence == mark


def test_days_before_the_first_session_known_are_no_quiet_days():
    earlier = sessions(20, -7, 0)
    found = outcome(change(known=earlier), sessions(42, 0, 14, DEFERRED))
    assert found.confidence == "high"


def test_estimated_definitions_are_never_of_high_confidence():
    after = [*sessions(27, 0, 13, DEFERRED), session(13.5, DEFERRED, counted=False)]
    found = outcome(change(known=BEFORE), after)
    assert found.confidence == "medium"
    assert found.doubts == ("estimated, not counted, in 1 of 56 sessions",)


# The cache


def _with_cache(
    before: Usage, after: Usage, definitions: dict[str, int] = DEFERRED
) -> tuple[list[Session], list[Session]]:
    return sessions(28, -14, 0, usage=before), sessions(28, 0, 14, definitions, usage=after)


def test_a_change_that_hurt_the_cache_is_worse_though_it_saved_and_says_so_first():
    before, after = _with_cache(_usage(90_000, 10_000), _usage(50_000, 50_000))
    found = outcome(change(known=before, stands=None), [*before, *after])
    assert found.state is State.WORSE
    assert found.cache_hurt
    assert found.saved == 11_000
    assert found.hit_rate_change == pytest.approx(-0.4)
    assert found.cache_write_change == 40_000
    assert found.notes[0].startswith("It hurt the cache: the hit rate fell from 90% to 50%")


def test_a_rate_that_falls_because_less_is_sent_hurt_nobody():
    before, after = _with_cache(_usage(90_000, 10_000), _usage(30_000, 10_000))
    found = outcome(change(known=before), [*before, *after])
    assert (found.state, found.cache_hurt) == (State.MEASURED, False)
    assert found.notes == ("The cache-hit rate fell from 90% to 75%, but no more is sent anew: what went was cached.",)


@pytest.mark.parametrize(("read", "hurt"), [(85_000, True), (85_010, False)])
def test_five_points_are_a_fall(read: int, hurt: bool):
    before, after = _with_cache(_usage(90_000, 10_000), _usage(read, 100_000 - read))
    assert outcome(change(known=before), [*before, *after]).cache_hurt is hurt


@pytest.mark.parametrize(("write", "hurt"), [(10_500, True), (10_499, False)])
def test_a_twentieth_more_that_is_not_from_the_cache_hurts(write: int, hurt: bool):
    before, after = _with_cache(_usage(90_000, 10_000), _usage(30_000, write))
    assert outcome(change(known=before), [*before, *after]).cache_hurt is hurt


def test_a_change_that_hurt_comes_before_all_others_then_what_is_worse_then_the_latest():
    hurt, worse = change(known=[], id="hurt", day=-60), change(known=[], id="worse", day=0)
    fix = Fix(kind="server-disable", agent="codex", servers=(server("x"),))
    old, new = change(fix, known=[], id="old", day=3), change(fix, known=[], id="new", day=5)
    before, after = sessions(28, -74, -60, usage=_usage(90, 10)), sessions(28, -60, -46, usage=_usage(10, 90))
    known = [*before, *after, *BEFORE, *sessions(28, 0, 14, {"": 40_000})]
    assert [each.change.id for each in report([old, new, worse, hurt], known).outcomes] == [
        "hurt",
        "worse",
        "new",
        "old",
    ]


def test_nothing_applied_is_an_empty_report():
    assert report([], BEFORE).outcomes == ()
    assert report([], BEFORE).saved_in_all == 0


def test_days_are_told_from_the_change_on():
    known = [session(-2.5), session(-0.5), session(-0.4, {"": 1_000}), session(0), session(0.9), session(1, DEFERRED)]
    found = outcome(change(ENABLE), known)
    assert [(each.number, each.sessions, each.tokens) for each in found.days] == [
        (-3, 1, 15_000),
        (-1, 2, 8_000),
        (0, 2, 15_000),
        (1, 1, 4_000),
    ]
