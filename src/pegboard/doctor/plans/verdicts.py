"""What is known of endpoints: whether they take deferral, and when that was found out.

Above: the rule on endpoints, and `doctor.endpoint`, which asks them. Below: nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What one endpoint answered."""

    url: str
    at: float
    takes: bool
    """Whether it took a deferred tool and a reference to it."""
    status: int
    said: str = ""
    """The beginning of its refusal."""


Verdicts = Mapping[str, Verdict]
"""By the address, as `plain_url` writes it."""


_USUAL = {"https": 443, "http": 80}


def plain_url(url: str) -> str:
    """An address as it is remembered: the same however it is written."""
    text = url.strip().rstrip("/")
    try:
        parts = urlsplit(text)
        port = f":{parts.port}" if parts.port not in (None, _USUAL.get(parts.scheme.lower())) else ""
    except ValueError:
        return text
    if not parts.scheme or not parts.hostname:
        return text
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme.lower()}://{host}{port}{parts.path.rstrip('/')}"
