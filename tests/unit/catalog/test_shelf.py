"""What is kept of servers between runs."""

from __future__ import annotations

from pathlib import Path

from pegboard.catalog.shelf import Shelf
from pegboard.config.model import Config, ServerConfig, ServerSpec, StoreConfig
from pegboard.errors import StartFailed
from pegboard.store.files import DiskFiles
from pegboard.types import Listing

TOOL = {"name": "read", "inputSchema": {"type": "object"}}


def config_of(folder: Path, *specs: ServerSpec) -> Config:
    return Config(servers={spec.name: spec for spec in specs}, store=StoreConfig(cache_dir=str(folder)))


def remote(name: str = "docs") -> ServerSpec:
    return ServerSpec(name=name, config=ServerConfig(url="https://docs.example.com/mcp"))


def test_what_was_put_is_found_again(tmp_path: Path) -> None:
    config = config_of(tmp_path, remote())
    Shelf(config, DiskFiles()).put(config.servers["docs"], Listing(tools=(TOOL,)))
    snapshots, warnings = Shelf(config, DiskFiles()).snapshots()
    assert [tool.name for tool in snapshots["docs"].tools] == ["read"]
    assert warnings == []


def test_a_private_list_is_kept_from_whoever_signs_in_next(tmp_path: Path) -> None:
    config = config_of(tmp_path, remote())
    ann = Shelf(config, DiskFiles(), lambda _: "ann")
    ann.put(config.servers["docs"], Listing(tools=(TOOL,), cache_scope="private"))
    assert "docs" in ann.snapshots()[0]
    assert Shelf(config, DiskFiles(), lambda _: "bob").snapshots() == ({}, [])


def test_a_public_list_is_for_everyone(tmp_path: Path) -> None:
    config = config_of(tmp_path, remote())
    Shelf(config, DiskFiles(), lambda _: "ann").put(config.servers["docs"], Listing(tools=(TOOL,)))
    assert "docs" in Shelf(config, DiskFiles(), lambda _: "bob").snapshots()[0]


def test_the_last_error_is_kept_until_the_server_answers(tmp_path: Path) -> None:
    config = config_of(tmp_path, remote())
    spec = config.servers["docs"]
    shelf = Shelf(config, DiskFiles())
    assert shelf.error_of(spec) is None
    shelf.put_error(spec, StartFailed("docs", "it is out", hint="Wait."))
    kept = Shelf(config, DiskFiles()).error_of(spec)
    assert kept is not None
    assert (kept.message, kept.hint) == ("docs: it is out", "Wait.")
    shelf.put(spec, Listing(tools=(TOOL,)))
    assert shelf.error_of(spec) is None


def test_a_note_that_cannot_be_read_or_written_is_no_error(tmp_path: Path) -> None:
    config = config_of(tmp_path / "a-file", remote())
    (tmp_path / "a-file").write_text("in the way")
    shelf = Shelf(config, DiskFiles())
    shelf.put_error(config.servers["docs"], StartFailed("docs", "it is out"))
    assert shelf.error_of(config.servers["docs"]) is None


def test_disabled_and_misconfigured_servers_are_not_looked_up(tmp_path: Path) -> None:
    off = ServerSpec(name="off", config=ServerConfig(command="x", enabled=False))
    wrong = ServerSpec(name="wrong", config=ServerConfig(command="x"), problem="bad manifest")
    config = config_of(tmp_path, off, wrong)
    shelf = Shelf(config, DiskFiles())
    for spec in config.servers.values():
        shelf.put(spec, Listing(tools=(TOOL,)))
    assert shelf.snapshots() == ({}, [])
