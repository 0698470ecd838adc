"""`pegboard call`: one call, with its progress, its questions and its result."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec

from pegboard.cli import output
from pegboard.cli.context import load_with_servers
from pegboard.config.model import Config
from pegboard.engine import Engine
from pegboard.errors import ArgumentsError, RemoteError
from pegboard.types import CallContext, Json, Progress, Tool
from pegboard.wire.messages import INVALID_PARAMS


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's own flags."""
    parser.add_argument("tool", help="public name, or bare name when only one server has it")
    parser.add_argument("arguments", nargs="?", default="{}", help="a JSON object; `-` reads stdin, `@FILE` a file")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="instead of the server's call_timeout")


def run(args: argparse.Namespace) -> int:
    """Calls, and prints the result. Exit code 1 when the tool says that it failed."""
    result = asyncio.run(_call(load_with_servers(args), args))
    if args.json:
        output.emit(result)
    else:
        _print(result)
    return 1 if result.get("isError") else 0


async def _call(config: Config, args: argparse.Namespace) -> Json:
    async with Engine(config, refresh=False) as engine:
        tool = await engine.find(args.tool)
        arguments = _arguments(args.arguments, tool)
        context = CallContext(
            timeout=args.timeout,
            on_progress=None if args.json else _show_progress,
            on_ask=_ask if sys.stdin.isatty() and args.arguments != "-" else None,
        )
        try:
            return await engine.call(tool.public_name, arguments, context)
        except RemoteError as error:
            if error.code != INVALID_PARAMS:
                raise
            raise ArgumentsError(error.message, tool.input_schema) from None


def _arguments(text: str, tool: Tool) -> Json:
    source = "the arguments"
    try:
        if text == "-":
            source, text = "stdin", sys.stdin.read()
        elif text.startswith("@"):
            source, text = text[1:], Path(text[1:]).read_text("utf-8")
        value = msgspec.json.decode(text)
    except OSError as error:
        raise ArgumentsError(f"{source} cannot be read: {error.strerror}", tool.input_schema) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        hint = 'Quote it for the shell, as in: pegboard call NAME \'{"key": "value"}\''
        raise ArgumentsError(f"{source} are not JSON: {error}", tool.input_schema, hint=hint) from None
    if not isinstance(value, dict):
        raise ArgumentsError(f"{source} must be a JSON object, not {_kind(value)}", tool.input_schema)
    return value


def _kind(value: object) -> str:
    kinds = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return kinds.get(type(value), "a number")


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


async def _ask(method: str, params: Json) -> Json:
    """A server's question, put to the person at the terminal."""
    if method != "elicitation/create":
        raise NotImplementedError(f"{method} cannot be answered on a terminal")
    return await asyncio.to_thread(_fill_in, params)


def _fill_in(params: Json) -> Json:
    output.warn(f"The server asks: {output.printable(str(params.get('message', '')))}")
    if params.get("mode") == "url":
        output.warn(f"It wants you to open {output.printable(str(params.get('url', '')))}")
        return {"action": "accept" if input("Opened? [y/N] ").lower().startswith("y") else "decline"}
    schema = params.get("requestedSchema")
    fields = schema.get("properties", {}) if isinstance(schema, dict) else {}
    content = {name: _one_answer(name, field) for name, field in fields.items() if isinstance(field, dict)}
    agreed = input("Send? [y/N] ").lower().startswith("y")
    given = {name: value for name, value in content.items() if value is not None}
    return {"action": "accept", "content": given} if agreed else {"action": "decline"}


def _one_answer(name: str, field: Json) -> Any:
    label = output.printable(str(field.get("title") or name))
    text = input(f"  {label}: ").strip() or field.get("default")
    if field.get("type") == "boolean" and isinstance(text, str):
        return text.lower() in ("y", "yes", "true", "1")
    if field.get("type") in ("integer", "number") and isinstance(text, str):
        return float(text) if field["type"] == "number" else int(text)
    return text
