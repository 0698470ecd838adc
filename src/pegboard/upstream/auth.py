"""OAuth for remote servers that ask for it."""

from __future__ import annotations

from pathlib import Path

import httpx2

from pegboard.config.model import ServerSpec


def stored_auth(spec: ServerSpec, state_dir: Path) -> httpx2.Auth | None:
    """The sign-in kept for this server, if there is one."""
    return None
