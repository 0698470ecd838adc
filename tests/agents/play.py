"""The model that the agents talk to: it goes by what it is shown, so that requests beside the work disturb nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pegboard.testing import Move, ScriptedModel, Shown
from pegboard.types import Json
from tests.agents.books import NOUNS, VERBS, receipt

TOOL = "refund_invoice"
QUERY = "refund an invoice"
FIRST: Json = {
    "invoice": "INV-7731",
    "amount": 41.5,
    "currency": "EUR",
    "lines": [{"sku": "A-1", "count": 2}],
    "note": 'Käse "für" 2\nTage',
}
SECOND: Json = {"invoice": "INV-7732", "note": "the other one"}
NOTE = "note.txt"
SECRET = "the-owl-sleeps-at-noon"
"""What stands in the file that the agent's own tool is to read."""
COPY = "copy.txt"
"""What the agent's own shell makes of it."""
COPIED = "copied-and-signed"
FAREWELL = "Both is done, goodbye."
ANOTHER = "Now the other invoice, please."
"""What the person says once the first is done."""
FAREWELL_AGAIN = "The other one is done too, goodbye."
TITLE = "Refund of an invoice"
MOST_TURNS = 24


class Step(NamedTuple):
    """Calls that are made at once, and what shows that all of them were run."""

    calls: tuple[tuple[str, Json], ...]
    signs: tuple[str, ...]
    queries: Mapping[str, str] = {}
    """What to search for, for each tool that may have to be found."""


def every(tools: Mapping[str, str]) -> Step:
    """Each tool of each server once; `tools` has their names as the agent has them, and of which server each is."""
    calls, signs, queries = [], [], {}
    for name, server in tools.items():
        verb, noun = next((verb, noun) for verb in VERBS for noun in NOUNS if name.endswith(f"{verb}_{noun}"))
        arguments: Json = {noun: f"{server}-{verb}-1001"}
        calls.append((name, arguments))
        signs.append(receipt(f"{verb}_{noun}", arguments))
        queries[name] = f"{server} {verb} {noun}"
    return Step(tuple(calls), tuple(signs), queries)


class Clerk(ScriptedModel):
    """Takes one step after the other, finds what it does not see, and says goodbye.

    Asked once more it calls the first tool again, without a search when that was found before.
    """

    def __init__(self, tool: str, steps: Sequence[Step], at_work: str) -> None:
        """`at_work` is a tool that is there whenever there is work to be done."""
        super().__init__()
        found = {tool: QUERY}
        self._first = [Step(((tool, FIRST),), (receipt(TOOL, FIRST),), found), *steps]
        self._second = [Step(((tool, SECOND),), (receipt(TOOL, SECOND),), found)]
        self._at_work = at_work

    def answer(self, shown: Shown) -> Move:
        """What comes next, by what the history has."""
        self.shown.append(shown)
        said = _texts(shown)
        if self._at_work not in shown.names:
            return Move(text=TITLE)
        if len(self.shown) > MOST_TURNS:
            return Move(text="This goes on for too long.")
        steps, farewell = (self._second, FAREWELL_AGAIN) if ANOTHER in said else (self._first, FAREWELL)
        step = next((each for each in steps if any(sign not in said for sign in each.signs)), None)
        return Move(text=farewell) if step is None else _taken(step, shown.names, said)


def _taken(step: Step, names: Sequence[str], said: str) -> Move:
    """The calls of a step, or a search for what is not in sight."""
    hidden = [name for name, _ in step.calls if name not in names]
    if not hidden:
        return Move(calls=step.calls)
    if any(name.startswith("tool_search_tool") for name in names):
        return Move(text="I found it.", searches=tuple(step.queries[name] for name in hidden), calls=step.calls)
    if "search_tools" in names:
        if lacking := [name for name in hidden if f"{name}(" not in said]:
            return Move(
                text="I look for it.", calls=tuple(("search_tools", {"query": step.queries[name]}) for name in lacking)
            )
        return Move(
            text="I found it.", calls=tuple(_bridged(call) if call[0] in hidden else call for call in step.calls)
        )
    if "ToolSearch" in names:
        return Move(calls=(("ToolSearch", {"query": f"select:{','.join(hidden)}"}),))
    return Move(text="There is no such tool.")


def _bridged(call: tuple[str, Json]) -> tuple[str, Json]:
    return "call_tool", {"name": call[0], "arguments": call[1]}


def _texts(shown: Shown) -> str:
    """All that was said, in the words in which it was said."""
    return "\n".join(_strings(list(shown.messages)))


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inner for text in _strings(each)]
