"""The server's half of MCP, without I/O: answers what the protocol itself asks, and hands on the rest with its terms.

Above: the gateway puts it on stdio and HTTP. One `ServerSide` is one connection: a stdio process, an HTTP session of
the handshake era, or a single POST of the stateless one. Both eras may be spoken on the same connection.
"""

from __future__ import annotations

from math import inf
from typing import Any

import msgspec

from pegboard.types import Json
from pegboard.wire.asked import Asked, Handshake, identify, speaks_stateless, unknown_method, unsupported_version
from pegboard.wire.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    Notification,
    NotJsonRpc,
    Request,
    RequestId,
    Response,
    RpcError,
    encode_error,
    encode_notification,
    encode_request,
    encode_result,
    parse,
    read,
    read_fields,
    request_id,
)
from pegboard.wire.meta import META_SERVER
from pegboard.wire.subscriptions import Kind, Notice, Subscriptions
from pegboard.wire.versions import SPOKEN_VERSIONS, Era, era_of

DISCOVER_TTL_MS = 300_000
CACHEABLE = frozenset(
    {"tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read", "server/discover"}
)
"""Whose complete results must carry caching hints, in the stateless era."""
RETIRED_CODES = {-32002: INVALID_PARAMS, -32042: INTERNAL_ERROR}
"""Error codes of older revisions that the stateless era forbids to send, and what stands in for them."""


class Answer(msgspec.Struct, frozen=True):
    """What the protocol answers by itself: send it as it is."""

    data: bytes
    error: RpcError | None = None
    era: Era | None = None
    """The era it was asked in; None when that could not be told."""


class Subscribed(msgspec.Struct, frozen=True):
    """A client listens from now on. `data` is the acknowledgement; the stream stays open after it."""

    id: RequestId
    data: bytes


class Cancelled(msgspec.Struct, frozen=True):
    """The client no longer wants this answer: stop working on it, and send nothing more for it."""

    id: RequestId
    reason: str = ""


Event = Asked | Answer | Subscribed | Cancelled | Notification | Response


