"""The two sides of a change: the sessions before it and those since, of which only what tells of it is counted.

Above: `outcome` and `days`. Below: `claims`, `change` and `samples`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from pegboard.doctor.facts import Session
from pegboard.doctor.report.baseline import BASELINE_DAYS
from pegboard.doctor.report.change import Change
from pegboard.doctor.report.claims import Claims
from pegboard.doctor.report.samples import DAY, Figures, Sample, figures_of, samples_of

AFTER_DAYS = 30


class Sides(msgspec.Struct, frozen=True, kw_only=True):
    """Sessions before and since, and for how long they were looked at."""

    before: tuple[Sample, ...] = ()
    after: tuple[Sample, ...] = ()
    before_days: float = 0.0
    after_days: float = 0.0
    servers: tuple[str, ...] = ()
    """All whose definitions were paid for on either side, or are meant by the change."""


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """Both sides per session: definitions of the same servers on both, and the usage of whole sessions."""

    before: Figures
    after: Figures
    saved_in_all: float = 0.0
    """Definition tokens over the sessions since, each server over those that tell of it."""


def sides_of(change: Change, claims: Claims, sessions: Sequence[Session], *, now: float) -> Sides:
    """The sessions of both sides that tell of a change at all."""
    end = _end(change, now)
    start = change.applied_at - BASELINE_DAYS * DAY
    kept, live = _kept(change), _live(change, sessions, start)
    after = since_of(change, sessions, now=now)
    servers = _servers(change, (*kept, *live, *after))
    began, ended = claims.span(max(start, _known_since(change, sessions)), end)
    return Sides(
        before=max(_telling(kept, servers, claims), _telling(live, servers, claims), key=_count),
        after=_telling(after, servers, claims),
        before_days=max(0.0, change.applied_at - began) / DAY,
        after_days=max(0.0, ended - change.applied_at) / DAY,
        servers=servers,
    )


def since_of(change: Change, sessions: Iterable[Session], *, now: float) -> tuple[Sample, ...]:
    """The sessions after a change, oldest first: those that are left, and those that were seen and have been swept."""
    end = _end(change, now)
    live = samples_of(sessions, change.scope, since=change.applied_at, until=end)
    seen = tuple(each for each in change.since if each.last_at < end)
    if _count(live) >= _count(seen):
        oldest = min((each.first_at for each in live), default=end)
        return (*(each for each in seen if each.last_at < oldest), *live)
    latest = max(each.last_at for each in seen)
    return (*seen, *(each for each in live if each.first_at > latest))


def compare(sides: Sides, claims: Claims) -> Compared:
    """What both sides come to. A server counts only where sessions on both sides tell of it."""
    earlier, later = _means(sides.before, sides.servers, claims), _means(sides.after, sides.servers, claims)
    both = [server for server in earlier if server in later]
    if earlier and later:
        earlier, later = ({server: side[server] for server in both} for side in (earlier, later))
    return Compared(
        before=_figures(sides.before, earlier, sides.servers, claims),
        after=_figures(sides.after, later, sides.servers, claims),
        saved_in_all=sum((earlier[each] - later[each]) * _known(sides.after, each, claims) for each in both),
    )


def mean_of(samples: Iterable[Sample], server: str, claims: Claims) -> float | None:
    """What a session pays for a server's definitions, of those that tell; None when none does."""
    telling = [each for each in samples if each.known and claims.counts(each, server)]
    known = sum(each.known for each in telling)
    return sum(each.paid.get(server, 0) for each in telling) / known if known else None


def _means(samples: Sequence[Sample], servers: Iterable[str], claims: Claims) -> dict[str, float]:
    means = {server: mean_of(samples, server, claims) for server in servers}
    return {server: mean for server, mean in means.items() if mean is not None}


def _known(samples: Iterable[Sample], server: str, claims: Claims) -> int:
    return sum(each.known for each in samples if claims.counts(each, server))


def _end(change: Change, now: float) -> float:
    """Until when sessions tell of it."""
    return min(now, change.applied_at + AFTER_DAYS * DAY, now if change.undone_at is None else change.undone_at)


def _count(samples: Iterable[Sample]) -> int:
    return sum(each.sessions for each in samples)


def _kept(change: Change) -> tuple[Sample, ...]:
    """What was written down when the change was made: less than there was, should somebody have looked at less."""
    return change.baseline.samples if change.baseline else ()


def _live(change: Change, sessions: Iterable[Session], start: float) -> tuple[Sample, ...]:
    """What the transcripts still say. A session that went on after the change is half of either side: of neither."""
    whole = [each for each in sessions if each.ended_at <= change.applied_at]
    return samples_of(whole, change.scope, since=start, until=change.applied_at)


def _telling(samples: Iterable[Sample], servers: tuple[str, ...], claims: Claims) -> tuple[Sample, ...]:
    return tuple(each for each in samples if claims.counts_usage(each) or _tells_of_any(each, servers, claims))


def _tells_of_any(sample: Sample, servers: tuple[str, ...], claims: Claims) -> bool:
    return any(claims.counts(sample, server) for server in servers)


def _servers(change: Change, samples: Iterable[Sample]) -> tuple[str, ...]:
    meant = {*change.scope.servers} | ({""} if change.scope.own else set())
    return tuple(sorted(meant.union(*(each.paid for each in samples))))


def _figures(
    samples: Sequence[Sample], by_server: dict[str, float], servers: tuple[str, ...], claims: Claims
) -> Figures:
    # Without any server nothing was paid, and nothing is there for others to claim.
    telling = [each for each in samples if not servers or _tells_of_any(each, servers, claims)]
    usage = figures_of(each for each in samples if claims.counts_usage(each))
    return msgspec.structs.replace(
        usage,
        known=sum(each.known for each in telling),
        counted=sum(each.counted for each in telling),
        by_server=by_server,
    )


def _known_since(change: Change, sessions: Iterable[Session]) -> float:
    """When the oldest session began that is known of the agent, to the baseline or to the transcripts."""
    kept = change.baseline.known_since if change.baseline is not None else 0.0
    began = [kept, *(each.began_at for each in sessions if each.agent == change.scope.agent)]
    return min((each for each in began if each > 0), default=0.0)
