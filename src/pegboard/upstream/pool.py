"""All servers of one configuration: made at once, started when used, ended together."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping

from pegboard.config.model import Config, ServerSpec
from pegboard.errors import ServerNotFound, ServerUnavailable
from pegboard.types import Json, ServerState
from pegboard.upstream.guard_client import Guard
from pegboard.upstream.link import Link
from pegboard.upstream.server import Limits, Server, Surroundings
from pegboard.upstream.stdio import StdioLink


class Pool:
    """The servers, by name. Disabled and misconfigured ones are known, but never contacted."""

    def __init__(
        self,
        config: Config,
        *,
        on_state: Callable[[str, ServerState, str], None],
        on_tools_changed: Callable[[str], None],
        on_offers_changed: Callable[[str], None] = lambda _: None,
        schema_of: Callable[[str, str], Json | None],
        known_version: Callable[[str], str],
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._config = config
        self._environ = os.environ if environ is None else environ
        self._guard = Guard()
        around = Surroundings(
            links=self._links,
            starting=asyncio.Semaphore(config.gateway.max_starting),
            on_state=on_state,
            on_tools_changed=on_tools_changed,
            on_offers_changed=on_offers_changed,
            schema_of=schema_of,
            known_version=known_version,
            sign_in_of=self._sign_in_of,
        )
        self._servers = {
            name: Server(spec, Limits.of(spec, config.gateway), around)
            for name, spec in config.servers.items()
            if spec.config.enabled and not spec.problem and not spec.local
        }

    def get(self, name: str) -> Server:
        """The server, which must be one that may be contacted."""
        if name in self._servers:
            return self._servers[name]
        spec = self._config.servers.get(name)
        if spec is None:
            raise ServerNotFound(name)
        if spec.problem:
            raise ServerUnavailable(name, spec.problem, hint="`pegboard config check` shows where.")
        raise ServerUnavailable(name, "it is disabled", hint=f"Set `enabled = true` in servers.{name} to use it.")

    def all(self) -> list[Server]:
        """Every server that may be contacted."""
        return list(self._servers.values())

    async def close(self) -> None:
        """Ends every server, then the guard, which sweeps up what they left."""
        await asyncio.gather(*(server.close() for server in self._servers.values()))
        await self._guard.close()

    def _sign_in_of(self, spec: ServerSpec) -> object:
        from pegboard.upstream.tokens import sign_in_mark

        return sign_in_mark(spec, self._config.state_dir)

    def _links(self, spec: ServerSpec, limits: Limits) -> list[Link]:
        if spec.transport == "stdio":
            return [StdioLink(spec, limits.max_result_bytes, self._guard, self._environ)]
        # httpx is not loaded for those who have no remote server.
        from pegboard.upstream.auth import stored_auth
        from pegboard.upstream.http import HttpLink
        from pegboard.upstream.sse import SseLink

        auth = stored_auth(spec, self._config.state_dir)
        legacy = SseLink(spec, limits.max_result_bytes, auth)
        if spec.transport == "sse":
            return [legacy]
        return [HttpLink(spec, limits.max_result_bytes, auth), legacy]
