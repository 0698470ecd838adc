"""`pegboard proxy install`: points an agent at the proxy, after showing the change and asking.

What changes is decided in `config.installers.redirect` and written by `store.redirects`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pegboard.cli import output
from pegboard.cli.install import agreed, read_text
from pegboard.cli.proxy_places import RESTART_HINT, base_url, machine, proxy_config, proxy_of, upstreams_file
from pegboard.config.installers.agents import AGENTS, Agent, agent_named
from pegboard.config.installers.documents import parse
from pegboard.config.installers.redirect import FilePlan, Plan, Proxy, plan
from pegboard.config.installers.show import diff, hidden_values, is_cut
from pegboard.config.model import Config
from pegboard.errors import PegboardError
from pegboard.store.redirects import Redirects


def run(args: argparse.Namespace) -> int:
    """Plans, shows, asks and writes."""
    config = proxy_config(args)
    redirects = Redirects(config.state_dir)
    proxy = proxy_of(config)
    if args.agent is None:
        return _list(args, redirects, proxy)
    agent = agent_named(args.agent)
    if agent.files is None:
        return _tell_variables(args, agent, proxy)
    planned = _planned(args, agent, redirects, proxy)
    if not args.json:
        _show(planned)
    written = planned.is_needed and agreed(args)
    backups = redirects.apply(planned) if written else []
    if args.json:
        output.emit(_as_json(planned, backups, installed=written or not planned.is_needed))
    else:
        _tell(planned, backups, config, written=written)
    return 0


def _planned(args: argparse.Namespace, agent: Agent, redirects: Redirects, proxy: Proxy) -> Plan:
    target = upstreams_file(args)
    config = (target, read_text(redirects, target))
    return plan(agent, _texts(agent, redirects), proxy, config, redirects.journal().redirects_of(agent.id))


def _texts(agent: Agent, redirects: Redirects) -> Mapping[Path, str | None]:
    assert agent.files is not None  # asked only of agents that have some
    return {file: read_text(redirects, file) for file in agent.files(machine())}


def _show(planned: Plan) -> None:
    for each in _changes(planned):
        lines = _lines(each)
        for line in lines:
            output.say(output.printable(line))
        if any(is_cut(line) for line in lines):
            # In settings that are one long line, the change itself may be what was cut off.
            for setting in each.settings:
                output.say(output.printable(f"{setting.name} = {setting.value}"))
    for name, reason in planned.stays.items():
        output.warn(output.printable(f"{name} stays as it is: {reason.rstrip('.')}."))


def _changes(planned: Plan) -> Iterator[FilePlan]:
    yield from planned.files
    if planned.config is not None:
        yield planned.config


def _lines(change: FilePlan) -> list[str]:
    before = change.before or ""
    return diff(before, change.after, str(change.file), hidden_values(parse(before, change.format), ()))


def _tell(planned: Plan, backups: Sequence[Path | None], config: Config, *, written: bool) -> None:
    agent = planned.agent
    if not planned.is_needed:
        if planned.pointed:
            output.say(f"{agent.title} goes through the proxy already. There is nothing to do.")
        else:
            output.say(f"{agent.title} has no provider set up that could go through the proxy. Nothing was written.")
        return
    if not written:
        output.say("Nothing was written.")
        return
    for each, backup in zip(planned.files, backups, strict=True):
        output.say(
            f"{agent.title} goes through the proxy: {each.file}." + (f" Backup: {backup}" if backup is not None else "")
        )
    output.say(f"`pegboard proxy uninstall {agent.id}` takes it back. Restart {agent.title} for the change to count.")
    for note in (agent.note, RESTART_HINT):
        if note:
            output.say(note)
    _tell_proxy(planned, config)


def _tell_proxy(planned: Plan, config: Config) -> None:
    """An agent that is pointed at a proxy which is not there, or knows less, cannot work."""
    from pegboard.cli.proxy_process import running

    there = running(config.state_dir)
    if there is None:
        output.warn(f"The proxy is not running, and {planned.agent.title} needs it now: `pegboard proxy start`.")
        return
    if base_url(there.listen) != base_url(config.proxy.listen):
        output.warn(f"The proxy that runs listens on {there.listen}, and not on {config.proxy.listen}.")
    needed = {name for each in planned.files for name in each.upstreams}
    if unknown := sorted(needed - there.upstreams.keys()):
        names = ", ".join(unknown)
        output.warn(
            f"The proxy that runs does not know {names} yet: `pegboard proxy stop`, then `pegboard proxy start`."
        )


def _tell_variables(args: argparse.Namespace, agent: Agent, proxy: Proxy) -> int:
    """For what is told by its environment, the lines to paste; nothing is edited."""
    lines = {name: f"{proxy.base}/{upstream}{suffix}" for name, upstream, suffix in agent.variables}
    if args.json:
        output.emit({"agent": agent.id, "variables": lines, "note": agent.note})
        return 0
    for name, value in lines.items():
        output.say(f"export {name}={value}")
    if agent.note:
        output.warn(agent.note)
    return 0


def _as_json(planned: Plan, backups: Sequence[Path | None], *, installed: bool) -> dict[str, Any]:
    kept = iter(backups)
    return {
        "agent": planned.agent.id,
        "installed": installed and not (planned.stays and not planned.files and not planned.pointed),
        "files": [
            {
                "file": str(each.file),
                "settings": {setting.name: setting.value for setting in each.settings},
                "diff": _lines(each),
                "backup": None if (backup := next(kept, None)) is None else str(backup),
            }
            for each in planned.files
        ],
        "config": None if planned.config is None else str(planned.config.file),
        "upstreams": {setting.path[-1]: setting.value for setting in planned.config.settings} if planned.config else {},
        "pointed": planned.pointed,
        "stays": planned.stays,
        "note": planned.agent.note,
    }


# ── the list ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _list(args: argparse.Namespace, redirects: Redirects, proxy: Proxy) -> int:
    rows = [row for agent in AGENTS if agent.files is not None for row in _rows(args, agent, redirects, proxy)]
    if args.json:
        output.emit(rows)
        return 0
    if not rows:
        output.say("No agent's settings were found. The proxy can be put before:")
        output.say("  " + ", ".join(agent.id for agent in AGENTS))
        return 0
    output.table(("AGENT", "PROXY", "FILE"), [(row["agent"], row["state"], row["file"]) for row in rows])
    for row in rows:
        if row["problem"]:
            output.warn(output.printable(row["problem"]))
    return 0


def _rows(args: argparse.Namespace, agent: Agent, redirects: Redirects, proxy: Proxy) -> Iterator[dict[str, Any]]:
    row = {"agent": agent.id, "state": "?", "problem": ""}
    try:
        texts = _texts(agent, redirects)
        there = [file for file, text in texts.items() if text is not None]
        if not there and not redirects.journal().redirects_of(agent.id):
            return
        planned = _planned(args, agent, redirects, proxy)
    except PegboardError as error:
        yield {**row, "file": "", "problem": error.message}
        return
    state = "no" if not planned.pointed else "partly" if planned.files else "yes"
    for file in there:
        yield {**row, "state": state, "file": str(file)}
