"""Which sessions tell of which change, so that no definition that went away is counted for two.

Of two changes to the same definitions the first is measured until the second, and the second from the first on. Where
no session ran between the two nobody can tell them apart: then the more specific one has the definitions.
Above: `outcome`. Below: `change`, `samples` and `scope`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import chain

from pegboard.doctor.facts import Agent, Session
from pegboard.doctor.report.change import Change, overlapping, share_a_folder
from pegboard.doctor.report.samples import Sample


class Moments:
    """When sessions of each agent began, in each folder."""

    def __init__(self, sessions: Iterable[Session], changes: Iterable[Change]) -> None:
        self._began: dict[Agent, dict[str, list[float]]] = {}
        for each in sessions:
            self._add(each.agent, each.project, each.began_at)
        for change in changes:
            for sample in (*(change.baseline.samples if change.baseline else ()), *change.since):
                self._add(change.scope.agent, sample.project, sample.first_at)
                self._add(change.scope.agent, sample.project, sample.last_at)
        for moments in chain.from_iterable(folder.values() for folder in self._began.values()):
            moments.sort()

    def any_between(self, one: Change, other: Change, since: float, until: float) -> bool:
        """Whether a session that both are about began in that time."""
        return any(
            bisect_left(moments, since) < bisect_left(moments, until)
            for project, moments in self._began.get(one.scope.agent, {}).items()
            if one.scope.holds_in(project) and other.scope.holds_in(project)
        )

    def _add(self, agent: Agent, project: str, began_at: float) -> None:
        self._began.setdefault(agent, {}).setdefault(project, []).append(began_at)


class Claims:
    """What of the sessions tells of one change, beside all the others."""

    def __init__(self, change: Change, changes: Iterable[Change], moments: Moments) -> None:
        self._change = change
        self._others = [each for each in changes if _meets(each, change) and was_in_effect(each, moments)]
        self.together = [each for each in self._others if _together(change, each, moments)]
        """Applied when this one was, as far as sessions can tell."""
        better = [each for each in self.together if each.rank < change.rank]
        self.has_a_better = bool(better)
        """Whether one of these has a better claim, be it to other definitions."""
        self.yields_to = [each for each in better if overlapping(each.scope, change.scope)]
        """Those of them that have some of the same definitions."""

    def counts(self, sample: Sample, server: str) -> bool:
        """Whether a server's definitions in these sessions tell of this change."""
        if any(each.scope.holds_for(server) and each.scope.holds_in(sample.project) for each in self.yields_to):
            return False
        return not self._is_cut_off(sample, [each for each in self._others if each.scope.holds_for(server)])

    def counts_usage(self, sample: Sample) -> bool:
        """Whether the tokens of these sessions tell of this change: no other one lies between."""
        return not self._is_cut_off(sample, self._others)

    def span(self, since: float, until: float) -> tuple[float, float]:
        """That time, cut where other changes of the agent begin and cease."""
        at, edges = self._change.applied_at, self._edges(self._others)
        before, after = [each for each in edges if each <= at], [each for each in edges if each > at]
        return max([since, *before]), min([until, *after])

    def _is_cut_off(self, sample: Sample, rivals: list[Change]) -> bool:
        at = self._change.applied_at
        edges = self._edges(each for each in rivals if each.scope.holds_in(sample.project))
        if sample.first_at < at:
            return any(sample.first_at < edge <= at for edge in edges)
        return any(at < edge <= sample.last_at for edge in edges)

    def _edges(self, changes: Iterable[Change]) -> list[float]:
        """When others began or ceased; those of the same time only cease."""
        return [moment for each in changes for moment in each.moments[each in self.together :]]


def was_in_effect(change: Change, moments: Moments) -> bool:
    """Whether a session can have begun with it: one that was undone before the next began did nothing."""
    if change.undone_at is None:
        return True
    return moments.any_between(change, change, change.applied_at, change.undone_at)


def _meets(one: Change, other: Change) -> bool:
    """Whether they are two, and some session may be about both."""
    return one.id != other.id and one.scope.agent == other.scope.agent and share_a_folder(one.scope, other.scope)


def _together(one: Change, other: Change, moments: Moments) -> bool:
    early, late = sorted((one.applied_at, other.applied_at))
    return not moments.any_between(one, other, early, late)
