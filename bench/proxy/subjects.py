"""What stands before the API: Pegboard, nginx, LiteLLM; each a process of its own, on a port of its own.

One that cannot be had or does not start is told with the reason, and the others go on.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec
import psutil

from bench.rivals.environment import BIN, ROOT, installed, versions

VENVS = ROOT / ".venv-proxies"
LITELLM = ("litellm[proxy]",)
START_S = 120.0
STOP_S = 10.0
KEY = "sk-ant-bench"
PASSES, NATIVE, BRIDGE = "Pegboard, passed through", "Pegboard, native", "Pegboard, bridge"
DIRECT, NGINX, LITE = "direct", "nginx", "LiteLLM"

_NGINX = """daemon off; worker_processes 1; worker_rlimit_nofile 8192; pid {folder}/pid; error_log {folder}/error.log;
{user} events {{ worker_connections 4096; }}
http {{
  access_log off; tcp_nodelay on; keepalive_requests 1000000; client_max_body_size 64m; client_body_buffer_size 1m;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  upstream api {{ server 127.0.0.1:{api}; keepalive 64; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{ proxy_pass http://api; proxy_http_version 1.1; proxy_set_header Connection "";
                  proxy_buffering off; proxy_read_timeout 600s; }}
  }}
}}
"""


class Failed(Exception):
    """It cannot be had here, or did not start."""


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """One that can be asked."""

    name: str
    port: int
    path: str = "/v1/messages"
    headers: tuple[str, ...] = ()
    """What it wants besides."""
    pid: int = 0
    """Of the process, with all below it; 0 when there is nothing in between."""

    def tree(self) -> list[psutil.Process]:
        """All processes."""
        if not self.pid:
            return []
        first = psutil.Process(self.pid)
        return [first, *first.children(recursive=True)]

    def cpu_ms(self) -> float:
        """So far, in all."""
        return sum(sum(each.cpu_times()[:2]) for each in self.tree()) * 1000

    def rss_mb(self) -> float:
        """Memory that is resident."""
        return sum(each.memory_info().rss for each in self.tree()) / 2**20

    def descriptors(self) -> int:
        """Files and sockets that are open."""
        return sum(each.num_fds() for each in self.tree())


def free_port() -> int:
    """One that nobody listens on just now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def process(
    command: Sequence[str], log: Path, environ: Mapping[str, str] | None = None, *, speaks: bool = False
) -> Iterator[subprocess.Popen]:
    """A process that ends with the block, and all that it started; what it says is kept, or read when it `speaks`."""
    with log.open("wb") as said:
        out = subprocess.PIPE if speaks else said
        started = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=said, cwd=log.parent, env=environ
        )
    try:
        yield started
    finally:
        below = psutil.Process(started.pid).children(recursive=True) if started.poll() is None else []
        started.terminate()
        with suppress(subprocess.TimeoutExpired):
            started.wait(STOP_S)
        for each in below:
            with suppress(psutil.Error):
                each.kill()
        if started.poll() is None:
            started.kill()
        started.wait()
        if started.stdout is not None:
            started.stdout.close()


@contextmanager
def upstream(folder: Path) -> Iterator[int]:
    """The API; gives its port."""
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
    command = [sys.executable, "-m", "bench.proxy.upstream"]
    with process(command, folder / "upstream.log", environ, speaks=True) as started:
        assert started.stdout is not None
        yield int(started.stdout.readline())


def _until_listening(port: int, started: subprocess.Popen, log: Path) -> None:
    ends = time.monotonic() + START_S
    while time.monotonic() < ends and started.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    lines = log.read_text(errors="replace").strip().splitlines() or ["it did not say why"]
    raise Failed(f"did not start: {lines[-1][:200]}")


