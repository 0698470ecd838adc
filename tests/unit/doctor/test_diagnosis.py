"""All findings together: their order, and that nothing is counted twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pegboard.doctor.checks import CAUSES
from pegboard.doctor.diagnosis import diagnose, total
from pegboard.doctor.facts import Evidence, Finding
from tests.unit.doctor.checks.made import NOW, definitions, server, sessions, setting, state

OFF = setting("ENABLE_TOOL_SEARCH", "false")


def finding(cause: str, tokens: dict[str, int], *, sessions: int = 2, cost: float = 1.0) -> Finding:
    return Finding(
        id=cause, cause=cause, agent="claude-code", title="", why="", sessions=sessions, tokens_per_session=tokens,
        saving_per_session=sum(tokens.values()), cost_per_session=cost,
        claims=frozenset(("claude-code", each) for each in tokens),
    )  # fmt: skip


def test_what_two_findings_claim_is_counted_once() -> None:
    off, idle = finding("a", {"github": 800, "docs": 200}), finding("b", {"docs": 200}, cost=0.2)
    assert total([off, idle]) == (2_000, 2.0)


def test_what_two_findings_do_not_share_is_added() -> None:
    assert total([finding("a", {"github": 800}), finding("b", {"docs": 200})]) == (2_000, 4.0)


def test_the_largest_saving_comes_first() -> None:
    whole = definitions("github") + definitions("docs", 2)
    here = state(OFF, servers=(server("github"), server("docs")))
    found = diagnose(Evidence(states=(here,), sessions=sessions(8, definitions=whole)), now=NOW)
    assert [each.cause for each in found.findings] == ["deferral-off-env", "never-called"]
    off, idle = found.findings
    assert idle.saving_per_session == 1_000
    assert off.saving_per_session * 8 <= found.saving < (off.saving_per_session + 50) * 8
    assert found.sessions == {"claude-code": 8}


def test_nothing_at_all_gives_nothing() -> None:
    found = diagnose(Evidence(), now=NOW)
    assert (found.findings, found.saving, found.cost, found.sessions) == ((), 0, 0.0, {})


parts = st.dictionaries(st.sampled_from(["", "a", "b", "c"]), st.integers(1, 5_000), min_size=1)


@given(st.lists(parts, max_size=6))
def test_the_total_is_never_more_than_the_sum_nor_less_than_the_largest(claims: list[dict[str, int]]) -> None:
    found = [finding(str(number), each) for number, each in enumerate(claims)]
    each = [one.saving_per_session * one.sessions for one in found]
    saved, _ = total(found)
    assert max(each, default=0) <= saved + 4 <= sum(each) + 4


def test_every_finding_is_of_a_cause_that_is_listed() -> None:
    here = state(OFF, servers=(server("github"), server("docs")))
    found = diagnose(Evidence(states=(here,), sessions=sessions(8)), now=NOW)
    assert {each.cause for each in found.findings} <= set(CAUSES)
