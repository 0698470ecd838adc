"""What one server costs a session: its definitions where nothing is deferred, the names of its tools where it is.

Above: the checks of servers. Below: the rules of Claude Code, models and sizes.
"""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.doctor.checks import claude_rules, models, sizes
from pegboard.doctor.checks.contexts import strongest
from pegboard.doctor.facts import AgentState, Deferral, Session

_NAME = 10
"""Tokens of the name of a tool that nobody has seen."""


def mean(sessions: Sequence[Session], server: str, state: AgentState) -> int:
    """Tokens in the average session; what a session would pay when there is none."""
    each = [_in_session(session, server, state) for session in sessions]
    return round(sum(each) / len(each)) if each else sizes.SERVER_TOOLS * sizes.TOOL_TOKENS


def may_be_there(session: Session, server: str, *, is_pinned: bool) -> bool:
    """Whether a session has a tool of it, or does not tell: what is deferred is announced, what is pinned is sent."""
    is_sent = is_pinned or session.deferral is Deferral.OFF
    has_all = bool(session.definitions) if is_sent else bool(session.announced)
    return not has_all or server in session.server_calls or bool(_tools(session, server))


def told_by(sessions: Sequence[Session]) -> str:
    """What says so."""
    told = [session for session in sessions if session.definitions]
    return f"What it costs is told by {strongest(told).value}." if told else "What it costs is an estimate."


def _in_session(session: Session, server: str, state: AgentState) -> int:
    if not may_be_there(session, server, is_pinned=server in sizes.pinned(state)):
        return 0
    tools = _tools(session, server)
    if session.definitions:
        listed = sum(tool.tokens for tool in session.definitions if tool.server == server and not tool.deferred)
        return listed + (0 if session.deferral is Deferral.OFF else sum(map(sizes.name_tokens, tools)))
    if _defers(session, state):
        return sum(map(sizes.name_tokens, tools)) or sizes.SERVER_TOOLS * _NAME
    return (len(tools) or sizes.SERVER_TOOLS) * sizes.TOOL_TOKENS


def _defers(session: Session, state: AgentState) -> bool:
    """As the session shows; else as the agent would."""
    if session.deferral is not Deferral.UNKNOWN:
        return session.deferral is Deferral.ON
    if session.agent == "codex":
        return all(models.known_to_codex(model) for model in session.models)
    return session.agent == "claude-code" and not claude_rules.blockers(state, session.version, session.models)


def _tools(session: Session, server: str) -> frozenset[str]:
    """The names of its tools, as announced or defined."""
    defined = {tool.name for tool in session.definitions if tool.server == server}
    return frozenset(defined.union(name for name in session.announced if sizes.server_of(name) == server))
