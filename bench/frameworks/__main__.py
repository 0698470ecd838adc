"""`python -m bench.frameworks [--sizes 1000,10000] [--only NAME] [--json FILE]`: every driver that can be imported."""

from __future__ import annotations

import argparse
import asyncio
import json
from importlib import import_module
from pathlib import Path
from types import ModuleType

import msgspec

from bench.frameworks.rows import Row, Share, print_rows, print_shares

SIZES = (1_000, 10_000, 50_000)
_NO_DRIVERS = {"__init__", "__main__", "rows"}


def drivers(only: list[str] | None = None) -> dict[str, ModuleType]:
    """The drivers that can be imported here; says of the others what they lack."""
    found: dict[str, ModuleType] = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem in _NO_DRIVERS or (only and path.stem not in only):
            continue
        try:
            found[path.stem] = import_module(f"bench.frameworks.{path.stem}")
        except ImportError as error:
            print(f"  {path.stem} is left out: {error}")
    return found


async def measured(found: dict[str, ModuleType], sizes: list[int]) -> tuple[list[Row], list[Share]]:
    """All rows and shares, a driver after the other."""
    rows: list[Row] = []
    shares: list[Share] = []
    for driver in found.values():
        rows += await driver.rows(sizes)
        shares += await driver.shares()
    return rows, shares


def run(sizes: list[int], only: list[str] | None = None) -> dict[str, object]:
    """Measures, prints both tables, and gives the figures."""
    rows, shares = asyncio.run(measured(drivers(only), sizes))
    print_rows(rows)
    print_shares(shares)
    return {"steps": msgspec.to_builtins(rows), "prefixes": msgspec.to_builtins(shares)}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="bench.frameworks", description=__doc__)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="how many tools, with commas between")
    parser.add_argument("--only", action="append", metavar="NAME", help="just this driver; may repeat")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    args = parser.parse_args()
    results = run([int(each) for each in args.sizes.split(",")], args.only)
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
