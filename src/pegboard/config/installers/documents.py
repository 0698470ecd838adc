"""Settings as text and as what they say, in four formats; and the lines of a change exchanged for those it found.

Above: `undo`, which moves servers, and `settings`, which sets single values. Below: the four editors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Literal

from pegboard.config.installers import edit_env, edit_json, edit_toml, edit_yaml
from pegboard.config.write import same_toml
from pegboard.errors import ConfigError, PegboardError

Format = Literal["json", "toml", "env", "yaml"]
Path = tuple[str, ...]

EDITORS: dict[Format, ModuleType] = {"json": edit_json, "toml": edit_toml, "env": edit_env, "yaml": edit_yaml}
_ENDINGS: dict[str, Format] = {".toml": "toml", ".env": "env", ".yaml": "yaml", ".yml": "yaml"}


def format_of(name: str) -> Format:
    """How a file of this name is written; JSON, comments and all, unless the name says otherwise."""
    return next((form for ending, form in _ENDINGS.items() if name.lower().endswith(ending)), "json")


def parse(text: str, format: Format) -> dict[str, Any]:  # noqa: A002 - it is the format
    """What the settings say."""
    document: dict[str, Any] = EDITORS[format].parse(text)
    return document


def table_at(document: Any, path: Path) -> dict[str, Any]:
    """The table at the end of these keys; empty when there is none."""
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    return document if isinstance(document, dict) else {}


def copied(document: dict[str, Any], path: Path) -> dict[str, Any]:
    """A copy in which the tables on the path may be changed."""
    copy = dict(document)
    if path and isinstance(inner := copy.get(path[0]), dict):
        copy[path[0]] = copied(inner, path[1:])
    return copy


def made(document: dict[str, Any], path: Path, what: str) -> dict[str, Any]:
    """The table at the end of these keys, which is made where there is none."""
    for key in path:
        inner = document.setdefault(key, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"`{'.'.join(path)}` should be {what}, and is not.", hint="Mend the file.")
        document = inner
    return document


def prune(document: dict[str, Any], old: dict[str, Any], path: Path) -> None:
    """Tables that a change made and that nobody else uses go with it."""
    for depth in range(len(path), 0, -1):
        holder = table_at(document, path[: depth - 1])
        if holder.get(path[depth - 1]) == {} and path[depth - 1] not in table_at(old, path[: depth - 1]):
            del holder[path[depth - 1]]


def without_empty(text: str, expected: dict[str, Any], path: Path, format: Format) -> str:  # noqa: A002
    """`text` without the tables on the path that have nothing in them and should not be there."""
    document = parse(text, format)
    for depth in range(len(path), 0, -1):
        outer, key = path[: depth - 1], path[depth - 1]
        is_empty = table_at(document, outer).get(key) == {}
        if is_empty and key not in table_at(expected, outer):
            text = EDITORS[format].without(text, outer, (key,))
            document = parse(text, format)
    return text


def says(text: str, expected: dict[str, Any], paths: Sequence[Path], format: Format) -> bool:  # noqa: A002
    """Whether the text says just this; empty tables on the paths count in JSON only."""
    try:
        text.encode()
        found = parse(text, format)
    except (PegboardError, UnicodeEncodeError):
        return False
    if format == "toml":
        # A table without members is there or not: nobody can tell.
        for path in paths:
            found, expected = copied(found, path), copied(expected, path)
            prune(found, {}, path)
            prune(expected, {}, path)
    return same_toml(found, expected)


def patched(current: str, before: str, after: str, is_right: Callable[[str], bool]) -> str | None:
    """The lines that a change left, exchanged for those it found; None when they are no longer there once."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    for around in (1, 0):
        first, last = max(head - around, 0), max(tail - around, 0)
        left = "".join(new[first : len(new) - last])
        if left.strip() and current.count(left) == 1:
            text = current.replace(left, "".join(old[first : len(old) - last]))
            if is_right(text):
                return text
    return None


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((number for number, (one, other) in pairs if one != other), min(len(left), len(right)))
