"""`python -m bench.proxy [--only PART] [--json FILE]`: what the proxy adds, holds and saves, beside others."""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.proxy import first_byte, held, session, slow_reader
from bench.proxy.subjects import everyone, versions_of_rivals
from pegboard.types import Json

PARTS = {"first_byte": first_byte.run, "held": held.run, "slow_reader": slow_reader.run}
SESSION = "session"


def run(folder: Path, only: Sequence[str] = ()) -> Json:
    """Every part, or these."""
    wanted = only or (*PARTS, SESSION)
    _raise_limit()
    failed: dict[str, str] = {}
    result: Json = {"load": [os.getloadavg()[0]]}
    if any(part in wanted for part in PARTS):
        with everyone(folder, failed) as subjects:
            result["versions"] = versions_of_rivals()
            print(f"  load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {result['versions']}")
            for part, measure in PARTS.items():
                if part in wanted:
                    result[part] = measure(subjects, failed)
    if SESSION in wanted:
        result[SESSION] = session.run(folder)
    result["load"].append(os.getloadavg()[0])
    for name, reason in failed.items():
        print(f"  not measured: {name}: {reason}")
    return {**result, "failed": failed}


def _raise_limit() -> None:
    """Five hundred streams have two ends each, in every process that is started here."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 8192 if hard == resource.RLIM_INFINITY else min(8192, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="bench.proxy", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    parser.add_argument("--only", action="append", choices=(*PARTS, SESSION), help="run just this; may repeat")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = run(Path(folder), args.only or ())
    if args.json:
        args.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
