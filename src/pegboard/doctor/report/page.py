"""The report as one page that needs nothing else: no script, no font, no image, no request to anybody. Pure.

Above: the command, which writes it to a file. Below: `page_change`, `charts`, `markup` and `style`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pegboard.doctor.report import charts, wording
from pegboard.doctor.report.markup import Markup, element
from pegboard.doctor.report.outcome import Outcome, Report, State
from pegboard.doctor.report.page_change import ARROW, less, section, state, table, tile, title, tone
from pegboard.doctor.report.style import STYLE

TITLE = "What the doctor's changes brought"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Should anything ever slip in, the browser still fetches and runs nothing."""
_HEADERS = (
    ("Change", False),
    ("State", False),
    ("Day by day", False),
    ("Tokens", True),
    ("Cache writes", True),
    ("Cache hits", True),
    ("Sessions, confidence", True),
)


def page_of(report: Report) -> str:
    """The whole page."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", TITLE),
        element("style", Markup(STYLE)),
    )
    day = element("p", f"As of {wording.day(report.at)}.", class_="soft")
    body = element("body", element("main", element("h1", TITLE), day, *_main(report)))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _main(report: Report) -> Iterable[Markup]:
    if not report.outcomes:
        yield element("p", "Nothing was applied yet.", class_="card")
        return
    yield from (_alarm(each) for each in report.hurt)
    yield element("dl", *_tiles(report), class_="tiles big")
    yield element("div", _summary(report.outcomes), class_="card")
    yield from (section(each) for each in report.outcomes)
    rules = element("ul", *(element("li", rule) for rule in wording.RULES))
    yield element("div", element("h2", "How this was counted"), rules, class_="card")


def _alarm(outcome: Outcome) -> Markup:
    change = outcome.change
    name = element("strong", f"{change.id[:8]} {title(outcome)}. ")
    way = (" ", element("code", f"pegboard doctor undo {change.id[:8]}"), " takes it back.")
    return element(
        "p", name, outcome.notes[0], *(way if change.undone_at is None else ()), class_="alarm", role="alert"
    )


def _tiles(report: Report) -> Iterable[Markup]:
    """What matters most, above everything."""
    saved, known = report.saved_in_all, sum(each.after.known for each in report.outcomes)
    if known:
        name = "Definition tokens not sent" if saved >= 0 else "Definition tokens sent in addition"
        colour = "good" if saved > 0 else "bad" if saved < 0 else ""
        yield tile(name, f"{abs(saved):,}", "in the sessions seen since; none counted for two changes", tone=colour)
    else:
        yield tile("Definition tokens not sent", wording.UNKNOWN, "nothing can be said yet")
    states = Counter(each.state for each in report.outcomes)
    worked = states[State.MEASURED]
    others = ", ".join(f"{count:,} {state}" for state, count in states.items() if state is not State.MEASURED)
    yield tile("Changes that brought something", f"{worked:,} of {len(report.outcomes):,}", others)
    hurt = len(report.hurt)
    below = "see above: less comes from the cache than before" if hurt else "no cache-hit rate fell to anybody's loss"
    yield tile("Changes that hurt the cache", f"{hurt:,}", below, tone="bad" if hurt else "good")


def _summary(outcomes: Sequence[Outcome]) -> Markup:
    caption = "Before → since; tokens are of definitions per session, or as the change's own section says."
    return table(caption, _HEADERS, [_row(each) for each in outcomes])


def _row(outcome: Outcome) -> list[Markup]:
    change, before, after = outcome.change, outcome.before, outcome.after
    had, has = wording.measured(outcome)
    told_before, told_since = wording.session_counts(outcome)
    about = (element("code", change.id[:8]), f" · {change.scope.agent} · {wording.day(change.applied_at)}")
    return [
        element("th", title(outcome), element("span", *about, class_="soft small"), scope="row"),
        element("td", state(outcome)),
        element("td", charts.spark(outcome), class_="spark"),
        _both(wording.tokens(had), wording.tokens(has), less(outcome), tone=tone(outcome)),
        _both(wording.tokens(before.cache_write), wording.tokens(after.cache_write)),
        _both(wording.share(before.hit_rate), wording.share(after.hit_rate)),
        _both(f"{told_before:,}", f"{told_since:,}", outcome.confidence or ""),
    ]


def _both(before: str, after: str, below: str = "", *, tone: str = "") -> Markup:
    said = element("span", below, class_=f"below small {tone or 'soft'}") if below else None
    return element("td", wording.both(before, after, arrow=ARROW), said, class_="number")
