"""`python -m bench.proxy.upstream`: a model's API as a bare socket that streams; prints its port.

What it answers with stands in the request's system prompt, which every proxy hands on (LiteLLM keeps the metadata to
itself): see `Spec`. It does as little as possible, so that what is measured is what stands before it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections.abc import Iterator, Mapping

import msgspec

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
STAMP = re.compile(rb"<(\d{20})>")
"""When an event was sent, in nanoseconds of this machine's monotonic clock."""
PIECE = 64 * 1024
_SPEC = re.compile(rb'"<bench:([^>"]*)>')
_LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
USAGE = {"input_tokens": 1000, "output_tokens": 1, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """What to answer with."""

    events: int = 20
    """Deltas of text."""
    gap_ms: float = 0.0
    """Between them."""
    stamped: bool = False
    """Whether each says when it was sent; else what it says follows from `seed`."""
    seed: int = 0
    bulk_mb: int = 0
    """Instead of short deltas, this much in pieces of 64 kB."""
    search: str = ""
    """`native` or `bridge`: it searches, then calls `call`."""
    query: str = ""
    call: str = ""

    def said(self) -> str:
        """As a system prompt begins with it."""
        return "<bench:" + ",".join(f"{key}={value}" for key, value in msgspec.to_builtins(self).items()) + ">"


def spec_of(body: bytes) -> Spec:
    """What a request wants."""
    found = _SPEC.search(body)
    pairs = (pair.partition("=") for pair in found[1].decode().split(",")) if found else ()
    return msgspec.convert({key: value for key, _, value in pairs}, Spec, strict=False)


def event(kind: str, **more: object) -> bytes:
    """One event of a stream."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **more}, separators=(',', ':'))}\n\n".encode()


def opening() -> bytes:
    """The beginning of every reply."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5", "content": []}
    return event("message_start", message={**message, "stop_reason": None, "stop_sequence": None, "usage": USAGE})


def closing(reason: str) -> bytes:
    """The end of every reply."""
    delta = {"stop_reason": reason, "stop_sequence": None}
    return event("message_delta", delta=delta, usage={"output_tokens": 200}) + event("message_stop")


def text_events(spec: Spec) -> Iterator[bytes]:
    """A reply that says something, an event or two a piece."""
    yield opening() + event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    count = spec.bulk_mb * 1024 * 1024 // PIECE if spec.bulk_mb else spec.events
    long = "x" * PIECE if spec.bulk_mb else ""
    for number in range(count):
        said = f"<{time.monotonic_ns():020}>" if spec.stamped else f"{spec.seed}.{number} words of a reply "
        yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": long or said})
    yield event("content_block_stop", index=0) + closing("end_turn")


def whole(spec: Spec) -> bytes:
    """All that a client should get of a reply that has no stamps."""
    return b"".join(text_events(spec))


def searching(spec: Spec, body: bytes) -> Iterator[bytes]:
    """A reply that searches and calls: as the API does it itself, or by the tools of the bridge, in two rounds."""
    yield opening()
    if spec.search == "native":
        asked = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_bm25", "input": {}}
        yield _block(0, asked, json.dumps({"query": spec.query}))
        references = [{"type": "tool_reference", "tool_name": spec.call}]
        found = {"type": "tool_search_tool_search_result", "tool_references": references}
        yield _block(1, {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1", "content": found})
        yield _block(2, {"type": "tool_use", "id": "toolu_1", "name": spec.call, "input": {}}, "{}")
    elif b'"toolu_search"' not in body:
        asked = {"type": "tool_use", "id": "toolu_search", "name": "search_tools", "input": {}}
        yield _block(0, asked, json.dumps({"query": spec.query}))
    else:
        called = {"type": "tool_use", "id": "toolu_1", "name": "call_tool", "input": {}}
        yield _block(0, called, json.dumps({"name": spec.call, "arguments": {}}))
    yield closing("tool_use")


def _block(index: int, block: Mapping[str, object], written: str = "") -> bytes:
    delta = {"type": "input_json_delta", "partial_json": written}
    grown = event("content_block_delta", index=index, delta=delta) if written else b""
    return event("content_block_start", index=index, content_block=block) + grown + _stop(index)


def _stop(index: int) -> bytes:
    return event("content_block_stop", index=index)


# ── the socket ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def _connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError, OSError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = _LENGTH.search(head)
            body = await reader.readexactly(int(length[1])) if length else await _chunked(reader)
            await _answer(writer, spec_of(body), body)
    writer.close()


async def _chunked(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readexactly(2)
    return body


async def _answer(writer: asyncio.StreamWriter, spec: Spec, body: bytes) -> None:
    head, due = HEAD, time.monotonic()
    for piece in searching(spec, body) if spec.search else text_events(spec):
        writer.write(b"%s%x\r\n%s\r\n" % (head, len(piece), piece))
        head = b""
        if spec.gap_ms:
            due += spec.gap_ms / 1000
            await asyncio.sleep(due - time.monotonic())
        elif spec.bulk_mb:
            await writer.drain()
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def main() -> None:
    """Serves until it is ended."""
    server = await asyncio.start_server(_connection, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
