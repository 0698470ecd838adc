"""Failures as results that a model can act on: what happened, to what, what to do. The turn goes on.

A hint that an error carries is for the person at the command line, and may quote what a server wrote on stderr or where
our files lie; a model gets words of its own. Above: `path`. Below: the errors.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pegboard.errors import (
    ArgumentsError,
    AuthRequired,
    CallRefused,
    CallTimeout,
    ConnectionLost,
    HandleUnknown,
    LimitExceeded,
    PegboardError,
    RemoteError,
    ServerUnavailable,
    SkillNotFound,
    SkillUnreadable,
    StartFailed,
    ToolNotFound,
)
from pegboard.invoke.cut import head_end
from pegboard.invoke.visible import visible
from pegboard.types import Ending, Json

ENDING = "pegboard/ending"
REPAIRS = "pegboard/repairs"
SCHEMA_BYTES = 8_000
_MESSAGE = 2_000
_WRONG = 10
_REST_WORKS = "All other tools still work."
_SAY: dict[type[PegboardError], str] = {
    StartFailed: f"Its tools cannot be used until that is mended; tell the user. {_REST_WORKS}",
    ServerUnavailable: f"Its tools cannot be used now; tell the user if you need them. {_REST_WORKS}",
    CallTimeout: "It may have done its work all the same: look before you call it again. "
    "If it may take long, ask for less at once.",
    ConnectionLost: "It may have done its work all the same: look before you call it again. "
    "The server is started anew with the next call.",
    LimitExceeded: "Ask for less at once: a smaller limit, a filter, a page.",
    RemoteError: "Change the call if the message says how, else use another tool.",
}
"""What a model can do about each, the first that matches; subclasses come before what they are made of."""


def failure(text: str, ending: Ending) -> Json:
    """A result that says what went wrong."""
    return {"content": [{"type": "text", "text": text}], "isError": True, "_meta": {ENDING: ending.value}}


def ending_of(error: PegboardError) -> Ending:
    """How a call ended that ended with this error."""
    if isinstance(error, ToolNotFound | SkillNotFound):
        return Ending.NOT_FOUND
    if isinstance(error, CallRefused):
        return Ending.REFUSED
    if isinstance(error, ArgumentsError | HandleUnknown | SkillUnreadable):
        return Ending.BAD_ARGUMENTS
    return Ending.TIMEOUT if isinstance(error, CallTimeout) else Ending.SERVER_ERROR


def told(error: PegboardError) -> str:
    """The error in words for a model."""
    message = capped(error.message, _MESSAGE)
    return f"{message} {_advice(error)}".rstrip()


def wrong_arguments(name: str, wrong: Sequence[str], schema: Json) -> str:
    """What is wrong with each argument, and what the tool takes, so that the next call is right."""
    more = f"\n- and {len(wrong) - _WRONG} more" if len(wrong) > _WRONG else ""
    listed = "".join(f"\n- {capped(each, 300)}" for each in wrong[:_WRONG])
    return f"{name} was not called: its arguments do not fit.{listed}{more}\n{takes(schema)}"


def takes(schema: Json) -> str:
    """The schema as text, as much of it as is reasonable."""
    return f"It takes: {capped(msgspec.json.encode(schema).decode(), SCHEMA_BYTES)}"


def mended_in_vain(repairs: Sequence[str]) -> str:
    """One line for a call that failed after its arguments were changed."""
    return f"[Pegboard changed the arguments before the call: {capped('; '.join(repairs), 500)}]"


def with_repairs(result: Json, repairs: Sequence[str]) -> Json:
    """The result with a note of what was mended: for programs always, for the model only when the call failed."""
    if not repairs:
        return result
    meta = result.get("_meta")
    noted = {**result, "_meta": {**(meta if isinstance(meta, dict) else {}), REPAIRS: list(repairs)}}
    if not result.get("isError"):
        return noted
    content = result.get("content")
    line = {"type": "text", "text": mended_in_vain(repairs)}
    return {**noted, "content": [*(content if isinstance(content, list) else ()), line]}


def capped(text: str, limit: int) -> str:
    """Text that may be of a server's choosing: visible, and no longer than so many bytes."""
    end = head_end(text, 0, len(text), limit)
    return visible(text, 0, end) + ("…" if end < len(text) else "")


def _advice(error: PegboardError) -> str:
    if isinstance(error, ToolNotFound):
        near = f"Did you mean {', '.join(error.nearest)}? " if error.nearest else ""
        return f"{near}search_tools finds tools by what they do."
    if isinstance(error, AuthRequired):
        return f"The user has to sign in: `pegboard login {error.server}`. {_REST_WORKS}"
    for kind, words in _SAY.items():
        if isinstance(error, kind):
            return words
    # Only these are raised here, with hints in words for a model; any other hint may quote a server's stderr.
    ours = isinstance(error, CallRefused | HandleUnknown | ArgumentsError | SkillNotFound | SkillUnreadable)
    return capped(error.hint, _MESSAGE) if ours else _REST_WORKS
