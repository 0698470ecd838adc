"""The report in lines of text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.doctor.facts import Fix, Usage
from pegboard.doctor.report.outcome import Report, State
from pegboard.doctor.report.table import PLAIN, table_lines
from pegboard.doctor.report.wording import MEANING
from tests.unit.doctor.report.stories import DISABLE, change, report, server, session, sessions

BEFORE = sessions(28, -14, 0)
DEFERRED = {"": 4_000}
CACHED = Usage(cache_read=90_000, cache_write=10_000, messages=10)
FRESH = Usage(cache_read=50_000, cache_write=50_000, messages=10)


def _report() -> Report:
    codex = Fix(kind="server-disable", agent="codex", servers=(server("sentry"),))
    hurt = sessions(28, -14, 0, agent="codex", usage=CACHED), sessions(28, 0, 14, agent="codex", usage=FRESH)
    changes = [
        change(known=BEFORE, id="1a2b3c4d5e6f"),
        change(DISABLE, known=BEFORE, id="77777777aaaa"),
        change(codex, -1, known=hurt[0], id="deadbeef0000"),
    ]
    return report(changes, [*BEFORE, *sessions(28, 0, 14, DEFERRED), *hurt[0], *hurt[1]])


def test_what_hurt_the_cache_is_the_very_first_line_with_how_to_take_it_back():
    lines = table_lines(_report(), width=150)
    assert lines[0].startswith("! deadbeef server-disable: sentry (codex): It hurt the cache: the hit rate fell from ")
    assert lines[1] == "  `pegboard doctor undo deadbeef` takes it back."


def test_a_row_has_both_sides_of_every_figure():
    lines = table_lines(_report(), width=150)
    (row,) = [line for line in lines if line.startswith("77777777  ")]
    cells = [cell.strip() for cell in row.split("  ") if cell.strip()]
    assert cells[0:2] == ["77777777", "server-disable: github"]
    assert cells[3:] == ["measured", "8,000 → 0", "8,000", "9,900 → 9,900", "90.0% → 90.0%", "28 → 28", "high"]


def test_the_total_counts_nothing_twice():
    assert table_lines(_report(), width=150)[-1].startswith("In all, 308,000 definition tokens were not sent")


def test_more_than_before_is_not_called_a_saving():
    found = report([change(known=BEFORE)], sessions(28, 0, 14, {"": 20_000}))
    assert table_lines(found, width=150)[-1].startswith("In all, 140,000 more definition tokens were sent")


def test_a_pending_change_says_what_it_waits_for_and_claims_nothing():
    lines = table_lines(report([change(known=BEFORE, id="1a2b3c4d5e6f")], BEFORE), width=150)
    assert "  pending: not in effect yet: no session began since" in lines
    assert lines[-1] == "Nothing can be said yet of what was saved."


def test_doubts_are_told_with_the_mark():
    found = report([change(known=BEFORE[:3])], [session(1, DEFERRED)])
    assert any(
        line.startswith("  low confidence: only 3 sessions before, 20 are enough; only 1 session since")
        for line in table_lines(found, width=200)
    )


def test_nothing_applied_says_what_could_be_done():
    assert table_lines(report([], BEFORE), width=80) == [
        "Nothing was applied yet. `pegboard doctor plan` shows what could be."
    ]


def test_a_terminal_of_ascii_gets_ascii():
    assert "\n".join(table_lines(_report(), width=150, signs=PLAIN)).isascii()


@pytest.mark.parametrize("state", list(State))
def test_every_state_is_explained(state: State):
    assert MEANING[state]


@given(st.integers(20, 160))
def test_no_line_is_wider_than_the_terminal(width: int):
    assert max(map(len, table_lines(_REPORT, width=width))) <= width


@given(st.integers(20, 160))
def test_a_narrow_terminal_loses_no_figure(width: int):
    text = " ".join("\n".join(table_lines(_REPORT, width=width)).split())
    for figure in ("8,000 → 0", "10,000 → ", "90.0% → ", "77777777", "measured", "worse"):
        assert figure in text


_REPORT = _report()
