"""Drives the official SDK's OAuth client: it decides what to send, we send it, within bounds.

The SDK is an optional dependency and slow to import, so it is loaded here, when a sign-in is made or renewed, and
nowhere else. It writes tokens and whole answers into its log and its errors; neither leaves this module.
Above: `auth`. Below: `courier`, which sends; `callback`, where browsers come back; `tokens`, the file.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import httpx2
import msgspec

import pegboard
from pegboard.errors import AuthRequired, MissingExtra
from pegboard.types import Json
from pegboard.upstream.callback import Callback
from pegboard.upstream.courier import Courier, is_error_code
from pegboard.upstream.tokens import SignIn

NOWHERE = "http://127.0.0.1/callback"
"""The SDK wants to know where browsers are sent back to even when none is sent out."""
SECRET_METHODS = ("client_secret_basic", "client_secret_post")

OpenUrl = Callable[[str], Awaitable[None]]


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """Who we are to the authorisation server, when it does not let anybody register."""

    client_id: str = ""
    client_secret: str = ""
    metadata_url: str = ""
    """Where a client metadata document of ours lies, for servers that take its address as the client's name."""

    def __repr__(self) -> str:
        return f"<registration of {self.client_id or self.metadata_url or 'nobody yet'}>"


def load_sdk() -> SimpleNamespace:
    """The parts of the SDK that are used here."""
    try:
        from mcp.client import auth
        from mcp.shared import auth as models
    except ImportError:
        raise MissingExtra("Signing in to a remote server", "oauth") from None
    # It logs tracebacks, with what servers answered to requests for tokens: no log of anybody may have that.
    logging.getLogger("mcp.client.auth").setLevel(logging.CRITICAL + 1)
    return SimpleNamespace(auth=auth, models=models)


async def renew(kept: SignIn) -> SignIn:
    """A sign-in with a fresh token; raises AuthRequired when a person has to sign in again."""
    sdk = await asyncio.to_thread(load_sdk)
    memory = _Memory(sdk, kept)
    metadata = sdk.models.OAuthClientMetadata(redirect_uris=[NOWHERE])
    provider = sdk.auth.OAuthClientProvider(kept.url, metadata, memory)
    _restore(sdk, provider.context, kept)
    provider.context.token_expiry_time = 1.0
    async with Courier(kept.server, kept.url) as courier:
        await _drive(sdk, provider, None, courier)
    if memory.fresh is None:
        courier.complain_if_down()
        raise AuthRequired(kept.server, f"its sign-in could not be renewed{courier.reason()}", hint=_again(kept.server))
    return memory.sign_in(provider.context)


async def authorize(
    kept: SignIn,
    challenge: httpx2.Response,
    *,
    callback: Callback,
    open_url: OpenUrl,
    registration: Registration,
    timeout: float,
) -> SignIn:
    """A new sign-in, made by a person in a browser; `challenge` is the answer that asked for it."""
    sdk = await asyncio.to_thread(load_sdk)
    memory = _Memory(sdk, kept, registration, callback.url)
    errors: list[str] = []

    async def send_out(url: str) -> None:
        courier.must_be_allowed(httpx2.URL(url))
        _choose_secret_method(provider.context)
        callback.expect(url)
        await open_url(url)

    async def come_back() -> Any:
        answer = await _within(timeout, kept.server, callback)
        errors.append(answer.error)
        return sdk.auth.AuthorizationCodeResult(code=answer.code, state=answer.state, iss=answer.issuer)

    provider = sdk.auth.OAuthClientProvider(
        kept.url,
        _our_metadata(sdk, callback.url),
        memory,
        redirect_handler=send_out,
        callback_handler=come_back,
        client_metadata_url=registration.metadata_url or None,
    )
    if challenge.status_code == 403:
        _restore(sdk, provider.context, kept)
    async with Courier(kept.server, kept.url) as courier:
        await _drive(sdk, provider, challenge, courier, errors)
    if memory.fresh is None:
        raise AuthRequired(kept.server, "the sign-in came to no end", hint=_again(kept.server))
    return memory.sign_in(provider.context)


async def _within(timeout: float, server: str, callback: Callback) -> Any:
    try:
        async with asyncio.timeout(timeout):
            return await callback.answer()
    except TimeoutError:
        raise AuthRequired(server, f"nobody signed in within {timeout:g} s", hint=_again(server)) from None


