"""What the proxy's commands ask of the machine: whose configuration counts, where it listens, which files are whose.

A project's pegboard.toml is not read at all: a cloned repository must decide neither where requests with API keys go
nor which process `stop` ends. Above: the proxy's commands. Below: the configuration.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from pegboard.config.importers.found import Places
from pegboard.config.installers.agents import AGENTS
from pegboard.config.installers.redirect import Proxy
from pegboard.config.load import FILES_VARIABLE, load
from pegboard.config.model import Config
from pegboard.config.places import expand_home, user_file
from pegboard.errors import PegboardError

RESTART_HINT = (
    "Begin new conversations: one that was under way may break, as some models check that what came before their "
    "thinking is as they saw it."
)


def proxy_config(args: argparse.Namespace) -> Config:
    """The configuration as the user's own file says, or the files that a flag or a variable names."""
    return load(files=config_files(args), overrides=args.set)


def config_files(args: argparse.Namespace) -> list[Path]:
    """The files that count, by absolute paths."""
    texts = [str(file) for file in args.config]
    texts = texts or [name for name in os.environ.get(FILES_VARIABLE, "").split(os.pathsep) if name]
    named = [Path(os.path.abspath(expand_home(text, os.environ))) for text in texts]  # noqa: PTH100 - links stay
    user = user_file(os.environ)
    return named or ([user] if os.path.lexists(user) else [Path(os.devnull)])


def upstreams_file(args: argparse.Namespace) -> Path:
    """The pegboard.toml that new upstreams are written to."""
    [*_, last] = config_files(args)
    if str(last) == os.devnull:
        return user_file(os.environ)
    if last.suffix.lower() != ".toml":
        raise PegboardError(f"{last} does not end in .toml.", hint="Upstreams are written as TOML.")
    return last


def machine() -> Places:
    """The machine as the agents' files are looked for on it; no project is."""
    return Places(home=Path.home(), cwd=Path.home(), environ=os.environ, platform=sys.platform)


def listen_address(text: str) -> tuple[str, int]:
    """Host and port; a port alone means this machine."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise PegboardError(f"{text} is no HOST:PORT to listen on.", hint="As in 127.0.0.1:8722.")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


def base_url(listen: str) -> str:
    """The address that agents on this machine use."""
    host, port = listen_address(listen)
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not listened on
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def proxy_of(config: Config) -> Proxy:
    """The proxy as agents are told of it."""
    from pegboard.proxy.routes import BUILT_IN

    _, port = listen_address(config.proxy.listen)
    if not port:
        raise PegboardError(
            "The proxy takes another port each time it starts, so no agent can be pointed at it.",
            hint="Give [proxy] listen a port.",
        )
    return Proxy(
        base=base_url(config.proxy.listen),
        upstreams={**BUILT_IN, **config.proxy.upstreams},
        built_in=frozenset(BUILT_IN),
    )


def variables_set(config: Config) -> list[str]:
    """Variables of this shell that point programs at the proxy; nobody journals them."""
    proxy = Proxy(base=base_url(config.proxy.listen), upstreams={}, built_in=frozenset())
    names = dict.fromkeys(name for agent in AGENTS for name, _, _ in agent.variables)
    return [name for name in names if proxy.has(os.environ.get(name, ""))]
