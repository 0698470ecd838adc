"""What the record says: what was saved, net of what finding tools cost, and how searching goes. Pure arithmetic.

A `Tally` is shown every record in the order of time and keeps sums only. Nothing is guessed: a tool list counts once,
when it was really sent, though a client hands it to its model again with every turn; so does a search's answer.
Above: `pegboard stats` and the dashboard. Below: the nouns.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable

import msgspec

from pegboard.types import Ending, Exposure, Lookup, Outcome, Record

FOLLOWS_WITHIN = 3600.0
"""Seconds after a search in which a call of what it found counts as its doing."""
OPEN_SEARCHES = 1_000
"""Searches of one conversation that may still wait for a call."""
NAMES_CAP = 10_000
"""Names that no tool has, of which each is counted by itself: models make them up."""
SHARED = ""
"""Stands for what no one server is the reason of: Pegboard's own tools, and searches that found nothing."""
HOW = (
    "Net is the schemas that were not sent, less the searches asked, their answers and Pegboard's own tools. Each list "
    "and each answer counts once, when it was sent, though a client may hand both to its model again with every turn."
)


class Savings(msgspec.Struct, kw_only=True):
    """Tokens, for one conversation, one server or all."""

    lists: int = 0
    """Tool lists that were sent."""
    not_sent: int = 0
    """Of the schemas that were left out of them."""
    own_tools: int = 0
    """Of Pegboard's own tools in them."""
    searches: int = 0
    asked: int = 0
    """Of the calls of `search_tools`."""
    answered: int = 0
    """Of their answers."""
    calls: int = 0

    @property
    def net(self) -> int:
        """What is left when all it cost is subtracted."""
        return self.not_sent - self.own_tools - self.asked - self.answered


class Searching(msgspec.Struct, kw_only=True):
    """How searches went."""

    searches: int = 0
    followed: int = 0
    """A tool that they found was called within the hour."""
    found_nothing: int = 0
    not_followed: int = 0
    """They found something, and none of it was called."""


class Calling(msgspec.Struct, kw_only=True):
    """How calls went."""

    calls: int = 0
    by_ending: dict[str, int] = {}
    by_way: dict[str, int] = {}
    repaired: int = 0
    cached: int = 0
    without_search: dict[str, int] = {}
    """Calls of tools that no search in the conversation had found before, by tool."""
    made_up: dict[str, int] = {}
    """Names that were called and that no tool has."""


class Adoption(msgspec.Struct, kw_only=True):
    """In how many conversations that had tools hidden from them somebody searched, or called one."""

    conversations: int = 0
    searched: int = 0
    called: int = 0


class Stats(msgspec.Struct, kw_only=True, frozen=True):
    """All of it."""

    total: Savings
    conversations: dict[str, Savings]
    servers: dict[str, Savings]
    """By server; under "" what no one server is the reason of."""
    searching: Searching
    calling: Calling
    adoption: Adoption
    never_found: tuple[str, ...]
    """Tools that no search found and nobody called."""
    counted: tuple[str, ...]
    """How tokens were counted."""
    since: float
    until: float
    """When the first and the last record was made; 0 when there is none."""


class _Conversation:
    """What must be remembered of one conversation while its records go by."""

    __slots__ = ("called", "deferred", "found", "open", "searched")

    def __init__(self) -> None:
        self.deferred = self.searched = self.called = False
        self.found: set[str] = set()
        self.open: deque[tuple[float, frozenset[str]]] = deque()


def prefix_of(name: str) -> str:
    """The server that a public name names."""
    return name.partition("__")[0]


