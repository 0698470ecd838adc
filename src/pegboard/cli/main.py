"""The `pegboard` command: parses the command line, imports the one module that does the work, prints its errors."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from types import ModuleType

import msgspec

import pegboard
from pegboard.cli import output
from pegboard.errors import ArgumentsError, ConfigError, PegboardError, ServerNotFound, SkillNotFound, ToolNotFound
from pegboard.index.blas import on_one_core

COMMANDS = {
    "serve": ("pegboard.cli.serve", "put all servers behind one small MCP surface, on stdio or HTTP"),
    "servers": ("pegboard.cli.servers", "the roster: state, tools, age, last error and how to fix it"),
    "tools": ("pegboard.cli.tools", "all tools, from the cache; no server is started"),
    "search": ("pegboard.cli.search", "the tools that can do what you say, best first; no server is started"),
    "skills": ("pegboard.cli.skills", "the skills that agents may load; show prints one, or one of its files"),
    "show": ("pegboard.cli.show", "one tool with its whole definition"),
    "call": ("pegboard.cli.call", "call a tool; only its server is started"),
    "refresh": ("pegboard.cli.refresh", "ask servers for their tools and cache the answer"),
    "context": ("pegboard.cli.conversation", "what a conversation has loaded, what is pinned and deferred, in tokens"),
    "index": ("pegboard.cli.index", "build, inspect or verify what `search` searches"),
    "eval": ("pegboard.cli.eval", "measure how well tools are found, on your queries or your intents"),
    "status": ("pegboard.cli.status", "servers, index, record and priors at a glance"),
    "stats": ("pegboard.cli.stats", "what was saved, net of what searching cost, and how searching goes"),
    "priors": ("pegboard.cli.priors", "what past calls say of each tool; refresh works it out anew"),
    "import": ("pegboard.cli.import_servers", "bring in servers that your agents already have"),
    "install": ("pegboard.cli.install", "put Pegboard into a client, and the client's servers behind it"),
    "uninstall": ("pegboard.cli.uninstall", "take Pegboard out of a client, and put its servers back"),
    "proxy": ("pegboard.cli.proxy", "defer tools for agents that cannot: a proxy before their model's API"),
    "doctor": ("pegboard.cli.doctor", "where tool definitions are paid for in vain, and why; mends it and proves it"),
    "login": ("pegboard.cli.login", "sign in to a remote server that asks for OAuth"),
    "config": ("pegboard.cli.config", "check, show, or print the schema of the configuration"),
}
EXIT_ERROR = 1
EXIT_INTERRUPTED = 130


def run() -> None:
    """Entry point of the console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a letter still gets the rest
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
        _discard_output()
        return 0
    except OSError as error:
        _report(_system_error(error), as_json=False)
        _discard_output()
        return EXIT_ERROR
    return code


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _system_error(error: OSError) -> PegboardError:
    """What the system would not let us do, in words: a full disk behind `>`, most often."""
    reason = error.strerror or str(error)
    return PegboardError(f"{error.filename}: {reason}" if error.filename else f"The output cannot be written: {reason}")


def _parse(argv: list[str]) -> tuple[argparse.Namespace, ModuleType]:
    before = _parser().parse_args(argv)
    path, summary = COMMANDS[before.command]
    module = _imported(path)
    parser = argparse.ArgumentParser(prog=f"pegboard {before.command}", description=summary.capitalize() + ".")
    _add_shared_flags(parser)
    module.configure(parser)
    args = parser.parse_args(before.rest)
    args.config = before.config + args.config
    args.set = before.set + args.set
    args.json = before.json or args.json
    return args, module


def _imported(path: str) -> ModuleType:
    """The command's module."""
    with on_one_core():
        return import_module(path)


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
        output.emit(
            {"error": {"type": type(error).__name__, "message": error.message, "hint": error.hint, **_more(error)}}
        )
        return
    output.warn(f"pegboard: {output.printable(error.message)}")
    if error.hint:
        output.warn("  " + output.printable(error.hint).replace("\n", "\n  "))
    if isinstance(error, ArgumentsError):
        output.warn(f"  It takes: {output.printable(msgspec.json.encode(error.schema).decode())}")


def _more(error: PegboardError) -> dict[str, object]:
    """What a script can use besides the words."""
    if isinstance(error, ArgumentsError):
        return {"schema": error.schema}
    if isinstance(error, ConfigError):
        return {"problems": error.problems}
    return {"nearest": error.nearest} if isinstance(error, ServerNotFound | ToolNotFound | SkillNotFound) else {}
