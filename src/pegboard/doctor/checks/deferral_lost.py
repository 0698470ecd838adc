"""Sessions without deferral for which no setting can be blamed: refused, held off, or nobody can tell.

Above: `diagnosis`. Below: the outages, contexts and sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pegboard.doctor import prices
from pegboard.doctor.checks import claude_rules, sizes, wording
from pegboard.doctor.checks.causes import HELD_OFF, REFUSED, UNEXPLAINED
from pegboard.doctor.checks.contexts import Context, contexts, is_over, proven, strongest
from pegboard.doctor.checks.outages import blocked_by
from pegboard.doctor.facts import AgentState, Deferral, Evidence, Finding, Fix, Session

_ENOUGH = 2
"""Sessions before a puzzle is called one."""
_TITLES = {
    REFUSED: "Deferral is off: the endpoint refused it",
    HELD_OFF: "Deferral is off in resumed conversations",
    UNEXPLAINED: "Deferral is off, and nothing here says why",
}


def check(evidence: Evidence) -> tuple[Finding, ...]:
    """One finding for each of the three."""
    found: dict[str, list[tuple[Context, list[Session]]]] = {}
    for context in contexts(evidence, "claude-code"):
        for cause, sessions in _lost(context).items():
            found.setdefault(cause, []).append((context, sessions))
    return tuple(_finding(cause, places) for cause, places in found.items())


def _lost(context: Context) -> dict[str, list[Session]]:
    state = context.state
    refused = [session for session in context.sessions if session.refused]
    rest = [
        session
        for session in proven(context.sessions, Deferral.OFF)
        if not session.refused and blocked_by(session, state) is None and not _may_be_threshold(session, state)
    ]
    held = [session for session in rest if _is_held_off(session, state)]
    # What was set otherwise then may have been the cause, and nobody can tell any more.
    puzzles = [session for session in rest if session not in held and session.began_at >= state.changed_at]
    others = [session for session in context.sessions if not session.refused]
    return {
        cause: sessions
        for cause, sessions, is_at_work in (
            (REFUSED, refused, not is_over(refused, others)),
            (HELD_OFF, held, True),
            (UNEXPLAINED, puzzles, len(puzzles) >= _ENOUGH and not is_over(puzzles, others)),
        )
        if sessions and is_at_work
    }


def _may_be_threshold(session: Session, state: AgentState) -> bool:
    return bool(claude_rules.blockers(state, session.version or state.version, session.models))


def _is_held_off(session: Session, state: AgentState) -> bool:
    base = state.setting(claude_rules.BASE_URL)
    return (
        session.resumed
        and claude_rules.is_elsewhere(state)
        and claude_rules.search_mode(state) == "unset"
        and claude_rules.number(session.version) >= claude_rules.GATE_GONE
        and base is not None
        and session.ended_at >= base.changed_at
    )


def _finding(cause: str, places: Sequence[tuple[Context, list[Session]]]) -> Finding:
    sessions = [session for _, some in places for session in some]
    load = sizes.together(
        [(sizes.load(some, each.state, without=sizes.pinned(each.state)), len(some)) for each, some in places]
    )
    states = [context.state for context, _ in places]
    return Finding(
        id=cause,
        cause=cause,
        agent="claude-code",
        title=_TITLES[cause],
        why=_why(cause, sessions, states),
        proof=strongest(sessions),
        confidence="high" if cause == REFUSED else "medium" if cause == HELD_OFF else "low",
        sessions=len(sessions),
        tokens_per_session=load.by_server,
        call_rate=sizes.call_rate(sessions, load.by_server),
        saving_per_session=load.saving,
        cost_per_session=prices.mean_cost(load.tokens, sessions),
        fix=_gateway(states) if cause == REFUSED else None,
        by_hand=_by_hand(cause),
        claims=frozenset(("claude-code", server) for server in load.by_server),
    )


def _why(cause: str, sessions: Sequence[Session], states: Sequence[AgentState]) -> str:
    how_many = wording.count(len(sessions), "session")
    shown = wording.shown_by(strongest(sessions))
    if cause == REFUSED:
        without = f"without it, {shown}" if shown else "without it"
        return f"In {how_many} the endpoint{_base_url(states)} refused deferral, and Claude Code went on {without}."
    if cause == HELD_OFF:
        return (
            f"{how_many} went on from conversations that began without deferral, behind another base URL"
            f"{_base_url(states)}; there it stays off until the conversation is compacted or cleared, {shown}."
        )
    return f"{how_many} sent every definition with every request, {shown}, and no setting that was found asks for it."


def _base_url(states: Iterable[AgentState]) -> str:
    set_to = (state.setting(claude_rules.BASE_URL) for state in states)
    places = dict.fromkeys(wording.place(setting) for setting in set_to if setting)
    return f" ({wording.joined(list(places))})" if places else ""


def _gateway(states: Iterable[AgentState]) -> Fix | None:
    entries = {(each.file, each.key): each for state in states for each in state.servers if sizes.is_active(each)}
    servers = tuple(entries.values())
    return Fix(kind="gateway-install", agent="claude-code", servers=servers) if servers else None


def _by_hand(cause: str) -> str:
    if cause == REFUSED:
        return (
            "Ask whoever runs the endpoint to let defer_loading through; `pegboard doctor verify-endpoint` tells "
            "whether it does. The gateway needs nothing of the endpoint."
        )
    if cause == HELD_OFF:
        return (
            "Begin a new conversation, or run /compact or /clear in the old one. No setting is changed for you: "
            "ENABLE_TOOL_SEARCH=true would lift it, but may break requests where the endpoint was not verified."
        )
    return (
        "There is no setting to change. Look for flags such as --disallowedTools or --settings, for an agent's own "
        "list of tools, and at the line `[ToolSearch:optimistic] mode=` that `claude --debug` writes."
    )
