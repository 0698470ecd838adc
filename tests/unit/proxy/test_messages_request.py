"""A request of the Messages API as it is sent on: narrow edits, and all else as it came."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pegboard.proxy.declared import Declarations
from pegboard.proxy.memory import Insert, Remembered
from pegboard.proxy.messages_request import MessagesRequest, mended
from pegboard.proxy.toolset import Offer

HOUR = {"type": "ephemeral", "ttl": "1h"}
FIVE = {"type": "ephemeral"}


def sent(
    tools: list[dict[str, Any]], hidden: list[str], messages: Any, memory: Remembered, raw: bytes = b""
) -> dict[str, Any]:
    body = raw or json.dumps({"model": "m", "tools": tools, "messages": messages, "temperature": 1.0}).encode()
    fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    declared = Declarations().read("messages", map(bytes, msgspec.json.decode(fields["tools"], type=list[msgspec.Raw])))
    assert declared is not None
    offer = Offer(declared, [tool for tool in declared if tool.name in hidden])
    own = [{"name": "s", "description": "", "schema": {}}, {"name": "c", "description": "", "schema": {}}]
    made = MessagesRequest(fields, offer, memory, own if memory.executor == "bridge" else ()).body([])
    result: dict[str, Any] = json.loads(made)
    return result


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "input_schema": {"type": "object"}, **more}


def native() -> Remembered:
    return Remembered(executor="native")


def test_a_marker_of_an_hour_moves_to_the_last_that_stays_and_is_not_weakened() -> None:
    tools = [tool("Read"), tool("Bash", cache_control=FIVE), tool("x", cache_control=HOUR)]
    made = sent(tools, ["x"], [], native())["tools"]
    assert [(each["name"], each.get("cache_control"), each.get("defer_loading")) for each in made] == [
        ("tool_search_tool_bm25", None, None),
        ("Read", None, None),
        ("Bash", HOUR, None),
        ("x", None, True),
    ]


def test_where_no_tool_stays_the_marker_goes_to_ours() -> None:
    tools = [tool("x"), tool("y", cache_control=HOUR)]
    assert sent(tools, ["x", "y"], [], native())["tools"][0]["cache_control"] == HOUR
    bridge = Remembered(executor="bridge", search="s", call="c")
    made = sent(tools, ["x", "y"], [], bridge)["tools"]
    assert [(each["name"], each.get("cache_control")) for each in made] == [("s", None), ("c", HOUR)]


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from([None, "5m", "1h"])), min_size=1, max_size=8),
    st.sampled_from(["native", "bridge"]),
)
def test_markers_stay_in_an_order_that_the_api_takes_and_none_is_weakened(entries, executor) -> None:
    lasts = [each for _, each in entries if each]
    assume(lasts == sorted(lasts) and len(lasts) <= 4)  # "1h" sorts before "5m", and must stand before it
    tools = [
        tool(f"t{at}", **({"cache_control": {"type": "ephemeral", "ttl": ttl}} if ttl else {}))
        for at, (_, ttl) in enumerate(entries)
    ]
    hidden = [f"t{at}" for at, (is_hidden, _) in enumerate(entries) if is_hidden]
    made = sent(tools, hidden, [], Remembered(executor=executor, search="s", call="c"))["tools"]
    markers = [each["cache_control"]["ttl"] for each in made if "cache_control" in each]
    assert markers == sorted(markers)
    assert len(markers) <= len(lasts)
    assert markers[:1] == lasts[:1]
    assert not any("cache_control" in each for each in made if each.get("defer_loading"))


def test_a_marker_of_five_minutes_does_not_weaken_one_of_an_hour_on_the_last_that_stays() -> None:
    tools = [tool("Read", cache_control=HOUR), tool("x", cache_control=FIVE)]
    for memory in (native(), Remembered(executor="bridge", search="s", call="c")):
        made = sent(tools, ["x"], [], memory)["tools"]
        assert [(each["name"], each["cache_control"]) for each in made if "cache_control" in each] == [("Read", HOUR)]


def test_a_marker_in_the_middle_stays_before_what_came_after_it() -> None:
    tools = [tool("Read"), tool("x", cache_control=HOUR), tool("Bash", cache_control=FIVE), tool("Edit")]
    for memory in (native(), Remembered(executor="bridge", search="s", call="c")):
        made = [each for each in sent(tools, ["x"], [], memory)["tools"] if "cache_control" in each]
        assert [(each["name"], each["cache_control"]) for each in made] == [("Read", HOUR), ("Bash", FIVE)]


def test_a_marker_on_a_tool_that_stays_is_left_alone() -> None:
    tools = [tool("Read", cache_control=FIVE), tool("Bash"), tool("x")]
    made = sent(tools, ["x"], [], native())["tools"]
    assert [each.get("cache_control") for each in made] == [None, FIVE, None, None]


def test_what_is_not_edited_keeps_its_bytes() -> None:
    raw = (
        b'{"model":"m","temperature":1.0,"n":1e2,"tools":[{"name":"Read","input_schema":{"maximum":1.50}},'
        b'{"name":"x","input_schema":{}}],"messages":[{"role":"user","content":"\\u00fc"}],"metadata":{"b":1,"a":2}}'
    )
    fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    declared = Declarations().read("messages", map(bytes, msgspec.json.decode(fields["tools"], type=list[msgspec.Raw])))
    assert declared is not None
    made = MessagesRequest(fields, Offer(declared, declared[1:]), native()).body([])
    for piece in (b'"temperature":1.0', b'"n":1e2', b'{"maximum":1.50}', b'"\\u00fc"', b'{"b":1,"a":2}'):
        assert piece in made


def test_a_bridged_call_goes_back_in_the_order_in_which_the_model_wrote_it() -> None:
    memory = Remembered(executor="bridge", search="s", call="c", bridged={"1 x": True, "2 x": False})
    calls = [{"type": "tool_use", "id": known, "name": "x", "input": {"a": 1}} for known in ("1", "2", "3")]
    [message] = sent([tool("x")], ["x"], [{"role": "assistant", "content": calls}], memory)["messages"]
    assert [(each["name"], list(each["input"])) for each in message["content"]] == [
        ("c", ["arguments", "name"]),
        ("c", ["name", "arguments"]),
        ("x", ["a"]),
    ]


def search(known: str) -> dict[str, Any]:
    return {"type": "server_tool_use", "id": known, "name": "tool_search_tool_bm25", "input": {"query": "q"}}


def result(known: str, *names: str) -> dict[str, Any]:
    found = [{"type": "tool_reference", "tool_name": name} for name in names]
    content = {"type": "tool_search_tool_search_result", "tool_references": found}
    return {"type": "tool_search_tool_result", "tool_use_id": known, "content": content}


def history(*blocks: dict[str, Any], then: str = "tool_result") -> list[Any]:
    call = {"type": "tool_use", "id": "1", "name": "Read", "input": {}}
    after = {"type": then, "tool_use_id": "1", "content": "x"} if then == "tool_result" else {"type": then, "text": "x"}
    return [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [*blocks, call]},
        {"role": "user", "content": [after]},
    ]


def test_a_search_that_the_api_can_still_finish_stays() -> None:
    messages, missing = mended(history(search("s")), {"Read"}, {})
    assert search("s") in messages[1]["content"]
    assert missing == []


def test_a_search_that_nobody_can_finish_goes() -> None:
    messages, _ = mended(history(search("s"), then="text"), {"Read"}, {})
    assert search("s") not in messages[1]["content"]


def test_a_result_without_its_search_goes() -> None:
    messages, _ = mended(history(result("s", "x")), {"Read", "x"}, {})
    assert [block["type"] for block in messages[1]["content"]] == ["tool_use"]


def test_references_are_kept_where_a_definition_can_be_had_and_dropped_where_not() -> None:
    found = result("s", "x", "gone", "tool_search_tool_bm25", "kept")
    messages, missing = mended(history(search("s"), found), {"Read", "x"}, {"kept": tool("kept")})
    assert messages[1]["content"][1] == result("s", "x", "kept")
    assert missing == [tool("kept")]


def test_a_search_that_found_the_search_itself_does_not_poison_the_history() -> None:
    kept, missing = mended(history(search("s"), result("s", "tool_search_tool_bm25", "x")), {"x", "Read"}, {})
    [found] = [block for block in kept[1]["content"] if block["type"] == "tool_search_tool_result"]
    assert [each["tool_name"] for each in found["content"]["tool_references"]] == ["x"]
    assert missing == []


def test_a_search_that_found_the_search_itself_is_put_back_without_it() -> None:
    memory = native()
    memory.inserts = [Insert(before="id:1", blocks=[search("s"), result("s", "tool_search_tool_bm25", "x")])]
    made = sent([tool("Read"), tool("x")], ["x"], history(), memory)
    assert made["messages"][1]["content"][:2] == [search("s"), result("s", "x")]


def test_a_result_of_which_nothing_is_left_stays_with_its_search_as_one_that_found_nothing() -> None:
    kept, _ = mended(history(search("s"), result("s", "gone")), {"Read"}, {})
    assert [block["type"] for block in kept[1]["content"]][:2] == ["server_tool_use", "tool_search_tool_result"]
    assert kept[1]["content"][1]["content"]["tool_references"] == []


@pytest.mark.parametrize("known", [None, {}, [], 1, {"type": "tool_use"}])
def test_searches_whose_ids_are_no_ids_are_no_reason_to_fail(known) -> None:
    kept, _ = mended(history(search(known), result(known, "Read")), {"Read"}, {})
    assert [block["type"] for block in kept[1]["content"]][-1] == "tool_use"


def test_a_message_of_which_nothing_is_left_goes() -> None:
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [search("s")]},
        {"role": "user", "content": "b"},
    ]
    assert mended(messages, set(), {})[0] == [messages[0], messages[2]]


def test_who_called_a_search_and_blocks_of_kinds_to_come_stay_as_they_are() -> None:
    called = {**search("s"), "caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_9"}}
    others: list[dict[str, Any]] = [
        {"type": "compaction", "content": "so far", "tool_changes": [{"type": "tool_addition"}]},
        {"type": "mcp_tool_listing", "tools": [1]},
        {"type": "tool_use", "id": "2", "name": "click", "input": {}, "toolset_name": "computer"},
    ]
    kept, _ = mended(history(called, result("s"), *others), {"Read"}, {})
    assert kept[1]["content"][:5] == [called, result("s"), *others]


def test_definitions_that_went_missing_come_back_deferred_at_the_end() -> None:
    memory = native()
    memory.inserts = [Insert(before="id:1", blocks=[search("s"), result("s", "kept")])]
    memory.definitions = {"kept": tool("kept", cache_control=FIVE)}
    made = sent([tool("Read")], [], history(), memory)
    assert made["tools"][-1] == tool("kept", defer_loading=True)
    assert made["messages"][1]["content"][:2] == [search("s"), result("s", "kept")]
