"""What input costs by the makers' price lists of November 2026, and what definitions cost in a session.

List prices: batches, contracts, subscriptions and long-context surcharges are others. What is not known costs
nothing here, and nothing is said of it. Above: `checks` and `report`. Below: the facts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from pegboard.doctor.facts import Session

NOTE = "at list prices of November 2026"
_MILLION = 1_000_000


class Price(msgspec.Struct, frozen=True):
    """US dollars for a million tokens of input, and what the cache makes of them."""

    input: float
    read: float = 0.1
    """Times the price of input, for what comes from the cache."""
    write: float = 1.25
    """Times the price of input, for what goes into it."""


# Dates and `-codex` are no other model; `-pro` and `-mini` are.
_PLAIN = r"(?:-codex)?(?:$|[@:\[]|-\d)"

# The first that fits counts, so the narrower come first.
_FAMILIES: tuple[tuple[re.Pattern[str], Price], ...] = tuple(
    (re.compile(pattern), price)
    for pattern, price in (
        (r"claude-(?:fable|mythos)-5-[1-9]\b", Price(10, read=0.025)),
        (r"claude-(?:fable|mythos)", Price(10)),
        (r"claude-opus-5-[5-9]\b", Price(4, read=0.05)),
        (r"claude-opus-(?:5|4-[5-9])(?:\b|-)", Price(5)),
        (r"claude-(?:opus|3-opus)", Price(15)),
        (r"claude-sonnet-5-[5-9]\b", Price(2, read=0.05)),
        (r"claude-sonnet-5", Price(2)),
        (r"claude-(?:sonnet|3(?:-[57])?-sonnet)", Price(3)),
        (r"claude-haiku-5-[5-9]\b", Price(0.1)),
        (r"claude-3-5-haiku", Price(0.8)),
        (r"claude-3-haiku", Price(0.25)),
        (r"claude-haiku", Price(1)),
        (r"gpt-5\.6-sol", Price(5)),
        (r"gpt-5\.6-terra", Price(2)),
        (r"gpt-5\.6-luna", Price(0.2)),
        (r"gpt-5\.4-mini", Price(0.75, write=1)),
        (r"gpt-5\.4-nano", Price(0.2, write=1)),
        (rf"gpt-5\.5{_PLAIN}", Price(5, write=1)),
        (rf"gpt-5\.4{_PLAIN}", Price(2.5, write=1)),
        (rf"gpt-5\.[23]{_PLAIN}", Price(1.75, write=1)),
        (r"gpt-5(?:\.1)?-mini", Price(0.25, write=1)),
        (r"gpt-5(?:\.1)?-nano", Price(0.05, write=1)),
        (rf"gpt-5(?:\.1)?{_PLAIN}", Price(1.25, write=1)),
        (r"gpt-4\.1-mini", Price(0.4, read=0.25, write=1)),
        (r"gpt-4\.1-nano", Price(0.1, read=0.25, write=1)),
        (r"gpt-4\.1", Price(2, read=0.25, write=1)),
        (r"gpt-4o-mini", Price(0.15, read=0.5, write=1)),
        (r"gpt-4o", Price(2.5, read=0.5, write=1)),
    )
)


def price_of(model: str) -> Price | None:
    """The list price of a model; None when it is not on the list."""
    plain = model.lower().replace("_", "-")
    plain = plain.replace(".", "-") if "claude" in plain else plain  # some catalogues write claude-opus-4.5
    return next((price for pattern, price in _FAMILIES if pattern.search(plain)), None)


def definition_cost(tokens: int, session: Session) -> float:
    """What definitions of this size cost in a session: written to the cache once and read by every later request.

    A lower bound, as each pause that the cache does not outlive writes them again. Where nothing was cached, every
    request pays in full.
    """
    price = next((found for model in session.models if (found := price_of(model))), None)
    if price is None or not tokens:
        return 0.0
    requests = max(session.usage.messages, 1)
    is_cached = session.usage.cache_read or session.usage.cache_write or not session.usage.all_input
    times = price.write + price.read * (requests - 1) if is_cached else float(requests)
    return tokens * times * price.input / _MILLION


def mean_cost(tokens: int, sessions: Sequence[Session]) -> float:
    """The same for the average of these sessions; those whose model is not on the list do not count."""
    known = [session for session in sessions if any(price_of(model) for model in session.models)]
    return sum(definition_cost(tokens, session) for session in known) / len(known) if known else 0.0
