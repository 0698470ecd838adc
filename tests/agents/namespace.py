"""A world without a network for one program: nothing but its own loopback, and nothing in it outlives it."""

from __future__ import annotations

import fcntl
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ALONE = ["unshare", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 0x1


def refusal() -> str:
    """Why this machine makes no such world; empty when it does."""
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return "there is no unshare here, so agents could reach the network"
    ran = subprocess.run([*ALONE, "true"], capture_output=True, text=True, timeout=30, check=False)
    return f"unshare may not: {ran.stderr.strip()}" if ran.returncode else ""


def run_alone(
    command: list[str], *, env: Mapping[str, str], folder: Path, seconds: float
) -> subprocess.CompletedProcess[str]:
    """Runs it there to its end. When it takes longer it is killed, with all that it has started."""
    return subprocess.run(
        [*ALONE, *command], cwd=folder, env=dict(env), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=seconds, check=False,
    )  # fmt: skip


def raise_loopback() -> None:
    """Makes 127.0.0.1 work, from the inside."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = struct.pack("16sh14x", b"lo", 0)
        _, flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, _GET_FLAGS, asked))
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", flags | _UP))


def is_cut_off() -> bool:
    """Whether there is nothing but loopback."""
    return [name for _, name in socket.if_nameindex() if name != "lo"] == []
