"""Thresholds that are never reached: `auto`, which can go, and `auto:N`, for which a tighter N is found.

Above: `diagnosis`. Below: the rules of Claude Code, contexts and sizes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from pegboard.doctor import prices
from pegboard.doctor.checks import claude_rules, models, sizes, wording
from pegboard.doctor.checks.causes import AUTO, THRESHOLD
from pegboard.doctor.checks.claude_rules import Blocker
from pegboard.doctor.checks.contexts import Context, contexts, proven, strongest
from pegboard.doctor.checks.outages import blocked_by
from pegboard.doctor.facts import Deferral, Evidence, Finding, Fix, Session

_LATEST = 5
_DEFAULT = 10


class Missed(msgspec.Struct, frozen=True):
    """A threshold in one context, and the sessions that stayed below it."""

    context: Context
    blocker: Blocker
    sessions: tuple[Session, ...]

    @property
    def percent(self) -> int:
        """Of the window."""
        return claude_rules.threshold(self.blocker.settings[0].value) if self.blocker.settings else _DEFAULT

    @property
    def load(self) -> sizes.Load:
        """What is paid for in the average session."""
        return sizes.load(self.sessions, self.context.state, without=sizes.pinned(self.context.state))

    @property
    def window(self) -> int:
        """At least as large as it must be for these definitions to have stayed below."""
        known = models.window(model for session in self.sessions for model in session.models)
        return max(known, math.ceil(self.load.tokens * 100 / self.percent))

    @property
    def tighter(self) -> int:
        """The largest percentage that all these sessions would have reached, tiny ones aside; 0 for always."""
        kept = sizes.pinned(self.context.state)
        each = [sizes.load([session], self.context.state, without=kept).tokens for session in self.sessions]
        least = min((tokens for tokens in each if tokens >= sizes.WORTH_DEFERRING), default=0)
        return min(least * 100 // self.window, self.percent - 1)


def check(evidence: Evidence) -> tuple[Finding, ...]:
    """One finding for `auto`, and one for each percentage that somebody chose."""
    found: dict[str, list[Missed]] = {}
    for context in contexts(evidence, "claude-code"):
        missed = _missed(context)
        if missed is not None and missed.load.tokens >= sizes.WORTH_DEFERRING:
            found.setdefault(missed.blocker.cause, []).append(missed)
    return tuple(_finding(cause, missed) for cause, missed in found.items())


def _missed(context: Context) -> Missed | None:
    now = claude_rules.blockers(context.state, context.version, context.models)
    if not now or now[0].certain:
        return None
    under = [session for session in context.sessions if _is_under(session, now[0], context)]
    latest = [session for session in under if session.deferral is not Deferral.UNKNOWN][-_LATEST:]
    off = proven(under, Deferral.OFF)
    return Missed(context, now[0], off) if proven(latest, Deferral.OFF) else None


def _is_under(session: Session, blocker: Blocker, context: Context) -> bool:
    if session.refused or session.began_at < blocker.since or blocked_by(session, context.state):
        return False
    then = claude_rules.blockers(context.state, session.version or context.version, session.models)
    return any(each.cause == blocker.cause for each in then)


def _finding(cause: str, missed: Sequence[Missed]) -> Finding:
    sessions = [session for each in missed for session in each.sessions]
    load = sizes.together([(each.load, len(each.sessions)) for each in missed])
    fix = _fix(cause, missed)
    settings = [setting for each in missed for setting in each.blocker.settings[:1]]
    return Finding(
        id=cause,
        cause=cause,
        agent="claude-code",
        title=_title(cause, missed),
        why=_why(missed, load),
        proof=strongest(sessions),
        confidence="high" if load.counted else "medium",
        sessions=len(sessions),
        tokens_per_session=load.by_server,
        call_rate=sizes.call_rate(sessions, load.by_server),
        saving_per_session=load.saving,
        cost_per_session=prices.mean_cost(load.tokens, sessions),
        fix=fix,
        by_hand=" ".join(_by_hand(cause, each) for each in missed if not _is_editable(each)) if settings else _UPDATE,
        claims=frozenset(("claude-code", server) for server in load.by_server),
    )


_UPDATE = "Update Claude Code (`claude update`): later versions defer whatever the size, unless told otherwise."


def _title(cause: str, missed: Sequence[Missed]) -> str:
    if cause == THRESHOLD:
        return f"Deferral is off: auto:{missed[0].percent} is a threshold that is never reached"
    if missed[0].blocker.settings:
        return "Deferral is off: ENABLE_TOOL_SEARCH=auto waits for more tools"
    return "Deferral is off: this version of Claude Code waits for more tools"


def _why(missed: Sequence[Missed], load: sizes.Load) -> str:
    said = wording.places([setting for each in missed for setting in each.blocker.settings[:1]])
    sessions = [session for each in missed for session in each.sessions]
    shape = missed[0]
    where = f"{said} asks for it: " if said else ""
    return (
        f"{where}nothing is deferred below {shape.percent} % of the context window, which is "
        f"{shape.window * shape.percent // 100:,} tokens here; the definitions are about {load.tokens:,}, so "
        f"{wording.count(len(sessions), 'session')} sent all of them with every request, "
        f"{wording.shown_by(strongest(sessions))}."
    )


def _fix(cause: str, missed: Sequence[Missed]) -> Fix | None:
    editable = {each.blocker.settings[0].file: each.blocker.settings[0] for each in missed if _is_editable(each)}
    if not editable:
        return None
    settings = tuple(editable.values())
    if cause == AUTO:
        return Fix(kind="defer-enable", agent="claude-code", settings=settings)
    return Fix(
        kind="defer-threshold",
        agent="claude-code",
        settings=settings,
        value=_value(min(each.tighter for each in missed)),
        needs_version=".".join(map(str, claude_rules.NUMBERED_THRESHOLD)),
    )


def _value(percent: int) -> str:
    return f"auto:{percent}" if percent > 0 else ""


def _is_editable(missed: Missed) -> bool:
    return bool(missed.blocker.settings) and missed.blocker.settings[0].editable


def _by_hand(cause: str, missed: Missed) -> str:
    setting = missed.blocker.settings[0]
    value = _value(missed.tighter) if cause == THRESHOLD else ""
    what = f"set {setting.name} to {value}" if value else f"remove {setting.name}"
    return wording.by_hand(setting, what)
