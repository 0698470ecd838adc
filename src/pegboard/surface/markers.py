"""Cache markers of the Messages API: which of several keeps what it marks the longest.

Above: the Anthropic plug-in and the proxy. Below: nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def longest(markers: Iterable[Any]) -> Any:
    """The one that lasts longest: a marker of an hour is never weakened to one of five minutes."""
    return max(markers, key=_minutes)


def _minutes(marker: Any) -> float:
    text = str(marker.get("ttl") or "5m") if isinstance(marker, dict) else "5m"
    number = float(text[:-1]) if text[:-1].isdigit() else 5.0
    return number * {"h": 60, "d": 1440}.get(text[-1], 1)
