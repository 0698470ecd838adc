"""The desk: what is listed, what a search loads, and that every tool can be called whether it is listed or not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from pegboard.catalog.catalog import Catalog
from pegboard.catalog.slices import ServerEntry
from pegboard.config.model import CallsConfig
from pegboard.errors import RemoteError, StartFailed
from pegboard.surface.tokens import WORD_PIECES, definition_tokens
from pegboard.testing import text_result
from pegboard.types import Caller, Ending, Exposure, Lookup, Outcome, Unlisted
from tests.unit.index.given import office, tool
from tests.unit.platform_tools.given import ANA, Office, text_of

OWN = ["search_tools", "call_tool", "batch_tools", "read_result"]
TITLE = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["title"],
}


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


# ── what is listed ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_model_sees_four_tools_instead_of_all():
    assert Office().listed() == OWN


def test_below_the_threshold_everything_passes_as_it_is_and_nothing_of_ours_is_added():
    desk = Office(mode="auto")
    assert desk.listed() == list(desk.catalog.tools)
    definition = desk.desk.tools(ANA)[0]
    assert definition == {**desk.catalog.tools[definition["name"]].parsed(), "name": definition["name"]}


def test_above_the_threshold_all_is_deferred():
    assert Office(mode="auto", threshold=50).listed() == OWN


def test_pinned_tools_are_listed_besides():
    assert Office(pinned=("send_message",)).listed() == [*OWN, "slack__send_message"]


def test_own_tools_and_their_digest_stay_within_700_tokens_whatever_there_is():
    for servers in (1, 40, 400):
        many = [tool(f"thing_{n}", "x" * 200, f"server-with-a-long-name-{s}") for s in range(servers) for n in range(5)]
        for calls in ("one", "by-effect"):
            own = Office(many, call_tools=calls).desk.tools(Caller())
            assert sum(definition_tokens(each, WORD_PIECES) for each in own) <= 700


def test_every_server_is_named_in_the_digest_while_there_is_room():
    about = Office().desk.tools(ANA)[0]["description"]
    assert all(server in about for server in ("github", "slack", "weather", "files", "bank"))


def test_a_list_without_a_conversation_is_the_same_whatever_others_have_loaded():
    async def scenario() -> None:
        desk = Office(list_active=True)
        before = desk.desk.tools(Caller())
        await desk.search("open an issue")
        assert desk.desk.tools(Caller()) == before

    run(scenario())


def test_with_list_active_what_was_found_is_appended_and_the_version_changes():
    async def scenario() -> None:
        desk = Office(list_active=True)
        before, version = desk.listed(), desk.desk.version(ANA)
        said = await desk.search("open an issue in a repository", limit=1)
        assert desk.listed() == [*before, "github__create_issue"]
        assert desk.desk.version(ANA) != version
        assert "Loaded: github__create_issue." in said

    run(scenario())


def test_without_list_active_the_list_never_changes():
    async def scenario() -> None:
        desk = Office()
        version = desk.desk.version(ANA)
        await desk.search("open an issue in a repository")
        await desk.call("github__create_issue", {})
        assert (desk.listed(), desk.desk.version(ANA)) == (OWN, version)
        assert desk.active()

    run(scenario())


def test_the_version_changes_with_the_catalog():
    desk = Office()
    before = desk.desk.version(Caller())
    desk.show([*office(), tool("add_event", "Adds an event.", "calendar")], "2")
    assert desk.desk.version(Caller()) != before


def test_by_effect_there_are_two_ways_to_call_with_honest_annotations():
    tools = {each["name"]: each for each in Office(call_tools="by-effect").desk.tools(ANA)}
    assert list(tools) == ["search_tools", "call_tool_read", "call_tool_write", "batch_tools", "read_result"]
    assert tools["call_tool_read"]["annotations"]["readOnlyHint"] is True
    assert tools["call_tool_write"]["annotations"]["destructiveHint"] is True
    assert tools["batch_tools"]["annotations"]["readOnlyHint"] is True


@pytest.mark.parametrize("calls", ["one", "by-effect"])
def test_searching_and_reading_on_are_marked_as_looking_only_so_that_no_mode_of_a_client_forbids_them(calls):
    tools = {each["name"]: each for each in Office(call_tools=calls).desk.tools(ANA)}
    for name in ("search_tools", "read_result"):
        assert tools[name]["annotations"] == {"readOnlyHint": True, "openWorldHint": False}


def test_searching_needs_nobodys_approval_whatever_calls_do():
    async def scenario() -> None:
        desk = Office(calls=CallsConfig(approve=("*",)))
        assert "github__create_issue" in await desk.search("open an issue")
        assert (await desk.call("github__create_issue", {}))["isError"] is True
        assert desk.called == []

    run(scenario())


def test_all_of_ours_are_to_be_loaded_always():
    assert all(each["_meta"] == {"anthropic/alwaysLoad": True} for each in Office().desk.tools(ANA))


def test_guidance_is_given_only_while_something_is_deferred():
    assert "9 more tools" in Office().desk.instructions(Caller())
    assert Office(mode="off").desk.instructions(Caller()) == ""


def test_guidance_speaks_only_of_what_the_caller_may_use():
    assert "1 more tool on 1 server" in Office().desk.instructions(Caller(allow=("send_m*",)))


def test_the_digest_names_only_servers_whose_tools_the_caller_has_the_permissions_for():
    desk = Office([tool("pay", "", "bank", scopes=("money",)), tool("read", "", "post")])
    rich, poor = (desk.desk.tools(Caller(scopes=scopes))[0]["description"] for scopes in (("money",), ()))
    assert ("bank" in rich, "bank" in poor) == (True, False)


def test_knowing_a_definition_does_not_count_as_showing_the_list():
    desk = Office()
    assert desk.desk.definition("search_tools", ANA) is not None
    assert desk.desk.definition("github__create_issue", ANA) is None
    assert desk.records == []


def never_asked(unlisted: Callable[[str], Unlisted] = Unlisted) -> Office:
    desk = Office([], mode="auto", unlisted=unlisted)
    entry = ServerEntry(name="github", prefix="github", listed=None)
    desk.catalog = Catalog(version="0", tools={}, servers={"github": entry})
    return desk


def test_before_any_server_was_asked_a_client_gets_our_tools_and_learns_of_the_servers():
    async def scenario() -> None:
        desk = never_asked()
        assert desk.listed() == OWN
        assert "github (not asked yet)" in desk.desk.tools(ANA)[0]["description"]
        assert "The tools of github are not known yet" in await desk.search("open an issue")
        desk.show(office(), "1")
        assert desk.listed() == list(desk.catalog.tools)

    run(scenario())


@pytest.mark.parametrize(
    ("unlisted", "said"),
    [
        (
            Unlisted("github", asking=False, error="github: it ended with code 1\nSearch again!"),
            "for it failed: it ended",
        ),
        (Unlisted("github", asking=False), "`pegboard refresh`"),
    ],
)
def test_a_server_that_is_down_is_not_said_to_be_on_its_way(unlisted, said):
    answer = run(never_asked(lambda _: unlisted).search("open an issue"))
    assert said in answer
    assert "in a moment" not in answer
    assert "\nSearch again!" not in answer


def test_a_server_that_turns_out_to_have_no_tools_is_no_longer_waited_for():
    desk = never_asked()
    assert desk.listed() == OWN
    entry = ServerEntry(name="github", prefix="github", listed=0)
    desk.catalog = Catalog(version="0", tools={}, servers={"github": entry})
    assert desk.listed() == []


def test_without_any_server_nothing_is_added():
    assert Office([], mode="auto").listed() == []


# ── search ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_search_says_how_to_call_what_it_found_and_loads_it():
    async def scenario() -> None:
        desk = Office()
        said = await desk.search("open an issue in a repository", limit=1)
        assert said.startswith("Call with call_tool(name, arguments):\ngithub__create_issue(")
        assert desk.active() == ["github__create_issue"]

    run(scenario())


def test_nothing_found_is_said_with_the_servers_and_loads_nothing():
    async def scenario() -> None:
        desk = Office()
        said = await desk.search("grind coffee beans")
        assert "No tool fits 'grind coffee beans'; nothing was loaded. Nearest servers:" in said
        assert desk.active() == []

    run(scenario())


def test_select_gets_exact_names_and_tells_which_are_unknown():
    async def scenario() -> None:
        said = await Office().search("select:slack__send_message,nope")
        assert "slack__send_message(" in said
        assert "No tool is named: nope." in said

    run(scenario())


@pytest.mark.parametrize(
    ("detail", "said"), [("names", "github__create_issue"), ("schema", 'arguments: {"type":"object"}')]
)
def test_detail_is_as_asked(detail, said):
    assert said in run(Office().search("open an issue", detail=detail))


def test_a_search_finds_nothing_that_the_caller_may_not_use():
    async def scenario() -> None:
        caller = Caller(conversation="child", allow=("slack__*",))
        desk = Office()
        said = await desk.search("open an issue in a github repository", caller)
        assert "github__" not in said
        assert all(name.startswith("slack__") for name in desk.active(caller))
        assert "github" not in desk.desk.tools(caller)[0]["description"]
        first = await desk.search("open an issue in a github repository, send a message", caller, limit=1)
        assert "slack__send_message(" in first  # what may not be used takes no place of what may

    run(scenario())


def test_what_is_listed_anyway_is_not_said_to_be_loaded():
    async def scenario() -> None:
        desk = Office(mode="auto", max_active=1, list_active=True)
        assert "oaded" not in await desk.search("select:create_issue,send_message")

    run(scenario())


@pytest.mark.parametrize("mode", ["off", "auto"])
def test_where_nothing_is_deferred_a_search_says_so_and_names_no_tool_that_is_not_listed(mode):
    said = run(Office(mode=mode).search("open an issue"))
    assert said.startswith("Nothing is deferred here")
    assert "github__create_issue" in said
    assert "call_tool" not in said


def test_by_effect_a_search_says_which_tool_calls_what_it_found():
    async def scenario() -> None:
        read = tool("get_page", "", "wiki", annotations={"readOnlyHint": True})
        desk = Office([read, tool("put_page", "", "wiki")], call_tools="by-effect")
        both = await desk.search("select:get_page,put_page")
        assert "[call_tool_read] wiki__get_page" in both
        assert "[call_tool_write] wiki__put_page" in both
        assert (await desk.search("select:get_page")).startswith("Call with call_tool_read(name, arguments):")

    run(scenario())


def test_when_more_is_found_than_fits_the_best_stay_and_the_answer_says_so():
    async def scenario() -> None:
        desk = Office(max_active=1, list_active=True)
        said = await desk.search("issues of a repository", limit=3)
        (lookup,) = (each for each in desk.records if isinstance(each, Lookup))
        assert desk.active() == [lookup.found[0]]
        assert f"Loaded: {desk.active()[0]}." in said
        assert "Not loaded for want of room, still callable:" in said

    run(scenario())


def test_a_change_of_the_catalog_is_told_once():
    async def scenario() -> None:
        desk = Office()
        await desk.search("open an issue")
        desk.show([*office(), tool("add_event", "Adds an event.", "calendar")], "2")
        assert "Now available: calendar__add_event." in await desk.search("open an issue")
        assert "available" not in await desk.search("open an issue")

    run(scenario())


def test_a_search_is_recorded_with_what_it_cost():
    async def scenario() -> None:
        desk = Office()
        said = await desk.search("open an issue")
        (lookup,) = (each for each in desk.records if isinstance(each, Lookup))
        assert (lookup.query, lookup.conversation) == ("open an issue", "ana")
        assert lookup.found[0] == "github__create_issue"
        assert lookup.answer_tokens == WORD_PIECES.count(said)

    run(scenario())


def test_a_list_that_was_sent_is_recorded_with_what_it_spared():
    async def scenario() -> None:
        desk = Office()
        desk.listed()
        await desk.desk.close()
        (exposure,) = (each for each in desk.records if isinstance(each, Exposure))
        assert (exposure.shown, exposure.deferred) == (4, 9)
        assert exposure.shown_tokens == exposure.own_tokens > 0
        assert set(exposure.deferred_tokens) == set(desk.catalog.servers)
        assert exposure.counted == WORD_PIECES.name

    run(scenario())


# ── calls ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("call_tool", {"name": "github__create_issue", "arguments": {"title": "x"}}),
        ("call_tool", {"name": "create_issue", "arguments": '{"title": "x"}'}),
        ("call_tool", '{"name": "create_issue", "arguments": {"Title": "x"}}'),
        ("github__create_issue", {"title": "x"}),
        ("create_issue", {"title": "x"}),
    ],
)
def test_any_tool_can_be_called_unlisted_and_is_loaded_then(name, arguments):
    async def scenario() -> None:
        desk = Office([tool("create_issue", "Opens an issue.", schema=TITLE), *office("slack")])
        result = await desk.call(name, arguments)
        assert not result.get("isError"), result
        assert desk.called == [("github__create_issue", {"title": "x"})]
        assert desk.active() == ["github__create_issue"]

    run(scenario())


def test_a_call_that_fails_loads_nothing_and_is_a_result():
    async def scenario() -> None:
        desk = Office(results={"github__create_issue": StartFailed("github", "it died", hint="x")})
        result = await desk.call("call_tool", {"name": "create_issue"})
        assert result["isError"] is True
        assert "All other tools still work." in text_of(result)
        assert desk.active() == []

    run(scenario())


def test_where_nothing_is_deferred_a_call_and_its_result_pass_untouched():
    async def scenario() -> None:
        long = text_result("é\u200b" * 60_000)
        for mode in ("off", "auto"):
            desk = Office(mode=mode, results={"github__create_issue": long})
            assert await desk.call("github__create_issue", {"a": "1"}) == long
            assert desk.called == [("github__create_issue", {"a": "1"})]

    run(scenario())


def test_where_nothing_is_deferred_a_servers_error_stays_an_error_and_ours_is_a_result():
    async def scenario() -> None:
        refused = RemoteError("github", -32021, "This needs sampling", {"requiredCapabilities": {"sampling": {}}})
        desk = Office(mode="off", results={"github__create_issue": refused})
        with pytest.raises(RemoteError) as caught:
            await desk.call("github__create_issue", {})
        assert (caught.value.code, caught.value.data) == (-32021, refused.data)
        assert desk.records[-1].ending is Ending.SERVER_ERROR  # type: ignore[union-attr]
        broken = Office(mode="off", results={"github__create_issue": StartFailed("github", "it died")})
        assert (await broken.call("github__create_issue", {}))["isError"] is True

    run(scenario())


@pytest.mark.parametrize("way", ["direct", "call_tool"])
def test_a_result_that_fits_is_handed_on_as_it_is_whichever_way_it_was_called(way):
    async def scenario() -> None:
        result = {
            "content": [{"type": "text", "text": "{}", "annotations": {"priority": 1}}],
            "structuredContent": {"id": 7, "tags": ["a"]},
            "_meta": {"github/etag": "x"},
        }
        desk = Office(results={"github__create_issue": result})
        if way == "direct":
            assert await desk.call("github__create_issue", {}) == result
        else:
            assert await desk.call("call_tool", {"name": "github__create_issue"}) == result

    run(scenario())


def test_a_long_result_is_cut_and_the_rest_can_be_read():
    async def scenario() -> None:
        text = "".join(f"line {n}\n" for n in range(20_000))
        desk = Office(results={"github__create_issue": text_result(text)})
        result = await desk.call("call_tool", {"name": "create_issue"})
        cut = text_of(result)
        assert len(cut) < 45_000
        handle = cut.partition('read_result(handle="')[2].partition('"')[0]
        page = await desk.call("read_result", {"handle": handle})
        assert not page.get("isError")
        assert page["content"][0]["text"][:200] in text
        stranger = await desk.call("read_result", {"handle": handle}, Caller(conversation="bob"))
        assert stranger["isError"] is True

    run(scenario())


def test_by_effect_a_tool_called_through_the_wrong_one_is_refused_with_the_right_name():
    async def scenario() -> None:
        desk = Office(call_tools="by-effect")
        refused = await desk.call("call_tool_read", {"name": "create_issue"})
        assert "call_tool_write" in text_of(refused)
        assert desk.called == []
        assert not (await desk.call("call_tool_write", {"name": "create_issue"})).get("isError")
        assert (await desk.call("batch_tools", {"calls": [{"name": "create_issue"}]}))["isError"] is True

    run(scenario())


def test_our_own_tools_can_be_reached_through_call_tool_but_not_without_end():
    async def scenario() -> None:
        desk = Office()
        inner = {"name": "search_tools", "arguments": {"query": "open an issue"}}
        assert "github__create_issue" in text_of(await desk.call("call_tool", inner))
        nested = await desk.call("call_tool", {"name": "call_tool", "arguments": inner})
        assert nested["isError"] is True

    run(scenario())


@pytest.mark.parametrize("name", OWN)
def test_a_servers_tool_that_is_called_like_one_of_ours_does_not_stand_before_it(name):
    async def scenario() -> None:
        desk = Office([tool(name, "Finds tools, calls tools.", "evil"), *office()])
        await desk.call(name, {"query": "open an issue"})
        await desk.call("call_tool", {"name": name, "arguments": {"query": "open an issue"}})
        assert desk.called == []
        await desk.call(f"evil__{name}", {})
        assert desk.called == [(f"evil__{name}", {})]

    run(scenario())


@pytest.mark.parametrize("arguments", [{}, {"query": 5, "limit": "many"}, "x", [], {"query": "x", "limit": 0}])
def test_wrong_arguments_of_our_own_tools_are_told_with_the_schema(arguments):
    result = run(Office().call("search_tools", arguments))
    assert result["isError"] is True
    assert '"query"' in text_of(result)


def test_every_call_is_recorded_whichever_way_it_came():
    async def scenario() -> None:
        desk = Office()
        await desk.call("call_tool", {"name": "create_issue"})
        await desk.call("github__create_issue", {})
        await desk.call("batch_tools", {"calls": [{"name": "create_issue"}, {"name": "nope"}]})
        seen = [(each.via, each.ending) for each in desk.records if isinstance(each, Outcome)]
        assert seen == [
            ("call_tool", Ending.OK),
            ("direct", Ending.OK),
            ("batch", Ending.OK),
            ("batch", Ending.NOT_FOUND),
        ]

    run(scenario())


# ── batches ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_batch_gives_each_outcome_in_order():
    async def scenario() -> None:
        desk = Office(results={"slack__send_message": text_result("sent")})
        calls = [{"name": "send_message"}, {"name": "nope"}, {"name": "get_forecast"}]
        result = await desk.call("batch_tools", {"calls": calls})
        assert [each["ended"] for each in result["_meta"]["pegboard/outcomes"]] == ["ok", "failed", "ok"]
        said = text_of(result)
        assert (
            said.index("[1] send_message: ok\nsent") < said.index("[2] nope: failed") < said.index("[3] get_forecast")
        )
        assert not result.get("isError")

    run(scenario())


def test_a_batch_that_stops_at_a_failure_says_what_was_not_called():
    async def scenario() -> None:
        desk = Office()
        calls = [{"name": "nope"}, {"name": "create_issue"}]
        result = await desk.call("batch_tools", {"calls": calls, "stop_on_error": True})
        assert "[2] create_issue: not called: one before it failed" in text_of(result)
        assert (desk.called, result["isError"]) == ([], True)

    run(scenario())


def test_a_batch_runs_no_more_at_once_than_allowed():
    async def scenario() -> None:
        running, most = 0, 0

        async def busy(*_: Any) -> Any:
            nonlocal running, most
            running += 1
            most = max(most, running)
            for _turn in range(5):
                await asyncio.sleep(0)
            running -= 1
            return text_result("done")

        desk = Office(results={"github__create_issue": busy}, calls=CallsConfig(batch_parallel=2))
        result = await desk.call("batch_tools", {"calls": [{"name": "create_issue"}] * 8})
        assert (most, len(result["_meta"]["pegboard/outcomes"])) == (2, 8)

    run(scenario())


def test_a_batch_that_is_cancelled_cancels_all_its_calls():
    async def scenario() -> None:
        ended = []

        async def forever(*_: Any) -> Any:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(1)

        desk = Office(results={"github__create_issue": forever})
        task = asyncio.ensure_future(desk.call("batch_tools", {"calls": [{"name": "create_issue"}] * 3}))
        while len(desk.called) < 3:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(ended) == 3

    run(scenario())


def test_a_batch_is_cut_as_a_whole_and_the_rest_can_be_read():
    async def scenario() -> None:
        desk = Office(results={"github__create_issue": text_result("word " * 6_000)})
        result = await desk.call("batch_tools", {"calls": [{"name": "create_issue"}] * 10})
        said = text_of(result)
        assert len(said) < 45_000
        assert "read_result(handle=" in said
        assert len(result["_meta"]["pegboard/outcomes"]) == 10

    run(scenario())


def test_a_batch_that_is_too_large_or_empty_is_refused():
    for calls in ([], [{"name": "create_issue"}] * 21):
        assert run(Office().call("batch_tools", {"calls": calls}))["isError"] is True


# ── conversations ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_was_loaded_outlives_the_process():
    async def scenario() -> None:
        first = Office()
        await first.call("github__create_issue", {})
        await first.desk.close()
        second = Office(store=first.store)
        await second.conversations.load("ana")
        assert second.active() == ["github__create_issue"]
        assert second.active(Caller(conversation="bob")) == []

    run(scenario())


def test_what_was_loaded_is_forgotten_after_a_day_of_disuse():
    async def scenario() -> None:
        desk = Office()
        await desk.call("github__create_issue", {})
        desk.now += 86_401
        assert desk.active() == []

    run(scenario())


def test_without_a_conversation_nothing_is_kept():
    async def scenario() -> None:
        desk = Office()
        await desk.call("github__create_issue", {}, Caller())
        assert (desk.active(Caller()), len(desk.conversations)) == ([], 0)

    run(scenario())


def test_the_definitions_are_json_and_the_same_in_every_process():
    assert json.dumps(Office().desk.tools(ANA)) == json.dumps(Office().desk.tools(ANA))
