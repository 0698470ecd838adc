"""The parts of the LangChain plug-in that need no agent: where tools are put, results as messages, the reducer."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage, message_to_dict

from pegboard.board.result import Result
from pegboard.board.state import names_of
from pegboard.integrations.langchain.messages import LOADED, tool_message
from pegboard.integrations.langchain.reveal import on_list, provider_of, takes_tools_in_messages, with_tools
from pegboard.integrations.langchain.state import Kept, both, kept, loaded
from pegboard.surface.activation import Activation
from pegboard.testing import tool_definition
from tests.often import often

several = settings(max_examples=often(60), deadline=None)

# ── where tools are put ──────────────────────────────────────────────────────────────────────────────────────────────


def answers(call_id: str, *names: str) -> ToolMessage:
    return ToolMessage("ok", tool_call_id=call_id, response_metadata={LOADED: list(names)} if names else {})


def asks(*ids: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "x", "args": {}, "id": each} for each in ids])


def plain(messages: list[AnyMessage]) -> list[str]:
    return [json.dumps(message_to_dict(each), sort_keys=True) for each in messages]


Turn = int | list[list[str]]
turns = st.lists(
    st.one_of(
        st.integers(1, 2),
        st.lists(st.lists(st.sampled_from("abcdef"), max_size=3), min_size=1, max_size=3),
    ),
    min_size=1,
    max_size=6,
)
"""The model says something and the user so many things, or the model makes calls, each of which loads some tools."""


def requests_of(turns: list[Turn]) -> list[list[AnyMessage]]:
    """A conversation as the model was sent it, request by request."""
    history: list[AnyMessage] = [HumanMessage("hello")]
    sent = [list(history)]
    for number, turn in enumerate(turns):
        if isinstance(turn, int):
            history += [AIMessage(f"said {number}"), *(HumanMessage("so?") for _ in range(turn))]
        else:
            ids = [f"{number}-{call}" for call in range(len(turn))]
            history += [asks(*ids), *(answers(each, *names) for each, names in zip(ids, turn, strict=True))]
        sent.append(list(history))
    return sent


@several
@given(turns, st.sampled_from(["anthropic", "openai"]))
def test_each_request_begins_with_the_whole_of_the_one_before(turns: list[Turn], provider: Any) -> None:
    before: list[str] = []
    for request in requests_of(turns):
        shown, left = with_tools(request, [], tool_definition, provider)
        assert left == []
        assert plain(shown)[: len(before)] == before
        before = plain(shown)


@several
@given(turns, st.sampled_from(["anthropic", "openai"]), st.lists(st.sampled_from("abcxyz"), unique=True))
def test_tools_are_added_once_and_only_between_a_users_turn_and_the_models(
    turns: list[Turn], provider: Any, active: list[str]
) -> None:
    messages = requests_of(turns)[-1]
    shown, _ = with_tools(messages, active, tool_definition, provider)
    added: list[Any] = []
    for place, message in enumerate(shown):
        if not isinstance(message, SystemMessage):
            continue
        assert isinstance(shown[place - 1], HumanMessage | ToolMessage)
        assert place + 1 == len(shown) or isinstance(shown[place + 1], AIMessage)
        content: Any = message.content
        for block in content:
            added += block["tools"] if provider == "openai" else [block["tool"]["definition"]]
    loaded_in_history = {
        name for each in messages if isinstance(each, ToolMessage) for name in each.response_metadata.get(LOADED, [])
    }
    assert sorted(each["name"] for each in added) == sorted({*active, *loaded_in_history})
    assert [each for each in shown if not isinstance(each, SystemMessage)] == messages


def test_where_there_is_no_place_the_tools_are_handed_back() -> None:
    messages: list[AnyMessage] = [AIMessage("hello")]
    shown, left = with_tools(messages, ["a"], tool_definition, "anthropic")
    assert (shown, left) == (messages, [tool_definition("a")])


def test_an_empty_turn_of_the_model_does_not_count() -> None:
    messages: list[AnyMessage] = [HumanMessage("hello"), AIMessage(""), HumanMessage("?"), AIMessage("yes")]
    shown, _ = with_tools(messages, ["a"], tool_definition, "anthropic")
    assert [each.type for each in shown] == ["human", "ai", "human", "system", "ai"]


@pytest.mark.parametrize("strange", [None, "a", 7, {"a": 1}])
def test_metadata_that_is_not_ours_is_left_alone(strange: Any) -> None:
    message = ToolMessage("ok", tool_call_id="1", response_metadata={LOADED: strange})
    assert with_tools([HumanMessage("x"), asks("1"), message], [], tool_definition, "openai")[0][-1] is message


@pytest.mark.parametrize("model", [object(), "openai:gpt", None])
def test_what_is_no_chat_model_is_of_no_provider(model: Any) -> None:
    assert provider_of(model) == ""
    assert not takes_tools_in_messages(model)


# ── results ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def shown(*blocks: Any, **more: Any) -> Any:
    return tool_message(Result({"content": list(blocks), **more}), "t", "1").content


def test_text_is_one_string() -> None:
    assert shown({"type": "text", "text": "a"}, {"type": "text", "text": "b"}) == "a\nb"
    assert shown() == ""
    assert shown(structuredContent={"a": 1}) == '{"a":1}'


def test_resources_and_links_are_text() -> None:
    note = {"type": "resource", "resource": {"uri": "file:///n", "text": "the note"}}
    link = {"type": "resource_link", "uri": "file:///m", "name": "more", "description": "the rest"}
    assert shown(note, link) == "the note\nmore: the rest <file:///m>"


def test_pictures_are_pictures_wherever_they_are() -> None:
    picture = {"type": "image", "base64": "aGk=", "mime_type": "image/gif"}
    assert shown({"type": "image", "data": "aGk=", "mimeType": "image/gif"}) == [picture]
    assert shown({"type": "resource", "resource": {"uri": "x", "blob": "aGk=", "mimeType": "image/gif"}}) == [picture]


@pytest.mark.parametrize("block", [
    {"type": "image", "data": "PHN2Zz4=", "mimeType": "image/svg+xml"},
    {"type": "image", "data": "", "mimeType": "image/png"},
    {"type": "image", "data": "aGk="},
    {"type": "resource", "resource": {"uri": "x", "blob": "Qk0=", "mimeType": "image/bmp"}},
])  # fmt: skip
def test_pictures_that_the_apis_refuse_are_told_of_and_blanks_beside_a_picture_are_left_out(block: Any) -> None:
    assert "not shown; it is in the artifact" in shown(block)
    gif = {"type": "image", "data": "aGk=", "mimeType": "image/gif"}
    assert [each["type"] for each in shown({"type": "text", "text": "\n"}, gif)] == ["image"]


def test_a_schema_is_bent_to_what_the_providers_api_takes_and_no_parameter_is_lost() -> None:
    either = [{"properties": {"a": {"type": "array"}}}, {"properties": {"$b": {}}, "required": ["$b"]}]
    definition: Any = {
        "name": "t",
        "description": "About",
        "inputSchema": {"type": ["object", "null"], "oneOf": either},
    }
    openai = on_list(definition, "openai")["function"]
    assert openai["parameters"] == {"type": "object", "properties": {"$b": {}, "a": {"type": "array", "items": {}}}}
    claude = on_list(definition, "anthropic")["function"]
    assert claude["parameters"] == {"type": "object", "properties": {"a": {"type": "array"}}}
    assert claude["description"] == "About\nAlso takes these arguments, by exactly these names: $b"
    assert on_list(definition, "")["function"]["parameters"] == {**definition["inputSchema"], "properties": {}}


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ({"type": "audio", "data": "aGkh", "mimeType": "audio/wav"}, "audio/wav, 3 bytes"),
        ({"type": "resource", "resource": {"uri": "file:///z", "blob": "aGkh"}}, "a file, 3 bytes file:///z"),
        ({"type": "hologram"}, "hologram"),
        ({}, "None"),
    ],
)
def test_what_models_refuse_in_a_result_is_told_in_words_and_kept(block: Any, words: str) -> None:
    message = tool_message(Result({"content": [block]}), "t", "1")
    assert message.content == f"[{words}: not shown; it is in the artifact]"
    assert message.artifact == {"content": [block]}


# ── the reducer ──────────────────────────────────────────────────────────────────────────────────────────────────────


def state_of(*names: str, at: float, listed: tuple[str, ...] = ()) -> bytes:
    activation = Activation(cap=4)
    for name in names:
        activation = activation.used(name, at).activation
    return activation.after(listed, None).to_bytes()


def test_both_of_two_calls_count_and_the_newer_list_is_the_order() -> None:
    before = kept("c", state_of("a", at=1, listed=("a",)))
    one = kept("c", state_of("a", "b", at=2, listed=("a", "b")))
    other = kept("c", state_of("a", "d", at=3, listed=("a", "d")))
    merged = both(both(before, one), other)
    assert sorted(names_of(loaded(merged))) == ["a", "b", "d"]
    assert merged["conversation"] == "c"
    assert b'"listed":["a","d"]' in loaded(merged)


names = st.lists(st.sampled_from("abcdef"), max_size=4, unique=True)


@several
@given(names, names, names)
def test_merging_is_stable_and_loses_nothing_that_fits(first: list[str], second: list[str], third: list[str]) -> None:
    one, two, three = (kept("c", state_of(*each, at=n)) for n, each in enumerate((first, second, third), start=1))
    merged = both(both(one, two), three)
    assert both(merged, three) == merged
    assert set(third) <= set(names_of(loaded(merged)))
    assert len(names_of(loaded(merged))) == min(4, len({*first, *second, *third}))


@pytest.mark.parametrize("broken", [None, {}, {"loaded": 7}, {"loaded": "???"}, {"loaded": "aGk="}, "text", []])
def test_what_cannot_be_read_is_nothing(broken: Any) -> None:
    assert names_of(loaded(broken)) == ()


def test_an_empty_side_is_the_other() -> None:
    some = kept("c", state_of("a", at=1))
    assert both(None, some) == both(some, None) == both(Kept(), some) == some
    assert both(None, None) == {}


def test_without_langchain_the_import_says_how_to_get_it() -> None:
    program = (
        "import sys; sys.modules['langchain'] = None\n"
        "try:\n    import pegboard.integrations.langchain\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'pegboard[langchain]'" in done.stdout
