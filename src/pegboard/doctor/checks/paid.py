"""What one server costs a session: its definitions where nothing is deferred, the names of its tools where it is.

Above: the checks of servers. Below: the rules of Claude Code, models and sizes.
"""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.doctor.checks import claude_rules, models, sizes
from pegboard.doctor.facts import AgentState, Deferral, Session

_NAME = 10
"""Tokens of the name of a tool that nobody has seen."""


def mean(sessions: Sequence[Session], server: str, state: AgentState) -> int:
    """Tokens in the average session; what a session would pay when there is none."""
    each = [_in_session(session, server, state) for session in sessions]
    return round(sum(each) / len(each)) if each else sizes.SERVER_TOOLS * sizes.TOOL_TOKENS


def may_be_there(sessions: Sequence[Session], server: str) -> bool:
    """Whether a session has a tool of it, or none tells."""
    told = [session for session in sessions if session.definitions or session.announced]
    return not told or any(_tools(session, server) for session in told)


def _in_session(session: Session, server: str, state: AgentState) -> int:
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
