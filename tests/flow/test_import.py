"""`pegboard import` as people run it: on a machine with every program, in a pipe and in a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import socket
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.unit.config.importers.machine import Machine

PROGRAMS = (
    "npx",
    "uvx",
    "uv",
    "node",
    "docker",
    "python",
    "python3",
    "some-command",
    "helper",
    "muted",
    "slow",
    "filed",
)
SECRETS = ("ghp_not-a-real-token", "abcdefghijkl", "abc.def.ghi")
PATIENCE = 30


class Desk(Machine):
    """A machine on which starting any program, or reaching its one listening address, leaves a trace."""

    def __init__(self, root):
        super().__init__(root)
        self.install_everything()
        self.marker = root / "something was started"
        self.bin = root / "bin"
        traps = [self.bin / name for name in PROGRAMS]
        traps += [self.project / "tools" / "docs-server", self.project / "bin" / "lint"]
        for trap in traps:
            self.put(trap, f"#!/bin/sh\n: > '{self.marker}'\n").chmod(0o755)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        address = f"http://127.0.0.1:{self.listener.getsockname()[1]}/mcp"
        self.put(".codeium/windsurf-next/mcp_config.json", json.dumps({"mcpServers": {"near": {"serverUrl": address}}}))
        self.config = self.home / ".config" / "pegboard" / "pegboard.toml"

    def variables(self):
        return {"HOME": str(self.home), "PATH": f"{self.bin}{os.pathsep}{os.defpath}", "LANG": "C.UTF-8"}

    def run(self, *args, code=0):
        done = subprocess.run(
            [sys.executable, "-m", "pegboard", "import", *args],
            cwd=self.cwd,
            env=self.variables(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    def servers(self):
        return tomllib.loads(self.config.read_text(encoding="utf-8"))["servers"]

    def assert_nothing_was_started(self):
        assert not self.marker.exists()
        with pytest.raises(BlockingIOError):
            self.listener.accept()


@pytest.fixture
def desk(tmp_path):
    desk = Desk(tmp_path)
    yield desk
    desk.listener.close()


def test_without_a_choice_everything_is_listed_whole_and_nothing_is_written(desk):
    done = desk.run()

    assert "npx -y mcp-remote https://cafe.example/mcp --header 'Authorization:$${AUTH_HEADER}'" in done.stdout
    assert "'/Applications/My Tools/fs server' '/Users/zoë/Documents and more' --read-only" in done.stdout
    assert f"from claude-code:user, {desk.home}/.claude.json" in done.stdout
    assert "GITHUB_PERSONAL_ACCESS_TOKEN=***" in done.stdout
    assert "also in cursor:user" in done.stdout
    assert "cannot be imported: It is Pegboard itself." in done.stdout
    assert "Nothing was written" in done.stdout
    assert not desk.config.exists()


@pytest.mark.parametrize(
    "args", [(), ("--json",), ("--all",), ("--all", "--dry-run"), ("--all", "--json"), ("--all", "--dry-run", "--json")]
)
def test_no_secret_is_ever_shown_and_nothing_is_ever_started(desk, args):
    done = desk.run(*args)

    assert not [secret for secret in SECRETS if secret in done.stdout + done.stderr]
    desk.assert_nothing_was_started()


def test_the_traps_would_have_told(desk):
    subprocess.run(["npx", "-y"], env=desk.variables(), timeout=PATIENCE, check=True)
    with socket.create_connection(desk.listener.getsockname(), timeout=PATIENCE):
        pass

    assert desk.marker.exists()
    desk.listener.accept()[0].close()


def test_all_writes_everything_that_can_be_imported_to_a_file_only_its_owner_can_read(desk):
    done = desk.run("--all")

    found = [item for item in desk.find() if item.config]
    assert set(desk.servers()) == {item.key for item in found}
    assert len(found) > 25
    assert desk.servers()["github"]["env"] == {"GITHUB_PERSONAL_ACCESS_TOKEN": "ghp_not-a-real-token"}
    assert stat.S_IMODE(desk.config.stat().st_mode) == 0o600
    assert "github: env.GITHUB_PERSONAL_ACCESS_TOKEN" in done.stderr
    assert "--no-secrets" in done.stderr
    desk.assert_nothing_was_started()


def test_variables_that_the_servers_need_are_named_and_with_them_pegboard_accepts_the_file(desk):
    needed = json.loads(desk.run("--all", "--json").stdout)["unset"]
    assert needed["FIGMA_TOKEN"] == ["figma"]

    done = subprocess.run(
        [sys.executable, "-m", "pegboard", "config", "check"],
        cwd=desk.cwd,
        env=desk.variables() | dict.fromkeys(needed, "x"),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    desk.assert_nothing_was_started()


def test_a_second_import_leaves_what_is_there_byte_for_byte(desk):
    desk.run("github")
    before = desk.config.read_bytes()

    done = desk.run("github", "scratch-db")

    assert "uvx mcp-server-sqlite --db-path ./scratch.db" in done.stdout
    assert "mcp-remote" not in done.stdout
    assert desk.config.read_bytes().startswith(before)
    assert list(desk.servers()) == ["github", "scratch-db"]
    assert "github is already configured" in done.stderr


def test_without_secrets_the_file_has_variables_and_the_person_is_told_which(desk):
    done = desk.run("github", "Café menü ☕", "--no-secrets")

    text = desk.config.read_text(encoding="utf-8")
    assert not [secret for secret in SECRETS if secret in text]
    assert desk.servers()["github"]["env"] == {"GITHUB_PERSONAL_ACCESS_TOKEN": "${GITHUB_PERSONAL_ACCESS_TOKEN}"}
    assert "Set GITHUB_PERSONAL_ACCESS_TOKEN, used by github: env.GITHUB_PERSONAL_ACCESS_TOKEN." in done.stderr


def test_a_dry_run_prints_the_very_text_that_is_then_written(desk):
    dry = desk.run("context7", "local", "--dry-run")
    assert not desk.config.exists()

    desk.run("context7", "local")

    assert desk.config.read_text(encoding="utf-8") == dry.stdout


def test_an_existing_file_keeps_its_mode_its_line_ends_and_the_link_that_leads_to_it(desk):
    real = desk.put("dotfiles/pegboard.toml", "\ufeff[gateway]\r\nmax_starting = 2")
    real.chmod(0o640)
    desk.config.parent.mkdir(parents=True)
    desk.config.symlink_to(real)

    done = desk.run("github")

    assert desk.config.is_symlink()
    assert real.read_bytes().startswith("\ufeff[gateway]\r\nmax_starting = 2\r\n\r\n[servers.github]\r\n".encode())
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert "chmod 600" in done.stderr


@pytest.mark.parametrize("where", [("--project",), ("--to", "other.toml")])
def test_another_file_can_be_chosen(desk, where):
    desk.run("github", *where)

    target = desk.project / ("pegboard.toml" if where == ("--project",) else "other.toml")
    assert list(tomllib.loads(target.read_text(encoding="utf-8"))["servers"]) == ["github"]
    assert not desk.config.exists()


def test_from_narrows_to_a_program_or_one_of_its_places(desk):
    done = desk.run("--from", "cursor", "--from", "zed:project", "--json")

    assert {item["source"] for item in json.loads(done.stdout)["found"]} == {
        "cursor:user",
        "cursor:project",
        "zed:project",
    }


def test_a_source_that_is_asked_for_gives_its_own_copy(desk):
    done = desk.run("github", "--from", "cursor")

    assert "GITHUB_TOKEN is not set; github cannot be used without it." in done.stderr
    assert desk.servers()["github"]["env"] == {"GITHUB_PERSONAL_ACCESS_TOKEN": "${GITHUB_TOKEN}"}


def test_scripts_get_all_of_it_as_json(desk):
    desk.put(".cursor/mcp.json", "{\n  oops\n}")

    answer = json.loads(desk.run("github", "--json").stdout)

    github = next(item for item in answer["found"] if item["key"] == "github")
    assert github["launch"] == "npx -y @modelcontextprotocol/server-github"
    assert github["config"]["env"] == {"GITHUB_PERSONAL_ACCESS_TOKEN": "***"}
    assert [(item["file"], item["line"]) for item in answer["broken"]] == [(str(desk.home / ".cursor/mcp.json"), 2)]
    assert (answer["written"], answer["file"]) == (["github"], str(desk.config))
    assert answer["secrets"] == {"github": ["env.GITHUB_PERSONAL_ACCESS_TOKEN"]}


def test_a_broken_file_is_named_with_its_line_and_the_rest_goes_on(desk):
    desk.put(".cursor/mcp.json", "{\n  oops\n}")

    done = desk.run("--all")

    assert done.stderr.count(f"{desk.home}/.cursor/mcp.json:2: This is not valid JSON") == 1
    assert "github" in desk.servers()


def test_nothing_can_hide_on_the_terminal(desk):
    command = "harmless\x1b[2K\r\u202e \nrm"
    desk.put(
        ".cursor/mcp.json", json.dumps({"mcpServers": {"fine\x1b[8m": {"command": command, "args": ["-rf", "/"]}}})
    )

    done = desk.run()

    assert not {"\x1b", "\r", "\u202e"} & set(done.stdout)
    assert "'harmless\\x1b[2K\\r\\u202e \\nrm' -rf /" in done.stdout


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--from", "curser"), "Did you mean cursor?"),
        (("githubb",), "Did you mean github?"),
        (("github", "--all"), "Both --all and names"),
        (("stream",), "cannot be imported"),
        (("github", "--to", "x.json"), "does not end in .toml"),
        (("github", "--config", "x.toml"), "--to FILE"),
        (("github", "--to", "no-toml.toml"), "not valid TOML"),
        (("github", "--to", "latin.toml"), "not UTF-8"),
        (("github", "--to", "folder.toml"), "cannot be read"),
        (("github", "--to", "inline.toml"), "cannot be added"),
    ],
)
def test_what_cannot_be_done_is_said_in_words_and_nothing_is_written(desk, args, words):
    desk.put(desk.project / "no-toml.toml", "oops")
    desk.put(desk.project / "latin.toml", b"# caf\xe9\n")
    desk.put(desk.project / "inline.toml", "servers = {}\n")
    (desk.project / "folder.toml").mkdir()
    before = {path: path.read_bytes() for path in desk.project.glob("*.toml") if path.is_file()}

    done = desk.run(*args, code=1)

    assert words in done.stderr
    assert {path: path.read_bytes() for path in desk.project.glob("*.toml") if path.is_file()} == before
    assert not desk.config.exists()


def test_a_machine_without_any_of_the_programs_is_told_so(tmp_path):
    desk = Desk(tmp_path)
    desk.listener.close()
    desk.home = tmp_path / "empty"
    desk.home.mkdir()
    desk.cwd = desk.home

    assert desk.run().stdout == "No servers were found in other programs.\n"


def in_terminal(desk, *answers):
    """Runs the command in a terminal of its own and types an answer each time it asks."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "pegboard", "import", "--from", "cline:cli", "--from", "codex"]
    with subprocess.Popen(
        command, cwd=desk.cwd, env=desk.variables(), stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as process:
        os.close(theirs)
        shown, waiting = "", list(answers)
        while select.select([ours], [], [], PATIENCE)[0]:
            try:
                shown += os.read(ours, 4096).decode()
            except OSError:
                break
            if waiting and shown.count("all or none: ") == len(answers) - len(waiting) + 1:
                os.write(ours, waiting.pop(0).encode())
        os.close(ours)
        assert process.wait(PATIENCE) == 0, shown
    return shown


def test_in_a_terminal_the_person_is_asked_and_only_what_they_pick_is_written(desk):
    shown = in_terminal(desk, "2-3 muted\n")

    assert "  1  memory" in shown
    assert list(desk.servers()) == ["search", "context7", "muted"]
    desk.assert_nothing_was_started()


def test_in_a_terminal_a_wrong_answer_is_asked_again(desk):
    shown = in_terminal(desk, "9\n", "memory\n")

    assert "The numbers go from 1 to 5." in shown
    assert list(desk.servers()) == ["memory"]


@pytest.mark.parametrize("answer", ["none\n", "\n", "\x04"])
def test_in_a_terminal_nothing_may_be_picked(desk, answer):
    in_terminal(desk, answer)

    assert not desk.config.exists()


def test_the_module_starts_no_process_because_it_has_nothing_to_start_one_with(desk):
    script = "import sys, pegboard.cli.import_servers; print(sorted({'subprocess', 'asyncio'} & set(sys.modules)))"

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=True, cwd=Path.cwd()
    )

    assert done.stdout.strip() == "[]"
