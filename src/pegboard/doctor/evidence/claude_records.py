"""The records of a Claude Code transcript, as far as they are looked at; the decoder skips over the rest.

Above: `claude`. Below: msgspec.
"""

from __future__ import annotations

import msgspec

NOTHING = msgspec.Raw(b"")
KNOWN = frozenset({
    "ai-title", "api-request", "api-request-blob", "api-request-shape", "assistant", "attachment", "cost-state",
    "custom-title", "file-history-snapshot", "last-prompt", "progress", "queue-operation", "summary", "system",
    "tools-used", "user",
})  # fmt: skip
"""Types of records that are understood, or known to say nothing of tools."""


class Tokens(msgspec.Struct, gc=False):
    """What a reply says it used."""

    input_tokens: int | float | None = 0
    output_tokens: int | float | None = 0
    cache_read_input_tokens: int | float | None = 0
    cache_creation_input_tokens: int | float | None = 0


class Message(msgspec.Struct, gc=False):
    """A reply, or the part of it that one line has; or what a person wrote."""

    id: str | None = None
    model: str | None = None
    usage: Tokens | None = None
    content: msgspec.Raw = NOTHING


class Line(msgspec.Struct, gc=False):
    """Any record."""

    type: str | None = None
    uuid: str | None = None
    session: str | None = msgspec.field(name="sessionId", default=None)
    timestamp: str | None = None
    cwd: str | None = None
    version: str | None = None
    sidechain: bool | None = msgspec.field(name="isSidechain", default=None)
    agent: str | None = msgspec.field(name="agentId", default=None)
    subtype: str | None = None
    message: Message | None = None
    attachment: msgspec.Raw = NOTHING
    shape_hash: str | None = msgspec.field(name="shapeHash", default=None)
    shape: msgspec.Raw = NOTHING
    params: msgspec.Raw = NOTHING


class Block(msgspec.Struct, gc=False):
    """A piece of a reply."""

    type: str | None = None
    name: str | None = None


class Attachment(msgspec.Struct, gc=False):
    """What went along with a prompt."""

    type: str | None = None
    added: list[str] | None = msgspec.field(name="addedNames", default=None)
    entries: msgspec.Raw = NOTHING
    tools: msgspec.Raw = NOTHING
    hook: str | None = msgspec.field(name="hookName", default=None)


class Shape(msgspec.Struct, gc=False):
    """What requests have in common."""

    tools: msgspec.Raw = NOTHING


class Params(msgspec.Struct, gc=False):
    """What one request was sent with."""

    betas: list[str] | None = None


line = msgspec.json.Decoder(Line).decode
blocks = msgspec.json.Decoder(list[Block]).decode
attachment = msgspec.json.Decoder(Attachment).decode
shape = msgspec.json.Decoder(Shape).decode
params = msgspec.json.Decoder(Params).decode
