"""`subscriptions/listen`: who hears what, and how it ends."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard.types import Json
from pegboard.wire.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    encode_notification,
    encode_request,
    read,
)
from pegboard.wire.meta import META_CAPABILITIES, META_SUBSCRIPTION, META_VERSION
from pegboard.wire.server import Answer, Cancelled, ServerSide, Subscribed
from pegboard.wire.subscriptions import MAX_SUBSCRIPTIONS, Notice

EVERYTHING: Json = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
}


def side(capabilities: Json = EVERYTHING) -> ServerSide:
    return ServerSide("board", "1.0", capabilities=capabilities)


def listen(server: ServerSide, identity: int | str, notifications: Any) -> Any:
    meta = {META_VERSION: "2026-07-28", META_CAPABILITIES: {}}
    [event] = server.receive(
        encode_request(identity, "subscriptions/listen", {"_meta": meta, "notifications": notifications})
    )
    return event


def told(notices: list[Notice]) -> list[tuple[object, Json]]:
    return [(notice.subscription, read(notice.data)) for notice in notices]


def test_the_acknowledgement_comes_first_and_says_what_is_honoured() -> None:
    event = listen(side(), "l1", {"toolsListChanged": True, "resourceSubscriptions": ["file:///a", 5]})
    assert isinstance(event, Subscribed)
    assert event.id == "l1"
    assert read(event.data) == {
        "jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": {
            "_meta": {META_SUBSCRIPTION: "l1"},
            "notifications": {"toolsListChanged": True, "resourceSubscriptions": ["file:///a"]},
        },
    }


def test_what_the_server_does_not_offer_is_not_honoured() -> None:
    wanted = {"toolsListChanged": True, "promptsListChanged": True, "resourceSubscriptions": ["x"]}
    event = listen(side({"tools": {"listChanged": True}, "prompts": {}}), 1, wanted)
    assert read(event.data)["params"]["notifications"] == {"toolsListChanged": True}


@pytest.mark.parametrize("value", [False, None, 1, "yes"])
def test_only_true_opts_in(value: object) -> None:
    event = listen(side(), 1, {"toolsListChanged": value})
    assert read(event.data)["params"]["notifications"] == {}


@pytest.mark.parametrize("wanted", [None, [], "tools"])
def test_a_filter_that_is_none_is_refused(wanted: object) -> None:
    event = listen(side(), 1, wanted)
    assert isinstance(event, Answer)
    assert event.error is not None
    assert event.error.code == INVALID_PARAMS


def test_each_subscription_hears_what_it_asked_for_under_its_own_id() -> None:
    server = side()
    listen(server, 1, {"toolsListChanged": True})
    listen(server, "two", {"toolsListChanged": True, "promptsListChanged": True})
    expected = [
        (
            each,
            {
                "jsonrpc": "2.0",
                "method": "notifications/tools/list_changed",
                "params": {"_meta": {META_SUBSCRIPTION: each}},
            },
        )
        for each in (1, "two")
    ]
    assert told(server.changed("tools")) == expected
    assert [notice.subscription for notice in server.changed("prompts")] == ["two"]
    assert server.changed("resources") == []


def test_a_resource_is_told_to_those_who_watch_it_or_what_it_is_part_of() -> None:
    server = side()
    listen(server, 1, {"resourceSubscriptions": ["file:///a/b"]})
    listen(server, 2, {"resourceSubscriptions": ["file:///a/"]})
    listen(server, 3, {"resourceSubscriptions": ["file:///a/bc"]})
    [first, second] = told(server.resource_updated("file:///a/b"))
    assert (first[0], second[0]) == (1, 2)
    assert first[1]["params"] == {"uri": "file:///a/b", "_meta": {META_SUBSCRIPTION: 1}}
    assert [notice.subscription for notice in server.resource_updated("file:///a/bc")] == [2, 3]


def test_a_cancelled_subscription_hears_nothing_more() -> None:
    server = side()
    listen(server, 1, {"toolsListChanged": True})
    assert server.receive(encode_notification("notifications/cancelled", {"requestId": 1})) == [Cancelled(1)]
    assert server.changed("tools") == []
    assert server.close_subscription(1) is None


def test_a_graceful_end_answers_the_request_that_began_it() -> None:
    server = side()
    listen(server, "l", {"toolsListChanged": True})
    line = server.close_subscription("l")
    assert line is not None
    assert read(line) == {
        "jsonrpc": "2.0",
        "id": "l",
        "result": {"resultType": "complete", "_meta": {META_SUBSCRIPTION: "l"}},
    }
    assert server.changed("tools") == []


def test_on_shutdown_every_subscription_ends_gracefully() -> None:
    server = side()
    for identity in (1, 2):
        listen(server, identity, {})
    assert [(subscription, body["id"]) for subscription, body in told(server.close_subscriptions())] == [(1, 1), (2, 2)]
    assert server.close_subscriptions() == []


def test_an_open_subscription_keeps_its_id() -> None:
    server = side()
    listen(server, 1, {})
    event = listen(server, 1, {})
    assert isinstance(event, Answer)
    assert event.error is not None
    assert event.error.code == INVALID_REQUEST


def test_there_is_an_end_to_how_many_may_be_open() -> None:
    server = side()
    for identity in range(MAX_SUBSCRIPTIONS):
        assert isinstance(listen(server, identity, {}), Subscribed)
    event = listen(server, "one more", {})
    assert isinstance(event, Answer)
    assert event.error is not None
    assert event.error.code == INTERNAL_ERROR
    server.drop(0)
    assert isinstance(listen(server, "now", {}), Subscribed)


def test_a_handshake_and_a_subscription_on_one_connection_are_both_told() -> None:
    server = side()
    server.receive(encode_request(0, "initialize", {"protocolVersion": "2025-11-25"}))
    listen(server, 1, {"toolsListChanged": True})
    assert [notice.subscription for notice in server.changed("tools")] == [1, None]
