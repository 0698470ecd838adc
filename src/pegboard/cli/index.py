"""`pegboard index build | status | verify`: the file behind `pegboard search`."""

from __future__ import annotations

import argparse
import asyncio
import time
from pathlib import Path

from pegboard.cli import output
from pegboard.cli.context import load_with_servers
from pegboard.cli.progress import Progress
from pegboard.config.model import Config
from pegboard.engine import load_catalog
from pegboard.errors import IndexDamaged, PegboardError
from pegboard.index.keeper import keeper_of, read_parts
from pegboard.store.arrays import open_arrays
from pegboard.types import Json


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument(
        "action",
        choices=("build", "status", "verify"),
        help="build: make it now; status: what there is; verify: read all of it and compare checksums",
    )
    parser.add_argument("--anew", action="store_true", help="with build: take nothing over from the index before")


def run(args: argparse.Namespace) -> int:
    """Does what the action says."""
    config = load_with_servers(args)
    if args.action == "build":
        return asyncio.run(_build(config, args))
    return _status(config, args) if args.action == "status" else _verify(config, args)


async def _build(config: Config, args: argparse.Namespace) -> int:
    catalog = load_catalog(config)
    if not catalog.tools:
        raise PegboardError("There are no tools to index yet.", hint="`pegboard refresh` asks the servers for them.")
    start = time.perf_counter()
    with Progress() as progress:
        keeper = keeper_of(config, progress)
        previous = None if args.anew else keeper.open()[0]
        built = await keeper.build(catalog.tools, catalog.version, previous)
    seconds = time.perf_counter() - start
    size = keeper.path.stat().st_size if keeper.path.is_file() else 0
    if args.json:
        output.emit(
            {
                "file": str(keeper.path),
                "bytes": size,
                "tools": len(catalog.tools),
                "read": built.read,
                "embedded": built.embedded,
                "seconds": round(seconds, 3),
                "warnings": built.warnings,
            }
        )
        return 0 if built.kept else 1
    for warning in built.warnings:
        output.warn(f"warning: {output.printable(warning)}")
    output.say(
        f"{len(catalog.tools):,} tools indexed in {seconds:.1f} s ({built.read:,} read, {built.embedded:,} embedded, "
        f"{size / 1e6:.1f} MB): {keeper.path if built.kept else 'not kept'}"
    )
    return 0 if built.kept else 1


def _status(config: Config, args: argparse.Namespace) -> int:
    keeper, catalog = keeper_of(config), load_catalog(config)
    index, problem = keeper.open()
    about = index.parts.about if index else None
    state = "missing" if about is None else ("current" if keeper.current(index, catalog.version) else "out of date")
    report: Json = {"file": str(keeper.path), "state": "damaged" if problem else state}
    if about is not None:
        size = keeper.path.stat().st_size
        report |= {
            "tools": about.tools,
            "servers": len(about.servers),
            "embedder": about.embedder or "none",
            "age_s": round(max(time.time() - about.built_at, 0)),
            "bytes": size,
            "bytes_per_tool": round(size / max(about.tools, 1)),
        }
    if problem:
        report["problem"] = problem
    if args.json:
        output.emit(report)
        return 0
    for key, value in report.items():
        output.say(f"{key.replace('_', ' '):14}  {output.printable(str(value))}")
    if report["state"] != "current":
        output.say("The next search brings it up to date; so does `pegboard index build`.")
    return 0


def _verify(config: Config, args: argparse.Namespace) -> int:
    path = keeper_of(config).path
    wrong, size = _examined(path)
    if args.json:
        output.emit({"file": str(path), "ok": not wrong, "problems": wrong})
    elif wrong:
        output.say(f"{path}: {'; '.join(wrong)} `pegboard index build --anew` makes it anew.")
    else:
        output.say(f"{path}: {size / 1e6:.1f} MB, all as it was written.")
    return 1 if wrong else 0


def _examined(path: Path) -> tuple[list[str], int]:
    """What is wrong with the file, and how much of it was read."""
    try:
        file = open_arrays(path)
        read_parts(file)
    except FileNotFoundError:
        return ["There is no index yet."], 0
    except OSError as error:
        return [f"It cannot be read: {error.strerror}."], 0
    except IndexDamaged as error:
        return [error.message], 0
    damaged = [f"{name} does not match its checksum." for name in file.damaged()]
    return damaged, sum(array.nbytes for array in file.arrays.values())
