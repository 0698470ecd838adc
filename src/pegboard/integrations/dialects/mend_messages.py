"""A Messages history that was trimmed, compacted or begun on another model, made fit to be sent again.

The API refuses results without their call, calls without their result, and a first turn that is not the user's.
Above: the Anthropic plug-in. Below: `plain`. Pure; what needs no mending comes back as it was.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from pegboard.integrations.dialects.plain import dicts, plain
from pegboard.types import Json

LOST = "(The result of this call was not kept.)"


def mended(messages: Sequence[Any], *, references: bool = True) -> list[Any]:
    """The history as the API takes it; without `references`, names of loaded tools take their place."""
    kept: list[Any] = []
    asked: dict[str, None] = {}
    """Calls of the turn before that have no result yet."""
    for at, message in enumerate(messages):
        role = _role(message)
        if role == "assistant":
            if not kept:
                continue
            asked |= dict.fromkeys(_ids(message, "tool_use", "id"))
            kept.append(message)
        elif role == "user":
            later = _answered_later(messages[at:]) if asked else set()
            turn = _answering(message, [each for each in asked if each not in later], references=references)
            if turn is not None:
                # What a system's message says between two turns of the user's stands after both.
                kept.insert(len(kept) - (bool(kept) and _role(kept[-1]) == "system"), turn)
                asked = {each: None for each in asked if each in later}
        elif kept and _role(kept[-1]) == "user":  # a system's message may stand nowhere else
            system = message if references else _without_additions(message)
            kept += [system] if system is not None else []
    return kept


def _answered_later(messages: Sequence[Any]) -> set[str]:
    """Calls that the user's messages right after the first answer: to the API they are one turn, results first."""
    found: set[str] = set()
    for before, message in itertools.pairwise(messages):
        if _role(message) != "user" or any(block.get("type") != "tool_result" for block in _blocks(before)):
            break
        found.update(_ids(message, "tool_result", "tool_use_id"))
    return found


def _without_additions(message: Any) -> Any | None:
    """A system's message without the tools it adds; None when it says nothing else."""
    rest = [block for block in _blocks(message) if block.get("type") not in ("tool_addition", "tool_removal")]
    if len(rest) == len(_blocks(message)):
        return message
    return {**plain(message), "content": rest} if rest else None


def _answering(message: Any, asked: Sequence[str], *, references: bool) -> Any | None:
    """A user's turn with exactly one result for each call before it; None when nothing is left of it."""
    results = _ids(message, "tool_result", "tool_use_id")
    missing = [each for each in asked if each not in results]
    odd = len(results) != len(set(results)) or any(each not in asked for each in results)
    refers = not references and any(_refers(block) for block in _blocks(message))
    if not (missing or odd or refers):
        return message
    told: list[Json] = [_lost(each) for each in missing]
    rest: list[Json] = []
    open_ids = set(asked)
    for block in _blocks(message):
        if block.get("type") != "tool_result":
            rest.append(block)
        elif block.get("tool_use_id") in open_ids:
            open_ids.discard(str(block.get("tool_use_id")))
            told.append(block if references else _in_words(block))
    content = [*told, *rest]
    return {**plain(message), "content": content} if content else None


def _in_words(block: Json) -> Json:
    """A result whose references are spelled out."""
    if not _refers(block):
        return block
    spelled = [
        {"type": "text", "text": f"Found: {each.get('tool_name')}"} if each.get("type") == "tool_reference" else each
        for each in dicts(block.get("content"))
    ]
    return {**block, "content": spelled}


def _refers(block: Json) -> bool:
    return any(each.get("type") == "tool_reference" for each in dicts(block.get("content")))


def _lost(call_id: str) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": LOST, "is_error": True}


def _role(message: Any) -> str:
    return str(message.get("role") if isinstance(message, dict) else getattr(message, "role", ""))


def _blocks(message: Any) -> list[Json]:
    content = message.get("content") if isinstance(message, dict) else getattr(message, "content", None)
    return [{"type": "text", "text": content}] if isinstance(content, str) and content else dicts(content)


def _ids(message: Any, kind: str, key: str) -> list[str]:
    return [str(block.get(key)) for block in _blocks(message) if block.get("type") == kind]
