"""The server's half: what it answers by itself, and how it answers for those who stand on it."""

from __future__ import annotations

import msgspec
import pytest

from pegboard.types import Json
from pegboard.wire.asked import Asked
from pegboard.wire.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    Notification,
    Response,
    RpcError,
    encode_notification,
    encode_request,
    read,
)
from pegboard.wire.meta import META_SERVER
from pegboard.wire.server import Answer, Cancelled
from tests.unit.wire.speaking import (
    asked,
    body_of,
    greeted,
    modern,
    only,
    refused,
    side,
)

# ── what is no request ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("data", "identity", "code"),
    [
        (b"{", None, PARSE_ERROR),
        (b"hello", None, PARSE_ERROR),
        (b"[" * 100_000, None, PARSE_ERROR),
        (b"[]", None, INVALID_REQUEST),
        (b"[1]", None, INVALID_REQUEST),
        (b"5", None, INVALID_REQUEST),
        (b'{"id":7}', 7, INVALID_REQUEST),
        (b'{"id":"a","method":5}', "a", INVALID_REQUEST),
        (b'{"id":null,"method":"ping"}', None, INVALID_REQUEST),
        (b'{"id":1.5,"method":"ping"}', None, INVALID_REQUEST),
        (b'{"id":true,"method":"ping"}', None, INVALID_REQUEST),
        (b'{"id":7,"method":"tools/list","params":[1]}', 7, INVALID_PARAMS),
        (b'{"id":7,"method":"tools/list","params":{"n":' + b"9" * 5000 + b"}}", 7, INVALID_PARAMS),
    ],
)
def test_what_cannot_be_served_is_refused_with_the_right_code(data: bytes, identity: object, code: int) -> None:
    assert refused(greeted(), data) == (identity, code)


def test_null_params_are_no_params() -> None:
    assert asked(greeted(), b'{"id":1,"method":"tools/list","params":null}').params == {}


def test_an_answer_to_nothing_we_asked_is_ignored() -> None:
    assert greeted().receive(b'{"jsonrpc":"2.0","id":1,"result":{}}') == []


def test_an_id_that_is_still_open_cannot_be_used_again() -> None:
    server = greeted()
    first = asked(server, encode_request(1, "tools/list"))
    assert refused(server, encode_request(1, "tools/list")) == (1, INVALID_REQUEST)
    server.result(first, {})
    asked(server, encode_request(1, "tools/list"))


def test_a_batch_is_answered_and_handed_on_in_order() -> None:
    batch = b'[{"id":1,"method":"ping"},{"method":"notifications/x"},{"id":2,"method":"tools/list"}]'
    assert [type(event) for event in greeted("2025-03-26").receive(batch)] == [Answer, Notification, Asked]


# ── results and errors ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_handshake_result_is_passed_on_as_it_is() -> None:
    server = greeted()
    line = server.result(asked(server, encode_request(1, "tools/list")), msgspec.Raw(b'{"tools": [ ]}'))
    assert line == b'{"jsonrpc":"2.0","id":1,"result":{"tools": [ ]}}'


@pytest.mark.parametrize("raw", [False, True])
def test_a_stateless_result_is_complete_and_signed(raw: bool) -> None:
    server = side()
    result: Json = {"content": [{"type": "text", "text": "é"}], "_meta": {"com.example/x": 1}}
    sent = msgspec.Raw(msgspec.json.encode(result)) if raw else result
    assert body_of(server.result(asked(server, modern("tools/call")), sent))["result"] == {
        "content": [{"type": "text", "text": "é"}],
        "resultType": "complete",
        "_meta": {"com.example/x": 1, META_SERVER: {"name": "board", "version": "1.0"}},
    }
    assert "resultType" not in result


@pytest.mark.parametrize("raw", [False, True])
def test_what_a_stateless_result_says_itself_is_left_alone(raw: bool) -> None:
    server = side()
    result: Json = {
        "resultType": "input_required",
        "requestState": "s",
        "_meta": {META_SERVER: {"name": "other", "version": "9"}},
    }
    sent = msgspec.Raw(msgspec.json.encode(result)) if raw else result
    assert body_of(server.result(asked(server, modern("resources/read")), sent))["result"] == result


def test_a_stateless_list_carries_caching_hints_even_if_nobody_gave_any() -> None:
    server = side()
    result = body_of(server.result(asked(server, modern("tools/list")), {"tools": []}))["result"]
    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")
    given = {"tools": [], "ttlMs": 9, "cacheScope": "public"}
    result = body_of(server.result(asked(server, modern("tools/list")), given))["result"]
    assert (result["ttlMs"], result["cacheScope"]) == (9, "public")


def test_an_error_is_passed_on_with_its_data() -> None:
    server = greeted()
    line = server.refuse(asked(server, encode_request(1, "x")), RpcError(-32002, "gone", {"uri": "u"}))
    assert body_of(line)["error"] == {"code": -32002, "message": "gone", "data": {"uri": "u"}}


