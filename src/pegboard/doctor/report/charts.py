"""Drawings of one outcome for the page, as SVG: its days, its cache and its servers. Colours are the page's.

Each has a title that says what is to be seen, and every bar one of its own. Above: `page` and `page_change`. Below:
`frame` and `markup`.
"""

from __future__ import annotations

from pegboard.doctor.report import wording
from pegboard.doctor.report.days import Day
from pegboard.doctor.report.frame import Frame
from pegboard.doctor.report.markup import Markup, element, joined
from pegboard.doctor.report.outcome import Outcome

WIDE, NARROW = 960.0, 460.0
_ROW = 34.0
_NAME_LENGTH = 24
_SPARK = (120.0, 28.0)
OWN_TOOLS = "the agent's own tools"


def days_chart(outcome: Outcome) -> Markup | None:
    """A bar for each day, and a line for the mean of each side."""
    days = [each for each in outcome.days if each.tokens is not None]
    if not days or outcome.measure is None:
        return None
    had, has = wording.measured(outcome)
    told = f"{wording.tokens(had)} on average before the change, {wording.tokens(has)} since."
    bars = [(each, each.tokens or 0.0) for each in days]
    return _bars(f"{outcome.measure.capitalize()}, day by day", told, bars, (had, has), (WIDE, 240.0))


def writes_chart(outcome: Outcome) -> Markup | None:
    """The same for what is written to the cache."""
    days = [(each, each.cache_write) for each in outcome.days if each.cache_write is not None]
    if not any(amount for _, amount in days):
        return None
    had, has = outcome.before.cache_write, outcome.after.cache_write
    told = f"{wording.tokens(had)} tokens a session before the change, {wording.tokens(has)} since."
    return _bars("Written to the cache, day by day", told, days, (had, has), (NARROW, 190.0))


def cache_chart(outcome: Outcome) -> Markup | None:
    """The cache-hit rate, a dot for each day."""
    days = [(each, each.hit_rate) for each in outcome.days if each.hit_rate is not None]
    if not days:
        return None
    frame = Frame([each for each, _ in days], 1.0, NARROW, 190.0, lambda part: f"{part:.0%}")
    dots = [_dot(frame, each, rate) for each, rate in days]
    had, has = outcome.before.hit_rate, outcome.after.hit_rate
    told = f"{wording.share(had)} of the input came from the cache before the change, {wording.share(has)} since."
    parts = [*frame.around(), *_means(frame, had, has), *dots]
    return _drawing(NARROW, 190.0, "Cache-hit rate, day by day", told, parts)


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
    return _drawing(WIDE, len(names) * _ROW + 4, "Definition tokens per session, by server", told, rows)


def spark(outcome: Outcome) -> Markup | None:
    """The days of a change as small as a word."""
    days = [each for each in outcome.days if each.tokens is not None]
    top = max((each.tokens or 0.0 for each in days), default=0.0)
    if not top:
        return None
    width, height = _SPARK
    first, last = min(-1, days[0].number), max(0, days[-1].number)
    step = width / (last - first + 1)
    bars = []
    for each in days:
        high = max((each.tokens or 0.0) / top * (height - 2), 1.0)
        place = {"x": (each.number - first) * step + step * 0.1, "y": height - high}
        bars.append(element("rect", **place, width=step * 0.8, height=high, class_=_side(each)))
    had, has = wording.measured(outcome)
    told = f"{wording.tokens(had)} before, {wording.tokens(has)} since"
    return _svg(width, height, "Day by day", told, bars)


def _bars(
    title: str,
    told: str,
    days: list[tuple[Day, float]],
    means: tuple[float | None, float | None],
    size: tuple[float, float],
) -> Markup:
    top = max(*(amount for _, amount in days), *(each or 0.0 for each in means))
    frame = Frame([each for each, _ in days], top, *size, wording.tokens)
    bars = [_bar(frame, each, amount) for each, amount in days]
    return _drawing(*size, title, told, [*frame.around(), *bars, *_means(frame, *means)])


def _drawing(width: float, height: float, title: str, told: str, parts: list[Markup]) -> Markup:
    caption = element("figcaption", title, element("span", told))
    return element("figure", caption, _svg(width, height, title, told, parts))


def _svg(width: float, height: float, title: str, told: str, parts: list[Markup]) -> Markup:
    head = (element("title", title), element("desc", told))
    box = f"0 0 {width:g} {height:g}"
    return element("svg", *head, *parts, viewBox=box, role="img", aria_label=f"{title}: {told}")


def _bar(frame: Frame, day: Day, amount: float) -> Markup:
    # A day that paid nothing still had sessions: a sliver says so.
    y = min(frame.y(amount), frame.floor - 1)
    said = f"Day {day.number:+d}: {wording.tokens(amount)} tokens, {_sessions(day)}"
    gap = frame.step * 0.1
    place = {"x": frame.x(day.number) + gap, "y": y, "width": frame.step - 2 * gap, "height": frame.floor - y}
    return element("rect", element("title", said), **place, rx=min(2.0, frame.step / 4), class_=_side(day))


def _dot(frame: Frame, day: Day, rate: float) -> Markup:
    said = f"Day {day.number:+d}: {wording.share(rate)}, {_sessions(day)}"
    middle = frame.x(day.number) + frame.step / 2
    return element("circle", element("title", said), cx=middle, cy=frame.y(rate), r=4, class_=_side(day))


def _means(frame: Frame, before: float | None, since: float | None) -> list[Markup]:
    sides = ((before, frame.x(frame.first), frame.x(0)), (since, frame.x(0), frame.right))
    return [
        element("line", x1=start, x2=end, y1=frame.y(amount), y2=frame.y(amount), class_="mean")
        for amount, start, end in sides
        if amount is not None
    ]


def _server(y: float, name: str, before: float, after: float, top: float) -> Markup:
    label = name or OWN_TOOLS
    short = label if len(label) <= _NAME_LENGTH else f"{label[: _NAME_LENGTH - 1]}…"
    start, room = 180.0, WIDE - 180.0 - 80.0
    return joined(
        element("text", element("title", label), short, x=start - 8, y=y + 19, text_anchor="end"),
        _amount(start, y + 3, before / top * room, before, "before"),
        _amount(start, y + 16, after / top * room, after, "since"),
    )


def _amount(x: float, y: float, length: float, amount: float, side: str) -> Markup:
    said = f"{side}: {wording.tokens(amount)} tokens"
    bar = element("rect", element("title", said), x=x, y=y, width=max(length, 1.0), height=11, rx=2, class_=side)
    return joined(bar, element("text", wording.tokens(amount), x=x + max(length, 1.0) + 6, y=y + 10))


def _side(day: Day) -> str:
    return "before" if day.number < 0 else "since"


def _sessions(day: Day) -> str:
    return f"{day.sessions:,} session{'' if day.sessions == 1 else 's'}"
