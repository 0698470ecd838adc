"""An MCP server behind OAuth, with its authorisation server, on one port: `python oauth_server.py [options]`.

Does what RFC 9728, 8414, 7591, 7636, 8707 and 9207 ask of it, and says no where a client does not. Whoever comes to
/authorize is taken for the person and has agreed, unless `--deny`. Prints the address of its MCP endpoint first.

    --expires SECONDS   how long a token is said to last (3600)
    --no-registration   clients cannot register; `pre` with the secret `pre-secret` is known
    --method METHOD     how registered clients authenticate: none, client_secret_basic (default), client_secret_post
    --no-refresh        no refresh tokens are given
    --deny              the person says no
    --token-fails STATUS  the token endpoint answers with this status, its body repeating what was sent
    --elsewhere URL     the metadata names this as the authorisation endpoint
    --log FILE          append one line per event

GET /test/expire makes all access tokens invalid, /test/forget all refresh tokens as well.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import secrets
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode

import uvicorn
from mcp.server.mcpserver import MCPServer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

Json = dict[str, Any]


class Authority:
    """Clients, codes and tokens."""

    def __init__(self, base: str, options: argparse.Namespace) -> None:
        self.base = base
        self.options = options
        self.resource = f"{base}/mcp"
        self.clients: dict[str, Json] = {
            "pre": {
                "client_id": "pre",
                "client_secret": "pre-secret",
                "token_endpoint_auth_method": "client_secret_post",
            }
        }
        self.codes: dict[str, Json] = {}
        self.access: dict[str, str] = {}
        self.refresh: dict[str, tuple[str, str]] = {}

    def note(self, event: str) -> None:
        """One line in the log."""
        if self.options.log:
            with Path(self.options.log).open("a") as file:
                file.write(event + "\n")

    async def resource_metadata(self, _request: Request) -> Response:
        return JSONResponse(
            {"resource": self.resource, "authorization_servers": [self.base], "scopes_supported": ["notes"]}
        )

    async def metadata(self, _request: Request) -> Response:
        found = {
            "issuer": self.base,
            "authorization_endpoint": self.options.elsewhere or f"{self.base}/authorize",
            "token_endpoint": f"{self.base}/oauth/token",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
            "authorization_response_iss_parameter_supported": True,
        }
        if self.options.no_registration:
            found["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
        else:
            found["registration_endpoint"] = f"{self.base}/oauth/register"
        return JSONResponse(found)

    async def register(self, request: Request) -> Response:
        wanted = await request.json()
        client = {
            **wanted,
            "client_id": f"client-{len(self.clients)}",
            "token_endpoint_auth_method": self.options.method,
        }
        if self.options.method != "none":
            client["client_secret"] = secrets.token_urlsafe(16)
        self.clients[client["client_id"]] = client
        self.note(f"register {wanted['client_name']}")
        return JSONResponse(client, 201)

    async def authorize(self, request: Request) -> Response:
        query = dict(request.query_params)
        client = self.clients.get(query.get("client_id", ""))
        known = client is not None and query["redirect_uri"] in client.get("redirect_uris", [query["redirect_uri"]])
        if not known or query.get("code_challenge_method") != "S256" or query.get("resource") != self.resource:
            return Response("This request cannot be served.", 400)
        self.note(f"authorize {query.get('scope', '')}")
        answer = {"state": query["state"], "iss": self.base}
        if self.options.deny:
            answer |= {"error": "access_denied", "error_description": "<script>no</script>"}
        else:
            answer["code"] = secrets.token_urlsafe(16)
            self.codes[answer["code"]] = query
        return RedirectResponse(f"{query['redirect_uri']}?{urlencode(answer)}", 302)

    async def token(self, request: Request) -> Response:
        form = {key: str(value) for key, value in (await request.form()).items()}
        self.note(f"token {form.get('grant_type')}")
        if self.options.token_fails:
            return JSONResponse({"error": "server_error", "you_sent": form}, int(self.options.token_fails))
        if not self.is_client(form, request.headers.get("authorization", "")):
            return JSONResponse({"error": "invalid_client"}, 401)
        if form.get("resource") != self.resource:
            return JSONResponse({"error": "invalid_target"}, 400)
        scope = self.redeem(form)
        if scope is None:
            return JSONResponse({"error": "invalid_grant"}, 400)
        return JSONResponse(self.issue(form["client_id"], scope))

    def is_client(self, form: dict[str, str], header: str) -> bool:
        """Whether the client showed who it is in the way it was registered for."""
        client = self.clients.get(form.get("client_id", ""), {})
        method = client.get("token_endpoint_auth_method")
        if method == "client_secret_basic":
            name, _, password = base64.b64decode(header.removeprefix("Basic ")).decode().partition(":")
            return (unquote(name), unquote(password)) == (client["client_id"], client["client_secret"])
        if method == "client_secret_post":
            return form.get("client_secret") == str(client["client_secret"])
        return method == "none" and "client_secret" not in form

    def redeem(self, form: dict[str, str]) -> str | None:
        """The scope that a code or a refresh token is good for; each is good once."""
        if form.get("grant_type") == "refresh_token":
            client, scope = self.refresh.pop(form.get("refresh_token", ""), ("", ""))
            return scope if client and client == form.get("client_id") else None
        asked = self.codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        proof = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if asked is None or (proof, form.get("redirect_uri")) != (asked["code_challenge"], asked["redirect_uri"]):
            return None
        return str(asked.get("scope", ""))

    def issue(self, client: str, scope: str) -> Json:
        """Fresh tokens."""
        answer: Json = {"access_token": f"AT-{secrets.token_urlsafe(16)}", "token_type": "bearer", "scope": scope}
        self.access[answer["access_token"]] = scope
        answer["expires_in"] = self.options.expires
        if not self.options.no_refresh:
            answer["refresh_token"] = f"RT-{secrets.token_urlsafe(16)}"
            self.refresh[answer["refresh_token"]] = (client, scope)
        return answer

    async def forget(self, request: Request) -> Response:
        self.access.clear()
        if request.url.path.endswith("forget"):
            self.refresh.clear()
        return Response()

    def objection(self, authorization: str, body: bytes) -> tuple[int, str] | None:
        """Why a request to the MCP server is refused: status and challenge."""
        metadata = f'resource_metadata="{self.base}/.well-known/oauth-protected-resource/mcp"'
        scope = self.access.get(authorization.removeprefix("Bearer "))
        if scope is None:
            return 401, f'Bearer error="invalid_token", {metadata}'
        if b'"name":"shred"' in body and "admin" not in scope.split():
            return 403, f'Bearer error="insufficient_scope", scope="admin", {metadata}'
        return None


class Guarded:
    """The MCP server behind its guard, and the authority beside it."""

    def __init__(self, authority: Authority) -> None:
        self.authority = authority
        server = MCPServer("vault", version="1", log_level="ERROR")
        server.tool()(read)
        server.tool()(shred)
        self.mcp = server.streamable_http_app()
        self.oauth = Starlette(
            routes=[
                Route("/.well-known/oauth-protected-resource/mcp", authority.resource_metadata),
                Route("/.well-known/oauth-authorization-server", authority.metadata),
                Route("/oauth/register", authority.register, methods=["POST"]),
                Route("/authorize", authority.authorize),
                Route("/oauth/token", authority.token, methods=["POST"]),
                Route("/test/expire", authority.forget),
                Route("/test/forget", authority.forget),
            ]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.mcp(scope, receive, send)
            return
        if scope["path"] != "/mcp":
            await self.oauth(scope, receive, send)
            return
        body = await Request(scope, receive).body()
        header = dict(scope["headers"]).get(b"authorization", b"").decode()
        objection = self.authority.objection(header, body)
        if objection is not None:
            status, challenge = objection
            self.authority.note(f"refused {status}")
            await Response("no", status, {"WWW-Authenticate": challenge})(scope, receive, send)
            return
        parts = [{"type": "http.request", "body": body}]

        async def replay() -> Any:
            return parts.pop() if parts else await receive()

        await self.mcp(scope, replay, send)


def read() -> str:
    """Reads what is in the vault."""
    return "gold"


def shred() -> str:
    """Shreds what is in the vault; takes the scope `admin`."""
    return "dust"


@contextmanager
def oauth_server(*arguments: str) -> Iterator[str]:
    """Runs this file as a process; gives the address of the MCP endpoint."""
    import subprocess

    command = [sys.executable, __file__, *arguments]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def main() -> None:
    """Reads the command line and serves until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--expires", type=int, default=3600)
    parser.add_argument("--no-registration", action="store_true")
    parser.add_argument("--method", default="client_secret_basic")
    parser.add_argument("--no-refresh", action="store_true")
    parser.add_argument("--deny", action="store_true")
    parser.add_argument("--token-fails", default="")
    parser.add_argument("--elsewhere", default="")
    parser.add_argument("--log", default="")
    options = parser.parse_args()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        base = f"http://127.0.0.1:{listener.getsockname()[1]}"
        print(f"{base}/mcp", flush=True)
        config = uvicorn.Config(Guarded(Authority(base, options)), log_level="error")
        uvicorn.Server(config).run([listener])


if __name__ == "__main__":
    main()
