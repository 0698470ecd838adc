"""The `Store` in one SQLite file, which any number of processes share.

One thread of its own does all the writing, in order; the event loop never waits for the disk. The file is opened when
it is first needed. Above: the recorder appends, the surface keeps activations, the engine refreshes priors. Below:
`database` opens the file, `jobs` are done in it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pegboard.config.model import Config
from pegboard.errors import StoreError
from pegboard.store import jobs
from pegboard.store.rows import text
from pegboard.types import Priors, Record

if TYPE_CHECKING:
    import sqlite3
    from concurrent.futures import ThreadPoolExecutor

FILE = "pegboard.db"
KEPT_ROWS = 1_000_000
"""Records of one kind that are kept, however young."""
KEPT_CONVERSATIONS = 50_000
KEY_CAP = 1_000
STATE_CAP = 1 << 20
_KINDS = ("outcomes", "lookups", "exposures", "skill_loads")
_Answer = TypeVar("_Answer")
_Job = Callable[["sqlite3.Connection"], _Answer]


def store_path(config: Config) -> Path:
    """Where the file of this configuration lies."""
    return config.state_dir / FILE


def open_store(config: Config, *, on_warning: Callable[[str], None] | None = None) -> SqliteStore:
    """The store of this configuration. Nothing is read or made before it is used."""
    return SqliteStore(store_path(config), on_warning=on_warning)


class SqliteStore:
    """Keeps everything in one file. Whatever goes wrong is a StoreError; the next use tries again."""

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], float] = time.time,
        on_warning: Callable[[str], None] | None = None,
        busy_seconds: float = 5.0,
    ) -> None:
        self.path = path
        self._clock = clock
        self._on_warning = on_warning
        self._busy_seconds = busy_seconds
        self._executor: ThreadPoolExecutor | None = None
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._closed = False

    # ── the seam ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def append(self, records: Sequence[Record]) -> None:
        """Keeps these, in one transaction."""
        if records:
            await self._run(lambda connection: jobs.append(connection, records))

    async def visit(
        self,
        visitor: Callable[[Record], None],
        *,
        since: float = 0.0,
        until: float = math.inf,
        conversation: str | None = None,
    ) -> None:
        """Shows every record of that time to the visitor, in order of time, all as of one moment."""
        import asyncio

        await self._run(lambda _: None)  # makes sure that there is a file, and that it is up to date
        asked = {"since": since, "until": until, "conversation": None if conversation is None else text(conversation)}
        await asyncio.to_thread(self._visit, visitor, asked)

    async def forget_before(self, at: float) -> int:
        """Drops records that are older, activations that have expired, and the oldest where there are too many."""
        now, dropped = self._clock(), 0
        chores: list[tuple[str, tuple[float, int]]] = [(f"forget_{kind}", (at, jobs.PAGE)) for kind in _KINDS]
        chores += [(f"crowd_out_{kind}", (KEPT_ROWS, jobs.PAGE)) for kind in _KINDS]
        for kind in ("activations", "proxied"):
            chores += [(f"forget_{kind}", (now, jobs.PAGE)), (f"crowd_out_{kind}", (jobs.PAGE, KEPT_CONVERSATIONS))]
        for name, values in chores:
            while gone := await self._run(partial(jobs.drop, name=name, values=values)):
                dropped += gone
        return dropped

    async def keep_activation(self, conversation: str, state: bytes, expires_at: float) -> None:
        """Keeps what a conversation has loaded, until then."""
        await self._keep_state("keep_activation", conversation, state, expires_at)

    async def activation(self, conversation: str) -> bytes | None:
        """What was kept for a conversation; None when nothing was, or it has expired."""
        return await self._state("activation", conversation)

    async def keep_proxied(self, conversation: str, state: bytes, expires_at: float) -> None:
        """Keeps what the proxy remembers of a conversation, until then."""
        await self._keep_state("keep_proxied", conversation, state, expires_at)

    async def proxied(self, conversation: str) -> bytes | None:
        """What the proxy remembered of a conversation; None when nothing, or it has expired."""
        return await self._state("proxied", conversation)

    async def conversations(self) -> dict[str, float]:
        """All that have something kept, the one used last first, and when each expires."""
        values = (self._clock(),)
        rows = await self._run(lambda connection: jobs.all_rows(connection, "conversations", values))
        return {str(key): float(expires) for key, expires in rows}

    async def keep_priors(self, priors: Mapping[str, Priors], at: float) -> None:
        """Replaces all priors; `at` is when they were worked out."""
        rows = [(text(tool), *msgspec.structs.astuple(each)) for tool, each in priors.items()]
        await self._run(lambda connection: jobs.write(connection, jobs.priors_statements(rows, at)))

    async def priors(self) -> tuple[dict[str, Priors], float]:
        """All priors by public name, and when they were worked out; 0 when never."""
        return await self._run(jobs.read_priors)

    async def refresh_priors(self, now: float) -> dict[str, Priors]:
        """Works the priors out from all outcomes so far, and keeps them. Only new outcomes are read."""
        while await self._run(lambda connection: jobs.digest_page(connection, now)):
            pass
        return await self._run(lambda connection: jobs.publish(connection, now))

    async def skills_used(self) -> dict[str, float]:
        """When each skill was last loaded."""
        rows = await self._run(lambda connection: jobs.all_rows(connection, "skills_used", ()))
        return {str(skill): float(at) for skill, at in rows}

    async def close(self) -> None:
        """Waits for what is under way, and lets go of the file."""
        self._closed = True
        if self._executor is not None:
            import asyncio

            executor, self._executor = self._executor, None
            await asyncio.get_running_loop().run_in_executor(executor, self._let_go)
            executor.shutdown(wait=False)

    async def _keep_state(self, statement: str, conversation: str, state: bytes, expires_at: float) -> None:
        if len(state) > STATE_CAP:
            raise StoreError(f"A conversation's state may have {STATE_CAP} bytes; this has {len(state)}.")
        values = (_key(conversation), state, expires_at)
        await self._run(lambda connection: jobs.write(connection, [(statement, [values])]))

    async def _state(self, query: str, conversation: str) -> bytes | None:
        values = (_key(conversation), self._clock())
        row = await self._run(lambda connection: jobs.first_row(connection, query, values))
        return bytes(row[0]) if row else None

    # ── its thread ───────────────────────────────────────────────────────────────────────────────────────────────

    async def _run(self, job: _Job[_Answer]) -> _Answer:
        import asyncio
        from concurrent.futures import ThreadPoolExecutor

        if self._closed:
            raise StoreError(f"{self.path} was closed.")
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix="pegboard store")
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._guarded, job)

    def _guarded(self, job: _Job[_Answer]) -> _Answer:
        import sqlite3

        from pegboard.store.database import Damaged, is_damage, told

        for is_last in (False, True):
            try:
                return job(self._connected())
            except OSError as error:
                raise told(error, self.path) from error
            except (sqlite3.Error, Damaged) as error:
                if isinstance(error, sqlite3.Error) and not is_damage(error):
                    raise told(error, self.path) from error
                if is_last:
                    raise StoreError(
                        f"{self.path} is damaged: {error}.", hint="See whether the disk is faulty."
                    ) from error
                self._begin_anew(error.identity if isinstance(error, Damaged) else self._identity)
        raise AssertionError("unreachable")

    def _connected(self) -> sqlite3.Connection:
        """The connection, made anew when somebody moved or deleted the file: writing on would be lost."""
        from pegboard.store.database import connect, identity_of

        if self._connection is not None and identity_of(self.path) != self._identity:
            self._let_go()
        if self._connection is None:
            self._connection = connect(self.path, busy_seconds=self._busy_seconds)
            self._identity = identity_of(self.path)
        return self._connection

    def _begin_anew(self, damaged: tuple[int, int] | None) -> None:
        from pegboard.store.database import set_aside

        self._let_go()
        aside = set_aside(self.path, damaged)
        if aside is not None and self._on_warning is not None:
            self._on_warning(f"{self.path} was damaged: it now lies at {aside}, and a new record has begun.")

    def _let_go(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _visit(self, visitor: Callable[[Record], None], asked: dict[str, Any]) -> None:
        import sqlite3

        from pegboard.store.database import connect_to_read, told

        try:
            connection = connect_to_read(self.path)
            try:
                connection.execute("BEGIN")
                for record in jobs.records(connection, asked):
                    visitor(record)
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise told(error, self.path) from error


def _key(conversation: str) -> str:
    """The key as it is kept: one that is very long, as those of deep forks, by its digest."""
    if len(conversation) <= KEY_CAP:
        return text(conversation, KEY_CAP)
    import hashlib

    return f"sha256:{hashlib.sha256(conversation.encode(errors='surrogatepass')).hexdigest()}"
