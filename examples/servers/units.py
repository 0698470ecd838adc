"""A unit converter, without state: `python units.py [--http 8000]`."""

from __future__ import annotations

import argparse
import socket
from typing import Literal

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

Kind = Literal["length", "mass", "volume", "speed", "data", "temperature"]

# How much of the kind's first unit one of each is; temperatures have an offset as well.
FACTORS: dict[Kind, dict[str, float]] = {
    "length": {"m": 1, "km": 1000, "cm": 0.01, "mm": 0.001, "mi": 1609.344, "yd": 0.9144, "ft": 0.3048, "in": 0.0254},
    "mass": {"kg": 1, "g": 0.001, "t": 1000, "lb": 0.45359237, "oz": 0.028349523125, "st": 6.35029318},
    "volume": {"l": 1, "ml": 0.001, "m3": 1000, "gal": 3.785411784, "pt": 0.473176473, "cup": 0.2365882365},
    "speed": {"m/s": 1, "km/h": 1 / 3.6, "mph": 0.44704, "kn": 1852 / 3600},
    "data": {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30},
    "temperature": {"K": 1, "C": 1, "F": 5 / 9},
}
OFFSETS = {"C": 273.15, "F": 459.67 * 5 / 9}
KIND_OF: dict[str, Kind] = {unit: kind for kind, units in FACTORS.items() for unit in units}

PURE = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)

server = MCPServer("units", title="Units", version="1.0", log_level="WARNING")


class Conversion(BaseModel):
    """A quantity in another unit."""

    value: float
    unit: str
    kind: Kind
    text: str = Field(description="The whole conversion, to be read by people.")


class Units(BaseModel):
    """Units by kind."""

    units: dict[Kind, list[str]]


def known(unit: str) -> Kind:
    """The kind of a unit, or a failure that names those there are."""
    if unit not in KIND_OF:
        raise ToolError(f"Unknown unit {unit!r}. Known units: {', '.join(KIND_OF)}.")
    return KIND_OF[unit]


@server.tool(title="Convert a quantity", annotations=PURE, meta={"com.example/category": "maths"})
def convert(value: float, from_unit: str, to_unit: str) -> Conversion:
    """Converts lengths, masses, volumes, speeds, amounts of data and temperatures: miles to km, F to C, GiB to GB."""
    kind, other = known(from_unit), known(to_unit)
    if kind != other:
        raise ToolError(f"{from_unit} measures {kind} and {to_unit} measures {other}: they do not convert.")
    first = value * FACTORS[kind][from_unit] + OFFSETS.get(from_unit, 0)
    result = round((first - OFFSETS.get(to_unit, 0)) / FACTORS[kind][to_unit], 9)
    return Conversion(value=result, unit=to_unit, kind=kind, text=f"{value:g} {from_unit} = {result:g} {to_unit}")


@server.tool(title="List units", annotations=PURE)
def list_units(kind: Kind | None = None) -> Units:
    """The units that can be converted, of one kind or of all."""
    return Units(units={name: list(units) for name, units in FACTORS.items() if kind in (None, name)})


def main() -> None:
    """Serves on stdio, or over HTTP on a port of this machine (0 takes a free one)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--http", type=int, metavar="PORT", help="serve streamable HTTP on 127.0.0.1 instead of stdio")
    if (port := parser.parse_args().http) is None:
        return server.run("stdio")
    with socket.create_server(("127.0.0.1", port)) as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
        return uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning")).run([listener])


if __name__ == "__main__":
    main()
