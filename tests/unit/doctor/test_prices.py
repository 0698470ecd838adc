"""What definitions cost at list prices."""

from __future__ import annotations

import pytest

from pegboard.doctor.facts import Usage
from pegboard.doctor.prices import definition_cost, mean_cost, price_of
from tests.unit.doctor.checks.made import session


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("claude-opus-5-5", 4),
        ("claude-opus-5", 5),
        ("claude-opus-5-20260724", 5),
        ("claude-opus-4-5-20251101", 5),
        ("anthropic/claude-opus-4.5", 5),
        ("claude-opus-4-1", 15),
        ("claude-opus-4-20250514", 15),
        ("claude-sonnet-5", 2),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 3),
        ("claude-haiku-5-5", 0.1),
        ("claude-haiku-4-5-20251001", 1),
        ("claude-fable-5-1", 10),
        ("gpt-5.5", 5),
        ("gpt-5.3-codex", 1.75),
        ("gpt-5.6-luna", 0.2),
    ],
)
def test_a_model_on_the_list_has_its_price(model: str, price: float) -> None:
    found = price_of(model)
    assert found is not None
    assert found.input == price


@pytest.mark.parametrize("model", ["", "gpt-5.5-pro", "qwen3-coder", "gpt-5-pro"])
def test_a_model_that_is_not_on_the_list_has_none(model: str) -> None:
    assert price_of(model) is None


def test_definitions_are_written_once_and_read_by_every_later_request() -> None:
    ran = session(0, models=("claude-sonnet-5",), usage=Usage(cache_read=1, cache_write=1, messages=11))
    assert definition_cost(1_000_000, ran) == pytest.approx(2 * (1.25 + 10 * 0.1))


def test_without_a_cache_every_request_pays_in_full() -> None:
    ran = session(0, models=("claude-sonnet-5",), usage=Usage(input=9, messages=3))
    assert definition_cost(1_000_000, ran) == pytest.approx(6.0)


def test_sessions_whose_model_is_unknown_do_not_make_others_cheaper() -> None:
    known, unknown = session(0), session(1, models=("nobody-knows",))
    assert mean_cost(1_000, [known, unknown]) == mean_cost(1_000, [known]) > 0
    assert mean_cost(1_000, [unknown]) == 0
