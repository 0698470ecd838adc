"""What deferral saves, counted: definitions as clients sent them, and what models were shown of them instead.

Every round is counted, also those that clients did not ask for, and with each the answers to searches: else it would
look like more than it is. What APIs report is counted elsewhere (`usage`). Above: `planner`. Below: `tally`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pegboard.proxy.declared import Declared
from pegboard.proxy.memory import Insert, Remembered
from pegboard.proxy.tally import Tally
from pegboard.proxy.toolset import Offer
from pegboard.surface.tokens import definition_tokens
from pegboard.types import Json

MOST_KNOWN = 20_000


class Savings:
    """Adds to a tally. An agent sends the same tools every time, so the size of each is worked out once."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._known: dict[bytes, int] = {}

    def tokens_of(self, tool: Declared) -> int:
        """The size of a definition."""
        known = self._known.get(tool.raw)
        if known is None:
            about = {"name": tool.name, "description": tool.description, "inputSchema": tool.schema}
            known = self._keep(tool.raw, definition_tokens(about))
        return known

    def count(self, memory: Remembered, offer: Offer, own: Sequence[Json], put_back: Sequence[Insert]) -> int:
        """One request of a client's; gives what each of its rounds shows, whatever else it has.

        Only what this request has again counts: conversations that begin alike are remembered together.
        """
        tally = self._tally
        tally.count(tally.deferred, memory.executor)
        tally.tools_deferred += len(offer.deferred)
        before = sum(map(self.tokens_of, offer.tools))
        shown = before - sum(map(self.tokens_of, offer.deferred))
        found = [memory.definitions[name] for name in _found(put_back) if name in memory.definitions]
        shown += sum(map(self._tokens_of, own)) + sum(map(self._tokens_of, found))
        shown += sum(_answer_tokens((*(insert.results or ()), *insert.later)) for insert in put_back)
        tally.definition_tokens_before += before
        tally.definition_tokens_after += shown
        return shown

    def count_round(self, shown: int, answers: Sequence[Json]) -> None:
        """Another round of that request, with the answers that its searches have got so far."""
        self._tally.definition_tokens_after += shown + _answer_tokens(answers)

    def _tokens_of(self, tool: Json) -> int:
        """The same for a tool of ours, or one that a search of the API's has found."""
        raw = msgspec.json.encode(tool)
        if raw in self._known:
            return self._known[raw]
        schema = tool.get("schema") or tool.get("input_schema") or {}
        about = {"name": tool.get("name"), "description": tool.get("description") or "", "inputSchema": schema}
        return self._keep(raw, definition_tokens(about))

    def _keep(self, raw: bytes, size: int) -> int:
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[raw] = size
        return size


def _found(put_back: Sequence[Insert]) -> list[str]:
    """The tools that searches of the API's own have found, each once."""
    contents = [block.get("content") for insert in put_back for block in insert.blocks]
    lists = [each.get("tool_references") for each in contents if isinstance(each, dict)]
    references = [each for found in lists if isinstance(found, list) for each in found]
    return [*dict.fromkeys(str(each.get("tool_name")) for each in references if isinstance(each, dict))]


def _answer_tokens(answers: Sequence[Json]) -> int:
    return sum(len(msgspec.json.encode(each)) for each in answers) // 4
