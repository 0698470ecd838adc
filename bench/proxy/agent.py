"""An agent's session without a model: its client, which caches as agents do, and the script that stands for the model.

The script is the same whatever it is shown: it calls a tool that it sees, and looks for one that it does not see, by
the means that there are. Above: `session`. Below: `caller`, and `FakeLLM`, which plays the script.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import msgspec

from bench.proxy import tools
from bench.proxy.caller import Caller, WrongAnswer
from pegboard.testing.script import Move, ScriptedModel, Shown
from pegboard.types import Json

TURNS = 20
MOST_REQUESTS = 10
"""In one turn; more would be a loop without an end."""
SEARCH, CALL = "search_tools", "call_tool"
_MARK = {"cache_control": {"type": "ephemeral"}}
_NEEDED = tuple(tools.SEARCHED)


def plan(turns: int = TURNS) -> list[list[str]]:
    """What each turn calls, one after the other: tools of its own, and in every second turn one of a server's."""
    own = (["Grep", "Read"], ["Edit", "Bash"], ["Read", "Write"], ["Glob", "Read", "Edit"])
    called = [list(own[turn % len(own)]) for turn in range(turns)]
    for turn in range(1, turns, 2):
        called[turn].append(_NEEDED[turn // 2 % len(_NEEDED)])
    return called


class Player(ScriptedModel):
    """The model: it says something at the end of each turn."""

    def __init__(self, turns: Sequence[Sequence[str]]) -> None:
        super().__init__()
        self._steps = [step for turn in turns for step in (*turn, "")]
        self.asked: set[str] = set()
        """What it has searched for."""

    def answer(self, shown: Shown) -> Move:
        """The next step, or the search that has to come before it."""
        self.shown.append(shown)
        name = self._steps[0] if self._steps else ""
        if not name:
            del self._steps[:1]
            return Move(text="That is done; the rest of it follows from what the files say. " * 3)
        if name in shown.names or SEARCH not in shown.names:
            searches = () if name in shown.names else (self._query(name),)
            return self._called(name, {"limit": len(self._steps)}, searches)
        if name not in self.asked:
            return Move(calls=((SEARCH, {"query": self._query(name)}),))
        if name not in str(shown.messages):
            raise WrongAnswer(f"the search did not find {name}")
        return self._called(CALL, {"name": name, "arguments": {"limit": len(self._steps)}})

    def _query(self, name: str) -> str:
        if name in self.asked:
            raise WrongAnswer(f"{name} was found, and is gone")
        self.asked.add(name)
        return tools.SEARCHED[name]

    def _called(self, name: str, arguments: Json, searches: tuple[str, ...] = ()) -> Move:
        del self._steps[0]
        return Move(text="Let me look at that.", searches=searches, calls=((name, arguments),))


class Client:
    """The agent: marks its tools, its system prompt and its latest message, and runs what is called."""

    def __init__(self, caller: Caller, definitions: Sequence[Json]) -> None:
        self._caller = caller
        self._tools = [*definitions[:-1], {**definitions[-1], **_MARK}]
        self._messages: list[Json] = []
        self.called: list[str] = []

    def turn(self, number: int) -> None:
        """One turn: until the model calls nothing more."""
        self._messages.append(
            _user([{"type": "text", "text": f"Step {number}: " + "please see to the next part. " * 8}])
        )
        for _ in range(MOST_REQUESTS):
            content = message_of(self._caller.ask(self._body()).body)
            self._messages.append({"role": "assistant", "content": content})
            calls = [each for each in content if each["type"] == "tool_use"]
            if not calls:
                return
            self.called += [each["name"] for each in calls]
            self._messages.append(_user([_result(each) for each in calls]))
        raise WrongAnswer(f"turn {number} has no end")

    def _body(self) -> bytes:
        messages = [*self._messages[:-1], copy.deepcopy(self._messages[-1])]
        messages[-1]["content"][-1] |= _MARK
        system = [{"type": "text", "text": "You are an agent that works on code. " * 120, **_MARK}]
        whole = {"model": tools.MODEL, "max_tokens": 4000, "stream": True, "system": system, "tools": self._tools}
        return msgspec.json.encode({**whole, "messages": messages})


def message_of(stream: bytes) -> list[Json]:
    """The content of a streamed message."""
    blocks: dict[int, Json] = {}
    written: dict[int, str] = {}
    for line in stream.splitlines():
        event: Any = msgspec.json.decode(line[6:]) if line.startswith(b"data: ") else {}
        if event.get("type") == "content_block_start":
            blocks[event["index"]] = event["content_block"]
        elif event.get("type") == "content_block_delta":
            delta, at = event["delta"], event["index"]
            if delta["type"] == "text_delta":
                blocks[at]["text"] += delta["text"]
            elif delta["type"] == "input_json_delta":
                written[at] = written.get(at, "") + delta["partial_json"]
    for at, text in written.items():
        blocks[at]["input"] = msgspec.json.decode(text) if text else {}
    return [blocks[at] for at in sorted(blocks)]


def _user(content: list[Json]) -> Json:
    return {"role": "user", "content": content}


def _result(call: Json) -> Json:
    text = f"{call['name']} says: " + "a line of what was there, with some words in it.\n" * 30
    return {"type": "tool_result", "tool_use_id": call["id"], "content": [{"type": "text", "text": text}]}
