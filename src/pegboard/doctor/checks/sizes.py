"""How large definitions are, by server: counted where a session has them, estimated where none does.

Above: the checks. Below: the facts and the prices.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import msgspec

from pegboard.doctor.checks.claude_rules import GATE_GONE, number
from pegboard.doctor.facts import AgentState, Definition, ServerEntry, Session

TOOL_TOKENS = 400
"""Of a definition that nobody has seen."""
SERVER_TOOLS = 5
"""Of a server whose tools nobody has seen."""
WORTH_DEFERRING = 5_000
"""Tokens below which deferral is not worth a finding."""
NO_STATE = AgentState(agent="claude-code")
"""For sizes that no setting has a say in."""
OWN = "pegboard"
"""What Pegboard calls itself in the settings of agents: its few tools are there to stay."""

_LETTERS_PER_TOKEN = 2.5
_LATEST = 10
"""Sessions whose definitions are looked at, as servers come and go."""
_BUILT_IN = re.compile(
    r"(?:Cron|Task)[A-Z]\w*|(?:Enter|Exit)Worktree|Monitor|NotebookEdit|SendMessage|Web(?:Fetch|Search)"
)
_WIRE = re.compile(r"[^A-Za-z0-9_-]")


class Load(msgspec.Struct, frozen=True):
    """Definitions that the average session pays for."""

    by_server: dict[str, int] = {}
    saving: int = 0
    """Of them, what deferral would leave out: all but the names, and the definitions of what is called."""
    counted: bool = False
    """Whether they were taken from sessions, not guessed."""

    @property
    def tokens(self) -> int:
        """All of them."""
        return sum(self.by_server.values())


def wire_name(server: str) -> str:
    """A server's name as it is part of its tools' names."""
    return _WIRE.sub("_", server)


def load(
    sessions: Sequence[Session], state: AgentState, *, without: Collection[str] = (), only: Collection[str] = ()
) -> Load:
    """What could be deferred and is not, in the mean of the latest of these; guessed from the settings when none tells.

    `without` are servers that are no matter here, by their names on the wire; `only`, when given, those that are.
    """
    told = [session for session in sessions if session.definitions][-_LATEST:]
    samples = [_deferrable(session, without, only) for session in told]
    if any(samples):
        return _mean(zip(samples, told, strict=True), counted=True)
    made = [(_announced(session, without, only), session) for session in sessions if session.announced]
    if any(definitions for definitions, _ in made):
        return _mean(made, counted=False)
    servers = sorted(only or active(state).difference(without))
    guessed = [(_guessed(servers, session), session) for session in sessions]
    return _mean(guessed or [(_guessed(servers, None), None)], counted=False)


def together(parts: Sequence[tuple[Load, int]]) -> Load:
    """The mean of several, each as heavy as its number of sessions."""
    weights = [max(count, 1) for _, count in parts]
    total = sum(weights) or 1
    paid: Counter[str] = Counter()
    saved = 0
    for (each, _), weight in zip(parts, weights, strict=True):
        saved += each.saving * weight
        for server, tokens in each.by_server.items():
            paid[server] += tokens * weight
    means = {server: round(tokens / total) for server, tokens in sorted(paid.items())}
    return Load(means, round(saved / total), any(each.counted for each, _ in parts))


def call_rate(sessions: Sequence[Session], servers: Collection[str]) -> float | None:
    """Calls of these servers' tools in the average session; None without sessions."""
    calls = sum(session.server_calls.get(server, 0) for session in sessions for server in servers)
    return calls / len(sessions) if sessions else None


def guess(tools: Iterable[tuple[str, int]]) -> Load:
    """What servers with so many tools would be."""
    made = [_made_up(server, index) for server, count in tools for index in range(count)]
    return _mean([(made, None)], counted=False)


def pinned(state: AgentState) -> frozenset[str]:
    """Servers that are never deferred, by their names on the wire."""
    return frozenset(wire_name(each.name) for each in state.servers if each.always_load)


def active(state: AgentState) -> frozenset[str]:
    """Servers that are started, Pegboard itself aside, by their names on the wire."""
    return frozenset(wire_name(each.name) for each in state.servers if is_active(each))


def is_active(entry: ServerEntry) -> bool:
    """Whether it is started, and is not Pegboard itself."""
    return entry.enabled and not entry.pending and entry.name != OWN


def name_tokens(name: str) -> int:
    """What a deferred tool still costs: its name."""
    return math.ceil(len(name) / _LETTERS_PER_TOKEN)


def _deferrable(session: Session, without: Collection[str], only: Collection[str]) -> list[Definition]:
    return [each for each in session.definitions if not each.deferred and _is_meant(each, session, without, only)]


def _is_meant(each: Definition, session: Session, without: Collection[str], only: Collection[str]) -> bool:
    if only:
        return each.server in only
    if each.server:
        return each.server not in without and each.server != OWN
    # Its own tools are known to be deferred by the latest versions; older ones are not credited with it.
    return number(session.version) >= GATE_GONE and bool(_BUILT_IN.fullmatch(each.name))


def _announced(session: Session, without: Collection[str], only: Collection[str]) -> list[Definition]:
    """What was announced, which is a list of tools whatever became of it."""
    made = (Definition(name=name, server=server_of(name), tokens=TOOL_TOKENS) for name in session.announced)
    return [each for each in made if each.server and _is_meant(each, session, without, only)]


def server_of(name: str) -> str:
    """The server in the name of a tool of Claude Code's."""
    parts = name.split("__", 2)
    return parts[1] if len(parts) == 3 and parts[0] == "mcp" else ""


def _guessed(servers: Iterable[str], session: Session | None) -> list[Definition]:
    """What was called is there for sure; the rest is made up."""
    called = list(session.calls) if session else []
    made: list[Definition] = []
    for server in servers:
        names = [name for name in called if server_of(name) == server]
        made += [Definition(name=name, server=server, tokens=TOOL_TOKENS) for name in names]
        made += [_made_up(server, index) for index in range(SERVER_TOOLS - len(names))]
    return made


def _made_up(server: str, index: int) -> Definition:
    return Definition(name=f"mcp__{server}__a_tool_{index}", server=server, tokens=TOOL_TOKENS)


def _mean(samples: Iterable[tuple[Sequence[Definition], Session | None]], *, counted: bool) -> Load:
    paid: Counter[str] = Counter()
    count = saved = 0
    for definitions, session in samples:
        count += 1
        called = session.calls if session else {}
        for each in definitions:
            paid[each.server] += each.tokens
            left = name_tokens(each.name) + (each.tokens if called.get(each.name) else 0)
            saved += max(each.tokens - left, 0)
    means = {server: round(total / count) for server, total in sorted(paid.items())}
    return Load({server: mean for server, mean in means.items() if mean}, round(saved / max(count, 1)), counted)
