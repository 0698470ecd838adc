"""Who listens for what (`subscriptions/listen`, stateless era): acknowledges, filters, stamps and closes."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from pegboard.types import Json
from pegboard.wire.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    RequestId,
    RpcError,
    encode_notification,
    encode_result,
)
from pegboard.wire.meta import META_SUBSCRIPTION

MAX_SUBSCRIPTIONS = 1024
"""Per connection: nobody needs as many, and each costs memory as long as it is open."""

Kind = Literal["tools", "prompts", "resources"]
FIELDS: dict[Kind, str] = {
    "tools": "toolsListChanged",
    "prompts": "promptsListChanged",
    "resources": "resourcesListChanged",
}


class Notice(msgspec.Struct, frozen=True):
    """A notification to send; `subscription` is the request whose stream it belongs to, None for the connection's."""

    data: bytes
    subscription: RequestId | None = None


class Subscriptions:
    """The streams one client holds open, each with what it wants to hear."""

    def __init__(self, capabilities: Json) -> None:
        self._capabilities = capabilities
        self._open: dict[RequestId, Json] = {}

    def __contains__(self, identity: RequestId) -> bool:
        return identity in self._open

    def open(self, identity: RequestId, params: Json) -> bytes | RpcError:
        """Begins a stream: the acknowledgement, which must be the first thing sent on it."""
        wanted = params.get("notifications")
        if not isinstance(wanted, dict):
            return RpcError(INVALID_PARAMS, "`params.notifications` must be an object that says what to listen for")
        if len(self._open) >= MAX_SUBSCRIPTIONS:
            return RpcError(INTERNAL_ERROR, f"{MAX_SUBSCRIPTIONS} subscriptions are open already")
        honoured = self._honoured(wanted)
        self._open[identity] = honoured
        return encode_notification(
            "notifications/subscriptions/acknowledged",
            {"_meta": {META_SUBSCRIPTION: identity}, "notifications": honoured},
        )

    def _honoured(self, wanted: Json) -> Json:
        honoured: Json = {
            field: True for kind, field in FIELDS.items() if wanted.get(field) is True and self.announces(kind)
        }
        uris = wanted.get("resourceSubscriptions")
        if isinstance(uris, list) and self._offers("resources", "subscribe"):
            honoured["resourceSubscriptions"] = [each for each in uris if isinstance(each, str)]
        return honoured

    def announces(self, kind: Kind) -> bool:
        """Whether this server said that it tells of changes to this list."""
        return self._offers(kind, "listChanged")

    def _offers(self, capability: str, detail: str) -> bool:
        declared: Any = self._capabilities.get(capability)
        return isinstance(declared, dict) and declared.get(detail) is True

    def changed(self, kind: Kind) -> list[Notice]:
        """Tells every stream that wants to know: this list is another now."""
        interested = [identity for identity, wanted in self._open.items() if FIELDS[kind] in wanted]
        return [_notice(identity, f"notifications/{kind}/list_changed", {}) for identity in interested]

    def updated(self, uri: str) -> list[Notice]:
        """Tells every stream that watches this resource, or one that it is part of."""
        return [
            _notice(identity, "notifications/resources/updated", {"uri": uri})
            for identity, wanted in self._open.items()
            if any(_covers(watched, uri) for watched in wanted.get("resourceSubscriptions", ()))
        ]

    def drop(self, identity: RequestId) -> bool:
        """The client went away; whether it was there."""
        return self._open.pop(identity, None) is not None

    def close(self, identity: RequestId) -> bytes | None:
        """Ends a stream from our side, gracefully: the late answer to its request."""
        if not self.drop(identity):
            return None
        return encode_result(identity, {"resultType": "complete", "_meta": {META_SUBSCRIPTION: identity}})

    def close_all(self) -> list[Notice]:
        """Ends every stream gracefully, as on shutdown."""
        closings = [(identity, self.close(identity)) for identity in list(self._open)]
        return [Notice(data, identity) for identity, data in closings if data is not None]


def _notice(identity: RequestId, method: str, params: Json) -> Notice:
    return Notice(encode_notification(method, {**params, "_meta": {META_SUBSCRIPTION: identity}}), identity)


def _covers(watched: str, uri: str) -> bool:
    return uri == watched or uri.startswith(watched.rstrip("/") + "/")
