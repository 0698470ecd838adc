"""The `pegboard` command: parses the command line, imports the one module that does the work, prints its errors."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import msgspec

import pegboard
from pegboard.cli import output
from pegboard.errors import ArgumentsError, PegboardError

COMMANDS = {
    "servers": ("pegboard.cli.servers", "the roster: state, tools, age, last error and how to fix it"),
    "tools": ("pegboard.cli.tools", "all tools, from the cache; no server is started"),
    "show": ("pegboard.cli.show", "one tool with its whole definition"),
    "call": ("pegboard.cli.call", "call a tool; only its server is started"),
    "refresh": ("pegboard.cli.refresh", "ask servers for their tools and cache the answer"),
    "import": ("pegboard.cli.import_servers", "bring in servers that your agents already have"),
    "login": ("pegboard.cli.login", "sign in to a remote server that asks for OAuth"),
    "config": ("pegboard.cli.config", "check, show, or print the schema of the configuration"),
}
EXIT_ERROR = 1
EXIT_INTERRUPTED = 130


def run() -> None:
    """Entry point of the console script."""
    sys.exit(main(sys.argv[1:]))


def main(argv: list[str]) -> int:
    """Runs one command and returns its exit code; errors become words, never tracebacks."""
    try:
        args, module = _parse(argv)
        code: int = module.run(args)
        sys.stdout.flush()
    except PegboardError as error:
        _report(error, as_json="--json" in argv)
        return EXIT_ERROR
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader went away (`pegboard tools | head`): nothing more to say, and nothing to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def _parse(argv: list[str]) -> tuple[argparse.Namespace, ModuleType]:
    before = _parser().parse_args(argv)
    path, summary = COMMANDS[before.command]
    module = import_module(path)
    parser = argparse.ArgumentParser(prog=f"pegboard {before.command}", description=summary.capitalize() + ".")
    _add_shared_flags(parser)
    module.configure(parser)
    args = parser.parse_args(before.rest)
    args.config = before.config + args.config
    args.set = before.set + args.set
    args.json = before.json or args.json
    return args, module


def _parser() -> argparse.ArgumentParser:
    width = max(map(len, COMMANDS))
    parser = argparse.ArgumentParser(
        prog="pegboard",
        description="Hang ten thousand tools. Hand your agent the three it needs.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="commands:\n" + "\n".join(f"  {name:{width}}  {text}" for name, (_, text) in COMMANDS.items()),
    )
    parser.add_argument("--version", action="version", version=f"pegboard {pegboard.__version__}")
    _add_shared_flags(parser)
    parser.add_argument("command", choices=COMMANDS, metavar="command", help="one of the commands below")
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="...", help="what the command takes")
    return parser


def _add_shared_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config",
        "-c",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="read this, not the user's and the project's pegboard.toml; JSON with mcpServers will do; may repeat",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a key, as in gateway.max_starting=8",
    )
    parser.add_argument("--json", action="store_true", help="print JSON for scripts")


def _report(error: PegboardError, *, as_json: bool) -> None:
    if as_json:
        output.emit({"error": {"type": type(error).__name__, "message": error.message, "hint": error.hint}})
        return
    output.warn(f"pegboard: {error.message}")
    if error.hint:
        output.warn("  " + error.hint.replace("\n", "\n  "))
    if isinstance(error, ArgumentsError):
        output.warn(f"  It takes: {msgspec.json.encode(error.schema).decode()}")
