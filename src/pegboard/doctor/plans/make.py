"""Makes a plan from a finding: facts in, texts out. Nothing is written, and only what the fix names is changed.

Above: the commands. Below: the changes, the edits and the rule on endpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from pegboard.config.installers.documents import format_of, parse
from pegboard.doctor.checks import claude_rules
from pegboard.doctor.facts import AgentState, Evidence, Finding, Fix
from pegboard.doctor.plans.changes import changes_of, loses_entry
from pegboard.doctor.plans.edits import Edit, edited
from pegboard.doctor.plans.endpoint_rule import ruling, told_to_defer
from pegboard.doctor.plans.plan import TITLES, FileEdit, Plan
from pegboard.doctor.plans.rewritten import rewriters
from pegboard.doctor.plans.verdicts import Verdicts
from pegboard.errors import ConfigError, PegboardError

EDITS = frozenset({"defer-enable", "defer-alwaysload", "defer-threshold", "server-disable"})
"""The kinds that are edits of an agent's own settings; the others are left to the installers."""

_Outcome = TypeVar("_Outcome")
Read = Callable[[Path], str | None]
"""A file as text; None when there is none."""


class Basis(msgspec.Struct, frozen=True):
    """All that plans are made from."""

    evidence: Evidence
    verdicts: Verdicts
    user_settings: Path
    """Claude Code's own settings file of this user."""
    read: Read
    real: Callable[[Path], Path] = Path
    """What a path comes to once links are followed: two ways to one file are one edit."""
    asked: Evidence | None = None
    """The part that somebody asked for; None for all of it. A change may hold in other folders too."""


def fix_of(finding: Finding, basis: Basis) -> Fix | None:
    """The fix that a finding has, or that the rule on endpoints may allow."""
    return finding.fix or told_to_defer(finding, basis.asked or basis.evidence, basis.user_settings)


def plan_of(finding: Finding, fix: Fix, basis: Basis) -> Plan:
    """What the fix comes to in the agent's own settings."""
    rule = ruling(fix, basis.evidence, basis.verdicts)
    plan = blank(finding, fix, basis.evidence)
    try:
        files = tuple(_files(fix, basis))
    except PegboardError as error:
        return msgspec.structs.replace(plan, refusal=error.message, hint=error.hint)
    plan = msgspec.structs.replace(
        plan,
        files=files,
        risks=(*plan.risks, *rule.risks),
        rewritten_by=tuple(dict.fromkeys(agent for each in files for agent in each.rewritten_by)),
    )
    if plan.refusal or rule.refusal:
        return plan if plan.refusal else msgspec.structs.replace(plan, refusal=rule.refusal, hint=rule.hint)
    if not files:
        return msgspec.structs.replace(plan, refusal=_NOTHING)
    return with_running(plan, basis.evidence.states)


def blank(finding: Finding, fix: Fix, evidence: Evidence) -> Plan:
    """What can be said of any plan before its texts are looked at."""
    versions = [state.version for state in evidence.states if state.agent == fix.agent and state.version]
    needed = claude_rules.number(fix.needs_version)
    too_old = next((each for each in versions if claude_rules.number(each) < needed), "")
    title = TITLES[fix.agent]
    return Plan(
        finding=finding.id,
        title=finding.title,
        fix=fix,
        effect=f"From the next session on: {title} reads it when it starts.",
        risks=(
            *_risks(fix),
            *((_UNKNOWN.format(title=title, needed=fix.needs_version),) if needed and not versions else ()),
        ),
        by_hand=(finding.by_hand,) if finding.by_hand else (),
        refusal=f"It needs {title} {fix.needs_version}, and {too_old} is installed." if too_old else "",
        hint=f"Update {title} first." if too_old else "",
    )


_NOTHING = "There is nothing to change: the settings say so already, or what is meant is no longer there."
_UNKNOWN = "It needs {title} {needed} or later, and nobody could tell which version is installed."


def with_running(plan: Plan, states: tuple[AgentState, ...]) -> Plan:
    """The plan, which has to wait while an agent runs that writes its files."""
    active = {state.agent for state in states if state.running and state.agent in plan.rewritten_by}
    if not active or plan.refusal:
        return plan
    names = " and ".join(TITLES[agent] for agent in plan.rewritten_by if agent in active)
    file = next(file for file in plan.touched if active.intersection(rewriters(file)))
    return msgspec.structs.replace(
        plan,
        refusal=f"{names} runs, and writes {file} while it does.",
        hint=f"End every session of {names} before `pegboard doctor apply`.",
    )


def _files(fix: Fix, basis: Basis) -> Iterator[FileEdit]:
    texts: dict[Path, str | None] = {}
    edits: dict[Path, tuple[Path, dict[Edit, None]]] = {}

    def document(file: Path) -> Any:
        real = basis.real(file)
        if real not in texts:
            texts[real] = basis.read(file)
        return _named(file, lambda: parse(texts[real] or "", format_of(file.name)))

    for file, edit in changes_of(fix, document):
        document(file)
        edits.setdefault(basis.real(file), (file, {}))[1][edit] = None
    for real, (file, listed) in edits.items():
        before, form, some = texts[real], format_of(file.name), list(listed)
        after = _named(file, partial(edited, before or "", some, form))
        if after != (before or ""):
            yield FileEdit(
                file=file, format=form, before=before, after=after, edits=tuple(some), rewritten_by=rewriters(file)
            )


def _named(file: Path, work: Callable[[], _Outcome]) -> _Outcome:
    try:
        return work()
    except ConfigError as error:
        raise ConfigError(f"{file}: {error.message}", hint=error.hint) from None


def _risks(fix: Fix) -> Iterator[str]:
    shared = [each.file for each in fix.settings if each.scope == "project" and each.editable]
    shared += [each.switch.file for each in fix.servers if each.switch and each.switch.scope == "project"]
    shared += [
        each.file
        for each in fix.servers
        if each.scope == "project" and not (each.agent == "claude-code" and fix.kind == "server-disable")
    ]
    for file in dict.fromkeys(shared if fix.kind in EDITS else ()):
        yield f"{file} belongs to the project: everybody who works on it gets the change."
    if any(setting.name == claude_rules.NO_BETAS for setting in fix.settings):
        yield "Every other beta feature of Claude Code comes back too."
    if fix.kind == "server-disable":
        names = ", ".join(dict.fromkeys(entry.name for entry in fix.servers))
        yield f"The tools of {names} are gone until this is undone."
        for entry in fix.servers:
            if loses_entry(entry):
                yield (
                    f"{TITLES[entry.agent]} has no switch for it, so the entry of {entry.name} leaves {entry.file}; "
                    "the backup keeps it, with whatever keys are in it, for your eyes only."
                )
