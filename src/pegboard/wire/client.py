"""The client's half of MCP, without I/O: numbers requests, reads what comes back, agrees on a version.

Above: `upstream` puts it on stdio and HTTP. A connection holds one `ClientSide`; ids are its own, so that callers
who share a connection can never see each other's answers.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import msgspec

from pegboard.types import Json
from pegboard.wire.messages import (
    UNSUPPORTED_VERSION,
    Notification,
    NotJsonRpc,
    Request,
    RequestId,
    Response,
    RpcError,
    encode_notification,
    encode_request,
    parse,
)
from pegboard.wire.meta import META_CAPABILITIES, META_CLIENT, META_SERVER, META_VERSION
from pegboard.wire.versions import (
    NEWEST_HANDSHAKE,
    NEWEST_STATELESS,
    STATELESS_VERSIONS,
    Era,
    era_of,
)


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """What both sides settled on, and what the server said of itself."""

    version: str
    capabilities: Json
    server_name: str = ""
    server_version: str = ""
    instructions: str = ""

    @property
    def era(self) -> Era:
        """Which of the two ways of speaking this is."""
        return era_of(self.version) or Era.HANDSHAKE


class Step(msgspec.Struct, frozen=True):
    """What a negotiation wants sent next; a notification gets no reply."""

    method: str
    params: Json
    version: str
    """The revision this message speaks."""
    is_notification: bool = False
    is_probe: bool = False
    """A server of the other era may stay silent: wait only briefly."""


class NoAnswer(msgspec.Struct, frozen=True):
    """The reply to a probe that was not answered in time."""


class CannotAgree(Exception):
    """The two sides share no version; the text says what the server offers."""


Reply = Json | RpcError | NoAnswer


class ClientSide:
    """One connection's state: who we are, what was agreed, which requests are open."""

    def __init__(self, name: str, version: str) -> None:
        self._info = {"name": name, "version": version}
        self._next_id = 0
        self._open: set[RequestId] = set()
        self.agreement: Agreement | None = None

    def request(
        self, method: str, params: Json, *, version: str | None = None, capabilities: Json | None = None
    ) -> tuple[int, Json, bytes]:
        """A numbered request: its id, the params as sent, and the bytes."""
        self._next_id += 1
        spoken = version or (self.agreement.version if self.agreement else NEWEST_HANDSHAKE)
        if era_of(spoken) is Era.STATELESS:
            params = self._with_meta(params, spoken, capabilities or {})
        self._open.add(self._next_id)
        return self._next_id, params, encode_request(self._next_id, method, params)

    def _with_meta(self, params: Json, version: str, capabilities: Json) -> Json:
        meta = {
            **(params.get("_meta") or {}),
            META_VERSION: version,
            META_CLIENT: self._info,
            META_CAPABILITIES: capabilities,
        }
        return {**params, "_meta": meta}

    @property
    def next_id(self) -> int:
        """The id the next request will have."""
        return self._next_id + 1

    def forget(self, identity: RequestId) -> None:
        """The caller no longer waits: a late answer will be ignored."""
        self._open.discard(identity)

    def receive(self, data: bytes) -> list[Request | Notification | Response]:
        """The messages in one frame that concern us; answers to nothing we asked are left out."""
        messages = []
        for message in parse(data):
            if isinstance(message, Response):
                if message.id not in self._open:
                    continue
                self._open.discard(message.id)
            messages.append(message)
        return messages

    def negotiate(self, capabilities: Json, known_version: str = "") -> Generator[Step, Reply, Agreement]:
        """Asks and answers until a version is agreed: stateless first, the handshake where that fails.

        `known_version` is what this server spoke last time: it saves the probe.
        """
        if era_of(known_version) is Era.HANDSHAKE:
            try:
                return (yield from self._initialize(capabilities))
            except CannotAgree:
                # It was upgraded since: what we knew no longer holds.
                agreement = yield from self._discover(NEWEST_STATELESS)
                if agreement is None:
                    raise
                return agreement
        agreement = yield from self._discover(NEWEST_STATELESS)
        return agreement or (yield from self._initialize(capabilities))

    def _discover(self, version: str) -> Generator[Step, Reply, Agreement | None]:
        for _ in range(len(STATELESS_VERSIONS) + 1):
            reply = yield Step("server/discover", {}, version, is_probe=True)
            if isinstance(reply, dict):
                mutual = _mutual(reply.get("supportedVersions"))
                return _discovered(reply, mutual) if mutual else None
            offered = _offered(reply)
            mutual = _mutual(offered)
            if mutual:  # even when it is the one we spoke: servers are told to be asked again in what they advertise
                version = mutual
                continue
            if offered and not any(era_of(each) for each in offered):
                raise CannotAgree(f"it speaks only {', '.join(offered)}")
            return None
        return None

    def _initialize(self, capabilities: Json) -> Generator[Step, Reply, Agreement]:
        params = {"protocolVersion": NEWEST_HANDSHAKE, "capabilities": capabilities, "clientInfo": self._info}
        reply = yield Step("initialize", params, NEWEST_HANDSHAKE)
        if isinstance(reply, RpcError):
            mutual = _mutual(_offered(reply))
            if mutual:
                # A stateless-only server that was too slow for the probe names its versions here.
                agreement = yield from self._discover(mutual)
                if agreement is not None:
                    return agreement
            raise CannotAgree(f"it refused `initialize`: {reply.message} (JSON-RPC error {reply.code})")
        if not isinstance(reply, dict):
            raise CannotAgree("it did not answer `initialize`")
        agreement = _initialized(reply)
        yield Step("notifications/initialized", {}, agreement.version, is_notification=True)
        return agreement

    def notification(self, method: str, params: Json) -> bytes:
        """A notification, as bytes."""
        return encode_notification(method, params or None)


def _offered(reply: Reply) -> list[str]:
    if not isinstance(reply, RpcError) or reply.code != UNSUPPORTED_VERSION or not isinstance(reply.data, dict):
        return []
    offered = reply.data.get("supported")
    return [each for each in offered if isinstance(each, str)] if isinstance(offered, list) else []


def _mutual(offered: Any) -> str:
    known = [each for each in STATELESS_VERSIONS if isinstance(offered, list) and each in offered]
    return known[-1] if known else ""


def _discovered(reply: Json, version: str) -> Agreement:
    meta = reply.get("_meta")
    info = meta.get(META_SERVER) if isinstance(meta, dict) else None
    return _agreement(version, reply, info)


def _initialized(reply: Json) -> Agreement:
    version = reply.get("protocolVersion")
    if not isinstance(version, str) or era_of(version) is not Era.HANDSHAKE:
        raise CannotAgree(f"it answered `initialize` with protocol version {version!r}")
    return _agreement(version, reply, reply.get("serverInfo"))


def _agreement(version: str, reply: Json, info: Any) -> Agreement:
    info = info if isinstance(info, dict) else {}
    capabilities = reply.get("capabilities")
    return Agreement(
        version=version,
        capabilities=capabilities if isinstance(capabilities, dict) else {},
        server_name=_text(info.get("name")),
        server_version=_text(info.get("version")),
        instructions=_text(reply.get("instructions")),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


__all__ = ["Agreement", "CannotAgree", "ClientSide", "NoAnswer", "NotJsonRpc", "Reply", "Step"]
