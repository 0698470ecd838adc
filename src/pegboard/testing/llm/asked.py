"""One request as the stand-in for a model API sees it, and what it says no to.

Above: the rules and wires of `FakeLLM`. Below: nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from pegboard.types import Json


class Asked(msgspec.Struct, frozen=True):
    """A request: its body, the betas it names, and what was answered before, by id."""

    body: Json
    betas: frozenset[str] = frozenset()
    issued: Mapping[str, Json] = {}

    @property
    def model(self) -> str:
        """The model it is for."""
        return str(self.body.get("model", ""))

    @property
    def tools(self) -> list[Json]:
        """Its tools."""
        return objects(self.body.get("tools"))

    @property
    def messages(self) -> list[Json]:
        """Its messages."""
        return objects(self.body.get("messages"))


Rule = Callable[[Asked], str | None]
"""What is wrong with a request by one documented rule; None when nothing is."""


def first_refusal(rules: Iterable[Rule], asked: Asked) -> str | None:
    """What the first rule that is broken says."""
    return next((said for rule in rules if (said := rule(asked))), None)


def objects(value: Any) -> list[Json]:
    """The objects in a list; nothing when it is no list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def blocks(message: Json) -> list[Json]:
    """The content of a message as blocks."""
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)


class Segment(msgspec.Struct, frozen=True):
    """One piece of the prompt, in the order in which the API puts it together."""

    data: bytes
    is_marked: bool = False
    """Whether a cache breakpoint stands on it."""
    is_hour: bool = False
    """Whether what that caches lasts an hour, and not five minutes."""


def segment(value: Any, *, marked: bool = False, hour: bool = False) -> Segment:
    """A piece of the prompt; cache markers are no part of it."""
    return Segment(msgspec.json.encode(bare(value)), marked, hour)


def pieces(text: str, count: int = 3) -> Iterator[str]:
    """Text as a stream hands it out."""
    step = max(1, -(-len(text) // count))
    yield from (text[at : at + step] for at in range(0, len(text), step))


def bare(value: Any) -> Any:
    """The value without cache markers, wherever they stand in it."""
    if isinstance(value, dict):
        return {key: bare(each) for key, each in value.items() if key != "cache_control"}
    return [bare(each) for each in value] if isinstance(value, list) else value


def unique(names: Sequence[str]) -> bool:
    """Whether no name is there twice."""
    return len(set(names)) == len(names)


def openai_error(message: str, status: int, *, param: str | None = None, code: str | None = None) -> Json:
    """The body of an error as OpenAI's wires have it."""
    kinds = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}
