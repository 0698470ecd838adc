"""What of a tool can be searched: its texts by field, and the text that stands for it in the embedder.

Above: `build`. Below: `text`. A definition is untrusted: every text is cut, every walk is bounded.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from pegboard.index.text import spoken
from pegboard.types import Json, Tool

FIELDS = (
    "name",
    "server",
    "title",
    "description",
    "parameters",
    "parameter_text",
    "tags",
    "scopes",
    "aliases",
    "hints",
)
NAME, SERVER = FIELDS.index("name"), FIELDS.index("server")
HINT_KEYS = ("anthropic/searchHint", "pegboard/searchHint")
_TAG_KEYS = ("fastmcp", "_fastmcp")

_LONGEST_FIELD = 4000
_LONGEST_EMBEDDED = 600
_LONGEST_FIRST = 200
_MOST_OF_PARAMETERS = 200
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|[。\n]")
_MOST_PARAMETERS = 200
_DEEPEST = 4
_MOST_CHOICES = 20


class Document(msgspec.Struct, frozen=True):
    """One tool as the index reads it."""

    texts: tuple[str, ...]
    """One text for each of FIELDS."""

    @property
    def embedded(self) -> str:
        """The text that is embedded: the name and the first sentence twice, since they say most."""
        name, server, title, description, parameters, said, tags, _, aliases, hints = self.texts
        own, first = spoken(name), _SENTENCE_END.split(description.strip(), maxsplit=1)[0][:_LONGEST_FIRST]
        telling = (spoken(server), own, title or own, first, aliases, hints)
        rest = (
            description[:_LONGEST_EMBEDDED],
            tags,
            spoken(parameters)[:_MOST_OF_PARAMETERS],
            said[:_MOST_OF_PARAMETERS],
        )
        return ". ".join(part for part in (*telling, *rest) if part)


def document_of(tool: Tool) -> Document:
    """The tool's texts, as its definition and our configuration have them."""
    definition = tool.parsed()
    names, texts = _parameters(definition.get("inputSchema"))
    parts = (
        tool.name,
        tool.server,
        tool.title,
        tool.description,
        " ".join(names),
        " ".join(texts),
        " ".join(tool.tags),
        " ".join(tool.scopes),
        " ".join(tool.aliases),
        " ".join(_hints(definition.get("_meta"))),
    )
    return Document(tuple(part[:_LONGEST_FIELD] for part in parts))


def content_of(tool: Tool) -> int:
    """Hash of all that a document is made from, without reading it: what is equal need not be read again."""
    ours = "\0".join((tool.fingerprint, tool.server, *tool.tags, "", *tool.scopes, "", *tool.aliases))
    state = hashlib.blake2b(ours.encode("utf-8", "surrogatepass"), digest_size=8)
    if not tool.fingerprint:
        state.update(b"\0".join((tool.name.encode("utf-8", "surrogatepass"), tool.definition)))
    return int.from_bytes(state.digest(), "little")


def _parameters(schema: Any) -> tuple[list[str], list[str]]:
    names: list[str] = []
    texts: list[str] = []
    for name, about in _walk(schema, 0):
        names.append(name)
        if isinstance(about, dict):
            texts += _said_of(about)
        if len(names) >= _MOST_PARAMETERS:
            break
    return names, texts


def _walk(schema: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return
    properties = schema.get("properties")
    if isinstance(properties, dict):
        for name, about in properties.items():
            yield name, about
            yield from _walk(about, depth + 1)
    yield from _walk(schema.get("items"), depth + 1)


def _said_of(parameter: Json) -> Iterator[str]:
    description = parameter.get("description")
    if isinstance(description, str):
        yield description
    choices = parameter.get("enum")
    if isinstance(choices, list):
        yield from (choice for choice in choices[:_MOST_CHOICES] if isinstance(choice, str))


def _hints(meta: Any) -> Iterable[str]:
    if not isinstance(meta, dict):
        return []
    found = [meta[key] for key in HINT_KEYS if isinstance(meta.get(key), str)]
    for key in _TAG_KEYS:
        more = meta.get(key)
        tags = more.get("tags") if isinstance(more, dict) else None
        found += [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []
    return found
