"""`pegboard status`: servers, index, record and priors at a glance. Nothing is started, made or changed."""

from __future__ import annotations

import argparse
import time
from collections import Counter

import msgspec

from pegboard.catalog.catalog import Catalog
from pegboard.catalog.shelf import Shelf
from pegboard.cli import output
from pegboard.cli.context import load_config
from pegboard.config.model import Config
from pegboard.engine import load_catalog
from pegboard.store.facts import StoreFacts, facts_of
from pegboard.store.files import DiskFiles
from pegboard.store.sqlite import store_path
from pegboard.telemetry.upkeep import STALE_SECONDS
from pegboard.types import Json, ServerState


class Status(msgspec.Struct, kw_only=True):
    """All of it."""

    servers: dict[str, int]
    """How many there are in each state."""
    tools: int
    skills: dict[str, int] | None
    """How many there are, and how many problems; None where skills are off."""
    index: Json
    record: StoreFacts | None
    """None when nothing was ever recorded."""
    recording: bool
    priors_updated_at: float
    warnings: tuple[str, ...]


def configure(parser: argparse.ArgumentParser) -> None:
    """The command has no flags of its own."""


def run(args: argparse.Namespace) -> int:
    """Shows where everything stands."""
    config = load_config(args)
    status = _status(config, time.time())
    if args.json:
        output.emit(status)
        return 0
    for label, text in _lines(status, config):
        output.say(f"{label:8} {output.printable(text)}")
    for warning in status.warnings:
        output.warn(f"warning: {output.printable(warning)}")
    return 0


def _status(config: Config, now: float) -> Status:
    catalog, facts = load_catalog(config), facts_of(store_path(config))
    index = _index(config, catalog)
    return Status(
        servers=_states(config, catalog),
        tools=len(catalog.tools),
        skills=_skills(config),
        index=index,
        record=facts,
        recording=config.record.enabled,
        priors_updated_at=facts.priors_updated_at if facts else 0.0,
        warnings=(*config.warnings, *catalog.warnings, *_warnings(facts, index, now, recording=config.record.enabled)),
    )


def _states(config: Config, catalog: Catalog) -> dict[str, int]:
    shelf, states = Shelf(config, DiskFiles()), Counter[str]()
    for entry in catalog.servers.values():
        failed = entry.usable and shelf.error_of(config.servers[entry.name]) is not None
        states[ServerState.ERROR if failed else entry.resting_state] += 1
    return dict(sorted(states.items()))


def _skills(config: Config) -> dict[str, int] | None:
    if not config.skill_roots:
        return None
    from pegboard.skills.source import SkillSource

    found = SkillSource(config.skill_roots).look()
    return {"found": len(found.skills), "problems": len(found.problems)}


def _index(config: Config, catalog: Catalog) -> Json:
    from pegboard.index.keeper import keeper_of

    keeper = keeper_of(config)
    index, problem = keeper.open()
    if problem:
        return {"file": str(keeper.path), "state": "damaged", "problem": problem}
    if index is None:
        return {"file": str(keeper.path), "state": "missing"}
    state = "current" if keeper.current(index, catalog.version) else "out of date"
    return {"file": str(keeper.path), "state": state, "tools": index.parts.about.tools}


def _warnings(facts: StoreFacts | None, index: Json, now: float, *, recording: bool) -> list[str]:
    found = [f"The index is damaged: {index['problem']}"] if "problem" in index else []
    if facts is None:
        return found
    if facts.problem:
        return [*found, f"{facts.file}: {facts.problem} {facts.hint}"]
    if not facts.outcomes or not recording:
        return found
    if not facts.priors_updated_at:
        found.append("Priors were never worked out; `pegboard priors refresh` lets searches learn from past calls.")
    elif now - facts.priors_updated_at > STALE_SECONDS:
        found.append(
            f"Priors were last worked out {output.age(now - facts.priors_updated_at)} ago. `pegboard serve` does it "
            "now and then while it runs; `pegboard priors refresh` does it at once."
        )
    return found


def _lines(status: Status, config: Config) -> list[tuple[str, str]]:
    states = ", ".join(f"{count} {state}" for state, count in status.servers.items()) or "none configured"
    lines = [("servers", states), ("tools", f"{status.tools:,}")]
    if status.skills is not None:
        wrong = status.skills["problems"]
        told = f"; {wrong:,} problem{'' if wrong == 1 else 's'}, see `pegboard skills`" if wrong else ""
        lines.append(("skills", f"{status.skills['found']:,}{told}"))
    size = f", {status.index['tools']:,} tools" if "tools" in status.index else ""
    lines.append(("index", f"{status.index['state']}{size}: {status.index['file']}"))
    facts = status.record
    if facts is None:
        lines.append(("record", f"nothing yet; it will lie at {store_path(config)}"))
    else:
        kinds = ((facts.outcomes, "call", "s"), (facts.lookups, "search", "es"), (facts.exposures, "tool list", "s"))
        counts = ", ".join(f"{count:,} {one}{'' if count == 1 else more}" for count, one, more in kinds)
        lines.append(("record", f"{counts}, {facts.bytes / 1e6:.1f} MB: {facts.file}"))
    if not status.recording:
        lines.append(("", "recording is turned off (record.enabled)"))
    if facts is not None and facts.priors_updated_at:
        when = output.age(time.time() - facts.priors_updated_at)
        lines.append(("priors", f"{facts.priors:,} tool{'' if facts.priors == 1 else 's'}, worked out {when} ago"))
    else:
        lines.append(("priors", "never worked out"))
    return lines
