"""What conversations have loaded: over restarts, between processes, and for whoever only looks."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from pegboard.surface.activation import Activation, restored
from pegboard.types import Caller
from tests.unit.platform_tools.given import ANA, Office


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


async def one_that_loaded(*names: str, **surface: Any) -> Office:
    desk = Office(**surface)
    for name in names:
        await desk.call(name, {})
        desk.now += 1
    await desk.desk.close()
    return desk


def test_a_list_before_the_first_call_loses_nothing_of_what_is_kept():
    async def scenario() -> None:
        first = await one_that_loaded("github__create_issue", list_active=True)
        second = Office(store=first.store, list_active=True)
        second.listed()
        await second.call("send_message", {})
        assert second.active() == ["slack__send_message", "github__create_issue"]
        await second.desk.close()
        assert restored(await second.store.activation("ana")).names == ("slack__send_message", "github__create_issue")

    run(scenario())


def test_a_list_alone_does_not_overwrite_what_is_kept():
    async def scenario() -> None:
        first = await one_that_loaded("github__create_issue")
        second = Office(store=first.store)
        second.listed()
        await second.desk.close()
        assert restored(await second.store.activation("ana")).names == ("github__create_issue",)

    run(scenario())


def test_the_first_list_after_a_restart_has_what_was_loaded_before():
    async def scenario() -> None:
        first = await one_that_loaded("github__create_issue", list_active=True)
        before = first.listed()
        second = Office(store=first.store, list_active=True)
        assert not second.desk.remembers(ANA)
        await second.desk.recall(ANA)
        assert second.listed() == before
        assert before[-1] == "github__create_issue"

    run(scenario())


def test_where_loaded_tools_are_not_listed_no_store_is_asked_for_a_list():
    assert Office().desk.remembers(ANA)
    assert Office(list_active=True).desk.remembers(Caller())


def test_two_processes_in_one_conversation_do_not_forget_for_each_other():
    async def scenario() -> None:
        first = Office(max_active=2)
        second = Office(store=first.store, max_active=2)
        for desk, name in ((first, "github__create_issue"), (second, "slack__send_message"), (first, "get_forecast")):
            first.now = second.now = first.now + 1
            await desk.call(name, {})
            await desk.conversations.keep()
        await first.desk.close()
        await second.desk.close()
        kept = restored(await first.store.activation("ana"))
        assert kept.names[1:] == ("slack__send_message",)
        assert kept.names[0].endswith("__get_forecast")

    run(scenario())


def test_looking_at_a_conversation_changes_and_keeps_nothing():
    async def scenario() -> None:
        desk = Office()
        shown = await desk.desk.context(Caller(conversation="typo"))
        assert shown.deferred
        await desk.desk.close()
        assert await desk.store.activation("typo") is None

    run(scenario())


def test_what_two_have_loaded_comes_together_by_last_use():
    mine = Activation(cap=2).activated(["a"], 1.0).activation.activated(["b"], 4.0).activation
    theirs = Activation(cap=2).activated(["c"], 3.0).activation.activated(["a"], 5.0).activation
    assert mine.merged(theirs).names == ("a", "b")
    assert theirs.merged(mine).names == ("a", "b")
    assert mine.merged(mine) is mine
