"""What the messages of a conversation say: which tools it has loaded, and which calls are still without an answer.

Where it is asked for, what is loaded goes with each result, beside what the model reads: a history that is stored, cut
back or branched has with it what was loaded at that point. Above: `toolset`. Below: the framework's messages.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolReturnPart

from pegboard.board.state import merged
from pegboard.types import Json

KEY = "pegboard"


def metadata(toolset: str, state: bytes | None, structured: Any) -> Json | None:
    """What goes with a result beside what the model reads: nothing of it is ever sent."""
    about: Json = {} if structured is None else {"structured_content": structured}
    if state is not None:
        about[KEY] = {"toolset": toolset, "state": b64encode(state).decode()}
    return about or None


def state_in(messages: Sequence[ModelMessage], toolset: str) -> bytes | None:
    """What was loaded after the last of these messages that tells; calls made at once count together."""
    for message in reversed(messages):
        states = list(_states(message, toolset))
        if states:
            return reduce(merged, states)
    return None


def unanswered(messages: Sequence[ModelMessage]) -> list[str]:
    """Names that the last message calls: a run that goes on from there, after an approval, has them still to do."""
    last = messages[-1] if messages else None
    if not isinstance(last, ModelResponse):
        return []
    return [spelling for call in last.tool_calls for spelling in spellings(call.tool_name)]


def spellings(name: str) -> list[str]:
    """The name, and what is left of it without the words that a wrapper may have put before it."""
    ends = [number for number, character in enumerate(name) if character == "_"]
    return list(dict.fromkeys(each for each in (name, *(name[end + 1 :] for end in ends)) if each))


def _states(message: ModelMessage, toolset: str) -> Iterator[bytes]:
    for part in message.parts if isinstance(message, ModelRequest) else ():
        beside = part.metadata if isinstance(part, ToolReturnPart) else None
        about = beside.get(KEY) if isinstance(beside, dict) else None
        if isinstance(about, dict) and about.get("toolset") == toolset and isinstance(about.get("state"), str):
            yield _decoded(about["state"])


def _decoded(state: str) -> bytes:
    try:
        return b64decode(state, validate=True)
    except ValueError:
        return b""
