"""Tells when a process has ended: by its pid, not by its pipes, which a grandchild may hold open long after."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import threading
from collections.abc import Callable

Watch = Callable[["subprocess.Popen[bytes]", Callable[[], None]], None]
"""Calls back once on the running loop when the process has ended. Where it can, it leaves the zombie to be reaped."""


def watch(process: subprocess.Popen[bytes], ended: Callable[[], None]) -> None:
    """By the best means this system has."""
    try:
        watch_by_pidfd(process, ended)
    except (AttributeError, OSError):  # not Linux, an old kernel, a sandbox that forbids it, or no descriptor left
        watch_by_thread(process, ended)


def watch_by_pidfd(process: subprocess.Popen[bytes], ended: Callable[[], None]) -> None:
    """By a descriptor that becomes readable when the process ends. Linux only."""
    loop = asyncio.get_running_loop()
    descriptor = os.pidfd_open(process.pid)

    def readable() -> None:
        loop.remove_reader(descriptor)
        os.close(descriptor)
        ended()

    try:
        loop.add_reader(descriptor, readable)
    except OSError:
        os.close(descriptor)
        raise


def watch_by_thread(process: subprocess.Popen[bytes], ended: Callable[[], None]) -> None:
    """By a thread that waits. Works everywhere, at the price of the thread."""
    loop = asyncio.get_running_loop()

    def wait() -> None:
        if hasattr(os, "waitid"):
            # WNOWAIT leaves the zombie, whose pid nobody else can get before its group has been killed.
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        else:
            process.wait()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to tell
            loop.call_soon_threadsafe(ended)

    threading.Thread(target=wait, name=f"pegboard waits for {process.pid}", daemon=True).start()
