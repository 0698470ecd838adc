"""What a client asks, and on which terms: they stand in the request itself (stateless) or in the handshake before it.

Above: `server` keeps a connection's state and decides what becomes of the request.
"""

from __future__ import annotations

import msgspec

from pegboard.types import Json
from pegboard.wire.messages import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    UNSUPPORTED_VERSION,
    Request,
    RequestId,
    RpcError,
    request_id,
)
from pegboard.wire.meta import META_CAPABILITIES, META_CLIENT, META_VERSION
from pegboard.wire.versions import Era, era_of

ONLY_STATELESS = frozenset({"server/discover", "subscriptions/listen"})
ONLY_HANDSHAKE = frozenset({"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})


class Handshake(msgspec.Struct, frozen=True):
    """What `initialize` settled for the rest of a connection."""

    version: str
    capabilities: Json
    client: Json


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request, and what holds for it: the version it is asked in, and what its client is and can do."""

    id: RequestId
    method: str
    params: Json
    raw: msgspec.Raw
    """The params as they came, to be passed on."""
    version: str
    capabilities: Json
    client: Json
    """Name and version of the client's software, as it says. For display only."""
    progress_token: RequestId | None = None
    """Whoever asked wants to hear of progress under this token."""

    @property
    def era(self) -> Era:
        """Which of the two ways of speaking this request uses."""
        return era_of(self.version) or Era.HANDSHAKE


def identify(
    request: Request, params: Json, handshake: Handshake | None, versions: tuple[str, ...]
) -> Asked | RpcError:
    """The request with its terms, or why it cannot be served on any."""
    meta = meta_of(params)
    terms: Handshake | RpcError | None = handshake
    if speaks_stateless(params) and any(era_of(each) is Era.STATELESS for each in versions):
        terms = _stateless_terms(meta, versions)
    if terms is None:
        return RpcError(
            INVALID_PARAMS,
            f"`params._meta` does not say which protocol version this request speaks ({META_VERSION}), "
            "and no `initialize` came before it",
        )
    if isinstance(terms, RpcError):
        return terms
    asked = Asked(
        id=request.id,
        method=request.method,
        params=params,
        raw=request.params,
        version=terms.version,
        capabilities=terms.capabilities,
        client=terms.client,
        progress_token=request_id(meta.get("progressToken")),
    )
    foreign = ONLY_HANDSHAKE if asked.era is Era.STATELESS else ONLY_STATELESS
    return unknown_method(asked.method) if asked.method in foreign else asked


def meta_of(params: Json) -> Json:
    """The `_meta` of a request."""
    meta = params.get("_meta")
    return meta if isinstance(meta, dict) else {}


def speaks_stateless(params: Json) -> bool:
    """Whether a request's `_meta` is that of the stateless era; half of what it needs is enough to tell."""
    meta = meta_of(params)
    return META_VERSION in meta or META_CAPABILITIES in meta


def _stateless_terms(meta: Json, versions: tuple[str, ...]) -> Handshake | RpcError:
    version, capabilities = meta.get(META_VERSION), meta.get(META_CAPABILITIES)
    if not isinstance(version, str):
        return RpcError(INVALID_PARAMS, f"`params._meta` lacks {META_VERSION}, which must be a string")
    if version not in versions or era_of(version) is not Era.STATELESS:
        return unsupported_version(version, versions)
    if not isinstance(capabilities, dict):
        return RpcError(INVALID_PARAMS, f"`params._meta` lacks {META_CAPABILITIES}, which must be an object")
    client = meta.get(META_CLIENT)
    return Handshake(version, capabilities, client if isinstance(client, dict) else {})


def unknown_method(method: str) -> RpcError:
    """There is no such method here."""
    return RpcError(METHOD_NOT_FOUND, f"Method not found: {method}")


def unsupported_version(requested: str, versions: tuple[str, ...]) -> RpcError:
    """Refuses a version and names those that would do."""
    offered = list(versions)
    if requested in offered:
        # We speak it, but only after a handshake: offering it again would send the client in circles.
        offered = [each for each in versions if era_of(each) is Era.STATELESS]
    return RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", {"supported": offered, "requested": requested})


def missing_capability(asked: Asked, required: Json) -> RpcError | None:
    """Refuses a request that needs more of its client than that declared; None when it declared it all."""
    missing = _lacking(required, asked.capabilities)
    if not missing:
        return None
    names = ", ".join(missing)
    return RpcError(
        MISSING_CAPABILITY, f"This needs a client that declares: {names}", {"requiredCapabilities": missing}
    )


def _lacking(required: Json, declared: Json) -> Json:
    lacking: Json = {}
    for name, inner in required.items():
        has = declared.get(name)
        if not isinstance(has, dict):
            lacking[name] = inner
        elif isinstance(inner, dict) and (deeper := _lacking(inner, has)):
            lacking[name] = deeper
    return lacking
