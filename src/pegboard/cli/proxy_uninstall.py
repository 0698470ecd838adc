"""`pegboard proxy uninstall`: points an agent at its model's API again.

A file that nobody touched since gets its bytes back. Below: `store.redirects`, which does it.
"""

from __future__ import annotations

import argparse
from typing import Any

from pegboard.cli import output
from pegboard.cli.proxy_places import RESTART_HINT, proxy_config
from pegboard.config.installers.agents import Agent, agent_named
from pegboard.config.installers.journal import Redirect
from pegboard.errors import PegboardError
from pegboard.store.redirects import Redirects, Restored

_SAID = {
    "restored": "{file} is what it was before, to the byte.",
    "removed": "{file} was made by the install and is gone.",
    "edited": "{file} was changed since the install: the proxy is out, and the rest is as you left it.",
    "gone": "{file} is gone; nothing was put back into it.",
    "untouched": "{file} is as it was before the install.",
    "shared": "{file} stays as it is.",
}


def run(args: argparse.Namespace) -> int:
    """Takes back all that was set for the agent."""
    agent = agent_named(args.agent)
    redirects = Redirects(proxy_config(args).state_dir)
    records = _records(agent, redirects)
    if args.dry_run:
        return _tell_records(args, records)
    outcomes = redirects.undo(records)
    if args.json:
        output.emit([_as_json(outcome) for outcome in outcomes])
        return 0
    for outcome in outcomes:
        _tell(outcome)
    output.say(f"Restart {agent.title} for the change to count. {RESTART_HINT}")
    return 0


def _records(agent: Agent, redirects: Redirects) -> tuple[Redirect, ...]:
    if agent.files is None:
        names = " ".join(name for name, _, _ in agent.variables)
        raise PegboardError(f"Nothing was edited for {agent.title}.", hint=f"unset {names}")
    records = redirects.journal().redirects_of(agent.id)
    if not records:
        raise PegboardError(
            f"No install of the proxy in {agent.title} is on record.",
            hint="`pegboard proxy install` lists the agents. An address that you wrote yourself is yours to take out.",
        )
    return records


def _tell_records(args: argparse.Namespace, records: tuple[Redirect, ...]) -> int:
    if args.json:
        rows = [
            {"file": each.file, "at": each.at, "settings": [setting.name for setting in each.settings]}
            for each in records
        ]
        output.emit(rows)
        return 0
    for record in records:
        names = ", ".join(setting.name for setting in record.settings)
        output.say(output.printable(f"{record.file}: the install of {record.at} is taken back: {names}."))
    output.say("Nothing was written.")
    return 0


def _tell(outcome: Restored) -> None:
    output.say(_SAID[outcome.action].format(file=outcome.file))
    if outcome.kept:
        output.say(output.printable(f"Changed since, and left as they are: {', '.join(outcome.kept)}."))
    for name, agent in outcome.shared.items():
        output.say(f"{name} stays in {outcome.file}: {agent} goes through it too.")
    if outcome.backup is not None:
        output.say(f"The file as it was before the install is kept: {outcome.backup}")


def _as_json(outcome: Restored) -> dict[str, Any]:
    return {
        "file": str(outcome.file),
        "action": outcome.action,
        "settings": outcome.settings,
        "kept": outcome.kept,
        "shared": outcome.shared,
        "backup": None if outcome.backup is None else str(outcome.backup),
    }
