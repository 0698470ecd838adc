"""What every command needs: the configuration its flags ask for."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from pegboard.config.load import load
from pegboard.errors import PegboardError

if TYPE_CHECKING:
    from pegboard.config.model import Config

_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_SPAN = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s*(s|m|min|h|d|w)?")
NO_SERVERS = "No servers are configured."
NO_SERVERS_HINT = (
    "`pegboard import` finds the ones your agents already have; or write [servers.<name>] into pegboard.toml, "
    "or point at a file you have: pegboard --config .mcp.json tools"
)


def seconds(text: str) -> float:
    """A flag's length of time; for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected seconds, as in 30 or 2.5, got {text!r}")
    return value


def time_span(text: str) -> float:
    """A flag's length of time with its unit, in seconds: 90s, 15min, 12h, 7d, 4w; for argparse."""
    found = _SPAN.fullmatch(text.strip().lower())
    if not found:
        raise argparse.ArgumentTypeError(f"expected a length of time, as in 90s, 15min, 12h, 7d or 4w, got {text!r}")
    return float(found[1]) * _UNITS[found[2] or "d"]


def port(text: str) -> int:
    """A flag's TCP port; for argparse."""
    if not text.isdecimal() or int(text) not in range(65536):
        raise argparse.ArgumentTypeError(f"expected a port, 0 to 65535, got {text!r}")
    return int(text)


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
