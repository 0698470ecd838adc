"""Looks at the world for what servers require: variables, programs on PATH, addresses that accept connections.

It observes and does not judge: `catalog.gate` says what the facts mean. Answers are kept for half a minute.
Below: the configuration model. Start-up passes through here, so what is slow is imported where it is needed.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from pegboard.config.model import Requires, ServerSpec

if TYPE_CHECKING:
    import asyncio

KEEP_SECONDS = 30.0
CONNECT_TIMEOUT = 1.0
MAX_CONNECTS = 16

_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}
_PLAIN_WORDS = {
    errno.ECONNREFUSED: "connection refused",
    errno.EHOSTUNREACH: "host unreachable",
    errno.ENETUNREACH: "network unreachable",
}


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of the things one server requires."""

    env: frozenset[str] = frozenset()
    """Variables that are set to something."""
    commands: frozenset[str] = frozenset()
    """Programs that are there."""
    url_problem: str = ""
    """Why the address does not accept connections; empty when it does."""


_Key = tuple[str, Requires, tuple[tuple[str, str], ...]]


class Prober:
    """Gathers facts about servers, and remembers them for a while."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        environ: Mapping[str, str] | None = None,
        keep: float = KEEP_SECONDS,
        connect_timeout: float = CONNECT_TIMEOUT,
    ) -> None:
        self._clock = clock
        self._environ = os.environ if environ is None else environ
        self._keep = keep
        self._connect_timeout = connect_timeout
        self._known: dict[_Key, tuple[float, Facts]] = {}

    def probe_all(self, specs: Iterable[ServerSpec]) -> dict[str, Facts]:
        """Facts of every enabled server that requires something; for callers without an event loop."""
        facts, open_questions = self._without_network(specs)
        if open_questions:
            import asyncio

            asyncio.run(self._ask_network(facts, open_questions))
        return facts

    async def probe(self, specs: Iterable[ServerSpec]) -> dict[str, Facts]:
        """The same for callers on an event loop."""
        facts, open_questions = self._without_network(specs)
        if open_questions:
            await self._ask_network(facts, open_questions)
        return facts

    def _without_network(self, specs: Iterable[ServerSpec]) -> tuple[dict[str, Facts], list[ServerSpec]]:
        now = self._clock()
        self._known = {key: kept for key, kept in self._known.items() if kept[0] > now}
        facts: dict[str, Facts] = {}
        open_questions = []
        for spec in specs:
            requires = spec.config.requires
            if requires is None or not spec.config.enabled or spec.problem:
                continue
            kept = self._known.get(_key(spec, requires))
            facts[spec.name] = kept[1] if kept else _local_facts(requires, {**self._environ, **spec.config.env})
            if kept is None and requires.url:
                open_questions.append(spec)
            elif kept is None:
                self._remember(spec, requires, facts[spec.name])
        return facts, open_questions

    async def _ask_network(self, facts: dict[str, Facts], specs: list[ServerSpec]) -> None:
        """Completes the facts of these servers; each address is tried once, some at a time."""
        import asyncio

        slots = asyncio.Semaphore(MAX_CONNECTS)

        async def ask(url: str) -> str:
            async with slots:
                return await connect_problem(url, self._connect_timeout)

        urls = {spec.config.requires.url for spec in specs if spec.config.requires and spec.config.requires.url}
        answers = dict(zip(urls, await asyncio.gather(*map(ask, urls)), strict=True))
        for spec in specs:
            requires = spec.config.requires
            if requires and requires.url:
                found = msgspec.structs.replace(facts[spec.name], url_problem=answers[requires.url])
                facts[spec.name] = found
                self._remember(spec, requires, found)

    def _remember(self, spec: ServerSpec, requires: Requires, facts: Facts) -> None:
        self._known[_key(spec, requires)] = (self._clock() + self._keep, facts)


def _key(spec: ServerSpec, requires: Requires) -> _Key:
    return spec.name, requires, tuple(sorted(spec.config.env.items()))


def _local_facts(requires: Requires, environ: Mapping[str, str]) -> Facts:
    return Facts(
        env=frozenset(name for name in requires.env if environ.get(name)),
        commands=frozenset(name for name in requires.command if _on_path(name, environ.get("PATH"))),
    )


def _on_path(command: str, path: str | None) -> bool:
    import shutil

    return shutil.which(command, path=path) is not None


async def connect_problem(url: str, timeout: float = CONNECT_TIMEOUT) -> str:
    """Why no TCP connection to the address can be made within the time; empty when one can."""
    import asyncio

    address = _host_and_port(url)
    if address is None:
        return "it is not an address with a host"
    try:
        async with asyncio.timeout(timeout):
            return await _try_each(await _resolve(*address))
    except TimeoutError:
        return f"no answer within {timeout:g} s"
    except OSError as error:
        return _plain_words(error)


def _host_and_port(url: str) -> tuple[str, int] | None:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url if "://" in url else f"//{url}")
        port = parts.port or _PORTS.get(parts.scheme, 80)
    except ValueError:
        return None
    return (parts.hostname, port) if parts.hostname else None


async def _resolve(host: str, port: int) -> list[Any]:
    """The socket addresses of a host name.

    In a daemon thread of its own: a name server that does not answer would hold the loop's executor, and with
    it the end of the process, long after the timeout.
    """
    import asyncio
    import socket
    import threading

    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[Any]] = loop.create_future()

    def look_up() -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            _report(loop, answer, error)
        else:
            _report(loop, answer, found)

    threading.Thread(target=look_up, name=f"resolve {host}", daemon=True).start()
    return await answer


def _report(loop: asyncio.AbstractEventLoop, answer: asyncio.Future[list[Any]], outcome: list[Any] | Exception) -> None:
    def settle() -> None:
        if answer.done():
            return
        if isinstance(outcome, OSError):
            answer.set_exception(outcome)
        elif isinstance(outcome, Exception):
            answer.set_exception(OSError(f"not a host name: {outcome}"))
        else:
            answer.set_result(outcome)

    try:
        loop.call_soon_threadsafe(settle)
    except RuntimeError:
        # The loop is closed: whoever asked stopped waiting.
        return


async def _try_each(addresses: list[Any]) -> str:
    import asyncio
    import socket

    loop = asyncio.get_running_loop()
    problem = "the host has no address"
    for family, kind, protocol, _, address in addresses:
        with socket.socket(family, kind, protocol) as attempt:
            attempt.setblocking(False)
            try:
                await loop.sock_connect(attempt, address)
            except OSError as error:
                problem = _plain_words(error)
            else:
                return ""
    return problem


def _plain_words(error: OSError) -> str:
    import socket

    if isinstance(error, socket.gaierror):
        return "the host name cannot be resolved"
    return _PLAIN_WORDS.get(error.errno or 0) or error.strerror or str(error)
