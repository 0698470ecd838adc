"""What every command needs: the configuration its flags ask for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pegboard.config.load import load
from pegboard.errors import PegboardError

if TYPE_CHECKING:
    import argparse

    from pegboard.config.model import Config

_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_SPAN = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s*(s|m|min|h|d|w)?")
NO_SERVERS = "No servers are configured."
NO_SERVERS_HINT = (
    "`pegboard import` finds the ones your agents already have; or write [servers.<name>] into pegboard.toml, "
    "or point at a file you have: pegboard --config .mcp.json tools"
)


def seconds(text: str) -> float:
    """A flag's length of time; for argparse, which puts the reason into words."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError(f"{text} is no length of time")
    return value


def time_span(text: str) -> float:
    """A flag's length of time with its unit, in seconds: 90s, 15min, 12h, 7d, 4w; for argparse."""
    found = _SPAN.fullmatch(text.strip().lower())
    if not found:
        raise ValueError(f"{text} is no length of time")
    return float(found[1]) * _UNITS[found[2] or "d"]


def port(text: str) -> int:
    """A flag's TCP port; for argparse."""
    value = int(text)
    if value not in range(65536):
        raise ValueError(f"{text} is no port")
    return value


def load_config(args: argparse.Namespace) -> Config:
    """The configuration as files, variables and flags say."""
    return load(files=args.config, overrides=args.set)


def load_with_servers(args: argparse.Namespace, *, or_skills: bool = False) -> Config:
    """The configuration, which must name at least one server, or where that will do, say where skills are."""
    config = load_config(args)
    if not config.servers and not (or_skills and config.skill_roots):
        read = ", ".join(str(path) for path in config.files) or "no configuration file was found"
        raise PegboardError(f"{NO_SERVERS} (Read: {read}.)", hint=NO_SERVERS_HINT)
    return config
