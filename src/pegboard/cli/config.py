"""`pegboard config check | show | schema`: is the configuration right, what does it amount to, what may it say."""

from __future__ import annotations

import argparse

import msgspec

from pegboard.catalog.naming import refused_servers
from pegboard.cli.context import load_config
from pegboard.cli.output import emit, say
from pegboard.config.load import Examination, examine
from pegboard.config.problems import Problem, key_text


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument(
        "action",
        choices=("check", "show", "schema"),
        help="check: every problem, with file and line; show: what holds after all layers; schema: every key",
    )


def run(args: argparse.Namespace) -> int:
    """Does what the action says."""
    actions = {"check": _check, "show": _show, "schema": _schema}
    return actions[args.action](args)


def _check(args: argparse.Namespace) -> int:
    examination = examine(files=args.config, overrides=args.set)
    unusable = _unusable(examination)
    problems = [*examination.problems, *unusable]
    config = examination.config
    if args.json:
        emit(
            {
                "ok": not problems,
                "problems": msgspec.to_builtins(problems),
                "warnings": config.warnings,
                "files": [str(path) for path in config.files],
                "servers": len(config.servers),
            }
        )
    else:
        for problem in examination.problems:
            say(str(problem))
        for problem in unusable:
            say(_placed(problem))
        for warning in config.warnings:
            say(f"warning: {warning}")
        say(_verdict(examination, len(problems)))
    return 1 if problems else 0


def _placed(problem: Problem) -> str:
    """Most messages name their file and line already; one about a server's name does not."""
    text = f"{problem.key}: {problem.message}"
    return text if problem.where in problem.message else f"{problem.where}: {text}"


def _unusable(examination: Examination) -> list[Problem]:
    """Servers that would be in state `error`."""
    servers = examination.config.servers
    refused = refused_servers(servers)
    return [
        Problem(where=str(spec.origin or ""), key=key_text(("servers", name)), message=reason)
        for name, spec in servers.items()
        if (reason := spec.problem or refused.get(name, ""))
    ]


def _verdict(examination: Examination, problems: int) -> str:
    if problems:
        return f"{problems} problem{'s' if problems > 1 else ''}."
    config = examination.config
    if not config.files:
        return "No configuration file was found; what is built in holds."
    off = sum(not spec.config.enabled for spec in config.servers.values())
    servers = f"{len(config.servers)} server{'' if len(config.servers) == 1 else 's'}"
    return f"No problems: {servers}{f', {off} disabled' if off else ''}, from {', '.join(map(str, config.files))}."


def _show(args: argparse.Namespace) -> int:
    from pegboard.config import show

    config = load_config(args)
    if args.json:
        emit(show.masked(config))
    else:
        say(show.as_toml(config))
    return 0


def _schema(_args: argparse.Namespace) -> int:
    from pegboard.config.schema import schema

    emit(schema())
    return 0
