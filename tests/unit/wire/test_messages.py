"""JSON-RPC messages: what is read, what is refused, and what is forgiven."""

from __future__ import annotations

import msgspec
import pytest

from pegboard.wire.messages import (
    EMPTY,
    INTERNAL_ERROR,
    Message,
    Notification,
    NotJsonRpc,
    Request,
    Response,
    RpcError,
    encode_error,
    encode_notification,
    encode_request,
    encode_result,
    parse,
    read,
    read_fields,
    read_object,
    request_id,
)


def one(data: bytes) -> Message:
    [message] = parse(data)
    return message


def test_a_method_with_an_id_is_a_request() -> None:
    message = one(b'{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":1}}')
    assert isinstance(message, Request)
    assert (message.id, message.method, read(message.params)) == ("a", "m", {"x": 1})


def test_a_method_without_an_id_is_a_notification() -> None:
    assert one(b'{"jsonrpc":"2.0","method":"m"}') == Notification("m", EMPTY)


def test_a_result_stays_raw_until_it_is_read() -> None:
    message = one(b'{"id":1,"result":{"text":"caf\xe9"}}')
    assert isinstance(message, Response)
    assert message.result is not None
    assert bytes(message.result) == b'{"text":"caf\xe9"}'
    assert read_object(message.result) == {"text": "caf\ufffd"}


def test_an_error_carries_code_message_and_data() -> None:
    message = one(b'{"id":1,"error":{"code":-32000,"message":"no","data":[1]}}')
    assert message == Response(1, error=RpcError(-32000, "no", [1]))


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'"broken"', RpcError(INTERNAL_ERROR, "broken")),
        (b'{"code":"x"}', RpcError(INTERNAL_ERROR, "(the server gave no message)")),
        (b'{"code":true,"message":"m"}', RpcError(INTERNAL_ERROR, "m")),
    ],
)
def test_a_malformed_error_is_still_an_error(body: bytes, error: RpcError) -> None:
    assert one(b'{"id":1,"error":' + body + b"}") == Response(1, error=error)


def test_a_result_beside_a_null_error_is_a_result() -> None:
    message = one(b'{"id":1,"error":null,"result":{}}')
    assert isinstance(message, Response)
    assert message.error is None
    assert message.result is not None


def test_an_error_beside_a_null_result_is_an_error() -> None:
    message = one(b'{"id":1,"result":null,"error":{"code":1,"message":"m"}}')
    assert isinstance(message, Response)
    assert message.error == RpcError(1, "m")


def test_an_error_without_a_readable_id_has_none() -> None:
    assert one(b'{"id":null,"error":{"code":-32700,"message":"m"}}') == Response(None, error=RpcError(-32700, "m"))


def test_a_whole_number_written_with_a_fraction_is_the_same_id() -> None:
    assert one(b'{"id":7.0,"method":"m"}') == Request(7, "m")


@pytest.mark.parametrize("value", [True, None, 1.5, [], {}, float("inf")])
def test_only_strings_and_whole_numbers_are_ids(value: object) -> None:
    assert request_id(value) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"   ",
        b"null",
        b"17",
        b'"text"',
        b"{}",
        b"not json",
        b'{"id":1}',
        b'{"id":null,"method":"m"}',
        b'{"id":1.5,"method":"m"}',
        b'{"id":true,"method":"m"}',
        b'{"id":{},"result":{}}',
        b'{"method":5}',
        b'{"id":1,"result":NaN}',
        b'{"id":1,"result":{}',
        b'{"id":1,"result":{}} trailing',
        b"[" * 100_000,
        b'{"id":1,"result":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"id":1,"error":{"message":"\xff","data":' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
        b'{"id":' + b"9" * 5000 + b',"method":"m"}',
    ],
)
def test_what_is_not_json_rpc_is_refused_in_words(data: bytes) -> None:
    with pytest.raises(NotJsonRpc, match=r"\w"):
        parse(data)


