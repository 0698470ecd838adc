"""Whether an applied change still stands: its own keys are looked at, since agents rewrite their files all the time.

A key that a later change of ours has set anew was reverted by nobody. Pure but for the reader it is given.
Above: the command. Below: the edits of plans, and the installers' records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from pegboard.config.installers.documents import Format, parse, table_at
from pegboard.config.installers.journal import Install, Journal, Redirect, digest
from pegboard.config.installers.settings import value_at
from pegboard.doctor.plans.actions import Action, Delegated, FileChange
from pegboard.doctor.plans.edits import Edit, stands
from pegboard.doctor.report.change import Change
from pegboard.doctor.report.samples import Sample
from pegboard.doctor.report.scope import NAMED, OWN_TOOLS, Scope, wire_name
from pegboard.errors import PegboardError

Read = Callable[[Path], bytes | None]
"""The content of a file; None when there is none. What cannot be read is an error."""


def change_of(
    action: Action,
    read: Read,
    installed: Journal,
    *,
    since: tuple[Sample, ...] = (),
    later: Sequence[Action] = (),
) -> Change:
    """An action of the journal as the report sees it; `later` are those that were applied after it."""
    return Change(
        id=action.id,
        kind=action.kind,
        scope=action.baseline.scope if action.baseline else _scope(action),
        applied_at=action.applied_at,
        finding=action.finding,
        files=action.files,
        undone_at=action.undone_at,
        stands=standing(action, read, installed, later),
        baseline=action.baseline,
        since=since,
    )


def standing(action: Action, read: Read, installed: Journal, later: Sequence[Action] = ()) -> bool | None:
    """Whether all its files still say what it or a later change made them say; None when nobody can tell."""
    after = [each for each in later if each.status == "applied"]
    looks: list[Callable[[], bool | None]] = [
        *(partial(_edited, each, read, after) for each in action.changes),
        *(partial(_delegated, each, read, installed) for each in action.delegated if not each.is_config),
    ]
    told = [_told(look) for look in looks]
    if False in told:
        return False
    return None if None in told else True


def _told(look: Callable[[], bool | None]) -> bool | None:
    """A file that cannot be read or understood tells nothing."""
    try:
        return look()
    except (PegboardError, OSError, UnicodeDecodeError):
        return None


def _edited(change: FileChange, read: Read, later: Sequence[Action]) -> bool | None:
    raw = read(Path(change.file))
    if raw is not None and digest(raw) == change.after:
        return True
    document = _document(raw, change.format)
    ours = [edit for each in later for other in each.changes if other.file == change.file for edit in other.edits]
    gone = [edit for edit in change.edits if not stands(document, edit) and not any(_replaces(o, edit) for o in ours)]
    if not gone:
        return True
    # What an install moved away with its server, and what somebody took out, look the same.
    is_moved = any(part.file == change.file for each in later for part in each.delegated)
    return None if is_moved else False


def _replaces(later: Edit, edit: Edit) -> bool:
    """Whether the later one is about the same key, or one that holds it; of a list, about the same element."""
    is_about_it = edit.path[: len(later.path)] == later.path
    return is_about_it and (later.do in ("set", "remove") or later.value == edit.value)


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