class Tally:
    """Shown every record in the order of time, it can say at any moment what they come to."""

    def __init__(self, server_of: Callable[[str], str] = prefix_of) -> None:
        """`server_of` says which server a public name belongs to."""
        self._server_of = server_of
        self._total = Savings()
        self._conversations: dict[str, Savings] = {}
        self._servers: dict[str, Savings] = {}
        self._searching = Searching()
        self._calling = Calling()
        self._endings: Counter[str] = Counter()
        self._ways: Counter[str] = Counter()
        self._without_search: Counter[str] = Counter()
        self._made_up: Counter[str] = Counter()
        self._known: dict[tuple[str, str], _Conversation] = {}
        self._seen: set[str] = set()
        self._counted: set[str] = set()
        self._since = self._until = 0.0

    def __call__(self, record: Record) -> None:
        """Takes one record into account."""
        self._since = self._since or record.at
        self._until = record.at
        match record:
            case Exposure():
                self._exposure(record)
            case Lookup():
                self._lookup(record)
            case Outcome():
                self._outcome(record)

    def stats(self, tools: Iterable[str] = ()) -> Stats:
        """What it comes to; `tools` are the public names of all there are."""
        searching = msgspec.structs.replace(self._searching)
        searching.not_followed = searching.searches - searching.found_nothing - searching.followed
        calling = msgspec.structs.replace(
            self._calling,
            by_ending=_most_first(self._endings),
            by_way=_most_first(self._ways),
            without_search=_most_first(self._without_search),
            made_up=_most_first(self._made_up),
        )
        return Stats(
            total=self._total,
            conversations=self._conversations,
            servers=self._servers,
            searching=searching,
            calling=calling,
            adoption=_adoption(self._known.values()),
            never_found=tuple(name for name in tools if name not in self._seen),
            counted=tuple(sorted(self._counted)),
            since=self._since,
            until=self._until,
        )

    def _savings(self, conversation: str, *servers: str) -> list[Savings]:
        """Where a number belongs: to the total, to its conversation and to its servers."""
        return [
            self._total,
            self._conversations.setdefault(conversation, Savings()),
            *(self._servers.setdefault(server, Savings()) for server in servers),
        ]

    def _of(self, record: Record) -> _Conversation:
        return self._known.setdefault((record.caller, record.conversation), _Conversation())

    def _exposure(self, exposure: Exposure) -> None:
        self._of(exposure).deferred |= exposure.deferred > 0
        if exposure.counted:
            self._counted.add(exposure.counted)
        for savings in self._savings(exposure.conversation, SHARED):
            savings.lists += 1
            savings.own_tools += exposure.own_tokens
        for server, tokens in exposure.deferred_tokens.items():
            self._servers.setdefault(server, Savings()).not_sent += tokens
        for savings in self._savings(exposure.conversation):
            savings.not_sent += sum(exposure.deferred_tokens.values())

    def _lookup(self, lookup: Lookup) -> None:
        known = self._of(lookup)
        known.searched = True
        self._searching.searches += 1
        for savings in self._savings(lookup.conversation):
            savings.searches += 1
            savings.asked += lookup.request_tokens
            savings.answered += lookup.answer_tokens
        self._share_out(lookup)
        if not lookup.found:
            self._searching.found_nothing += 1
            return
        self._seen.update(lookup.found)
        known.found.update(lookup.found)
        known.open.append((lookup.at, frozenset(lookup.found)))
        if len(known.open) > OPEN_SEARCHES:
            known.open.popleft()

    def _share_out(self, lookup: Lookup) -> None:
        """What a search cost, among the servers of what it found: equally by tool, to the last token."""
        servers = [self._server_of(name) for name in lookup.found] or [SHARED]
        asked, answered = _shares(lookup.request_tokens, len(servers)), _shares(lookup.answer_tokens, len(servers))
        for server, part_asked, part_answered in zip(servers, asked, answered, strict=True):
            savings = self._servers.setdefault(server, Savings())
            savings.asked += part_asked
            savings.answered += part_answered
        for server in set(servers):
            self._servers[server].searches += 1

    def _outcome(self, outcome: Outcome) -> None:
        known = self._of(outcome)
        self._calling.calls += 1
        self._calling.repaired += outcome.repairs > 0
        self._calling.cached += outcome.cached
        self._endings[outcome.ending] += 1
        self._ways[outcome.via] += 1
        if outcome.ending is Ending.NOT_FOUND:
            if outcome.tool in self._made_up or len(self._made_up) < NAMES_CAP:
                self._made_up[outcome.tool] += 1
            return
        known.called = True
        self._seen.add(outcome.tool)
        for savings in self._savings(outcome.conversation, outcome.server or self._server_of(outcome.tool)):
            savings.calls += 1
        if outcome.tool not in known.found:
            self._without_search[outcome.tool] += 1
        self._follow(known, outcome)

    def _follow(self, known: _Conversation, outcome: Outcome) -> None:
        """Closes the searches that this call may have come from, and those that waited too long."""
        while known.open and known.open[0][0] < outcome.at - FOLLOWS_WITHIN:
            known.open.popleft()
        waiting = [each for each in known.open if outcome.tool not in each[1]]
        self._searching.followed += len(known.open) - len(waiting)
        known.open = deque(waiting)


def _adoption(conversations: Collection[_Conversation]) -> Adoption:
    asked_for = [each for each in conversations if each.deferred]
    return Adoption(
        conversations=len(asked_for),
        searched=sum(each.searched for each in asked_for),
        called=sum(each.called for each in asked_for),
    )


def _shares(tokens: int, count: int) -> list[int]:
    each, rest = divmod(tokens, count)
    return [each + (number < rest) for number in range(count)]


def _most_first(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
