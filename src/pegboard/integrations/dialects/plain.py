"""What an SDK hands out, as plain JSON; and what every dialect reads out of it: calls.

Above: the dialects. Below: nothing. No SDK is imported: an object that can dump itself is asked to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from pegboard.types import Json


class Call(msgspec.Struct, frozen=True):
    """A tool call that a model made."""

    id: str
    name: str
    arguments: Any
    problem: str = ""
    """Why it must not be run as it stands; empty when it may."""
    is_search: bool = False
    """Made with the wire's own search, not with a function."""


def plain(value: Any) -> Any:
    """The value as JSON types, whether it is plain already or an SDK's object."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json", by_alias=True, exclude_unset=True)
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


def dicts(value: Any) -> list[Json]:
    """The objects in a list, as plain JSON; nothing when it is no list."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        return []
    return [each for each in map(plain, value) if isinstance(each, dict)]


def arguments_of(text: Any) -> tuple[Any, str]:
    """Arguments that came as JSON text, and what is wrong with it. No text at all is no arguments."""
    if not isinstance(text, str):
        return text, ""
    if not text.strip():
        return {}, ""
    try:
        return json.loads(text), ""
    except (ValueError, RecursionError) as error:
        return text, f"Not run: its arguments are not JSON ({error}). Send them again, as one JSON object."
