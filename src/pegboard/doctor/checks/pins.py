"""Servers and tools that are pinned, so always paid for, though they are rarely called.

Above: `diagnosis`. Below: the entries of servers, and sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pegboard.doctor import prices
from pegboard.doctor.checks import claude_rules, sizes, wording
from pegboard.doctor.checks.causes import PINNED_SERVER, PINNED_TOOLS
from pegboard.doctor.checks.contexts import proven, sessions_of
from pegboard.doctor.checks.entries import ENOUGH, Used, name_in_id, used
from pegboard.doctor.facts import Deferral, Definition, Evidence, Finding, Fix, Proof, ServerEntry, Session

RARE = 0.2
"""Calls in the average session below which a pin does not pay."""
_NEEDS = ".".join(map(str, claude_rules.ALWAYS_LOAD))


def check(evidence: Evidence) -> tuple[Finding, ...]:
    """One finding for each server that is pinned, or pins tools of its own."""
    entries = used(evidence, "claude-code")
    servers = [_of_server(each) for each in entries if _is_idle_pin(each)]
    return (*servers, *_of_tools(sessions_of(evidence, "claude-code"), entries))


def _is_idle_pin(each: Used) -> bool:
    """Never called at all is another finding, which ends the pin too."""
    heeds = any(claude_rules.number(context.version) >= claude_rules.ALWAYS_LOAD for context in each.contexts)
    return bool(each.entry.always_load) and heeds and len(each.sessions) >= ENOUGH and 0 < each.rate < RARE


def _of_server(each: Used) -> Finding:
    entry, sessions = each.entry, each.sessions
    load = sizes.load(sessions, each.contexts[0].state, only={each.wire})
    told = [session for session in sessions if session.deferral is not Deferral.UNKNOWN]
    is_off = bool(told) and told[-1].deferral is Deferral.OFF
    proof = _proof(sessions)
    shown = f", {wording.shown_by(proof)}" if proof is not Proof.NONE else ""
    return Finding(
        id=f"{PINNED_SERVER}:{name_in_id(entry)}",
        cause=PINNED_SERVER,
        agent="claude-code",
        title=f"{entry.name} is pinned, and rarely called",
        why=(
            f"{wording.entry_place(entry)} has alwaysLoad for it, so its definitions are never deferred{shown}; "
            f"{wording.count(len(sessions), 'session')} called its tools {wording.count(each.calls, 'time')}."
            + (" It counts once deferral is on again." if is_off else "")
        ),
        proof=proof,
        confidence="low" if is_off else "high" if load.counted else "medium",
        sessions=len(sessions),
        tokens_per_session=load.by_server,
        call_rate=each.rate,
        saving_per_session=load.saving,
        cost_per_session=prices.mean_cost(load.tokens, sessions),
        fix=_fix(entry, ""),
        by_hand=_by_hand(entry, "take alwaysLoad out of its entry"),
        claims=frozenset({("claude-code", each.wire)}),
    )


# ── pins that servers set themselves ─────────────────────────────────────────────────────────────────────────────


def _of_tools(sessions: Iterable[Session], entries: Sequence[Used]) -> Iterable[Finding]:
    """Only requests tell: where deferral is on, what an unpinned server has in full is pinned by the tool itself."""
    told = [each for each in proven(sessions, Deferral.ON) if each.proof is Proof.REQUESTS and not each.refused]
    by_wire = {each.wire: each.entry for each in entries}
    found: dict[str, list[tuple[Session, list[Definition]]]] = {}
    for session in told:
        for server, tools in _resident(session).items():
            if _is_of_tools(server, by_wire.get(server), session):
                found.setdefault(server, []).append((session, tools))
    for server, samples in sorted(found.items()):
        if len(samples) >= ENOUGH and _rate(samples) < RARE:
            yield _finding_of_tools(server, samples, by_wire.get(server))


def _is_of_tools(server: str, entry: ServerEntry | None, session: Session) -> bool:
    """Whether it can only be the server's own doing: its entry has no word on it, then and now."""
    if server == sizes.OWN:
        return False
    return entry is None or (entry.always_load is None and session.began_at >= entry.changed_at)


def _resident(session: Session) -> dict[str, list[Definition]]:
    found: dict[str, list[Definition]] = {}
    for each in session.definitions:
        if each.server and not each.deferred:
            found.setdefault(each.server, []).append(each)
    return found


def _rate(samples: Sequence[tuple[Session, list[Definition]]]) -> float:
    calls = sum(session.calls.get(tool.name, 0) for session, tools in samples for tool in tools)
    return calls / len(samples)


def _finding_of_tools(
    server: str, samples: Sequence[tuple[Session, list[Definition]]], entry: ServerEntry | None
) -> Finding:
    sessions = [session for session, _ in samples]
    names = sorted({tool.name for _, tools in samples for tool in tools})
    load = sizes.load(sessions, sizes.NO_STATE, only={server})
    return Finding(
        id=f"{PINNED_TOOLS}:{server}",
        cause=PINNED_TOOLS,
        agent="claude-code",
        title=f"{server} pins {wording.count(len(names), 'tool')} of its own, rarely called",
        why=(
            f"{wording.joined(names)} were in full in {wording.count(len(sessions), 'session')} though all else was "
            f"deferred, as the requests themselves show: the server marks them so. They were called "
            f"{_rate(samples):.2f} times a session."
        ),
        proof=Proof.REQUESTS,
        confidence="high",
        sessions=len(sessions),
        tokens_per_session=load.by_server,
        call_rate=_rate(samples),
        saving_per_session=load.saving,
        cost_per_session=prices.mean_cost(load.tokens, sessions),
        fix=_fix(entry, "false") if entry else None,
        by_hand=_by_hand(entry, 'set "alwaysLoad": false in its entry, which outdoes what the server says'),
        claims=frozenset({("claude-code", server)}),
    )


# ── what to do ───────────────────────────────────────────────────────────────────────────────────────────────────


def _fix(entry: ServerEntry, value: str) -> Fix | None:
    if entry.scope in ("managed", "plugin"):
        return None
    return Fix(kind="defer-alwaysload", agent="claude-code", servers=(entry,), value=value, needs_version=_NEEDS)


def _by_hand(entry: ServerEntry | None, what: str) -> str:
    if entry is None:
        return "No file on this machine sets this server up, so none can be changed."
    if entry.scope == "managed":
        return f"{entry.file} is a policy: ask whoever manages this machine to {what}."
    return (
        f"{entry.file} belongs to a plugin, which would overwrite it: ask its maker." if entry.scope == "plugin" else ""
    )


def _proof(sessions: Sequence[Session]) -> Proof:
    told = [session.proof for session in sessions if session.definitions]
    return told[-1] if told else Proof.NONE