async def _drive(
    sdk: SimpleNamespace,
    provider: Any,
    challenge: httpx2.Response | None,
    courier: Courier,
    errors: list[str] | None = None,
) -> None:
    """Runs the SDK's flow around a request that is never sent: `challenge` is what it would have been answered."""
    server = courier.server
    request = httpx2.Request("POST", provider.context.server_url, headers={"MCP-Protocol-Version": "2025-11-25"})
    if challenge is not None:
        challenge.request = request
    try:
        async with contextlib.aclosing(provider.async_auth_flow(request)) as flow:
            outgoing = await flow.asend(None)
            while outgoing is not request or challenge is not None:
                if outgoing is request:
                    answer, challenge = challenge, None
                else:
                    answer = await courier.carry(outgoing)
                outgoing = await flow.asend(answer)
    except StopAsyncIteration:
        return
    except sdk.auth.OAuthRegistrationError:
        raise AuthRequired(
            server,
            f"its authorisation server did not register Pegboard{courier.reason()}",
            hint=f"If you have a client id for it: pegboard login {server} --client-id …",
        ) from None
    except sdk.auth.OAuthTokenError:
        cause = f"its authorisation server did not issue a token{courier.reason()}"
        raise AuthRequired(server, cause, hint=_again(server)) from None
    except sdk.auth.OAuthFlowError as error:
        raise AuthRequired(server, _refusal(errors or [], str(error)), hint=_again(server)) from None
    except httpx2.InvalidURL:
        raise AuthRequired(server, "its OAuth metadata holds an address that is none") from None


def _refusal(errors: list[str], words: str) -> str:
    # By the time the SDK misses the code it has checked who the answer is from: only then may its error be shown.
    if errors and errors[-1] and words == "No authorization code received":
        code = errors[-1] if is_error_code(errors[-1]) else "an error"
        return f"the sign-in was refused ({code})"
    return f"the sign-in was broken off: {words[:300]}"


def _again(server: str) -> str:
    return f"`pegboard login {server}` signs in again."


# ── what the SDK keeps, as it comes from and goes to our file ────────────────────────────────────────────────────────


class _Memory:
    """The SDK's token storage, in memory: the file is written once, when all is well."""

    def __init__(
        self, sdk: SimpleNamespace, kept: SignIn, registration: Registration | None = None, redirect: str = ""
    ) -> None:
        self._sdk = sdk
        self._kept = kept
        self.fresh: Any = None
        self._expires_at: float | None = None
        self._client: Json | None = kept.client
        self._is_client_given = kept.is_client_given
        if registration is not None:
            # Whoever signs in anew registers anew: the server may have forgotten us, and our port is another.
            self._client = _given_client(registration, redirect)
            self._is_client_given = self._client is not None

    async def get_tokens(self) -> Any:
        kept = self._kept
        if not kept.access_token:
            return None
        return self._sdk.models.OAuthToken(
            access_token=kept.access_token, refresh_token=kept.refresh_token, scope=kept.scope
        )

    async def set_tokens(self, tokens: Any) -> None:
        self.fresh = tokens
        self._expires_at = None if tokens.expires_in is None else time.time() + tokens.expires_in

    async def get_client_info(self) -> Any:
        return self._client and self._sdk.models.OAuthClientInformationFull.model_validate(self._client)

    async def set_client_info(self, client_info: Any) -> None:
        self._client = _dumped(client_info)

    def sign_in(self, context: Any) -> SignIn:
        return SignIn(
            server=self._kept.server,
            url=self._kept.url,
            access_token=self.fresh.access_token,
            refresh_token=self.fresh.refresh_token,
            scope=self.fresh.scope,
            expires_at=self._expires_at,
            client=_dumped(context.client_info) or self._client,
            is_client_given=self._is_client_given,
            identity=self._kept.identity,
            authorization_server=_dumped(context.oauth_metadata),
            resource=_dumped(context.protected_resource_metadata),
        )


def _given_client(registration: Registration, redirect: str) -> Json | None:
    if not registration.client_id:
        return None
    client: Json = {
        "client_id": registration.client_id,
        "redirect_uris": [redirect],
        "token_endpoint_auth_method": "none",
    }
    if registration.client_secret:
        client |= {"client_secret": registration.client_secret, "token_endpoint_auth_method": SECRET_METHODS[0]}
    return client


def _our_metadata(sdk: SimpleNamespace, redirect: str) -> Any:
    return sdk.models.OAuthClientMetadata(
        redirect_uris=[redirect],
        client_name="Pegboard",
        software_id="pegboard",
        software_version=pegboard.__version__,
    )


def _restore(sdk: SimpleNamespace, context: Any, kept: SignIn) -> None:
    if kept.authorization_server:
        context.oauth_metadata = sdk.models.OAuthMetadata.model_validate(kept.authorization_server)
    if kept.resource:
        context.protected_resource_metadata = sdk.models.ProtectedResourceMetadata.model_validate(kept.resource)
        context.auth_server_url = str(context.protected_resource_metadata.authorization_servers[0])


def _choose_secret_method(context: Any) -> None:
    """A client secret that a person gave us is shown in the way the server says it wants it."""
    client, metadata = context.client_info, context.oauth_metadata
    supported = (metadata and metadata.token_endpoint_auth_methods_supported) or []
    if client.token_endpoint_auth_method == SECRET_METHODS[0] and SECRET_METHODS[0] not in supported:
        client.token_endpoint_auth_method = next(
            (each for each in SECRET_METHODS if each in supported), SECRET_METHODS[0]
        )


def _dumped(model: Any) -> Json | None:
    if model is None:
        return None
    dumped: Json = model.model_dump(mode="json", exclude_none=True)
    return dumped
