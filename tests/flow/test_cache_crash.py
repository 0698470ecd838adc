"""However a process that writes a cache file ends, the file is the old one or the new one."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pegboard.catalog.cache import cache_key, encode, read_snapshot, write_snapshot
from pegboard.config.model import ServerConfig, ServerSpec
from pegboard.store.files import DiskFiles
from pegboard.types import Listing

WRITER = Path(__file__).with_name("crashing_writer.py")
KEY = cache_key(ServerSpec(name="files", config=ServerConfig(command="files")))
MOST_CALLS = 40


def listing(*tools):
    schema = {"type": "object", "properties": {"path": {"type": "string", "description": "Where it lies."}}}
    return Listing(tools=tuple({"name": name, "description": f"Does {name}.", "inputSchema": schema} for name in tools))


OLD, NEW = listing("read"), listing("read", "write", "move")


def writer(path, content, how, which):
    command = [sys.executable, str(WRITER), str(path), str(content), how, str(which)]
    return subprocess.run(command, timeout=30, check=False, capture_output=True, text=True)


def write_and_crash(path, content, how, which):
    return writer(path, content, how, which).returncode


def tool_names(path):
    snapshot, warning = read_snapshot(DiskFiles(), path, KEY)
    assert warning == ""
    return [tool.name for tool in snapshot.tools] if snapshot else None


@pytest.fixture
def content(tmp_path):
    path = tmp_path / "content"
    path.write_bytes(encode(NEW, KEY, now=1.0, salt=b""))
    return path


@pytest.mark.parametrize("existing", [True, False], ids=["over an old file", "where none was"])
@pytest.mark.parametrize("how", ["kill-before", "kill-half", "kill-after"])
def test_a_kill_at_every_call_that_changes_the_disk_leaves_old_or_new(tmp_path, content, how, existing):
    before = ["read"] if existing else None
    after = ["read", "write", "move"]
    seen = []
    for which in range(1, MOST_CALLS):
        path = tmp_path / str(which) / "tools.json"
        if existing:
            assert write_snapshot(DiskFiles(), path, OLD, KEY) == ""
        ended = write_and_crash(path, content, how, which)
        seen.append(tool_names(path))
        # Whoever comes next is not in the way of what the killed one left.
        assert write_snapshot(DiskFiles(), path, NEW, KEY) == ""
        assert tool_names(path) == after
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
    assert ended == 0, "the writer never finished: there are more calls than were tried"
    switch = seen.index(after)
    assert seen == [before] * switch + [after] * (len(seen) - switch), "once new, it stays new"
    assert switch >= 4, "the kills before the rename were tried"
    assert len(seen) - switch >= 3, "and so were those after it"


def test_the_content_is_on_the_disk_before_its_name_and_the_name_before_the_end(tmp_path, content):
    calls = writer(tmp_path / "tools.json", content, "trace", 0).stdout.split()
    renamed = calls.index("replace")
    assert calls.index("write") < calls.index("fsync") < renamed
    assert "write" not in calls[calls.index("fsync") :]
    assert "fsync" in calls[renamed:]


@pytest.mark.parametrize("failure", ["ENOSPC", "EIO", "EROFS", "EACCES", "EDQUOT"])
def test_an_error_at_every_such_call_leaves_old_or_new_and_no_litter(tmp_path, content, failure):
    refused = 0
    for which in range(1, MOST_CALLS):
        path = tmp_path / str(which) / "tools.json"
        write_snapshot(DiskFiles(), path, OLD, KEY)
        ended = write_and_crash(path, content, failure, which)
        assert tool_names(path) in (["read"], ["read", "write", "move"])
        assert [entry.name for entry in path.parent.iterdir()] == ["tools.json"]
        if ended == 0:
            break
        assert ended in (3, 4)
        refused += ended == 3
    assert ended == 0, "the writer never finished: there are more calls than were tried"
    assert refused >= 5


def test_a_reader_beside_a_busy_writer_never_sees_a_torn_file(tmp_path):
    path = tmp_path / "tools.json"
    write_snapshot(DiskFiles(), path, OLD, KEY)
    contents = [tmp_path / "one", tmp_path / "two"]
    for file, tools in zip(contents, (OLD, NEW), strict=True):
        file.write_bytes(encode(tools, KEY, now=1.0, salt=b""))
    script = (
        "import sys; from pathlib import Path; from pegboard.store.files import DiskFiles\n"
        "one, two = (Path(name).read_bytes() for name in sys.argv[2:])\n"
        "for _ in range(60):\n"
        "    DiskFiles().write(Path(sys.argv[1]), two); DiskFiles().write(Path(sys.argv[1]), one)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(path), *map(str, contents)]) as busy:
        seen = set()
        while busy.poll() is None:
            seen.add(tuple(tool_names(path) or ()))
        assert busy.returncode == 0
    assert seen <= {("read",), ("read", "write", "move")}
    assert tool_names(path) == ["read"]
