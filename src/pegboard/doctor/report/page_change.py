"""One change on the page: how it stands, its figures, what is to be said of it, and its drawings.

Above: `page`. Below: `charts`, `markup` and `wording`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pegboard.doctor.report import charts, wording
from pegboard.doctor.report.markup import Markup, element, joined, text
from pegboard.doctor.report.outcome import Outcome
from pegboard.doctor.report.verdict import DEFINITIONS

ARROW = "→"
MINUS = "\N{MINUS SIGN}"


def section(outcome: Outcome) -> Markup:
    """All of it."""
    change = outcome.change
    cache = [each for each in (charts.cache_chart(outcome), charts.writes_chart(outcome)) if each is not None]
    return element(
        "section",
        element("div", element("h2", title(outcome)), state(outcome), class_="head"),
        element("p", _sentence(wording.meaning(outcome))),
        element("p", *_about(outcome), class_="soft small"),
        *(element("p", note, class_=_note_tone(outcome, note)) for note in outcome.notes),
        element("dl", *_tiles(outcome), class_="tiles"),
        _doubts(outcome),
        charts.days_chart(outcome),
        element("div", *cache, class_="pair") if cache else None,
        charts.servers_chart(outcome),
        _days(outcome),
        class_="card",
        aria_label=f"{change.id[:8]} {change.kind}",
    )


def title(outcome: Outcome) -> str:
    """What was done to what, and where."""
    return f"{outcome.change.kind}: {wording.subject(outcome.change)}"


def state(outcome: Outcome) -> Markup:
    """How it stands, in a colour where it is good or bad."""
    tone = {"measured": "good", "worse": "bad"}.get(outcome.state, "")
    return element("span", outcome.state, class_=f"state {tone}".strip())


def less(outcome: Outcome) -> str:
    """How much of it went, in words."""
    had, _ = wording.measured(outcome)
    if outcome.saved is None or not had:
        return ""
    if round(outcome.saved) == 0:
        return "as much as before"
    size, word = abs(outcome.saved), "less" if outcome.saved > 0 else "more"
    return f"{wording.tokens(size)} {word}, {size / had:.0%}"


def tone(outcome: Outcome) -> str:
    """The colour of that."""
    if outcome.saved is None or round(outcome.saved) == 0:
        return ""
    return "good" if outcome.saved > 0 else "bad"


def confidence(outcome: Outcome) -> str:
    """How sure it is; nothing where nothing is said."""
    return f"{outcome.confidence} confidence" if outcome.confidence else ""


def tile(name: str, figure: str, below: str = "", *, tone: str = "") -> Markup:
    """One figure with its name, and what it means below."""
    said = element("dd", below, class_=f"{tone or 'soft'} small") if below else None
    return element("div", element("dt", name), element("dd", figure, class_="figure"), said, class_="tile")


def table(caption: str, headers: Sequence[tuple[str, bool]], rows: Iterable[Sequence[Markup]]) -> Markup:
    """A table that scrolls by itself where it is too wide; headers say whether numbers are below them."""
    cells = (element("th", name, scope="col", class_="number" if is_number else None) for name, is_number in headers)
    body = element("tbody", *(element("tr", *row) for row in rows))
    inside = element("table", element("caption", caption), element("thead", element("tr", *cells)), body)
    return element("div", inside, class_="scroll")


def number(words: str) -> Markup:
    """A cell with a figure."""
    return element("td", words, class_="number")


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _note_tone(outcome: Outcome, note: str) -> str | None:
    return "bad" if outcome.cache_hurt and note == outcome.notes[0] else None


def _about(outcome: Outcome) -> Iterable[str]:
    change = outcome.change
    yield element("code", change.id[:8])
    yield f", applied on {wording.day(change.applied_at)} for {change.scope.agent}"
    if change.undone_at is not None:
        yield f", undone on {wording.day(change.undone_at)}"
    if change.scope.projects:
        yield f", holds in {', '.join(change.scope.projects)}"
    if change.files:
        yield f", changed {', '.join(change.files)}"
    yield "."


def _tiles(outcome: Outcome) -> Iterable[Markup]:
    had, has = wording.measured(outcome)
    before, after = outcome.before, outcome.after
    name = (outcome.measure or DEFINITIONS).capitalize()
    yield tile(name, _both(wording.tokens(had), wording.tokens(has)), less(outcome), tone=tone(outcome))
    moved = outcome.cache_write_change
    writes = _both(wording.tokens(before.cache_write), wording.tokens(after.cache_write))
    yield tile("Cache writes per session", writes, _moved(wording.signed(moved, minus=MINUS)))
    rates = _both(wording.share(before.hit_rate), wording.share(after.hit_rate))
    points = _moved(wording.points(outcome.hit_rate_change, minus=MINUS))
    yield tile("Cache-hit rate", rates, points, tone="bad" if outcome.cache_hurt else "")
    yield tile("Sessions", _both(*(f"{count:,}" for count in wording.session_counts(outcome))), confidence(outcome))


def _both(before: str, after: str) -> Markup:
    if before == after == wording.UNKNOWN:
        return text(wording.UNKNOWN)
    return joined(element("span", f"{before} {ARROW} "), text(after))


def _moved(words: str) -> str:
    return "" if words == wording.UNKNOWN else "as before" if words.startswith("0") else words


def _doubts(outcome: Outcome) -> Markup | None:
    if not outcome.doubts:
        return None
    why = "; ".join(outcome.doubts)
    return element("p", f"Confidence is {outcome.confidence}: {why}.", class_="soft small")


def _days(outcome: Outcome) -> Markup | None:
    """The same as a table, for whoever cannot see a drawing."""
    if not outcome.days:
        return None
    rows = [
        [
            element("th", f"{each.number:+d}", scope="row"),
            *map(number, (f"{each.sessions:,}", wording.tokens(each.tokens))),
            *map(number, (wording.tokens(each.cache_write), wording.share(each.hit_rate))),
        ]
        for each in outcome.days
    ]
    caption = f"Days from the change; tokens are {outcome.measure or 'not known'}."
    headers = (("Day", False), *((name, True) for name in ("Sessions", "Tokens", "Cache writes", "Cache hits")))
    return element("details", element("summary", "Day by day"), table(caption, headers, rows))
