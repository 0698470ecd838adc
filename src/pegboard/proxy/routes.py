"""Where a request goes: the upstream by the first part of its path, and which of the known wires it is. Pure.

The address of an upstream comes from the configuration alone; of the request, only path and query are ever appended.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

import msgspec

from pegboard.proxy.headers import Header
from pegboard.proxy.seam import Wire

BUILT_IN: Mapping[str, str] = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com",
    "gemini": "https://generativelanguage.googleapis.com",
}
STATUS_PATH = b"/_pegboard/status"

_PORTS = {"http": 80, "https": 443}
_ENDINGS: tuple[tuple[bytes, Wire], ...] = (
    (b"/messages/count_tokens", "count_tokens"),
    (b"/messages", "messages"),
    (b"/chat/completions", "completions"),
    (b"/responses", "responses"),
)
_CLIMBS = re.compile(rb"/(?:\.|%2e){1,2}(?:/|%2f|%5c|\\|$)", re.IGNORECASE)
_ORIGIN_FORM = re.compile(rb"/[\x21-\x7e]*")


class Address(msgspec.Struct, frozen=True):
    """An upstream's address, taken apart once."""

    scheme: str
    host: str
    port: int
    path: bytes
    """Without a slash at its end."""

    @property
    def authority(self) -> bytes:
        """What the Host header says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}").encode("ascii")

    @property
    def shown(self) -> str:
        """For people: without what may be secret."""
        return f"{self.scheme}://{self.authority.decode()}{self.path.decode()}"


class Route(msgspec.Struct, frozen=True):
    """Where one request goes."""

    upstream: str
    target: bytes
    """Path and query, as they go on the wire."""
    wire: Wire | None
    """None: it is not looked into."""


class NoRoute(msgspec.Struct, frozen=True):
    """Nothing is served there: the status, and the words."""

    status: int
    words: str


def address_of(url: str) -> Address:
    """Takes an address apart; ValueError when it is not one that HTTP can reach."""
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError(f"{parts.scheme}://{parts.hostname or ''} is not an address like https://api.example.com")
    host = parts.hostname if parts.hostname.isascii() else parts.hostname.encode("idna").decode("ascii")
    path = parts.path.encode("ascii").rstrip(b"/")
    return Address(parts.scheme, host, parts.port or _PORTS[parts.scheme], path)


def route(
    addresses: Mapping[str, Address], method: str, path: bytes, query: bytes, headers: Iterable[Header]
) -> Route | NoRoute:
    """The route of one request, by its path as it was sent, undecoded."""
    if method == "CONNECT":  # whatever it names: its answer would have no body
        return NoRoute(405, "This is no proxy that connects to other hosts. Send requests to it as to the API.")
    if not _ORIGIN_FORM.fullmatch(path):
        return NoRoute(400, "A request's target must begin with a slash.")
    if _CLIMBS.search(path):
        return NoRoute(400, "A path must not go up by dots.")
    name, rest = _split(addresses, path, headers)
    if name not in addresses:
        known = ", ".join(f"/{each}/" for each in addresses)
        return NoRoute(404, f"No upstream is served under this path. There are {known}")
    joined = addresses[name].path + rest or b"/"
    wire = wire_of(joined) if method == "POST" else None
    return Route(name, joined + (b"?" + query if query else b""), wire)


def wire_of(path: bytes) -> Wire | None:
    """Which of the known endpoints a path is, by how it ends."""
    return next((wire for ending, wire in _ENDINGS if path.endswith(ending)), None)


def _split(addresses: Mapping[str, Address], path: bytes, headers: Iterable[Header]) -> tuple[str, bytes]:
    first, slash, rest = path[1:].partition(b"/")
    name = first.decode("ascii")
    if name in addresses or first != b"v1":
        return name, slash + rest
    if rest == b"messages" or rest.startswith(b"messages/"):
        return "anthropic", path
    names = {key.lower() for key, _ in headers}
    return ("anthropic" if names & {b"anthropic-version", b"x-api-key"} else "openai"), path
