"""Servers for tests: where they lie and how to start them. All are processes of their own.

`plain` behaves well and starts fast, `hostile` and `hostile_http` misbehave in one named way each, `legacy_sse` speaks
the HTTP+SSE transport of 2024-11-05, and `EXAMPLES` are the servers of the demo, made with the official SDK.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers.hostile import MODES as HOSTILE_MODES
from tests.servers.hostile_http import MODES as HOSTILE_HTTP_MODES

__all__ = [
    "EXAMPLES",
    "HOSTILE_HTTP_MODES",
    "HOSTILE_MODES",
    "PLAIN_TOOLS",
    "example_command",
    "example_http",
    "gateway_command",
    "gateway_http",
    "hostile_command",
    "hostile_http",
    "legacy_sse",
    "offering_command",
    "plain_command",
]

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "examples" / "servers"
PLAIN_TOOLS = ("echo", "add", "slow", "fail", "env", "progress", "ask", "big", "pid")
"""The named tools of `plain`, in listing order; filler comes after them."""

_PORT = r"\d+"
_ISOLATED = (sys.executable, "-IS")
"""They need the standard library alone; without site-packages they start in half the time."""


def plain_command(*arguments: str) -> list[str]:
    """Starts `plain.py` on stdio; its docstring lists the options."""
    return [*_ISOLATED, str(HERE / "plain.py"), *arguments]


def hostile_command(mode: str, *arguments: str) -> list[str]:
    """Starts `hostile.py` on stdio in one of `HOSTILE_MODES`."""
    return [*_ISOLATED, str(HERE / "hostile.py"), mode, *arguments]


def example_command(name: str, *arguments: str) -> list[str]:
    """Starts one of the example servers (`notes`, `units`, `calendar_server`) on stdio, or as its arguments say."""
    return [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments]


def gateway_command(*arguments: str) -> list[str]:
    """Starts `gateway_server.py` on stdio, or as its arguments say; a warning is an error there too."""
    return [sys.executable, "-W", "error", str(HERE / "gateway_server.py"), *arguments]


@contextmanager
def gateway_http(*arguments: str) -> Iterator[str]:
    """Runs `gateway_server.py` over streamable HTTP on a free port; gives the address of its MCP endpoint."""
    with _running(gateway_command("--http", "0", *arguments)) as process:
        yield _announced(process, r"http://\S+")


def offering_command(*arguments: str) -> list[str]:
    """Starts `offering.py` on stdio: prompts and resources."""
    return [*_ISOLATED, str(HERE / "offering.py"), *arguments]


@contextmanager
def hostile_http(mode: str, *arguments: str) -> Iterator[str]:
    """Runs `hostile_http.py` in one of `HOSTILE_HTTP_MODES`; gives the address of its MCP endpoint."""
    with _running([*_ISOLATED, str(HERE / "hostile_http.py"), mode, *arguments]) as process:
        yield f"http://127.0.0.1:{_announced(process, _PORT)}/mcp"


@contextmanager
def legacy_sse(*arguments: str) -> Iterator[str]:
    """Runs `legacy_sse.py`, whose arguments are those of `plain.py`; gives the address of its event stream."""
    with _running([*_ISOLATED, str(HERE / "legacy_sse.py"), *arguments]) as process:
        yield f"http://127.0.0.1:{_announced(process, _PORT)}/sse"


@contextmanager
def example_http(name: str, *arguments: str) -> Iterator[str]:
    """Runs an example server over streamable HTTP on a free port; gives the address of its MCP endpoint."""
    with _running(example_command(name, "--http", "0", *arguments)) as process:
        yield _announced(process, r"http://\S+")


@contextmanager
def _running(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    # stderr is inherited, so that pytest shows it when a test fails, and no pipe of ours can fill up.
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _announced(process: subprocess.Popen[str], pattern: str) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()  # a server that dies closes the pipe; a mute one meets the test's own time-out
    match = re.search(pattern, line)
    if match is None:
        message = f"{process.args!r} announced {line!r} instead of where it listens (exit code {process.poll()})"
        raise RuntimeError(message)
    return match.group()