@contextmanager
def pegboard(name: str, executor: str, api: int, folder: Path) -> Iterator[Subject]:
    """As a person would start it, with a file that names the upstream; under `anthropic`, so that nothing leaves."""
    place, port = folder / name.replace(", ", "-").replace(" ", "-"), free_port()
    place.mkdir()
    config = place / "pegboard.toml"
    config.write_text(
        f'[proxy]\nexecutor = "{executor}"\nlisten = "127.0.0.1:{port}"\n'
        f'upstreams = {{ anthropic = "http://127.0.0.1:{api}" }}\n'
        f'[store]\nstate_dir = "{place / "state"}"\ncache_dir = "{place / "cache"}"\n'
    )
    command = [str(Path(sys.executable).with_name("pegboard")), "proxy", "start", "--config", str(config)]
    with process(command, place / "log") as started:
        _until_listening(port, started, place / "log")
        yield Subject(name=name, port=port, path="/anthropic/v1/messages", pid=started.pid)


@contextmanager
def nginx(api: int, folder: Path) -> Iterator[Subject]:
    """One worker, keep-alive to both sides, no buffering of replies, bodies of requests in memory."""
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise Failed("not installed (Debian's package is nginx-light)")
    place, port = folder / "nginx", free_port()
    place.mkdir()
    user = "user root;" if hasattr(os, "geteuid") and os.geteuid() == 0 else ""
    (place / "nginx.conf").write_text(_NGINX.format(folder=place, api=api, port=port, user=user))
    with process([found, "-c", str(place / "nginx.conf"), "-p", str(place)], place / "log") as started:
        _until_listening(port, started, place / "log")
        yield Subject(name=NGINX, port=port, pid=started.pid)


@contextmanager
def litellm(api: int, folder: Path) -> Iterator[Subject]:
    """Its pass-through for Anthropic, with one worker, no database and nothing asked of the network."""
    venv = VENVS / "litellm"
    if not _litellm_version() and (missing := installed(LITELLM, venv)):
        raise Failed(f"not installed: {missing}")
    place, port = folder / "litellm", free_port()
    place.mkdir()
    (place / "config.yaml").write_text("model_list: []\nlitellm_settings:\n  telemetry: false\n")
    master = f"sk-{secrets.token_hex(24)}"  # it does not start without one that is hard to guess
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "TMPDIR")}
    environ = {
        **kept,
        "HOME": str(place),
        "ANTHROPIC_API_BASE": f"http://127.0.0.1:{api}",
        "ANTHROPIC_API_KEY": KEY,
        "LITELLM_MASTER_KEY": master,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOG": "ERROR",
    }
    options = ["--config", str(place / "config.yaml"), "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"]
    with process([str(venv / BIN / "litellm"), *options], place / "log", environ) as started:
        _until_listening(port, started, place / "log")
        headers = (f"x-litellm-api-key: {master}",)
        yield Subject(name=LITE, port=port, path="/anthropic/v1/messages", headers=headers, pid=started.pid)


@contextmanager
def everyone(folder: Path, failed: dict[str, str]) -> Iterator[dict[str, Subject]]:
    """All that can be had, by name, over one API."""
    with ExitStack() as stack:
        api = stack.enter_context(upstream(folder))
        found = {DIRECT: Subject(name=DIRECT, port=api)}
        makers: dict[str, Callable[[], object]] = {
            PASSES: lambda: stack.enter_context(pegboard(PASSES, "native", api, folder)),
            NATIVE: lambda: stack.enter_context(pegboard(NATIVE, "native", api, folder)),
            BRIDGE: lambda: stack.enter_context(pegboard(BRIDGE, "bridge", api, folder)),
            NGINX: lambda: stack.enter_context(nginx(api, folder)),
            LITE: lambda: stack.enter_context(litellm(api, folder)),
        }
        for name, make in makers.items():
            try:
                made = make()
                assert isinstance(made, Subject)
                found[name] = made
            except Failed as error:
                failed[name] = str(error)
        yield found


def versions_of_rivals() -> dict[str, str]:
    """What the others are."""
    found = {}
    if path := shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin"):
        said = subprocess.run([path, "-v"], capture_output=True, text=True, check=False).stderr
        found[NGINX] = said.strip().rpartition("/")[2]
    if version := _litellm_version():
        found[LITE] = version
    return found


def _litellm_version() -> str:
    venv = VENVS / "litellm"
    return versions(("litellm",), venv) if (venv / BIN / "python").exists() else ""
