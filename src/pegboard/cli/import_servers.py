"""`pegboard import`: shows the servers that other programs have, and writes those that are picked. It starts none.

The searching, choosing and writing of text are in `config`; here are the screen, the question and the disk.
"""

from __future__ import annotations

import argparse
import os
import shlex
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pegboard.cli import output
from pegboard.config.importers import SOURCES, Found, find
from pegboard.config.importers.choose import by_answer, by_names, from_sources, importable
from pegboard.config.importers.naming import skeleton
from pegboard.config.importers.plan import Plan, configured, plan
from pegboard.config.importers.secrets import masked
from pegboard.config.model import ServerConfig
from pegboard.config.places import FILE_NAME, user_file
from pegboard.errors import ConfigError, PegboardError
from pegboard.store.files import DiskFiles

QUESTION = "Which ones? Numbers, ranges like 2-4, names, all or none: "
OTHER_FILE = "Pick another file with --to."


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds what the command takes."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="import these, by key or by name")
    parser.add_argument("--all", action="store_true", help="import everything that was found")
    parser.add_argument(
        "--from",
        dest="sources",
        action="append",
        default=[],
        metavar="SOURCE",
        help="look only here, as in cursor or claude-code:project; may repeat",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the text that would be added; write nothing")
    parser.add_argument("--no-secrets", action="store_true", help="write ${NAME} in place of what looks like a secret")
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--to", type=Path, metavar="FILE", help="write to this file, not to the user's pegboard.toml")
    target.add_argument("--project", action="store_true", help=f"write to ./{FILE_NAME}")


def run(args: argparse.Namespace) -> int:
    """Lists, asks if there is someone to ask, and writes what was picked."""
    target = _target(args)
    everything = find(Path.home(), _working_folder(), os.environ, sys.platform)
    found = from_sources(everything, args.sources, [source.id for source in SOURCES])
    try:
        text = _read(target)
        chosen = _chosen(args, found)
        if not args.json and not (args.dry_run and chosen is not None):
            _show(found if chosen is None else chosen, configured(text), target)
        _warn_of_broken(found)
        picked = _asked(found) if chosen is None and _may_ask(args, found) else chosen
        planned = plan(text, picked or (), os.environ, hide_secrets=args.no_secrets)
    except ConfigError as error:
        raise ConfigError(f"{target}: {error.message}", hint=error.hint) from None
    if planned.servers and not args.dry_run:
        _write(target, planned.text)
    if args.json:
        output.emit(_as_json(planned, found, target, dry_run=args.dry_run))
    else:
        _tell(planned, target, dry_run=args.dry_run, asked=picked is not None, any_found=any(i.name for i in found))
    return 0


def _target(args: argparse.Namespace) -> Path:
    if args.all and args.names:
        raise PegboardError("Both --all and names are given.", hint="Use one of the two.")
    if args.project:
        return _working_folder() / FILE_NAME
    if args.to is not None:
        target: Path = args.to.expanduser()
        if target.suffix.lower() != ".toml":
            raise PegboardError(f"{target} does not end in .toml.", hint="Servers are written as TOML.")
        return target.absolute()
    if args.config:
        raise PegboardError("--config says what is read, not what is written.", hint="Say where with --to FILE.")
    return user_file(os.environ)


def _working_folder() -> Path:
    try:
        return Path.cwd()
    except OSError:
        raise PegboardError("The working folder is gone.", hint="Change to one that exists.") from None


def _read(target: Path) -> str:
    try:
        return DiskFiles().read(target).decode()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise ConfigError("This is not UTF-8 text.", hint=OTHER_FILE) from None
    except OSError as error:
        raise PegboardError(f"{target} cannot be read: {error.strerror}.", hint=OTHER_FILE) from None


def _write(target: Path, text: str) -> None:
    try:
        DiskFiles().write(target, text.encode())
    except OSError as error:
        raise PegboardError(f"{target} cannot be written: {error.strerror}.", hint=OTHER_FILE) from None


def _chosen(args: argparse.Namespace, found: Sequence[Found]) -> tuple[Found, ...] | None:
    """What the command line asks for; None when it does not say."""
    if args.all:
        return importable(found)
    return by_names(found, args.names) if args.names else None


def _may_ask(args: argparse.Namespace, found: Sequence[Found]) -> bool:
    return not args.json and bool(importable(found)) and sys.stdin.isatty() and sys.stdout.isatty()


def _asked(found: Sequence[Found]) -> tuple[Found, ...]:
    while True:
        try:
            return by_answer(found, input(QUESTION))
        except EOFError:
            output.say()
            return ()
        except PegboardError as error:
            output.say(f"{error.message} {error.hint}")


def _show(found: Sequence[Found], taken: frozenset[str], target: Path) -> None:
    number = 0
    for item in found:
        if not item.name:
            continue
        number += item.config is not None
        mark = "-" if item.config is None else str(number)
        called = "" if item.key in {item.name, ""} else f" ({visible(item.name)})"
        output.say(f"{mark:>3}  {visible(item.key or item.name)}{called}  from {item.source}, {_place(item)}")
        for line in _details(item, taken, target):
            output.say(f"       {line}")


def _warn_of_broken(found: Iterable[Found]) -> None:
    for item in found:
        if not item.name:
            output.warn(f"{_place(item)}: {visible(item.problem)}")


def _details(item: Found, taken: frozenset[str], target: Path) -> Iterator[str]:
    if item.config is None:
        yield f"cannot be imported: {visible(item.problem)}"
        return
    yield visible(_launch(item.config))
    hidden = masked(item.config)
    for what, values in (("env", hidden.env), ("headers", hidden.headers)):
        if values:
            yield f"{what}: " + visible(", ".join(f"{name}={value}" for name, value in values.items()))
    if item.config.transport == "sse":
        yield "over legacy SSE"
    if item.config.cwd:
        yield f"in: {visible(item.config.cwd)}"
    if not item.config.enabled:
        yield "switched off"
    if item.also_in:
        yield f"also in {', '.join(item.also_in)}"
    if skeleton(item.key) in taken:
        yield f"already configured in {target}"
    for note in item.notes:
        yield f"note: {visible(note)}"


def _tell(planned: Plan, target: Path, *, dry_run: bool, asked: bool, any_found: bool) -> None:
    if not any_found:
        output.say("No servers were found in other programs.")
    elif not asked:
        output.say("\nNothing was written. Pick with names, with --all, or run it in a terminal to be asked.")
    for key in planned.skipped:
        output.warn(f"{key} is already configured in {target}; it is left as it is.")
    if not planned.servers:
        return
    if dry_run:
        output.warn(f"Would be added to {target}; nothing was written.")
        output.say(planned.addition.strip("\r\n"))
    else:
        output.say(f"Added to {target}: {', '.join(planned.servers)}.")
        output.say("`pegboard refresh` asks them for their tools.")
    _tell_variables(planned)
    _tell_secrets(planned, target, dry_run=dry_run)


def _tell_variables(planned: Plan) -> None:
    for variable, places in planned.variables.items():
        output.warn(f"Set {variable}, used by {', '.join(places)}.")
    for variable, keys in planned.unset.items():
        if variable not in planned.variables:
            output.warn(f"{variable} is not set; {', '.join(keys)} cannot be used without it.")


def _tell_secrets(planned: Plan, target: Path, *, dry_run: bool) -> None:
    if not planned.secrets:
        return
    copied = "; ".join(f"{key}: {', '.join(places)}" for key, places in planned.secrets.items())
    shown = " They are shown as ***, and written as they are." if dry_run else ""
    output.warn(f"These look like secrets and are copied as plain text: {copied}.{shown}")
    output.warn("Any of them may be written as ${NAME} instead; --no-secrets does so for all.")
    if not dry_run and stat.S_IMODE(target.stat().st_mode) & 0o077:
        output.warn(f"Others may read {target}: chmod 600 {shlex.quote(str(target))}")


def _as_json(planned: Plan, found: Iterable[Found], target: Path, *, dry_run: bool) -> dict[str, Any]:
    """All of it for scripts; no value of a variable or header is in it."""
    items = [(item, _item_as_json(item)) for item in found]
    return {
        "found": [shown for item, shown in items if item.name],
        "broken": [shown for item, shown in items if not item.name],
        "file": str(target),
        "dry_run": dry_run,
        "picked": list(planned.servers),
        "written": [] if dry_run else list(planned.servers),
        "skipped": planned.skipped,
        "secrets": planned.secrets,
        "variables": planned.variables,
        "unset": planned.unset,
        "text": planned.addition,
    }


def _item_as_json(item: Found) -> dict[str, Any]:
    return {
        "key": item.key,
        "name": item.name,
        "source": item.source,
        "file": str(item.file),
        "line": item.line,
        "launch": _launch(item.config) if item.config else None,
        "config": msgspec.to_builtins(masked(item.config)) if item.config else None,
        "problem": item.problem,
        "notes": item.notes,
        "also_in": item.also_in,
    }


def _launch(config: ServerConfig) -> str:
    """What will be run or reached, whole and unambiguous."""
    return config.url if config.url is not None else shlex.join((config.command or "", *config.args))


def _place(item: Found) -> str:
    return visible(str(item.file)) + (f":{item.line}" if item.line else "")


def visible(text: str) -> str:
    """Text that cannot hide or forge anything on a terminal: what does not print is written as an escape."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
