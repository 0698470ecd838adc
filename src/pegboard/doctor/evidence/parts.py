"""What one file says of one session, and how such parts become a session. Numbers and names only.

Above: every reader makes parts, `gather` puts them together. Below: the doctor's nouns.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from pegboard.doctor.evidence.names import server_of
from pegboard.doctor.facts import Agent, Deferral, Definition, Proof, Session, Usage

_MOMENT = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)")
_MOST = 10**12
"""No count of tokens is larger; what says so is wrong."""
_NAMES_CAP = 10_000
"""Different tools that one file's calls are counted for."""
_MODELS_CAP = 100
_STRENGTH = tuple(Proof)
LATEST = dt.datetime(2100, 1, 1, tzinfo=dt.UTC).timestamp()


class Counts(msgspec.Struct, array_like=True):
    """Tokens, as they are added up."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    messages: int = 0

    def add(self, other: Counts, times: int = 1) -> None:
        """Adds them, or takes them away again."""
        self.input += times * other.input
        self.output += times * other.output
        self.cache_read += times * other.cache_read
        self.cache_write += times * other.cache_write
        self.messages += times * other.messages


class Part(msgspec.Struct, array_like=True):
    """What one file, or one row of a database, says of one session."""

    session: str = ""
    parent: str = ""
    """The session that this one was started by."""
    project: str = ""
    version: str = ""
    models: list[str] = []
    first: str = ""
    last: str = ""
    """Moments as they are written: they sort as texts, and few of them need to be understood."""
    counts: Counts = msgspec.field(default_factory=Counts)
    calls: dict[str, int] = {}
    searches: int = 0
    betas: list[str] = []
    refused: bool = False
    resumed: bool = False
    compactions: int = 0
    unknown: int = 0
    broken: int = 0

    def at(self, moment: str | None) -> None:
        """Something happened at this moment."""
        if moment and moment > self.last and _MOMENT.fullmatch(moment):
            self.last = moment
            self.first = self.first or moment
        elif moment and moment < self.first and _MOMENT.fullmatch(moment):
            self.first = moment

    def used(self, model: str) -> None:
        """A model answered."""
        if model and model not in self.models and len(self.models) < _MODELS_CAP:
            self.models.append(model)

    def called(self, tool: str, times: int = 1) -> None:
        """A tool was called."""
        if tool and (tool in self.calls or len(self.calls) < _NAMES_CAP):
            self.calls[tool] = self.calls.get(tool, 0) + times


class Verdict(msgspec.Struct, frozen=True):
    """Whether the tools of a session were deferred, what says so, and which they were."""

    deferral: Deferral = Deferral.UNKNOWN
    proof: Proof = Proof.NONE
    definitions: tuple[Definition, ...] = ()
    announced: tuple[str, ...] = ()

    @property
    def rank(self) -> int:
        """The stronger the smaller."""
        return _STRENGTH.index(self.proof)


def count_of(value: Any) -> int:
    """A number of tokens that can be one."""
    if type(value) is int and 0 <= value < _MOST:
        return value
    if not isinstance(value, int | float) or not value > 0:
        return 0
    return _MOST if value >= _MOST else int(value)


def seconds_of(moment: str) -> float:
    """Since 1970; 0 when it is no moment."""
    try:
        return dt.datetime.fromisoformat(moment).timestamp() if moment else 0.0
    except (ValueError, OverflowError):
        return 0.0


def moment_of(milliseconds: Any) -> str:
    """As it is written, of a number of milliseconds since 1970; empty when that cannot be."""
    if not isinstance(milliseconds, int | float) or not 0 < milliseconds < LATEST * 1000:
        return ""
    then = dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC)
    return then.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def calls_by_server(agent: Agent, calls: Mapping[str, int], servers: Collection[str] = ()) -> dict[str, int]:
    """How often each server's tools were called; a server is known by its name, else by how its tools are called."""
    found: dict[str, int] = {}
    for tool, times in calls.items():
        if server := server_of(agent, tool, servers):
            found[server] = found.get(server, 0) + times
    return found


def session_of(agent: Agent, identity: str, parts: Sequence[Part], verdict: Verdict) -> Session:
    """One session, of the part that is its own and those of its sub-agents, the own one first."""
    counts, calls = Counts(), dict[str, int]()
    for part in parts:
        counts.add(part.counts)
        for tool, times in part.calls.items():
            calls[tool] = calls.get(tool, 0) + times
    return Session(
        agent=agent,
        id=identity,
        project=next((part.project for part in parts if part.project), ""),
        version=next((part.version for part in parts if part.version), ""),
        models=_each_once(part.models for part in parts),
        began_at=min((seconds_of(part.first) for part in parts if part.first), default=0.0),
        ended_at=max((seconds_of(part.last) for part in parts), default=0.0),
        usage=Usage(**msgspec.structs.asdict(counts)),
        deferral=verdict.deferral,
        proof=verdict.proof,
        definitions=verdict.definitions,
        counted=bool(verdict.definitions),
        calls=calls,
        server_calls=calls_by_server(agent, calls),
        searches=sum(part.searches for part in parts),
        betas=_each_once(part.betas for part in parts),
        refused=any(part.refused for part in parts),
        resumed=parts[0].resumed,
        compactions=sum(part.compactions for part in parts),
        announced=verdict.announced,
        unknown_records=sum(part.unknown for part in parts),
        broken_lines=sum(part.broken for part in parts),
    )


def _each_once(lists: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each for names in lists for each in names))
