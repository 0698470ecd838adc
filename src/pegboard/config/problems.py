"""What can be wrong with configuration, as values: where it stands, which key it is, what to do.

Above: everything that reads configuration reports here. Below: the errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

KeyPath = tuple[str | int, ...]
"""The keys and list positions that lead to a value."""

SHOWN = 20
"""How many problems of one kind are spelled out at one place."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong; its text is one line."""

    where: str
    """The file, the environment variable or the flag that says it."""
    line: int | None = None
    key: str = ""
    message: str

    def __str__(self) -> str:
        place = self.where if self.line is None else f"{self.where}:{self.line}"
        return ": ".join(part for part in (place, self.key, self.message) if part)


def key_text(path: KeyPath) -> str:
    """A path as people write it: `servers.github.args[1]`, with quotes where TOML needs them."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += ("." if text else "") + (step if _BARE_KEY.fullmatch(step) else quoted(step))
    return text


def quoted(text: str) -> str:
    """`text` in double quotes, on one line."""
    return msgspec.json.encode(text.encode(errors="replace").decode()).decode()


def summary(messages: Iterable[str]) -> str:
    """Several messages as one, of bounded length: whoever wrote ten thousand wrong keys is told of the first few."""
    once = list(dict.fromkeys(messages))
    more = f"; and {len(once) - SHOWN} more" if len(once) > SHOWN else ""
    return "; ".join(once[:SHOWN]) + more


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """The known word that was probably meant; empty when none is close."""
    import difflib

    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word[:100].lower().replace("-", "_"), by_lower, n=1, cutoff=cutoff)
    return by_lower[close[0]] if close else ""


def suggestion(word: str, known: Iterable[str], *, otherwise: str = "") -> str:
    """`; did you mean …?`, or `otherwise` when nothing is close."""
    near = nearest(word, known)
    return f"; did you mean {near}?" if near else otherwise
