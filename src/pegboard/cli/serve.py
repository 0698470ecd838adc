"""`pegboard serve`: the gateway on stdio, or on HTTP. What is wrong is said on stderr; stdout belongs to MCP."""

from __future__ import annotations

import argparse
import asyncio
import os
from typing import TYPE_CHECKING

from pegboard.cli import output
from pegboard.cli.context import NO_SERVERS, NO_SERVERS_HINT, load_config
from pegboard.engine import Engine
from pegboard.errors import PegboardError
from pegboard.gateway.identity import Origin
from pegboard.gateway.lobby import Lobby
from pegboard.gateway.stdio import serve_stdio, take_stdout
from pegboard.telemetry.events import Event, OffersChanged, ServerChanged, SkillsUpdated, ToolsUpdated
from pegboard.types import ServerState

if TYPE_CHECKING:
    from pegboard.config.model import Config
    from pegboard.gateway.desk import Desk
    from pegboard.gateway.relay import ServerRelay

SHORTEST_TOKEN = 16
WARN_AFTER = 1.0


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's own flags."""
    parser.add_argument(
        "--http", metavar="HOST:PORT", help="listen for streamable HTTP at /mcp; a port alone means 127.0.0.1"
    )
    parser.add_argument(
        "--token-env",
        action="append",
        default=[],
        metavar="NAME",
        help="with --http: who has the bearer token in this variable is let in, under its name; may repeat",
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="with --http: a host name under which clients reach it, besides localhost; may repeat",
    )
    parser.add_argument(
        "--conversation", default="", metavar="KEY", help="the conversation whose loaded tools are used"
    )
    parser.add_argument(
        "--allow", action="append", default=[], metavar="GLOB", help="serve only these tools; may repeat"
    )


def run(args: argparse.Namespace) -> int:
    """Serves until the client goes away or a signal says so."""
    config = load_config(args)
    if not config.servers:
        output.warn(f"pegboard: {NO_SERVERS} {NO_SERVERS_HINT}")
    if args.http is None:
        asyncio.run(_on_stdio(config, args, take_stdout()))
    else:
        asyncio.run(_on_http(config, args))
    return 0


class _News:
    """What the engine tells, passed on to whoever is there by then."""

    def __init__(self) -> None:
        self.lobby: Lobby | None = None
        self.relay: ServerRelay | None = None

    def heard(self, event: Event) -> None:
        if isinstance(event, ToolsUpdated | SkillsUpdated) and self.lobby is not None:
            self.lobby.look_again()
        elif isinstance(event, ServerChanged) and event.state is ServerState.READY and self.relay is not None:
            self.relay.started(event.server)
        elif isinstance(event, OffersChanged) and self.relay is not None:
            self.relay.changed(event.server)


async def _on_stdio(config: Config, args: argparse.Namespace, stdout: int) -> None:
    origin = Origin(conversation=args.conversation, place=_place(), allow=_allowed(args))
    news = _News()
    async with Engine(config, on_event=news.heard, on_warning=_warn) as engine:
        lobby = _lobby(engine, news, origin.allow)
        try:
            await serve_stdio(lobby, origin, stdin=os.dup(0), stdout=stdout)
        finally:
            await _close(news)


async def _on_http(config: Config, args: argparse.Namespace) -> None:
    from pegboard.gateway.http import HttpGateway
    from pegboard.gateway.listen import bind, serve_http
    from pegboard.wire.admission import LOCAL_NAMES, Admission, is_loopback

    host, port = _address(args.http)
    tokens = _tokens(args.token_env)
    listener = bind(host, port, has_token=bool(tokens))
    admission = Admission(
        names=LOCAL_NAMES | {host.lower(), *(name.lower() for name in args.allow_host)},
        any_address=not is_loopback(host),
        tokens=tokens,
    )
    news = _News()
    async with Engine(config, on_event=news.heard, on_warning=_warn) as engine:
        lobby = _lobby(engine, news, allow := _allowed(args))
        app = HttpGateway(lobby, admission, allow=allow, conversation=args.conversation)
        shown = f"[{host}]" if ":" in host else host
        url = f"http://{shown}:{listener.getsockname()[1]}/mcp"
        try:
            await serve_http(app, lobby, listener, ready=lambda: output.warn(f"pegboard: serving on {url}"))
        finally:
            await _close(news)


def _warn(message: str) -> None:
    output.warn(f"pegboard: {output.printable(message)}")


def _lobby(engine: Engine, news: _News, allow: tuple[str, ...] | None) -> Lobby:
    from pegboard.gateway.relay import ServerRelay

    desk: Desk = engine.desk()
    news.relay = ServerRelay(engine, allow=allow)
    news.lobby = Lobby(desk, news.relay, allow=allow)
    # Once the client has its tools: nobody waits for warnings.
    asyncio.get_running_loop().call_later(WARN_AFTER, _warn_of_surface, engine)
    return news.lobby


def _warn_of_surface(engine: Engine) -> None:
    from pegboard.types import Caller

    for warning in engine.desk().surface(Caller()).warnings:
        _warn(warning)


async def _close(news: _News) -> None:
    if news.lobby is not None:
        await news.lobby.close()
    if news.relay is not None:
        await news.relay.close()


def _allowed(args: argparse.Namespace) -> tuple[str, ...] | None:
    return tuple(args.allow) or None


def _place() -> str:
    try:
        return os.getcwd()  # noqa: PTH109  pathlib is not loaded for this
    except OSError:
        return ""


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not port.isdecimal() or int(port) > 65535:
        raise PegboardError(
            f"--http {text}: that is no HOST:PORT.", hint="As in --http 127.0.0.1:8321, or --http 8321."
        )
    return host, int(port)


def _tokens(variables: list[str]) -> dict[str, str]:
    """The tokens by the name of their variable, which is the identity of whoever has one."""
    found = {}
    for name in variables:
        token = os.environ.get(name, "").strip()
        if len(token) < SHORTEST_TOKEN or not token.isascii():
            raise PegboardError(
                f"The variable {name} has no token of at least {SHORTEST_TOKEN} plain characters.",
                hint=f'{name}="$(openssl rand -hex 32)" makes one.',
            )
        found[name] = token
    return found
