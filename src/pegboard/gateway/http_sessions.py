"""The sessions of the handshake era over HTTP: unguessable names, bounded in number, forgotten when they lie idle."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from pegboard.gateway.session import Session

MAX_SESSIONS = 1000
IDLE_SECONDS = 3600.0


class _Held:
    """A session, whose it is, and when it was last used."""

    __slots__ = ("identity", "session", "used")

    def __init__(self, session: Session, identity: str, used: float) -> None:
        self.session = session
        self.identity = identity
        self.used = used


class HttpSessions:
    """Open sessions by name, the one used longest ago first."""

    def __init__(
        self, clock: Callable[[], float], *, most: int = MAX_SESSIONS, idle_seconds: float = IDLE_SECONDS
    ) -> None:
        self._clock = clock
        self._most = most
        self._idle = idle_seconds
        self._held: dict[str, _Held] = {}

    def __len__(self) -> int:
        return len(self._held)

    def add(self, session: Session, identity: str) -> str:
        """Keeps a session; its name is all that a client needs to come back, together with who it is."""
        name = secrets.token_urlsafe(32)
        self._held[name] = _Held(session, identity, self._clock())
        return name

    def get(self, name: str, identity: str) -> Session | None:
        """The session of this name, if it is this caller's."""
        held = self._held.get(name)
        if held is None or held.identity != identity:
            return None
        held.used = self._clock()
        self._held[name] = self._held.pop(name)
        return held.session

    def remove(self, name: str, identity: str) -> Session | None:
        """Forgets a session, if it is this caller's."""
        if self.get(name, identity) is None:
            return None
        return self._held.pop(name).session

    def overdue(self) -> list[Session]:
        """Forgets those that lay idle too long, and those that are too many; whoever asks ends them."""
        now = self._clock()
        over = [name for name, held in self._held.items() if now - held.used > self._idle and not held.session.is_busy]
        spare = len(self._held) - len(over) - self._most
        for name, held in self._held.items():
            if spare <= 0:
                break
            if name not in over and not held.session.is_busy:
                over.append(name)
                spare -= 1
        return [self._held.pop(name).session for name in over]
