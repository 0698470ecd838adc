"""Lists in pages: followed to their end, or to a limit that is told."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard.types import Json
from pegboard.wire.paging import Pages


def page(*tools: str, cursor: Any = None) -> Json:
    result: Json = {"tools": [{"name": name} for name in tools]}
    return result if cursor is None else {**result, "nextCursor": cursor}


def names(pages: Pages) -> list[str]:
    return [entry["name"] for entry in pages.entries]


def collector(max_pages: int = 10, max_entries: int = 10) -> Pages:
    return Pages("tools", max_pages=max_pages, max_entries=max_entries)


def test_a_list_without_a_cursor_is_one_page() -> None:
    pages = collector()
    assert pages.add(page("a", "b")) is None
    assert names(pages) == ["a", "b"]
    assert pages.warnings == []


def test_cursors_are_followed_in_order() -> None:
    pages = collector()
    assert pages.add(page("a", cursor="2")) == "2"
    assert pages.add(page("b", cursor="3")) == "3"
    assert pages.add(page("c")) is None
    assert names(pages) == ["a", "b", "c"]
    assert pages.warnings == []


def test_a_null_cursor_is_the_end() -> None:
    assert collector().add({"tools": [], "nextCursor": None}) is None


def test_an_empty_cursor_is_a_cursor() -> None:
    pages = collector()
    assert pages.add(page("a", cursor="")) == ""
    assert pages.add(page("b")) is None
    assert names(pages) == ["a", "b"]


def test_a_server_that_means_the_end_by_an_empty_cursor_is_not_listed_twice() -> None:
    pages = collector()
    assert pages.add(page("a", cursor="")) == ""
    assert pages.add(page("a", cursor="")) is None
    assert names(pages) == ["a"]
    assert pages.warnings == []


def test_the_first_page_is_kept_for_its_caching_hints() -> None:
    pages = collector()
    pages.add({**page("a", cursor="2"), "ttlMs": 5})
    pages.add({**page("b"), "ttlMs": 9})
    assert pages.first["ttlMs"] == 5


def test_a_cursor_that_comes_again_ends_the_list_with_a_warning() -> None:
    pages = collector()
    assert pages.add(page("a", cursor="x")) == "x"
    assert pages.add(page("b", cursor="x")) is None
    assert names(pages) == ["a", "b"]
    assert pages.warnings == ["page 2 repeats a cursor; the list was cut there"]


def test_pages_without_end_are_cut_with_a_warning() -> None:
    pages = collector(max_pages=3)
    cursors = [pages.add(page(str(at), cursor=f"c{at}")) for at in range(3)]
    assert cursors == ["c0", "c1", None]
    assert pages.warnings == ["only the first 3 pages of tools were read"]


def test_entries_over_the_limit_are_cut_with_a_warning() -> None:
    pages = collector(max_entries=3)
    assert pages.add(page("a", "b", cursor="2")) == "2"
    assert pages.add(page("c", "d", cursor="3")) is None
    assert names(pages) == ["a", "b", "c"]
    assert pages.warnings == ["only the first 3 tools were taken"]


def test_a_single_page_over_the_limit_is_cut_with_a_warning_too() -> None:
    pages = collector(max_entries=3)
    assert pages.add(page("a", "b", "c", "d")) is None
    assert names(pages) == ["a", "b", "c"]
    assert pages.warnings == ["only the first 3 tools were taken"]


def test_exactly_the_limit_is_no_reason_to_warn() -> None:
    pages = collector(max_entries=3)
    assert pages.add(page("a", "b", "c")) is None
    assert pages.warnings == []


@pytest.mark.parametrize("cursor", [2, True, ["x"], {"at": 1}])
def test_a_cursor_that_is_no_text_ends_the_list_with_a_warning(cursor: object) -> None:
    pages = collector()
    assert pages.add(page("a", cursor=cursor)) is None
    assert names(pages) == ["a"]
    assert pages.warnings == ["page 1 has a cursor that is not a string; the list was cut there"]


@pytest.mark.parametrize("broken", [{}, {"tools": None}, {"tools": {"a": 1}}])
def test_a_page_without_a_list_ends_it_with_a_warning(broken: Json) -> None:
    pages = collector()
    pages.add(page("a", cursor="2"))
    assert pages.add(broken) is None
    assert names(pages) == ["a"]
    assert pages.warnings == ["page 2 has no list of tools"]
