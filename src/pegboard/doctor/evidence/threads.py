"""Puts the sessions that sub-agents had to the session that started them.

Above: the readers of Codex, opencode and Kilo. Below: `parts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pegboard.doctor.evidence.parts import Part, Verdict, session_of
from pegboard.doctor.facts import Agent, Session


def sessions_of(
    agent: Agent,
    parts: Sequence[Part],
    verdict: Callable[[list[Part]], Verdict] = lambda _: Verdict(),
) -> Iterator[Session]:
    """One session for every part that nothing else has started, and whose starter is not here."""
    by_id = {part.session: part for part in parts}
    groups: dict[str, list[Part]] = {}
    for part in parts:
        groups.setdefault(_root(part, by_id), []).append(part)
    for identity, group in groups.items():
        group.sort(key=lambda part: (part.session != identity, part.first))
        yield session_of(agent, identity, group, verdict(group))


def _root(part: Part, by_id: dict[str, Part]) -> str:
    met = {part.session}
    while part.parent in by_id and part.parent not in met:
        part = by_id[part.parent]
        met.add(part.session)
    return part.session
