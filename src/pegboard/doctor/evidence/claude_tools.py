"""Which tools the requests of a Claude Code session had, and whether they were deferred.

A request's own array is the best proof: there is a search tool or a definition marked as deferred, or there is not.
`Trace` follows such arrays through a session. Above: `claude`. Below: `tool_table` and the estimate of tokens.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from pegboard.doctor.evidence.names import name_of, server_of
from pegboard.doctor.evidence.tables import Tables
from pegboard.doctor.facts import Definition
from pegboard.surface.tokens import WORD_PIECES

SEARCH = "ToolSearch"
_PLACEHOLDER = "DeferredToolPlaceholder"
_MAIN = 5
"""A request with fewer tools and no search is one on the side: it names a conversation, or judges for a hook."""
_CORE = frozenset({"Agent", "Bash", "Edit", "Read", "Task", "Write"})
_REMEMBERED = 32
"""Arrays of one session that later requests may still refer to."""
_ARRAYS = 256
_TOOLS_CAP = 10_000
"""Of one array: more the API does not take."""
_NOTHING = msgspec.Raw(b"")


class _Tool(msgspec.Struct, gc=False):
    """A definition in a request or a snapshot; texts stay what they are, bytes."""

    name: str = ""
    description: msgspec.Raw = _NOTHING
    input_schema: msgspec.Raw = _NOTHING
    schema: msgspec.Raw = _NOTHING
    defer_loading: bool | None = None


class Array(msgspec.Struct, array_like=True):
    """The tools of one request: whether it defers, and its definitions as numbers of the table."""

    on: bool = False
    tools: list[int] = []


class Arrays:
    """Understands arrays of tools. Most are alike, so what was counted once is not counted again."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._decode = msgspec.json.Decoder(list[msgspec.Raw]).decode
        self._decode_tool = msgspec.json.Decoder(_Tool).decode
        self._known: dict[int, Array] = {}
        self._definitions: dict[tuple[int, bool], Definition | None] = {}

    def array(self, raw: msgspec.Raw, *, deferred: bool = False) -> Array:
        """Of the bytes of an array; `deferred` says that all of it is."""
        content = bytes(raw)
        key = hash((content, deferred))
        found = self._known.get(key)
        if found is None:
            found = self._read(content, deferred=deferred)
            if len(self._known) >= _ARRAYS:
                self._known.clear()
            self._known[key] = found
        return found

    def _read(self, content: bytes, *, deferred: bool) -> Array:
        if not content.startswith(b"["):
            return Array()
        made = [self._definition(bytes(each), deferred=deferred) for each in self._decode(content)[:_TOOLS_CAP]]
        definitions = [each for each in made if each is not None]
        on = any(each.deferred or each.name == SEARCH for each in definitions)
        tools = [self.tables.definition(each) for each in definitions if each.name != _PLACEHOLDER]
        return Array(on, tools)

    def _definition(self, content: bytes, *, deferred: bool) -> Definition | None:
        key = (hash(content), deferred)
        if key not in self._definitions:
            if len(self._definitions) >= _ARRAYS * 64:
                self._definitions.clear()
            self._definitions[key] = self._counted(content, deferred=deferred)
        return self._definitions[key]

    def _counted(self, content: bytes, *, deferred: bool) -> Definition | None:
        tool = self._decode_tool(content)
        name = name_of(tool.name)
        if not name:
            return None
        schema = bytes(tool.input_schema) or bytes(tool.schema) or b"{}"
        description = bytes(tool.description) or b'""'
        body = b'","description":' + description + b',"input_schema":' + schema + b"}"
        text = '{"name":"' + name + body.decode("utf-8", "replace")
        return Definition(
            name=name,
            server=server_of("claude-code", name),
            tokens=WORD_PIECES.count(text),
            deferred=deferred or bool(tool.defer_loading),
        )


class Trace(msgspec.Struct, array_like=True):
    """Whether a session defers, as far as its arrays of tools have told so far."""

    on: bool | None = None
    tools: list[int] = []
    """Since that was last decided otherwise."""

    def follow(self, array: Array, tables: Tables) -> None:
        """The next request had these tools."""
        names = _names(array, tables)
        if _is_aside(array, names):
            return
        if self.on and not array.on and not self._given_up(names, tables):
            return
        if self.on is not array.on:
            self.on, self.tools = array.on, list(array.tools)
        elif array.tools != self.tools:
            self._join(array.tools, tables)

    def give_up(self) -> None:
        """Deferral ended here; what is sent from now on is not known yet."""
        if self.on is not None:
            self.on, self.tools = False, []

    def _given_up(self, names: set[str], tables: Tables) -> bool:
        """A request without deferral ends it only if it has all that was resident; a sub-agent's has less."""
        resident = {each.name for each in map(tables.definitions.__getitem__, self.tools) if not each.deferred}
        return resident - {SEARCH} <= names

    def _join(self, tools: Iterable[int], tables: Tables) -> None:
        by_name = {tables.definitions[each].name: each for each in self.tools}
        by_name |= {tables.definitions[each].name: each for each in tools}
        self.tools = list(by_name.values())


def is_aside(array: Array, tables: Tables) -> bool:
    """Whether a request with these tools is one on the side."""
    return _is_aside(array, _names(array, tables))


def _is_aside(array: Array, names: set[str]) -> bool:
    return not array.on and len(names) < _MAIN and names.isdisjoint(_CORE)


def _names(array: Array, tables: Tables) -> set[str]:
    return {tables.definitions[each].name for each in array.tools}


class Shapes(msgspec.Struct, array_like=True):
    """Arrays by the hash that requests refer to them with, the latest ones."""

    known: dict[str, Array] = {}

    def learn(self, key: str, array: Array) -> None:
        """A new one; the oldest is forgotten."""
        self.known.pop(key, None)
        self.known[key] = array
        if len(self.known) > _REMEMBERED:
            del self.known[next(iter(self.known))]
