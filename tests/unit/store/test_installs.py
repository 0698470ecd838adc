"""The journal on disk, and what it does when something else has been there."""

from __future__ import annotations

import pytest

from pegboard.config.importers.found import Places
from pegboard.config.installers.clients import Launch, client_named, sites
from pegboard.config.installers.plan import Wish, plan
from pegboard.errors import ConfigError, PegboardError
from pegboard.store.files import DiskFiles
from pegboard.store.installs import Installs

TEXT = '{"mcpServers": {"a": {"command": "a"}}}'


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


class Desk:
    def __init__(self, root):
        self.file = root / ".cursor" / "mcp.json"
        self.file.parent.mkdir()
        self.file.write_text(TEXT)
        self.config = root / "pegboard.toml"
        self.state = root / "state"
        self.installs = Installs(self.state)
        places = Places(home=root, cwd=root / "x", environ={}, platform="linux")
        [site] = sites(client_named("cursor"), "user", places)
        self.plan = plan(site, TEXT, "", Wish(launch=Launch(("/p", "serve"))), places)

    def apply(self, installs=None):
        return (installs or self.installs).apply(self.plan, self.config, None)


def test_a_file_that_changed_after_it_was_shown_is_not_touched(desk):
    desk.file.write_text("{}")
    with pytest.raises(PegboardError, match="changed in the meantime"):
        desk.apply()
    assert desk.file.read_text() == "{}"
    assert not desk.config.exists()


def test_a_change_that_comes_between_the_writes_is_kept_and_the_half_install_can_be_taken_back(desk):
    class Meddled(DiskFiles):
        def write(self, path, content):
            super().write(path, content)
            if path == desk.config:
                desk.file.write_text('{"mine": 1}')

    with pytest.raises(PegboardError, match="changed in the meantime"):
        desk.apply(Installs(desk.state, Meddled()))
    assert desk.file.read_text() == '{"mine": 1}'
    [install] = desk.installs.journal().installs
    outcome = desk.installs.undo(install)
    assert outcome.action == "edited"
    assert outcome.servers == ("a",)
    assert not desk.config.exists()


def test_a_backup_that_is_not_what_was_written_is_not_put_back(desk):
    backup = desk.apply()
    backup.write_text("{}")
    [install] = desk.installs.journal().installs
    with pytest.raises(PegboardError, match="not what was written"):
        desk.installs.undo(install)
    assert "pegboard" in desk.file.read_text()
    assert desk.installs.journal().installs == (install,)


@pytest.mark.parametrize("content", ["{", '{"version": 9, "installs": []}', '{"installs": 1}'])
def test_a_journal_that_cannot_be_understood_is_never_overwritten(desk, content):
    desk.state.mkdir()
    (desk.state / "installs.json").write_text(content)
    with pytest.raises(ConfigError, match=r"installs\.json"):
        desk.apply()
    assert (desk.state / "installs.json").read_text() == content
    assert desk.file.read_text() == TEXT


def test_a_folder_that_cannot_be_written_to_is_an_error_in_words(desk):
    class Full(DiskFiles):
        def write(self, path, content):
            raise OSError(28, "No space left on device")

    with pytest.raises(PegboardError, match="cannot be written: No space left on device"):
        desk.apply(Installs(desk.state, Full()))
    assert desk.file.read_text() == TEXT


def test_the_backup_goes_with_the_record_it_belongs_to(desk):
    backup = desk.apply()
    assert backup.read_text() == TEXT
    [install] = desk.installs.journal().installs
    desk.installs.undo(install)
    assert not backup.exists()
    assert desk.file.read_text() == TEXT
    assert desk.installs.journal().installs == ()
