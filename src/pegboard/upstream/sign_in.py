"""A person signs in to a remote server: find out what it asks for, send a browser out, keep what comes back.

Above: `pegboard login`. Below: `oauth` drives the official SDK's OAuth client, `auth` uses what was kept.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx2
import msgspec

from pegboard.config.model import GatewayConfig, ServerSpec
from pegboard.errors import AuthRequired, PegboardError
from pegboard.upstream.auth import alone, brings_credentials, keep
from pegboard.upstream.callback import Callback
from pegboard.upstream.http import HttpLink
from pegboard.upstream.http_client import checked_url, is_loopback
from pegboard.upstream.link import Link
from pegboard.upstream.oauth import OpenUrl, Registration, authorize, load_sdk
from pegboard.upstream.server import Limits, Server, Surroundings
from pegboard.upstream.sse import SseLink
from pegboard.upstream.tokens import SignIn, read_sign_in


async def sign_in(
    spec: ServerSpec,
    state_dir: Path,
    *,
    open_url: OpenUrl,
    port: int = 0,
    timeout: float = 300.0,
    registration: Registration | None = None,
    gateway: GatewayConfig | None = None,
) -> bool:
    """Signs in and keeps the tokens; False when the server lists its tools without."""
    _refuse_what_cannot_work(spec)
    # Better to hear of a missing package, or of a folder that cannot be written to, before a browser opens.
    await asyncio.to_thread(load_sdk)
    async with alone(spec, state_dir):
        pass
    limits = Limits.of(spec, gateway or GatewayConfig())
    kept = read_sign_in(spec, state_dir) or SignIn(server=spec.name, url=spec.config.url or "")
    challenge = httpx2.Response(403, headers={"WWW-Authenticate": kept.challenge}) if kept.challenge else None
    if challenge is None:
        witness = Witness()
        try:
            await _list(spec, limits, witness)
        except AuthRequired:
            if witness.challenge is None:
                raise
            challenge = witness.challenge
        else:
            return False
    async with Callback(port) as callback:
        fresh = await authorize(
            kept,
            challenge,
            callback=callback,
            open_url=open_url,
            registration=registration or _as_before(kept),
            timeout=timeout,
        )
    async with alone(spec, state_dir):
        keep(spec, state_dir, msgspec.structs.replace(fresh, identity=secrets.token_hex(16)))
    return True


class Witness(httpx2.Auth):
    """Sends no credentials, and remembers how the server asked for them."""

    def __init__(self) -> None:
        self.challenge: httpx2.Response | None = None

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """One request."""
        response = yield request
        if response.status_code == 401:
            self.challenge = httpx2.Response(401, headers=response.headers)


def _refuse_what_cannot_work(spec: ServerSpec) -> None:
    if spec.transport == "stdio":
        raise PegboardError(
            f"{spec.name} runs on this machine: there is nothing to sign in to.",
            hint="What it needs to know goes into its `env`.",
        )
    if brings_credentials(spec):
        raise PegboardError(
            f"servers.{spec.name} has an Authorization header, which goes before any sign-in.",
            hint="Take it out of its `headers` to sign in instead.",
        )
    url = checked_url(spec.name, spec.config.url or "")
    if url.scheme != "https" and not is_loopback(url.host):
        raise PegboardError(
            f"{spec.name} is reached in the clear: a token would be there for everybody to read.",
            hint="Use its https address.",
        )


def _as_before(kept: SignIn) -> Registration:
    """The registration that a person gave for the last sign-in; else we register ourselves."""
    client = kept.client if kept.is_client_given and kept.client else {}
    return Registration(client_id=client.get("client_id", ""), client_secret=client.get("client_secret", ""))


async def _list(spec: ServerSpec, limits: Limits, auth: httpx2.Auth) -> None:
    def links(spec: ServerSpec, limits: Limits) -> list[Link]:
        legacy = SseLink(spec, limits.max_result_bytes, auth)
        return [legacy] if spec.transport == "sse" else [HttpLink(spec, limits.max_result_bytes, auth), legacy]

    server = Server(
        spec,
        limits,
        Surroundings(
            links=links,
            starting=asyncio.Semaphore(1),
            on_state=lambda *_: None,
            on_tools_changed=lambda _: None,
            schema_of=lambda *_: None,
            known_version=lambda _: "",
        ),
    )
    try:
        await server.list_tools()
    finally:
        await server.close()
