"""`pegboard uninstall`: takes Pegboard out of a client's settings and puts the servers back that were moved.

A file that nobody touched since the install gets its bytes back. Below: `store.installs`, which does it.
"""

from __future__ import annotations

import argparse
from typing import Any

from pegboard.cli import output
from pegboard.cli.install_places import add_place_flags, installs_of, places_of, scope_of
from pegboard.config.importers.found import Places
from pegboard.config.installers.clients import Client, client_named
from pegboard.config.installers.journal import Install
from pegboard.errors import PegboardError
from pegboard.store.installs import Installs, Outcome

_SAID = {
    "restored": "{file} is what it was before, to the byte.",
    "removed": "{file} was made by the install and is gone.",
    "edited": "{file} was changed since the install: Pegboard is out, and the rest is as you left it.",
    "gone": "{file} is gone; nothing was put back into it.",
    "untouched": "{file} is as it was before the install.",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds what the command takes."""
    parser.add_argument("client", metavar="CLIENT", help="such as cursor")
    add_place_flags(parser)
    parser.add_argument("--dry-run", action="store_true", help="say what would be taken back; write nothing")


def run(args: argparse.Namespace) -> int:
    """Takes back every install of the client in this scope, newest first."""
    places = places_of(args)
    installs = installs_of(places.environ)
    client = client_named(args.client)
    records = _records(args, installs, client, places)
    if args.dry_run:
        return _tell_records(args, records)
    outcomes = [installs.undo(record) for record in records]
    if args.json:
        output.emit([_as_json(outcome) for outcome in outcomes])
        return 0
    for outcome in outcomes:
        _tell(outcome)
    return 0


def _records(args: argparse.Namespace, installs: Installs, client: Client, places: Places) -> tuple[Install, ...]:
    scope = scope_of(args)
    of_client = installs.journal().of(client.id)
    in_project = {str(places.cwd / name) for name in client.project_files}
    records = tuple(
        record for record in of_client if record.scope == scope and (scope == "user" or record.file in in_project)
    )
    if records:
        return records
    others = ", ".join(dict.fromkeys(record.file for record in of_client))
    hint = (
        f"It is in {others}: say --project with that folder, or --scope user."
        if others
        else "`pegboard install` lists the clients. An entry that you wrote yourself is yours to take out."
    )
    raise PegboardError(f"No install in {client.title} ({scope}) is on record.", hint=hint)


def _tell_records(args: argparse.Namespace, records: tuple[Install, ...]) -> int:
    if args.json:
        output.emit([{"file": record.file, "at": record.at, "servers": record.change.moved} for record in records])
        return 0
    for record in records:
        moved = ", ".join(record.change.moved) or "no servers"
        output.say(output.printable(f"{record.file}: the install of {record.at} is taken back, with {moved}."))
    output.say("Nothing was written.")
    return 0


def _tell(outcome: Outcome) -> None:
    output.say(_SAID[outcome.action].format(file=outcome.file))
    if outcome.servers and outcome.action in {"restored", "edited"}:
        output.say(output.printable(f"It has again: {', '.join(outcome.servers)}."))
    if outcome.kept:
        output.say(output.printable(f"Entered again since, and left as they are: {', '.join(outcome.kept)}."))
    if outcome.taken_out:
        output.say(f"Taken out of {outcome.config}: {', '.join(outcome.taken_out)}.")
    for key, reason in outcome.left_in.items():
        output.say(f"{key} stays in {outcome.config}: {reason}.")
    if outcome.backup is not None:
        output.say(f"The file as it was before the install is kept: {outcome.backup}")


def _as_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "file": str(outcome.file),
        "scope": outcome.scope,
        "action": outcome.action,
        "servers": outcome.servers,
        "kept": outcome.kept,
        "config": None if outcome.config is None else str(outcome.config),
        "taken_out": outcome.taken_out,
        "left_in": outcome.left_in,
        "backup": None if outcome.backup is None else str(outcome.backup),
    }
