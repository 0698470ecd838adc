"""Errors as JSON-RPC errors, and whose request a line was that nobody read."""

from __future__ import annotations

import json

import pytest

from pegboard.errors import CallRefused, PegboardError, RemoteError, StartFailed, ToolNotFound
from pegboard.gateway.refusals import LONGEST, Refused, asked_id, fault, refusal
from pegboard.wire.framing import LineDecoder, Oversized
from pegboard.wire.messages import INTERNAL_ERROR, INVALID_PARAMS, RpcError


def test_a_servers_own_error_passes_as_it_came() -> None:
    assert refusal(RemoteError("far", -31000, "closed", {"why": 1})) == RpcError(-31000, "closed", {"why": 1})


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ToolNotFound("x"), INVALID_PARAMS),
        (CallRefused("no"), INVALID_PARAMS),
        (StartFailed("s", "dead"), INTERNAL_ERROR),
        (PegboardError("?"), INTERNAL_ERROR),
        (Refused(-32002, "gone"), -32002),
    ],
)
def test_the_code_says_whose_fault_it_is(error: PegboardError, code: int) -> None:
    assert refusal(error).code == code


def test_the_words_say_what_happened_and_what_to_do_and_have_an_end() -> None:
    assert refusal(CallRefused("No.", hint="Ask Bob.")).message == "No. Ask Bob."
    assert len(refusal(PegboardError("x" * 100_000)).message) <= LONGEST


def test_a_fault_names_its_kind_and_keeps_its_words() -> None:
    assert "KeyError" in fault(KeyError("secret")).message
    assert "secret" not in fault(KeyError("secret")).message


def dropped(line: str) -> Oversized:
    [found] = LineDecoder(1000).feed(line.encode() + b"\n")
    assert isinstance(found, Oversized)
    return found


LARGE = {"name": "x" * 5000, "id": "not this", "more": {"id": 9}}


@pytest.mark.parametrize(
    ("message", "identity"),
    [
        ({"jsonrpc": "2.0", "id": 7, "method": "m", "params": LARGE}, 7),
        ({"jsonrpc": "2.0", "method": "m", "id": "seven", "params": LARGE}, "seven"),
        ({"method": "m", "params": LARGE, "jsonrpc": "2.0", "id": 7}, 7),
        ({"method": "m", "params": LARGE, "id": "a", "jsonrpc": "2.0"}, "a"),
        ({"jsonrpc": "2.0", "method": "m", "params": LARGE}, None),
        ({"jsonrpc": "2.0", "id": 7, "result": LARGE}, None),
        ({"jsonrpc": "2.0", "id": 7, "error": LARGE}, None),
    ],
)
def test_the_id_of_an_unread_request_is_found_at_its_edges(message: object, identity: object) -> None:
    assert asked_id(dropped(json.dumps(message))) == identity
    assert asked_id(dropped(json.dumps(message, separators=(",", ":")))) == identity
