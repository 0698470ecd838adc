"""The proxy as a process: whether it runs, begun in the background, ended for certain.

What a file says of a process may be old, and its number another's by now: the proxy itself is asked before anything
is done to it. Above: the proxy's commands. Below: the file that it keeps, HTTP and signals.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pegboard.cli.progress import Progress
from pegboard.cli.proxy_places import listen_address
from pegboard.errors import PegboardError
from pegboard.proxy.tally import Running

if TYPE_CHECKING:
    import subprocess

LOG_FILE = "proxy.log"
ASK_SECONDS = 2.0
START_SECONDS = 20.0
STOP_SECONDS = 15.0
"""Longer than streams are given to finish."""
KILL_SECONDS = 5.0
_PAUSE = 0.05
_LARGEST = 4 * 1024 * 1024


def last(state_dir: Path) -> Running | None:
    """What the last proxy told of itself, running or not; None when there was none."""
    from pegboard.proxy.serve import RUNNING_FILE
    from pegboard.store.files import DiskFiles

    try:
        return msgspec.json.decode(DiskFiles(_LARGEST).read(state_dir / RUNNING_FILE), type=Running)
    except (OSError, ValueError, msgspec.DecodeError):
        return None


def running(state_dir: Path) -> Running | None:
    """The proxy of this state folder as it tells of itself now; None when it does not answer."""
    known = last(state_dir)
    answer = None if known is None else ask(known.listen)
    return answer if known is not None and answer is not None and answer.pid == known.pid else None


def ask(listen: str) -> Running | None:
    """What a proxy at this address tells of itself; None when there is none, or something else is."""
    import http.client

    host, port = listen_address(listen)
    # Not by the way of HTTP_PROXY: this is the machine itself.
    connection = http.client.HTTPConnection(host, port, timeout=ASK_SECONDS)
    try:
        connection.request("GET", "/_pegboard/status", headers={"Host": listen})
        answer = connection.getresponse()
        content = answer.read(_LARGEST) if answer.status == 200 else b""
        return msgspec.json.decode(content, type=Running)
    except (OSError, http.client.HTTPException, ValueError, msgspec.DecodeError):
        return None
    finally:
        connection.close()


def is_taken(listen: str) -> bool:
    """Whether somebody accepts connections there."""
    import socket

    host, port = listen_address(listen)
    if not port:
        return False
    try:
        socket.create_connection((host, port), timeout=ASK_SECONDS).close()
    except OSError:
        return False
    return True


# ── Beginning ────────────────────────────────────────────────────────────────────────────────────────────────────


def start_detached(flags: list[str], state_dir: Path) -> Running:
    """Begins a proxy that outlives this process, and waits until it answers."""
    import subprocess

    log = state_dir / LOG_FILE
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "pegboard", "proxy", "start", "--detached", *flags],
            cwd=os.sep,  # no folder is held that someone wants to remove
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=descriptor,
            start_new_session=True,
        )
    finally:
        os.close(descriptor)
    return _once_it_answers(process, state_dir, log, log.stat().st_size)


def _once_it_answers(process: subprocess.Popen[bytes], state_dir: Path, log: Path, size: int) -> Running:
    found: list[Running] = []

    def answers() -> bool:
        if process.poll() is not None:
            return True
        known = last(state_dir)
        answer = ask(known.listen) if known is not None and known.pid == process.pid else None
        if answer is not None and answer.pid == process.pid:
            found.append(answer)
        return bool(found)

    _wait(answers, START_SECONDS, "starting the proxy")
    if found:
        return found[0]
    process.kill()
    process.wait()
    words = _said(log, size) or f"it did not answer within {START_SECONDS:.0f} s"
    raise PegboardError(f"The proxy did not start: {words}", hint=f"Its log: {log}")


def _said(log: Path, size: int) -> str:
    """What was written to the log since it had this size."""
    with log.open("rb") as file:
        file.seek(min(size, log.stat().st_size))
        return file.read(_LARGEST).decode(errors="replace").strip().removeprefix("pegboard: ")


# ── Ending ───────────────────────────────────────────────────────────────────────────────────────────────────────


def end(proxy: Running, patience: float = STOP_SECONDS) -> bool:
    """Ends a proxy that has just answered; says whether it went by itself, and not by force."""
    if not _signal(proxy.pid, signal.SIGTERM):
        return True
    if _wait(lambda: not is_alive(proxy.pid), patience, "waiting for streams to finish"):
        return True
    _signal(proxy.pid, signal.SIGKILL)
    if not _wait(lambda: not is_alive(proxy.pid), KILL_SECONDS, "ending the proxy"):
        raise PegboardError(f"The proxy, process {proxy.pid}, does not end.")
    return False


def is_alive(pid: int) -> bool:
    """Whether there is such a process, and not merely what is left of one."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    """One that has ended and whose parent has not looked yet, where the system tells."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return False


def _signal(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        raise PegboardError(f"Process {pid} belongs to another user.", hint="Let them end it.") from None
    return True


def _wait(until: Callable[[], bool], seconds: float, what: str) -> bool:
    """Whether it came true in time."""
    begin = time.monotonic()
    with Progress() as progress:
        while not until():
            passed = time.monotonic() - begin
            if passed > seconds:
                return False
            progress(what, int(passed), int(seconds))
            time.sleep(_PAUSE)
    return True
