"""Sums over sessions: enough to compare before with after when the transcripts are long gone, and nothing more.

Above: `baseline` and `outcome`. Below: `scope` and the doctor's nouns.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from pegboard.doctor.facts import Session, Usage
from pegboard.doctor.report.scope import Scope

DAY = 86_400.0


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One session, or those of one day in one folder added up."""

    first_at: float
    last_at: float
    """When the first and the last of them began."""
    project: str = ""
    sessions: int = 1
    known: int = 0
    """Those of which it is known what definitions they had."""
    counted: int = 0
    """Those whose definitions were counted from what was sent, not estimated."""
    paid: dict[str, int] = {}
    """Tokens of definitions, by server, of the known ones."""
    usage: Usage = Usage()


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What some sessions come to, per session."""

    sessions: int = 0
    known: int = 0
    counted: int = 0
    by_server: dict[str, float] = {}
    """Definition tokens per known session; the agent's own under the empty name."""
    usage: Usage = Usage()

    @property
    def definition_tokens(self) -> float | None:
        """Per session; None when nobody knows."""
        return sum(self.by_server.values()) if self.known else None

    @property
    def cache_write(self) -> float | None:
        """Tokens written to the cache per session."""
        return self.usage.cache_write / self.sessions if self.sessions else None

    @property
    def hit_rate(self) -> float | None:
        """The share of the input that came from the cache; None when nothing went in."""
        return self.usage.hit_rate if self.usage.all_input else None

    @property
    def input_per_reply(self) -> float | None:
        """Tokens that went in for each message of the model's."""
        return self.usage.all_input / self.usage.messages if self.usage.messages else None

    @property
    def uncached_per_reply(self) -> float | None:
        """Those of them that did not come from the cache."""
        fresh = self.usage.input + self.usage.cache_write
        return fresh / self.usage.messages if self.usage.messages else None


def sample_of(session: Session, scope: Scope) -> Sample:
    """One session by itself."""
    known = bool(session.definitions)
    return Sample(
        first_at=session.began_at,
        last_at=session.began_at,
        project=session.project,
        known=int(known),
        counted=int(known and session.counted),
        paid=scope.paid(session),
        usage=session.usage,
    )


def samples_of(sessions: Iterable[Session], scope: Scope, *, since: float, until: float) -> tuple[Sample, ...]:
    """The sessions that count and began in that time, oldest first."""
    found = [sample_of(each, scope) for each in sessions if scope.has(each) and since <= each.began_at < until]
    return tuple(sorted(found, key=lambda each: (each.first_at, each.project)))


def by_day(samples: Iterable[Sample], *, until: float) -> tuple[Sample, ...]:
    """The same in as few as days and folders allow; days are counted back from `until`."""
    groups: dict[tuple[int, str], list[Sample]] = {}
    for each in samples:
        groups.setdefault((-int((until - each.first_at) // DAY), each.project), []).append(each)
    return tuple(added(group) for _, group in sorted(groups.items()))


def added(samples: list[Sample]) -> Sample:
    """Several samples of one folder as one."""
    paid: dict[str, int] = {}
    for each in samples:
        for server, tokens in each.paid.items():
            paid[server] = paid.get(server, 0) + tokens
    return Sample(
        first_at=min(each.first_at for each in samples),
        last_at=max(each.last_at for each in samples),
        project=samples[0].project,
        sessions=sum(each.sessions for each in samples),
        known=sum(each.known for each in samples),
        counted=sum(each.counted for each in samples),
        paid=paid,
        usage=total_usage(each.usage for each in samples),
    )


def figures_of(samples: Iterable[Sample]) -> Figures:
    """What they come to per session."""
    all_of_them = list(samples)
    if not all_of_them:
        return Figures()
    whole = added(all_of_them)
    return Figures(
        sessions=whole.sessions,
        known=whole.known,
        counted=whole.counted,
        by_server={server: tokens / whole.known for server, tokens in sorted(whole.paid.items())}
        if whole.known
        else {},
        usage=whole.usage,
    )


def total_usage(usages: Iterable[Usage]) -> Usage:
    """Tokens added up, kind by kind."""
    listed = list(usages)
    return Usage(
        input=sum(each.input for each in listed),
        output=sum(each.output for each in listed),
        cache_read=sum(each.cache_read for each in listed),
        cache_write=sum(each.cache_write for each in listed),
        messages=sum(each.messages for each in listed),
    )
