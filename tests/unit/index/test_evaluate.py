"""Figures worked out by hand, and files that say where they are wrong."""

from __future__ import annotations

import asyncio
import math

import msgspec
import pytest

from pegboard.errors import EvaluationError
from pegboard.index.evaluate import (
    Miss,
    Query,
    evaluate,
    figures,
    ndcg,
    places_of,
    read_queries,
    read_tools,
    recall,
)
from pegboard.index.intents import SUITE


def gain(*places):
    return sum(1 / math.log2(place + 2) for place in places)


@pytest.mark.parametrize(
    ("groups", "found", "places"),
    [
        ([["a"]], ["a", "b"], [0]),
        ([["a"]], ["b", "a"], [1]),
        ([["a"]], ["b", "c"], [None]),
        ([["a", "c"]], ["b", "c", "a"], [1]),
        ([["a"], ["c"]], ["b", "c", "a"], [2, 1]),
        ([["a"], ["x"]], ["a"], [0, None]),
        ([["a"]], ["b", "a", "a"], [1]),
        ([["a"]], [], [None]),
        ([], ["a"], []),
    ],
)
def test_each_group_stands_where_its_best_member_does(groups, found, places):
    assert places_of(groups, found) == places


@pytest.mark.parametrize(
    ("places", "cut", "share"),
    [
        ([0], 1, 1.0),
        ([1], 1, 0.0),
        ([1], 3, 1.0),
        ([0, 4], 3, 0.5),
        ([0, 4], 5, 1.0),
        ([None, 0], 10, 0.5),
        ([None], 10, 0.0),
        ([], 10, 0.0),
    ],
)
def test_recall_is_the_share_of_groups_among_the_first(places, cut, share):
    assert recall(places, cut) == share


@pytest.mark.parametrize(
    ("places", "value"),
    [
        ([0], 1.0),
        ([1], 1 / math.log2(3)),
        ([2], 0.5),
        ([0, 1], 1.0),
        ([1, 2], gain(1, 2) / gain(0, 1)),
        ([0, None], 1 / gain(0, 1)),
        ([None], 0.0),
        ([10], 0.0),
        ([9], 1 / math.log2(11)),
        ([], 0.0),
        ([*range(10), None, None], 1.0),
    ],
)
def test_the_discounted_gain_is_that_of_each_group_once(places, value):
    assert ndcg(places) == pytest.approx(value)


def test_averages_are_over_all_queries():
    queries = [
        Query("first", (("a", "b"),)),
        Query("third", (("c",),)),
        Query("both", (("a",), ("b",))),
        Query("no", (("z",),)),
    ]
    found = [["b", "x"], ["x", "y", "c"], ["b", "x", "x2", "x3", "x4", "x5", "a"], ["x"]]
    result = figures(queries, found, [1.0, 2.0, 3.0, 4.0])
    assert result.queries == 4
    assert result.recall == {1: (1 + 0 + 0.5) / 4, 3: (1 + 1 + 0.5) / 4, 5: (1 + 1 + 0.5) / 4, 10: 3 / 4}
    assert result.ndcg == pytest.approx((1 + 0.5 + gain(0, 6) / gain(0, 1) + 0) / 4)
    assert result.mrr == pytest.approx((1 + 1 / 3 + 1 + 0) / 4)
    assert result.misses == (
        Miss("both", (("a",),), ("b", "x", "x2", "x3", "x4")),
        Miss("no", (("z",),), ("x",)),
    )


def test_latencies_are_quantiles():
    queries = [Query("q", (("a",),))] * 100
    result = figures(queries, [["a"]] * 100, [float(number) for number in range(100, 0, -1)])
    assert 50 <= result.latency_ms["p50"] <= 51
    assert 95 <= result.latency_ms["p95"] <= 96


def test_the_keys_that_scripts_read_are_there():
    found = figures([Query("q", (("a",),))], [["b", "a"]], [1.23456]).as_json()
    assert found == {
        "recall@1": 0.0,
        "recall@3": 1.0,
        "recall@5": 1.0,
        "recall@10": 1.0,
        "ndcg@10": 0.6309,
        "mrr": 0.5,
        "queries": 1,
        "latency_ms": {"p50": 1.235, "p95": 1.235},
    }


def test_no_queries_make_no_figures_and_no_error():
    found = figures([], [], []).as_json()
    assert (found["queries"], found["ndcg@10"], found["latency_ms"]["p95"]) == (0, 0, 0)


