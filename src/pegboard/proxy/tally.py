"""What the proxy has done so far: counted where it happens, shown by `pegboard proxy status`.

Above: `app` and `planner` count, the command line shows. Below: nothing. No message and no credential comes near.
"""

from __future__ import annotations

import msgspec


class Tokens(msgspec.Struct, kw_only=True):
    """Tokens as the model's API reported them."""

    requests: int = 0
    input: int = 0
    """All that went in, from the cache or not."""
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def read_share(self) -> float:
        """The share of the input that came from the cache."""
        return self.cache_read / self.input if self.input else 0.0

    @property
    def write_share(self) -> float:
        """The share of the input that was written to the cache."""
        return self.cache_write / self.input if self.input else 0.0

    def add(self, *, input: int, output: int, cache_read: int = 0, cache_write: int = 0) -> None:  # noqa: A002
        """Counts one reply."""
        self.requests += 1
        self.input += input
        self.output += output
        self.cache_read += cache_read
        self.cache_write += cache_write


class Tally(msgspec.Struct, kw_only=True):
    """All counts since the proxy was started."""

    requests: int = 0
    streaming: int = 0
    """Streams that are open now."""
    deferred: dict[str, int] = {}
    """Requests whose tools were deferred, by executor: native, bridge."""
    counted: int = 0
    """Requests to count tokens that were changed as the ones that they are for."""
    passed: dict[str, int] = {}
    """Requests that went through as they were, by reason."""
    tools_deferred: int = 0
    """Definitions that were not shown, added up over requests."""
    definition_tokens_before: int = 0
    """Tokens of tool definitions as clients sent them, in requests that were deferred; counted by ourselves."""
    definition_tokens_after: int = 0
    """Of these, what models were shown, search answers included."""
    searches: int = 0
    searches_empty: int = 0
    rounds: int = 0
    """Inner rounds: requests to the API that clients did not send themselves."""
    failures: dict[str, int] = {}
    """What went wrong, by kind: upstream unreachable, reply cut, client left, idle."""
    direct_tokens: Tokens = msgspec.field(default_factory=Tokens)
    """Of requests that went through."""
    deferred_tokens: Tokens = msgspec.field(default_factory=Tokens)
    """Of requests whose tools were deferred."""

    def count(self, counts: dict[str, int], what: str) -> None:
        """One more of these; reasons are few, but nobody outside may make them many."""
        if what in counts or len(counts) < MOST_KINDS:
            counts[what] = counts.get(what, 0) + 1


MOST_KINDS = 100


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """A proxy, as it tells of itself: the answer to `GET /_pegboard/status`, and the file beside the store."""

    pid: int
    listen: str
    started_at: float
    upstreams: dict[str, str]
    """Names and addresses, without what may be secret in them."""
    version: str
    tally: Tally
