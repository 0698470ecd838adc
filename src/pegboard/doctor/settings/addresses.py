"""Addresses without what only their owner should know.

Above: whatever keeps an address. Below: nothing.
"""

from __future__ import annotations

import re

_BEGINNING = re.compile(r"\s*(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://)?")
_REST = re.compile(r"[?#]")
_HOST = re.compile(r"(?:\[[^\]]*\]|[^:@/?#]*)(?::\d*)?(?=[/?#\s]|$)")


def without_credentials(address: str) -> str:
    """The address without a user, a password, a query or a fragment; what is none comes back as it is."""
    scheme = _BEGINNING.match(address)
    start = scheme.end() if scheme else 0
    rest = address[start:]
    # A password may have any character in it, so whatever is no plain host is cut up to the last @.
    if "@" in rest and not _HOST.match(rest):
        rest = rest.rpartition("@")[2]
    return (address[:start] + _REST.split(rest, maxsplit=1)[0]).strip()
