"""Claude Code: where its transcripts are, and which of them are one session.

Above: `gather`. Below: `transcripts` reads them, `claude` understands their lines.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from pegboard.doctor.evidence.claude import State, Transcript, verdict_of
from pegboard.doctor.evidence.claude_tools import Arrays
from pegboard.doctor.evidence.folders import files_below, is_folder
from pegboard.doctor.evidence.kept import Kept, Remembered
from pegboard.doctor.evidence.marks import Marks
from pegboard.doctor.evidence.names import text_of
from pegboard.doctor.evidence.parts import Part, Verdict, session_of
from pegboard.doctor.evidence.tally import Tally
from pegboard.doctor.evidence.transcripts import Source, Transcripts
from pegboard.doctor.facts import Deferral, Session
from pegboard.doctor.settings.machine import Machine

_SUB_AGENT = "agent-"


class ClaudeCode:
    """All sessions of Claude Code on a machine."""

    def __init__(self, machine: Machine, kept: Kept, tally: Tally) -> None:
        self._arrays = Arrays(kept.tables)
        self._tables = kept.tables
        self._recall = msgspec.msgpack.Decoder(State)
        folder = machine.from_variable("CLAUDE_CONFIG_DIR", machine.home / ".claude") / "projects"
        self._transcripts = Transcripts("claude-code", list(sources(folder, tally)), self, kept, tally)

    def plan(self) -> int:
        """How many bytes are to be read."""
        return self._transcripts.plan()

    def sessions(self) -> Iterator[Session]:
        """Every session, its sub-agents' transcripts put to its own."""
        mains: dict[str, list[tuple[Part, Verdict]]] = {}
        subs: dict[str, list[tuple[Part, Verdict]]] = {}
        for source, state in self._transcripts.read():
            identity = text_of(source.session or state.part.session or source.path.stem)
            group = subs if source.sub_agent else mains
            group.setdefault(identity, []).append((state.part, verdict_of(state, self._tables)))
        for identity in mains.keys() | subs.keys():
            yield _session(identity, mains.get(identity, []), subs.get(identity, []))

    def begin(self, source: Source, others: Marks, known: Remembered | None) -> Transcript:
        """A learner for one transcript."""
        return Transcript(
            self._arrays,
            session=source.session,
            sub_agent=source.sub_agent,
            others=others,
            state=None if known is None else self.recall(known),
            own=None if known is None else Marks((known.marks,)),
        )

    def recall(self, known: Remembered) -> State:
        """What was kept of one."""
        return self._recall.decode(known.state)


def sources(projects: Path, tally: Tally) -> Iterator[Source]:
    """Every transcript of every project."""
    for project in _folders(projects, tally):
        for entry in _entries(project, tally):
            if _is_transcript(entry.name):
                stem = entry.name.removesuffix(".jsonl")
                # Older versions put sub-agents' transcripts beside those of the sessions.
                sub_agent = stem.startswith(_SUB_AGENT)
                yield Source(Path(entry.path), "" if sub_agent else stem, sub_agent)
            else:
                nested = Path(entry.path) / "subagents"
                if is_folder(nested, tally):
                    found = files_below(nested, _is_transcript, tally)
                    yield from (Source(path, entry.name, sub_agent=True) for path in found)


def _is_transcript(name: str) -> bool:
    return name.endswith(".jsonl")


def _folders(folder: Path, tally: Tally) -> Iterator[Path]:
    for entry in _entries(folder, tally):
        if is_folder(path := Path(entry.path), tally):
            yield path


def _entries(folder: Path, tally: Tally) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        tally.cannot_read(folder, error)
        return []


def _session(identity: str, mains: list[tuple[Part, Verdict]], subs: list[tuple[Part, Verdict]]) -> Session:
    parts = [part for part, _ in (*mains, *subs)]
    verdict = min((verdict for _, verdict in mains), key=lambda each: each.rank, default=Verdict())
    if verdict.deferral is Deferral.UNKNOWN:
        # A sub-agent may have been given few tools and no search: only what says that tools were deferred counts.
        found = [each for _, each in subs if each.deferral is Deferral.ON]
        verdict = min(found, key=lambda each: each.rank, default=verdict)
    announced = dict.fromkeys(name for _, each in (*mains, *subs) for name in each.announced)
    verdict = Verdict(verdict.deferral, verdict.proof, verdict.definitions, tuple(announced))
    return session_of("claude-code", identity, parts, verdict)
