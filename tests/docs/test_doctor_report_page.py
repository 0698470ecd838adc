"""What the doctor's page shows of a report is what a report says, and it names every field that scripts get."""

from __future__ import annotations

import re
from pathlib import Path

from pegboard.doctor.facts import Fix, Usage
from pegboard.doctor.report.outcome import Report, State, report_of
from pegboard.doctor.report.plain import plain_report
from pegboard.doctor.report.plot import plot_lines
from pegboard.doctor.report.table import table_lines
from tests.unit.doctor.report.stories import DISABLE, ENABLE, at, change, server, sessions

PAGE = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text("utf-8")
WIDTH = 132


def _section() -> str:
    [section] = re.findall(r"## What it brought\n(.*?)(?:\n## |\Z)", PAGE, re.DOTALL)
    return str(section)


def _report() -> Report:
    """A deferral and a removal that were applied together, and a pin that is still to show what it brings."""
    paid = {"": 9_743, "github": 4_812, "docs": 2_408, "linear": 3_102}
    cached = Usage(input=40, cache_read=181_000, cache_write=19_900, messages=10)
    less = Usage(input=40, cache_read=95_000, cache_write=11_200, messages=10)
    before = sessions(34, -14, 0, paid, usage=cached)
    after = sessions(26, 0, 12, {"": 5_120, "linear": 3_102}, usage=less)
    pins = Fix(kind="defer-alwaysload", agent="claude-code", servers=(server("linear"),))
    changes = [
        change(ENABLE, known=before, id="4f1c9a2e7b60"),
        change(DISABLE, known=before, id="b7d20c51aa93"),
        change(pins, 12.5, known=after, id="09e6d3f41c22"),
    ]
    return report_of(changes, [*before, *after], now=at(13))


def test_the_table_and_the_plot_on_the_page_are_those_of_a_report() -> None:
    report = _report()
    drawn = [line for each in report.outcomes if (plot := plot_lines(each, width=WIDTH)) for line in ("", *plot)]
    shown = ["$ pegboard doctor report", *table_lines(report, width=WIDTH), *drawn]
    [block] = re.findall(r"```text\n(.*?)```", _section(), re.DOTALL)
    assert block.splitlines() == shown


def test_the_page_explains_every_state() -> None:
    assert [state for state in State if f"| {state} |" not in _section()] == []


def test_the_page_names_every_field() -> None:
    named = set(re.findall(r"`(\w+)`", _section()))
    whole = plain_report(_report())
    fields = {*whole, *whole["changes"][0], *whole["changes"][0]["before"], *whole["changes"][-1]["days"][0]}
    assert fields - named == set()