class ServerSide:
    """One connection's state: who we are, what was agreed, which requests and subscriptions are open."""

    def __init__(
        self,
        name: str,
        version: str,
        *,
        capabilities: Json,
        instructions: str = "",
        versions: tuple[str, ...] = SPOKEN_VERSIONS,
    ) -> None:
        if not versions or any(era_of(each) is None for each in versions):
            raise ValueError(f"versions must be some of {', '.join(SPOKEN_VERSIONS)}; got {versions!r}")
        self._info = {"name": name, "version": version}
        self._about: Json = {"capabilities": capabilities}
        if instructions:
            self._about["instructions"] = instructions
        self._versions = versions
        self._eras = {era_of(each) for each in versions}
        self._progress: dict[RequestId, float] = {}  # the requests handed on, and how far each has come
        self._asked: set[RequestId] = set()
        self._next_id = 0
        self._subscriptions = Subscriptions(capabilities)
        self.handshake: Handshake | None = None
        """What `initialize` settled, once it came."""

    # ── what arrives ─────────────────────────────────────────────────────────────────────────────────────────────

    def receive(self, data: bytes) -> list[Event]:
        """What one frame comes to, in order: answers to send, and what the caller has to act on."""
        try:
            messages = parse(data)
        except NotJsonRpc as error:
            return [_unreadable(data, error)]
        if not messages:
            return [_refusal(None, RpcError(INVALID_REQUEST, "An empty batch"), None)]
        events: list[Event] = []
        for message in messages:
            if isinstance(message, Request):
                events.append(self._requested(message))
            elif isinstance(message, Notification):
                events.extend(self._notified(message))
            elif message.id in self._asked:
                self._asked.discard(message.id)
                events.append(message)
        return events

    def _requested(self, request: Request) -> Event:
        params = _object(request.params)
        if params is None:
            return _refusal(request.id, RpcError(INVALID_PARAMS, "`params` must be an object"), None)
        if request.id in self._progress or request.id in self._subscriptions:
            return _refusal(request.id, RpcError(INVALID_REQUEST, f"A request with id {request.id!r} is open"), None)
        era = self._era_of(params)
        if request.method == "initialize" and era is not Era.STATELESS:
            return self._initialize(request.id, params)
        if request.method == "ping" and era is None and Era.HANDSHAKE in self._eras:
            return Answer(encode_result(request.id, {}))  # the one request that may come before `initialize`
        asked = identify(request, params, self.handshake, self._versions)
        if isinstance(asked, RpcError):
            return _refusal(request.id, asked, era)
        return self._own_method(asked)

    def _era_of(self, params: Json) -> Era | None:
        if speaks_stateless(params) and Era.STATELESS in self._eras:
            return Era.STATELESS
        return Era.HANDSHAKE if self.handshake is not None else None

    def _own_method(self, asked: Asked) -> Event:
        if asked.method == "ping":
            return Answer(encode_result(asked.id, {}), era=asked.era)
        if asked.method == "server/discover":
            return Answer(encode_result(asked.id, self._discovered()), era=asked.era)
        if asked.method == "subscriptions/listen":
            opened = self._subscriptions.open(asked.id, asked.params)
            if isinstance(opened, RpcError):
                return _refusal(asked.id, opened, asked.era)
            return Subscribed(asked.id, opened)
        self._progress[asked.id] = -inf
        return asked

    def _initialize(self, identity: RequestId, params: Json) -> Answer:
        requested = params.get("protocolVersion")
        if not isinstance(requested, str):
            return _refusal(identity, RpcError(INVALID_PARAMS, "`protocolVersion` must be a string"), Era.HANDSHAKE)
        if Era.HANDSHAKE not in self._eras:
            return _refusal(identity, unsupported_version(requested, self._versions), None)
        spoken = [each for each in self._versions if era_of(each) is Era.HANDSHAKE]
        version = requested if requested in spoken else max(spoken)
        self.handshake = Handshake(version, _dict(params.get("capabilities")), _dict(params.get("clientInfo")))
        result = {"protocolVersion": version, "serverInfo": self._info, **self._about}
        return Answer(encode_result(identity, result), era=Era.HANDSHAKE)

    def _discovered(self) -> Json:
        return {
            "resultType": "complete",
            "supportedVersions": list(self._versions),
            **self._about,
            "ttlMs": DISCOVER_TTL_MS,
            "cacheScope": "public",
            "_meta": {META_SERVER: self._info},
        }

    def _notified(self, notification: Notification) -> list[Event]:
        if notification.method != "notifications/cancelled":
            return [notification]
        params = _object(notification.params) or {}
        identity, reason = request_id(params.get("requestId")), params.get("reason")
        if identity is None or not self.drop(identity):
            return []  # unknown or finished: nothing to stop, and nobody to tell
        return [Cancelled(identity, reason if isinstance(reason, str) else "")]

    def drop(self, identity: RequestId) -> bool:
        """The client no longer waits for this one (on HTTP: it hung up); whether it did until now."""
        return self._progress.pop(identity, None) is not None or self._subscriptions.drop(identity)

    # ── answers: None when nobody waits for one any more ─────────────────────────────────────────────────────────

    def result(self, asked: Asked, result: Json | msgspec.Raw) -> bytes | None:
        """The answer to a request, with what its era requires of every result."""
        if asked.era is Era.STATELESS:
            result = self._complete(asked.method, result)
        return encode_result(asked.id, result) if self.drop(asked.id) else None

    def _complete(self, method: str, result: Json | msgspec.Raw) -> Json:
        fields = dict(result) if isinstance(result, dict) else read_fields(result)
        fields.setdefault("resultType", "complete")
        if method in CACHEABLE and _plain(fields["resultType"]) == "complete":
            fields.setdefault("ttlMs", 0)
            fields.setdefault("cacheScope", "private")
        fields["_meta"] = {META_SERVER: self._info, **_dict(_plain(fields.get("_meta")))}
        return fields

    def refuse(self, asked: Asked, error: RpcError) -> bytes | None:
        """The answer to a request that is not served."""
        if asked.era is Era.STATELESS and error.code in RETIRED_CODES:
            error = RpcError(RETIRED_CODES[error.code], error.message, error.data)
        return encode_error(asked.id, error) if self.drop(asked.id) else None

    def refuse_method(self, asked: Asked) -> bytes | None:
        """The answer to a request for a method that does not exist here."""
        return self.refuse(asked, unknown_method(asked.method))

    def progress(self, asked: Asked, progress: float, *, total: float | None = None, message: str = "") -> bytes | None:
        """How far a request has come; None when nobody asked to know, or it would not be further than before."""
        if asked.progress_token is None or not self._progress.get(asked.id, inf) < progress < inf:
            return None
        self._progress[asked.id] = progress
        params: Json = {"progressToken": asked.progress_token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message:
            params["message"] = message
        return encode_notification("notifications/progress", params)

    # ── what starts from our side ────────────────────────────────────────────────────────────────────────────────

    def ask(self, method: str, params: Json) -> tuple[int, bytes]:
        """A request to the client, its id and its bytes; only after a handshake, for the stateless era has none."""
        if self.handshake is None:
            raise ValueError(f"{method}: in the stateless era a server asks with an `input_required` result")
        self._next_id += 1
        self._asked.add(self._next_id)
        return self._next_id, encode_request(self._next_id, method, params)

    def forget(self, identity: RequestId) -> None:
        """We no longer wait for the client's answer: a late one is ignored."""
        self._asked.discard(identity)

    def changed(self, kind: Kind) -> list[Notice]:
        """Tells whoever should know that the list of tools, prompts or resources is another now."""
        notices = self._subscriptions.changed(kind)
        if self.handshake is not None and self._subscriptions.announces(kind):
            notices.append(Notice(encode_notification(f"notifications/{kind}/list_changed")))
        return notices

    def resource_updated(self, uri: str) -> list[Notice]:
        """Tells the subscriptions that watch this resource."""
        return self._subscriptions.updated(uri)

    def close_subscription(self, identity: RequestId) -> bytes | None:
        """Ends one subscription gracefully; None when it is not open."""
        return self._subscriptions.close(identity)

    def close_subscriptions(self) -> list[Notice]:
        """Ends all of them gracefully, as on shutdown."""
        return self._subscriptions.close_all()


def _unreadable(data: bytes, error: NotJsonRpc) -> Answer:
    try:
        body = read(data)
    except NotJsonRpc:
        return _refusal(None, RpcError(PARSE_ERROR, f"Not JSON: {error}"), None)
    identity = request_id(body.get("id")) if isinstance(body, dict) else None
    return _refusal(identity, RpcError(INVALID_REQUEST, f"Not JSON-RPC: {error}"), None)


def _refusal(identity: RequestId | None, error: RpcError, era: Era | None) -> Answer:
    return Answer(encode_error(identity, error), error, era)


def _object(raw: msgspec.Raw) -> Json | None:
    try:
        value = read(raw)
    except NotJsonRpc:
        return None
    if value is None:
        return {}
    return value if isinstance(value, dict) else None


def _plain(value: Any) -> Any:
    return read(value) if isinstance(value, msgspec.Raw) else value


def _dict(value: Any) -> Json:
    return value if isinstance(value, dict) else {}
