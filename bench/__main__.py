"""`python -m bench [--json FILE]`: everything, one after the other."""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from pathlib import Path

from bench import calls, catalog, start


def main() -> None:
    """Runs all benchmarks in one go."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    args = parser.parse_args()
    print(f"{time.strftime('%Y-%m-%d')}  Python {platform.python_version()}  {platform.system()} {platform.machine()}")
    results: dict[str, object] = {}
    for name, run in (("start", start.run), ("catalog", catalog.run)):
        with tempfile.TemporaryDirectory() as folder:
            results[name] = run(Path(folder))
    results["calls"] = calls.run()
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
