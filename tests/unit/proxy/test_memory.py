"""What is remembered of a conversation: what things are known by, and how much of it there may be."""

from __future__ import annotations

import pytest

from pegboard.proxy.memory import (
    MOST_CALLS,
    MOST_INSERTS,
    MOST_SEEN,
    Insert,
    Remembered,
    digest,
    is_sure,
    is_thought,
    mark,
)


def remembered() -> Remembered:
    return Remembered(executor="bridge")


@pytest.mark.parametrize(
    ("block", "begins"),
    [
        ({"type": "tool_use", "id": "toolu_1"}, "id:toolu_1"),
        ({"type": "server_tool_use", "id": "srvtoolu_1"}, "id:srvtoolu_1"),
        ({"call_id": "call_1", "id": "fc_1"}, "id:call_1"),
        ({"type": "tool_result", "tool_use_id": "toolu_1"}, "for:toolu_1"),
        ({"role": "tool", "tool_call_id": "call_1"}, "for:call_1"),
        ({"type": "thinking", "thinking": "x", "signature": "s"}, "sig:"),
        ({"type": "thinking", "thinking": "x"}, "sig:"),
        ({"type": "redacted_thinking", "data": "x"}, "sig:"),
        ({"type": "reasoning", "encrypted_content": "x"}, "sig:"),
        ({"type": "text", "text": "x"}, "text:"),
        ({"role": "assistant", "content": [{"type": "output_text", "text": "x"}]}, "text:"),
        ({"role": "assistant", "content": "x", "id": "msg_1"}, "text:"),
    ],
)
def test_a_block_is_known_by_its_id_its_signature_or_its_words(block, begins) -> None:
    assert mark(block).startswith(begins)
    assert is_sure(mark(block)) == (begins != "text:")
    assert is_thought(mark(block)) == (begins == "sig:")


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": ""},
        {"type": "text", "text": " \n"},
        {"type": "text", "text": None},
        {"type": "thinking", "thinking": ""},
        {"content": [{"type": "text", "text": ""}]},
        {},
        None,
        "x",
        [1],
    ],
)
def test_what_says_nothing_has_no_mark(block) -> None:
    assert mark(block) == ""


def test_blanks_around_words_and_markers_make_no_difference() -> None:
    plain = mark({"type": "text", "text": "One."})
    assert mark({"type": "text", "text": "\n One. ", "cache_control": {"type": "ephemeral"}}) == plain
    assert mark({"type": "text", "text": "One . "}) != plain


def test_a_digest_tells_parts_apart_and_takes_half_characters() -> None:
    assert digest("a", "bc") != digest("ab", "c")
    assert digest("\ud83d") == digest("\ud83d")


def test_of_very_many_replies_the_first_and_the_latest_are_known() -> None:
    memory = remembered()
    for number in range(3 * MOST_SEEN):
        memory.see([f"id:{number}", f"id:{number}"])
    assert len(memory.seen) == MOST_SEEN
    assert memory.seen[:2] == ["id:0", "id:1"]
    assert memory.seen[-1] == f"id:{3 * MOST_SEEN - 1}"


def test_there_are_bounds_to_what_is_hidden_called_and_named() -> None:
    memory = remembered()
    for number in range(MOST_INSERTS + 1):
        memory.add([Insert(after=f"id:{number}")])
    for number in range(MOST_CALLS + 1):
        memory.bridge(number, "x", arguments_first=False)
        memory.name(f"fc_{number}", f"id:{number}")
    assert len(memory.inserts) == MOST_INSERTS * 3 // 4 + 1
    assert (len(memory.bridged), len(memory.items)) == (MOST_CALLS * 3 // 4 + 1,) * 2
    assert memory.inserts[-1].after == f"id:{MOST_INSERTS}"
    assert memory.bridged_as(MOST_CALLS, "x") is False


def test_a_call_of_another_tool_with_the_same_id_is_not_of_the_bridge() -> None:
    memory = remembered()
    memory.bridge("call_0", "forecast", arguments_first=True)
    assert memory.bridged_as("call_0", "forecast") is True
    assert memory.bridged_as("call_0", "Read") is None
    assert memory.bridged_as("call_1", "forecast") is None


def test_what_shrinks_ends_as_nothing() -> None:
    memory = remembered()
    memory.inserts = [Insert() for _ in range(9)]
    memory.definitions = {str(number): {} for number in range(9)}
    memory.pending = {str(number): [] for number in range(9)}
    steps = 0
    while memory.can_shrink:
        memory.shrink()
        steps += 1
    assert (memory.inserts, memory.definitions, memory.pending) == ([], {}, {})
    assert steps > 3
