"""`pegboard doctor apply`: makes the changes that mend findings, one after another, after showing each and asking.

Each is planned on the files as they are at that moment, and written only if they still are so. Below: the ledger.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from pegboard.cli import doctor_examine, output
from pegboard.cli.doctor_desk import Desk, Looked, examined
from pegboard.cli.doctor_plan import as_json, tell
from pegboard.cli.install_places import refuse_unstartable
from pegboard.doctor.facts import Finding
from pegboard.doctor.plans.actions import Action
from pegboard.doctor.plans.make import EDITS
from pegboard.doctor.plans.plan import GatewayInstall, Plan
from pegboard.doctor.report.baseline import baseline_of
from pegboard.errors import PegboardError

QUESTION = "Make this change? [y]es, [n]o, [a]ll, [q]uit: "


def configure(parser: argparse.ArgumentParser) -> None:
    """The action's own flags."""
    parser.add_argument("ids", nargs="*", metavar="ID", help="only these findings, or findings of these causes")
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask; installs must be named by their ids")
    parser.add_argument("--dry-run", action="store_true", help="show what would change; write nothing")
    doctor_examine.add_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Goes from finding to finding."""
    if not (args.dry_run or args.yes) and (args.json or not (sys.stdin.isatty() and sys.stdout.isatty())):
        raise PegboardError("There is nobody to ask, so nothing was written.", hint="Say --yes, or --dry-run to look.")
    desk = Desk(args)
    if not args.dry_run:
        for said in desk.ledger.recover():
            output.warn(output.printable(said))
    looked = examined(args, desk.machine)
    if args.dry_run:
        return _dry(args, desk, looked)
    round_ = _Round(args, desk, looked)
    rows = [round_.attend(number, finding) for number, finding in enumerate(looked.findings, 1)]
    if args.json:
        output.emit(rows)
    else:
        _sum_up(rows)
    failed = any(row["refused"] for row in rows if args.ids)
    return 1 if failed else 0


def _dry(args: argparse.Namespace, desk: Desk, looked: Looked) -> int:
    found = desk.plan_all(looked)
    if args.json:
        output.emit([as_json(finding, plan) for finding, plan in found])
        return 0
    for number, (finding, plan) in enumerate(found, 1):
        tell(number, finding, plan)
        output.say()
    output.say("Nothing was written.")
    return 0


class _Round:
    """Shows plans, asks, and applies what is agreed to."""

    def __init__(self, args: argparse.Namespace, desk: Desk, looked: Looked) -> None:
        self._args = args
        self._desk = desk
        self._looked = looked
        self._all = bool(args.yes)
        self._over = False

    def attend(self, number: int, finding: Finding) -> dict[str, Any]:
        """What became of one finding."""
        plan = self._desk.plan(finding, self._looked)
        row: dict[str, Any] = {**as_json(finding, plan), "applied": None, "refused": "", "backups": []}
        if not self._args.json:
            tell(number, finding, plan)
        if plan is None or not plan.is_applicable:
            row["refused"] = row["refusal"]
        elif self._is_wanted(plan):
            row |= self._applied(plan)
        if not self._args.json:
            output.say()
        return row

    def _applied(self, plan: Plan) -> dict[str, Any]:
        try:
            if isinstance(plan.install, GatewayInstall):
                command = plan.install.command
                refuse_unstartable(command[: command.index("serve")], self._desk.machine.environ)
            action = self._desk.ledger.apply(plan, baseline_of(self._looked.whole, plan.fix, now=time.time()))
        except PegboardError as error:
            output.warn(output.printable(f"   Not applied: {error.message} {error.hint}".rstrip()))
            return {"refused": error.message}
        backups = self._backups(action)
        if not self._args.json:
            output.say(f"   Applied as {action.id}. `pegboard doctor undo {action.id}` takes it back.")
            for backup in backups:
                output.say(f"   Backup: {backup}")
        return {"applied": action.id, "backups": backups}

    def _backups(self, action: Action) -> list[str]:
        return [str(path) for path in self._desk.ledger.backups(action)]

    def _is_wanted(self, plan: Plan) -> bool:
        if self._over:
            return False
        is_named = {plan.finding, plan.finding.partition(":")[0]} & set(self._args.ids)
        if self._all and (plan.fix.kind in EDITS or is_named):
            return True
        if self._args.yes:
            # Whoever agrees to everything has not read that a gateway or a proxy is among it.
            output.warn(f"   Left out: {plan.fix.kind} is made only when it is named: {plan.finding}.")
            return False
        return self._ask()

    def _ask(self) -> bool:
        try:
            answer = input(f"   {QUESTION}").strip().lower()
        except EOFError:
            output.say()
            answer = "q"
        self._over = answer in {"q", "quit"}
        self._all = self._all or answer in {"a", "all"}
        return answer in {"a", "all", "y", "yes"}


def _sum_up(rows: list[dict[str, Any]]) -> None:
    done = [row for row in rows if row["applied"]]
    if not rows:
        output.say("Nothing was found, so there is nothing to apply.")
    elif not done:
        output.say("Nothing was changed.")
    else:
        output.say(
            f"{len(done)} of {len(rows)} applied. They count from the next sessions on; after some of those, `pegboard "
            "doctor report` shows what they brought."
        )
