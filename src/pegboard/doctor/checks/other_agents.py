"""Agents that cannot defer by themselves, and Codex with a model it does not know.

None of them keeps definitions, so all sizes here are estimates. Above: `diagnosis`. Below: the entries of servers,
sizes, and what the installers can do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from pegboard.config.installers.clients import CLIENTS
from pegboard.doctor import prices
from pegboard.doctor.checks import models, sizes, wording
from pegboard.doctor.checks.causes import CODEX_MODEL, NO_DEFERRAL
from pegboard.doctor.checks.contexts import contexts, sessions_of
from pegboard.doctor.checks.entries import effective
from pegboard.doctor.facts import Agent, Deferral, Evidence, Finding, Fix, Proof, ServerEntry, Session, Setting

CANNOT: dict[Agent, str] = {
    "opencode": "opencode",
    "kilo": "Kilo",
    "cline": "Cline",
    "gemini": "Gemini CLI",
    "zed": "Zed",
}
"""Agents without deferral of their own, and what they are called."""
GATEWAY_TOKENS = 700
"""What Pegboard's own tools cost, at most."""
_CODE_MODE = "OPENCODE_EXPERIMENTAL_CODE_MODE"
_PROXY = re.compile(r"http://(?:127\.0\.0\.1|localhost|\[::1\]):\d+/(?!v\d)[\w.-]+(?:/v\d\w*)?/?")
"""An address of Pegboard's proxy: on this machine, and the first thing in its path says what is behind it."""


class Place(msgspec.Struct, frozen=True):
    """One folder, or all that have nothing of their own: the servers that a session has there, and what ran."""

    servers: tuple[ServerEntry, ...]
    load: sizes.Load
    sessions: tuple[Session, ...]


def check(evidence: Evidence) -> tuple[Finding, ...]:
    """One finding for each agent."""
    found = [_without_deferral(evidence, agent) for agent in CANNOT]
    return tuple(finding for finding in (*found, _codex(evidence)) if finding is not None)


def _without_deferral(evidence: Evidence, agent: Agent) -> Finding | None:
    sessions = sessions_of(evidence, agent)
    heavy = [each for each in _places(evidence, agent, sessions) if each.load.tokens >= sizes.WORTH_DEFERRING]
    if not heavy or _has_a_way(evidence, agent):
        return None
    title = CANNOT[agent]
    servers, load = _servers(heavy), _load(heavy)
    return _finding(
        cause=NO_DEFERRAL,
        agent=agent,
        title=f"{title} sends every definition with every request",
        why=(
            f"{title} cannot defer tools. {wording.count(len(servers), 'server')} "
            f"({wording.joined([entry.name for entry in servers])}) are sent whole, "
            f"{wording.count(load.tokens, 'token')} a session by estimate, as it keeps no definitions to count."
        ),
        sessions=[session for place in heavy for session in place.sessions],
        load=load,
        servers=servers,
        by_hand=_or_proxy(agent),
    )


def _codex(evidence: Evidence) -> Finding | None:
    """A search proves that it defers all the same."""
    sessions = sessions_of(evidence, "codex")
    affected = [session for session in sessions if _is_unknown(session)]
    places = _places(evidence, "codex", affected)
    said = _model_setting(evidence)
    if not places or not _is_in_use(sessions, said) or _has_a_way(evidence, "codex"):
        return None
    names = list(dict.fromkeys(model for session in affected for model in session.models))
    asked = said.value if said else "the model"
    return _finding(
        cause=CODEX_MODEL,
        agent="codex",
        title=f"Codex does not know {wording.joined(names) or asked}, and defers nothing",
        why=f"Codex defers MCP tools only for models in its catalogue; {_ran_with(names, affected, said)}.",
        sessions=affected,
        load=_load(places),
        servers=_servers(places),
        by_hand="Or choose a model that Codex knows, from gpt-5.2 on, by the very name its catalogue has.",
    )


