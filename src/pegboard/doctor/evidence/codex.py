"""Codex: rollouts, one file for each thread. They have calls and tokens; definitions of tools are not in them.

Above: `gather`. Below: `transcripts` reads the files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from pegboard.doctor.evidence.folders import files_below
from pegboard.doctor.evidence.kept import Kept, Remembered
from pegboard.doctor.evidence.marks import Marks, Seen, Sight, mark_of
from pegboard.doctor.evidence.names import name_of, path_of, text_of
from pegboard.doctor.evidence.parts import Counts, Part, Verdict, count_of
from pegboard.doctor.evidence.tally import Tally
from pegboard.doctor.evidence.threads import sessions_of
from pegboard.doctor.evidence.transcripts import Source, Transcripts
from pegboard.doctor.facts import Deferral, Proof, Session
from pegboard.doctor.settings.machine import Machine

_KNOWN = frozenset(
    {"compacted", "event_msg", "response_item", "session_meta", "token_usage_record", "turn_context", "world_state"}
)
_CALLS = frozenset({"function_call", "custom_tool_call"})
_NOTHING = msgspec.Raw(b"{}")


class _Line(msgspec.Struct, gc=False):
    type: str | None = None
    timestamp: str | None = None
    payload: msgspec.Raw = _NOTHING


class _Spawn(msgspec.Struct, gc=False):
    parent_thread_id: str | None = None


class _SubAgent(msgspec.Struct, gc=False):
    thread_spawn: _Spawn | None = None


class _Source(msgspec.Struct, gc=False):
    subagent: _SubAgent | str | None = None


class _Meta(msgspec.Struct, gc=False):
    id: str | None = None
    cwd: str | None = None
    cli_version: str | None = None
    source: _Source | str | None = None
    forked_from_id: str | None = None


class _Turn(msgspec.Struct, gc=False):
    model: str | None = None


class _Item(msgspec.Struct, gc=False):
    type: str | None = None
    name: str | None = None
    namespace: str | None = None
    call_id: str | None = None


class _Tokens(msgspec.Struct, gc=False):
    input_tokens: int | float | None = 0
    cached_input_tokens: int | float | None = 0
    cache_write_input_tokens: int | float | None = 0
    output_tokens: int | float | None = 0

    def counts(self, messages: int = 1) -> Counts:
        """Input has the cached tokens in it."""
        whole, read = count_of(self.input_tokens), count_of(self.cached_input_tokens)
        written = count_of(self.cache_write_input_tokens)
        return Counts(max(whole - read - written, 0), count_of(self.output_tokens), read, written, messages)


class _Record(msgspec.Struct, gc=False):
    response_id: str | None = None
    usage: _Tokens | None = None


class _Info(msgspec.Struct, gc=False):
    total_token_usage: _Tokens | None = None
    last_token_usage: _Tokens | None = None


class _Event(msgspec.Struct, gc=False):
    type: str | None = None
    info: _Info | None = None


class State(msgspec.Struct, array_like=True):
    """All that has to be kept of a rollout to go on with it later."""

    part: Part = msgspec.field(default_factory=Part)
    records: bool = False
    """Whether usage stands in records of its own; then the running totals say nothing more."""
    total: Counts = msgspec.field(default_factory=Counts)
    """The latest running total: it is told again when nothing was added."""
    latest: Counts | None = None
    """What the latest running total of this turn added."""


_line = msgspec.json.Decoder(_Line).decode
_meta = msgspec.json.Decoder(_Meta).decode
_turn = msgspec.json.Decoder(_Turn).decode
_item = msgspec.json.Decoder(_Item).decode
_record = msgspec.json.Decoder(_Record).decode
_event = msgspec.json.Decoder(_Event).decode


class Rollout:
    """Learns from the lines of one rollout."""

    def __init__(self, *, others: Marks, state: State | None = None, own: Marks | None = None) -> None:
        self.state = state or State()
        self.seen = Seen(own, others)

    def take(self, line: bytes) -> None:
        """One line, whatever it is."""
        try:
            record = _line(line)
            self._known(record)
        except msgspec.ValidationError:
            self.state.part.unknown += 1
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            if not line.isspace():
                self.state.part.broken += 1

    def passed_over(self) -> None:
        """A line that was too long."""
        self.state.part.broken += 1

    def _known(self, record: _Line) -> None:
        part = self.state.part
        if record.type not in _KNOWN:
            part.unknown += 1
            return
        if record.type == "session_meta":
            self._begin(_meta(record.payload))
        elif record.type == "turn_context":
            part.used(name_of(_turn(record.payload).model))
            self.state.latest = None
        elif record.type == "response_item":
            self._item(_item(record.payload))
        elif record.type == "token_usage_record":
            self._usage(_record(record.payload))
        elif record.type == "event_msg" and b"token_count" in bytes(record.payload):
            self._running_total(_event(record.payload))
        part.compactions += record.type == "compacted"
        part.at(record.timestamp)

    def _begin(self, meta: _Meta) -> None:
        part = self.state.part
        if part.session:
            # A thread that was forked has the beginning of the other one behind its own.
            part.resumed = True
            return
        part.session = name_of(meta.id)
        part.project = path_of(meta.cwd)
        part.version = name_of(meta.cli_version)
        part.resumed = bool(meta.forked_from_id)
        inner = meta.source.subagent if isinstance(meta.source, _Source) else None
        if isinstance(inner, _SubAgent) and inner.thread_spawn is not None:
            part.parent = name_of(inner.thread_spawn.parent_thread_id)

    def _item(self, item: _Item) -> None:
        if item.type != "tool_search_call" and item.type not in _CALLS:
            return
        if item.call_id and self.seen.look(mark_of(f"call {item.call_id}")) is not Sight.NEW:
            return
        if item.type == "tool_search_call":
            self.state.part.searches += 1
        else:
            name = f"{item.namespace}__{item.name}" if item.namespace else item.name
            self.state.part.called(name_of(name))

    def _usage(self, record: _Record) -> None:
        if record.usage is None:
            return
        state, used = self.state, record.usage.counts()
        # A version that writes both may have told the first one already.
        told = not state.records and used == state.latest
        state.records = True
        if record.response_id and self.seen.look(mark_of(f"reply {record.response_id}")) is not Sight.NEW:
            return
        if not told:
            state.part.counts.add(used)

    def _running_total(self, event: _Event) -> None:
        """Of older versions: every total that differs from the one before tells of one more reply."""
        info, state = event.info, self.state
        if event.type != "token_count" or info is None or info.total_token_usage is None or state.records:
            return
        total = info.total_token_usage.counts(0)
        if total == state.total:
            return
        before, state.total = state.total, total
        state.latest = info.last_token_usage.counts() if info.last_token_usage else _more(total, before)
        state.part.counts.add(state.latest)


def _more(total: Counts, before: Counts) -> Counts:
    """What came to a total; one that is smaller than before began anew."""

    def more(now: int, then: int) -> int:
        return now - then if now >= then else now

    return Counts(
        more(total.input, before.input),
        more(total.output, before.output),
        more(total.cache_read, before.cache_read),
        more(total.cache_write, before.cache_write),
        1,
    )


class Codex:
    """All sessions of Codex on a machine."""

    def __init__(self, machine: Machine, kept: Kept, tally: Tally) -> None:
        self._recall = msgspec.msgpack.Decoder(State)
        home = machine.from_variable("CODEX_HOME", machine.home / ".codex")
        self._transcripts = Transcripts("codex", list(_sources(home, tally)), self, kept, tally)

    def plan(self) -> int:
        """How many bytes are to be read."""
        return self._transcripts.plan()

    def sessions(self) -> Iterator[Session]:
        """Every thread, those it has started put to it."""
        parts = []
        for source, state in self._transcripts.read():
            state.part.session = state.part.session or text_of(source.path.stem)
            parts.append(state.part)
        return sessions_of("codex", parts, _verdict)

    def begin(self, source: Source, others: Marks, known: Remembered | None) -> Rollout:
        """A learner for one rollout."""
        if known is None:
            return Rollout(others=others)
        return Rollout(others=others, state=self.recall(known), own=Marks((known.marks,)))

    def recall(self, known: Remembered) -> State:
        """What was kept of one."""
        return self._recall.decode(known.state)


def _sources(home: Path, tally: Tally) -> Iterator[Source]:
    for folder in ("sessions", "archived_sessions"):
        for path in files_below(home / folder, _is_rollout, tally):
            yield Source(path)


def _is_rollout(name: str) -> bool:
    return name.startswith("rollout-") and name.endswith(".jsonl")


def _verdict(parts: list[Part]) -> Verdict:
    """Only a search proves anything; a session without one may have needed none."""
    if any(part.searches for part in parts):
        return Verdict(Deferral.ON, Proof.SEARCHES)
    return Verdict()
