"""`${VAR}` and `${VAR:-default}` in configured text.

Pure: the variables come in as a mapping, and what could not be expanded goes out as data. Above: `resolve`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

# `$${` is the way to write a literal `${`. Anything else that starts with `${` must be a whole reference.
_REFERENCE = re.compile(r"\$\$\{|\$\{(?:(?P<inner>[^{}]*)\})?")
_INNER = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-.*)?", re.DOTALL)


class Expansion(msgspec.Struct, frozen=True):
    """Text with its variables filled in."""

    text: str
    names: tuple[str, ...] = ()
    """The environment variables that were asked for."""
    unset: tuple[str, ...] = ()
    """Those of them that are not set and have no default; their references stay as written."""


class Malformed(ValueError):
    """A `${` that is no reference; the message says what it should be."""


def expand(
    text: str, environ: Mapping[str, str], known: Mapping[str, str] | None = None, *, editors: bool = False
) -> Expansion:
    """Fills in every reference of `text`.

    `known` are names that are not environment variables and come first. With `editors`, `${env:VAR}` is understood
    too, as VS Code, Cursor and Windsurf write it.
    """
    if "${" not in text:
        return Expansion(text)
    names: list[str] = []
    unset: list[str] = []

    def fill(match: re.Match[str]) -> str:
        if match[0] == "$${":
            return "${"
        if known and match["inner"] in known:
            return known[match["inner"]]
        name, default = _parse(match, editors=editors)
        names.append(name)
        value = environ.get(name)
        if default is not None:
            return value or default
        if value is None:
            unset.append(name)
            return match[0]
        return value

    filled = _REFERENCE.sub(fill, text)
    return Expansion(filled, tuple(dict.fromkeys(names)), tuple(dict.fromkeys(unset)))


def escape(text: str) -> str:
    """Text that expands to `text`, whatever it contains."""
    return text.replace("${", "$${")


def _parse(match: re.Match[str], *, editors: bool) -> tuple[str, str | None]:
    inner = match["inner"]
    if inner is None:
        place = f"the ${{ at character {match.start() + 1}"
        raise Malformed(f"{place} is not closed, or has braces inside; a literal ${{ is written $${{")
    if editors and inner.startswith("env:"):
        inner = inner.removeprefix("env:")
    elif editors and inner.startswith("input:"):
        raise Malformed(f"{match[0]} is asked for by an editor; set a variable and write ${{VARIABLE}} instead")
    parts = _INNER.fullmatch(inner)
    if parts is None:
        raise Malformed(f"{match[0]} is no reference; write ${{NAME}} or ${{NAME:-default}}, or $${{ for ${{")
    default = parts["default"]
    return parts["name"], None if default is None else default[2:]
