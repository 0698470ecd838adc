"""Which headers go on to the other side, and which end here. Pure functions over lists that keep their order."""

from __future__ import annotations

from collections.abc import Iterable

Header = tuple[bytes, bytes]

HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""They speak of one connection, and there are two."""
_FRAMING = frozenset({b"content-length", b"content-encoding"})
_NOT_OF_REQUESTS = frozenset({b"host", b"content-length", b"expect"})
"""Host names the upstream; the length is said anew; who asks whether to continue was answered here."""

_OF_ENCODINGS = frozenset({b"content-encoding", b"accept-encoding"})
_ONCE = frozenset({b"idempotency-key", b"x-idempotency-key"})
"""They say that a request was sent before."""


def end_to_end(headers: Iterable[Header]) -> list[Header]:
    """Without what is meant for this connection alone, and what its Connection header names besides."""
    headers = list(headers)
    named = HOP_BY_HOP | _named_by_connection(headers)
    if is_chunked(headers):  # a length that is said besides does not count, and need not be true
        named |= {b"content-length"}
    return [(name, value) for name, value in headers if name.lower() not in named]


def request_headers(headers: Iterable[Header], host: bytes, length: int | None, *, chunked: bool) -> list[Header]:
    """What an upstream gets of a client's headers. Of length and chunks one is said at most, so nobody can differ."""
    kept = [(name, value) for name, value in end_to_end(headers) if name.lower() not in _NOT_OF_REQUESTS]
    kept.insert(0, (b"host", host))
    if chunked:
        kept.append((b"transfer-encoding", b"chunked"))
    elif length is not None:
        kept.append((b"content-length", b"%d" % length))
    return kept


def edited_request_headers(
    headers: Iterable[Header], host: bytes, length: int, *, is_first: bool = True
) -> list[Header]:
    """The same for a body that was changed: it is plain JSON, and so must the answer be. Later rounds are new ones."""
    ours = _OF_ENCODINGS if is_first else _OF_ENCODINGS | _ONCE
    plain = [(name, value) for name, value in headers if name.lower() not in ours]
    return [*request_headers(plain, host, length, chunked=False), (b"accept-encoding", b"identity")]


def edited_reply_headers(headers: Iterable[Header], length: int | None) -> list[Header]:
    """What a client gets of the headers of a reply that was changed."""
    kept = [(name, value) for name, value in end_to_end(headers) if name.lower() not in _FRAMING]
    if length is not None:
        kept.append((b"content-length", b"%d" % length))
    return kept


def value_of(headers: Iterable[Header], name: bytes) -> bytes:
    """All values under a name, as one; empty when there is none."""
    return b", ".join(value for key, value in headers if key.lower() == name)


def body_length(headers: Iterable[Header]) -> int | None:
    """The length that a message announces; None when it does not, or comes in chunks."""
    headers = list(headers)
    if is_chunked(headers):
        return None
    said = {value for key, value in headers if key.lower() == b"content-length"}
    return int(said.pop()) if len(said) == 1 and all(value.isdigit() for value in said) else None


def is_chunked(headers: Iterable[Header]) -> bool:
    """Whether a message comes in chunks, whatever length it announces besides."""
    return any(key.lower() == b"transfer-encoding" for key, _ in headers)


def _named_by_connection(headers: Iterable[Header]) -> frozenset[bytes]:
    said = value_of(headers, b"connection")
    return frozenset(name.strip().lower() for name in said.split(b",")) if said else frozenset()
