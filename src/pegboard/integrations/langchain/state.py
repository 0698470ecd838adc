"""What an agent's state keeps of a conversation, so that checkpoints carry it and old ones bring it back.

Above: `middleware`. Below: the board's state, which is bytes; a checkpoint may be JSON.
"""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from typing_extensions import TypedDict

from pegboard.board import state as board_state

KEY = "pegboard"


class Kept(TypedDict, total=False):
    """A conversation's key, and what it has loaded."""

    conversation: str
    loaded: str


def kept(conversation: str, loaded: bytes) -> Kept:
    """What to put into the agent's state."""
    return Kept(conversation=conversation, loaded=base64.b64encode(loaded).decode())


def loaded(state: Any) -> bytes:
    """What a conversation has loaded; what cannot be read is nothing."""
    text = state.get("loaded") if isinstance(state, dict) else None
    try:
        return base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except (binascii.Error, ValueError):
        return b""


def both(before: Kept | None, update: Kept | None) -> Kept:
    """The reducer: calls that went on at once all count, and the order of the last list is the update's."""
    if not before or not update:
        return update or before or Kept()
    conversation = update.get("conversation") or before.get("conversation", "")
    return kept(conversation, board_state.merged(loaded(update), loaded(before)))


class PegboardState(AgentState[Any]):
    """An agent's state with what its conversation has loaded; private, so that no sub-agent is handed it by chance."""

    pegboard: NotRequired[Annotated[Kept, PrivateStateAttr, both]]
