"""`pegboard doctor plan`: the change that would mend each finding, when it counts and what it risks. Reads only."""

from __future__ import annotations

import argparse
import os
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pegboard.cli import doctor_examine, output
from pegboard.cli.doctor_desk import Desk, examined
from pegboard.config.installers.documents import Format, parse
from pegboard.config.installers.show import diff, hidden_values, is_cut
from pegboard.doctor.facts import Finding
from pegboard.doctor.plans.plan import TITLES, GatewayInstall, Plan, ProxyInstall
from pegboard.errors import PegboardError

WIDTH = 110
_INDENT = "   "


def configure(parser: argparse.ArgumentParser) -> None:
    """The action's own flags."""
    parser.add_argument("ids", nargs="*", metavar="ID", help="only these findings, or findings of these causes")
    doctor_examine.add_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Plans and shows."""
    desk = Desk(args)
    found = desk.plan_all(examined(args, desk.machine))
    if args.json:
        output.emit([as_json(finding, plan) for finding, plan in found])
        return 0
    _warn_of_journal(desk)
    if not found:
        output.say("Nothing was found, so there is nothing to plan.")
        return 0
    for number, (finding, plan) in enumerate(found, 1):
        tell(number, finding, plan)
        output.say()
    ready = [plan.finding for _, plan in found if plan is not None and plan.is_applicable]
    output.say("Nothing was changed.")
    if ready:
        output.say(f"`pegboard doctor apply {' '.join(ready)}` makes the changes that can be made; `undo` takes back.")
    return 0


def _warn_of_journal(desk: Desk) -> None:
    """Nothing is written here, so what is wrong with the journal is no reason not to plan."""
    try:
        if desk.ledger.is_unsettled():
            output.warn("A command was cut short earlier; `pegboard doctor apply` or `undo` will settle what it left.")
    except PegboardError as error:
        output.warn(output.printable(f"{error.message} Nothing can be applied until that is mended. {error.hint}"))


# ── for people ───────────────────────────────────────────────────────────────────────────────────────────────────


def tell(number: int, finding: Finding, plan: Plan | None) -> None:
    """One finding and its plan, or what to do where there is none."""
    dot = output.symbol("·", "-")
    kind = f" {dot} {plan.fix.kind}" if plan else ""
    output.say(output.printable(f"{number}. {finding.title}"))
    output.say(output.printable(f"{_INDENT}{TITLES[finding.agent]}{kind} {dot} {finding.id}"))
    if plan is None:
        _tell_all("By hand", (finding.by_hand or "Nothing that could be changed here would mend it.",))
        return
    for line in shown(plan):
        output.say(output.printable(_INDENT + line))
    if plan.files or plan.install:
        _tell_all("Takes effect", (plan.effect,))
    if plan.fix.needs_version:
        _tell_all("Needs", (f"{TITLES[plan.fix.agent]} {plan.fix.needs_version} or later.",))
    _tell_all("Risk", plan.risks)
    _tell_all("By hand", plan.by_hand)
    if plan.refusal:
        _tell_all("Not now", (f"{plan.refusal} {plan.hint}".strip(),))


def _tell_all(label: str, texts: Sequence[str]) -> None:
    for text in texts:
        filled = textwrap.fill(
            f"{label}: {text}",
            WIDTH,
            initial_indent=_INDENT,
            subsequent_indent=_INDENT,
            break_long_words=False,
            break_on_hyphens=False,
        )
        output.say(output.printable(filled))


def shown(plan: Plan) -> Iterator[str]:
    """The lines that go and come, in every file that changes."""
    for each in plan.files:
        yield from _link(each.file)
        lines = list(_diff(each.file, each.before, each.after, each.format))
        yield from lines
        if any(is_cut(line) for line in lines):
            # In settings that are one long line, the change itself may be what was cut off.
            yield from (f"{edit.do} {edit.name}" + _value(edit.value) for edit in each.edits)
    if isinstance(plan.install, GatewayInstall):
        yield from _gateway(plan.install)
    elif isinstance(plan.install, ProxyInstall):
        config = [plan.install.redirect.config] if plan.install.redirect.config else []
        for change in (*plan.install.redirect.files, *config):
            yield from _link(change.file)
            yield from _diff(change.file, change.before, change.after, change.format)


def _gateway(install: GatewayInstall) -> Iterator[str]:
    for each in install.sites:
        yield from _link(each.site.file)
        before = each.before or ""
        hidden = hidden_values(parse(before, each.site.format), each.configs)
        yield from diff(before, each.after, str(each.site.file), hidden)
    after = install.sites[-1].imported.text
    configs = [config for each in install.sites for config in each.configs]
    if after != (install.config_before or ""):
        yield from diff(install.config_before or "", after, str(install.config), hidden_values({}, configs))


def _diff(file: Path, before: str | None, after: str, form: Format) -> list[str]:
    hidden = hidden_values(parse(before or "", form), ())
    return diff(before or "", after, str(file), hidden)


def _link(file: Path) -> Iterator[str]:
    if file.is_symlink():
        yield f"{file} is a link, and stays one: {os.path.realpath(file)} is what changes."
    if file.exists() and (others := file.stat().st_nlink - 1):
        names = "another name" if others == 1 else f"{others} other names"
        yield f"{file} has {names} on this disk (hard links), under which the old text stays."


def _value(value: object) -> str:
    return "" if value is None else f" = {value}"


# ── for scripts ──────────────────────────────────────────────────────────────────────────────────────────────────


def as_json(finding: Finding, plan: Plan | None) -> dict[str, Any]:
    """All of it."""
    about = {"finding": finding.id, "cause": finding.cause, "title": finding.title, "agent": finding.agent}
    if plan is None:
        return {**about, **_NO_PLAN, "by_hand": [finding.by_hand] if finding.by_hand else []}
    return {
        **about,
        "kind": plan.fix.kind,
        "applicable": plan.is_applicable,
        "files": [str(file) for file in dict.fromkeys(plan.touched)],
        "edits": [
            {"file": str(each.file), "key": edit.path, "do": edit.do, "value": edit.value}
            for each in plan.files
            for edit in each.edits
        ],
        "diff": list(shown(plan)),
        "effect": plan.effect,
        "needs_version": plan.fix.needs_version,
        "risks": plan.risks,
        "by_hand": plan.by_hand,
        "refusal": plan.refusal,
        "hint": plan.hint,
    }


_NO_PLAN: dict[str, Any] = {
    "kind": None,
    "applicable": False,
    "files": [],
    "edits": [],
    "diff": [],
    "effect": "",
    "needs_version": "",
    "risks": [],
    "refusal": "Nothing here can be changed for you.",
    "hint": "",
}
