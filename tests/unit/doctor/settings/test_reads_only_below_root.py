"""Nothing but the machine it is given is looked at: every file that is opened or listed lies below its root."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.homes.golden_homes import AGENTS, golden

# In a process of its own, as a hook can never be taken off again.
_WATCHED = """
import sys
from pathlib import Path
from pegboard.doctor.settings.machine import Machine
from pegboard.doctor.settings import read

root, home, project = map(Path, sys.argv[1:4])
environ = {"HOME": str(home), "PATH": str(home / ".local/bin"), "SHELL": "/bin/zsh"}
machine = Machine(home=home, cwd=project, environ=environ, platform="linux", root=root, starts=False)
read.read_states(machine, [project])  # whatever is imported late is imported now
seen = []
def watch(event, args):
    if event in ("open", "os.listdir", "os.scandir", "subprocess.Popen", "socket.connect", "os.remove", "os.rename"):
        seen.append((event, str(args[0]), args[2] if event == "open" else 0))
sys.addaudithook(watch)
read.read_states(machine, [project])
for each in seen:
    print(*each, sep="\\t")
"""


@pytest.mark.parametrize("agent", AGENTS)
def test_only_what_lies_below_the_root_is_opened(agent: str, tmp_path: Path) -> None:
    home = golden(agent, tmp_path / "machine")

    done = subprocess.run(
        [sys.executable, "-c", _WATCHED, str(home.root), str(home.folder), str(home.project)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={"HOME": str(tmp_path / "nobody"), "PATH": "/nowhere", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    events = [line.split("\t") for line in done.stdout.splitlines()]

    opened = [path for event, path, _ in events if event == "open"]
    assert len(opened) >= 2
    assert [path for _, path, _ in events if not Path(path).is_relative_to(home.root)] == []
    assert {event for event, _, _ in events} <= {"open", "os.listdir", "os.scandir"}
    # Nothing is opened for writing, and nothing twice.
    assert {int(flags) & 0b11 for event, _, flags in events if event == "open"} == {0}
    assert len(opened) == len(set(opened))
