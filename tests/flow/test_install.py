"""`pegboard install` and `uninstall` as people run them: on a machine with every program."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import stat
import subprocess
import sys
import tomllib
from itertools import count
from pathlib import Path

import pytest

from pegboard.config import jsonc
from pegboard.config.installers.clients import CLIENTS
from tests.unit.config.importers.machine import Machine

PATIENCE = 30
SECRETS = ("ghp_not-a-real-token", "abcdefghijkl", "abc.def.ghi")
IN_PROJECTS = [client.id for client in CLIENTS if client.project]
CRASHING = Path(__file__).with_name("crashing_installer.py")
PEGBOARD = (sys.executable, "-m", "pegboard")
CURSOR = """\
{
  // mine
  "mcpServers": {
    "first": {"command": "first", "autoApprove": ["a"], "disabled": false}, // keep
    /* the second */
    "second": {
      "command": "second",
      "env": {"API_TOKEN": "tok-1234567890"},
      "timeout": 60,
    },
  },
  "other": [1, 2,],
}
"""


class Desk(Machine):
    """A machine on which `pegboard` is run."""

    def __init__(self, root):
        super().__init__(root)
        self.config = self.home / ".config" / "pegboard" / "pegboard.toml"
        self.state = self.home / ".local" / "state" / "pegboard"
        self.cursor = self.home / ".cursor" / "mcp.json"

    def variables(self):
        source = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        return {"HOME": str(self.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **source, **self.environ}

    def run(self, *args, code=0, command=PEGBOARD):
        done = subprocess.run(
            [*command, *args],
            cwd=self.cwd,
            env=self.variables(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def json(self, *args):
        return json.loads(self.run(*args, "--json").stdout)

    def everything(self):
        """Every file but Pegboard's own state, with its mode."""
        files = (path for path in self.home.rglob("*") if path.is_file() and self.state not in path.parents)
        return {path: (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) for path in files}

    def servers(self):
        return tomllib.loads(self.config.read_text("utf-8"))["servers"] if self.config.exists() else {}


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


@pytest.fixture
def full(desk):
    desk.install_everything()
    return desk


@pytest.fixture
def cursor(desk):
    desk.put(".cursor/mcp.json", CURSOR)
    return desk


def started(entry):
    """What the client would run, with `--version` in place of `serve` and its flags, from a bare environment."""
    words = [entry["command"], *entry.get("args", ())] if isinstance(entry["command"], str) else entry["command"]
    command = words[: words.index("serve")]
    assert Path(command[0]).is_absolute()
    bare = {"PATH": "/usr/bin:/bin"}
    return subprocess.run(
        [*command, "--version"], env=bare, capture_output=True, text=True, timeout=PATIENCE, check=True
    )


def entry_in(text, file, table):
    document = tomllib.loads(text.removeprefix("\ufeff")) if file.endswith(".toml") else jsonc.parse(text)
    for key in table:
        document = document[key]
    return document["pegboard"]


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.id)
def test_every_client_gets_an_entry_that_starts_and_then_its_bytes_back(full, client):
    before = full.everything()
    answer = full.json("install", client.id, "--yes")

    for changed in answer["files"]:
        text = Path(changed["file"]).read_bytes().decode()
        table = client.table(jsonc.parse(text) if not changed["file"].endswith(".toml") else {})
        assert started(entry_in(text, changed["file"], table)).stdout.startswith("pegboard ")
        assert set(changed["moved"].values()) <= set(full.servers())
        assert not [name for name in changed["moved"] if f'"{name}": {{' in text]
    assert any(changed["moved"] for changed in answer["files"])
    assert "nothing to do" in full.run("install", client.id, "--yes").stdout
    full.run("uninstall", client.id)
    assert full.everything() == before


