"""Everything the command line prints goes through here: plain text, tables and JSON."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence

import msgspec

_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ue000-\uf8ff\ud800-\udfff]"
    "|[\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)


def printable(text: str) -> str:
    """Text a server chose, with what a terminal or an eye would be fooled by spelled out."""
    return _UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def say(text: str = "") -> None:
    """A line for the person."""
    print(text)


def warn(text: str) -> None:
    """A line that does not belong to the answer."""
    print(text, file=sys.stderr)


def age(seconds: float) -> str:
    """A length of time in one short word."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def emit(value: object) -> None:
    """The answer as JSON, for scripts."""
    encoded = msgspec.json.encode(value, enc_hook=str)
    print(msgspec.json.format(encoded, indent=2).decode())


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Columns as wide as they need to be; the last one may run on."""
    lines = [tuple(headers), *(tuple(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headers))]
    for number, line in enumerate(lines):
        cells = [cell.ljust(width) for cell, width in zip(line[:-1], widths, strict=False)]
        print("  ".join([*cells, line[-1]]).rstrip())
        if number == 0:
            print("  ".join("─" * width for width in widths))
