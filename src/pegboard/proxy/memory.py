"""What the proxy remembers of a conversation: how it was begun, and what the client was never shown of it.

Above: `planner` keeps it, the editors fill it, `weave` puts it back. Below: nothing. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from pegboard.types import Json

MOST_INSERTS = 400
MOST_CALLS = 4_000
MOST_SEEN = 200
_FIRST_SEEN = 8

Executor = Literal["native", "bridge"]


class Insert(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Blocks of a reply that the client was not shown, and where they stood."""

    after: str = ""
    """The mark of the visible block before them; empty at the beginning of a reply."""
    before: str = ""
    """The mark of the visible block after them; empty at the end."""
    prior: str = ""
    """The mark of what the reply answered."""
    spoken: tuple[str, str] = ("", "")
    """`after` and `before` where a client leaves thinking out."""
    length: int = 0
    """Of the text that stood before: a client may have put it together with the next."""
    shown: int = 0
    """How many blocks of the reply the client had been shown before."""
    row: int = 0
    """Which message of the client's history the reply became; 0 when nobody knows."""
    turn: int = 0
    """Which reply of the conversation it belongs to, in the order in which they ended."""
    blocks: list[Json] = []
    results: list[Json] | None = None
    """Answers that ended this part of the reply; None when the reply went on in the same turn."""
    later: list[Json] = []
    """Answers that belong to the client's next turn."""
    asked: list[Json] = []
    """What is still to be answered for `later`."""
    head: int = 0
    """On wires where a reply has one text: how much of it stood before."""


class Remembered(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One conversation whose tools are deferred."""

    executor: Executor
    begun: str = ""
    """The mark of the tools it was begun with."""
    search: str = ""
    """What the tool that searches is called in it."""
    call: str = ""
    """What the tool that calls is called in it; empty where none is needed."""
    listing: str = ""
    """What the model was told of deferred tools at the beginning; it does not change under its eyes."""
    profile: str = ""
    """The agent that began it: whose own tools stay."""
    keep: list[str] = []
    """Globs of tools that stay, by the settings of then: what is in sight must not change under the model's eyes."""
    kept: list[str] = []
    """Tools that stay although their names would not say so."""
    bridged: dict[str, bool] = {}
    """Calls that the model made with `call`, by id and name, and whether it said the arguments first."""
    inserts: list[Insert] = []
    definitions: dict[str, Json] = {}
    """Deferred tools that the conversation refers to."""
    responses: dict[str, str] = {}
    """Replies by the id the client knows, and the id the API knows the end of them by."""
    pending: dict[str, list[Json]] = {}
    """Calls of a stored reply that the client does not know of, by the id it knows the reply by."""
    items: dict[str, str] = {}
    """Items that a client was shown and may only name when it goes on, and the mark of each."""
    seen: list[str] = []
    """Marks of replies that the client was shown: a history without any of them is another conversation's."""
    is_torn: bool = False
    """Whether the latest reply broke off or said nothing: what a client keeps of it has no mark."""
    turns: int = 0
    """Replies so far."""

    def add(self, inserts: list[Insert]) -> None:
        """Remembers what was hidden in one more reply."""
        self.turns += 1
        for insert in inserts:
            insert.turn = self.turns
        self.inserts = [*self.inserts, *inserts]
        if len(self.inserts) > MOST_INSERTS:
            # A good part at once: whenever the oldest go, the prompt's prefix changes, and that is paid for.
            del self.inserts[: MOST_INSERTS // 4]

    def see(self, marks: Iterable[str]) -> None:
        """Remembers what a client was shown; of very many the first and the latest."""
        self.seen += [each for each in dict.fromkeys(marks) if each not in self.seen]
        del self.seen[_FIRST_SEEN : -(MOST_SEEN - _FIRST_SEEN)]

    def bridge(self, call: Any, name: Any, *, arguments_first: bool) -> None:
        """Remembers that this call was made through the bridge. Some servers use an id again, for another tool."""
        self.bridged[f"{call} {name}"] = arguments_first
        _bound(self.bridged, MOST_CALLS)

    def bridged_as(self, call: Any, name: Any) -> bool | None:
        """Whether the model said the arguments of this call first; None when it did not call through the bridge."""
        return self.bridged.get(f"{call} {name}")

    def name(self, item: str, known: str) -> None:
        """Remembers what an item is known by, for clients that will only name it."""
        self.items[item] = known
        _bound(self.items, MOST_CALLS)

    @property
    def can_shrink(self) -> bool:
        """Whether there is anything that could go without the whole conversation being forgotten."""
        return bool(self.inserts or self.definitions or self.pending)

    def shrink(self) -> None:
        """Lets the older go: there is too much to keep."""
        del self.inserts[: len(self.inserts) // 4 + 1]
        for kept in (self.definitions, self.pending):
            for name in [*kept][: len(kept) // 4 + 1]:
                del kept[name]


def _bound(kept: dict[str, Any], most: int) -> None:
    """The oldest go, a good part at once."""
    if len(kept) > most:
        for name in [*kept][: most // 4]:
            del kept[name]


def digest(*parts: Any) -> str:
    """A short mark of these texts."""
    whole = hashlib.blake2b(digest_size=12)
    for part in parts:
        raw = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
        whole.update(b"%d:" % len(raw) + raw)
    return whole.hexdigest()


def mark(block: Any) -> str:
    """What a block of a reply is known by when it comes back: ids and signatures where it has them, else its text.

    What says nothing has no mark: clients leave it out, and it is everywhere.
    """
    if not isinstance(block, dict):
        return ""
    if known := block.get("call_id") or (
        block.get("id") if block.get("type") in ("tool_use", "server_tool_use") else ""
    ):
        return f"id:{known}"
    if known := block.get("tool_use_id") or block.get("tool_call_id"):
        return f"for:{known}"
    if known := block.get("signature") or block.get("encrypted_content"):
        return f"sig:{digest(known)}"
    if block.get("type") in ("thinking", "redacted_thinking"):  # not every server signs it
        thought = block.get("data") or block.get("thinking")
        return f"sig:{digest(thought)}" if thought else ""
    text = text_of(block).strip()
    return f"text:{digest(text)}" if text else ""


def is_sure(known: str) -> bool:
    """Whether a mark can be in one place only."""
    return known.startswith(("id:", "sig:", "for:", "item:"))


def is_thought(known: str) -> bool:
    """Whether this marks thinking, which some clients leave out."""
    return known.startswith("sig:")


def text_of(value: Any) -> str:
    """All text in a block, a message or its content."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(map(text_of, value))
    if isinstance(value, dict):
        own = value.get("text") or value.get("thinking") or value.get("refusal")
        return own if isinstance(own, str) else text_of(value.get("content") or value.get("parts") or "")
    return ""