@pytest.mark.parametrize("client", IN_PROJECTS)
def test_a_projects_settings_are_changed_alone_and_get_their_bytes_back(full, client):
    full.put(full.project / ".codex" / "config.toml", '[mcp_servers.a]\ncommand = "a"\n')
    full.put(full.project / ".cursor" / "mcp.json", '{"mcpServers": {"a": {"command": "./a", "cwd": "sub"}}}')
    full.put(full.project / ".mcp.json", '{"mcpServers": {"a": {"command": "a"}}}')
    before = full.everything()
    answer = full.json("install", client, "--yes", "--project", str(full.project))

    changed = {path for path, content in full.everything().items() if before.get(path) != content}
    assert changed == {Path(answer["files"][0]["file"]), full.project / "pegboard.toml"}
    assert answer["command"][-2:] == ["--config", str(full.project / "pegboard.toml")]
    assert all(Path(item["file"]).is_relative_to(full.project) for item in answer["files"])
    full.run("uninstall", client, "--scope", "project")
    assert full.everything() == before


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.id)
def test_a_file_that_is_not_there_is_made_and_goes_with_the_uninstall(desk, client):
    answer = desk.json("install", client.id, "--yes")

    file = Path(answer["files"][0]["file"])
    text = file.read_text("utf-8")
    assert started(entry_in(text, str(file), client.table({}))).returncode == 0
    desk.run("uninstall", client.id)
    assert not file.exists()
    assert not desk.config.exists()
    assert not file.parent.exists() or file.parent == desk.home


def test_clients_uninstalled_in_any_order_leave_every_byte_as_it_was(full):
    before = full.everything()
    names = [client.id for client in CLIENTS]
    for name in names:
        full.run("install", name, "--yes")
    listed = {(row["client"], row["scope"]): row["installed"] for row in full.json("install")}
    assert all(listed[(name, "user")] for name in names)
    for name in names[1::2] + names[::2]:
        full.run("uninstall", name)
    assert full.everything() == before


def test_no_secret_is_shown_and_copies_are_private(full):
    for client in CLIENTS:
        done = full.run("install", client.id, "--yes")
        assert not [secret for secret in SECRETS if secret in done.stdout + done.stderr]
    assert full.servers()["github"]["env"] == {"GITHUB_PERSONAL_ACCESS_TOKEN": "ghp_not-a-real-token"}
    journal = (full.state / "installs.json").read_text("utf-8")
    assert not [secret for secret in SECRETS if secret in journal]
    private = [full.config, *(path for path in full.state.rglob("*") if path.is_file())]
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o600}
    assert stat.S_IMODE((full.state / "install-backups").stat().st_mode) == 0o700


def test_nothing_is_written_without_a_yes(cursor):
    before = cursor.everything()

    done = cursor.run("install", "cursor", "--dry-run")
    assert '-    "first": {"command": "first"' in done.stdout
    assert "+[servers.second]" in done.stdout
    assert "tok-1234567890" not in done.stdout
    assert "nobody to ask" in cursor.run("install", "cursor", code=1).stderr
    assert cursor.json("install", "cursor", "--dry-run")["installed"] is False
    assert cursor.everything() == before
    assert not cursor.state.exists()


