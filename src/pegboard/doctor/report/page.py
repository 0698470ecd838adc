"""The report as one page that needs nothing else: no script, no font, no image, no request to anybody. Pure.

Above: the command, which writes it to a file. Below: `charts`, `markup` and `wording`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pegboard.doctor.report import charts, wording
from pegboard.doctor.report.markup import Markup, element
from pegboard.doctor.report.outcome import Outcome, Report

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Should anything ever slip in, the browser still fetches and runs nothing."""
_HEADERS = (
    "Change",
    "Agent",
    "Applied",
    "State",
    "Tokens",
    "Saved",
    "Cache writes",
    "Cache hits",
    "Sessions",
    "Confidence",
)
_STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --soft: #5b6570; --paper: #fcfcfd; --line: #d5d9de;
  --before: #8a95a3; --since: #2563a8; --good: #1f7a4d; --alarm: #b3261e; --card: #f2f4f6; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ec; --soft: #a3adb8; --paper: #16191d; --line: #363d45;
  --before: #77828f; --since: #6cb2f5; --good: #4cc38a; --alarm: #ff8a80; --card: #1e2328; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
code { font-family: ui-monospace, monospace; }
.soft { color: var(--soft); }
.alarm { border-left: 4px solid var(--alarm); padding: .5rem 1rem; background: var(--card); }
.state { font-weight: 600; } .bad { color: var(--alarm); } .good { color: var(--good); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; margin: 1rem 0; } caption { text-align: left; color: var(--soft); }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .6rem; text-align: left; vertical-align: top; }
.day { white-space: nowrap; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { margin: 1rem 0; } figcaption { color: var(--soft); font-size: .9rem; }
svg { width: 100%; height: auto; display: block; } svg text { fill: var(--soft); font: 12px system-ui, sans-serif; }
.before { fill: var(--before); } .since { fill: var(--since); } .grid { stroke: var(--line); }
.applied { stroke: var(--ink); stroke-dasharray: 4 3; } .mean { stroke: var(--ink); stroke-width: 1.5; }
"""


def page_of(report: Report) -> str:
    """The whole page."""
    title = "What the doctor's changes brought"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Markup(_STYLE)),
    )
    body = element("body", element("main", element("h1", title), *_main(report)))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _main(report: Report) -> Iterable[Markup]:
    yield element("p", f"As of {wording.day(report.at)}.", class_="soft")
    if not report.outcomes:
        yield element("p", "Nothing was applied yet.")
        return
    yield from (_alarm(each) for each in report.hurt)
    yield element("p", _total(report))
    yield _summary(report.outcomes)
    yield from (_section(each) for each in report.outcomes)
    yield element("h2", "How this was counted")
    yield element("ul", *(element("li", rule) for rule in wording.RULES))


def _alarm(outcome: Outcome) -> Markup:
    name = element("strong", f"{outcome.change.id[:8]} {outcome.change.kind}: {wording.subject(outcome.change)}. ")
    return element("p", name, outcome.notes[0], class_="alarm", role="alert")


def _total(report: Report) -> str:
    saved = report.saved_in_all
    if not any(each.after.known for each in report.outcomes):
        return "Nothing can be said yet of what was saved."
    what = (
        f"{saved:,} definition tokens were not sent" if saved >= 0 else f"{-saved:,} more definition tokens were sent"
    )
    return f"In all, {what} in the sessions seen since."


def _summary(outcomes: Sequence[Outcome]) -> Markup:
    rows = [_row(each) for each in outcomes]
    return _table(
        "All changes, before → since; tokens are of definitions per session, or as the change's own section says.",
        _HEADERS,
        rows,
    )


def _row(outcome: Outcome) -> list[Markup]:
    change, before, after = outcome.change, outcome.before, outcome.after
    had, has = wording.measured(outcome)
    counts = [f"{count:,}" for count in wording.session_counts(outcome)]
    return [
        element("th", element("code", change.id[:8]), f" {change.kind}: {wording.subject(change)}", scope="row"),
        element("td", change.scope.agent),
        element("td", wording.day(change.applied_at), class_="day"),
        element("td", _state(outcome)),
        _both(wording.tokens(had), wording.tokens(has)),
        _number(wording.tokens(outcome.saved)),
        _both(wording.tokens(before.cache_write), wording.tokens(after.cache_write)),
        _both(wording.share(before.hit_rate), wording.share(after.hit_rate)),
        _both(*counts),
        element("td", outcome.confidence or ""),
    ]


def _section(outcome: Outcome) -> Markup:
    change = outcome.change
    drawn = [charts.days_chart(outcome), charts.cache_chart(outcome), charts.servers_chart(outcome)]
    return element(
        "section",
        element("h2", element("code", change.id[:8]), f" {change.kind}: {wording.subject(change)}"),
        element("p", _state(outcome), f": {wording.meaning(outcome)}."),
        element("p", _about(outcome), class_="soft"),
        *(element("p", note) for note in outcome.notes),
        _doubts(outcome),
        *(each for each in drawn if each is not None),
        _days(outcome),
        aria_label=f"{change.id[:8]} {change.kind}",
    )


def _about(outcome: Outcome) -> str:
    change = outcome.change
    parts = [f"Applied on {wording.day(change.applied_at)} for {change.scope.agent}"]
    if change.scope.projects:
        parts.append(f"in {', '.join(change.scope.projects)}")
    if change.undone_at is not None:
        parts.append(f"undone on {wording.day(change.undone_at)}")
    if change.files:
        parts.append(f"changed {', '.join(change.files)}")
    return ", ".join(parts) + "."


def _doubts(outcome: Outcome) -> Markup | None:
    if outcome.confidence is None:
        return None
    why = f": {'; '.join(outcome.doubts)}" if outcome.doubts else ""
    return element("p", f"Confidence is {outcome.confidence}{why}.", class_="soft")


def _days(outcome: Outcome) -> Markup | None:
    """The same as a table, for whoever cannot see a drawing."""
    if not outcome.days:
        return None
    rows = [
        [
            element("th", f"{each.number:+d}", scope="row"),
            *map(_number, (f"{each.sessions:,}", wording.tokens(each.tokens))),
            *map(_number, (wording.tokens(each.cache_write), wording.share(each.hit_rate))),
        ]
        for each in outcome.days
    ]
    caption = f"Days from the change; tokens are {outcome.measure or 'not known'}."
    headers = ("Day", "Sessions", "Tokens", "Cache writes", "Cache hits")
    return element("details", element("summary", "Day by day"), _table(caption, headers, rows))


def _table(caption: str, headers: Sequence[str], rows: Iterable[Sequence[Markup]]) -> Markup:
    head = element("thead", element("tr", *(element("th", each, scope="col") for each in headers)))
    body = element("tbody", *(element("tr", *row) for row in rows))
    return element("div", element("table", element("caption", caption), head, body), class_="scroll")


def _number(words: str) -> Markup:
    return element("td", words, class_="number")


def _both(before: str, after: str) -> Markup:
    return _number(wording.both(before, after, arrow="→"))


def _state(outcome: Outcome) -> Markup:
    tone = {"measured": "good", "worse": "bad"}.get(outcome.state, "")
    return element("span", outcome.state, class_=f"state {tone}".strip())
