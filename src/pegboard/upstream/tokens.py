"""Sign-ins on disk: one file per server and address, which only its owner can read.

Above: `auth` uses and renews them. A sign-in belongs to the address it was made for: another address, another file.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from pathlib import Path

import msgspec

from pegboard.config.model import ServerSpec
from pegboard.store.files import DiskFiles
from pegboard.types import Json

FOLDER = "oauth"
MOST_BYTES = 1024 * 1024
EARLY_SECONDS = 30.0
"""A token that is about to expire is renewed before it is turned down."""


class SignIn(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """What one sign-in gave us, and what is needed to renew it."""

    server: str
    url: str
    access_token: str = ""
    refresh_token: str | None = None
    scope: str | None = None
    expires_at: float | None = None
    """Seconds since 1970; None when the server did not say."""
    client: Json | None = None
    """Our registration with the authorisation server."""
    is_client_given: bool = False
    """A person gave us that registration: the next sign-in uses it too."""
    authorization_server: Json | None = None
    """Its metadata, with the address where tokens are renewed."""
    resource: Json | None = None
    """The server's own metadata, which says what the token is for."""
    identity: str = ""
    """Drawn anew when a person signs in, and kept through renewals: whose lists are cached as private."""
    challenge: str = ""
    """What the server said when the sign-in did not suffice: the next one asks for more."""

    def __repr__(self) -> str:
        return f"<sign-in of {self.server}>"  # tokens do not belong into logs and tracebacks

    def is_expired(self, now: float) -> bool:
        """Whether it is of no use any more, or soon will not be."""
        return self.expires_at is not None and now >= self.expires_at - EARLY_SECONDS


def path_of(spec: ServerSpec, state_dir: Path) -> Path:
    """Where the sign-in of a server lies; the address is part of the name."""
    mark = hashlib.sha256(f"{spec.name}\n{spec.config.url}".encode()).hexdigest()[:16]
    readable = re.sub(r"[^A-Za-z0-9_-]", "_", spec.name)[:64]
    return state_dir / FOLDER / f"{readable}-{mark}.json"


def read_sign_in(spec: ServerSpec, state_dir: Path) -> SignIn | None:
    """The sign-in kept for a server at its present address; None when there is none that can be read."""
    try:
        kept = msgspec.json.decode(DiskFiles(MOST_BYTES).read(path_of(spec, state_dir)), type=SignIn)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return kept if (kept.server, kept.url) == (spec.name, spec.config.url) else None


def keep_sign_in(spec: ServerSpec, state_dir: Path, sign_in: SignIn) -> Path:
    """Writes a sign-in, whole or not at all, for its owner's eyes only. Raises OSError."""
    path = path_of(spec, state_dir)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    with suppress(FileNotFoundError):
        path.chmod(0o600)  # the file that replaces it takes over its mode
    DiskFiles(MOST_BYTES).write(path, msgspec.json.encode(sign_in))
    return path


def forget_sign_in(spec: ServerSpec, state_dir: Path) -> bool:
    """Deletes the sign-in; False when there was none."""
    try:
        path_of(spec, state_dir).unlink()
    except FileNotFoundError:
        return False
    return True


def identity_of(spec: ServerSpec, state_dir: Path) -> str:
    """Who is signed in to a remote server; empty when nobody is."""
    kept = read_sign_in(spec, state_dir) if spec.config.url else None
    return kept.identity if kept is not None else ""


def sign_in_mark(spec: ServerSpec, state_dir: Path) -> object:
    """Something that changes whenever the sign-in does."""
    try:
        found = path_of(spec, state_dir).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size
