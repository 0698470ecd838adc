"""The main job, for real: three MCP servers, a catalog that is there before any of them runs, and a call.

Everything happens in a temporary folder with the real command line, as you would type it. `make demo` runs this.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SERVERS = Path(__file__).resolve().parent / "servers"
PEGBOARD = Path(sys.executable).with_name("pegboard")
CONFIG = """\
[servers.notes]
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
"""


def main() -> None:
    """Tells the story, step by step."""
    with tempfile.TemporaryDirectory(prefix="pegboard-demo-") as name:
        folder = Path(name)
        (folder / "data").mkdir()
        (folder / "pegboard.toml").write_text(CONFIG.format(python=sys.executable, servers=SERVERS, folder=folder))
        demo = Demo(folder)
        demo.title("1. Three servers are configured; nobody has asked them anything yet.")
        demo.run("servers")
        demo.title("2. Ask each one once. The answers are cached on disk.")
        demo.run("refresh")
        demo.title("3. From now on every tool is known at once, and no server runs.")
        took = demo.run("tools")
        demo.remark(f"{took * 1000:.0f} ms for the whole command; server processes running: {running_servers()}")
        demo.title("4. Say what you want; the right tool comes first. Still no server runs.")
        demo.run("search", "how many kilometres is a marathon of 26.2 miles", "--limit", "2")
        demo.run("search", "save a note about the offer, then schedule a meeting with Ana", "--limit", "3")
        demo.run("search", "grind some coffee")
        demo.title("5. A call starts the one server it needs.")
        demo.run("call", "units__convert", json.dumps({"value": 26.2, "from_unit": "mi", "to_unit": "km"}))
        demo.title("6. A server breaks. Its tools stay known, and the roster says what is wrong.")
        demo.lose_notes()
        demo.run("refresh", "notes")
        demo.run("servers")
        demo.title("7. A wrong name is answered with the right one.")
        demo.run("call", "notes__ad_note", "{}")


class Demo:
    """Runs real commands and shows them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environ = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "XDG_CONFIG_HOME": str(folder)}

    def title(self, text: str) -> None:
        print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}")

    def remark(self, text: str) -> None:
        print(f"  ({text})")

    def run(self, *arguments: str) -> float:
        print(f"$ pegboard {' '.join(repr(each) if ' ' in each else each for each in arguments)}", flush=True)
        start = time.perf_counter()
        subprocess.run([PEGBOARD, *arguments], cwd=self._folder, env=self._environ, check=False, timeout=120)
        return time.perf_counter() - start

    def lose_notes(self) -> None:
        """The folder of the notes is gone, as when a disk is not mounted."""
        shutil.rmtree(self._folder / "data")


def running_servers() -> int:
    """How many of the example servers run now."""
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=False).stdout
    return sum(str(SERVERS) in line for line in listing.splitlines())


if __name__ == "__main__":
    main()
