"""What all connections share: the desk and the relay behind them, the calls that wait for answers, who is connected.

Above: `stdio` and `http` open sessions here. Whoever owns the desk says `look_again` when it may have changed.
"""

from __future__ import annotations

import asyncio

import pegboard
from pegboard.gateway.desk import Desk, Relay
from pegboard.gateway.errand import WaitingRoom
from pegboard.gateway.outbox import Outbox
from pegboard.gateway.session import House, Session
from pegboard.types import Json
from pegboard.wire.subscriptions import Kind


class Lobby:
    """Everybody who is connected to one desk."""

    def __init__(
        self,
        desk: Desk,
        relay: Relay | None = None,
        *,
        name: str = "pegboard",
        allow: tuple[str, ...] | None = None,
    ) -> None:
        """`allow` is what everybody here may use, so that no more than that is spoken of."""
        capabilities: Json = {"tools": {"listChanged": True}}
        if relay is not None:
            capabilities |= relay.capabilities()
            relay.watch(self.changed)
        self.waiting = WaitingRoom()
        self._house = House(
            desk=desk,
            relay=relay,
            waiting=self.waiting,
            capabilities=capabilities,
            name=name,
            version=pegboard.__version__,
            allow=allow,
        )
        self._sessions: dict[Session, None] = {}

    @property
    def desk(self) -> Desk:
        """Whose tools are shown here."""
        return self._house.desk

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, outbox: Outbox | None = None) -> Session:
        """A new connection; `outbox` takes what belongs to no request."""
        session = Session(self._house, outbox)
        self._sessions[session] = None
        return session

    async def leave(self, session: Session) -> None:
        """The connection is over."""
        self._sessions.pop(session, None)
        await session.close()

    def look_again(self) -> None:
        """The tools may be others now: whoever was shown a list that is out of date hears of it."""
        for session in list(self._sessions):
            session.look_again()

    def changed(self, kind: Kind) -> None:
        """A list of prompts or resources is another now."""
        for session in list(self._sessions):
            session.announce(kind)

    def close_streams(self) -> None:
        """Ends all subscriptions gracefully, while there is still a way to say so."""
        for session in list(self._sessions):
            session.close_streams()

    async def close(self) -> None:
        """Ends everything that is under way."""
        self.waiting.close()
        await asyncio.gather(*(self.leave(session) for session in list(self._sessions)))
