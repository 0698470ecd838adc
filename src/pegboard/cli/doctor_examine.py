"""What every command of the doctor begins with: reading what agents left on this machine.

Above: the doctor's commands. Below: its readers of sessions and settings.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, get_args

import msgspec

from pegboard.doctor.facts import Agent, AgentState, Evidence
from pegboard.errors import PegboardError

if TYPE_CHECKING:
    from pegboard.doctor.plans.actions import Action
    from pegboard.doctor.settings.machine import Machine

DAYS = 30
"""As long as Claude Code keeps transcripts."""
DAY = 86_400.0
Report = Callable[[str, int, int], None]


def add_flags(parser: argparse.ArgumentParser, *, is_action: bool = True) -> None:
    """How far to look, and at what; an action leaves alone what was said before it."""
    nothing = argparse.SUPPRESS
    parser.add_argument(
        "--days",
        type=days,
        default=nothing if is_action else DAYS,
        metavar="N",
        help=f"how far back to look; {DAYS} unless said otherwise",
    )
    parser.add_argument(
        "--agent",
        choices=get_args(Agent),
        default=nothing if is_action else None,
        metavar="AGENT",
        help=f"only this one: {', '.join(get_args(Agent))}",
    )
    parser.add_argument(
        "--project",
        type=Path,
        default=nothing if is_action else None,
        metavar="FOLDER",
        help="only sessions in this folder and below",
    )


def days(text: str) -> int:
    """A flag's number of days; for argparse."""
    if not text.isdecimal() or not 0 < int(text) <= 36_500:
        raise argparse.ArgumentTypeError(f"expected a number of days, as in 30, got {text!r}")
    return int(text)


def here() -> Machine:
    """The machine this runs on."""
    from pegboard.doctor.settings.machine import Machine

    return Machine(home=Path.home(), cwd=Path.cwd(), environ=os.environ, platform=sys.platform)


class _LeftError(Exception):
    """Nobody waits for the sessions any more."""


async def examine(
    machine: Machine,
    *,
    days: int = DAYS,
    progress: Report | None = None,
    now: float | None = None,
    actions: Sequence[Action] = (),
) -> Evidence:
    """Everything that can be known: sessions of the last days, and settings of today wherever they ran."""
    from pegboard.doctor.evidence.gather import read_sessions, with_servers
    from pegboard.doctor.evidence.kept import Kept
    from pegboard.doctor.plans.dated import dated
    from pegboard.doctor.settings.read import read_states

    since = (time.time() if now is None else now) - days * DAY
    left = threading.Event()

    def tell(done: int, total: int) -> None:
        if left.is_set():
            raise _LeftError
        if progress is not None:
            progress("reading sessions", done, total)

    try:
        gathered = await asyncio.to_thread(read_sessions, machine, kept=Kept.of(machine), since=since, progress=tell)
    except asyncio.CancelledError:
        # A thread cannot be ended from outside, and nobody is to wait for gigabytes that they gave up on.
        left.set()
        raise
    folders = sorted({Path(session.project) for session in gathered.sessions if session.project})
    states = await asyncio.to_thread(read_states, machine, folders)
    return Evidence(
        sessions=with_servers(gathered.sessions, _names(states)),
        states=dated(states, actions),
        read_bytes=gathered.read_bytes,
        read_files=gathered.read_files,
        broken_lines=gathered.broken_lines,
        unknown_records=gathered.unknown_records,
        notes=gathered.notes,
    )


def applied(args: argparse.Namespace) -> tuple[Action, ...]:
    """What was applied before, as far as anybody can tell: a broken journal is no reason not to look."""
    from pegboard.cli.proxy_places import proxy_config
    from pegboard.doctor.plans.journal import actions

    with suppress(PegboardError):
        return actions(proxy_config(args).state_dir)
    return ()


def _names(states: Iterable[AgentState]) -> dict[Agent, set[str]]:
    """The names that each agent has its servers under, by which their tools are known."""
    found: dict[Agent, set[str]] = {}
    for state in states:
        found.setdefault(state.agent, set()).update(entry.name for entry in state.servers)
    return found


def only(evidence: Evidence, *, agent: Agent | None = None, project: Path | None = None) -> Evidence:
    """The part that somebody asked for; settings of folders around the project count for it."""
    if agent is None and project is None:
        return evidence
    wanted = None if project is None else PurePath(os.path.abspath(project))  # noqa: PTH100 - links stay
    sessions = tuple(
        each
        for each in evidence.sessions
        if agent in (None, each.agent) and (wanted is None or PurePath(each.project).is_relative_to(wanted))
    )
    if wanted is not None and not sessions and not Path(wanted).is_dir():
        raise PegboardError(f"There is no folder {wanted}, and no session ran in it.", hint="Mind how it is spelled.")
    return msgspec.structs.replace(
        evidence,
        sessions=sessions,
        broken_lines=sum(each.broken_lines for each in sessions),
        unknown_records=sum(each.unknown_records for each in sessions),
        states=tuple(
            each
            for each in evidence.states
            if agent in (None, each.agent) and (wanted is None or _touch(PurePath(each.project), wanted))
        ),
    )


def _touch(folder: PurePath, wanted: PurePath) -> bool:
    """Whether one is in the other; no folder is around all."""
    return folder == PurePath() or folder.is_relative_to(wanted) or wanted.is_relative_to(folder)


def problems(evidence: Evidence) -> tuple[str, ...]:
    """What could not be read, each once."""
    return tuple(dict.fromkeys((*_all(state.problems for state in evidence.states), *evidence.notes)))


def _all(groups: Iterable[tuple[str, ...]]) -> Iterable[str]:
    return (each for group in groups for each in group)
