"""The report in lines of text: first what hurt, then a table, or where that is too wide a list. Pure.

Above: the command. Below: `wording` and `outcome`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import msgspec

from pegboard.doctor.report import wording
from pegboard.doctor.report.outcome import Outcome, Report

HEADERS = ("id", "change", "applied", "state", "tokens", "saved", "cache writes", "cache hits", "sessions", "sure")
_GAP = "  "
_SUBJECT = 28
"""Letters of what a change is about that a row has room for."""
_NEVER = "Nothing was applied yet. `pegboard doctor plan` shows what could be."


class Signs(msgspec.Struct, frozen=True):
    """What the terminal can show."""

    arrow: str = "→"
    line: str = "─"
    cut: str = "…"


FULL = Signs()
PLAIN = Signs(arrow="->", line="-", cut="...")


def table_lines(report: Report, *, width: int, signs: Signs = FULL) -> list[str]:
    """All changes with their figures, what is to be said of each, and the total."""
    if not report.outcomes:
        return [_NEVER]
    rows = [_cells(each, signs) for each in report.outcomes]
    widths = [max(len(row[column]) for row in (HEADERS, *rows)) for column in range(len(HEADERS))]
    fits = sum(widths) + len(_GAP) * (len(widths) - 1) <= width
    body = _table(rows, widths, signs) if fits else _list(report.outcomes, rows, width)
    return [*_alarms(report, width), *body, *_remarks(report.outcomes, width), "", *_total(report, width)]


def _cells(outcome: Outcome, signs: Signs) -> tuple[str, ...]:
    change, before, after = outcome.change, outcome.before, outcome.after
    had, has = wording.measured(outcome)
    arrow = signs.arrow
    return (
        change.id[:8],
        f"{change.kind}: {_cut(wording.subject(change), signs.cut)}",
        wording.day(change.applied_at),
        outcome.state,
        wording.both(wording.tokens(had), wording.tokens(has), arrow=arrow),
        wording.tokens(outcome.saved),
        wording.both(wording.tokens(before.cache_write), wording.tokens(after.cache_write), arrow=arrow),
        wording.both(wording.share(before.hit_rate), wording.share(after.hit_rate), arrow=arrow),
        wording.both(*(f"{count:,}" for count in wording.session_counts(outcome)), arrow=arrow),
        outcome.confidence or "",
    )


def _table(rows: list[tuple[str, ...]], widths: list[int], signs: Signs) -> list[str]:
    lines = [
        _GAP.join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip() for row in (HEADERS, *rows)
    ]
    return [lines[0], _GAP.join(signs.line * size for size in widths), *lines[1:]]


def _list(outcomes: Sequence[Outcome], rows: list[tuple[str, ...]], width: int) -> list[str]:
    """One figure a line, where a row would break."""
    lines: list[str] = []
    for outcome, row in zip(outcomes, rows, strict=True):
        lines += [*([""] if lines else []), *_wrapped(f"{row[0]}  {row[1]}", width, indent="")]
        about = zip((*HEADERS[2:4], outcome.measure or HEADERS[4], *HEADERS[5:]), row[2:], strict=True)
        lines += [line for name, text in about if text for line in _wrapped(f"{name}: {text}", width)]
    return lines


def _alarms(report: Report, width: int) -> list[str]:
    lines: list[str] = []
    for each in report.hurt:
        lines += _wrapped(f"! {_name(each)}: {each.notes[0]}", width, indent="")
        if each.change.undone_at is None:
            lines += _wrapped(f"`pegboard doctor undo {each.change.id[:8]}` takes it back.", width)
    return [*lines, ""] if lines else []


def _remarks(outcomes: Sequence[Outcome], width: int) -> list[str]:
    """What a row cannot say; what was said at the top is not said again."""
    lines: list[str] = []
    for each in outcomes:
        said = [f"{each.state}: {wording.meaning(each)}", *each.notes[each.cache_hurt :]]
        if each.doubts:
            said.append(f"{each.confidence} confidence: {'; '.join(each.doubts)}")
        lines += ["", *_wrapped(_name(each), width, indent="")]
        lines += [line for text in said for line in _wrapped(text, width)]
    return lines


def _total(report: Report, width: int) -> list[str]:
    kept = sum(each.after.known for each in report.outcomes)
    if not kept:
        return ["Nothing can be said yet of what was saved."]
    saved = report.saved_in_all
    what = (
        f"{saved:,} definition tokens were not sent" if saved >= 0 else f"{-saved:,} more definition tokens were sent"
    )
    return _wrapped(f"In all, {what} in the sessions seen since; nothing is counted for two changes.", width, indent="")


def _name(outcome: Outcome) -> str:
    change = outcome.change
    return f"{change.id[:8]} {change.kind}: {wording.subject(change)} ({change.scope.agent})"


def _cut(text: str, mark: str) -> str:
    return text if len(text) <= _SUBJECT else text[: _SUBJECT - len(mark)] + mark


def _wrapped(text: str, width: int, *, indent: str = "  ") -> list[str]:
    return textwrap.wrap(text, max(width, 20), initial_indent=indent, subsequent_indent=indent or "  ")