def _places(evidence: Evidence, agent: Agent, affected: Sequence[Session]) -> list[Place]:
    """Where the agent has servers and these sessions ran; all where it has servers, when none did."""
    found: list[Place] = []
    ids = {each.id for each in affected}
    for context in contexts(evidence, agent):
        if entries := effective(context.state):
            load = sizes.guess((wire, _tools(wire, affected)) for wire in map(_wire, entries))
            found.append(Place(entries, load, tuple(each for each in context.sessions if each.id in ids)))
    return [each for each in found if each.sessions] or ([] if affected else found)


def _load(places: Sequence[Place]) -> sizes.Load:
    """Of the average session: what one project sets up is not there in another."""
    return sizes.together([(each.load, len(each.sessions)) for each in places])


def _servers(places: Sequence[Place]) -> tuple[ServerEntry, ...]:
    return tuple({(entry.file, entry.key): entry for place in places for entry in place.servers}.values())


def _ran_with(names: Sequence[str], affected: Sequence[Session], said: Setting | None) -> str:
    if said and not affected:
        return f"{wording.place(said)} asks for {said.value}, which is not in it"
    return f"{wording.count(len(affected), 'session')} ran with {wording.joined(names)}, and none searched for tools"


def _model_setting(evidence: Evidence) -> Setting | None:
    settings = (context.state.setting("model") for context in contexts(evidence, "codex") if not context.state.project)
    return next((setting for setting in settings if setting), None)


def _is_in_use(sessions: Sequence[Session], said: Setting | None) -> bool:
    """Whether the last session had an unknown model, and nobody chose another since; without any, what is set."""
    if not sessions:
        return said is not None and not models.known_to_codex(said.value)
    is_mended = said is not None and models.known_to_codex(said.value) and said.changed_at > sessions[-1].began_at
    return _is_unknown(sessions[-1]) and not is_mended


def _is_unknown(session: Session) -> bool:
    if session.searches or session.deferral is Deferral.ON or not session.models:
        return False
    return not any(models.known_to_codex(model) for model in session.models)


def _has_a_way(evidence: Evidence, agent: Agent) -> bool:
    """Whether code mode hides the tools already, or the proxy defers them, which it does not for Gemini."""
    settings = [setting for context in contexts(evidence, agent) for setting in context.state.settings]
    if any(each.name == _CODE_MODE and each.value.lower() in ("1", "true", "yes", "on") for each in settings):
        return True
    return agent != "gemini" and any(_PROXY.fullmatch(each.value) for each in settings)


def _wire(entry: ServerEntry) -> str:
    return sizes.wire_name(entry.name)


def _tools(wire: str, sessions: Sequence[Session]) -> int:
    """As many as were called, or what servers have by and large."""
    called = {name for session in sessions for name in session.calls if _is_of(name, wire)}
    return max(len(called), sizes.SERVER_TOOLS)


def _is_of(name: str, server: str) -> bool:
    return name.removeprefix("mcp__").startswith(f"{server}_")


def _or_proxy(agent: Agent) -> str:
    """Requests to Gemini go through the proxy as they are."""
    if agent not in _GATEWAY_CLIENTS or agent == "gemini":
        return ""
    return f"Or put the proxy before it, which defers its own tools too: `pegboard proxy install {agent}`."


def _finding(
    *,
    cause: str,
    agent: Agent,
    title: str,
    why: str,
    sessions: Sequence[Session],
    load: sizes.Load,
    servers: tuple[ServerEntry, ...],
    by_hand: str,
) -> Finding:
    is_gateway = agent in _GATEWAY_CLIENTS
    return Finding(
        id=f"{cause}:{agent}",
        cause=cause,
        agent=agent,
        title=title,
        why=why,
        proof=Proof.NONE,
        confidence="medium" if sessions else "low",
        sessions=len(sessions),
        tokens_per_session=load.by_server,
        call_rate=sizes.call_rate(sessions, load.by_server),
        saving_per_session=max(load.saving - GATEWAY_TOKENS, 0),
        cost_per_session=prices.mean_cost(load.tokens, sessions),
        fix=Fix(kind="gateway-install" if is_gateway else "proxy-install", agent=agent, servers=servers),
        by_hand=by_hand,
        claims=frozenset((agent, server) for server in load.by_server),
    )


_GATEWAY_CLIENTS = frozenset(client.id for client in CLIENTS)
