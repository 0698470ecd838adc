"""The protocol revisions Pegboard speaks, and the two eras they fall into."""

from __future__ import annotations

from enum import StrEnum


class Era(StrEnum):
    """How a connection learns what the other side speaks."""

    HANDSHAKE = "handshake"
    """`initialize` first, then a session (2024-11-05 to 2025-11-25)."""
    STATELESS = "stateless"
    """Every request carries version and capabilities in `_meta` (2026-07-28)."""


HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS_VERSIONS = ("2026-07-28",)
NEWEST_HANDSHAKE = HANDSHAKE_VERSIONS[-1]
NEWEST_STATELESS = STATELESS_VERSIONS[-1]
SPOKEN_VERSIONS = (*STATELESS_VERSIONS[::-1], *HANDSHAKE_VERSIONS[::-1])
"""All of them, newest first."""


def era_of(version: str) -> Era | None:
    """The era of a revision, or None when we do not speak it."""
    if version in STATELESS_VERSIONS:
        return Era.STATELESS
    return Era.HANDSHAKE if version in HANDSHAKE_VERSIONS else None
