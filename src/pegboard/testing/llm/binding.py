"""What binds a request to the replies that it holds: thinking is signed for its place, a pause is gone on from.

Above: `messages_rules`, `messages`. Below: `asked`. Pure.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

import msgspec

from pegboard.testing.llm.asked import Asked, bare, blocks, objects
from pegboard.types import Json

if TYPE_CHECKING:
    from hashlib import _Hash

_BINDS = re.compile(r"claude-(?:(?:fable|mythos)-5-[12]|(?:opus|sonnet|haiku)-5-5)(?!\d)")
_CONTROLS = "thinking-binding-controls-2026-08-01"


def thinking_is_in_its_place(asked: Asked) -> str | None:
    """On the newest models thinking that is sent back holds only after what it was thought after: the same system, the
    same tools (but for deferred ones) and the same blocks before it. Cache markers do not count."""
    if drops(asked) or not (wrong := mismatches(asked)):
        return None
    return (
        f"{wrong[0]}: Invalid signature in thinking block. The block is bound to a different conversation. Remove the"
        ' block, or set thinking.block_binding.prefix_mismatch_behavior to "drop_block".'
    )


def pauses_are_gone_on_from(asked: Asked) -> str | None:
    """A turn that paused is sent back as it is, with the same tools, before anything follows it."""
    state, sent = hashlib.sha256(), [_encoded(*each) for each in _placed(asked.messages)]
    for at, block in enumerate(sent):
        paused = asked.issued.get(_pause_key(state), {}).get("content", ())
        given = [_encoded("assistant", each) for each in paused]
        if given and given != sent[at : at + len(given)]:
            return "messages: an assistant turn that stopped with pause_turn must be sent back as it is"
        if given and len(sent) == at + len(given) and asked.issued[_pause_key(state)]["tools"] != resident(asked):
            return "tools: an assistant turn that stopped with pause_turn must be sent back with the same tools"
        state.update(block)
    return None


def resident(asked: Asked) -> list[Json]:
    """The tools that are in the prefix: those that are not deferred, without markers."""
    return [bare(each) for each in asked.tools if not each.get("defer_loading")]


def drops(asked: Asked) -> bool:
    """Whether the request wants thinking that is out of place dropped, which a beta lets it say."""
    thinking = asked.body.get("thinking")
    binding = thinking.get("block_binding") if isinstance(thinking, dict) else None
    wants = isinstance(binding, dict) and binding.get("prefix_mismatch_behavior") == "drop_block"
    return wants and _CONTROLS in asked.betas


def mismatches(asked: Asked) -> list[str]:
    """Where thinking is that is out of place, on a model that minds."""
    if not _BINDS.search(asked.model):
        return []
    wrong, state = [], _beginning(asked)
    for number, message in enumerate(asked.messages):
        for at, block in enumerate(blocks(message)):
            is_thinking = block.get("type") == "thinking"
            if is_thinking and block.get("signature") != _signed(state, str(block.get("thinking"))):
                wrong.append(f"messages.{number}.content.{at}")
            state.update(_encoded(str(message.get("role")), block))
    return wrong


def signature(asked: Asked, before: list[Json], thinking: str) -> str:
    """What thinking is signed with that comes after this request and these blocks of the reply."""
    state = _beginning(asked)
    for role, block in (*_placed(asked.messages), *(("assistant", each) for each in before)):
        state.update(_encoded(role, block))
    return _signed(state, thinking)


def pause(asked: Asked, content: list[Json]) -> dict[str, Json]:
    """What a reply leaves that paused, for the next request to be held against; another one takes that back."""
    state = hashlib.sha256()
    for each in _placed(asked.messages):
        state.update(_encoded(*each))
    return {_pause_key(state): {"content": content, "tools": resident(asked)} if content else {}}


def _beginning(asked: Asked) -> _Hash:
    system = asked.body.get("system")
    said = [{"type": "text", "text": system}] if isinstance(system, str) else objects(system)
    return hashlib.sha256(_encoded("tools", resident(asked)) + _encoded("system", said))


def _placed(messages: list[Json]) -> list[tuple[str, Json]]:
    """All blocks, with whose they are: how they are parted into messages of one side does not count."""
    return [(str(message.get("role")), block) for message in messages for block in blocks(message)]


def _encoded(role: str, value: Any) -> bytes:
    """The same bytes for what means the same: SDKs send keys in another order, and nothing for null."""
    return msgspec.json.encode([role, _plain(bare(value))], order="sorted")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if each is not None}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _signed(state: _Hash, thinking: str) -> str:
    whole = state.copy()
    whole.update(thinking.encode())
    return f"sig_{whole.hexdigest()}"


def _pause_key(state: _Hash) -> str:
    return f"pause_{state.hexdigest()}"
