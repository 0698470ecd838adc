"""Prompts and resources of the servers behind the desk: lists from memory or disk, uses from the servers themselves.

A list starts nobody. What a server offers is learnt while it runs, kept on disk, and asked again when it is old and the
server runs anyway. A server that fails is missing from nothing: what it offered last time stays listed. Below: the
engine's connections; `offers` has the names.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import logging
import secrets
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from pegboard.catalog.cache import cache_key, cache_path
from pegboard.catalog.permit import permit_of
from pegboard.errors import ConnectionLost, PegboardError, RemoteError
from pegboard.gateway import offers as names
from pegboard.gateway.offers import Known, Offers
from pegboard.gateway.refusals import Refused
from pegboard.protocols import Files
from pegboard.store.files import DiskFiles
from pegboard.types import CallContext, Json
from pegboard.wire.messages import INVALID_PARAMS, METHOD_NOT_FOUND
from pegboard.wire.paging import Pages
from pegboard.wire.subscriptions import Kind

if TYPE_CHECKING:
    from pegboard.catalog.slices import Slice
    from pegboard.engine import Engine
    from pegboard.upstream.server import Server

log = logging.getLogger(__name__)

RESOURCE_NOT_FOUND = -32002
WAIT_SECONDS = 3.0
"""How long a list waits for servers that run but were never asked; after that it goes without them."""
ASK_SECONDS = 15.0
RELEARN_SECONDS = 0.5
"""How long after a server said that its lists changed it is asked for them: it may say so many times in a row."""
MAX_PAGES = 20
MAX_ENTRIES = 2000
LIST_TTL_MS = 60_000
LISTS = {
    "prompts/list": ("prompts", "prompts", "name"),
    "resources/list": ("resources", "resources", "uri"),
    "resources/templates/list": ("resources", "resourceTemplates", "uriTemplate"),
}
"""By method: the capability it needs, the field of its result, and the key of an entry."""
_OF_OUR_WIRE = ("_meta", "inputResponses", "requestState")
HINTS: Json = {"ttlMs": LIST_TTL_MS, "cacheScope": "private"}


Find = Callable[[str, Known], tuple[str, str] | None]
"""From a public name to the prefix of its server and its name there."""


class ServerRelay:
    """A `Relay` over the engine's servers."""

    def __init__(self, engine: Engine, files: Files | None = None, *, allow: tuple[str, ...] | None = None) -> None:
        """`allow` is an allowlist of tools: a server none of whose tools are on it does not exist here."""
        self._engine = engine
        self._permit = permit_of(() if allow is None else (allow,))
        self._files = files or DiskFiles()
        self._known: dict[str, Offers] = {}
        self._learning: dict[str, asyncio.Task[None]] = {}
        self._outdated: set[str] = set()
        """Servers that said that their lists are others than those they were last asked for."""
        self._planned: dict[str, asyncio.TimerHandle] = {}
        self._changed: Callable[[Kind], None] = lambda _: None
        self._loaded = False

    def capabilities(self) -> Json:
        """What to tell a client. Whether anybody has prompts may not be known yet: the list says."""
        return {"prompts": {"listChanged": True}, "resources": {"listChanged": True}, "completions": {}}

    def serves(self, method: str) -> bool:
        """Whether `answer` knows this method."""
        return method in LISTS or method in self._uses

    def watch(self, changed: Callable[[Kind], None]) -> None:
        """From now on tells of lists that are others than before."""
        self._changed = changed

    def started(self, server: str) -> None:
        """A server is ready: what it offers is asked now if it is not known, or not fresh."""
        self._load()
        if not self._is_fresh(server):
            self._learn(server)

    def changed(self, server: str) -> None:
        """A server says that it offers something else now: it is asked again, soon, but not as often as it says so."""
        self._outdated.add(server)
        if server not in self._planned:
            loop = asyncio.get_running_loop()
            self._planned[server] = loop.call_later(RELEARN_SECONDS, self._relearn, server)

    def _relearn(self, server: str) -> None:
        del self._planned[server]
        if server in self._outdated:
            self._learn(server)

    async def close(self) -> None:
        """Asks no more."""
        for timer in self._planned.values():
            timer.cancel()
        tasks = list(self._learning.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def answer(self, method: str, params: Json, context: CallContext) -> Json:
        """A list from what is known, or a use of one server."""
        self._load()
        if method in LISTS:
            return await self._list(method, params)
        return await self._uses[method](self, params, context)

    # ── lists ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _list(self, method: str, params: Json) -> Json:
        if params.get("cursor") is not None:
            raise Refused(INVALID_PARAMS, "There is no such cursor: this list has one page")
        await self._catch_up()
        known = self._by_prefix()
        field = LISTS[method][1]
        listed = {"prompts": names.prompts, "resources": names.resources, "resourceTemplates": names.templates}
        return {field: listed[field](known), **HINTS}

    async def _catch_up(self) -> None:
        """Waits a little for servers that run and have not been asked yet."""
        for name in self._usable():
            if not self._is_fresh(name):
                self._learn(name)
        waiting = [task for name, task in self._learning.items() if name not in self._known]
        if waiting:
            await asyncio.wait(waiting, timeout=WAIT_SECONDS)

    def _usable(self) -> dict[str, str]:
        """The servers that may be used, and the prefix of each."""
        catalog = self._engine.catalog
        return {
            entry.name: entry.prefix
            for entry in catalog.servers.values()
            if entry.usable
            and not self._engine.config.servers[entry.name].local
            and (self._permit.everything or self._is_allowed(catalog.slices[entry.name]))
        }

    def _is_allowed(self, part: Slice) -> bool:
        return any(map(self._permit.admits, part.tools))

    def _by_prefix(self) -> dict[str, Offers]:
        return {prefix: self._known[name] for name, prefix in self._usable().items() if name in self._known}

    def _is_fresh(self, server: str) -> bool:
        known = None if server in self._outdated else self._known.get(server)
        return known is not None and 0 <= time.time() - known.at < self._engine.config.tools.refresh_after

    # ── learning what a server offers ────────────────────────────────────────────────────────────────────────────

    def _learn(self, name: str) -> None:
        # One that has ended meanwhile is asked when it runs again; that it says nothing does not mean it has nothing.
        if name not in self._learning and self._engine.server(name).capabilities is not None:
            task = self._learning[name] = asyncio.ensure_future(self._ask_for_all(name))
            task.add_done_callback(functools.partial(self._learnt, name))

    def _learnt(self, name: str, task: asyncio.Task[None]) -> None:
        self._learning.pop(name, None)
        if name in self._outdated and not task.cancelled():
            self.changed(name)  # it changed while it was asked: what it said may be of before or after

    async def _ask_for_all(self, name: str) -> None:
        self._outdated.discard(name)
        try:
            server = self._engine.server(name)
            found = await self._offers_of(server)
        except PegboardError as error:
            log.info("%s: its prompts and resources could not be listed: %s", name, error)
            return
        before = self._known.get(name, Offers())
        self._known[name] = found
        await asyncio.to_thread(self._save, name, found)
        if before.prompts != found.prompts:
            self._changed("prompts")
        if (before.resources, before.templates) != (found.resources, found.templates):
            self._changed("resources")

    async def _offers_of(self, server: Server) -> Offers:
        said = server.capabilities
        if said is None:
            raise ConnectionLost(server.name, "it has ended")
        salt = secrets.token_hex(16)
        lists = {method: await self._all(server, method, said) for method in LISTS}
        return Offers(
            capabilities=tuple(sorted(key for key in said if isinstance(said.get(key), dict) and len(key) <= 64)),
            prompts=lists["prompts/list"],
            resources=lists["resources/list"],
            templates=lists["resources/templates/list"],
            at=time.time(),
            salt=salt,
            launch=self._launch(server.name, salt),
        )

    async def _all(self, server: Server, method: str, said: Json) -> tuple[Json, ...]:
        capability, field, key = LISTS[method]
        if not isinstance(said.get(capability), dict):
            return ()
        pages = Pages(field, max_pages=MAX_PAGES, max_entries=MAX_ENTRIES)
        cursor: str | None = ""
        while cursor is not None:
            try:
                page = await server.request(method, {"cursor": cursor} if cursor else {}, ASK_SECONDS)
            except RemoteError as error:
                if error.code != METHOD_NOT_FOUND:
                    raise
                return ()
            cursor = pages.add(page)
        return names.fit(pages.entries, key)

    # ── the disk ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        for name in self._usable():
            with contextlib.suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                kept = msgspec.json.decode(self._files.read(self._path(name)), type=Offers)
                if kept.launch == self._launch(name, kept.salt):
                    self._known.setdefault(name, _refitted(kept))

    def _save(self, name: str, found: Offers) -> None:
        with contextlib.suppress(OSError):  # it is learnt again when the server runs
            self._files.write(self._path(name), msgspec.json.encode(found))

    def _path(self, name: str) -> Path:
        own = msgspec.structs.replace(self._engine.config.servers[name], cache_path=None)
        return cache_path(self._engine.config.cache_dir / "offers", own)

    def _launch(self, name: str, salt: str) -> str:
        """How the server is launched and whom it acts for: lists of another account must not be shown."""
        key = cache_key(self._engine.config.servers[name])
        return hashlib.sha256(f"{salt}\n{key.launch}\n".encode() + key.principal).hexdigest()

    # ── uses ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _get_prompt(self, params: Json, context: CallContext) -> Json:
        name = params.get("name")
        owner = await self._owner(names.prompt_owner, name)
        if owner is None:
            raise Refused(INVALID_PARAMS, f"There is no prompt named {str(name)[:200]!r}")
        return await self._forward(owner[0], "prompts/get", {**params, "name": owner[1]}, context)

    async def _read(self, params: Json, context: CallContext) -> Json:
        uri = params.get("uri")
        owner = await self._owner(names.resource_owner, uri)
        if owner is None:
            raise Refused(RESOURCE_NOT_FOUND, f"No server is known to have the resource {str(uri)[:200]!r}")
        result = await self._forward(owner[0], "resources/read", {**params, "uri": owner[1]}, context)
        return result if owner[1] == uri else _under(result, owner[1], str(uri))

    async def _complete(self, params: Json, context: CallContext) -> Json:
        given = params.get("ref")
        ref: Json = given if isinstance(given, dict) else {}
        field = {"ref/prompt": "name", "ref/resource": "uri"}.get(str(ref.get("type")), "")
        value = ref.get(field)
        if not isinstance(value, str):
            raise Refused(INVALID_PARAMS, "`ref` must name a prompt or a resource template")
        owner = await self._owner(names.prompt_owner if field == "name" else names.template_owner, value)
        if owner is None:
            raise Refused(INVALID_PARAMS, f"No server is known to have {value[:200]!r}")
        return await self._forward(
            owner[0], "completion/complete", {**params, "ref": {**ref, field: owner[1]}}, context
        )

    async def _owner(
        self, find: Callable[[str, Known], tuple[str, str] | None], name: object
    ) -> tuple[str, str] | None:
        """Whose it is; who runs and was never asked is asked first, when nobody is known to have it."""
        if not isinstance(name, str):
            return None
        owner = find(name, self._reachable())
        if owner is None:
            await self._catch_up()
            owner = find(name, self._reachable())
        return owner

    def _reachable(self) -> dict[str, Offers]:
        """All servers that may be used, also those whose offers are not known: a name may still point at one."""
        return {prefix: self._known.get(name, Offers()) for name, prefix in self._usable().items()}

    async def _forward(self, prefix: str, method: str, params: Json, context: CallContext) -> Json:
        name = next(name for name, each in self._usable().items() if each == prefix)
        sent = {key: value for key, value in params.items() if key not in _OF_OUR_WIRE}
        return await self._engine.server(name).request(method, sent, context=context)

    _uses: ClassVar[dict[str, Callable[[ServerRelay, Json, CallContext], Coroutine[Any, Any, Json]]]] = {
        "prompts/get": _get_prompt,
        "resources/read": _read,
        "completion/complete": _complete,
    }


def _refitted(kept: Offers) -> Offers:
    """Files are somebody else's too: the same rules as for what a server sends."""
    return msgspec.structs.replace(
        kept,
        prompts=names.fit(kept.prompts, "name"),
        resources=names.fit(kept.resources, "uri"),
        templates=names.fit(kept.templates, "uriTemplate"),
    )


def _under(result: Json, own: str, public: str) -> Json:
    contents = result.get("contents")
    if not isinstance(contents, list):
        return result
    renamed = [
        {**each, "uri": public} if isinstance(each, dict) and each.get("uri") == own else each for each in contents
    ]
    return {**result, "contents": renamed}
