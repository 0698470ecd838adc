"""The model that the agents talk to: it goes by what it is shown, so that requests beside the work disturb nothing."""

from __future__ import annotations

import re
from typing import Any

from pegboard.testing import Move, ScriptedModel, Shown
from pegboard.types import Json
from tests.agents.books import receipt

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


class Clerk(ScriptedModel):
    """Finds a deferred tool, has it called, uses the agent's own tools, more than one at once, and says goodbye.

    Asked once more it calls the tool again, without a search when it sees the tool still.
    """

    def __init__(self, tool: str, own: tuple[tuple[str, Json], ...]) -> None:
        super().__init__()
        self._tool = tool
        self._own = own

    def answer(self, shown: Shown) -> Move:
        """What comes next, by what the history has."""
        self.shown.append(shown)
        said = _texts(shown)
        if self._own[0][0] not in shown.names:
            return Move(text=TITLE)
        if len(self.shown) > MOST_TURNS:
            return Move(text="This goes on for too long.")
        if ANOTHER in said:
            is_done = receipt(TOOL, SECOND) in said
            return Move(text=FAREWELL_AGAIN) if is_done else self._call(shown, said, SECOND)
        if SECRET in said and COPIED in said:
            return Move(text=FAREWELL)
        return Move(calls=self._own) if receipt(TOOL, FIRST) in said else self._call(shown, said, FIRST)

    def _call(self, shown: Shown, said: str, arguments: Json) -> Move:
        names = shown.names
        if self._tool in names:
            return Move(text="I see it.", calls=((self._tool, arguments),))
        if any(name.startswith("tool_search_tool") for name in names):
            return Move(text="I found it.", searches=(QUERY,), calls=((self._tool, arguments),))
        if "search_tools" in names:
            if re.search(rf"{self._tool}\(", said):
                return Move(text="I found it.", calls=(("call_tool", {"name": self._tool, "arguments": arguments}),))
            return Move(text="I look for it.", calls=(("search_tools", {"query": QUERY}),))
        if "ToolSearch" in names:
            return Move(calls=(("ToolSearch", {"query": f"select:{self._tool}"}),))
        return Move(text="There is no such tool.")


def _texts(shown: Shown) -> str:
    """All that was said, in the words in which it was said."""
    return "\n".join(_strings(list(shown.messages)))


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inner for text in _strings(each)]
