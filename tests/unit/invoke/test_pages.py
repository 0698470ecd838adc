"""What was left out of a result: whose it is, how long, and in which pages."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard.errors import ArgumentsError, HandleUnknown
from pegboard.invoke.pages import Pages
from pegboard.types import Caller
from tests.unit.invoke.given import ME, Time


@pytest.fixture
def time() -> Time:
    return Time()


def pages(time: Time, **more: Any) -> Pages:
    return Pages(1024, 60, time, **more)


def test_pages_follow_each_other_to_the_end_and_say_how_to_go_on(time: Time) -> None:
    kept = pages(time)
    handle, about = kept.keep(ME, "H" + "x" * 2500 + "T", 1, 2501, 2500)
    assert about == 3
    first, last = kept.read(handle, 1, ME), kept.read(handle, 3, ME)
    assert first["content"][0]["text"] == "x" * 1024
    assert first["content"][1]["text"] == f'[page 1 of about 3; next: read_result(handle="{handle}", page=2)]'
    assert first["_meta"] == {"pegboard/page": {"page": 1, "next": 2}}
    assert last["content"][0]["text"] == "x" * (2500 - 2048)
    assert last["content"][1]["text"] == "[page 3 of 3, the last one]"
    assert kept.read(handle, 1, ME) == first


@pytest.mark.parametrize("page", ["2", 2.0, " 2 "])
def test_a_page_number_is_understood_as_models_write_it(time: Time, page: Any) -> None:
    kept = pages(time)
    handle, _ = kept.keep(ME, "x" * 2000, 0, 2000, 2000)
    assert kept.read(handle, page, ME)["_meta"]["pegboard/page"]["page"] == 2


@pytest.mark.parametrize("page", [0, -1, 3, 10**9, "x", "", None, True, 1.5, [], "9" * 5000])
def test_a_page_that_there_is_not_is_told(time: Time, page: Any) -> None:
    kept = pages(time)
    handle, _ = kept.keep(ME, "x" * 2000, 0, 2000, 2000)
    with pytest.raises(ArgumentsError):
        kept.read(handle, page, ME)


@pytest.mark.parametrize("other", [Caller(), Caller(identity="me"), Caller(identity="you", conversation="one")])
def test_a_handle_opens_for_nobody_else_and_does_not_tell_them_that_it_exists(time: Time, other: Caller) -> None:
    kept = pages(time)
    handle, _ = kept.keep(ME, "x" * 2000, 0, 2000, 2000)
    with pytest.raises(HandleUnknown) as refused:
        kept.read(handle, 1, other)
    with pytest.raises(HandleUnknown) as unknown:
        kept.read("r" + "0" * 24, 1, other)
    assert refused.value.message.replace(handle, "") == unknown.value.message.replace("r" + "0" * 24, "")


@pytest.mark.parametrize("handle", ["", "nope", None, 7, [], {}, "\u202e" * 1000])
def test_any_handle_at_all_gets_an_answer(time: Time, handle: Any) -> None:
    with pytest.raises(HandleUnknown) as refused:
        pages(time).read(handle, 1, ME)
    assert "\u202e" not in refused.value.message
    assert len(refused.value.message) < 500


def test_handles_cannot_be_guessed_and_never_repeat(time: Time) -> None:
    kept = pages(time)
    handles = {kept.keep(ME, "x", 0, 1, 1)[0] for _ in range(1000)}
    assert len(handles) == 1000
    assert all(len(handle) == 25 for handle in handles)


def test_what_has_expired_is_gone_and_its_memory_with_it(time: Time) -> None:
    kept = pages(time)
    handle, _ = kept.keep(ME, "x" * 2000, 0, 2000, 2000)
    time.seconds += 60
    with pytest.raises(HandleUnknown):
        kept.read(handle, 1, ME)
    assert kept.weight == 0


def test_memory_is_bounded_and_the_oldest_goes_first(time: Time) -> None:
    kept = pages(time, total_bytes=10_000, caller_bytes=6_000)
    handles = [kept.keep(ME, "x" * 2000, 0, 2000, 2000)[0] for _ in range(5)]
    assert kept.weight <= 6_000
    kept.read(handles[-1], 1, ME)
    with pytest.raises(HandleUnknown):
        kept.read(handles[0], 1, ME)


def test_one_caller_does_not_push_out_what_another_keeps_within_the_whole(time: Time) -> None:
    kept = pages(time, total_bytes=10_000, caller_bytes=6_000)
    other = Caller(identity="you")
    handle, _ = kept.keep(other, "x" * 2000, 0, 2000, 2000)
    for _ in range(20):
        kept.keep(ME, "x" * 2000, 0, 2000, 2000)
    assert kept.read(handle, 1, other)


def test_what_is_larger_than_all_that_is_kept_is_not(time: Time) -> None:
    kept = pages(time, total_bytes=10_000, caller_bytes=6_000)
    assert kept.keep(ME, "x" * 7000, 0, 7000, 7000) == ("", 7)
    assert kept.weight == 0
