"""What is known of models: which are too old for deferral, how large their windows are, which of them Codex knows.

Names that nobody knows count as new. Above: the checks. Below: nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

SMALL_WINDOW = 200_000
LARGE_WINDOW = 1_000_000

_OLD = re.compile(r"claude-3-(?:opus|sonnet|haiku|5-sonnet|5-haiku|7-sonnet)")
_GENERATION = re.compile(r"claude-(?:opus|sonnet|haiku|fable|mythos)-(\d)(?:-(\d{1,2}))?(?!\d)")
_OLDER_GENERATION = re.compile(r"claude-(?:instant-)?([123])\b")
_CODEX_KNOWS = re.compile(r"(?:^|/)gpt-(?:5\.(?:[2-9]|\d\d)|[6-9]|\d\d)")


def too_old(models: Iterable[str]) -> bool:
    """Whether Claude Code defers for none of these models; without any there is nothing to say."""
    names = [_plain(model) for model in models]
    return bool(names) and all(_OLD.search(name) for name in names)


def too_old_on_vertex(models: Iterable[str]) -> bool:
    """The same on Vertex AI, which wants Claude 4.5."""
    known = [generation(model) for model in models]
    return bool(known) and all(each is not None and each < (4, 5) for each in known)


def generation(model: str) -> tuple[int, int] | None:
    """A Claude model's generation, as (4, 5); None for names that do not tell."""
    name = _plain(model)
    if found := _GENERATION.search(name):
        return int(found[1]), int(found[2] or 0)
    return (int(older[1]), 0) if (older := _OLDER_GENERATION.search(name)) else None


def window(models: Iterable[str]) -> int:
    """The context window of the largest; where a name leaves it open, the larger one, as thresholds grow with it."""
    return max((_window(model) for model in models), default=SMALL_WINDOW)


def _window(model: str) -> int:
    name = _plain(model)
    known = generation(model)
    if "[1m]" in name or (known is not None and known >= (5, 0)):
        # Of Haiku only 5.5 and later has the large one, and there is no other Haiku 5.
        return LARGE_WINDOW
    may_be_large = known is not None and known >= (4, 6) and "haiku" not in name
    return LARGE_WINDOW if may_be_large else SMALL_WINDOW


def known_to_codex(model: str) -> bool:
    """Whether Codex's catalogue has it with deferral: all from gpt-5.2 up."""
    return bool(_CODEX_KNOWS.search(model.lower()))


def _plain(model: str) -> str:
    return model.lower().replace(".", "-").replace("_", "-")
