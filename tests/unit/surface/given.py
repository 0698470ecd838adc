"""Catalogs, settings and own tools that the tests of surfaces start from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from pegboard.config.model import SurfaceConfig
from pegboard.surface.activation import Activation
from pegboard.surface.compose import Surface, compose
from pegboard.surface.stock import stock_of
from pegboard.types import Json, Tool
from tests.unit.index.given import tool

OWN: tuple[Json, ...] = (
    {"name": "search_tools", "description": "Finds tools.", "inputSchema": {"type": "object"}},
    {"name": "call_tool", "description": "Calls one.", "inputSchema": {"type": "object"}},
)
OWN_NAMES = ("search_tools", "call_tool")


def catalog(*names: str, **more: Any) -> dict[str, Tool]:
    """Tools by public name; `server__name` each, with the same keywords for all."""
    made = (tool(name.partition("__")[2], f"Does {name}.", name.partition("__")[0], **more) for name in names)
    return {each.public_name: each for each in made}


def surface(
    tools: Mapping[str, Tool],
    activation: Activation | None = None,
    *,
    own: Sequence[Json] = OWN,
    complete: bool = True,
    allow: Sequence[str] | None = None,
    scopes: Sequence[str] | None = None,
    list_active: bool = True,
    **config: Any,
) -> Surface:
    """A surface with deferral on and loaded tools listed, unless said otherwise."""
    settings = SurfaceConfig(**{"mode": "on", **config})
    return compose(
        stock_of(tools, settings.pinned, complete=complete),
        settings,
        own,
        activation,
        lists=lists_of(allow),
        scopes=scopes,
        list_active=list_active,
    )


def lists_of(allow: Sequence[str] | None) -> tuple[tuple[str, ...], ...]:
    """The allowlists of a caller that has this one, or none."""
    return () if allow is None else (tuple(allow),)


def active(*names: str, cap: int = 24) -> Activation:
    """A conversation that has loaded these, the first one last."""
    return Activation(cap=cap).activated(names, 1.0).activation


def encoded(made: Surface) -> list[bytes]:
    """The list as it goes over a wire."""
    return [msgspec.json.encode(definition) for definition in made.definitions]


def shared(one: Iterable[bytes], other: Iterable[bytes]) -> int:
    """How many definitions two lists have in common from their beginning."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count
