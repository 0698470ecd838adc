"""Everything the command line prints goes through here: plain text, tables and JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import msgspec

_LAYOUT = "\n\t\u00a0\u3000"


def printable(text: str) -> str:
    """Text a server chose, with what a terminal or an eye would be fooled by spelled out."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in _LAYOUT else _spelled(each) for each in text)


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode()


def symbol(wanted: str, plain: str) -> str:
    """The wanted sign where the terminal's encoding has it, else the plain one."""
    try:
        wanted.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return plain
    return wanted


def say(text: str = "") -> None:
    """A line for the person."""
    print(text)


def warn(text: str) -> None:
    """A line that does not belong to the answer."""
    print(text, file=sys.stderr)


def prompt(text: str) -> None:
    """Asks for a line; the answer is typed behind it."""
    print(text, end="", file=sys.stderr, flush=True)


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
            print("  ".join(symbol("─", "-") * width for width in widths))
