"""`pegboard proxy start | stop | status | install | uninstall`: the proxy before a model's API, and living with it."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import Any

_WITH_AGENT = "such as opencode; without one, those found are listed"


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's actions, and what each takes."""
    actions = parser.add_subparsers(dest="action", metavar="action", required=True)
    start = _action(actions, "start", "begin to listen; runs until Ctrl-C, or in the background")
    start.add_argument("--background", "-b", action="store_true", help="run on when the terminal is closed")
    start.add_argument("--listen", metavar="HOST:PORT", help="listen here, not where [proxy] listen says")
    start.add_argument("--detached", action="store_true", help=argparse.SUPPRESS)
    _action(actions, "stop", "end it, wherever it was started")
    status = _action(actions, "status", "what it has done so far, or how agents work without it")
    status.add_argument("--watch", "-w", action="store_true", help="show it again every second, until Ctrl-C")
    install = _action(actions, "install", "point an agent at the proxy")
    install.add_argument("agent", nargs="?", metavar="AGENT", help=_WITH_AGENT)
    install.add_argument("--yes", "-y", action="store_true", help="do not ask")
    install.add_argument("--dry-run", action="store_true", help="show what would change; write nothing")
    uninstall = _action(actions, "uninstall", "point an agent at its model's API again")
    uninstall.add_argument("agent", metavar="AGENT", help="such as opencode")
    uninstall.add_argument("--dry-run", action="store_true", help="say what would be taken back; write nothing")


def run(args: argparse.Namespace) -> int:
    """Does what the action says."""
    module = import_module(f"pegboard.cli.proxy_{args.action}")
    code: int = module.run(args)
    return code


def _action(actions: Any, name: str, summary: str) -> argparse.ArgumentParser:
    """An action's own parser, which takes the flags of all commands too."""
    parser: argparse.ArgumentParser = actions.add_parser(name, help=summary, description=summary.capitalize() + ".")
    nothing = argparse.SUPPRESS
    parser.add_argument(
        "--config", "-c", type=Path, action="append", default=nothing, metavar="FILE", help="read this configuration"
    )
    parser.add_argument("--set", action="append", default=nothing, metavar="KEY=VALUE", help="override a key")
    parser.add_argument("--json", action="store_true", default=nothing, help="print JSON for scripts")
    return parser
