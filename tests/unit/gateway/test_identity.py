"""Who calls, and in which conversation."""

from __future__ import annotations

import msgspec
import pytest

from pegboard.gateway.identity import LONGEST_KEY, Origin, caller_of, passed_on, viewer_of
from pegboard.types import Caller, Json
from pegboard.wire.asked import Asked


def asked(
    params: Json | None = None, *, version: str = "2025-06-18", client: str = "agent", identity: int = 1
) -> Asked:
    return Asked(
        id=identity,
        method="tools/call",
        params=params or {},
        raw=msgspec.Raw(b"{}"),
        version=version,
        capabilities={},
        client={"name": client},
    )


def said(handle: object) -> Json:
    return {"_meta": {"pegboard/conversation": handle}}


def test_the_request_comes_first_then_the_edge_then_client_and_place() -> None:
    edge = Origin(conversation="flag", place="/home/me")
    assert caller_of(edge, asked(said("mine"))).conversation == "mine"
    assert caller_of(edge, asked()).conversation == "flag"
    assert caller_of(Origin(place="/home/me"), asked()).conversation == "agent@/home/me"
    assert caller_of(Origin(), asked()).conversation == "agent"


def test_a_client_without_a_name_still_has_a_conversation() -> None:
    assert caller_of(Origin(), asked(client="")).conversation == "client"


@pytest.mark.parametrize("handle", [1, None, {}, [], "", "  ", "\x00\u200b"])
def test_what_is_no_handle_is_passed_over(handle: object) -> None:
    assert caller_of(Origin(conversation="flag"), asked(said(handle))).conversation == "flag"


def test_the_same_handle_of_two_people_is_two_conversations() -> None:
    conversations = {caller_of(Origin(identity=each), asked(said("x"))).conversation for each in ("", "A", "B")}
    assert len(conversations) == 3


def test_another_connection_of_the_same_client_is_the_same_conversation() -> None:
    origin = Origin(place="/p")
    assert caller_of(origin, asked(identity=1)) == caller_of(origin, asked(identity=2))


def test_long_handles_are_cut_without_becoming_the_same() -> None:
    one, other = (caller_of(Origin(), asked(said("x" * 5000 + end))).conversation for end in "ab")
    assert one != other
    assert max(len(one), len(other)) <= LONGEST_KEY


def test_the_stateless_list_depends_on_who_asks_and_not_on_the_conversation() -> None:
    origin = Origin(identity="A", conversation="flag", allow=("x*",))
    assert viewer_of(origin, asked(said("mine"), version="2026-07-28")) == Caller(identity="A", allow=("x*",))
    assert viewer_of(origin, asked(said("mine"))).conversation == "A:mine"


def test_only_what_is_meant_for_the_tool_is_passed_on() -> None:
    meta = {"progressToken": 1, "pegboard/conversation": "x", "io.modelcontextprotocol/clientInfo": {}, "trace": "t"}
    assert passed_on({"_meta": meta}) == {"trace": "t"}
    assert passed_on({"_meta": {"progressToken": 1}}) is None
    assert passed_on({"_meta": "odd"}) is None
