"""`pegboard call`: one call, with its progress, its questions and its result."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

import msgspec

from pegboard.cli import output
from pegboard.cli.answers import answer, one_at_a_time
from pegboard.cli.context import load_with_servers, seconds
from pegboard.config.model import Config
from pegboard.engine import Engine
from pegboard.errors import ArgumentsError, RemoteError
from pegboard.invoke.arguments import kind_of, misfits
from pegboard.types import CallContext, Caller, Json, Progress, Tool
from pegboard.wire.messages import INVALID_PARAMS


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's own flags."""
    parser.add_argument("tool", help="public name, or bare name when only one server has it")
    parser.add_argument("arguments", nargs="?", default="{}", help="a JSON object; `-` reads stdin, `@FILE` a file")
    parser.add_argument("--timeout", type=seconds, metavar="SECONDS", help="instead of the server's call_timeout")


def run(args: argparse.Namespace) -> int:
    """Calls, and prints the result. Exit code 1 when the tool says that it failed."""
    result, tool, arguments = asyncio.run(_call(load_with_servers(args), args))
    if args.json:
        output.emit(result)
    else:
        _print(result)
        if result.get("isError"):
            _print_misfits(arguments, tool)
    return 1 if result.get("isError") else 0


async def _call(config: Config, args: argparse.Namespace) -> tuple[Json, Tool, Json]:
    async with Engine(config, refresh=False, approve=_approved if sys.stdin.isatty() else None) as engine:
        tool = await engine.find(args.tool)
        arguments = _arguments(args.arguments, tool)
        context = CallContext(
            timeout=args.timeout,
            on_progress=None if args.json else _show_progress,
            on_ask=one_at_a_time(answer) if sys.stdin.isatty() and args.arguments != "-" else None,
        )
        try:
            return await engine.call(tool.public_name, arguments, context, via="cli"), tool, arguments
        except RemoteError as error:
            if error.code != INVALID_PARAMS:
                raise
            raise ArgumentsError(error.message, tool.input_schema) from None


async def _approved(tool: Tool, arguments: Json, _: Caller) -> bool:
    """Asks the person at the terminal about a call that needs approval."""
    shown = output.printable(msgspec.json.encode(arguments).decode())
    output.warn(f"{tool.public_name} needs approval. Arguments: {shown}")
    said = await asyncio.to_thread(input, "Call it? [y/N] ")
    return said.strip().lower() in ("y", "yes")


def _arguments(text: str, tool: Tool) -> Json:
    source = "stdin" if text == "-" else text[1:] if text.startswith("@") else ""
    where = f"The arguments in {source}" if source else "The arguments"
    try:
        if text == "-":
            text = sys.stdin.read()
        elif source:
            text = Path(source).read_text("utf-8")
        value = msgspec.json.decode(text)
    except OSError as error:
        raise ArgumentsError(f"{where} cannot be read: {error.strerror}.", tool.input_schema) from None
    except (msgspec.DecodeError, UnicodeError) as error:
        hint = "" if source else 'Quote it for the shell, as in: pegboard call NAME \'{"key": "value"}\''
        raise ArgumentsError(f"{where} are not JSON: {error}.", tool.input_schema, hint=hint) from None
    if not isinstance(value, dict):
        raise ArgumentsError(f"{where} must be a JSON object, not {kind_of(value)}.", tool.input_schema)
    return value


def _show_progress(progress: Progress) -> None:
    share = f"{progress.progress:g}" + (f" of {progress.total:g}" if progress.total else "")
    output.warn(f"… {share} {output.printable(progress.message)}".rstrip())


def _print(result: Json) -> None:
    content = result.get("content")
    texts = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    for block in texts:
        if block.get("type") == "text" and isinstance(block.get("text"), str):
            output.say(output.printable(block["text"]))
        else:
            output.emit(block)
    if not texts and result.get("structuredContent") is not None:
        output.emit(result["structuredContent"])


def _print_misfits(arguments: Json, tool: Tool) -> None:
    """The call failed: say so if it is the arguments. Only now, because the schema we know may be out of date."""
    found = misfits(arguments, tool.input_schema)
    if found:
        output.warn(f"pegboard: The arguments do not fit: {output.printable('; '.join(found))}.")
        output.warn(f"  It takes: {output.printable(msgspec.json.encode(tool.input_schema).decode())}")
