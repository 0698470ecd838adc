"""What is done in an open database: each function is one piece of work, and blocks.

Above: `sqlite` has them done in its thread. Below: `rows`, the named statements, and the arithmetic of priors.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from pegboard.store.migrate import queries, transaction
from pegboard.store.rows import exposure_of, lookup_of, outcome_of, row_of, skill_load_of
from pegboard.telemetry.priors import FORM, Digest, fold, priors_of
from pegboard.types import Exposure, Lookup, Outcome, Priors, Record, SkillLoad

if TYPE_CHECKING:
    import sqlite3

PAGE = 2_000
"""Rows folded or dropped in one transaction: other processes get their turn in between."""
UPDATED_AT = "priors_updated_at"
_THROUGH = "outcomes_digested"
_FORM = "digest_form"
_APPEND = {
    Outcome: "append_outcome",
    Lookup: "append_lookup",
    Exposure: "append_exposure",
    SkillLoad: "append_skill_load",
}
# Of records of the same moment, a list comes before the search that it led to, and that before the call.
_READ: tuple[tuple[str, Callable[[Sequence[Any]], Record | None]], ...] = (
    ("exposures_between", exposure_of),
    ("lookups_between", lookup_of),
    ("skill_loads_between", skill_load_of),
    ("outcomes_between", outcome_of),
)


def append(connection: sqlite3.Connection, records: Sequence[Record]) -> None:
    """Writes the records, each into its table."""
    rows: dict[str, list[tuple[Any, ...]]] = {}
    for record in records:
        rows.setdefault(_APPEND[type(record)], []).append(row_of(record))
    write(connection, list(rows.items()))


def write(connection: sqlite3.Connection, statements: Sequence[tuple[str, Sequence[tuple[Any, ...]]]]) -> None:
    """Runs named statements, each with all its rows, in one transaction."""
    with transaction(connection):
        for name, rows in statements:
            connection.executemany(queries()[name], rows)


def drop(connection: sqlite3.Connection, name: str, values: tuple[float, int]) -> int:
    """Runs one named statement that deletes, and gives its room back; how many rows went."""
    with transaction(connection):
        dropped = connection.execute(queries()[name], values).rowcount
    if dropped:
        connection.executescript("PRAGMA incremental_vacuum")  # `execute` would stop after the first page
    return dropped


def priors_statements(rows: Sequence[tuple[Any, ...]], at: float) -> list[tuple[str, Sequence[tuple[Any, ...]]]]:
    """What replaces all priors."""
    return [("drop_priors", [()]), ("keep_prior", rows), ("keep_fact", [(UPDATED_AT, at)])]


def read_priors(connection: sqlite3.Connection) -> tuple[dict[str, Priors], float]:
    """All priors, and when they were worked out."""
    rows = connection.execute(queries()["priors"]).fetchall()
    fields = Priors.__struct_fields__
    priors = {row[0]: Priors(**dict(zip(fields, row[1:], strict=True))) for row in rows}
    return priors, float(_fact(connection, UPDATED_AT) or 0.0)


def first_row(connection: sqlite3.Connection, name: str, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The first row that a named query finds."""
    row: tuple[Any, ...] | None = connection.execute(queries()[name], values).fetchone()
    return row


def all_rows(connection: sqlite3.Connection, name: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """All rows that a named query finds."""
    rows: list[tuple[Any, ...]] = connection.execute(queries()[name], values).fetchall()
    return rows


def _fact(connection: sqlite3.Connection, name: str) -> Any:
    row = first_row(connection, "fact", (name,))
    return row[0] if row else None


def digest_page(connection: sqlite3.Connection, now: float) -> bool:
    """Folds the next outcomes into the digests; whether there may be more."""
    with transaction(connection):
        if _fact(connection, _FORM) != FORM:
            connection.execute(queries()["drop_digests"])
            connection.executemany(queries()["keep_fact"], [(_FORM, FORM), (_THROUGH, 0)])
        rows = connection.execute(queries()["outcomes_after"], (_fact(connection, _THROUGH) or 0, PAGE)).fetchall()
        if not rows:
            return False
        outcomes = [outcome for row in rows if (outcome := outcome_of(row[1:])) is not None]
        digests = {tool: _read_digest(connection, tool) for tool in {outcome.tool for outcome in outcomes}}
        fold(digests, outcomes, now)
        states = [(tool, msgspec.json.encode(digest)) for tool, digest in digests.items() if digest.last_used]
        connection.executemany(queries()["keep_digest"], states)
        connection.execute(queries()["keep_fact"], (_THROUGH, rows[-1][0]))
    return len(rows) == PAGE


def _read_digest(connection: sqlite3.Connection, tool: str) -> Digest:
    row = first_row(connection, "digest", (tool,))
    return _digest_of(row[0]) if row else Digest()


def _digest_of(state: bytes) -> Digest:
    try:
        return msgspec.json.decode(state, type=Digest)
    except msgspec.MsgspecError:
        return Digest()


def publish(connection: sqlite3.Connection, now: float) -> dict[str, Priors]:
    """Works the priors out from the digests, keeps them, and drops what has faded."""
    with transaction(connection):
        digests = {tool: _digest_of(state) for tool, state in connection.execute(queries()["digests"])}
        faint = [(tool,) for tool, digest in digests.items() if digest.is_faint(now)]
        priors = priors_of(digests, now)
        rows = [(tool, *msgspec.structs.astuple(each)) for tool, each in priors.items()]
        for name, values in (("drop_digest", faint), *priors_statements(rows, now)):
            connection.executemany(queries()[name], values)
    return priors


def records(connection: sqlite3.Connection, asked: dict[str, Any]) -> Iterator[Record]:
    """All kinds of records, merged by time, a row at a time."""
    streams = [
        _stream(connection.execute(queries()[name], asked), order, read) for order, (name, read) in enumerate(_READ)
    ]
    for _, _, _, record in heapq.merge(*streams):
        yield record


def _stream(
    cursor: sqlite3.Cursor, order: int, read: Callable[[Sequence[Any]], Record | None]
) -> Iterator[tuple[float, int, int, Record]]:
    """Rows in the order of time, with a number that keeps the merge from ever comparing two records."""
    for number, row in enumerate(cursor):
        record = read(row)
        if record is not None:
            yield record.at, order, number, record
