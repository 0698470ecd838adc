"""The rules by which two sides are judged: what is worth telling, what hurt the cache, and how sure that is.

Above: `outcome`. Below: `sides` and `samples`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from pegboard.doctor.report.samples import Figures, Sample
from pegboard.doctor.report.sides import Compared, Sides

Confidence = Literal["high", "medium", "low"]
Measure = Literal["definition tokens per session", "input tokens per reply"]
DEFINITIONS: Measure = "definition tokens per session"
INPUT: Measure = "input tokens per reply"
"""For agents that leave no definitions behind. It moves for many reasons, so it has to move further."""

ENOUGH = 20
"""Sessions on each side without which the confidence is low."""
SHIFT = 2.0
"""When there were more than this many times as many sessions a day as on the other side, it is low too."""
LEAST_TOKENS = 100
LEAST_PART: dict[Measure, int] = {DEFINITIONS: 20, INPUT: 10}
"""A change is told from none when it moved the measure by a twentieth, or a tenth; and by `LEAST_TOKENS`."""
HIT_RATE_FALL = 0.05
FRESH_RISE = 0.05
"""A rate that falls because less is sent hurts nobody: what is not from the cache must have grown too."""
_DIGITS = 9


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """How sure a comparison is, and what it lacks."""

    confidence: Confidence
    doubts: tuple[str, ...] = ()


def amount(figures: Figures, measure: Measure) -> float | None:
    """What is compared."""
    return figures.definition_tokens if measure == DEFINITIONS else figures.input_per_reply


def is_notable(difference: float, before: float, measure: Measure) -> bool:
    """Whether it is more than chance and small change."""
    size = round(abs(difference), _DIGITS)
    return size >= LEAST_TOKENS and size * LEAST_PART[measure] >= round(before, _DIGITS)


def hit_rate_fell(compared: Compared) -> bool:
    """Whether a notably smaller share came from the cache."""
    before, after = compared.before.hit_rate, compared.after.hit_rate
    return before is not None and after is not None and round(before - after, _DIGITS) >= HIT_RATE_FALL


def hurt_the_cache(compared: Compared) -> bool:
    """Whether the rate fell, and more went in that was not from the cache."""
    before, after = compared.before.uncached_per_reply, compared.after.uncached_per_reply
    if before is None or after is None or not hit_rate_fell(compared):
        return False
    return round(after - before * (1 + FRESH_RISE), _DIGITS) >= 0


def trust(compared: Compared, sides: Sides, measure: Measure) -> Trust:
    """The mark: from how many sessions, whether as many as before, and whether counted."""
    weak = [*_too_few(compared, measure), *_shifted(sides)]
    doubts = _not_counted(compared, measure)
    return Trust(confidence="low" if weak else "medium" if doubts else "high", doubts=(*weak, *doubts))


def told_by(figures: Figures, measure: Measure) -> int:
    """The sessions that a side's figure is from."""
    return figures.known if measure == DEFINITIONS else figures.sessions


def _too_few(compared: Compared, measure: Measure) -> list[str]:
    counts = (("before", told_by(compared.before, measure)), ("since", told_by(compared.after, measure)))
    return [f"{_sessions(count)} {side}, {ENOUGH} are enough" for side, count in counts if count < ENOUGH]


def _shifted(sides: Sides) -> list[str]:
    before, after = _per_day(sides.before, sides.before_days), _per_day(sides.after, sides.after_days)
    if before is None or after is None:
        return []
    if after > before * SHIFT:
        return [f"{after / before:.1f} times as many sessions a day as before"]
    return [f"{before / after:.1f} times fewer sessions a day than before"] if before > after * SHIFT else []


def _not_counted(compared: Compared, measure: Measure) -> list[str]:
    if measure == INPUT:
        return ["no definitions are known on both sides: judged by what went in for each reply"]
    known = compared.before.known + compared.after.known
    counted = compared.before.counted + compared.after.counted
    return [f"estimated, not counted, in {known - counted:,} of {known:,} sessions"] if counted < known else []


def _per_day(samples: tuple[Sample, ...], days: float) -> float | None:
    """None when there is nothing to divide, or nothing to divide by."""
    count = sum(each.sessions for each in samples)
    return count / days if count and days > 0 else None


def _sessions(count: int) -> str:
    return f"only {count:,} session{'' if count == 1 else 's'}"
