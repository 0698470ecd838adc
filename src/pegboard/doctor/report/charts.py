"""Drawings of one outcome for the page, as SVG: its days, its cache and its servers. Colours are the page's.

Each has a title that says what is to be seen, and every bar one of its own. Above: `page`. Below: `markup`.
"""

from __future__ import annotations

from collections.abc import Callable

from pegboard.doctor.report import wording
from pegboard.doctor.report.days import Day
from pegboard.doctor.report.markup import Markup, element, joined
from pegboard.doctor.report.outcome import Outcome

WIDTH = 720.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 70.0, 10.0, 22.0, 24.0
_ROW = 30.0
_NAME_LENGTH = 24
OWN_TOOLS = "the agent's own tools"


class _Frame:
    """Where days and amounts lie in a drawing."""

    def __init__(self, days: list[Day], top: float, height: float) -> None:
        self.first, self.last = min(-1, days[0].number), max(0, days[-1].number)
        self.top, self.height = top, height
        self.step = (WIDTH - _LEFT - _RIGHT) / (self.last - self.first + 1)
        self.floor = height - _BOTTOM

    def x(self, day: int) -> float:
        """The left edge of a day."""
        return _LEFT + (day - self.first) * self.step

    def y(self, amount: float) -> float:
        """The height of an amount."""
        return self.floor - (amount / self.top if self.top else 0.0) * (self.floor - _TOP)

    def around(self, tick: Callable[[float], str]) -> list[Markup]:
        """Lines for nothing, the half and the whole; the ends; and where the change was applied."""
        at = self.x(0)
        lines = [self._tick(self.top * part, tick) for part in (0.0, 0.5, 1.0)]
        ends = [
            element("text", f"{self.first} d", x=_LEFT, y=self.height - 8),
            element("text", f"+{self.last + 1} d", x=WIDTH - _RIGHT, y=self.height - 8, text_anchor="end"),
        ]
        mark = element("line", x1=at, x2=at, y1=8, y2=self.floor, class_="applied")
        return [*lines, *ends, mark, element("text", "applied", x=at + 4, y=14)]

    def _tick(self, amount: float, tick: Callable[[float], str]) -> Markup:
        y = self.y(amount)
        line = element("line", x1=_LEFT, x2=WIDTH - _RIGHT, y1=y, y2=y, class_="grid")
        return joined(line, element("text", tick(amount), x=_LEFT - 6, y=y + 4, text_anchor="end"))


def days_chart(outcome: Outcome) -> Markup | None:
    """A bar for each day, and a line for the mean of each side."""
    days = [each for each in outcome.days if each.tokens is not None]
    if not days or outcome.measure is None:
        return None
    had, has = wording.measured(outcome)
    frame = _Frame(days, max(*(each.tokens or 0.0 for each in days), had or 0.0, has or 0.0), 220.0)
    bars = [_bar(frame, each, each.tokens or 0.0) for each in days]
    means = [_mean(frame, had, frame.x(frame.first), frame.x(0)), _mean(frame, has, frame.x(0), WIDTH - _RIGHT)]
    title = f"{outcome.measure.capitalize()}, day by day"
    told = f"{wording.tokens(had)} on average before the change, {wording.tokens(has)} since."
    return _drawing(220.0, title, told, [*frame.around(wording.tokens), *bars, *(each for each in means if each)])


def cache_chart(outcome: Outcome) -> Markup | None:
    """The cache-hit rate, a dot for each day."""
    days = [each for each in outcome.days if each.hit_rate is not None]
    if not days:
        return None
    frame = _Frame(days, 1.0, 160.0)
    dots = [_dot(frame, each, each.hit_rate or 0.0) for each in days]
    before, after = wording.share(outcome.before.hit_rate), wording.share(outcome.after.hit_rate)
    told = f"{before} of the input came from the cache before the change, {after} since."
    return _drawing(160.0, "Cache-hit rate, day by day", told, [*frame.around(lambda part: f"{part:.0%}"), *dots])


def servers_chart(outcome: Outcome) -> Markup | None:
    """Two bars for each server: before and since."""
    before, after = outcome.before.by_server, outcome.after.by_server
    names = sorted({*before, *after}, key=lambda name: (-before.get(name, 0.0), name))
    top = max([*before.values(), *after.values()], default=0.0)
    if not names or not top:
        return None
    rows = [
        _server(number * _ROW, name, before.get(name, 0.0), after.get(name, 0.0), top)
        for number, name in enumerate(names)
    ]
    told = "Above what a session paid before the change, below what it pays since."
    return _drawing(len(names) * _ROW + 4, "Definition tokens per session, by server", told, rows)


def _drawing(height: float, title: str, told: str, parts: list[Markup]) -> Markup:
    head = (element("title", title), element("desc", told))
    box = f"0 0 {WIDTH:g} {height:g}"
    drawing = element("svg", *head, *parts, viewBox=box, role="img", aria_label=f"{title}: {told}")
    return element("figure", element("figcaption", f"{title}. {told}"), drawing)


def _bar(frame: _Frame, day: Day, amount: float) -> Markup:
    # A day that paid nothing still had sessions: a sliver says so.
    y = min(frame.y(amount), frame.floor - 1)
    said = f"Day {day.number:+d}: {wording.tokens(amount)} tokens, {day.sessions:,} sessions"
    gap = frame.step * 0.1
    return element(
        "rect",
        element("title", said),
        x=frame.x(day.number) + gap,
        y=y,
        width=frame.step - 2 * gap,
        height=frame.floor - y,
        class_=_side(day),
    )


def _dot(frame: _Frame, day: Day, rate: float) -> Markup:
    said = f"Day {day.number:+d}: {wording.share(rate)}, {day.sessions:,} sessions"
    middle = frame.x(day.number) + frame.step / 2
    return element("circle", element("title", said), cx=middle, cy=frame.y(rate), r=4, class_=_side(day))


def _mean(frame: _Frame, amount: float | None, start: float, end: float) -> Markup | None:
    if amount is None:
        return None
    return element("line", x1=start, x2=end, y1=frame.y(amount), y2=frame.y(amount), class_="mean")


def _server(y: float, name: str, before: float, after: float, top: float) -> Markup:
    label = name or OWN_TOOLS
    short = label if len(label) <= _NAME_LENGTH else f"{label[: _NAME_LENGTH - 1]}…"
    start, room = 190.0, WIDTH - 190.0 - 80.0
    return joined(
        element("text", element("title", label), short, x=start - 8, y=y + 19, text_anchor="end"),
        _amount(start, y + 4, before / top * room, before, "before"),
        _amount(start, y + 16, after / top * room, after, "since"),
    )


def _amount(x: float, y: float, length: float, amount: float, side: str) -> Markup:
    said = f"{side}: {wording.tokens(amount)} tokens"
    bar = element("rect", element("title", said), x=x, y=y, width=max(length, 1.0), height=10, class_=side)
    return joined(bar, element("text", wording.tokens(amount), x=x + max(length, 1.0) + 6, y=y + 9))


def _side(day: Day) -> str:
    return "before" if day.number < 0 else "since"
