"""Which tools one call in a history was about: itself, or those it called for the model.

Above: the dialects. Below: the names of Pegboard's own tools.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pegboard.platform_tools.definitions import ALL, BATCH, CALL, CALL_READ, CALL_WRITE

OWN = ALL
"""The tools that are Pegboard's own."""
CALLS = frozenset({CALL, CALL_READ, CALL_WRITE, BATCH})
"""Those of ours that call another tool."""


def named(name: str, arguments: Any) -> Iterator[str]:
    """The tools that a call used."""
    given = arguments if isinstance(arguments, dict) else {}
    if name == BATCH:
        several = given.get("calls")
        for each in several if isinstance(several, list) else ():
            if isinstance(each, dict) and isinstance(each.get("name"), str):
                yield each["name"]
    elif name in CALLS:
        if isinstance(given.get("name"), str):
            yield given["name"]
    elif name not in OWN:
        yield name
