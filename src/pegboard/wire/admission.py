"""Who may speak to an HTTP listener at all: Host, Origin and bearer token, checked before anything else is looked at.

A page in a browser can send requests to this machine, and a name it owns can be made to point here. Hence the Host and
Origin rules hold with or without a token, on every route. Pure functions.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from ipaddress import ip_address

import msgspec

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

Headers = Iterable[tuple[str, str]]


class Turned(msgspec.Struct, frozen=True):
    """Turned away: the status, and the words."""

    status: int
    words: str


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one listener."""

    names: frozenset[str] = LOCAL_NAMES
    """Hosts it is addressed by."""
    any_address: bool = False
    """Whether a bare IP address will do as a host: a name can be made to point anywhere, an address cannot."""
    tokens: Mapping[str, str] = {}
    """Tokens by the identity that each proves. Empty: no token is asked for."""

    def admit(self, headers: Headers) -> str | Turned:
        """The identity of whoever asks, or why they are turned away."""
        lines: dict[str, list[str]] = {}
        for name, value in headers:
            lines.setdefault(name.lower(), []).append(value)
        hosts, origins = lines.get("host", []), lines.get("origin", [])
        if len(hosts) != 1 or not self._is_known(_host_of(hosts[0])):
            return Turned(403, "This Host is not served here; `--allow-host` adds one")
        if len(origins) > 1 or (origins and not self._is_known(_origin_host(origins[0]))):
            return Turned(403, "This Origin is not allowed")
        return self._identify(lines.get("authorization", []))

    def _is_known(self, host: str | None) -> bool:
        return host is not None and (host in self.names or (self.any_address and is_address(host)))

    def _identify(self, credentials: list[str]) -> str | Turned:
        if not self.tokens:
            return ""
        given = credentials[0] if len(credentials) == 1 else ""
        scheme, _, token = given.partition(" ")
        # Every token is compared, and in constant time: how long it takes must not tell how much was right.
        found = [
            identity
            for identity, expected in self.tokens.items()
            if hmac.compare_digest(token.strip().encode("latin-1", "replace"), expected.encode("utf-8"))
        ]
        if scheme.lower() != "bearer" or not found:
            return Turned(401, "A bearer token is needed here: Authorization: Bearer …")
        return found[0]


def is_loopback(host: str) -> bool:
    """Whether an address to listen on can be reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_address(host: str) -> bool:
    """Whether it is an address and no name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _origin_host(origin: str) -> str | None:
    scheme, separator, rest = origin.partition("://")
    if not separator or scheme.lower() not in ("http", "https") or "/" in rest or "@" in rest:
        return None  # "null" among others: a sandboxed frame, or a file
    return _host_of(rest)


def _host_of(value: str) -> str | None:
    """The host of `host[:port]`, in lower case and without brackets; None when it is not that."""
    value = value.strip().lower()
    if value.startswith("["):
        host, bracket, port = value[1:].partition("]")
        port = port.removeprefix(":") if port.startswith(":") or not port else "x"
        return host if bracket and (not port or port.isdecimal()) else None
    host, colon, port = value.partition(":")
    if not host or (colon and not port.isdecimal()):
        return None
    return host.removesuffix(".")
