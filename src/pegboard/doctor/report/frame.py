"""Where days and amounts lie in a drawing, and the lines around them.

Above: `charts`. Below: `markup`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pegboard.doctor.report.days import Day
from pegboard.doctor.report.markup import Markup, element, joined

_RIGHT, _TOP, _BOTTOM = 10.0, 24.0, 24.0
_MOST_TICKS = 4
_LETTER = 7.0
"""About as wide as a digit is."""
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


class Frame:
    """One drawing with days from left to right and amounts upwards."""

    def __init__(
        self, days: Sequence[Day], top: float, width: float, height: float, label: Callable[[float], str]
    ) -> None:
        self.first, self.last = min(-1, days[0].number), max(0, days[-1].number)
        self.width, self.height, self.floor = width, height, height - _BOTTOM
        self._ticks, self._label = ticks(top), label
        self.top = self._ticks[-1]
        self.left = 12.0 + _LETTER * max(len(label(each)) for each in self._ticks)
        self.right = width - _RIGHT
        self.step = (self.right - self.left) / (self.last - self.first + 1)

    def x(self, day: int) -> float:
        """The left edge of a day."""
        return self.left + (day - self.first) * self.step

    def y(self, amount: float) -> float:
        """The height of an amount."""
        return self.floor - amount / self.top * (self.floor - _TOP)

    def around(self) -> list[Markup]:
        """Lines at round amounts, the ends, and where the change was applied."""
        at = self.x(0)
        end = f"+{self.last + 1} d"
        ends = [
            element("text", f"{self.first} d", x=self.left, y=self.height - 8),
            element("text", end, x=self.right, y=self.height - 8, text_anchor="end"),
        ]
        mark = element("line", x1=at, x2=at, y1=8, y2=self.floor, class_="applied")
        is_late = self.right - at < 60
        word = element("text", "applied", x=at - 4 if is_late else at + 4, y=16, text_anchor="end" if is_late else None)
        return [*map(self._line, self._ticks), *ends, mark, word]

    def _line(self, amount: float) -> Markup:
        y = self.y(amount)
        line = element("line", x1=self.left, x2=self.right, y1=y, y2=y, class_="grid")
        return joined(line, element("text", self._label(amount), x=self.left - 6, y=y + 4, text_anchor="end"))


def ticks(top: float) -> list[float]:
    """Round amounts from nothing to no less than the top, few enough to read."""
    if top <= 0:
        return [0.0, 1.0]
    size = 10.0 ** math.floor(math.log10(top / _MOST_TICKS))
    step = next(size * each for each in _STEPS if size * each * _MOST_TICKS >= top * (1 - 1e-9))
    return [step * number for number in range(math.ceil(top / step * (1 - 1e-9)) + 1)]
