"""Where the tables and values of a YAML file stand, by offsets; and what they say.

Above: `edit_yaml`. Below: PyYAML, whose events carry positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import yaml  # type: ignore[import-untyped]

from pegboard.errors import ConfigError

DEEPEST = 100
"""No settings nest deeper, and no reader may run out of stack."""
_HINT = "Mend the file first."


class Member(msgspec.Struct, frozen=True):
    """One key of a table with its value; keys that are no texts have no name."""

    name: str | None
    start: int
    value: Node

    @property
    def end(self) -> int:
        """Where its value ends; that of a table where its last value does."""
        return self.value.last


class Node(msgspec.Struct, frozen=True):
    """A value: a table has members, anything else has None."""

    start: int
    end: int
    last: int
    """Where the last thing in it ends, comments and blank lines behind that aside."""
    members: tuple[Member, ...] | None = None
    is_flow: bool = False


def values(text: str) -> Any:
    """What the text says; None when it says nothing."""
    try:
        return yaml.load(text, Loader=_loader())  # noqa: S506 - a safe loader
    except RecursionError:
        raise ConfigError("It nests too deeply.", hint=_HINT) from None
    except (yaml.YAMLError, ValueError) as error:
        # ValueError: a date that no calendar has.
        raise ConfigError(f"This is not valid YAML{_place(error)}.", hint=_HINT) from None


def root(text: str) -> Node | None:
    """The table that the text is; None when the text says nothing."""
    try:
        events = yaml.parse(text, Loader=_loader())
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                node = _node(next(events), events, 0)
                return None if node.start == node.end and node.members is None else node
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"This is not valid YAML{_place(error)}.", hint=_HINT) from None
    return None


def _loader() -> Any:
    # The one in C counts bytes in its marks, and is of no use for positions.
    return yaml.SafeLoader


def _node(event: Any, events: Iterator[Any], depth: int) -> Node:
    if depth > DEEPEST:
        raise ConfigError("It nests too deeply.", hint=_HINT)
    start, end = event.start_mark.index, event.end_mark.index
    if isinstance(event, yaml.MappingStartEvent):
        return _table(event, events, depth)
    if isinstance(event, yaml.SequenceStartEvent):
        last = end
        for inner in events:
            end = inner.end_mark.index
            if isinstance(inner, yaml.SequenceEndEvent):
                break
            last = _node(inner, events, depth + 1).last
        return Node(start, end, end if event.flow_style else last)
    return Node(start, end, end)


def _table(event: Any, events: Iterator[Any], depth: int) -> Node:
    start, end, last = event.start_mark.index, event.end_mark.index, event.end_mark.index
    members: list[Member] = []
    for inner in events:
        end = inner.end_mark.index
        if isinstance(inner, yaml.MappingEndEvent):
            break
        key = _node(inner, events, depth + 1)
        name = inner.value if isinstance(inner, yaml.ScalarEvent) else None
        value = _node(next(events), events, depth + 1)
        members.append(Member(name, key.start, value))
        last = value.last
    return Node(start, end, end if event.flow_style else last, tuple(members), bool(event.flow_style))


def _place(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
    return f", line {mark.line + 1}: {problem}" if mark is not None else f": {problem}"
