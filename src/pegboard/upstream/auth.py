"""The sign-in that is kept for a remote server: it goes with every request, and is renewed silently.

Above: `pool` gives each remote server its own. Below: `tokens` is the file, `oauth` the official SDK's OAuth client,
which is loaded only when a token has to be renewed. `sign_in` is how a person makes one.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import httpx2
import msgspec

from pegboard.config.model import ServerSpec
from pegboard.errors import AuthRequired, MissingExtra, ServerUnavailable
from pegboard.upstream.link import Forbidden
from pegboard.upstream.oauth import renew
from pegboard.upstream.tokens import SignIn, keep_sign_in, path_of, read_sign_in

LOCK_SECONDS = 30.0
LOCK_POLL = 0.05


def stored_auth(spec: ServerSpec, state_dir: Path) -> httpx2.Auth | None:
    """The sign-in kept for this server, if there is one; a token in its `headers` goes first."""
    if brings_credentials(spec):
        return None
    kept = read_sign_in(spec, state_dir)
    return StoredSignIn(spec, state_dir, kept) if kept is not None and kept.access_token else None


def brings_credentials(spec: ServerSpec) -> bool:
    """Whether the configuration says what to send as `Authorization`."""
    return any(name.lower() == "authorization" for name in spec.config.headers)


class StoredSignIn(httpx2.Auth):
    """Puts the token on every request, and renews it when it expires. Never opens a browser."""

    def __init__(self, spec: ServerSpec, state_dir: Path, kept: SignIn) -> None:
        self._spec = spec
        self._state_dir = state_dir
        self._kept = kept
        self._renewing = asyncio.Lock()

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """One request, and once more when there is a better token than the one we had."""
        used = self._kept
        if used.is_expired(time.time()) and used.refresh_token:
            used = await self._renewed(used)
        for is_last_try in (False, True):
            request.headers["Authorization"] = f"Bearer {used.access_token}"
            response = yield request
            if response.status_code == 401:
                if is_last_try:
                    raise self._sign_in_again("it turned down a token that was just renewed")
                used = await self._renewed(used)
            elif response.status_code == 403 and "insufficient_scope" in response.headers.get("www-authenticate", ""):
                used = await self._wider(used, response.headers["www-authenticate"])
            else:
                return
            await _drop_body(response)

    async def _renewed(self, used: SignIn) -> SignIn:
        async with self._renewing:
            if self._kept is used:
                async with alone(self._spec, self._state_dir):
                    self._kept = await self._renew(used)
        return self._kept

    async def _renew(self, used: SignIn) -> SignIn:
        on_disk = read_sign_in(self._spec, self._state_dir)
        if on_disk is None:
            raise self._sign_in_again("its sign-in was deleted")
        if on_disk.access_token != used.access_token:
            return on_disk  # another process was quicker
        if not used.refresh_token:
            raise self._sign_in_again("its sign-in has expired")
        try:
            fresh = await renew(used)
        except MissingExtra as error:
            raise AuthRequired(self._spec.name, "its sign-in must be renewed", hint=error.hint) from None
        keep(self._spec, self._state_dir, fresh)
        return fresh

    def _sign_in_again(self, cause: str) -> AuthRequired:
        name = self._spec.name
        return AuthRequired(name, cause, hint=f"`pegboard login {name}` signs in again.")

    async def _wider(self, used: SignIn, challenge: str) -> SignIn:
        """A sign-in that somebody made meanwhile; else what is missing is noted, and the next one asks for it."""
        async with alone(self._spec, self._state_dir):
            on_disk = read_sign_in(self._spec, self._state_dir)
            if on_disk is not None and on_disk.access_token != used.access_token:
                self._kept = on_disk
                return on_disk
            keep(self._spec, self._state_dir, msgspec.structs.replace(used, challenge=challenge[:4096]))
        name = self._spec.name
        hint = f"`pegboard login {name}` asks for more."
        raise Forbidden(name, "its sign-in does not allow that (HTTP 403, insufficient_scope)", hint=hint)


async def _drop_body(response: httpx2.Response) -> None:
    # httpx reads the body of an answer that is followed by another request, however long it is: it gets an empty one.
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)
    await stream.aclose()
    response.stream = httpx2.ByteStream(b"")


@contextlib.asynccontextmanager
async def alone(spec: ServerSpec, state_dir: Path) -> AsyncIterator[None]:
    """One process at a time changes a sign-in: a refresh token that is used twice may be revoked."""
    path = path_of(spec, state_dir).with_suffix(".lock")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _cannot_keep(spec, path, error) from None
    try:
        for _ in range(int(LOCK_SECONDS / LOCK_POLL)):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(LOCK_POLL)
        yield  # in the end even without the lock: whoever holds it for so long is stuck
    finally:
        os.close(descriptor)


def keep(spec: ServerSpec, state_dir: Path, sign_in: SignIn) -> None:
    """Writes a sign-in to its file; one that cannot be written is an error, for it could not be renewed."""
    try:
        keep_sign_in(spec, state_dir, sign_in)
    except OSError as error:
        raise _cannot_keep(spec, path_of(spec, state_dir), error) from None


def _cannot_keep(spec: ServerSpec, path: Path, error: OSError) -> ServerUnavailable:
    cause = f"its sign-in cannot be written to {path}: {error.strerror}"
    return ServerUnavailable(spec.name, cause, hint="`store.state_dir` says where sign-ins are kept.")
