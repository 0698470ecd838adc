"""The nearest vectors, with and without clusters, and how likenesses spread."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.index import vectors as dense
from pegboard.index.vectors import vectors_of
from tests.often import often


def unit(rows):
    rows = rows.astype(np.float32)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-9))


def scattered(total, width=32, groups=60, seed=3):
    """Vectors in groups, as tools of the same trade are."""
    chance = np.random.default_rng(seed)
    middles = chance.normal(size=(groups, width))
    return unit(middles[chance.integers(groups, size=total)] + 0.7 * chance.normal(size=(total, width)))


@pytest.fixture(scope="module")
def many():
    """More vectors than are all compared."""
    made = vectors_of(scattered(dense.EXACT_BELOW + 1000, 24))
    assert made.clustered
    return made


def overlap(made, queries, wanted=10):
    rows = made.of(np.arange(len(made.rows), dtype=np.int32))
    shares = []
    for query in queries:
        true = set(np.argsort(-(rows @ query))[:wanted].tolist())
        shares.append(len(true & set(made.nearest(query, wanted).tolist())) / wanted)
    return float(np.mean(shares))


def vector(made, place):
    return made.of(np.array([place], np.int32))[0]


def test_the_nearest_clusters_hold_nearly_all_of_the_nearest_vectors(many):
    assert overlap(many, scattered(60, 24, seed=5)) >= 0.9
    assert overlap(many, many.of(np.arange(0, len(many.rows), 500, dtype=np.int32))) >= 0.9


def test_a_few_of_many_small_clusters_are_enough(monkeypatch):
    monkeypatch.setattr(dense, "EXACT_BELOW", 1000)
    monkeypatch.setattr(dense, "LEAST_PROBED", 300)
    made = vectors_of(scattered(4000))
    assert made.clustered
    assert overlap(made, scattered(60, seed=3)) >= 0.9


def test_clusters_hold_every_tool_once(many):
    total = len(many.rows)
    assert np.array_equal(np.sort(many.tool_of_row), np.arange(total))
    assert many.cluster_start[0] == 0
    assert many.cluster_start[-1] == total
    assert (np.diff(many.cluster_start) >= 0).all()


def test_a_tool_has_the_vector_that_was_given_for_it(many):
    rows = scattered(len(many.rows), 24)
    some = np.array([0, 7, 20_000, len(rows) - 1], np.int32)
    assert np.allclose(many.of(some), rows[some], atol=0.01)


def test_clusters_are_the_same_for_the_same_vectors(monkeypatch):
    monkeypatch.setattr(dense, "EXACT_BELOW", 500)
    one, other = vectors_of(scattered(1500)), vectors_of(scattered(1500))
    assert all(np.array_equal(getattr(one, field), getattr(other, field)) for field in one.__struct_fields__)


def test_no_more_than_are_wanted_come_and_none_twice(many):
    found = many.nearest(vector(many, 0), 80)
    assert len(found) == len(set(found.tolist())) == 80


def test_only_what_is_allowed_is_near(many):
    allowed = np.zeros(len(many.rows), np.bool_)
    allowed[::7] = True
    found = many.nearest(vector(many, 5), 40, allowed)
    assert len(found) == 40
    assert allowed[found].all()
    assert len(many.nearest(vector(many, 5), 40, np.zeros(len(many.rows), np.bool_))) == 0


def test_few_vectors_are_all_compared():
    rows = scattered(200)
    made = vectors_of(rows)
    assert not made.clustered
    assert np.allclose(made.likenesses(rows[3]), rows @ rows[3], atol=0.03)
    assert int(np.argmax(made.likenesses(rows[3]))) == 3


def test_a_look_at_wide_vectors_puts_the_nearest_first_or_nearly_so():
    rows = scattered(2000, 300)
    made = vectors_of(rows)
    for query in scattered(20, 300, seed=3):
        true = set(np.argsort(-(rows @ query))[:10].tolist())
        assert len(true & set(np.argsort(-made.likenesses(query))[:80].tolist())) >= 9


def test_vectors_made_from_those_of_an_index_are_the_same():
    made = vectors_of(scattered(300))
    again = vectors_of(made.of(np.arange(300, dtype=np.int32)))
    assert all(np.array_equal(getattr(made, field), getattr(again, field)) for field in made.__struct_fields__)


def test_no_vectors_at_all_are_fine():
    made = vectors_of(np.empty((0, 8), np.float32))
    assert len(made.likenesses(np.ones(8, np.float32))) == 0
    assert made.spread(np.ones(8, np.float32))[0] == 0


def test_vectors_that_say_nothing_are_fine_in_clusters(monkeypatch):
    monkeypatch.setattr(dense, "EXACT_BELOW", 100)
    rows = scattered(300)
    rows[::2] = 0
    made = vectors_of(rows)
    assert np.isfinite(made.centroids).all()
    assert 1 in made.nearest(rows[1], 5)
    assert np.isfinite(vectors_of(np.zeros((300, 8), np.float32)).centroids).all()


@pytest.mark.parametrize("total", [1, 2, 9, 500])
def test_the_spread_is_that_of_all_likenesses(total):
    made = vectors_of(scattered(total))
    for query in scattered(5, seed=9):
        likeness = made.likenesses(query)
        mean, deviation = made.spread(query)
        assert mean == pytest.approx(float(likeness.mean()), abs=1e-4)
        assert deviation == pytest.approx(max(float(likeness.std()), 1e-3), abs=1e-3)


def test_the_spread_is_known_of_clusters_too(many):
    for query in scattered(5, 24, seed=9):
        mean, deviation = many.spread(query)
        likeness = many.of(np.arange(len(many.rows), dtype=np.int32)) @ query
        assert mean == pytest.approx(float(likeness.mean()), abs=1e-3)
        assert deviation == pytest.approx(float(likeness.std()), abs=1e-3)


@settings(max_examples=often(40), deadline=None)
@given(st.integers(1, 300), st.integers(1, 40), st.integers(0, 1000))
def test_the_spread_of_any_vectors_is_the_true_one(total, width, seed):
    chance = np.random.default_rng(seed)
    made = vectors_of(unit(chance.normal(size=(total, width))))
    query = unit(chance.normal(size=(1, width)))[0]
    mean, deviation = made.spread(query)
    assert mean == pytest.approx(float(made.likenesses(query).mean()), abs=1e-3)
    assert deviation == pytest.approx(max(float(made.likenesses(query).std()), 1e-3), abs=2e-3)


def test_few_that_are_allowed_are_found_wherever_their_clusters_lie(many):
    query = many.of(np.array([0]))[0]
    far = np.argsort(many.of(np.arange(len(many.rows))) @ query)[:300]
    allowed = np.zeros(len(many.rows), np.bool_)
    allowed[far] = True
    near = many.nearest(query, 100, allowed)
    assert len(near) == 100
    assert set(near.tolist()) <= set(far.tolist())
