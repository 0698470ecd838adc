"""`pegboard doctor`: where tool definitions are paid for in vain, and why; its actions mend, undo and prove it.

Its exit code is 0 whether something was found or not, and 1 when it could not look.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import Any

from pegboard.cli.doctor_examine import add_flags

ACTIONS: dict[str, tuple[str, str]] = {
    "plan": ("pegboard.cli.doctor_plan", "show the very change that would mend each finding; nothing is written"),
    "apply": ("pegboard.cli.doctor_apply", "make these changes, each with a backup, after asking"),
    "undo": ("pegboard.cli.doctor_undo", "give the files of a change their bytes back"),
    "verify-endpoint": (
        "pegboard.cli.doctor_verify",
        "ask an endpoint with one tiny request whether it takes deferral",
    ),
    "report": ("pegboard.cli.doctor_report", "what each applied change brought since, and how sure that is"),
}
"""Each action's module, with `configure` and `run` as a command has, and its summary."""


def configure(parser: argparse.ArgumentParser) -> None:
    """The actions. What each takes is asked of its module once it was chosen."""
    add_flags(parser, is_action=False)
    parser.description = f"{parser.description} Exits with 0 whether something was found or not."
    actions = parser.add_subparsers(
        dest="action", metavar="action", parser_class=_ActionParser, title="actions; without one, findings are shown"
    )
    for name, (module, summary) in ACTIONS.items():
        actions.add_parser(name, help=summary, description=summary.capitalize() + ".", module=module)


def run(args: argparse.Namespace) -> int:
    """Does what the action says, or shows what is found."""
    module = ACTIONS[args.action][0] if args.action else "pegboard.cli.doctor_findings"
    code: int = import_module(module).run(args)
    return code


class _ActionParser(argparse.ArgumentParser):
    """An action's own parser, which takes the flags of all commands too and imports its module when it is used."""

    def __init__(self, *, module: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._module = module

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Asks the module for its flags first, so that the others need not be imported."""
        _add_shared_flags(self)
        import_module(self._module).configure(self)
        return super().parse_known_args(args, namespace)


def _add_shared_flags(parser: argparse.ArgumentParser) -> None:
    """Those of every command; what is not said leaves what was said before the action."""
    nothing = argparse.SUPPRESS
    parser.add_argument(
        "--config", "-c", type=Path, action="append", default=nothing, metavar="FILE", help="read this configuration"
    )
    parser.add_argument("--set", action="append", default=nothing, metavar="KEY=VALUE", help="override a key")
    parser.add_argument("--json", action="store_true", default=nothing, help="print JSON for scripts")
