"""Which sessions ran under which settings, and which of them speak for the present.

Above: the checks. Below: the facts, and how versions compare.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath

import msgspec

from pegboard.doctor.checks.claude_rules import number
from pegboard.doctor.facts import Agent, AgentState, Deferral, Evidence, Proof, Session

_STRENGTH = {proof: number for number, proof in enumerate(Proof)}


class Context(msgspec.Struct, frozen=True):
    """One state of an agent, and the sessions that ran in its folder, the oldest first."""

    state: AgentState
    sessions: tuple[Session, ...] = ()

    @property
    def version(self) -> str:
        """As installed; that of the latest session if it is newer, as then the install that was found is not in use."""
        latest = next((each.version for each in reversed(self.sessions) if each.version), "")
        return max(self.state.version, latest, key=number)

    @property
    def models(self) -> tuple[str, ...]:
        """Those of the latest session that says."""
        return next((each.models for each in reversed(self.sessions) if each.models), ())


def contexts(evidence: Evidence, agent: Agent) -> tuple[Context, ...]:
    """Every state of an agent with its sessions; sessions of an agent without states get an empty one."""
    states = [state for state in evidence.states if state.agent == agent]
    sessions = sessions_of(evidence, agent)
    if not any(not state.project for state in states) and (states or sessions):
        states.append(AgentState(agent=agent))
    groups: dict[str, list[Session]] = {state.project: [] for state in states}
    for session in sessions:
        groups[_place(session.project, groups)].append(session)
    return tuple(Context(state, tuple(groups[state.project])) for state in states)


def sessions_of(evidence: Evidence, agent: Agent) -> tuple[Session, ...]:
    """One agent's sessions, the oldest first."""
    mine = (session for session in evidence.sessions if session.agent == agent)
    return tuple(sorted(mine, key=lambda session: (session.began_at, session.id)))


def proven(sessions: Iterable[Session], deferral: Deferral) -> tuple[Session, ...]:
    """Those of which it is known."""
    return tuple(each for each in sessions if each.deferral is deferral and each.proof is not Proof.NONE)


def is_over(affected: Sequence[Session], others: Iterable[Session]) -> bool:
    """Whether a later session shows deferral on: then what was wrong is no more."""
    last = max((session.began_at for session in affected), default=0.0)
    return any(session.began_at > last for session in proven(others, Deferral.ON))


def strongest(sessions: Iterable[Session]) -> Proof:
    """The best proof among them."""
    return min((session.proof for session in sessions), key=_STRENGTH.__getitem__, default=Proof.NONE)


def _place(project: str, known: Iterable[str]) -> str:
    """The nearest folder around a project that has a state of its own."""
    if not project:
        return ""
    path = PurePath(project)
    around = {str(path), *map(str, path.parents)}
    return max((each for each in known if each and each in around), key=len, default="")
