"""One change day by day as columns of blocks, with the moment it was applied between them. Pure.

Without blocks there are hashes, without colours none, and where days do not fit several share a column.
Above: the command. Below: `days`, `outcome` and `wording`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from pegboard.doctor.report import wording
from pegboard.doctor.report.days import Day
from pegboard.doctor.report.outcome import Outcome

HEIGHT = 6
_LEAST_COLUMNS = 8
_BLOCKS = " ▁▂▃▄▅▆▇█"
_HASHES = " ########"
_BEFORE, _SINCE, _OFF = "\x1b[2m", "\x1b[32m", "\x1b[0m"


class Look(msgspec.Struct, frozen=True):
    """What the terminal can show."""

    blocks: bool = True
    colours: bool = False


class Column(msgspec.Struct, frozen=True):
    """One or more days side by side; None where there were no sessions."""

    first: int
    last: int
    tokens: float | None


BARE = Look(blocks=False)
BLOCKS = Look()


def plot_lines(outcome: Outcome, *, width: int, look: Look = BLOCKS) -> list[str]:
    """The plot; nothing when no day tells anything."""
    days = [each for each in outcome.days if each.tokens is not None]
    if not days or outcome.measure is None:
        return []
    top = max(each.tokens or 0.0 for each in days)
    labels = (wording.tokens(top), "0")
    margin = max(map(len, labels)) + 2
    if width - margin < _LEAST_COLUMNS:
        labels, margin = ("", ""), 1
    before, since = columns(days, max(width - margin - 1, 2))
    rows = [_row(before, since, level, top, look) for level in range(HEIGHT, 0, -1)]
    sides = [labels[0], *[""] * (HEIGHT - 1)]
    drawn = [_axis(side, margin, look) + row for side, row in zip(sides, rows, strict=True)]
    title = f"{outcome.change.id[:8]}: {outcome.measure}"
    return [title[:width], *drawn, *_foot(before, since, labels[1], margin, width, look)]


def columns(days: Sequence[Day], room: int) -> tuple[list[Column], list[Column]]:
    """Days before and since as columns, as few days to a column as the room allows."""
    first, last = min(-1, days[0].number), max(0, days[-1].number)
    size = 1
    while math.ceil(-first / size) + math.ceil((last + 1) / size) > room:
        size += 1
    before = [_column(days, max(first, end - size + 1), end) for end in range(-1, first - 1, -size)]
    since = [_column(days, start, min(last, start + size - 1)) for start in range(0, last + 1, size)]
    return before[::-1], since


def _column(days: Sequence[Day], first: int, last: int) -> Column:
    """The days between, each as often as it had sessions."""
    told = [(each.tokens, each.sessions) for each in days if first <= each.number <= last and each.tokens is not None]
    count = sum(sessions for _, sessions in told)
    mean = sum(tokens * sessions for tokens, sessions in told) / count if count else None
    return Column(first, last, mean)


def _row(before: list[Column], since: list[Column], level: int, top: float, look: Look) -> str:
    left = "".join(_cell(each, level, top, look) for each in before)
    right = "".join(_cell(each, level, top, look) for each in since).rstrip()
    mark = "│" if look.blocks else "|"
    if look.colours:
        return f"{_BEFORE}{left}{_OFF}{mark}{_SINCE}{right}{_OFF}"
    return left + mark + right


def _cell(column: Column, level: int, top: float, look: Look) -> str:
    """The part of a column at one level. A day with sessions that paid nothing still shows."""
    if column.tokens is None:
        return " "
    eighths = round(column.tokens / top * HEIGHT * 8) if top else 0
    part = min(8, max(0, eighths - (level - 1) * 8))
    if level == 1:
        part = max(1, part)
    if not look.blocks:
        return "_" if level == 1 and eighths < 1 else _HASHES[part if part >= 4 or level == 1 else 0]
    return _BLOCKS[part]


def _axis(label: str, margin: int, look: Look) -> str:
    line = "┤" if look.blocks else "|"
    return f"{label:>{margin - 1}}{line}" if margin > 1 else ""


def _foot(before: list[Column], since: list[Column], zero: str, margin: int, width: int, look: Look) -> list[str]:
    line, cross, corner = ("─", "┴", "┼") if look.blocks else ("-", "+", "+")
    start = f"{zero:>{margin - 1}}{corner}" if margin > 1 else ""
    ruler = f"{start}{line * len(before)}{cross}{line * len(since)}"
    offset = len(start) + len(before)
    return [ruler, *_days(before[0].first, since[-1].last, offset, len(ruler), width)]


def _days(first: int, last: int, offset: int, length: int, width: int) -> list[str]:
    """What the ends and the middle are; in a line of its own where they would touch."""
    left, middle, right = f"{first} d", "applied", f"+{last + 1} d"
    place = max(0, offset - len(middle) // 2)
    line = " " * place + middle
    ends = f"{left}{' ' * max(1, length - len(left) - len(right))}{right}"
    if len(left) < place and len(line) + len(right) < length:
        return [f"{left}{line[len(left) :]}{right:>{length - len(line)}}"]
    return [each[:width] for each in (line, ends)]
