"""`pegboard doctor undo`: gives files that an action changed their very bytes back.

A file that was changed since is left as it is, and both versions are kept. Below: the ledger.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from typing import Any

from pegboard.cli import output
from pegboard.cli.doctor_desk import Desk
from pegboard.doctor.plans.actions import Action
from pegboard.doctor.plans.choosing import LAST, chosen
from pegboard.doctor.plans.recovery import Undone
from pegboard.store.installs import Outcome
from pegboard.store.redirects import Restored

_SAID = {
    "restored": "{file} is what it was before, to the byte.",
    "removed": "{file} was made by the install and is gone.",
    "edited": "{file} was changed since: the install is out, and the rest is as you left it.",
    "gone": "{file} is gone; nothing was put back into it.",
    "untouched": "{file} is as it was before.",
    "shared": "{file} stays as it is: others need it.",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """The action's own flags."""
    parser.add_argument(
        "id", nargs="?", default=LAST, metavar="ID", help="an action's id, its beginning, or `last`, which is usual"
    )
    parser.add_argument("--list", "-l", action="store_true", help="only list what was applied")
    parser.add_argument("--dry-run", action="store_true", help="say what would be undone; write nothing")


def run(args: argparse.Namespace) -> int:
    """Takes one action back."""
    desk = Desk(args)
    if args.list:
        return _list(args, desk.ledger.actions())
    action = chosen(desk.ledger.actions(), args.id)
    if args.dry_run:
        desk.ledger.refuse_undo(action)
        return _dry(args, action)
    undone = desk.ledger.undo(action) if _still_stands(desk, action) else None
    if args.json:
        output.emit(_as_json(undone) if undone else {**_row(action), "status": "undone"})
    elif undone:
        _tell(undone)
    else:
        output.say("Nothing else was undone.")
    return 0


def _still_stands(desk: Desk, action: Action) -> bool:
    """Settles what was cut short; what is meant may be gone by that, and then no other action is meant instead."""
    for said in desk.ledger.recover():
        output.warn(output.printable(said))
    return any(each.id == action.id and each.status != "undone" for each in desk.ledger.actions())


def _tell(undone: Undone) -> None:
    for file in undone.restored:
        output.say(output.printable(f"{file} is what it was before, to the byte."))
    for file in undone.removed:
        output.say(output.printable(f"{file} was made by the action and is gone."))
    for outcome in undone.installers:
        output.say(output.printable(_SAID[outcome.action].format(file=outcome.file)))
        for line in _more(outcome):
            output.say(output.printable(line))
    if undone.action.delegated and not undone.installers:
        output.say("The install had been taken back already.")
    done = undone.action
    output.say(f"Undone: {done.id} ({done.kind}, {done.finding}). It counts from the next session on.")


def _more(outcome: Outcome | Restored) -> Iterator[str]:
    """What became of the pegboard.toml that the install wrote to, and where other versions are."""
    if isinstance(outcome, Outcome):
        if outcome.taken_out:
            yield f"Taken out of {outcome.config}: {', '.join(outcome.taken_out)}."
        yield from (f"{key} stays in {outcome.config}: {reason}." for key, reason in outcome.left_in.items())
    else:
        yield from (f"{name} stays in {outcome.file}: {agent} needs it." for name, agent in outcome.shared.items())
    if outcome.backup is not None:
        yield f"The file as it was before is kept: {outcome.backup}"


def _dry(args: argparse.Namespace, action: Action) -> int:
    if args.json:
        output.emit(_row(action))
        return 0
    for file in action.files:
        output.say(output.printable(f"{file} would be what it was before {action.id} ({action.finding})."))
    output.say("Nothing was written.")
    return 0


def _list(args: argparse.Namespace, actions: Sequence[Action]) -> int:
    if args.json:
        output.emit([_row(each) for each in actions])
        return 0
    if not actions:
        output.say("Nothing was applied.")
        return 0
    now = time.time()
    output.table(
        ("ID", "STATUS", "AGE", "KIND", "FINDING"),
        [(each.id, each.status, output.age(now - each.applied_at), each.kind, each.finding) for each in actions],
    )
    return 0


def _row(action: Action) -> dict[str, Any]:
    return {
        "id": action.id,
        "kind": action.kind,
        "finding": action.finding,
        "agent": action.agent,
        "status": action.status,
        "applied_at": action.applied_at,
        "undone_at": action.undone_at,
        "files": action.files,
    }


def _as_json(undone: Undone) -> dict[str, Any]:
    return {
        **_row(undone.action),
        "restored": [str(file) for file in undone.restored],
        "removed": [str(file) for file in undone.removed],
        "installers": [
            {
                "by": "proxy" if isinstance(each, Restored) else "gateway",
                "file": str(each.file),
                "action": each.action,
                "backup": None if each.backup is None else str(each.backup),
            }
            for each in undone.installers
        ],
    }
