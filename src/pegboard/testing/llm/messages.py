"""The Messages API as `FakeLLM` speaks it: what the model sees of a request, and the reply that a move comes to.

Above: `FakeLLM`. Below: `messages_rules`, `messages_stream`, `tool_search`, `binding`, `history`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from pegboard.testing.llm.asked import Asked, Segment, blocks, objects, segment
from pegboard.testing.llm.binding import drops, mismatches, pause, signature
from pegboard.testing.llm.cache import Reading
from pegboard.testing.llm.history import inline, inside, references, search_tool, unfinished
from pegboard.testing.llm.messages_rules import RULES, breakpoints
from pegboard.testing.llm.messages_stream import Event, events
from pegboard.testing.llm.tool_search import result_block, search_block
from pegboard.testing.script import Move, Search, Shown
from pegboard.types import Json

_ERRORS = {401: "authentication", 403: "permission", 404: "not_found", 429: "rate_limit", 529: "overloaded"}


class Messages:
    """Anthropic's wire."""

    path = "/messages"
    rules = RULES
    caches_explicitly = True

    def shown(self, asked: Asked) -> Shown:
        """The tools the model sees: those that are not deferred, and those the history refers to or defines; a search
        that was left unfinished is finished before it sees anything."""
        found = dict.fromkeys(references([*asked.messages, {"content": _missing_results(asked)}]))
        deferred = _deferred(asked)
        resident = [each for each in asked.tools if not each.get("defer_loading")]
        loaded = [*(deferred[name] for name in found if name in deferred), *inline(asked.messages)]
        return Shown(tools=(*resident, *loaded), messages=tuple(asked.messages), system=_system(asked.body))

    def prompt(self, asked: Asked) -> list[Segment]:
        """Tools without the deferred, then the system prompt, then the messages; a deferred tool is put out in full
        where a reference to it stands. Where anything is marked, so are the results of the API's own searches."""
        deferred = _deferred(asked)
        marks = any(breakpoints(asked.body))
        prompt = [_segment(each, each) for each in asked.tools if not each.get("defer_loading")]
        system = asked.body.get("system")
        prompt += [
            _segment(each, each) for each in ([{"text": system}] if isinstance(system, str) else objects(system))
        ]
        for message in asked.messages:
            for block in blocks(message):
                loaded = [deferred.get(name) for name in references([{"content": [block]}])]
                piece = _segment([message.get("role"), block, loaded], block)
                own = marks and block.get("type") == "tool_search_tool_result"
                prompt.append(Segment(piece.data, is_marked=True) if own and not piece.is_marked else piece)
        if prompt and asked.body.get("cache_control"):
            prompt[-1] = Segment(prompt[-1].data, is_marked=True, is_hour=_lasts(asked.body) == "1h")
        return prompt

    def unplayable(self, move: Move, asked: Asked) -> str:
        """Why the move cannot be made in answer to this request."""
        wanted = [*map(_query, move.searches), *([move.unfinished_search] if move.unfinished_search else [])]
        if wanted and search_tool(asked.tools) is None:
            return f"the script searches for {wanted[0]!r}, but the request has no tool search tool"
        if move.unfinished_search and not (move.calls or move.pause):
            return "the script leaves a search unfinished, which happens only beside calls or before a pause"
        return ""

    def reply(self, move: Move, asked: Asked, number: int, reading: Reading) -> Json:
        """The message that the move comes to."""
        content = _content(move, asked, number)
        stop = "pause_turn" if move.pause else "tool_use" if move.calls else "end_turn"
        reply = {
            "id": f"msg_{number:04}",
            "type": "message",
            "role": "assistant",
            "model": asked.model,
            "content": content,
            "stop_reason": move.stop or stop,
            "stop_sequence": None,
            "usage": _usage(reading, _found_tokens(content, asked), len(json.dumps(content)) // 4),
        }
        if drops(asked):
            dropped = {"type": "thinking_dropped", "reason": "prefix_mismatch"}
            reply["input_transformations"] = [{**dropped, "path": path} for path in mismatches(asked)]
        return reply

    def events(self, reply: Json, asked: Asked) -> Iterator[Event]:
        """The reply as a stream; what its searches found is counted at the end of it."""
        return events(reply, reply["usage"]["input_tokens"] - _found_tokens(reply["content"], asked))

    def issued(self, reply: Json, asked: Asked) -> dict[str, Json]:
        """What later requests may be held against."""
        paused = reply["content"] if reply["stop_reason"] == "pause_turn" else []
        return {str(each["id"]): each for each in reply["content"] if each.get("id")} | pause(asked, paused)

    def error(self, message: str, status: int) -> Json:
        """The body of a refusal."""
        kind = _ERRORS.get(status, "api" if status >= 500 else "invalid_request")
        return {"type": "error", "error": {"type": f"{kind}_error", "message": message}, "request_id": "req_fake"}


def _content(move: Move, asked: Asked, number: int) -> list[Json]:
    """Results that are missing come first; then thinking, searches, what was thought of them, text and calls."""
    content = _missing_results(asked)
    content += _thinking(move.thinking, content, asked)
    for at, wanted in enumerate(move.searches):
        search = _search(asked, wanted, f"srvtoolu_{number:04}_{at}")
        content += [search, result_block(search, asked.tools, wanted.error if isinstance(wanted, Search) else "")]
    content += _thinking(move.afterthought, content, asked)
    content += [{"type": "text", "text": move.text}] if move.text else []
    if move.unfinished_search:
        content.append(_search(asked, move.unfinished_search, f"srvtoolu_{number:04}_{len(move.searches)}"))
    for at, (name, arguments) in enumerate(move.calls):
        call_id = f"toolu_{number:04}_{at}"
        content.append({"type": "tool_use", "id": call_id, "name": name, "input": dict(arguments)})
    return content


def _missing_results(asked: Asked) -> list[Json]:
    return [result_block(each, asked.tools) for each in unfinished(asked.messages)]


def _thinking(text: str, before: list[Json], asked: Asked) -> list[Json]:
    return [{"type": "thinking", "thinking": text, "signature": signature(asked, before, text)}] if text else []


def _search(asked: Asked, wanted: Search | str, call_id: str) -> Json:
    tool = search_tool(asked.tools)
    assert tool is not None, "a move without its tool is not played"
    return search_block(tool, call_id, wanted if isinstance(wanted, Search) else Search(wanted))


def _query(wanted: Search | str) -> str:
    return wanted if isinstance(wanted, str) else wanted.query


def _found_tokens(content: list[Json], asked: Asked) -> int:
    """The size of what the reply's searches found, which the model reads before it goes on."""
    deferred = _deferred(asked)
    found = [deferred[name] for name in references([{"content": content}]) if name in deferred]
    return sum(len(segment(each).data) for each in found) // 4


def _usage(reading: Reading, found: int, output: int) -> Json:
    written, cached, hour = reading.written // 4, reading.cached // 4, reading.written_for_hour // 4
    return {
        "input_tokens": reading.total // 4 - cached - written + found,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
        "cache_creation": {"ephemeral_5m_input_tokens": written - hour, "ephemeral_1h_input_tokens": hour},
        "output_tokens": output,
    }


def _deferred(asked: Asked) -> dict[str, Json]:
    return {str(each.get("name")): each for each in asked.tools if each.get("defer_loading")}


def _system(body: Json) -> str:
    system = body.get("system") or ""
    return system if isinstance(system, str) else "\n".join(str(each.get("text", "")) for each in objects(system))


def _segment(value: object, block: Json) -> Segment:
    """A piece of the prompt with the breakpoint on its block, if there is one."""
    lasts = _lasts(block) or next((lasts for each in inside(block) if (lasts := _lasts(each))), "")
    return segment(value, marked=bool(lasts), hour=lasts == "1h")


def _lasts(block: Json) -> str:
    marker = block.get("cache_control")
    return str(marker.get("ttl", "5m")) if isinstance(marker, dict) else ""
