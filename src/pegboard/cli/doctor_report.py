"""`pegboard doctor report`: what each applied change brought, as a table, plots, JSON, or a page."""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import shutil
import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import get_args

import msgspec

from pegboard.cli import doctor_examine, output
from pegboard.cli.progress import Progress
from pegboard.cli.proxy_places import proxy_config
from pegboard.config.model import Config
from pegboard.doctor.facts import Agent, Evidence
from pegboard.doctor.plans.actions import Action
from pegboard.doctor.plans.journal import ActionJournal
from pegboard.doctor.report.baseline import BASELINE_DAYS
from pegboard.doctor.report.change import Change
from pegboard.doctor.report.outcome import Report, report_of
from pegboard.doctor.report.page import page_of
from pegboard.doctor.report.plain import plain_report
from pegboard.doctor.report.plot import Look, plot_lines
from pegboard.doctor.report.samples import DAY, by_day
from pegboard.doctor.report.seen import Seen
from pegboard.doctor.report.sides import since_of
from pegboard.doctor.report.standing import change_of
from pegboard.doctor.report.table import FULL, PLAIN, table_lines
from pegboard.errors import PegboardError
from pegboard.store.files import DiskFiles
from pegboard.store.installs import Installs

PLOTS = 5
"""Changes that are drawn; a page has all of them."""
_WIDTH = 132
"""Where there is no terminal to ask."""


def configure(parser: argparse.ArgumentParser) -> None:
    """The action's own flags."""
    parser.add_argument("ids", nargs="*", metavar="ID", help="only these changes, by the beginning of their ids")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with charts that needs nothing else")
    parser.add_argument("--no-plot", action="store_true", help="only the table")
    nothing = argparse.SUPPRESS
    agents = get_args(Agent)
    parser.add_argument("--agent", choices=agents, default=nothing, metavar="AGENT", help="only changes of this one")
    parser.add_argument(
        "--project", type=Path, default=nothing, metavar="FOLDER", help="only what holds in this folder"
    )


def run(args: argparse.Namespace) -> int:
    """Looks back and tells; that a change was in vain is no failure."""
    config, now = proxy_config(args), time.time()
    actions = ActionJournal(config.state_dir).actions()
    changes = _changes(config, actions)
    evidence = _examined(actions, now) if actions else Evidence()
    unsettled = {each.id for each in actions if each.status in ("applying", "undoing")}
    whole = report_of([each for each in changes if each.id not in unsettled], evidence.sessions, now=now)
    problems = [*doctor_examine.problems(evidence), *_unsettled(unsettled), *_keep(config, changes, evidence, now)]
    report = _wanted(whole, args)
    if args.html is not None:
        _write_page(args.html, page_of(report))
    if args.json:
        output.emit({**plain_report(report), "problems": problems})
        return 0
    for problem in problems:
        output.warn(output.printable(problem))
    if whole.outcomes and not report.outcomes:
        output.say("Changes were applied, but none that was asked for.")
    else:
        _tell(report, plots=not args.no_plot)
    if args.html is not None:
        output.say(output.printable(f"The page is in {args.html}."))
    return 0


# ── what is known ────────────────────────────────────────────────────────────────────────────────────────────────


def _examined(actions: Sequence[Action], now: float) -> Evidence:
    """Sessions from as far back as the oldest baseline."""
    oldest = min(each.applied_at for each in actions)
    days = max(doctor_examine.DAYS, math.ceil((now - oldest) / DAY) + BASELINE_DAYS)
    with Progress() as progress:
        return asyncio.run(doctor_examine.examine(doctor_examine.here(), days=days, progress=progress, now=now))


def _changes(config: Config, actions: Sequence[Action]) -> list[Change]:
    """The actions with whether they stand, and what was seen of them before."""
    if not actions:
        return []
    installs, seen = Installs(config.state_dir), Seen.of(config.state_dir).read()
    journal = installs.journal()
    return [
        change_of(each, installs.read, journal, since=seen.get(each.id, ()), later=actions[number:])
        for number, each in enumerate(actions, 1)
    ]


def _unsettled(ids: Collection[str]) -> list[str]:
    if not ids:
        return []
    return ["A change was interrupted halfway and is not in this report: `pegboard doctor undo` settles it."]


def _keep(config: Config, changes: Sequence[Change], evidence: Evidence, now: float) -> list[str]:
    """What was seen now, for when the transcripts are gone."""
    seen = {each.id: by_day(since_of(each, evidence.sessions, now=now), until=each.applied_at) for each in changes}
    problem = Seen.of(config.state_dir).write({key: samples for key, samples in seen.items() if samples})
    return [problem] if problem else []


def _wanted(report: Report, args: argparse.Namespace) -> Report:
    """Those that were asked for; all were looked at, so that none has what is another's."""
    outcomes = report.outcomes
    for text in args.ids:
        if not any(each.change.id.startswith(text) for each in outcomes):
            raise PegboardError(
                f"No applied change has an id that begins with {text!r}.", hint="`pegboard doctor report` lists all."
            )
    if args.ids:
        outcomes = tuple(each for each in outcomes if each.change.id.startswith(tuple(args.ids)))
    if args.agent is not None:
        outcomes = tuple(each for each in outcomes if each.change.scope.agent == args.agent)
    if args.project is not None:
        folder = str(Path(os.path.abspath(args.project)))  # noqa: PTH100 - links stay
        outcomes = tuple(each for each in outcomes if each.change.scope.holds_in(folder))
    return msgspec.structs.replace(report, outcomes=outcomes)


# ── for people ───────────────────────────────────────────────────────────────────────────────────────────────────


def _tell(report: Report, *, plots: bool) -> None:
    width = max(shutil.get_terminal_size((_WIDTH, 24)).columns, 20)
    has_blocks = output.symbol("█▁→│", "") != ""
    for line in table_lines(report, width=width, signs=FULL if has_blocks else PLAIN):
        output.say(output.printable(line))
    if not plots:
        return
    look = Look(blocks=has_blocks, colours=_has_colours())
    drawn = [lines for each in report.outcomes if (lines := plot_lines(each, width=width, look=look))]
    for title, *rest in drawn[:PLOTS]:
        output.say()
        output.say(output.printable(title))
        for line in rest:
            output.say(line)
    if len(drawn) > PLOTS:
        output.say()
        output.say(f"{len(drawn) - PLOTS:,} more are not drawn here; --html draws all.")


def _has_colours() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def _write_page(file: Path, page: str) -> None:
    try:
        DiskFiles().write(file, page.encode())
    except OSError as error:
        raise PegboardError(
            f"{file} cannot be written: {error.strerror or error}.",
            hint="Name a file in a folder that you may write to.",
        ) from None
