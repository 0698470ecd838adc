"""Changes one variable of an env file as text: every character outside the change stays as it was.

Read as `dotenv` reads it, which the programs that have such files use: quotes of three kinds, `export`, comments, and
of two equal names the last counts. Above: `documents`. Below: nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

Path = tuple[str, ...]

_MARK = "\ufeff"
_LINE = re.compile(
    r"(?:^|(?<=\ufeff))[^\S\r\n]*(?:export[^\S\r\n]+)?(?P<name>[\w.-]+)(?:[^\S\r\n]*=|:(?=[^\S\r\n]))[^\S\r\n]*"
    r"(?P<value>'(?:\\'|[^'])*'|\"(?:\\\"|[^\"])*\"|`(?:\\`|[^`])*`|[^#\r\n]*)[^\S\r\n]*(?:#[^\r\n]*)?(?:\r\n|\r|\n|\Z)",
    re.MULTILINE,
)
_QUOTES = ("'", '"', "`")


def parse(text: str) -> dict[str, Any]:
    """The variables of the file."""
    return {found["name"]: _plain(found["value"]) for found in _lines(text)}


def with_value(text: str, _path: Path, name: str, value: Any) -> str:
    """`text` in which the variable has this value, at its end if it is new."""
    there = [found for found in _lines(text) if found["name"] == name]
    if there:
        start, end = there[-1].span("value")
        gap = text[start:end][len(text[start:end].rstrip()) :]
        return text[:start] + str(value) + gap + text[end:]
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text.removeprefix(_MARK) or text.endswith(("\n", "\r")) else newline
    return f"{text}{gap}{name}={value}{newline}"


def without(text: str, _path: Path, names: Collection[str]) -> str:
    """`text` without the lines of these variables."""
    for found in reversed(_lines(text)):
        if found["name"] in names:
            text = text[: found.start()] + text[found.end() :]
    return text


def line_of(text: str, path: Path) -> int | None:
    """The line, from 1, of the variable; of two equal names the last counts."""
    there = [found.start("name") for found in _lines(text) if (found["name"],) == path]
    return text.count("\n", 0, there[-1]) + 1 if there else None


def _lines(text: str) -> list[re.Match[str]]:
    return list(_LINE.finditer(text))


def _plain(value: str) -> str:
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in _QUOTES:
        inner = value[1:-1]
        return inner.replace("\\n", "\n").replace("\\r", "\r") if value[0] == '"' else inner
    return value