def test_every_query_is_asked_once_in_order_for_ten_and_progress_is_told():
    asked, told = [], []

    async def search(query, limit):
        asked.append((query, limit))
        return ["a"] if query == "one" else []

    queries = [Query("one", (("a",),)), Query("two", (("b",),))]
    result = asyncio.run(evaluate(queries, search, lambda *how: told.append(how)))
    assert asked == [("one", 10), ("two", 10)]
    assert told == [(1, 2), (2, 2)]
    assert result.recall[1] == 0.5
    assert asyncio.run(evaluate(queries, search)).recall == result.recall


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def file(tmp_path, *rows):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\n".join(row if isinstance(row, bytes) else msgspec.json.encode(row) for row in rows))
    return path


def test_queries_are_read_with_their_groups_or_each_relevant_tool_as_one(tmp_path):
    path = file(
        tmp_path,
        {"query": "a", "relevant": ["x", "y"]},
        b"",
        {"query": "b", "relevant": ["x", "y"], "groups": [["x", "y"], ["z"]], "more": 1},
        {"query": "c", "relevant": ["x"], "groups": []},
        {"query": "", "groups": [["x"]]},
    )
    assert read_queries(path) == [
        Query("a", (("x",), ("y",))),
        Query("b", (("x", "y"), ("z",))),
        Query("c", (("x",),)),
        Query("", (("x",),)),
    ]


GOOD = {"query": "a", "relevant": ["x"]}


@pytest.mark.parametrize(
    "bad",
    [
        b"{",
        b"not json",
        b"\xff\xfe",
        b"[]",
        b"7",
        b"null",
        {"relevant": ["x"]},
        {"query": 7, "relevant": ["x"]},
        {"query": "a"},
        {"query": "a", "relevant": []},
        {"query": "a", "relevant": "x"},
        {"query": "a", "relevant": [7]},
        {"query": "a", "groups": ["x"]},
        {"query": "a", "groups": [[7]]},
        {"query": "a", "groups": [["x"], "y"]},
    ],
)
def test_a_bad_query_is_named_by_file_and_line(tmp_path, bad):
    path = file(tmp_path, GOOD, b"", bad, GOOD)
    with pytest.raises(EvaluationError) as error:
        read_queries(path)
    assert f"{path}:3:" in error.value.message


def test_tools_are_read_with_all_that_finds_them(tmp_path):
    schema = {"type": "object", "properties": {"p": {"type": "string"}}}
    path = file(
        tmp_path,
        {
            "id": "s__t",
            "server": "s",
            "name": "t",
            "title": "T",
            "description": "Does.",
            "inputSchema": schema,
            "tags": ["x"],
        },
        {"name": "bare"},
        {"id": "only", "description": None},
    )
    first, second, third = read_tools(path)
    assert (first.public_name, first.server, first.name, first.title, first.description) == (
        "s__t",
        "s",
        "t",
        "T",
        "Does.",
    )
    assert first.input_schema == schema
    assert first.tags == ("x",)
    assert (second.public_name, second.server, second.description) == ("bare", "", "")
    assert (third.public_name, third.name, third.description) == ("only", "only", "")


@pytest.mark.parametrize("bad", [b"{", b"[]", {}, {"name": 7}, {"description": "x"}, {"id": ["x"]}])
def test_a_bad_tool_is_named_by_file_and_line(tmp_path, bad):
    path = file(tmp_path, {"name": "good"}, bad)
    with pytest.raises(EvaluationError) as error:
        read_tools(path)
    assert f"{path}:2:" in error.value.message


@pytest.mark.parametrize("read", [read_queries, read_tools])
def test_a_file_that_cannot_be_read_is_named(tmp_path, read):
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(EvaluationError) as error:
            read(path)
        assert str(path) in error.value.message


def test_an_empty_file_is_no_rows(tmp_path):
    assert read_queries(file(tmp_path)) == []
    assert read_tools(file(tmp_path, b"", b"  ")) == []


def test_the_tools_of_the_suite_are_all_different():
    tools = read_tools(SUITE / "tools.jsonl")
    assert len({each.public_name for each in tools}) == len(tools) >= 200
    assert all(each.description and each.server for each in tools)


@pytest.mark.parametrize("tags", [5, "office", {"a": 1}, [1, None], True])
def test_tags_that_are_no_texts_are_left_out(tmp_path, tags):
    row = {"id": "a", "name": "a", "tags": tags, "scopes": tags}
    (one,) = read_tools(file(tmp_path, msgspec.json.encode(row)))
    assert (one.tags, one.scopes) == ((), ())
