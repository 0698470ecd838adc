"""Transcripts of any size, streamed to disk: sessions as long work leaves them, one after the other."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.homes.builder import DAY, HomeBuilder
from tests.homes.claude_records import SessionPlan, Tokens, Writer, encoded, folder_name, request, snapshot_tools
from tests.homes.tools import patch_of, server_tools, versions

SESSION = 4_000_000
"""Bytes that most sessions have."""
_SOURCE = '''def parse(line: str, *, strict: bool = False) -> "Record | None":
\t"""One record of the log; None when the line is empty, "broken" or a comment."""
\tif not line.strip() or line.startswith("#"):
\t\treturn None
\thead, _, rest = line.partition("\\t")  # für den Anfang genügt das
\treturn Record(head, [part for part in rest.split("\\x1f") if part])
'''
_PICTURE = 400_000


def write_transcripts(
    home: HomeBuilder, total_bytes: int, *, session_bytes: int = SESSION, terse: bool = False
) -> int:  # fmt: skip
    """Writes sessions until there are this many bytes, and gives how many there are; memory stays as it is.

    In terse ones nobody thinks aloud, results are short and there are no pictures: as many lines in a third of the
    bytes, which is the hardest for whoever reads them.
    """
    written = number = 0
    while written < total_bytes:
        plan = _plan(home, number)
        path = home.claude_folder / "projects" / folder_name(plan.project) / f"{plan.id}.jsonl"
        wanted = min(session_bytes, total_bytes - written)
        written += _write(path, _lines(plan, terse=terse), wanted)
        if number % 5 == 4 and written < total_bytes:
            nested = path.with_suffix("") / "subagents" / f"agent-{number:08x}.jsonl"
            written += _write(nested, _lines(plan, agent=f"{number:08x}", terse=terse), session_bytes // 10)
        number += 1
    return written


def _plan(home: HomeBuilder, number: int) -> SessionPlan:
    known = versions()
    # Most people have the newest; the others are there too.
    version = known[-1] if number % 2 else known[number // 2 % len(known)]
    tools = tuple(tool for server in ("github", "linear", "postgres") for tool in server_tools(server, 14))
    return SessionPlan(
        id=str(uuid.uuid5(uuid.NAMESPACE_URL, f"bulk {number}")),
        version=version,
        deferral=number % 3 > 0,
        tools=tools,
        calls={tools[each].wire_name: 1 for each in range(0, len(tools), 7)},
        searches=number % 3,
        began=home.now - (number % 28 + 1) * DAY + number,
        project=str(home.project.parent / f"project{number % 8}"),
    )


def _write(path: Path, records: Iterator[dict[str, Any]], wanted: int) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with path.open("wb") as file:
        for record in records:
            written += file.write(encoded(record))
            if written >= wanted:
                break
    return written


def _lines(plan: SessionPlan, *, agent: str = "", terse: bool = False) -> Iterator[dict[str, Any]]:
    """A session without an end."""
    writer, drawn = Writer(plan, agent=agent), random.Random(f"{plan.id}/{agent}")
    patch = patch_of(plan.version)
    if plan.deferral and patch >= 70:
        names = [tool.wire_name for tool in plan.tools]
        yield writer.attachment("deferred_tools_delta", addedNames=names, addedLines=names, removedNames=[])
    if patch >= 265:
        yield writer.attachment(
            "prompt_snapshot", systemPrompt=[_text(drawn, 12_000)], tools=snapshot_tools(plan, plan.deferral)
        )
    names = ["Read", "Bash", "Edit", "ToolSearch", *plan.calls]
    shape, sent = request(plan, writer, deferred=plan.deferral)
    turn = 0
    while True:
        if patch >= 300:
            # The tools are said once for many requests that have the same.
            yield from ([shape] if turn % 40 == 0 else [])
            yield {**sent, "timestamp": writer.timestamp()}
        if turn % 12 == 0:
            yield writer.user(_text(drawn, 400))
        yield from (_terse_turn if terse else _turn)(writer, drawn, drawn.choice(names))
        turn += 1
        if turn % 150 == 0:
            metadata = {"trigger": "auto", "preTokens": 150_000, "preCompactDiscoveredTools": []}
            yield writer.chained("system", subtype="compact_boundary", content="Compacted", compactMetadata=metadata)


def _turn(writer: Writer, drawn: random.Random, name: str) -> Iterator[dict[str, Any]]:
    """A thought, some words, a call and what came back, which stands in the line twice."""
    thought = {"type": "thinking", "thinking": _text(drawn, 600), "signature": _letters(drawn, 900)}
    call = writer.call(name, _text(drawn, 200))
    usage = Tokens(output=drawn.randrange(50, 900), cache_read=drawn.randrange(10_000, 150_000))
    yield from writer.reply("claude-sonnet-5", [thought, {"type": "text", "text": _text(drawn, 300)}, call], usage)
    if drawn.random() < 0.005:
        picture = {"type": "base64", "media_type": "image/png", "data": _letters(drawn, _PICTURE)}
        content: Any = [{"type": "image", "source": picture}]
        extra: Any = {"type": "image", "file": {"base64": picture["data"]}}
    else:
        content = _text(drawn, min(int(drawn.lognormvariate(7.3, 1.3)), 60_000))
        extra = {"stdout": content, "stderr": "", "interrupted": False}
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": content}
    yield writer.user([result], toolUseResult=extra)


def _terse_turn(writer: Writer, drawn: random.Random, name: str) -> Iterator[dict[str, Any]]:
    """Few words, a call, a short result."""
    call = writer.call(name, _text(drawn, 80))
    usage = Tokens(output=drawn.randrange(50, 900), cache_read=drawn.randrange(10_000, 150_000))
    yield from writer.reply("claude-sonnet-5", [{"type": "text", "text": _text(drawn, 150)}, call], usage)
    content = _text(drawn, min(int(drawn.lognormvariate(5.5, 1.0)), 60_000))
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": content}
    yield writer.user([result], toolUseResult={"stdout": content, "stderr": "", "interrupted": False})


def _text(drawn: random.Random, length: int) -> str:
    start = drawn.randrange(len(_SOURCE))
    return (_SOURCE * ((start + length) // len(_SOURCE) + 1))[start : start + length]


def _letters(drawn: random.Random, length: int) -> str:
    """As base64 looks."""
    piece = drawn.randbytes(48).hex()
    return (piece * (length // len(piece) + 1))[:length]
