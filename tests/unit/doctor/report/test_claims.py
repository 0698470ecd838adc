"""Several changes beside each other: no definition that went away is counted for two."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.doctor.facts import Fix, Session, Usage
from pegboard.doctor.report.change import Change, overlapping
from pegboard.doctor.report.outcome import Outcome, State
from pegboard.doctor.report.scope import Scope
from tests.unit.doctor.report.stories import DISABLE, ENABLE, at, change, of, report, server, session, sessions

BEFORE = sessions(28, -14, 0)
DEFERRED = {"": 4_000}


def test_what_was_saved_in_all_counts_a_server_only_where_it_was_measured():
    deferral = change(ENABLE, 0, known=BEFORE)
    between, after = sessions(20, 0, 10, DEFERRED), sessions(30, 10, 20, DEFERRED)
    removal = change(DISABLE, 10, known=[*BEFORE, *between])
    found = of(report([deferral, removal], [*BEFORE, *between, *after], day=20), deferral)
    assert found.saved_in_all == 8_000 * 20 + (1_000 + 2_000) * 50


def test_a_session_that_began_at_the_very_moment_of_the_other_change_is_after_it():
    removal = change(DISABLE, 10)
    between = [*sessions(5, 0, 10), *sessions(3, 10.001, 12, {"": 5_000})]
    at_once, deferral = session(0, {"": 7}), change(ENABLE, 0)
    found = report([deferral, removal], [*BEFORE, at_once, *between])
    assert of(found, removal).before.sessions == 6


def test_what_another_undone_at_that_very_moment_left_is_measured_since_then():
    undone = change(DISABLE, -5, undone_at=at(0), known=[])
    deferral = change(ENABLE, 0)
    found = report([undone, deferral], [*sessions(5, -5, 0), *sessions(7, 0, 5, DEFERRED)])
    assert (of(found, deferral).before.sessions, of(found, deferral).after.sessions) == (0, 7)
    assert of(found, deferral).before.by_server == {"": 5_000, "sentry": 2_000}


def test_a_session_elsewhere_does_not_part_changes_that_meet_in_one_folder_only():
    here = Fix(kind="server-disable", agent="claude-code", servers=(server("github", project="/home/ada/engine"),))
    removal, deferral = change(here, 0.5), change(ENABLE, 0)
    elsewhere = session(0.2, DEFERRED, project="/home/ada/other")
    found = report([deferral, removal], [*BEFORE, elsewhere, *sessions(28, 1, 14, DEFERRED)])
    assert of(found, removal).saved == 8_000
    assert of(found, deferral).notes[0].startswith("What server-d changed at the same time is counted there")


def test_of_a_removal_and_a_deferral_at_the_same_time_the_removal_has_the_server():
    removal, deferral = change(DISABLE, known=BEFORE), change(ENABLE, known=BEFORE)
    found = report([deferral, removal], [*BEFORE, *sessions(28, 0, 14, DEFERRED)])
    assert of(found, removal).saved == 8_000
    assert of(found, deferral).saved == 1_000 + 2_000
    assert set(of(found, deferral).before.by_server) == {"", "sentry"}
    assert found.saved_in_all == 28 * 11_000


def test_the_one_that_yields_says_to_whom():
    removal, deferral = change(DISABLE, known=BEFORE, id="aaaaaaaaaa"), change(ENABLE, known=BEFORE, id="bbbbbbbbbb")
    found = report([deferral, removal], [*BEFORE, *sessions(28, 0, 14, DEFERRED)])
    assert of(found, deferral).notes[0] == "What aaaaaaaa changed at the same time is counted there, not here."
    assert of(found, removal).notes == ("Applied together with bbbbbbbb: the cache figures are of all of them.",)


def test_hours_between_two_changes_do_not_part_them_but_a_session_does():
    deferral = change(ENABLE, 0, known=BEFORE)
    later = sessions(28, 1, 14, DEFERRED)
    quiet = change(DISABLE, 0.5, known=BEFORE)
    assert of(report([deferral, quiet], [*BEFORE, *later]), quiet).saved == 8_000
    between = session(0.2, DEFERRED)
    busy = change(DISABLE, 0.5, known=[*BEFORE, between])
    found = report([deferral, busy], [*BEFORE, between, *later])
    assert of(found, busy).saved == 0
    assert of(found, deferral).saved == 11_000


def test_a_removal_after_a_deferral_that_worked_brought_nothing_more():
    deferral = change(ENABLE, 0, known=BEFORE)
    between, after = sessions(28, 0, 10, DEFERRED), sessions(28, 10, 20, DEFERRED)
    removal = change(DISABLE, 10, known=[*BEFORE, *between])
    found = report([deferral, removal], [*BEFORE, *between, *after], day=20)
    assert (of(found, removal).state, of(found, removal).saved) == (State.NO_EFFECT, 0)
    assert of(found, deferral).saved == 11_000


def test_a_removal_after_a_deferral_that_did_not_work_has_what_it_brought():
    deferral = change(ENABLE, 0, known=BEFORE)
    between, after = sessions(28, 0, 10), sessions(28, 10, 20, {"": 5_000, "sentry": 2_000})
    removal = change(DISABLE, 10, known=[*BEFORE, *between])
    found = report([deferral, removal], [*BEFORE, *between, *after], day=20)
    assert of(found, removal).saved == 8_000
    assert (of(found, deferral).state, of(found, deferral).saved) == (State.NO_EFFECT, 0)


def test_a_removal_before_a_deferral_leaves_it_the_rest():
    removal = change(DISABLE, 0, known=BEFORE)
    between, after = sessions(28, 0, 10, {"": 5_000, "sentry": 2_000}), sessions(28, 10, 20, DEFERRED)
    deferral = change(ENABLE, 10, known=[*BEFORE, *between])
    found = report([removal, deferral], [*BEFORE, *between, *after], day=20)
    assert of(found, removal).saved == 8_000
    assert of(found, deferral).saved == 3_000


def test_a_change_in_one_folder_takes_nothing_from_sessions_in_another():
    here, there = "/home/ada/engine", "/home/ada/other"
    before = [*BEFORE, *sessions(28, -14, 0, project=there)]
    after = [*sessions(28, 0, 14, DEFERRED), *sessions(28, 0, 14, DEFERRED, project=there)]
    removal = change(Fix(kind="server-disable", agent="claude-code", servers=(server("github", project=here),)))
    deferral = change(ENABLE)
    found = report([removal, deferral], [*before, *after])
    assert of(found, removal).after.known == 28
    assert of(found, removal).saved == 8_000
    # Where it is not claimed, all of it went; where it is, none of it counts.
    assert of(found, deferral).before.by_server == {"": 5_000, "github": 8_000, "sentry": 2_000}


def test_changes_in_two_folders_never_meet():
    one = change(Fix(kind="server-disable", agent="claude-code", servers=(server("github", project="/a"),)), id="one")
    two = change(Fix(kind="server-disable", agent="claude-code", servers=(server("github", project="/b"),)), id="two")
    before = [*sessions(20, -14, 0, project="/a"), *sessions(20, -14, 0, project="/b")]
    after = [*sessions(20, 0, 14, DEFERRED, project="/a"), *sessions(20, 0, 14, DEFERRED, project="/b")]
    found = report([one, two], [*before, *after])
    assert [of(found, each).saved for each in (one, two)] == [8_000, 8_000]
    assert [of(found, each).notes for each in (one, two)] == [(), ()]


def test_a_change_of_another_agent_takes_nothing():
    removal = change(Fix(kind="server-disable", agent="codex", servers=(server("github"),)), known=[])
    deferral = change(ENABLE, known=BEFORE)
    assert of(report([removal, deferral], sessions(28, 0, 14, DEFERRED)), deferral).saved == 11_000


def test_a_change_that_was_undone_before_any_session_claims_nothing():
    removal = change(DISABLE, 0, known=BEFORE, undone_at=at(0.1))
    deferral = change(ENABLE, 0.2, known=BEFORE)
    found = report([removal, deferral], [*BEFORE, *sessions(28, 1, 14, DEFERRED)])
    assert of(found, deferral).saved == 11_000
    assert of(found, removal).saved_in_all == 0


def test_when_one_of_two_is_undone_the_other_is_measured_until_then():
    pins = Fix(kind="defer-alwaysload", agent="claude-code", servers=(server("github"),))
    unpinned, deferral = change(pins, known=BEFORE), change(ENABLE, known=BEFORE, undone_at=at(5))
    known = [*BEFORE, *sessions(20, 0, 5, DEFERRED), *sessions(20, 5, 14)]
    found = report([unpinned, deferral], known)
    assert of(found, unpinned).saved == 8_000
    assert of(found, deferral).saved == 3_000


def test_where_all_its_definitions_are_anothers_nothing_is_said_of_a_change():
    pins = Fix(kind="defer-alwaysload", agent="claude-code", servers=(server("github"),))
    unpinned, removal = change(pins, known=BEFORE), change(DISABLE, known=BEFORE)
    found = report([unpinned, removal], [*BEFORE, *sessions(28, 0, 14, DEFERRED)])
    assert (of(found, unpinned).state, of(found, unpinned).saved) == (State.UNKNOWN, None)
    assert of(found, removal).saved == 8_000


def test_what_went_in_is_counted_for_one_of_two_as_well():
    proxy = Fix(kind="proxy-install", agent="opencode")
    removal = Fix(kind="server-disable", agent="opencode", servers=(server("github"),))
    before = sessions(28, -14, 0, {}, agent="opencode", usage=Usage(cache_read=90_000, messages=10))
    after = sessions(28, 0, 14, {}, agent="opencode", usage=Usage(cache_read=60_000, messages=10))
    both = [change(proxy, known=before), change(removal, known=before)]
    found = report(both, [*before, *after])
    assert [of(found, each).saved for each in both] == [None, 3_000]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (Scope(agent="codex"), Scope(agent="cline"), False),
        (Scope(agent="codex", servers=("a",)), Scope(agent="codex", servers=("b",)), False),
        (Scope(agent="codex", servers=("a",)), Scope(agent="codex", servers=("b", "a")), True),
        (Scope(agent="codex", servers=("a",)), Scope(agent="codex"), True),
        (Scope(agent="codex", servers=("a",), own=True), Scope(agent="codex", servers=("b",), own=True), True),
        (Scope(agent="codex", projects=("/a",)), Scope(agent="codex", projects=("/b",)), False),
        (Scope(agent="codex", projects=("/a",)), Scope(agent="codex", projects=("/a/b",)), True),
        (Scope(agent="codex", projects=("/a/b",)), Scope(agent="codex", projects=("/a",)), True),
        (Scope(agent="codex", projects=("/a/b",)), Scope(agent="codex"), True),
    ],
)
def test_scopes_overlap_where_agent_folder_and_a_tool_are_shared(one: Scope, other: Scope, expected: bool):
    assert overlapping(one, other) is expected
    assert overlapping(other, one) is expected


_SERVERS = ("github", "sentry", "db")
_FIXES = [
    ENABLE,
    Fix(kind="proxy-install", agent="claude-code"),
    Fix(kind="gateway-install", agent="claude-code"),
    Fix(kind="defer-alwaysload", agent="claude-code", servers=(server("github"), server("db"))),
    DISABLE,
    Fix(kind="server-disable", agent="claude-code", servers=(server("sentry"),)),
]
_PAID = st.fixed_dictionaries({name: st.integers(0, 9_000) for name in ("", *_SERVERS)})


@st.composite
def _stories(draw: st.DrawFn) -> tuple[list[Change], list[Session]]:
    """Changes at some moments, and sessions in which every stretch between two of them has its own prices."""
    moments = sorted(draw(st.lists(st.integers(0, 9), min_size=1, max_size=5)))
    chosen = draw(st.lists(st.sampled_from(_FIXES), min_size=len(moments), max_size=len(moments), unique_by=id))
    known: list[Session] = []
    for start, end in zip([-4, *moments], [*moments, 12], strict=True):
        if start != end and (start == -4 or end == 12 or draw(st.booleans())):
            known += sessions(draw(st.integers(1, 4)), start, end, draw(_PAID))
    changes = [change(fix, day, known=[each for each in known if each.began_at < at(day)], id=f"{number}{fix.kind}")
               for number, (fix, day) in enumerate(zip(chosen, moments, strict=True))]  # fmt: skip
    return changes, known


@given(_stories())
def test_what_all_changes_saved_of_a_server_is_what_went_between_the_first_and_the_last(story):
    changes, known = story
    found = report(changes, known, day=12)
    for name in ("", *_SERVERS):
        touching = [each for each in changes if each.scope.holds_for(name)]
        if not touching:
            continue
        first, last = min(each.applied_at for each in touching), max(each.applied_at for each in touching)
        saved = [_saved_of(of(found, each), name) for each in touching]
        start, end = _price(known, name, before=first), _price(known, name, since=last)
        assert sum(saved) == pytest.approx(start - end, abs=1e-6)


@given(_stories())
def test_what_a_change_saved_is_what_it_saved_of_its_servers_and_shares_are_shares(story):
    for each in report(*story, day=12).outcomes:
        for side in (each.before, each.after):
            assert side.hit_rate is None or 0 <= side.hit_rate <= 1
            assert 0 <= side.counted <= side.known
        if each.saved is not None:
            names = {*each.before.by_server, *each.after.by_server}
            assert each.saved == pytest.approx(sum(_saved_of(each, name) for name in names))
            assert all(each.change.scope.holds_for(name) for name in names)


@given(_stories(), st.randoms())
def test_the_order_in_which_changes_and_sessions_are_told_changes_nothing(story, random):
    changes, known = story
    expected = report(changes, known, day=12)
    random.shuffle(changes)
    random.shuffle(known)
    assert {each.change.id: each for each in report(changes, known, day=12).outcomes} == {
        each.change.id: each for each in expected.outcomes
    }


def _saved_of(outcome: Outcome, name: str) -> float:
    return outcome.before.by_server.get(name, 0.0) - outcome.after.by_server.get(name, 0.0)


def _price(known: list[Session], name: str, *, before: float = float("inf"), since: float = 0.0) -> float:
    """What a session pays on average."""
    prices = [
        each.tokens
        for one in known
        for each in one.definitions
        if since <= one.began_at < before and each.server == name
    ]
    return sum(prices) / len(prices)
