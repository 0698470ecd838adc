"""The proxy as a bare ASGI application: admits, routes, asks the planner, and lets a `Passage` move the bytes.

Whatever goes wrong in here is counted and must not harm a request that would have worked without us: when planning
fails the original bytes go on. No credential and no body is ever logged or kept. Above: `serve`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
import traceback
from collections.abc import Mapping

import msgspec

import pegboard
from pegboard.config.model import ProxyConfig
from pegboard.proxy.api import Api, ApiFailed
from pegboard.proxy.bodies import EncodingBroken, EncodingUnknown, TooLarge, decode
from pegboard.proxy.client import Client, ClientLeft, Message, Receive, Send
from pegboard.proxy.headers import Header, value_of
from pegboard.proxy.lanes import Patience
from pegboard.proxy.passage import CutShort, Passage
from pegboard.proxy.refusal import error_body, json_headers, style_of
from pegboard.proxy.routes import STATUS_PATH, NoRoute, Route, address_of, route
from pegboard.proxy.seam import Asked, Exchange, Passed, Planner
from pegboard.proxy.tally import Running, Tally
from pegboard.wire.admission import LOCAL_NAMES, Admission, Turned, is_loopback

logger = logging.getLogger(__name__)

HEAD_PATIENCE = 2.0
"""Times `idle_seconds`: a model may think for as long as clients wait, ten minutes, before it begins to answer."""
DECODED_APART = 1024 * 1024
"""From this size on, a compressed body is unpacked in a thread."""

OTHER_ENDPOINT = "other endpoint"
BODY_TOO_LARGE = "body too large"
BODY_ENCODING = "body encoding"
PLANNING_FAILED = "planning failed"
CLIENT_LEFT = "client left"
ROUND_REFUSED = "round refused"
OWN_FAULT = "error in the proxy"


class ProxyApp:
    """The application. `upstreams` are all there are: addresses by name."""

    def __init__(self, planner: Planner, upstreams: Mapping[str, str], config: ProxyConfig, tally: Tally) -> None:
        self._planner = planner
        self._config = config
        self._tally = tally
        patience = Patience(head=HEAD_PATIENCE * config.idle_seconds, idle=config.idle_seconds)
        self._addresses = {name: address_of(url) for name, url in upstreams.items()}
        self._apis = {name: Api(address, patience) for name, address in self._addresses.items()}
        self._started_at = time.time()
        host = host_of(config.listen)
        self._admission = Admission(names=LOCAL_NAMES | {host}, any_address=not is_loopback(host))
        self.listen = config.listen
        """Where it is reached; whoever binds to port 0 corrects it."""

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        client = Client(scope, receive, send)
        path: bytes = scope["raw_path"]
        if not self._admits(client.headers):
            await _refuse(client, 403, "This Host or Origin is not served here; use the address that it listens on.")
        elif path == STATUS_PATH and client.method in ("GET", "HEAD"):
            body = msgspec.json.encode(self.running())
            await client.answer.whole(200, json_headers(body), body)
        else:
            found = route(self._addresses, client.method, path, scope["query_string"], client.headers)
            if isinstance(found, NoRoute):
                await _refuse(client, found.status, found.words)
            else:
                await self._guarded(client, found)

    def running(self) -> Running:
        """What it tells of itself."""
        return Running(
            pid=os.getpid(),
            listen=self.listen,
            started_at=self._started_at,
            upstreams={name: address.shown for name, address in self._addresses.items()},
            version=pegboard.__version__,
            tally=self._tally,
        )

    async def close(self) -> None:
        """Closes every connection to upstreams."""
        for api in self._apis.values():
            await api.close()

    def _admits(self, headers: list[Header]) -> bool:
        lines = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers)
        return not isinstance(self._admission.admit(lines), Turned)

    # ── One request that has somewhere to go ─────────────────────────────────────────────────────────────────────

    async def _guarded(self, client: Client, found: Route) -> None:
        """Makes of every end one that the client understands."""
        self._tally.requests += 1
        passage = Passage(client, found, self._apis[found.upstream], self._tally, self._config.max_body_bytes)
        try:
            await self._handle(passage)
        except ClientLeft:
            self._failed(CLIENT_LEFT)
        except CutShort:
            self._failed(ROUND_REFUSED)
            client.answer.cut()
        except ApiFailed as failure:
            self._failed(failure.kind)
            await _end(passage, failure.status, failure.words)
        except Exception as error:  # noqa: BLE001 - a client must get an answer, whatever is wrong in here
            self._failed(OWN_FAULT)
            _log(OWN_FAULT, error)
            await _end(passage, 502, "The proxy failed at this request. Try again, or without the proxy.")

    async def _handle(self, passage: Passage) -> None:
        client = passage.client
        if passage.route.wire is None:
            body = await client.read(0)
            plan: Exchange | Passed = Passed(OTHER_ENDPOINT)
        else:
            body = await client.read(self._config.max_body_bytes)
            plan = Passed(BODY_TOO_LARGE)
        with client.watched():
            if passage.route.wire is not None and client.is_whole and len(body) <= self._config.max_body_bytes:
                plan = await self._plan(passage, body)
            if isinstance(plan, Passed):
                self._tally.count(self._tally.passed, plan.reason)
                await passage.through(body)
                return
        await self._edit(passage, plan)

    async def _edit(self, passage: Passage, exchange: Exchange) -> None:
        try:
            with passage.client.watched():
                await passage.edited(exchange)
        finally:
            # What it keeps belongs to later requests; the client of this one may be gone.
            try:
                await exchange.close()
            except Exception as error:  # noqa: BLE001 - the client has its answer already
                self._failed(OWN_FAULT)
                _log(OWN_FAULT, error)

    async def _plan(self, passage: Passage, body: bytes) -> Exchange | Passed:
        assert passage.route.wire is not None
        headers = passage.client.headers
        try:
            encoding = value_of(headers, b"content-encoding").decode("latin-1")
            asked = Asked(
                wire=passage.route.wire,
                upstream=passage.route.upstream,
                headers=_by_name(headers),
                body=await self._decoded(body, encoding),
            )
            return await self._planner.plan(asked)
        except TooLarge:
            return Passed(BODY_TOO_LARGE)
        except (EncodingUnknown, EncodingBroken):
            return Passed(BODY_ENCODING)
        except Exception as error:  # noqa: BLE001 - a fault of ours must not cost the client its request
            self._failed(PLANNING_FAILED)
            _log(PLANNING_FAILED, error)
            return Passed(PLANNING_FAILED)

    async def _decoded(self, body: bytes, encoding: str) -> bytes:
        limit = self._config.max_body_bytes
        if encoding and len(body) > DECODED_APART:
            return await asyncio.to_thread(decode, body, encoding, limit)
        return decode(body, encoding, limit)

    def _failed(self, kind: str) -> None:
        self._tally.count(self._tally.failures, kind)


def host_of(listen: str) -> str:
    """The host of `host:port`, in lower case and without brackets."""
    return listen.rpartition(":")[0].strip("[]").lower()


async def _end(passage: Passage, status: int, words: str) -> None:
    """An answer that has not begun becomes an error; one that has is cut, so that nobody takes it for whole."""
    if passage.client.answer.is_begun:
        passage.client.answer.cut()
    else:
        await passage.refuse(status, words)


async def _refuse(client: Client, status: int, words: str) -> None:
    body = error_body(style_of(None, client.headers), status, words)
    await client.answer.whole(status, json_headers(body), body)


def _by_name(headers: list[Header]) -> dict[str, str]:
    named: dict[str, str] = {}
    for name, value in headers:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        named[key] = f"{named[key]}, {text}" if key in named else text
    return named


def _log(what: str, error: Exception) -> None:
    # Where, but not the error's own words: they may quote what the client sent.
    where = "".join(traceback.format_tb(error.__traceback__))
    logger.error("%s: %s\n%s", what, type(error).__name__, where)
