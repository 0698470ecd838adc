"""Whether an applied change still stands: its own keys are looked at, since agents rewrite their files all the time.

Pure but for the reader it is given. Above: the command. Below: the edits of plans, and the installers' records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from pegboard.config.installers.documents import Format, parse, table_at
from pegboard.config.installers.journal import Install, Journal, Redirect, digest
from pegboard.config.installers.settings import value_at
from pegboard.doctor.plans.actions import Action, Delegated, FileChange
from pegboard.doctor.plans.edits import stands
from pegboard.doctor.report.change import Change
from pegboard.doctor.report.samples import Sample
from pegboard.doctor.report.scope import NAMED, OWN_TOOLS, Scope, wire_name
from pegboard.errors import PegboardError

Read = Callable[[Path], bytes | None]
"""The content of a file; None when there is none. What cannot be read is an error."""


def change_of(action: Action, read: Read, installed: Journal, *, since: tuple[Sample, ...] = ()) -> Change:
    """An action of the journal as the report sees it."""
    return Change(
        id=action.id,
        kind=action.kind,
        scope=action.baseline.scope if action.baseline else _scope(action),
        applied_at=action.applied_at,
        finding=action.finding,
        files=action.files,
        undone_at=action.undone_at,
        stands=standing(action, read, installed),
        baseline=action.baseline,
        since=since,
    )


def standing(action: Action, read: Read, installed: Journal) -> bool | None:
    """Whether all its files still say what it made them say; None when nobody can tell."""
    looks = [
        *(partial(_edited, each, read) for each in action.changes),
        *(partial(_delegated, each, read, installed) for each in action.delegated if not each.is_config),
    ]
    told = [_told(look) for look in looks]
    if False in told:
        return False
    return None if None in told else True


def _told(look: Callable[[], bool]) -> bool | None:
    """A file that cannot be read or understood tells nothing."""
    try:
        return look()
    except (PegboardError, OSError, UnicodeDecodeError):
        return None


def _edited(change: FileChange, read: Read) -> bool:
    raw = read(Path(change.file))
    if raw is not None and digest(raw) == change.after:
        return True
    document = _document(raw, change.format)
    return all(stands(document, edit) for edit in change.edits)


def _delegated(part: Delegated, read: Read, installed: Journal) -> bool:
    """By what the installer wrote down; without that, somebody has taken it back by the installer's own command."""
    raw = read(Path(part.file))
    if raw is not None and digest(raw) == part.after:
        return True
    records: Iterable[Install | Redirect] = (*installed.installs, *installed.redirects)
    record = next((each for each in records if each.file == part.file and each.after == part.after), None)
    if isinstance(record, Install):
        servers = table_at(_document(raw, record.change.format), record.change.table)
        return record.change.entry is None or record.change.name in servers
    if isinstance(record, Redirect):
        document = _document(raw, record.format)
        return all(value_at(document, each.path) == each.value for each in record.settings)
    return False


def _document(raw: bytes | None, format: Format) -> dict[str, object]:  # noqa: A002 - it is the format
    return {} if raw is None else parse(raw.decode("utf-8-sig"), format)


def _scope(action: Action) -> Scope:
    """As well as can be told without a baseline."""
    servers = tuple(map(wire_name, action.servers)) if action.kind in NAMED else ()
    return Scope(agent=action.agent, servers=servers, own=action.kind in OWN_TOOLS)