def in_terminal(desk, answer):
    ours, theirs = pty.openpty()
    command = [*PEGBOARD, "install", "cursor"]
    with subprocess.Popen(
        command, cwd=desk.cwd, env=desk.variables(), stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = ""
        while select.select([ours], [], [], PATIENCE)[0]:
            try:
                piece = os.read(ours, 4096).decode(errors="replace")
            except OSError:
                break
            if not piece:
                break
            asked = "[y/N]" in shown
            shown += piece
            if "[y/N]" in shown and not asked:
                os.write(ours, answer.encode())
        os.close(ours)
        assert process.wait(PATIENCE) == 0, shown
    return shown


@pytest.mark.parametrize(("answer", "agreed"), [("y\n", True), ("\n", False), ("no\n", False), ("\x04", False)])
def test_in_a_terminal_the_person_sees_the_change_and_decides(cursor, answer, agreed):
    shown = in_terminal(cursor, answer)

    assert "+[servers.first]" in shown
    assert ("pegboard" in cursor.cursor.read_text("utf-8")) is agreed
    assert cursor.config.exists() is agreed


def test_what_was_changed_since_is_kept_and_the_servers_come_back_to_their_places(cursor):
    cursor.run("install", "cursor", "--yes")
    installed = cursor.cursor.read_text("utf-8")
    cursor.cursor.write_text(installed.replace('"other": [1, 2,]', '"other": [3]'), "utf-8")

    done = cursor.run("uninstall", "cursor")
    assert "was changed since" in done.stdout
    assert cursor.cursor.read_text("utf-8") == CURSOR.replace('"other": [1, 2,]', '"other": [3]')
    assert not cursor.config.exists()


def test_a_client_that_rewrote_its_file_and_a_server_that_came_since_lose_nothing(cursor):
    cursor.run("install", "cursor", "--yes")
    document = jsonc.parse(cursor.cursor.read_text("utf-8"))
    document["mcpServers"] |= {"new": {"command": "new"}, "first": {"command": "mine"}}
    document["mcpServers"]["pegboard"]["autoApprove"] = ["search_tools"]
    cursor.cursor.write_text(json.dumps(document, indent=4), "utf-8")

    [answer] = cursor.json("uninstall", "cursor")
    assert (answer["action"], answer["servers"], answer["kept"]) == ("edited", ["second"], ["first"])
    assert Path(answer["backup"]).read_text("utf-8") == CURSOR
    original = jsonc.parse(CURSOR)
    expected = {"second": original["mcpServers"]["second"], "new": {"command": "new"}, "first": {"command": "mine"}}
    assert jsonc.parse(cursor.cursor.read_text("utf-8")) == {**original, "mcpServers": expected}


def test_servers_that_came_after_an_install_are_moved_by_the_next_and_all_come_back(cursor):
    cursor.run("install", "cursor", "--yes")
    text = cursor.cursor.read_text("utf-8")
    cursor.cursor.write_text(text.replace('"pegboard": {', '"late": {"command": "late"},\n    "pegboard": {'), "utf-8")
    answer = cursor.json("install", "cursor", "--yes")
    assert answer["files"][0]["moved"] == {"late": "late"}

    cursor.run("uninstall", "cursor")
    servers = jsonc.parse(cursor.cursor.read_text("utf-8"))["mcpServers"]
    assert servers == {**jsonc.parse(CURSOR)["mcpServers"], "late": {"command": "late"}}
    assert not cursor.config.exists()


def test_another_server_of_the_same_name_gets_a_name_of_its_own_and_the_same_one_is_not_written_twice(cursor):
    cursor.config.parent.mkdir(parents=True)
    mine = '# mine\n[servers.first]\ncommand = "first"\n\n[servers.second]\ncommand = "elsewhere"\n'
    cursor.config.write_text(mine)

    answer = cursor.json("install", "cursor", "--yes")
    assert answer["files"][0]["moved"] == {"first": "first", "second": "second-cursor"}
    assert answer["files"][0]["added"] == ["second-cursor"]
    cursor.run("uninstall", "cursor")
    assert cursor.config.read_text() == mine


def test_a_server_that_two_clients_share_stays_until_the_last_of_them_is_uninstalled(cursor):
    cursor.put(".codeium/windsurf/mcp_config.json", '{"mcpServers": {"first": {"command": "first"}}}')
    cursor.run("install", "cursor", "--yes")
    cursor.run("install", "windsurf", "--yes")

    assert "windsurf has it behind Pegboard too" in cursor.run("uninstall", "cursor").stdout
    assert list(cursor.servers()) == ["first"]
    cursor.run("uninstall", "windsurf")
    assert not cursor.config.exists()


def test_a_server_that_was_edited_in_pegboards_file_stays_there(cursor):
    cursor.run("install", "cursor", "--yes")
    text = cursor.config.read_text("utf-8")
    cursor.config.write_text(text.replace('command = "first"', 'command = "first"\ntags = ["x"]'), "utf-8")

    assert "first stays" in cursor.run("uninstall", "cursor").stdout
    assert cursor.servers() == {"first": {"command": "first", "tags": ["x"]}}
    assert cursor.cursor.read_text("utf-8") == CURSOR


@pytest.mark.parametrize("after", ["uninstall", "install"])
@pytest.mark.parametrize("when", [pytest.param("before", marks=pytest.mark.slow), "after"])
def test_a_killed_install_can_always_be_mended(tmp_path, when, after):
    """Backup, journal, pegboard.toml, client: four writes, and a kill before or after each of them."""
    for number in count(1):
        desk = Desk(tmp_path / f"{number}")
        desk.put(".cursor/mcp.json", CURSOR)
        killed = subprocess.run(
            [sys.executable, CRASHING, when, str(number), "install", "cursor", "--yes"],
            cwd=desk.cwd,
            env=desk.variables(),
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        if killed.returncode == 0:
            break
        assert killed.returncode == -9, killed.stderr
        here = jsonc.parse(desk.cursor.read_text("utf-8"))["mcpServers"]
        assert {"first", "second"} <= here.keys() | desk.servers().keys()
        if after == "install":
            desk.run("install", "cursor", "--yes")
            assert list(jsonc.parse(desk.cursor.read_text("utf-8"))["mcpServers"]) == ["pegboard"]
            assert list(desk.servers()) == ["first", "second"]
        recorded = (desk.state / "installs.json").exists()
        desk.run("uninstall", "cursor", code=0 if recorded else 1)
        assert desk.cursor.read_text("utf-8") == CURSOR
        assert not desk.config.exists()
    assert number == 5


@pytest.mark.parametrize("when", [pytest.param("before", marks=pytest.mark.slow), "after"])
def test_a_killed_uninstall_can_be_run_again(tmp_path, when):
    for number in count(1):
        desk = Desk(tmp_path / f"{number}")
        desk.put(".cursor/mcp.json", CURSOR)
        desk.put(desk.config, "# mine\n")
        desk.run("install", "cursor", "--yes")
        killed = subprocess.run(
            [sys.executable, CRASHING, when, str(number), "uninstall", "cursor"],
            cwd=desk.cwd,
            env=desk.variables(),
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        recorded = json.loads((desk.state / "installs.json").read_text())["installs"]
        desk.run("uninstall", "cursor", code=0 if recorded else 1)
        assert desk.cursor.read_text("utf-8") == CURSOR
        assert desk.config.read_text() == "# mine\n"
        if killed.returncode == 0:
            break
    assert number == 4


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "mcp.json:1: This is not valid JSON"),
        ("[]", "It should hold a table of settings"),
        ('{"mcpServers": []}', "`mcpServers` should be a table of servers"),
        (b"\xff\xfe{\x00}\x00", "not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_understood_is_left_alone_with_words(desk, content, words):
    desk.put(".cursor/mcp.json", content)
    before = desk.everything()

    assert words in desk.run("install", "cursor", "--yes", code=1).stderr
    assert desk.everything() == before
    [row] = desk.json("install")
    assert row["problem"]


def test_a_broken_pegboard_toml_is_left_alone_with_words(cursor):
    cursor.put(cursor.config, "[servers\n")
    before = cursor.everything()

    assert f"{cursor.config}: This is not valid TOML" in cursor.run("install", "cursor", "--yes", code=1).stderr
    assert cursor.everything() == before


def test_a_symbolic_link_and_the_mode_of_the_file_stay(cursor):
    real = cursor.put("dotfiles/mcp.json", CURSOR)
    real.chmod(0o640)
    cursor.cursor.unlink()
    cursor.cursor.symlink_to(real)

    for command in (("install", "cursor", "--yes"), ("uninstall", "cursor")):
        cursor.run(*command)
        assert cursor.cursor.is_symlink()
        assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert real.read_text("utf-8") == CURSOR


def test_only_what_is_named_moves_and_nothing_when_servers_are_kept(cursor):
    kept = cursor.json("install", "cursor", "--yes", "--keep-servers")
    assert kept["files"][0]["moved"] == {}
    assert list(jsonc.parse(cursor.cursor.read_text("utf-8"))["mcpServers"]) == ["first", "second", "pegboard"]
    assert not cursor.config.exists()
    one = cursor.json("install", "cursor", "--yes", "--only", "second")
    assert one["files"][0]["moved"] == {"second": "second"}
    assert "Did you mean first?" in cursor.run("install", "cursor", "--only", "frst", code=1).stderr

    cursor.run("uninstall", "cursor")
    assert cursor.cursor.read_text("utf-8") == CURSOR


def test_the_flags_and_folders_that_the_person_uses_are_in_the_entry(cursor):
    cursor.environ["XDG_CONFIG_HOME"] = str(cursor.home / "settings")
    cursor.run("install", "cursor", "--yes")
    entry = jsonc.parse(cursor.cursor.read_text("utf-8"))["mcpServers"]["pegboard"]
    assert entry["env"] == {"XDG_CONFIG_HOME": str(cursor.home / "settings")}
    assert (cursor.home / "settings" / "pegboard" / "pegboard.toml").exists()
    cursor.run("uninstall", "cursor")

    named = cursor.home / "mine.toml"
    answer = cursor.json("install", "cursor", "--yes", "--config", str(named))
    assert answer["command"][-3:] == ["serve", "--config", str(named)]
    assert "[servers.first]" in named.read_text()


def test_an_entry_never_names_a_configuration_that_is_not_there(cursor):
    project = cursor.json("install", "cursor", "--yes", "--project", str(cursor.project))
    assert project["command"][-1] == "serve"
    missing = str(cursor.home / "missing.toml")
    done = cursor.run("install", "cursor", "--yes", "--keep-servers", "--config", missing, code=1)
    assert f"There is no file {missing}." in done.stderr


def test_two_at_a_time_are_refused(cursor):
    cursor.state.mkdir(parents=True)
    with (cursor.state / "installs.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "at work" in cursor.run("install", "cursor", "--yes", code=1).stderr
    assert cursor.cursor.read_text("utf-8") == CURSOR


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("install", "cursr"), "Did you mean cursor?"),
        (("uninstall", "cursor"), "No install in Cursor (user) is on record."),
        (("install", "windsurf", "--scope", "project"), "has no settings of its own for a project"),
        (("install", "cursor", "--scope", "user", "--project", "."), "Use one of the two."),
        (("install", "cursor", "--project", "nowhere"), "There is no folder"),
        (("install", "cursor", "--keep-servers", "--only", "x"), "Use one of the two."),
    ],
)
def test_what_cannot_be_done_is_said(desk, args, words):
    assert words in desk.run(*args, code=1).stderr


def test_the_home_folder_is_no_project(desk):
    desk.cwd = desk.home
    assert "The home folder is no project." in desk.run("install", "cursor", "--scope", "project", code=1).stderr


def test_an_uninstall_that_meets_a_broken_file_says_which_and_goes_on_once_it_is_mended(cursor):
    cursor.run("install", "cursor", "--yes")
    installed, config = cursor.cursor.read_text("utf-8"), cursor.config.read_text("utf-8")
    cursor.cursor.write_text(installed + "}", "utf-8")
    cursor.config.write_text(config + "[", "utf-8")

    assert f"{cursor.cursor}: " in cursor.run("uninstall", "cursor", code=1).stderr
    cursor.cursor.write_text(installed, "utf-8")
    assert f"{cursor.config}: " in cursor.run("uninstall", "cursor", code=1).stderr
    assert cursor.cursor.read_text("utf-8") == CURSOR
    cursor.config.write_text(config, "utf-8")
    cursor.run("uninstall", "cursor")
    assert cursor.cursor.read_text("utf-8") == CURSOR
    assert not cursor.config.exists()


def test_a_deleted_file_is_not_brought_back_and_its_servers_stay_with_pegboard(cursor):
    cursor.run("install", "cursor", "--yes")
    cursor.cursor.unlink()

    done = cursor.run("uninstall", "cursor")
    assert "is gone" in done.stdout
    assert set(cursor.servers()) == {"first", "second"}
    assert not cursor.cursor.exists()


def test_an_entry_that_someone_wrote_by_hand_is_replaced_and_comes_back(desk):
    text = '{"mcpServers": {"pegs": {"command": "uvx", "args": ["pegboard", "serve"], "disabled": true}}}'
    desk.put(".cursor/mcp.json", text)
    desk.run("install", "cursor", "--yes")
    entry = jsonc.parse(desk.cursor.read_text("utf-8"))["mcpServers"]["pegs"]
    assert (entry["command"], entry["disabled"]) == (sys.executable, True)

    desk.run("uninstall", "cursor")
    assert desk.cursor.read_text("utf-8") == text
