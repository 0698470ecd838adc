"""The main job, for real: five MCP servers behind four tools, and a real MCP client that works with them.

Everything happens in a temporary folder. The command line is run as you would type it; the client is the official
Python SDK's, talking to `pegboard serve` over stdio. `make demo` runs this.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

SERVERS = Path(__file__).resolve().parent / "servers"
PEGBOARD = Path(sys.executable).with_name("pegboard")
WIDTH = 48
CONFIG = """\
[surface]
mode = "on"                     # few tools as these are, all of them are deferred

[store]
cache_dir = "{folder}/cache"
state_dir = "{folder}/state"

[servers.notes]                 # three examples that come with Pegboard
command = "{python}"
args = ["{servers}/notes.py"]
env = {{ NOTES_FILE = "{folder}/data/notes.db" }}

[servers.units]
command = "{python}"
args = ["{servers}/units.py"]

[servers.calendar]
command = "{python}"
args = ["{servers}/calendar_server.py"]
exclude = ["delete_*"]          # not for agents

[servers.git]                   # and two that everybody uses
command = "{python}"
args = ["-m", "mcp_server_git"]

[servers.time]
command = "{python}"
args = ["-m", "mcp_server_time", "--local-timezone", "UTC"]
"""


def main() -> None:
    """Tells the story, step by step."""
    with tempfile.TemporaryDirectory(prefix="pegboard-demo-") as name:
        folder = Path(name)
        (folder / "data").mkdir()
        (folder / "pegboard.toml").write_text(CONFIG.format(python=sys.executable, servers=SERVERS, folder=folder))
        demo = Demo(folder)
        demo.title("1. Five servers are configured. Ask each one once; the answers are cached on disk.")
        demo.run("refresh")
        demo.title("2. From now on every tool is known at once, and no server runs.")
        took = demo.run("search", "how many kilometres is a marathon of 26.2 miles", "--limit", "1")
        demo.remark(f"{took * 1000:.0f} ms for the whole command; server processes running: {running_servers()}")
        demo.title("3. An agent connects to `pegboard serve`, as it would to any MCP server.")
        asyncio.run(work(demo))
        demo.title("4. What that saved.")
        demo.plot_savings()


async def work(demo: Demo) -> None:
    """What an agent does: look, search, call, call several."""
    started = time.perf_counter()
    served = StdioServerParameters(command=str(PEGBOARD), args=["serve"], cwd=demo.folder, env=demo.environ)
    async with Client(served) as client:
        listed = (await client.list_tools()).tools
        took = (time.perf_counter() - started) * 1000
        demo.remark(f"connected and listed in {took:.0f} ms; server processes running: {running_servers()}")
        print(f"  The model sees {len(listed)} tools: {', '.join(tool.name for tool in listed)}")
        await demo.call(client, "search_tools", {"query": "save a note about the offer, then schedule a meeting"})
        await demo.call(client, "search_tools", {"query": "grind some coffee"})
        note = {"text": "The offer is due on Friday.", "tags": ["sales"]}
        await demo.call(client, "call_tool", {"name": "notes__add_note", "arguments": note})
        demo.remark("numbers as text are mended where the schema leaves no doubt, and the server is started:")
        miles = {"value": "26.2", "from_unit": "mi", "to_unit": "km"}
        await demo.call(client, "call_tool", {"name": "units__convert", "arguments": miles})
        several = [
            {"name": "get_current_time", "arguments": {"timezone": "Asia/Tokyo"}},
            {"name": "notes__search_notes", "arguments": {"query": "offer"}},
            {"name": "git_push_force", "arguments": {}},
        ]
        await demo.call(client, "batch_tools", {"calls": several})


class Demo:
    """Runs real commands and calls, and shows them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = {**os.environ, "XDG_CONFIG_HOME": str(folder)}

    def title(self, text: str) -> None:
        print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)

    def remark(self, text: str) -> None:
        print(f"  ({text})", flush=True)

    def run(self, *arguments: str) -> float:
        print(f"$ pegboard {' '.join(repr(each) if ' ' in each else each for each in arguments)}", flush=True)
        start = time.perf_counter()
        subprocess.run([PEGBOARD, *arguments], cwd=self.folder, env=self.environ, check=False, timeout=120)
        return time.perf_counter() - start

    async def call(self, client: Client, name: str, arguments: dict[str, Any]) -> None:
        print(f"> {name} {json.dumps(arguments, ensure_ascii=False)}")
        result = await client.call_tool(name, arguments)
        for block in result.content:
            print("  " + getattr(block, "text", f"[{block.type}]").replace("\n", "\n  "), flush=True)

    def plot_savings(self) -> None:
        """`pegboard stats` as a table and two bars."""
        stats = json.loads(self._output("stats", "--json"))
        saved = stats["total"]
        full, ours = saved["not_sent"], saved["own_tools"] + saved["asked"] + saved["answered"]
        for label, tokens in (("every schema", full), ("with Pegboard", ours)):
            print(f"  {label:14} {'█' * max(1, round(WIDTH * tokens / max(full, ours)))} {tokens:,} tokens")
        rows = (("schemas not sent", full), ("Pegboard's own tools", -saved["own_tools"]),
                ("searches asked", -saved["asked"]), ("their answers", -saved["answered"]),
                ("net", saved["net"]))  # fmt: skip
        for label, tokens in rows:
            print(f"  {label:22} {tokens:>8,}")
        print("  For one list; a client sends its tools with every turn. `pegboard stats` says more.")

    def _output(self, *arguments: str) -> str:
        command = [str(PEGBOARD), *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environ, check=True, capture_output=True, text=True, timeout=60
        )
        return done.stdout


def running_servers() -> int:
    """How many of the configured servers run now."""
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=False).stdout
    marks = (str(SERVERS), "mcp_server_git", "mcp_server_time")
    return sum(any(mark in line for mark in marks) for line in listing.splitlines())


if __name__ == "__main__":
    main()
