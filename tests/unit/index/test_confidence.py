"""How sure a match is, by words alone and with each kind of embedder."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from pegboard.index.confidence import FITS, confidences
from pegboard.index.intent import understand
from pegboard.index.rank import candidates
from tests.unit.index.given import office, parts_of, static

STATIC = static().identity
EMBEDDERS = pytest.mark.parametrize("embedder", ["", STATIC, "unheard-of:1"])


@pytest.fixture(scope="module")
def ranked():
    parts = parts_of(office())

    def ranking(query, embedder):
        intent = understand(query)
        return candidates(parts, intent, static().embedded(intent.embedded) if embedder else None)[1]

    return ranking


@EMBEDDERS
@pytest.mark.parametrize("query", ["create an issue", "", "blorptang", "create_issue " * 50])
def test_every_figure_is_between_0_and_1(ranked, query, embedder):
    sure = confidences(ranked(query, embedder), embedder)
    assert ((sure >= 0) & (sure <= 1)).all()


@EMBEDDERS
@pytest.mark.parametrize("part", ["query", "name"])
def test_more_evidence_makes_surer(ranked, part, embedder):
    some = ranked("weather forecast", embedder)
    more = msgspec.structs.replace(some, **{part: getattr(some, part) + np.float32(0.3)})
    assert (confidences(more, embedder) > confidences(some, embedder)).all()


def test_a_likeness_that_is_known_makes_surer(ranked):
    some = ranked("weather forecast", STATIC)
    closer = np.float32(0.2)
    more = msgspec.structs.replace(some, dense=some.dense + closer, nearest=some.nearest + closer)
    assert (confidences(more, STATIC) > confidences(some, STATIC)).all()


@EMBEDDERS
@pytest.mark.parametrize("extreme", [-1e9, 1e9])
def test_absurd_evidence_does_no_harm(ranked, extreme, embedder):
    some = ranked("weather forecast", embedder)
    odd = msgspec.structs.replace(
        some, dense=np.full_like(some.dense, extreme), fused=np.full_like(some.fused, extreme)
    )
    assert np.isfinite(confidences(odd, embedder)).all()


@EMBEDDERS
def test_a_good_match_is_surer_than_the_rest_and_fits(ranked, embedder):
    some = ranked("weather forecast for the next days", embedder)
    sure = confidences(some, embedder)
    assert sure.max() >= FITS
    assert int(np.argmax(sure)) == int(np.argmax(some.score))


@EMBEDDERS
def test_what_no_tool_does_fits_none(ranked, embedder):
    assert confidences(ranked("qzxv blorptang", embedder), embedder).max(initial=0) < FITS