def test_a_batch_is_its_messages() -> None:
    assert parse(b' [{"method":"a"},{"id":1,"method":"b"}]') == [Notification("a"), Request(1, "b")]


def test_a_bad_message_does_not_spoil_the_rest_of_its_batch() -> None:
    assert parse(b'[1,{"method":"a"},{"id":5}]') == [Notification("a")]


def test_a_batch_of_nothing_but_bad_messages_is_refused() -> None:
    with pytest.raises(NotJsonRpc):
        parse(b'[1,{"id":5}]')


def test_latin1_bytes_do_not_lose_a_message() -> None:
    assert one(b'{"method":"caf\xe9"}') == Notification("caf\ufffd")


def test_a_byte_order_mark_does_not_lose_a_message() -> None:
    assert one(b'\xef\xbb\xbf{"method":"m"}') == Notification("m")


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        (rb"\ud83d", "\ufffd"),
        (rb"cut \uD83D", "cut \ufffd"),
        (rb"\ude00 tail", "\ufffd tail"),
        (rb"\ud83d\ud83d\ude00", "\ufffd\N{GRINNING FACE}"),
        (rb"\ud83d\ude00\ude00", "\N{GRINNING FACE}\ufffd"),
        (rb"\\ud83d \ud83d", r"\ud83d " + "\ufffd"),
        (rb"\\\ud83d", "\\\ufffd"),
        (rb"\ud83d\n", "\ufffd\n"),
    ],
)
def test_half_a_surrogate_pair_does_not_lose_a_message(escaped: bytes, text: str) -> None:
    """Programs that cut text at a number of UTF-16 units send these."""
    message = one(b'{"id":1,"result":{"text":"' + escaped + b'"}}')
    assert isinstance(message, Response)
    assert message.result is not None
    assert read(message.result) == {"text": text}


def test_a_whole_surrogate_pair_is_read_as_its_character() -> None:
    assert read(rb'"\ud83d\ude00"') == "\N{GRINNING FACE}"


def test_an_object_is_wanted_where_one_is_wanted() -> None:
    with pytest.raises(NotJsonRpc, match="expected an object, got list"):
        read_object(b"[]")


def test_the_fields_of_an_object_can_be_taken_apart_without_reading_them() -> None:
    fields = read_fields(b'{"a": {"b" : 1.50}, "c":[ ]}')
    assert {name: bytes(value) for name, value in fields.items()} == {"a": b'{"b" : 1.50}', "c": b"[ ]"}


def test_messages_are_encoded_as_json_rpc() -> None:
    assert encode_request(1, "m", {"a": 1}) == b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}'
    assert encode_request("x", "m") == b'{"jsonrpc":"2.0","id":"x","method":"m"}'
    assert encode_notification("n") == b'{"jsonrpc":"2.0","method":"n"}'
    assert encode_notification("n", {}) == b'{"jsonrpc":"2.0","method":"n","params":{}}'
    assert encode_result(1, {}) == b'{"jsonrpc":"2.0","id":1,"result":{}}'
    assert encode_error(None, RpcError(-32700, "m")) == (
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}'
    )
    assert encode_error(1, RpcError(1, "m", {"d": 1})) == (
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m","data":{"d":1}}}'
    )


def test_raw_json_that_was_indented_is_passed_on_as_one_line() -> None:
    line = encode_result(1, msgspec.Raw(b'{\r\n  "a": "b\\n"\n}'))
    assert b"\n" not in line
    assert b"\r" not in line
    assert read(line)["result"] == {"a": "b\n"}


def test_raw_json_with_bad_utf8_is_passed_on_as_good_utf8() -> None:
    line = encode_result(1, msgspec.Raw(b'{"a":"caf\xe9"}'))
    assert line.decode() == '{"jsonrpc":"2.0","id":1,"result":{"a":"caf\ufffd"}}'
