"""Which conversation a request goes on with, and what of it is kept where."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pegboard.errors import StoreError
from pegboard.proxy import keeper as keeper_module
from pegboard.proxy.keeper import MOST_BYTES, MOST_LIVE, MOST_VARIANTS, Keeper, chosen
from pegboard.proxy.memory import Insert, Remembered
from pegboard.testing import FakeStore
from tests.unit.proxy.rounds import now


def remembered(begun: str = "tools", *seen: str, **more: Any) -> Remembered:
    return Remembered(executor="bridge", begun=begun, seen=list(seen), **more)


# ── of several that began alike ──────────────────────────────────────────────────────────────────────────────────────


def test_a_call_tells_more_than_the_same_tools_and_those_more_than_a_text() -> None:
    call, tools, text = remembered("x", "id:1", "text:a"), remembered("tools", "text:a"), remembered("x", "text:a")
    said = {"id:1", "text:a"}
    assert chosen([call, tools, text], "tools", said) is call
    assert chosen([tools, text], "tools", said) is tools
    assert chosen([text], "tools", said) is text


def test_the_same_tools_alone_are_not_enough() -> None:
    assert chosen([remembered("tools", "text:a")], "tools", {"text:b"}) is None
    assert chosen([remembered("tools")], "tools", set()) is None
    assert chosen([], "tools", {"text:a"}) is None


def test_the_same_tools_of_another_do_not_hide_the_one_that_has_its_words() -> None:
    other, own = remembered("tools", "text:a"), remembered("before", "text:b")
    assert chosen([other, own], "tools", {"text:b"}) is own


def test_after_a_reply_that_broke_off_the_same_tools_are_enough_and_other_tools_are_not() -> None:
    torn = remembered("tools", "text:a", is_torn=True)
    assert chosen([torn], "tools", {"text:half"}) is torn
    assert chosen([torn], "others", {"text:half"}) is None
    for another in ("id:2", "sig:2"):
        assert chosen([torn], "tools", {"text:half", another}) is None


def test_of_several_that_fit_as_well_it_is_the_latest() -> None:
    first, second = remembered("tools", "text:a"), remembered("tools", "text:a")
    assert chosen([first, second], "tools", {"text:a"}) is second


def test_an_item_that_is_only_named_tells_as_much_as_a_call() -> None:
    own, other = remembered("x", items={"msg_1": "text:a"}), remembered("tools", "text:a")
    assert chosen([own, other], "tools", {"item:msg_1", "text:a"}) is own
    assert chosen([own], "tools", {"item:msg_2"}) is None


# ── what is kept ─────────────────────────────────────────────────────────────────────────────────────────────────────


def insert(size: int) -> Insert:
    return Insert(blocks=[{"type": "text", "text": "x" * size}])


def stored(store: FakeStore, key: str = "key") -> list[Remembered]:
    raw = now(store.proxied(key))
    assert raw is None or len(raw) <= MOST_BYTES
    found: list[Remembered] = now(Keeper(store, 60.0).of(key))
    return found


def test_what_began_in_just_the_same_way_is_gone_on_with() -> None:
    keeper = Keeper(None, 60.0)
    first = keeper.begin("key", remembered("tools"))
    assert keeper.begin("key", remembered("tools")) is first
    assert keeper.begin("key", remembered("others")) is not first
    assert keeper.begin("another", remembered("tools")) is not first


def test_only_the_latest_of_many_that_began_alike_are_kept() -> None:
    keeper = Keeper(None, 60.0)
    for number in range(MOST_VARIANTS + 2):
        keeper.begin("key", remembered(str(number)))
    assert [each.begun for each in now(keeper.of("key"))] == ["2", "3", "4", "5"]


def test_what_is_kept_is_found_by_the_next_proxy() -> None:
    store = FakeStore()
    keeper = Keeper(store, 60.0)
    own = keeper.begin("key", remembered("tools", "text:a"))
    now(keeper.keep("key", own))
    assert [(each.begun, each.seen) for each in stored(store)] == [("tools", ["text:a"])]


def test_numbers_of_any_size_in_what_was_hidden_are_kept_to_the_digit() -> None:
    store = FakeStore()
    keeper = Keeper(store, 60.0)
    own = keeper.begin("key", remembered("tools"))
    own.add([Insert(blocks=[{"input": {"limit": 10**30, "least": -(10**30), "share": 0.1}}])])
    now(keeper.keep("key", own))
    assert stored(store)[0].inserts[0].blocks == own.inserts[0].blocks


def test_a_conversation_under_way_is_kept_though_many_others_began_since() -> None:
    store = FakeStore()
    keeper = Keeper(store, 60.0)
    own = keeper.begin("key", remembered("tools"))
    now(keeper.keep("key", own))
    for number in range(MOST_LIVE + 1):
        keeper.begin(str(number), remembered())
    own.add([insert(1)])
    now(keeper.keep("key", own))
    [kept] = stored(store)
    assert len(kept.inserts) == 1
    assert now(keeper.of("key"))[0] is own


def test_reading_many_conversations_holds_no_more_of_them_than_beginning_them() -> None:
    store = FakeStore()
    for number in range(MOST_LIVE + 20):
        writer = Keeper(store, 60.0)
        now(writer.keep(str(number), writer.begin(str(number), remembered())))
    keeper = Keeper(store, 60.0)
    for number in range(MOST_LIVE + 20):
        now(keeper.of(str(number)))
    assert len(keeper._live) == MOST_LIVE


def test_more_than_a_store_takes_loses_its_oldest_part_and_never_fails() -> None:
    store = FakeStore()
    keeper = Keeper(store, 60.0)
    own = keeper.begin("key", remembered("tools"))
    own.add([insert(10_000) for _ in range(150)])
    own.inserts[-1].after = "id:latest"
    now(keeper.keep("key", own))
    [kept] = stored(store)
    assert 60 < len(kept.inserts) < 90
    assert kept.inserts[-1].after == "id:latest"
    assert keeper.warnings == []


def test_the_largest_of_several_gives_way_first() -> None:
    store = FakeStore()
    keeper = Keeper(store, 60.0)
    small, large = keeper.begin("key", remembered("small")), keeper.begin("key", remembered("large"))
    small.add([insert(1000)])
    large.add([insert(10_000) for _ in range(100)])
    now(keeper.keep("key", large))
    assert [(each.begun, len(each.inserts) > 70 or each.begun) for each in stored(store)] == [
        ("small", "small"),
        ("large", True),
    ]


@pytest.mark.parametrize(
    "large",
    [
        {"inserts": [insert(2 * MOST_BYTES)]},
        {"definitions": {"x": {"description": "x" * 2 * MOST_BYTES}}},
        {"pending": {"resp_1": [{"id": "1", "input": {}, "problem": "", "text": "x" * 2 * MOST_BYTES}]}},
    ],
    ids=["a block", "a definition", "an answer"],
)
def test_one_thing_that_is_too_large_by_itself_goes_and_the_rest_stays(large) -> None:
    store = FakeStore()
    keeper = Keeper(store, 60.0)
    own = keeper.begin("key", remembered("tools", "text:a", **large))
    now(keeper.keep("key", own))
    assert [each.seen for each in stored(store)] == [["text:a"]]


def test_a_conversation_of_which_nothing_can_go_is_forgotten() -> None:
    store = FakeStore()
    keeper = Keeper(store, 60.0)
    own = keeper.begin("key", remembered("tools", listing="x" * 2 * MOST_BYTES))
    now(keeper.keep("key", own))
    assert stored(store) == []


class Dated(FakeStore):
    """Knows until when it was to keep things."""

    def __init__(self) -> None:
        super().__init__()
        self.until: list[float] = []

    async def keep_proxied(self, conversation: str, state: bytes, expires_at: float) -> None:
        self.until.append(expires_at)
        await super().keep_proxied(conversation, state, expires_at)


def test_what_is_kept_expires_so_long_after_it_was_used_last() -> None:
    store, times = Dated(), iter([1000.0, 2000.0, 3000.0])
    keeper = Keeper(store, 60.0, lambda: next(times))
    own = keeper.begin("key", remembered("tools"))
    now(keeper.keep("key", own))
    now(keeper.keep("key", own))
    now(keeper.point("resp_1", "key"))
    assert store.until == [1060.0, 2060.0, 3060.0]


def test_what_another_version_wrote_is_as_good_as_lost() -> None:
    store = FakeStore()
    for raw in (b"", b"\xc1", b"\x91\x81\xa8executor\xa4else", b"{}", b"[1]", b'[{"executor": "else"}]'):
        now(store.keep_proxied("key", raw, 1e12))
        assert stored(store) == []


class Broken(FakeStore):
    """Fails at everything."""

    async def proxied(self, conversation: str) -> bytes | None:
        raise StoreError("it is broken")

    async def keep_proxied(self, conversation: str, state: bytes, expires_at: float) -> None:
        raise StoreError("it is broken")


def test_a_store_that_fails_costs_only_what_it_would_have_kept() -> None:
    keeper = Keeper(Broken(), 60.0)
    own = keeper.begin("key", remembered("tools"))
    now(keeper.keep("key", own))
    now(keeper.point("resp_1", "key"))
    assert now(keeper.of("key")) == [own]
    assert now(keeper.pointed("resp_1")) == "key"
    assert (now(keeper.pointed("resp_2")), now(keeper.of("other"))) == ("", [])
    assert keeper.warnings == ["it is broken"]


class Counting(FakeStore):
    """One that counts how often it is asked."""

    asked = 0

    async def proxied(self, conversation: str) -> bytes | None:
        self.asked += 1
        return await super().proxied(conversation)


def test_what_is_not_remembered_is_looked_for_once_and_found_when_it_begins() -> None:
    async def main() -> None:
        store = Counting()
        keeper = Keeper(store, 60)
        for _ in range(3):
            assert await keeper.of("key") == []
        assert store.asked == 1
        begun = keeper.begin("key", remembered())
        assert await keeper.of("key") == [begun]
        await keeper.keep("key", begun)
        assert [each.begun for each in await Keeper(store, 60).of("key")] == ["tools"]

    asyncio.run(main())


def test_only_so_many_keys_are_held_of_which_nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper_module, "MOST_UNKNOWN", 3)

    async def main() -> None:
        store = Counting()
        keeper = Keeper(store, 60)
        for number in (0, 1, 2, 3, 3, 0):
            await keeper.of(f"key {number}")
        assert store.asked == 5

    asyncio.run(main())


class FailingOnce(Counting):
    """One that cannot say, the first time."""

    async def proxied(self, conversation: str) -> bytes | None:
        found = await super().proxied(conversation)
        if self.asked == 1:
            raise StoreError("it is locked")
        return found


def test_a_store_that_could_not_say_is_asked_again() -> None:
    async def main() -> None:
        store = FailingOnce()
        await Keeper(store, 60).keep("key", remembered())
        store.asked = 0
        keeper = Keeper(store, 60)
        assert await keeper.of("key") == []
        assert [each.begun for each in await keeper.of("key")] == ["tools"]

    asyncio.run(main())