@pytest.mark.parametrize(("retired", "instead"), [(-32002, INVALID_PARAMS), (-32042, INTERNAL_ERROR)])
def test_codes_that_the_stateless_era_retired_are_replaced_in_it(retired: int, instead: int) -> None:
    server = side()
    line = server.refuse(asked(server, modern("resources/read")), RpcError(retired, "m", [1]))
    assert body_of(line)["error"] == {"code": instead, "message": "m", "data": [1]}


def test_a_method_that_nobody_serves_is_refused_by_name() -> None:
    server = greeted()
    error = body_of(server.refuse_method(asked(server, encode_request(1, "no/such"))))["error"]
    assert error == {"code": METHOD_NOT_FOUND, "message": "Method not found: no/such"}


def test_a_request_is_answered_once() -> None:
    server = greeted()
    request = asked(server, encode_request(1, "tools/list"))
    assert server.result(request, {}) is not None
    assert server.result(request, {}) is None
    assert server.refuse(request, RpcError(1, "late")) is None


# ── progress and cancellation ────────────────────────────────────────────────────────────────────────────────────


def test_progress_goes_to_the_token_of_the_request() -> None:
    server = side()
    request = asked(server, modern("tools/call", meta={"progressToken": "p"}))
    assert body_of(server.progress(request, 1, total=4, message="one"))["params"] == {
        "progressToken": "p",
        "progress": 1,
        "total": 4,
        "message": "one",
    }


def test_progress_only_ever_grows_and_ends_with_the_request() -> None:
    server = side()
    request = asked(server, modern("tools/call", meta={"progressToken": "p"}))
    told = [server.progress(request, value) is not None for value in (0, 1, 1, 0.5, float("nan"), float("inf"), 2)]
    assert told == [True, True, False, False, False, False, True]
    server.result(request, {})
    assert server.progress(request, 3) is None


@pytest.mark.parametrize("token", [None, True, 1.5, ["x"]])
def test_nobody_hears_of_progress_who_did_not_ask(token: object) -> None:
    server = side()
    request = asked(server, modern("tools/call", meta={"progressToken": token}))
    assert server.progress(request, 1) is None


def test_a_cancelled_request_is_reported_and_gets_no_answer_any_more() -> None:
    server = greeted()
    request = asked(server, encode_request("a", "tools/call", {"_meta": {"progressToken": 1}}))
    cancel = encode_notification("notifications/cancelled", {"requestId": "a", "reason": "changed my mind"})
    assert server.receive(cancel) == [Cancelled("a", "changed my mind")]
    assert server.result(request, {}) is None
    assert server.progress(request, 1) is None
    assert server.receive(cancel) == []


@pytest.mark.parametrize("params", [{}, {"requestId": 99}, {"requestId": None}, {"requestId": ["a"]}])
def test_a_cancellation_that_means_nothing_is_ignored(params: Json) -> None:
    server = greeted()
    request = asked(server, encode_request(1, "tools/call"))
    assert server.receive(encode_notification("notifications/cancelled", params)) == []
    assert server.result(request, {}) is not None


def test_a_client_that_hung_up_gets_no_answer() -> None:
    server = side()
    request = asked(server, modern("tools/call"))
    assert server.drop(request.id)
    assert not server.drop(request.id)
    assert server.result(request, {}) is None


def test_other_notifications_are_handed_on() -> None:
    assert greeted().receive(encode_notification("notifications/initialized")) == [
        Notification("notifications/initialized")
    ]


# ── what starts from our side ────────────────────────────────────────────────────────────────────────────────────


def test_a_question_to_the_client_is_answered_once() -> None:
    server = greeted()
    identity, line = server.ask("elicitation/create", {"message": "Who?"})
    assert body_of(line)["method"] == "elicitation/create"
    answer = b'{"jsonrpc":"2.0","id":%d,"result":{"action":"accept"}}' % identity
    response = only(server.receive(answer), Response)
    assert response.id == identity
    assert server.receive(answer) == []


def test_an_answer_we_no_longer_wait_for_is_ignored() -> None:
    server = greeted()
    identity, _ = server.ask("ping", {})
    server.forget(identity)
    assert server.receive(b'{"id":%d,"result":{}}' % identity) == []


def test_without_a_handshake_there_is_no_question_to_the_client() -> None:
    server = side()
    asked(server, modern("tools/call"))
    with pytest.raises(ValueError, match="input_required"):
        server.ask("elicitation/create", {})


def test_a_change_is_told_plainly_after_a_handshake() -> None:
    [notice] = greeted().changed("tools")
    assert (read(notice.data), notice.subscription) == (
        {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"},
        None,
    )


def test_a_change_is_told_to_nobody_who_did_not_greet_or_listen() -> None:
    assert side().changed("tools") == []


def test_a_change_that_we_did_not_promise_to_tell_is_not_told() -> None:
    assert greeted().changed("prompts") == []
