"""Claude Code: what one transcript says of its session. Usage is counted once for each reply, nothing twice.

Above: `claude_sessions` puts a session's transcripts together. Below: the records, the arrays of tools, the marks.
"""

from __future__ import annotations

import msgspec

from pegboard.doctor.evidence import claude_records as records
from pegboard.doctor.evidence.claude_tools import SEARCH, Arrays, Shapes, Trace, is_aside
from pegboard.doctor.evidence.marks import Marks, Seen, Sight, mark_of
from pegboard.doctor.evidence.names import name_of, path_of
from pegboard.doctor.evidence.parts import Counts, Part, Verdict, count_of
from pegboard.doctor.evidence.tables import Tables
from pegboard.doctor.facts import Deferral, Proof

_HUGE = 64 * 1024
_RESULT = b'"type":"user","message":{"role":"user"'
"""How a person's words and the results of tools begin. Quotes within a text are escaped, so no text looks like it."""
_LARGE = 4 * 1024 * 1024
"""Bytes beyond which a record is not looked into: no reply, request or list is as long, and all of it is in memory."""
_OPEN = 64
"""Replies whose further lines may still come: one reply is many lines, and other records come between them."""
_LINES_CAP = 1_000
"""Lines of one reply that are told apart: no real one has nearly as many."""
_REFUSAL = b"ToolSearch is no longer available"
_SEARCH_BETAS = ("advanced-tool-use", "tool-search-tool")
_SYNTHETIC = "<synthetic>"
_ANNOUNCED_CAP = 10_000
_BETAS_CAP = 100


class Open(msgspec.Struct, array_like=True):
    """A reply of which further lines may come."""

    counts: Counts
    lines: set[int]
    """Marks of those that came."""


class State(msgspec.Struct, array_like=True):
    """All that has to be kept of a transcript to go on with it later."""

    part: Part = msgspec.field(default_factory=Part)
    requests: Trace = msgspec.field(default_factory=Trace)
    snapshot: Trace = msgspec.field(default_factory=Trace)
    shapes: Shapes = msgspec.field(default_factory=Shapes)
    betas_on: bool | None = None
    announced: list[int] = []
    open: dict[int, Open] = {}
    """The latest replies, by their mark."""


