"""`pegboard install`: puts Pegboard into a client's settings and the servers found there behind it, after asking.

What changes is decided in `config.installers` and written by `store.installs`; here are the screen and the question.
"""

from __future__ import annotations

import argparse
import shlex
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pegboard.cli import output
from pegboard.cli.install_places import (
    add_place_flags,
    config_file,
    installs_of,
    is_passing,
    launch_of,
    places_of,
    refuse_unstartable,
    scope_of,
)
from pegboard.config.importers.found import Places, is_there
from pegboard.config.installers.clients import CLIENTS, Launch, Scope, Site, client_named, sites
from pegboard.config.installers.plan import ITSELF, SitePlan, Wish, plan_all, servers_in
from pegboard.config.installers.show import diff, hidden_values
from pegboard.config.installers.undo import parse
from pegboard.errors import ConfigError, PegboardError
from pegboard.store.changed_files import ChangedFiles
from pegboard.store.installs import Installs

QUESTION = "Make these changes? [y/N] "


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds what the command takes."""
    parser.add_argument(
        "client", nargs="?", metavar="CLIENT", help="such as cursor; without one, those found are listed"
    )
    add_place_flags(parser)
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="show what would change; write nothing")
    parser.add_argument("--keep-servers", action="store_true", help="only add Pegboard; move no server")
    parser.add_argument(
        "--only", nargs="+", action="extend", default=[], metavar="NAME", help="move only these servers"
    )
    parser.add_argument("--no-secrets", action="store_true", help="write ${NAME} in place of what looks like a secret")


def run(args: argparse.Namespace) -> int:
    """Plans, shows, asks and writes."""
    if args.keep_servers and args.only:
        raise PegboardError("Both --keep-servers and --only are given.", hint="Use one of the two.")
    places = places_of(args)
    if args.client is None:
        return _list(args, places)
    scope = scope_of(args)
    target = config_file(args, scope, places)
    installs = installs_of(places.environ)
    chosen = sites(client_named(args.client), scope, places)
    launch, plans = _planned(args, installs, chosen, target, places)
    needed = [plan for plan in plans if plan.is_needed]
    if not args.json:
        _show(plans, target)
    if needed and not args.dry_run:
        refuse_unstartable(launch.command[: launch.command.index("serve")], places.environ)
    written = bool(needed) and agreed(args)
    backups = _write(installs, needed, target) if written else []
    if args.json:
        output.emit(_as_json(plans, target, launch.command, backups, installed=written or not needed))
    else:
        _tell(needed, backups, launch.command, target, written=written)
    return 0


def _planned(
    args: argparse.Namespace, installs: Installs, chosen: Sequence[Site], target: Path, places: Places
) -> tuple[Launch, tuple[SitePlan, ...]]:
    texts = [read_text(installs, site.file) for site in chosen]
    config = read_text(installs, target)
    try:
        parse(config or "", "toml")
    except ConfigError as error:
        raise ConfigError(f"{target}: {error.message}", hint=error.hint) from None

    def planned(new_config: bool) -> tuple[Launch, tuple[SitePlan, ...]]:
        launch = launch_of(args, scope_of(args), places, new_config=new_config)
        wish = Wish(launch=launch, keep_servers=args.keep_servers, only=tuple(args.only), hide_secrets=args.no_secrets)
        return launch, plan_all(chosen, texts, config or "", wish, places)

    launch, plans = planned(True)
    if config is None and not any(plan.imported.servers for plan in plans):
        return planned(False)  # the file that the entry would name is not written after all
    return launch, plans


def read_text(installs: ChangedFiles, file: Path) -> str | None:
    """The file as text; None when there is none."""
    raw = installs.read(file)
    try:
        return None if raw is None else raw.decode()
    except UnicodeDecodeError:
        raise PegboardError(f"{file} is not UTF-8 text.", hint="Save it as UTF-8 first. Nothing was changed.") from None


def _write(installs: Installs, plans: Sequence[SitePlan], target: Path) -> list[str]:
    backups: list[str] = []
    for plan in plans:
        backup = installs.apply(plan, target, read_text(installs, target))
        backups.append("" if backup is None else str(backup))
    return backups


def agreed(args: argparse.Namespace) -> bool:
    """Whether the person wants the changes made; asks where there is somebody to ask."""
    if args.dry_run or args.yes:
        return bool(args.yes and not args.dry_run)
    if args.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise PegboardError("There is nobody to ask, so nothing was written.", hint="Say --yes, or --dry-run to look.")
    try:
        return input(QUESTION).strip().lower() in {"y", "yes"}
    except EOFError:
        output.say()
        return False


def _show(plans: Sequence[SitePlan], target: Path) -> None:
    for plan in plans:
        for line in _lines(plan):
            output.say(output.printable(line))
        addition = plan.imported.addition.strip("\r\n")
        if addition:
            output.say(f"--- {target}\n+++ {target}")
            for line in addition.splitlines():
                output.say(output.printable(f"+{line}"))
        for name, reason in plan.stays.items():
            output.warn(output.printable(f"{name} stays in {plan.site.file}: {reason.rstrip('.')}."))
        _warn(plan)


def _warn(plan: SitePlan) -> None:
    for move in plan.moves:
        if not move.is_new:
            output.warn(output.printable(f"{move.name} is in Pegboard's configuration already, as {move.key}."))
        elif move.key != move.name:
            output.warn(output.printable(f"{move.name} will be called {move.key}."))
        for note in move.notes:
            output.warn(output.printable(f"{move.name}: {note}"))
    for variable, used in plan.imported.variables.items():
        output.warn(f"Set {variable}, used by {', '.join(used)}.")
    for warning in plan.warnings:
        output.warn(warning)


def _lines(plan: SitePlan) -> Iterator[str]:
    before = plan.before or ""
    hidden = hidden_values(parse(before, plan.site.format), plan.configs)
    yield from diff(before, plan.after, str(plan.site.file), hidden)


def _tell(
    plans: Sequence[SitePlan], backups: Sequence[str], command: Sequence[str], target: Path, *, written: bool
) -> None:
    if not plans:
        output.say("Pegboard is installed there already. There is nothing to do.")
        return
    if not written:
        output.say("Nothing was written.")
        return
    for plan, backup in zip(plans, backups, strict=True):
        output.say(f"Pegboard is installed in {plan.site.file}." + (f" Backup: {backup}" if backup else ""))
        if plan.moves:
            output.say(f"Behind it, in {target}: {', '.join(move.key for move in plan.moves)}.")
    client = plans[0].site.client
    output.say(f"It starts with: {shlex.join(command)}")
    output.say(f"`pegboard uninstall {client.id}` takes it back. {client.advice.format(title=client.title)}".strip())
    _tell_risks(plans, command, target)


def _tell_risks(plans: Sequence[SitePlan], command: Sequence[str], target: Path) -> None:
    secrets = {key: places for plan in plans for key, places in plan.imported.secrets.items()}
    if secrets:
        copied = "; ".join(f"{key}: {', '.join(places)}" for key, places in secrets.items())
        output.warn(f"These look like secrets and are copied as plain text: {copied}.")
        if stat.S_IMODE(target.stat().st_mode) & 0o077:
            output.warn(f"Others may read {target}: chmod 600 {shlex.quote(str(target))}")
    if plans[0].site.scope == "project":
        output.warn("The entry names files of this machine. Think before you share it with the project.")
    if is_passing(tuple(command)):
        output.warn("This Pegboard lies in a cache that may be emptied: `uv tool install pegboard` is for good.")


def _as_json(
    plans: Sequence[SitePlan], target: Path, command: Sequence[str], backups: Sequence[str], *, installed: bool
) -> dict[str, Any]:
    kept = iter(backups)
    return {
        "installed": installed,
        "command": command,
        "config": str(target),
        "files": [
            {
                "file": str(plan.site.file),
                "scope": plan.site.scope,
                "changed": plan.is_needed,
                "moved": {move.name: move.key for move in plan.moves},
                "added": list(plan.imported.servers),
                "stays": plan.stays,
                "notes": {move.name: move.notes for move in plan.moves if move.notes},
                "warnings": plan.warnings,
                "secrets": plan.imported.secrets,
                "variables": plan.imported.variables,
                "diff": list(_lines(plan)),
                "addition": plan.imported.addition,
                "backup": (next(kept, "") or None) if plan.is_needed else None,
            }
            for plan in plans
        ],
    }


def _list(args: argparse.Namespace, places: Places) -> int:
    """The clients on this machine and in this project."""
    rows = [row for site in _present(places, args) for row in (_row(site, places),)]
    if args.json:
        output.emit(rows)
        return 0
    if not rows:
        output.say("No client's settings were found. Pegboard can be put into:")
        output.say("  " + ", ".join(client.id for client in CLIENTS))
        return 0
    cells = [
        (row["client"], row["scope"], _count(row), "yes" if row["installed"] else "no", row["file"]) for row in rows
    ]
    output.table(("CLIENT", "SCOPE", "SERVERS", "PEGBOARD", "FILE"), cells)
    for row in rows:
        if row["problem"]:
            output.warn(output.printable(row["problem"]))
    return 0


def _present(places: Places, args: argparse.Namespace) -> Iterator[Site]:
    scopes: tuple[Scope, ...] = ("user", "project") if args.scope is None else (args.scope,)
    for client in CLIENTS:
        for scope in scopes:
            if scope == "user" or (client.project and places.cwd != places.home):
                yield from (site for site in sites(client, scope, places) if is_there(site.file))


def _row(site: Site, places: Places) -> dict[str, Any]:
    row = {"client": site.client.id, "scope": site.scope, "file": str(site.file), "servers": None, "installed": False}
    try:
        found = servers_in(site, places)
    except ConfigError as error:
        return {**row, "problem": error.message}
    itself = sum(item.problem == ITSELF for item in found)
    return {**row, "servers": len(found) - itself, "installed": bool(itself), "problem": ""}


def _count(row: dict[str, Any]) -> str:
    return "?" if row["servers"] is None else str(row["servers"])
