"""The lines of a Claude Code transcript, each as its version writes it."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import random
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from tests.homes.tools import BUILT_IN, ToolSpec, built_in_tools, patch_of

Trace = Literal["requests", "snapshot", "record", "betas", "searches", "none"]
REFUSAL = "ToolSearch is no longer available. All tools are listed in full from here on."
SEARCH_BETA = "advanced-tool-use-2025-11-20"
PLACEHOLDER = ToolSpec(name="DeferredToolPlaceholder", tokens=60)
TOOL_SEARCH = ToolSpec(name="ToolSearch", tokens=500)


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """What one reply of the model says it used."""

    input: int = 10
    output: int = 120
    cache_read: int = 20_000
    cache_write: int = 1_500


class SessionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to have happened in one session."""

    id: str
    version: str = "2.1.325"
    deferral: bool = True
    tools: tuple[ToolSpec, ...] = ()
    pinned: frozenset[str] = frozenset()
    """Servers or wire names of tools that are never deferred."""
    calls: Mapping[str, int] = {}
    searches: int = 0
    models: tuple[str, ...] = ("claude-sonnet-5",)
    proof: Trace = "requests"
    announce: bool = True
    refused: bool = False
    resumed: bool = False
    compactions: int = 0
    vertex: bool = False
    turns: int = 6
    began: float = 0.0
    project: str = ""
    usage: Tokens = Tokens()
    text: str = "look at the parser and mend it"
    broken_lines: int = 0
    unknown_records: int = 0


