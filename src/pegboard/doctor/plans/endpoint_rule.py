"""The rule that deferral is never forced on behind an endpoint of which nobody knows that it takes it.

Up to 2.1.303 Claude Code defers behind other endpoints only when told to, and then fails where they refuse; 2.1.304
and 2.1.305 do so untold; from 2.1.306 on a refusal is met by going on without. Pure. Above: `make`. Below: the rules
of Claude Code, and what is known of endpoints.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from pegboard.doctor.checks import claude_rules
from pegboard.doctor.checks.causes import OLD_VERSION
from pegboard.doctor.facts import AgentState, Evidence, Finding, Fix, Setting
from pegboard.doctor.plans.verdicts import Verdict, Verdicts, plain_url
from pegboard.doctor.report.scope import scope_of

RECOVERS = (2, 1, 306)
"""Goes on without deferral when an endpoint refuses it."""

_MAY_BE_REFUSED = (
    "{url} was not verified. If it refuses deferral, Claude Code goes on without it, after a few requests that fail; "
    "`pegboard doctor verify-endpoint` tells beforehand."
)
_STAYS_OFF = (
    "Behind {url} this version of Claude Code ({version}) defers only when it is told to, so this alone will not turn "
    "it on there."
)


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """What the rule says of a fix."""

    refusal: str = ""
    hint: str = ""
    risks: tuple[str, ...] = ()


def ruling(fix: Fix, evidence: Evidence, verdicts: Verdicts) -> Ruling:
    """Whether the fix may be applied where it holds, and what it risks there."""
    if fix.agent != "claude-code" or fix.kind not in ("defer-enable", "defer-threshold"):
        return Ruling()
    scope = scope_of(fix)
    risks: list[str] = []
    for state in evidence.states:
        if state.agent != fix.agent or not scope.holds_in(state.project) or not claude_rules.is_elsewhere(state):
            continue
        found = _of_state(state, fix, verdicts)
        if found.refusal:
            return found
        risks += found.risks
    return Ruling(risks=tuple(dict.fromkeys(risks)))


def _of_state(state: AgentState, fix: Fix, verdicts: Verdicts) -> Ruling:
    address = state.setting(claude_rules.BASE_URL)
    assert address is not None  # it is elsewhere
    url = plain_url(address.value)
    verdict = verdicts.get(url)
    if verdict is not None:
        return Ruling() if verdict.takes else _refused(verdict)
    version, says = claude_rules.number(state.version), _mode_after(state, fix)
    if says == "off":
        return Ruling()  # something else keeps it off there, and this does not change that
    if version >= RECOVERS:
        return Ruling(risks=(_MAY_BE_REFUSED.format(url=url),))
    is_gated = claude_rules.GATE <= version < claude_rules.GATE_GONE
    if is_gated and (says == "unset" or version < claude_rules.OVERRIDE):
        return Ruling(risks=(_STAYS_OFF.format(url=url, version=state.version),))
    seen = f"Claude Code {state.version}" if state.version else "Claude Code, whose version is not known,"
    return Ruling(
        refusal=f"It would turn deferral on behind {url}, which was not verified; {seen} fails where that is refused.",
        hint="`pegboard doctor verify-endpoint` finds out with one tiny request.",
    )


def _mode_after(state: AgentState, fix: Fix) -> str:
    """What ENABLE_TOOL_SEARCH says there once the fix is made: a weaker file's word may count then."""
    meant = {(each.file, each.key) for each in fix.settings if each.name == claude_rules.SEARCH}
    for each in claude_rules.all_of(state, claude_rules.SEARCH):
        is_meant = (each.file, each.key) in meant
        if fix.value or not is_meant:
            return claude_rules.mode(fix.value if is_meant else each.value)
    return claude_rules.mode(fix.value) if meant else "unset"


def _refused(verdict: Verdict) -> Ruling:
    return Ruling(
        refusal=f"{verdict.url} was found to refuse deferral ({verdict.status}).",
        hint="Ask whoever runs it to let defer_loading and tool_reference through, then verify it again.",
    )


# ── told to, where that is what is missing ───────────────────────────────────────────────────────────────────────


def told_to_defer(finding: Finding, evidence: Evidence, user_file: Path) -> Fix | None:
    """What would make an older version defer behind another endpoint: to be told so; the rule decides whether."""
    if finding.cause != OLD_VERSION or finding.fix is not None:
        return None
    settings = {each.file: each for each in _told_in(evidence.states, user_file)}
    if not settings:
        return None
    return Fix(
        kind="defer-enable",
        agent="claude-code",
        settings=tuple(settings.values()),
        value="true",
        needs_version=".".join(map(str, claude_rules.OVERRIDE)),
    )


def _told_in(states: Sequence[AgentState], user_file: Path) -> Iterator[Setting]:
    """Where the address is set, so that it counts wherever that does; else in the user's own settings."""
    for state in states:
        version = claude_rules.number(state.version)
        is_gated = claude_rules.is_elsewhere(state) and claude_rules.GATE <= version < claude_rules.GATE_GONE
        address = state.setting(claude_rules.BASE_URL)
        if state.agent != "claude-code" or not is_gated or claude_rules.search_mode(state) != "unset" or not address:
            continue
        yield Setting(
            name=claude_rules.SEARCH,
            value="",
            file=address.file if address.editable else user_file,
            scope=address.scope if address.editable else "user",
            key=("env", claude_rules.SEARCH),
        )
