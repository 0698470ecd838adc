"""Reads a made home as the doctor would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pegboard.doctor.evidence.gather import Gathered, read_sessions
from pegboard.doctor.evidence.kept import Kept
from pegboard.doctor.facts import Session
from pegboard.doctor.settings.machine import Machine
from tests.homes import HomeBuilder


def machine_of(home: HomeBuilder) -> Machine:
    """The machine around a made home."""
    return Machine(
        home=home.folder, cwd=home.project, environ=home.environ, platform="linux", root=home.root, starts=False
    )


def read(home: HomeBuilder) -> Gathered:
    """All of it, as if for the first time."""
    return read_sessions(machine_of(home))


def read_on(home: HomeBuilder) -> Gathered:
    """Only what is new since the last time."""
    machine = machine_of(home)
    return read_sessions(machine, kept=Kept.of(machine))


def sessions(home: HomeBuilder) -> dict[str, Session]:
    """By their ids."""
    return {each.id: each for each in read(home).sessions}


def only_session(home: HomeBuilder) -> Session:
    """The one there is."""
    (session,) = read(home).sessions
    return session


def append(file: Path, *records: dict[str, Any]) -> None:
    """Adds lines to a transcript."""
    with file.open("ab") as opened:
        opened.writelines(json.dumps(record).encode() + b"\n" for record in records)


def reply(identity: str = "msg_1", *, output: int = 10, uuid: str = "", **about: Any) -> dict[str, Any]:
    """A line of Claude Code's with a reply of the model's."""
    usage = {"input_tokens": 3, "output_tokens": output, "cache_read_input_tokens": 100}
    calls = [{"type": "tool_use", "id": "toolu_1", "name": name, "input": {}} for name in about.pop("calls", ())]
    message = {"id": identity, "model": "claude-sonnet-5", "role": "assistant", "content": calls, "usage": usage}
    return {"type": "assistant", "uuid": uuid or f"{identity}-{output}", "message": message,
            "timestamp": "2026-11-17T10:00:00.000Z", "version": "2.1.325", **about}  # fmt: skip


def shape(*tools: str, deferred: tuple[str, ...] = (), key: str = "s1", **about: Any) -> list[dict[str, Any]]:
    """A request with these tools."""
    made: list[dict[str, Any]] = [
        {"name": name, "description": "does it", "input_schema": {"type": "object"}} for name in tools
    ]
    made += [{"name": name, "description": "does it", "input_schema": {}, "defer_loading": True} for name in deferred]
    return [
        {"type": "api-request-shape", "shapeHash": key, "shape": {"system": [], "tools": made}, **about},
        {"type": "api-request", "shapeHash": key, "params": {"betas": []}, **about},
    ]


def transcript(home: HomeBuilder, session: str = "s-1", *, project: str = "-p", sub_agent: str = "") -> Path:
    """Where a transcript of Claude Code lies, with the folder made."""
    folder = home.claude_folder / "projects" / project
    file = folder / session / "subagents" / f"agent-{sub_agent}.jsonl" if sub_agent else folder / f"{session}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    return file
