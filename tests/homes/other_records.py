"""What Codex, opencode, Kilo and Cline leave behind of a session. None of them keeps definitions of tools."""

from __future__ import annotations

import datetime as dt
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.homes.claude_records import Tokens

_TABLES = """
CREATE TABLE IF NOT EXISTS session (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT, slug TEXT,
    directory TEXT NOT NULL, title TEXT NOT NULL, version TEXT NOT NULL, time_created INTEGER, time_updated INTEGER);
CREATE TABLE IF NOT EXISTS message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, time_created INTEGER,
    time_updated INTEGER, data TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL,
    time_created INTEGER, time_updated INTEGER, data TEXT NOT NULL);
"""


def stamp(moment: float) -> str:
    """As JavaScript and Rust write it."""
    then = dt.datetime.fromtimestamp(moment, dt.UTC)
    return then.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def flat(calls: Mapping[str, int]) -> list[str]:
    """Each name as often as it was called."""
    return [name for name, count in calls.items() for _ in range(count)]


def codex_lines(
    identity: str, *, began: float, project: str, version: str, model: str, turns: int, calls: Mapping[str, int],
    searches: int, usage: Tokens, text: str, records: bool, parent: str = "",
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """The lines of one rollout; older versions (`records=False`) have only `token_count` events."""
    clock = began
    source: Any = {"subagent": {"thread_spawn": {"parent_thread_id": parent, "depth": 1}}} if parent else "cli"
    meta = {"id": identity, "timestamp": stamp(began), "cwd": project, "cli_version": version, "source": source,
            "model_provider": "openai", "base_instructions": {"text": text}}  # fmt: skip
    yield {"timestamp": stamp(clock), "type": "session_meta", "payload": meta}
    names = ["tool_search"] * searches + flat(calls)
    share = -(-len(names) // max(turns, 1))
    for turn in range(turns):
        clock += 5
        yield {"timestamp": stamp(clock), "type": "turn_context", "payload": {"cwd": project, "model": model}}
        said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        yield {"timestamp": stamp(clock), "type": "response_item", "payload": said}
        for number, name in enumerate(names[turn * share : (turn + 1) * share]):
            yield {"timestamp": stamp(clock), "type": "response_item",
                   "payload": _codex_call(name, f"call_{identity}_{turn}_{number}", text)}  # fmt: skip
        yield from _codex_usage(identity, turn, clock, usage, records=records)


def _codex_call(name: str, identity: str, text: str) -> dict[str, Any]:
    if name == "tool_search":
        return {"type": "tool_search_call", "call_id": identity, "execution": "client", "arguments": {"query": text}}
    given = json.dumps({"query": text})
    if name.startswith("mcp__"):
        namespace, _, bare = name.rpartition("__")
        return {"type": "function_call", "namespace": namespace, "name": bare, "arguments": given, "call_id": identity}
    return {"type": "function_call", "name": name, "arguments": given, "call_id": identity}


def _codex_usage(identity: str, turn: int, clock: float, usage: Tokens, *, records: bool) -> Iterator[dict[str, Any]]:
    """Input has the cached tokens in it. `token_count` has them summed up since the beginning."""
    whole = usage.input + usage.cache_read + usage.cache_write
    one = {"input_tokens": whole, "cached_input_tokens": usage.cache_read, "output_tokens": usage.output,
           "cache_write_input_tokens": usage.cache_write, "total_tokens": whole + usage.output}  # fmt: skip
    if records:
        payload = {"thread_id": identity, "session_id": identity, "turn_id": f"turn_{turn}",
                   "response_id": f"resp_{identity}_{turn}", "usage": one}  # fmt: skip
        yield {"timestamp": stamp(clock), "type": "token_usage_record", "payload": payload}
    total = {name: count * (turn + 1) for name, count in one.items()}
    info = {"total_token_usage": total, "last_token_usage": one, "model_context_window": 400_000}
    yield {"timestamp": stamp(clock), "type": "event_msg", "payload": {"type": "token_count", "info": info}}


def write_database_session(
    file: Path, identity: str, *, began: float, project: str, version: str, model: str, turns: int,
    calls: Mapping[str, int], usage: Tokens, text: str, parent: str | None = None,
) -> None:  # fmt: skip
    """Adds a session to the database of opencode or Kilo, which are alike."""
    file.parent.mkdir(parents=True, exist_ok=True)
    names = flat(calls)
    share = -(-len(names) // max(turns, 1))
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.executescript(_TABLES)
        clock = int(began * 1000)
        connection.execute(
            "INSERT INTO session VALUES (?,?,?,?,?,?,?,?,?)",
            (identity, "global", parent, "slug", project, text, version, clock, clock + turns * 5000),
        )
        for turn in range(turns):
            clock += 5000
            answer = f"msg_{identity}_{turn}"
            rows = [(f"{answer}u", {"role": "user", "time": {"created": clock}}),
                    (answer, _database_message(clock, project, model, usage))]  # fmt: skip
            for name, data in rows:
                connection.execute(
                    "INSERT INTO message VALUES (?,?,?,?,?)", (name, identity, clock, clock, json.dumps(data))
                )
            parts: list[dict[str, Any]] = [{"type": "text", "text": text}]
            parts += [
                {"type": "tool", "callID": f"call_{number}", "tool": name,
                 "state": {"status": "completed", "input": {"query": text}, "output": text}}
                for number, name in enumerate(names[turn * share : (turn + 1) * share])
            ]  # fmt: skip
            for number, part in enumerate(parts):
                connection.execute(
                    "INSERT INTO part VALUES (?,?,?,?,?,?)",
                    (f"prt_{answer}_{number}", answer, identity, clock, clock, json.dumps(part)),
                )


def _database_message(clock: int, project: str, model: str, usage: Tokens) -> dict[str, Any]:
    return {
        "role": "assistant", "modelID": model, "providerID": "anthropic", "path": {"cwd": project, "root": project},
        "time": {"created": clock, "completed": clock + 2000}, "cost": 0,
        "tokens": {"input": usage.input, "output": usage.output, "reasoning": 0,
                   "cache": {"read": usage.cache_read, "write": usage.cache_write}},
    }  # fmt: skip


def cline_document(
    identity: str, *, began: float, model: str, turns: int, calls: Mapping[str, int], usage: Tokens, text: str
) -> dict[str, Any]:
    """One `messages.json`; input has the cached tokens in it."""
    names = flat(calls)
    share = -(-len(names) // max(turns, 1))
    messages: list[dict[str, Any]] = []
    for turn in range(turns):
        clock = int((began + 5 * turn) * 1000)
        blocks: list[dict[str, Any]] = [{"type": "text", "text": text}]
        blocks += [
            {"type": "tool_use", "id": f"toolu_{turn}_{number}", "name": name, "input": {"query": text}}
            for number, name in enumerate(names[turn * share : (turn + 1) * share])
        ]
        metrics = {"inputTokens": usage.input + usage.cache_read + usage.cache_write, "outputTokens": usage.output,
                   "cacheReadTokens": usage.cache_read, "cacheWriteTokens": usage.cache_write, "cost": 0}  # fmt: skip
        messages.append({"id": f"u{turn}_{identity}", "role": "user", "ts": clock, "content": text})
        messages.append({"id": f"a{turn}_{identity}", "role": "assistant", "ts": clock + 2000, "content": blocks,
                         "modelInfo": {"id": model, "provider": "anthropic"}, "metrics": metrics})  # fmt: skip
    updated = stamp(began + 5 * turns)
    return {"version": 1, "updated_at": updated, "agent": "lead", "sessionId": identity, "messages": messages,
            "system_prompt": text}  # fmt: skip
