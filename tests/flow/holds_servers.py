"""A stand-in for Pegboard that tests kill: holds servers and does nothing else. `python holds_servers.py PLAN FOLDER`.

Says `ready` on stdout when the plan is carried out, and then waits to be killed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import psutil

from pegboard.config.model import GatewayConfig
from tests.pools import PLAIN_CALL, hostile, new_pool, plain, server, until
from tests.servers import plain_command

STARTING = 12


def guards() -> list[int]:
    """The living guards among our children."""
    living = [each for each in psutil.Process().children() if each.status() != psutil.STATUS_ZOMBIE]
    return [each.pid for each in living if "guard.py" in " ".join(each.cmdline())]


async def hold_all_sorts(folder: Path) -> None:
    """Servers that do not go when asked, that brought others along, and one that is in the middle of a call."""
    shell = ["sh", "-c", 'sleep 300 & exec "$@"', "sh", *plain_command()]
    specs = [
        plain("plain"),
        server("with_sibling", shell),
        hostile("ignores_sigterm_and_eof", name="stubborn"),
        hostile("forks_daemon", str(folder / "daemon"), name="daemonic"),
        hostile("grandchild_holds_stdout", name="parent"),
    ]
    pool = new_pool(*specs)
    await asyncio.gather(*(pool.get(spec.name).list_tools() for spec in specs))
    call = asyncio.create_task(pool.get("plain").call_tool("slow", {"seconds": 300}, PLAIN_CALL))
    print("ready", flush=True)
    await call


async def start_many(folder: Path) -> None:
    """Many starts at once, all under way when the kill comes."""
    specs = [plain(f"n{number}", "--delay-start", "300") for number in range(STARTING)]
    pool = new_pool(*specs, gateway=GatewayConfig(max_starting=STARTING))
    print("ready", flush=True)
    await asyncio.gather(*(pool.get(spec.name).list_tools() for spec in specs))


async def lose_the_guard(folder: Path) -> None:
    """The guard is killed between two starts."""
    pool = new_pool(hostile("ignores_sigterm_and_eof", name="first"), plain("second"))
    await pool.get("first").list_tools()
    (lost,) = guards()
    os.kill(lost, signal.SIGKILL)
    await pool.get("second").list_tools()
    await until(lambda: guards() not in ([], [lost]))
    print("ready", flush=True)
    await asyncio.Event().wait()


PLANS = {"all_sorts": hold_all_sorts, "starting": start_many, "guard": lose_the_guard}

if __name__ == "__main__":
    asyncio.run(PLANS[sys.argv[1]](Path(sys.argv[2])))
