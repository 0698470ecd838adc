"""Figures and names of a report in words, the same for the table, the plot and the page.

Above: `table`, `plot`, `charts` and `page`. Below: `outcome` and its parts.
"""

from __future__ import annotations

import datetime as dt
from pathlib import PurePath

from pegboard.doctor.report.change import Change
from pegboard.doctor.report.outcome import Outcome, State
from pegboard.doctor.report.verdict import told_by

UNKNOWN = "?"
ALL = "all tools"
MEANING = {
    State.PENDING: "not in effect yet: no session began since",
    State.MEASURED: "less is sent than before",
    State.NO_EFFECT: "as much is sent as before",
    State.WORSE: "more is sent than before",
    State.REVERTED: "its files no longer say so, and nobody undid it here",
    State.UNDONE: "taken back; counted while it lasted",
    State.UNKNOWN: "sessions began since, but there is nothing to compare them with",
}
RULES = (
    "Before: the 14 days before a change was applied. Since: up to 30 days after, until it was undone.",
    "Only sessions of the agent that was changed count, in the folders it was changed for; only the servers meant do.",
    "Of two changes to the same definitions the first counts until the second, the second from then on.",
    "Where no session ran between two, the more specific has the definitions. Nothing is counted twice.",
    "The confidence is low with fewer than 20 sessions on a side, or when sessions a day more than doubled or halved.",
    "Totals are rounded down, and only of sessions that were seen.",
)


def meaning(outcome: Outcome) -> str:
    """The state in words; what hurt the cache is worse for another reason."""
    if outcome.state is State.WORSE and outcome.cache_hurt:
        return "less comes from the cache than before, and more is sent anew"
    return MEANING[outcome.state]


def subject(change: Change) -> str:
    """What it is about: servers by name, or all; and where, unless it holds everywhere."""
    what = ", ".join(change.scope.servers) or ALL
    first, *more = change.scope.projects or ("",)
    if not first:
        return what
    return f"{what} in {PurePath(first).name or first}{f' and {len(more):,} more' if more else ''}"


def day(moment: float) -> str:
    """The day of a moment, here."""
    return dt.datetime.fromtimestamp(moment).astimezone().date().isoformat()


def tokens(number: float | None) -> str:
    """A count of tokens; halves are nobody's."""
    return UNKNOWN if number is None else f"{round(number):,}"


def signed(number: float | None, *, minus: str = "-") -> str:
    """A difference, its sign always said."""
    if number is None:
        return UNKNOWN
    whole = round(number)
    return f"{'+' if whole > 0 else minus if whole < 0 else ''}{abs(whole):,}"


def share(number: float | None) -> str:
    """A share of one, in per cent."""
    return UNKNOWN if number is None else f"{number:.1%}"


def points(number: float | None, *, minus: str = "-") -> str:
    """A difference of two shares."""
    if number is None:
        return UNKNOWN
    tenths = round(number * 1000)
    return f"{'+' if tenths > 0 else minus if tenths < 0 else ''}{abs(tenths) / 10:.1f} points"


def both(before: str, after: str, *, arrow: str) -> str:
    """Before and since; nothing where neither is known."""
    return UNKNOWN if before == after == UNKNOWN else f"{before} {arrow} {after}"


def session_counts(outcome: Outcome) -> tuple[int, int]:
    """The sessions both figures are from."""
    if outcome.measure is None:
        return outcome.before.sessions, outcome.after.sessions
    return told_by(outcome.before, outcome.measure), told_by(outcome.after, outcome.measure)


def measured(outcome: Outcome) -> tuple[float | None, float | None]:
    """What was compared, before and since; definitions where nothing was, should one side know them."""
    if outcome.measure is None or outcome.measure.startswith("definition"):
        return outcome.before.definition_tokens, outcome.after.definition_tokens
    return outcome.before.input_per_reply, outcome.after.input_per_reply