class Transcript:
    """Learns from the lines of one transcript."""

    def __init__(
        self, arrays: Arrays, *, session: str = "", sub_agent: bool = False, others: Marks | None = None,
        state: State | None = None, own: Marks | None = None,
    ) -> None:  # fmt: skip
        self.state = state or State()
        self.seen = Seen(own, others)
        self._arrays = arrays
        self._session = session
        self._sub_agent = sub_agent
        self._announced = set(self.state.announced)
        # Lines of one reply mostly follow each other: its mark is made once.
        self._reply_id, self._reply_mark = "", 0
        # So are requests: one like the one before tells nothing new.
        self._latest_request: tuple[str | None, bytes] | None = None
        self._take = {
            "attachment": self._attachment,
            "api-request-shape": self._shape,
            "api-request": self._request,
            "system": self._system,
        }

    def take(self, line: bytes) -> None:
        """One line, whatever it is."""
        if len(line) > _HUGE and line.find(_RESULT, 0, 4096) > 0 and line.rstrip().endswith(b"}"):
            return
        try:
            self._record(records.line(line), len(line))
        except msgspec.ValidationError:
            self.state.part.unknown += 1
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            if not line.isspace():
                self.state.part.broken += 1

    def passed_over(self) -> None:
        """A line that was too long."""
        self.state.part.broken += 1

    def _record(self, record: records.Line, size: int) -> None:
        kind = record.type
        if kind == "user":
            # Nothing in it is counted, and a reply beside it says when and where it was.
            return
        if kind == "assistant":
            if self._reply(record, size):
                self._happened(record)
        elif self._is_own(record):
            take = self._take.get(kind or "")
            if kind not in records.KNOWN or (take and size > _LARGE):
                self.state.part.unknown += 1
                return
            self._happened(record)
            if take:
                take(record)

    def _is_own(self, record: records.Line) -> bool:
        """Whether it is new, and this session's: one that was resumed may begin with records of the one before."""
        if record.uuid:
            sight = self.seen.look(mark_of(record.uuid))
            self.state.part.resumed |= sight is Sight.ELSEWHERE
            return sight is Sight.NEW
        if self._session and record.session and record.session != self._session:
            self.state.part.resumed = True
            return False
        return True

    def _happened(self, record: records.Line) -> None:
        """When, where, and by which version."""
        part = self.state.part
        part.at(record.timestamp)
        if record.version == part.version and part.project and part.session:
            return
        part.session = part.session or name_of(record.session)
        part.project = part.project or path_of(record.cwd)
        if record.version and record.version != part.version and (version := name_of(record.version)):
            # A running program keeps its version: another one has taken the session up again.
            part.resumed |= bool(part.version)
            part.version = version

    def _reply(self, record: records.Line, size: int) -> bool:
        """Whether it is this session's own, and new; the calls in one that is too large are not counted."""
        message = record.message
        if message is None or message.model == _SYNTHETIC:
            return False
        content = bytes(message.content) if size <= _LARGE else b""
        blocks = records.blocks(content) if b'"tool_use"' in content and content.startswith(b"[") else ()
        if not self._count(message, record):
            return False
        part = self.state.part
        if size > _LARGE:
            part.unknown += 1
        if message.model not in part.models:
            part.used(name_of(message.model))
        for block in blocks:
            if block.type != "tool_use":
                continue
            if block.name == SEARCH:
                part.searches += 1
            elif block.name in part.calls:
                part.calls[block.name] += 1
            else:
                part.called(name_of(block.name))
        return True

    def _count(self, message: records.Message, record: records.Line) -> bool:
        """Counts the usage of a reply, once; False when this line was counted before, or all of it elsewhere."""
        latest = self.state.open
        if not (identity := message.id or record.uuid):
            if not self._is_own(record):
                return False
            self.state.part.counts.add(_counts(message.usage))
            return True
        if identity != self._reply_id:
            self._reply_id, self._reply_mark = identity, mark_of(f"reply {identity}")
        mark = self._reply_mark
        line = mark_of(record.uuid) if record.uuid else None
        before = latest.get(mark)
        if before is not None:
            return self._count_again(before, line, message.usage)
        sight = self.seen.look(mark)
        if sight is not Sight.NEW:
            self.state.part.resumed |= sight is Sight.ELSEWHERE
            return False
        used = _counts(message.usage)
        latest[mark] = Open(used, set() if line is None else {line})
        self.state.part.counts.add(used)
        if len(latest) > _OPEN:
            del latest[next(iter(latest))]
        return True

    def _count_again(self, before: Open, line: int | None, usage: records.Tokens | None) -> bool:
        """A further line of a reply, unless it is one of those that came: the one with the largest output counts."""
        if line is not None:
            if line in before.lines:
                return False
            if len(before.lines) < _LINES_CAP:
                before.lines.add(line)
        if usage is not None and count_of(usage.output_tokens) > before.counts.output:
            counts, used = self.state.part.counts, _counts(usage)
            counts.add(before.counts, -1)
            counts.add(used)
            before.counts = used
        return True

    def _attachment(self, record: records.Line) -> None:
        found, state = records.attachment(record.attachment), self.state
        kind = found.type
        if kind == "deferred_tools_delta":
            self._announce(found.added or [])
        elif kind == "critical_system_reminder" and _REFUSAL in bytes(record.attachment):
            state.part.refused = True
            self._latest_request = None
            state.requests.give_up()
            state.snapshot.give_up()
            state.betas_on = None if state.betas_on is None else False
        elif kind == "prompt_snapshot" and not self._aside(record):
            state.snapshot.follow(self._arrays.array(found.tools), self._arrays.tables)
        elif kind == "deferred_tools_record" and not self._aside(record):
            state.snapshot.follow(self._arrays.array(found.entries, deferred=True), self._arrays.tables)
        elif found.hook == "SessionStart:resume":
            state.part.resumed = True

    def _announce(self, names: list[str]) -> None:
        for name in names:
            if name_of(name) and len(self._announced) < _ANNOUNCED_CAP:
                number = self._arrays.tables.name(name)
                if number not in self._announced:
                    self._announced.add(number)
                    self.state.announced.append(number)

    def _shape(self, record: records.Line) -> None:
        if self._aside(record):
            return
        array = self._arrays.array(records.shape(record.shape).tools)
        self._latest_request = None
        if key := name_of(record.shape_hash):
            self.state.shapes.learn(key, array)
        self.state.requests.follow(array, self._arrays.tables)

    def _request(self, record: records.Line) -> None:
        if self._aside(record):
            return
        params = bytes(record.params)
        if (record.shape_hash, params) == self._latest_request:
            return
        betas = records.params(params).betas if params else None
        self._latest_request = (record.shape_hash, params)
        array = self.state.shapes.known.get(record.shape_hash or "")
        if array is not None:
            self.state.requests.follow(array, self._arrays.tables)
        if betas is None:
            return
        on = any(word in each for each in betas for word in _SEARCH_BETAS)
        # A request on the side may go without: one with them is enough, until it is given up.
        if on or array is None or not is_aside(array, self._arrays.tables):
            self.state.betas_on = on or bool(self.state.betas_on)
        known = self.state.part.betas
        named = [name for name in dict.fromkeys(map(name_of, betas[:_BETAS_CAP])) if name and name not in known]
        known += named[: _BETAS_CAP - len(known)]

    def _system(self, record: records.Line) -> None:
        self.state.part.compactions += record.subtype == "compact_boundary"

    def _aside(self, record: records.Line) -> bool:
        """Whether a record is a sub-agent's, in a transcript that is not: it may well have other tools."""
        return not self._sub_agent and bool(record.sidechain or record.agent)


def verdict_of(state: State, tables: Tables) -> Verdict:
    """What the strongest trace says."""
    announced = tuple(tables.names[number] for number in state.announced)
    for trace, proof in ((state.requests, Proof.REQUESTS), (state.snapshot, Proof.SNAPSHOT)):
        if trace.on is not None:
            tools = tuple(tables.definitions[number] for number in trace.tools)
            return Verdict(Deferral.ON if trace.on else Deferral.OFF, proof, tools, announced)
    if state.betas_on is not None:
        return Verdict(Deferral.ON if state.betas_on else Deferral.OFF, Proof.BETAS, (), announced)
    if state.part.refused:
        # The reminder that says so is part of the prompt.
        return Verdict(Deferral.OFF, Proof.SNAPSHOT, (), announced)
    if state.part.searches:
        return Verdict(Deferral.ON, Proof.SEARCHES, (), announced)
    return Verdict(announced=announced)


def _counts(usage: records.Tokens | None) -> Counts:
    if usage is None:
        return Counts(messages=1)
    given, made = usage.input_tokens, usage.output_tokens
    read, written = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    return Counts(count_of(given), count_of(made), count_of(read), count_of(written), 1)
