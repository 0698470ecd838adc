"""The tables of a database, brought up to date step by step; and the named statements that use them.

Steps are numbered files (`sql/<dialect>/0001_….sql`), run in order, each file once, all in one transaction. The number
of the last one is kept in the database itself. Above: `database` opens files. Below: files of SQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    import sqlite3

SQL = Path(__file__).parent / "sql"
_NAMED = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_STEP = re.compile(r"(\d{4})_\w+\.sql")


class Step(msgspec.Struct, frozen=True):
    """One numbered file of changes to the tables."""

    number: int
    statements: tuple[str, ...]


@cache
def steps(dialect: str = "sqlite") -> tuple[Step, ...]:
    """All steps, in order."""
    files = sorted(path for path in (SQL / dialect).iterdir() if _STEP.fullmatch(path.name))
    return tuple(Step(int(path.name[:4]), tuple(_statements(path.read_text("utf-8")))) for path in files)


@cache
def queries(dialect: str = "sqlite") -> dict[str, str]:
    """The statements by name."""
    _, *parts = _NAMED.split((SQL / dialect / "queries.sql").read_text("utf-8"))
    return {name: text.strip() for name, text in zip(parts[::2], parts[1::2], strict=True)}


def version_of(connection: sqlite3.Connection) -> int:
    """The number of the last step this database has seen; 0 for an empty one."""
    [version] = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def migrate(connection: sqlite3.Connection, todo: Sequence[Step]) -> None:
    """Runs the steps this database has not seen: all of them or none, though several processes try at once."""
    with transaction(connection):
        known = version_of(connection)  # asked again now that nobody else writes
        for step in todo:
            if step.number > known:
                for statement in step.statements:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {step.number:d}")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of it or nothing; waits for other writers first."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # After some errors (a full disk, for one) SQLite has already rolled back by itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _statements(script: str) -> Iterator[str]:
    from sqlite3 import complete_statement

    lines: list[str] = []
    for line in script.splitlines():
        lines.append(line)
        text = "\n".join(lines).strip()
        if line.rstrip().endswith(";") and complete_statement(text):
            yield text
            lines.clear()
