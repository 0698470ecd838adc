"""Findings for deferral that is kept off by a setting, a version or a model: one for each cause.

Above: `diagnosis`. Below: the outages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pegboard.doctor import prices
from pegboard.doctor.checks import claude_rules, sizes, wording
from pegboard.doctor.checks.causes import BETAS, CAUSES, DENIED, ENV, OLD_MODEL, VERTEX
from pegboard.doctor.checks.contexts import strongest
from pegboard.doctor.checks.outages import Outage, decisive, outages
from pegboard.doctor.facts import Evidence, Finding, Fix, ServerEntry, Session, Setting

Confidence = Literal["high", "medium", "low"]
_BY_SETTING = frozenset({ENV, BETAS, DENIED})
_VERIFY = (
    "It may be off because of the endpoint behind the base URL: `pegboard doctor verify-endpoint` tells whether that "
    "takes deferral."
)
_NEWER = f"Update Claude Code to {'.'.join(map(str, claude_rules.GATE_GONE))} or later: `claude update`."


def check(evidence: Evidence) -> tuple[Finding, ...]:
    """One finding for each cause, whatever number of places it is in."""
    return tuple(_finding(cause, found) for cause, found in outages(evidence).items())


def _finding(cause: str, found: Sequence[Outage]) -> Finding:
    sessions = [session for outage in found for session in outage.affected]
    ran = [outage for outage in found if outage.affected] or found
    load = sizes.together([(outage.load, len(outage.affected)) for outage in ran])
    settings = decisive(found)
    telling = [session for outage in found for session in outage.telling]
    fix = _fix(cause, found, settings)
    return Finding(
        id=cause,
        cause=cause,
        agent="claude-code",
        title=_title(cause, settings),
        why=" ".join(part for part in (_where(cause, found, settings), _shown(found), _then(found)) if part),
        proof=strongest(telling),
        confidence=_confidence(found),
        sessions=len(sessions),
        tokens_per_session=load.by_server,
        call_rate=sizes.call_rate(sessions, load.by_server),
        saving_per_session=load.saving,
        cost_per_session=prices.mean_cost(load.tokens, telling),
        fix=fix,
        by_hand=_by_hand(cause, found, settings),
        claims=frozenset(("claude-code", server) for server in load.by_server),
    )


def _title(cause: str, settings: Sequence[Setting]) -> str:
    if cause in (ENV, BETAS) and settings:
        return f"Deferral is off: {settings[0].name}={settings[0].value}"
    if cause == DENIED:
        return "Deferral is off: a permission rule denies ToolSearch"
    if cause == VERTEX:
        return "Deferral is off: Vertex AI"
    if cause == OLD_MODEL:
        return "Deferral is off: the model is too old"
    return "Deferral is off: this version of Claude Code " + (
        "defers only before Anthropic's own endpoint" if settings else "cannot defer"
    )


def _where(cause: str, found: Sequence[Outage], settings: Sequence[Setting]) -> str:
    version = next((outage.context.version for outage in found if outage.context.version), "")
    if cause in _BY_SETTING:
        return f"{wording.places(settings)} say{'s' if len(settings) == 1 else ''} so."
    if cause == VERTEX:
        what = f"Version {version}" if _is_old_vertex(found) else f"Claude Code with {_models(found)}"
        return f"{what} does not defer on Vertex AI, which {wording.places(settings)} asks for."
    if cause == OLD_MODEL:
        return f"{CAUSES[OLD_MODEL].capitalize()}: {_models(found)}."
    if settings:
        return (
            f"Version {version} defers only for api.anthropic.com, and {wording.place(settings[0])} sets "
            f"{claude_rules.BASE_URL}; versions from 2.1.304 on defer behind any base URL."
        )
    return f"Version {version} is older than deferral, which came with 2.1.7."


def _models(found: Sequence[Outage]) -> str:
    names = dict.fromkeys(model for outage in found for session in outage.telling for model in session.models)
    return wording.joined(list(names), last="or") or "its model"


def _shown(found: Sequence[Outage]) -> str:
    shown = [session for outage in found for session in outage.shown]
    silent = [session for outage in found for session in outage.silent]
    before = [session for outage in found for session in outage.before]
    if shown:
        also = f"; {wording.count(len(silent), 'more')} left no trace either way" if silent else ""
        return f"{_had_all(shown)}, {wording.shown_by(strongest(shown))}{also}."
    if before:
        return (
            f"Its file was written since, and no session has begun under it that shows anything; before that "
            f"{_had_all(before)}, {wording.shown_by(strongest(before))}."
        )
    if silent:
        once = " One before them deferred all the same." if any(outage.doubtful for outage in found) else ""
        return f"{wording.count(len(silent), 'session')} ran under it; none left a trace that shows its tools.{once}"
    return "No session has run under it yet."


def _had_all(sessions: Sequence[Session]) -> str:
    return f"{wording.count(len(sessions), 'session')} sent every definition with every request"


def _then(found: Sequence[Outage]) -> str:
    others = dict.fromkeys(each.cause for outage in found for each in outage.then)
    named = [CAUSES[cause] for cause in others]
    return f"Once this is mended, something else would keep it off still: {wording.joined(named)}." if named else ""


def _confidence(found: Sequence[Outage]) -> Confidence:
    if any(outage.shown for outage in found):
        return "high"
    return "medium" if any(outage.affected and not outage.doubtful for outage in found) else "low"


# ── what to do ───────────────────────────────────────────────────────────────────────────────────────────────────


def _fix(cause: str, found: Sequence[Outage], settings: Sequence[Setting]) -> Fix | None:
    """A setting can be taken back; for a model that cannot, the gateway needs nothing of it."""
    if cause in _BY_SETTING:
        editable = tuple(setting for setting in settings if setting.editable)
        is_enough = editable and not wording.by_policy(settings[:1])
        return Fix(kind="defer-enable", agent="claude-code", settings=editable) if is_enough else None
    if cause == OLD_MODEL or (cause == VERTEX and not _is_old_vertex(found)):
        servers = _behind(found)
        return Fix(kind="gateway-install", agent="claude-code", servers=servers) if servers else None
    return None


def _by_hand(cause: str, found: Sequence[Outage], settings: Sequence[Setting]) -> str:
    if cause in _BY_SETTING:
        words = [_undo_by_hand(setting) for setting in settings if not setting.editable]
        return " ".join([*words, *([_VERIFY] if _is_elsewhere(found) else [])])
    if cause == OLD_MODEL:
        return "Choose a model of the 4.5 generation or later, where you can."
    if cause == VERTEX:
        if _is_old_vertex(found):
            return "Update Claude Code to 2.1.221 or later: `claude update`. It defers on Vertex AI from Claude 4.5 on."
        return "Choose a model of the 4.5 generation or later, where you can."
    if not settings:
        return _NEWER
    return (
        f"{_NEWER} Or, if you must stay, find out with `pegboard doctor verify-endpoint` whether the endpoint takes "
        "deferral; only then set ENABLE_TOOL_SEARCH=true, which needs 2.1.72."
    )


def _undo_by_hand(setting: Setting) -> str:
    what = "take ToolSearch out of permissions.deny" if setting.name == claude_rules.DENY else f"remove {setting.name}"
    return wording.by_hand(setting, what)


def _is_old_vertex(found: Sequence[Outage]) -> bool:
    return any(claude_rules.number(outage.context.version) < claude_rules.VERTEX_ON for outage in found)


def _is_elsewhere(found: Sequence[Outage]) -> bool:
    return any(claude_rules.is_elsewhere(outage.context.state) for outage in found)


def _behind(found: Sequence[Outage]) -> tuple[ServerEntry, ...]:
    entries = (entry for outage in found for entry in outage.context.state.servers)
    unique = {(entry.file, entry.key): entry for entry in entries if sizes.is_active(entry)}
    return tuple(unique.values())
