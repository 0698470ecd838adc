"""What lies in the store's file, at a glance: nothing is made, changed or set aside by looking.

Above: `pegboard status`. Below: `database`.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import msgspec

from pegboard.store.database import connect_to_read, is_damage, told
from pegboard.store.jobs import UPDATED_AT
from pegboard.store.migrate import queries, steps, version_of


class StoreFacts(msgspec.Struct, kw_only=True):
    """The file, and how much is in it."""

    file: str
    bytes: int = 0
    """With what has been written but not yet put in its place."""
    outcomes: int = 0
    lookups: int = 0
    exposures: int = 0
    priors: int = 0
    priors_updated_at: float = 0.0
    """Unix time; 0 when they never were."""
    problem: str = ""
    hint: str = ""


def facts_of(path: Path) -> StoreFacts | None:
    """What there is; None when there is no file."""
    if not path.is_file():
        return None
    facts = StoreFacts(file=str(path))
    for each in (path, path.with_name(f"{path.name}-wal")):
        facts.bytes += each.stat().st_size if each.exists() else 0
    try:
        connection = connect_to_read(path)
        try:
            _fill(facts, connection)
        finally:
            connection.close()
    except sqlite3.Error as error:
        if is_damage(error):
            facts.problem = f"It is damaged: {error}."
            facts.hint = "The next call or search sets it aside and begins a new one."
        else:
            words = told(error, path)
            facts.problem, facts.hint = words.message, words.hint
    return facts


def _fill(facts: StoreFacts, connection: sqlite3.Connection) -> None:
    version, newest = version_of(connection), steps()[-1].number
    if version > newest:
        facts.problem = (
            f"It was written by a newer Pegboard (version {version} of its tables, this one knows {newest})."
        )
        facts.hint = "Upgrade Pegboard, or set store.state_dir to another folder."
        return
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    for name in ("outcomes", "lookups", "exposures", "priors"):
        if name in tables:
            [count] = connection.execute(f"SELECT count(*) FROM {name}").fetchone()  # noqa: S608  our own four names
            setattr(facts, name, count)
    if "facts" in tables:
        row = connection.execute(queries()["fact"], (UPDATED_AT,)).fetchone()
        facts.priors_updated_at = float(row[0]) if row else 0.0
