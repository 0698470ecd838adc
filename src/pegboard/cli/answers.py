"""What a server asks during a call, put to the person at the terminal.

The terminal is read by the event loop and not by a thread: Ctrl-C must end a call that waits for an answer.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from pegboard.cli import output
from pegboard.types import Json, OnAsk

DECLINED: Json = {"action": "decline"}
CANCELLED: Json = {"action": "cancel"}
_YES = ("y", "yes", "true", "1")


async def answer(method: str, params: Json) -> Json:
    """The answer to one question. The end of the input (Ctrl-D) means that the person wants none of it."""
    if method != "elicitation/create":
        raise NotImplementedError(f"{method} cannot be answered on a terminal")
    try:
        return await _fill_in(params)
    except EOFError:
        return CANCELLED


def one_at_a_time(ask: OnAsk) -> OnAsk:
    """A server may ask several things at once; a person reads one after the other."""
    turn = asyncio.Lock()

    async def asked(method: str, params: Json) -> Json:
        async with turn:
            return await ask(method, params)

    return asked


async def _fill_in(params: Json) -> Json:
    output.warn(f"The server asks: {output.printable(str(params.get('message', '')))}")
    if params.get("mode") == "url":
        output.warn(f"It wants you to open {output.printable(str(params.get('url', '')))}")
        return {"action": "accept"} if await _agreed("Opened?") else DECLINED
    schema = params.get("requestedSchema")
    fields = schema.get("properties") if isinstance(schema, dict) else None
    content: Json = {}
    for name, field in fields.items() if isinstance(fields, dict) else ():
        value = await _one_answer(name, field if isinstance(field, dict) else {})
        if value is not None:
            content[name] = value
    return {"action": "accept", "content": content} if await _agreed("Send?") else DECLINED


async def _agreed(question: str) -> bool:
    return (await _line(f"{question} [y/N] ")).lower() in _YES


async def _one_answer(name: str, field: Json) -> Any:
    """A value of the kind the field wants; None when it is left empty and has no default."""
    label = output.printable(str(field.get("title") or name))
    choices = field.get("enum")
    if isinstance(choices, list) and choices:
        label += output.printable(f" ({', '.join(map(str, choices))})")
    while True:
        text = await _line(f"  {label}: ")
        if not text:
            return field.get("default")
        try:
            return _read(text, field)
        except ValueError:
            output.warn(f"  That is not {'a whole number' if field.get('type') == 'integer' else 'a number'}.")


def _read(text: str, field: Json) -> Any:
    kind = field.get("type")
    if kind == "boolean":
        return text.lower() in _YES
    if kind == "integer":
        return int(text)
    return float(text) if kind == "number" else text


async def _line(prompt: str) -> str:
    """One line from the terminal, which hands out whole lines."""
    output.prompt(prompt)
    loop = asyncio.get_running_loop()
    typed = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), typed.set)
    try:
        await typed.wait()
        text = sys.stdin.readline()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    if not text:
        raise EOFError
    return text.strip()
