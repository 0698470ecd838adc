"""Where settings, versions and models keep Claude Code from deferring, and the sessions that show it.

A setting counts from when its file was written: sessions before that show nothing of it, for or against. Sessions that
show deferral on since then say that the setting is not at work, as a variable of a shell that nobody uses.
Above: `deferral_off`. Below: the rules of Claude Code, contexts and sizes.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from pegboard.doctor.checks import claude_rules, sizes
from pegboard.doctor.checks.claude_rules import Blocker
from pegboard.doctor.checks.contexts import Context, contexts, proven
from pegboard.doctor.facts import AgentState, Deferral, Evidence, Session, Setting

_LATEST = 5
"""Sessions that tell which models are used now; as many without a trace outweigh one that deferred before them."""


class Outage(msgspec.Struct, frozen=True):
    """One cause at work in one context."""

    context: Context
    blocker: Blocker
    shown: tuple[Session, ...] = ()
    """Had it off, under this very setting."""
    silent: tuple[Session, ...] = ()
    """Of the rest under it, those that show nothing; no less affected."""
    before: tuple[Session, ...] = ()
    """Had it off before the setting's file was last written, most likely for the same cause."""
    then: tuple[Blocker, ...] = ()
    """What would keep it off still, once this one is mended."""
    doubtful: bool = False
    """Whether an earlier session under this very setting deferred all the same."""

    @property
    def affected(self) -> tuple[Session, ...]:
        """The sessions to count."""
        return (*self.shown, *self.silent) or self.before

    @property
    def telling(self) -> tuple[Session, ...]:
        """Those that tell most of what is paid for."""
        return self.shown or self.before or self.silent

    @property
    def load(self) -> sizes.Load:
        """What is paid for in vain; what pins keep is another finding, where the version heeds them."""
        heeds = claude_rules.number(self.context.version) >= claude_rules.ALWAYS_LOAD
        kept = sizes.pinned(self.context.state) if heeds else frozenset()
        return sizes.load(self.telling, self.context.state, without=kept)


def outages(evidence: Evidence) -> dict[str, list[Outage]]:
    """Every cause that is at work, and where."""
    found: dict[str, list[Outage]] = {}
    for context in contexts(evidence, "claude-code"):
        for blocker, then in _at_work(context):
            if outage := _outage(context, blocker, then):
                found.setdefault(blocker.cause, []).append(outage)
    return found


def blocked_by(session: Session, state: AgentState) -> Blocker | None:
    """What kept deferral off in one session for certain, as far as the settings of today tell."""
    all_of_them = claude_rules.blockers(state, session.version or state.version, session.models)
    return next((each for each in all_of_them if each.certain), None)


def decisive(found: Iterable[Outage]) -> tuple[Setting, ...]:
    """The settings at fault, each once, however many folders they count in."""
    named = (setting for outage in found for setting in outage.blocker.settings)
    return tuple({(each.file, each.key, each.line): each for each in named}.values())


def _at_work(context: Context) -> Iterable[tuple[Blocker, tuple[Blocker, ...]]]:
    """The first certain blocker for each of the models used of late, with those behind it."""
    if not context.sessions and (context.state.project or not context.state.installed):
        return ()  # nobody is harmed in a folder where it never ran
    first: dict[str, tuple[Blocker, tuple[Blocker, ...]]] = {}
    for models in dict.fromkeys(session.models for session in context.sessions[-_LATEST:]) or [()]:
        certain = [each for each in claude_rules.blockers(context.state, context.version, models) if each.certain]
        if certain:
            first.setdefault(certain[0].cause, (certain[0], tuple(certain[1:])))
    return first.values()


def _outage(context: Context, blocker: Blocker, then: tuple[Blocker, ...]) -> Outage | None:
    under = [session for session in context.sessions if _owns(blocker, session, context.state)]
    since = [session for session in under if session.began_at >= blocker.since]
    shown, on = proven(since, Deferral.OFF), proven(since, Deferral.ON)
    silent = [session for session in since if session.deferral is Deferral.UNKNOWN]
    is_doubtful = bool(on) and (not shown or on[-1].began_at > shown[-1].began_at)
    if is_doubtful:
        silent = [session for session in silent if session.began_at > on[-1].began_at]
        if len(silent) < _LATEST:
            return None
    return Outage(
        context=context,
        blocker=blocker,
        shown=() if is_doubtful else shown,
        silent=tuple(silent),
        before=proven((session for session in under if session.began_at < blocker.since), Deferral.OFF),
        then=then,
        doubtful=is_doubtful,
    )


def _owns(blocker: Blocker, session: Session, state: AgentState) -> bool:
    """Whether this is what kept it off in that session: its version and its models have a say."""
    found = None if session.refused else blocked_by(session, state)
    return found is not None and found.cause == blocker.cause
