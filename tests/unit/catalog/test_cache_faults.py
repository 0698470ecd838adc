"""Whatever happens to a cache file, it is noticed, told as a warning, and stops nothing."""

from __future__ import annotations

import errno
import hashlib
import os
from contextlib import contextmanager
from pathlib import Path

import pytest

from pegboard.catalog.cache import CacheMiss, cache_key, decode, encode, read_snapshot, write_snapshot
from pegboard.store.files import READ_CAP, DiskFiles
from tests.unit.catalog.given import NOW, listing, spec, tool

KEY = cache_key(spec())
SCHEMA = {"type": "object", "properties": {"title": {"type": "string"}, "n": {"type": "integer"}}, "required": ["n"]}
CONTENT = encode(
    listing(
        tool("create_issue", "Opens an issue — with “quotes”.", title="Create", inputSchema=SCHEMA),
        tool("close_issue", "Closes one.", annotations={"destructiveHint": True}, inputSchema=SCHEMA),
        tool("list", "Lists them.", outputSchema=SCHEMA),
        {"description": "has no name"},
        server_name="GitHub",
        server_version="2.1",
        protocol_version="2025-11-25",
        instructions="Use list first.",
        ttl_ms=1000,
    ),
    KEY,
    now=NOW,
    salt=b"",
)


def is_noticed(content):
    try:
        decode(content, KEY)
    except CacheMiss as miss:
        return miss.damaged
    return False


def signed(body):
    return b'{"checksum":"sha256:' + hashlib.sha256(body).hexdigest().encode() + b'",\n' + body


def test_every_byte_flipped_one_at_a_time_is_noticed():
    assert decode(CONTENT, KEY).tools
    damaged = bytearray(CONTENT)
    for position, byte in enumerate(CONTENT):
        for mask in (0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xFF):
            damaged[position] = byte ^ mask
            assert is_noticed(bytes(damaged)), f"byte {position} as {byte ^ mask:#x}"
        damaged[position] = byte


def test_a_file_cut_at_any_length_is_noticed():
    for length in range(len(CONTENT)):
        assert is_noticed(CONTENT[:length]), f"cut at {length}"


def test_every_byte_taken_out_or_doubled_is_noticed():
    for position in range(len(CONTENT)):
        assert is_noticed(CONTENT[:position] + CONTENT[position + 1 :])
        assert is_noticed(CONTENT[:position] + CONTENT[position : position + 1] + CONTENT[position:])


@pytest.mark.parametrize("foreign", [b"", b"{}", b"null", b"\x00" * 200, b"not json at all\n" * 20, CONTENT + b"\n"])
def test_what_is_no_cache_file_is_noticed(foreign):
    assert is_noticed(foreign)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\n\n\n\n",
        b'"format":1}\n',
        b'"format":2,"tools":[]}\n',
        CONTENT[87:].replace(b'"format":1', b'"format":2'),
        CONTENT[87:].replace(b'"cacheScope":"public"', b'"cacheScope":"secret"'),
        CONTENT[87:].replace(b'"ttlMs":1000', b'"ttlMs":"soon"'),
    ],
)
def test_a_whole_file_in_a_format_of_another_version_is_passed_over_in_silence(body):
    with pytest.raises(CacheMiss, match="format") as miss:
        decode(signed(body), KEY)
    assert not miss.value.damaged


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"[]", b'"x"', b"{}", b'{"name":7}', b'{"name":"\xff"}', b'{"name":"a","x":' + b"[" * 100_000],
    ids=["empty", "cut", "list", "string", "nameless", "number", "bad utf-8", "deep"],
)
@pytest.mark.parametrize("last", [True, False])
def test_a_well_signed_file_with_a_broken_definition_is_no_crash(line, last):
    start = CONTENT.index(b'"tools":[\n') + len(b'"tools":[\n')
    tools = b'{"name":"good"},\n' + line if last else line + b',\n{"name":"good"}'
    assert is_noticed(signed(CONTENT[87:start] + tools + b"\n]}\n"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "servers" / "github.json"


def test_a_missing_file_is_no_warning(path):
    assert read_snapshot(DiskFiles(), path, KEY) == (None, "")


def test_what_was_written_is_read_without_a_warning(path):
    assert write_snapshot(DiskFiles(), path, listing("a"), KEY) == ""
    snapshot, warning = read_snapshot(DiskFiles(), path, KEY)
    assert warning == ""
    assert snapshot is not None
    assert [one.name for one in snapshot.tools] == ["a"]


def test_a_truncated_file_is_ignored_with_a_warning_that_names_it(path):
    write_snapshot(DiskFiles(), path, listing("a"), KEY)
    path.write_bytes(path.read_bytes()[:-10])
    snapshot, warning = read_snapshot(DiskFiles(), path, KEY)
    assert snapshot is None
    assert str(path) in warning
    assert "damaged or cut short" in warning


def test_a_list_for_another_launch_is_ignored_without_a_warning(path):
    write_snapshot(DiskFiles(), path, listing("a"), KEY)
    assert read_snapshot(DiskFiles(), path, cache_key(spec(args=("--other",)))) == (None, "")


@contextmanager
def as_somebody_else():
    """Permissions do not bind the superuser: step down for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_an_unreadable_file_is_a_warning(path):
    write_snapshot(DiskFiles(), path, listing("a"), KEY)
    path.chmod(0)
    with as_somebody_else():
        snapshot, warning = read_snapshot(DiskFiles(), path, KEY)
    assert snapshot is None
    assert "cannot be read: Permission denied" in warning


def test_a_folder_that_may_not_be_written_is_a_warning(path):
    path.parent.mkdir()
    path.parent.chmod(0o500)
    with as_somebody_else():
        warning = write_snapshot(DiskFiles(), path, listing("a"), KEY)
    assert "tools not cached" in warning
    assert "Permission denied" in warning


def test_a_folder_in_place_of_the_file_is_a_warning_both_ways(path):
    path.mkdir(parents=True)
    assert "Not a regular file" in write_snapshot(DiskFiles(), path, listing("a"), KEY)
    assert "Not a regular file" in read_snapshot(DiskFiles(), path, KEY)[1]


def test_a_file_in_place_of_the_folder_is_a_warning(path):
    path.parent.write_bytes(b"")
    assert "tools not cached" in write_snapshot(DiskFiles(), path, listing("a"), KEY)
    assert "cannot be read" in read_snapshot(DiskFiles(), path, KEY)[1]


class BrokenDisk:
    """Files on a disk that answers everything with one error."""

    def __init__(self, code):
        self.code = code

    def read(self, path: Path) -> bytes:
        raise OSError(self.code, os.strerror(self.code), str(path))

    def write(self, path: Path, content: bytes) -> None:
        raise OSError(self.code, os.strerror(self.code), str(path))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT, errno.ELOOP, errno.ENAMETOOLONG])
def test_no_error_of_a_disk_comes_through(path, code):
    disk = BrokenDisk(code)
    assert os.strerror(code) in write_snapshot(disk, path, listing("a"), KEY)
    snapshot, warning = read_snapshot(disk, path, KEY)
    assert snapshot is None
    assert os.strerror(code) in warning


def test_a_list_too_large_to_be_read_again_is_not_written(path):
    large = {"name": "a", "description": "x" * 250_000}
    many = listing(*({**large, "name": f"tool_{number}"} for number in range(READ_CAP // 250_000 + 1)))
    assert "more than" in write_snapshot(DiskFiles(), path, many, KEY)
    assert not path.exists()