class Writer:
    """Makes lines with what all of them have: who, when, where, after which."""

    def __init__(self, plan: SessionPlan, *, agent: str = "") -> None:
        self._plan = plan
        self._agent = agent
        self._random = random.Random(f"{plan.id}/{agent}")
        self._parent: str | None = None
        self._seconds = 0.0
        self._count = 0

    def uuid(self) -> str:
        """One that is the same whenever this session is made."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def timestamp(self) -> str:
        """A moment after the one before."""
        self._seconds += 2.0
        moment = dt.datetime.fromtimestamp(self._plan.began + self._seconds, dt.UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def chained(self, kind: str, **fields: Any) -> dict[str, Any]:
        """A record of the conversation. Its type stands behind a message of the model's, as it does in real ones."""
        own = self.uuid()
        record: dict[str, Any] = {
            "parentUuid": self._parent,
            "isSidechain": bool(self._agent),
            "userType": "external",
            "cwd": self._plan.project,
            "sessionId": self._plan.id,
            "version": self._plan.version,
            "gitBranch": "main",
            **({"agentId": self._agent} if self._agent else {}),
            **(fields if kind == "assistant" else {"type": kind, **fields}),
            **({"type": kind} if kind == "assistant" else {}),
            "uuid": own,
            "timestamp": self.timestamp(),
        }
        self._parent = own
        return record

    def attachment(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Something that goes along with the prompt."""
        return self.chained("attachment", attachment={"type": kind, **fields})

    def user(self, content: Any, **fields: Any) -> dict[str, Any]:
        """A person's words, or results of tools."""
        return self.chained("user", message={"role": "user", "content": content}, **fields)

    def reply(self, model: str, blocks: Sequence[dict[str, Any]], usage: Tokens) -> Iterator[dict[str, Any]]:
        """One reply: a line for each block, all with one id; only the last has all its output counted."""
        self._count += 1
        identity = f"msg_{hashlib.sha256(f'{self._plan.id}{self._agent}{self._count}'.encode()).hexdigest()[:24]}"
        for number, block in enumerate(blocks):
            last = number == len(blocks) - 1
            message = {
                "model": model,
                "id": identity,
                "type": "message",
                "role": "assistant",
                "content": [block],
                "stop_reason": ("tool_use" if block["type"] == "tool_use" else "end_turn") if last else None,
                "usage": {
                    "input_tokens": usage.input,
                    "cache_creation_input_tokens": usage.cache_write,
                    "cache_read_input_tokens": usage.cache_read,
                    "cache_creation": {"ephemeral_5m_input_tokens": usage.cache_write, "ephemeral_1h_input_tokens": 0},
                    "output_tokens": usage.output if last else 1,
                    "service_tier": "standard",
                },
            }
            yield self.chained("assistant", message=message, requestId=f"req_{identity[4:]}")

    def call(self, name: str, text: str) -> dict[str, Any]:
        """A call of a tool, as a block of a reply."""
        given = {"query": f"select:{text}", "max_results": 5} if name == "ToolSearch" else {"query": text}
        return {"type": "tool_use", "id": f"toolu_{self.uuid()[:23]}", "name": name, "input": given}


def lines(plan: SessionPlan, *, agent: str = "") -> Iterator[dict[str, Any] | str]:
    """A whole session's records; a text among them is a line that is none."""
    writer = Writer(plan, agent=agent)
    if not agent:
        yield from _opening(plan, writer)
    yield writer.user(plan.text)
    yield from _traces(plan, writer, deferred=plan.deferral and not plan.refused)
    pending = [name for name, count in plan.calls.items() for _ in range(count)]
    pending = ["ToolSearch"] * plan.searches + pending
    turns = max(plan.turns, 1)
    share = -(-len(pending) // turns)
    for turn in range(turns):
        model = plan.models[turn % len(plan.models)]
        if turn == turns // 2 and not agent:
            yield from _middle(plan, writer)
        yield from _turn(plan, writer, model, pending[turn * share : (turn + 1) * share])
    yield from _closing(plan, writer)


def _opening(plan: SessionPlan, writer: Writer) -> Iterator[dict[str, Any] | str]:
    yield {"type": "queue-operation", "operation": "enqueue", "timestamp": writer.timestamp(), "sessionId": plan.id}
    if plan.announce and patch_of(plan.version) >= 70:
        names = [tool.wire_name for tool in _deferrable(plan)]
        yield writer.attachment(
            "deferred_tools_delta", addedNames=names, addedLines=names, removedNames=[], readdedNames=[],
            wireHiddenNames=[], pendingMcpServers=[], needsAuthMcpServers=[], failedMcpServers=[],
        )  # fmt: skip
    yield writer.attachment("skill_listing", content="", skillCount=0)


def _traces(plan: SessionPlan, writer: Writer, *, deferred: bool) -> Iterator[dict[str, Any]]:
    """The records that tell which tools a request had."""
    patch = patch_of(plan.version)
    if plan.proof in ("requests", "snapshot") and patch >= 265:
        yield writer.attachment("prompt_snapshot", systemPrompt=[plan.text], tools=snapshot_tools(plan, deferred))
    if plan.proof == "record" and deferred:
        entries = [tool.definition(deferred=True) for tool in _deferrable(plan)[:3]]
        yield writer.attachment("deferred_tools_record", entries=entries)
    if plan.proof == "requests":
        yield from request(plan, writer, deferred=deferred)
    if plan.proof == "betas":
        yield from (record for record in request(plan, writer, deferred=deferred) if record["type"] == "api-request")


def request(plan: SessionPlan, writer: Writer, *, deferred: bool) -> Iterator[dict[str, Any]]:
    """One request as it was sent: its tools, once for all requests that have the same, and its parameters."""
    shape = {"system": [{"type": "text", "text": plan.text}], "tools": request_tools(plan, deferred)}
    digest = hashlib.sha256(json.dumps(shape).encode()).hexdigest()[:32]
    betas = ["claude-code-20250219", "interleaved-thinking-2025-05-14"]
    betas += [SEARCH_BETA.replace("advanced-tool-use", "tool-search-tool") if plan.vertex else SEARCH_BETA] * deferred
    yield {"type": "api-request-shape", "sessionId": plan.id, "shapeHash": digest, "shape": shape}
    yield {
        "type": "api-request",
        "sessionId": plan.id,
        "timestamp": writer.timestamp(),
        "shapeHash": digest,
        "params": {"model": plan.models[0], "betas": betas, "max_tokens": 32_000},
        "cacheControl": [{"path": "system.0", "value": {"type": "ephemeral"}}],
    }


def request_tools(plan: SessionPlan, deferred: bool) -> list[dict[str, Any]]:
    """The tools of a request: everything in full, or what is resident, what was found, and a placeholder."""
    if not deferred:
        return [tool.definition() for tool in (*built_in_tools(), *plan.tools)]
    hidden = _deferrable(plan)
    names = {tool.wire_name for tool in hidden}
    resident = [tool for tool in (*built_in_tools(), TOOL_SEARCH, *plan.tools) if tool.wire_name not in names]
    found = [tool for tool in hidden if tool.wire_name in plan.calls] if plan.searches else []
    return [tool.definition() for tool in resident] + [tool.definition(deferred=True) for tool in (*found, PLACEHOLDER)]


def snapshot_tools(plan: SessionPlan, deferred: bool) -> list[dict[str, Any]]:
    """The same for `prompt_snapshot`, which has other names for things and only what is resident."""
    servers = {tool.wire_name: tool.server for tool in plan.tools}
    return [
        {
            "name": tool["name"],
            "description": tool["description"],
            "schema": tool["input_schema"],
            **({"server": servers[tool["name"]]} if servers.get(tool["name"]) else {}),
        }
        for tool in request_tools(plan, deferred)
        if not tool.get("defer_loading")
    ]


def _deferrable(plan: SessionPlan) -> list[ToolSpec]:
    return [
        tool
        for tool in (*built_in_tools(), *plan.tools)
        if tool.name not in BUILT_IN and not {tool.server, tool.wire_name} & plan.pinned
    ]


def _middle(plan: SessionPlan, writer: Writer) -> Iterator[dict[str, Any] | str]:
    """What happens half-way: a refusal, a resumption, compactions, and things that nobody knows."""
    if plan.refused:
        yield writer.attachment("critical_system_reminder", content=REFUSAL)
        yield from _traces(plan, writer, deferred=False)
    if plan.resumed:
        yield writer.attachment("hook_success", hookName="SessionStart:resume", hookEvent="SessionStart", content="")
    for _ in range(plan.compactions):
        metadata = {"trigger": "auto", "preTokens": 150_000, "preCompactDiscoveredTools": []}
        yield writer.chained("system", subtype="compact_boundary", content="Compacted", compactMetadata=metadata)
    for number in range(plan.unknown_records):
        yield {"type": f"of-tomorrow-{number}", "sessionId": plan.id, "payload": {"text": plan.text}}
    for number in range(plan.broken_lines):
        yield '{"type":"assistant","message":{"id":"msg_cut' + str(number)


def _turn(plan: SessionPlan, writer: Writer, model: str, names: Iterable[str]) -> Iterator[dict[str, Any]]:
    calls = [writer.call(name, plan.text) for name in names]
    blocks = [{"type": "text", "text": plan.text}, *calls]
    yield from writer.reply(model, blocks, plan.usage)
    for call in calls:
        if call["name"] == "ToolSearch":
            content: Any = [{"type": "tool_reference", "tool_name": tool.wire_name} for tool in _deferrable(plan)[:2]]
            extra: Any = {"matches": ["a"], "query": plan.text, "total_deferred_tools": len(_deferrable(plan))}
        else:
            content, extra = plan.text, {"stdout": plan.text}
        yield writer.user([{"type": "tool_result", "tool_use_id": call["id"], "content": content}], toolUseResult=extra)
    if not calls:
        yield writer.user(plan.text)


def _closing(plan: SessionPlan, writer: Writer) -> Iterator[dict[str, Any]]:
    yield {"type": "tools-used", "sessionId": plan.id, "tools": sorted(plan.calls)}
    yield {"type": "last-prompt", "sessionId": plan.id, "lastPrompt": plan.text}


def encoded(record: dict[str, Any] | str) -> bytes:
    """One line."""
    text = record if isinstance(record, str) else json.dumps(record, separators=(",", ":"), ensure_ascii=False)
    return text.encode() + b"\n"


def folder_name(project: str | Path) -> str:
    """Of a project's transcripts: everything but letters and digits is a dash."""
    return "".join(letter if letter.isalnum() else "-" for letter in str(project))
