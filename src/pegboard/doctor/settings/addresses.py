"""Addresses without what only their owner should know.

Above: whatever keeps an address. Below: nothing.
"""

from __future__ import annotations

import re

_SCHEME = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?//")
_HOST = re.compile(r"(?:\[[^\]\s]*\]|[^:@/?#\s]*)(?::\d{1,5})?(?=[/?#]|$)")
_REST = re.compile(r"[?#]")


def without_credentials(address: str) -> str:
    """The address without a user, a password, a query or a fragment; what is none comes back as it is."""
    address = address.strip()
    scheme = _SCHEME.match(address)
    start = scheme.end() if scheme else 0
    rest = address[start:]
    if "@" in rest and _hides_a_user(rest):
        rest = rest.rpartition("@")[2]
    return address[:start] + _REST.split(rest, maxsplit=1)[0]


def _hides_a_user(rest: str) -> bool:
    """A user or a password may have any character in it, so only what is a plain host and path for sure is none."""
    host = _HOST.match(rest)
    return host is None or ":" in _REST.split(rest[host.end() :], maxsplit=1)[0]
