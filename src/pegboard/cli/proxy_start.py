"""`pegboard proxy start`: runs the proxy here until Ctrl-C, or begins one in the background."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from pegboard.cli import output
from pegboard.cli.proxy_places import (
    RESTART_HINT,
    base_url,
    config_files,
    listen_address,
    proxy_config,
    variables_set,
)
from pegboard.cli.proxy_process import LOG_FILE, ask, is_taken, running, start_detached
from pegboard.config.model import Config
from pegboard.errors import PegboardError
from pegboard.proxy.tally import Running, Tally


def run(args: argparse.Namespace) -> int:
    """Begins the proxy, unless it runs already."""
    config = _with_listen(proxy_config(args), args.listen)
    if args.detached:
        return _run_detached(config)
    there = running(config.state_dir) or ask(config.proxy.listen)
    if there is not None:
        return _tell_there(args, there, config)
    if is_taken(config.proxy.listen):
        raise PegboardError(
            f"{config.proxy.listen} is taken by another program.",
            hint="End that, or listen elsewhere: --listen 127.0.0.1:8723, or [proxy] listen for good.",
        )
    for warning in config.warnings:
        output.warn(f"warning: {output.printable(warning)}")
    if args.background:
        return _start_in_background(args, config)
    asyncio.run(_serve(config, lambda url: _tell_ready(args, config, url)))
    if not args.json:
        output.say("The proxy has ended.")
        tell_pointed(config)
    return 0


def _with_listen(config: Config, listen: str | None) -> Config:
    """The configuration with the whole address to listen on: a port alone must not mean every network."""
    host, port = listen_address(listen or config.proxy.listen)
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return msgspec.structs.replace(config, proxy=msgspec.structs.replace(config.proxy, listen=shown))


async def _serve(config: Config, ready: Callable[[str], None]) -> None:
    from pegboard.proxy.planner import open_planner
    from pegboard.proxy.serve import serve

    tally = Tally()
    async with open_planner(config, tally) as planner:
        await serve(config, planner, tally, on_ready=ready)


def _run_detached(config: Config) -> int:
    """What a proxy in the background is: nobody sees its output, so what goes wrong is kept in a bounded file."""
    import logging

    from pegboard.cli.proxy_log import BoundedLog

    log = BoundedLog(config.state_dir / LOG_FILE)
    sys.stderr = log
    logging.basicConfig(stream=log, format="%(asctime)s %(message)s", level=logging.WARNING)
    asyncio.run(_serve(config, lambda _url: None))
    return 0


def _start_in_background(args: argparse.Namespace, config: Config) -> int:
    flags = [word for file in config_files(args) for word in ("--config", str(file))]
    # It runs in another folder, from which a relative path would lead elsewhere.
    folders = (f"store.state_dir={config.state_dir}", f"store.cache_dir={config.cache_dir}")
    flags += [word for text in (*args.set, *folders) for word in ("--set", text)]
    try:
        there = start_detached([*flags, "--listen", config.proxy.listen], config.state_dir)
    except PegboardError:
        # Two may begin at the same moment, and one of them finds the port taken.
        other = running(config.state_dir) or ask(config.proxy.listen)
        if other is None:
            raise
        return _tell_there(args, other, config)
    if args.json:
        output.emit(_as_json(there, started=True))
        return 0
    output.say(f"The proxy runs in the background: {base_url(there.listen)}, process {there.pid}.")
    _tell_how(there.upstreams, base_url(there.listen))
    output.say("`pegboard proxy status` shows what it does, `pegboard proxy stop` ends it.")
    return 0


def _tell_there(args: argparse.Namespace, there: Running, config: Config) -> int:
    if args.json:
        output.emit(_as_json(there, started=False))
        return 0
    output.say(f"The proxy runs already: {base_url(there.listen)}, process {there.pid}.")
    _, port = listen_address(config.proxy.listen)
    if base_url(there.listen) != base_url(config.proxy.listen) and port:
        output.warn(f"It does not listen on {config.proxy.listen}: `pegboard proxy stop` first to move it.")
    return 0


def _tell_ready(args: argparse.Namespace, config: Config, url: str) -> None:
    from pegboard.proxy.routes import BUILT_IN

    upstreams = {**BUILT_IN, **config.proxy.upstreams}
    if args.json:
        output.emit({"listen": url.removeprefix("http://"), "upstreams": upstreams, "started": True})
    else:
        base = base_url(url.removeprefix("http://"))
        output.say(f"The proxy listens on {base} until Ctrl-C.")
        _tell_how(upstreams, base)
    sys.stdout.flush()


def _tell_how(upstreams: dict[str, str], base: str) -> None:
    output.say()
    output.table(
        ("UPSTREAM", "AN AGENT'S ADDRESS", "GOES TO"),
        [(name, f"{base}/{name}", address) for name, address in upstreams.items()],
    )
    output.say()
    output.say("`pegboard proxy install <agent>` points an agent there; `pegboard proxy install` lists them.")
    output.say(RESTART_HINT)


def tell_pointed(config: Config) -> None:
    """Which agents cannot work now that the proxy is down."""
    from pegboard.store.redirects import Redirects

    agents = sorted({each.agent for each in Redirects(config.state_dir).journal().redirects if not each.is_config})
    if agents:
        output.warn(f"Pointed at it, and of no use until it runs again: {', '.join(agents)}.")
        output.warn("`pegboard proxy uninstall <agent>` lets one work without it.")
    if names := variables_set(config):
        output.warn(f"This shell points programs at it, too: `unset {' '.join(names)}` lets them work without it.")


def _as_json(there: Running, *, started: bool) -> dict[str, Any]:
    return {
        "started": started,
        "pid": there.pid,
        "listen": there.listen,
        "upstreams": there.upstreams,
        "version": there.version,
    }
