"""The change of a file as lines to be shown, without the secrets in it.

Above: `pegboard install`. Below: what the importers take for a secret.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from pegboard.config.environment import looks_secret
from pegboard.config.importers.secrets import MASK, secret_values
from pegboard.config.model import ServerConfig

CONTEXT = 2
WIDTH = 200
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"')
_SHORT = 4
"""Shorter values are hidden only where they stand alone: they are part of many words."""
_DEEPEST = 100


def diff(before: str, after: str, name: str, hidden: Iterable[str]) -> list[str]:
    """The lines that go and come, with a few around them."""
    values = sorted(set(hidden) - {""}, key=len, reverse=True)
    lines = difflib.unified_diff(
        before.removeprefix("\ufeff").splitlines(),
        after.removeprefix("\ufeff").splitlines(),
        name,
        name,
        lineterm="",
        n=CONTEXT,
    )
    return [_cut(_masked(line, values)) for line in lines]


def hidden_values(document: Any, configs: Iterable[ServerConfig]) -> set[str]:
    """Every text in the settings that looks like a secret, wherever it is, and those of the servers."""
    found = {part for config in configs for value in secret_values(config) for part in (value, *value.splitlines())}
    return found | set(_secrets(document, "", 0))


def _secrets(value: Any, key: str, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _secrets(item, str(name), depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _secrets(item, key, depth + 1)
    elif isinstance(value, str) and looks_secret(key, value):
        yield from (value, *value.splitlines())


def _masked(line: str, values: list[str]) -> str:
    def mask(match: re.Match[str]) -> str:
        try:
            text = json.loads(match[0], strict=False)
        except ValueError:
            return match[0]
        hidden = _without(text, values)
        return match[0] if hidden == text else json.dumps(hidden, ensure_ascii=False)

    return _without(_STRING.sub(mask, line), [value for value in values if len(value) >= _SHORT])


def _without(text: str, values: list[str]) -> str:
    if text in values:
        return MASK
    for value in values:
        if len(value) >= _SHORT:
            text = text.replace(value, MASK)
    return text


def is_cut(line: str) -> bool:
    """Whether a line that is shown is only the beginning of one."""
    return len(line) > WIDTH


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[:WIDTH]} …"
