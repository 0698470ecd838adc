"""`python -m bench [--only NAME] [--json FILE]`: everything, one after the other. Half an hour on two cores."""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench import abstention, calls, catalog, gateways, invoke, quality, record, render, search_speed, start
from bench.doctor import __main__ as doctor
from bench.frameworks import __main__ as frameworks
from bench.proxy import __main__ as proxy

PARTS: dict[str, Callable[[Path], object]] = {
    "start": start.run,
    "catalog": catalog.run,
    "calls": lambda _: calls.run(),
    "gateways": gateways.run,
    "frameworks": lambda _: frameworks.run(list(frameworks.SIZES)),
    "proxy": proxy.run,
    "doctor": doctor.run,
    "record": record.run,
    "invoke": lambda _: invoke.run(),
    "search_speed": search_speed.run,
    "render": lambda _: render.run(),
    "abstention": lambda _: abstention.run(),
    "quality": lambda _: quality.run(),
}


def main() -> None:
    """Runs all benchmarks in one go."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    parser.add_argument("--only", action="append", choices=PARTS, help="run just this; may repeat")
    args = parser.parse_args()
    print(f"{time.strftime('%Y-%m-%d')}  Python {platform.python_version()}  {platform.system()} {platform.machine()}")
    results: dict[str, object] = {}
    for name in args.only or PARTS:
        with tempfile.TemporaryDirectory() as folder:
            results[name] = PARTS[name](Path(folder))
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
