"""However a history was cut, mended it is one that the API takes."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pegboard.integrations.dialects import completions, responses
from pegboard.integrations.dialects.mend_messages import mended
from pegboard.testing.llm import completions as completions_wire
from pegboard.testing.llm import messages_rules, responses_rules
from pegboard.testing.llm.asked import Asked

turns = st.lists(st.integers(0, 3), min_size=1, max_size=6)
"""How many calls each turn of the model makes."""
keeps = st.lists(st.booleans(), min_size=40, max_size=40)


def on_messages(calls: list[int]) -> list[Any]:
    history: list[Any] = []
    for turn, count in enumerate(calls):
        ids = [f"{turn}-{at}" for at in range(count)]
        uses = [{"type": "tool_use", "id": each, "name": "t", "input": {}} for each in ids]
        results = [{"type": "tool_result", "tool_use_id": each, "content": "ok"} for each in ids]
        history.append({"role": "user", "content": "go"})
        history.append({"role": "assistant", "content": [{"type": "text", "text": "hm"}, *uses]})
        history += [{"role": "user", "content": results}] if results else []
    return [*history, {"role": "user", "content": "last"}]


def on_responses(calls: list[int]) -> list[Any]:
    items: list[Any] = []
    for turn, count in enumerate(calls):
        ids = [f"{turn}-{at}" for at in range(count)]
        kinds = [("tool_search" if at == 2 else "function") for at in range(count)]
        items.append({"role": "user", "content": "go"})
        for each, kind in zip(ids, kinds, strict=True):
            items.append(
                {"type": f"{kind}_call", "call_id": each, "execution": "client", "name": "t", "arguments": "{}"}
            )
        for each, kind in zip(ids, kinds, strict=True):
            search = {"execution": "client", "status": "completed", "tools": []}
            kind = "tool_search_output" if kind == "tool_search" else "function_call_output"
            items.append(
                {"type": kind, "call_id": each, **(search if kind == "tool_search_output" else {"output": "ok"})}
            )
    return [*items, {"role": "user", "content": "last"}]


def on_completions(calls: list[int]) -> list[Any]:
    messages: list[Any] = []
    for turn, count in enumerate(calls):
        ids = [f"{turn}-{at}" for at in range(count)]
        made = [{"id": each, "type": "function", "function": {"name": "t", "arguments": "{}"}} for each in ids]
        messages.append({"role": "user", "content": "go"})
        messages.append({"role": "assistant", "content": "hm", **({"tool_calls": made} if made else {})})
        messages += [{"role": "tool", "tool_call_id": each, "content": "ok"} for each in ids]
    return [*messages, {"role": "user", "content": "last"}]


def cut(history: list[Any], keep: list[bool]) -> list[Any]:
    """What is left of it; the last message always is."""
    return [each for each, kept in zip(history, [*keep[: len(history) - 1], True], strict=False) if kept][
        :-1
    ] + history[-1:]


@given(turns, keeps)
def test_on_messages(calls: list[int], keep: list[bool]) -> None:
    history = on_messages(calls)
    assert mended(history) == history
    asked = Asked({"model": "m", "max_tokens": 1, "messages": mended(cut(history, keep))})
    assert messages_rules.asks_for_something(asked) is None
    assert messages_rules.calls_are_answered(asked) is None


@given(turns, keeps)
def test_on_responses(calls: list[int], keep: list[bool]) -> None:
    items = on_responses(calls)
    assert responses.mended(items) == items
    asked = Asked({"input": responses.mended(cut(items, keep))})
    assert responses_rules.calls_are_answered(asked) is None
    assert responses_rules.searches_are_whole(asked) is None


@given(turns, keeps)
def test_on_chat_completions(calls: list[int], keep: list[bool]) -> None:
    messages = on_completions(calls)
    assert completions.mended(messages) == messages
    asked = Asked({"messages": completions.mended(cut(messages, keep))})
    assert completions_wire.calls_are_answered(asked) is None
