"""`pegboard config check | show | schema` as a person and as a script see it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib

import pytest

from pegboard.cli.main import main
from pegboard.config.schema import schema

GOOD = (
    "[servers.a]\ncommand = 'x'\nenv = { API_KEY = 'hush', MODE = '${WHO}' }\n"
    "[servers.off]\ncommand = 'y'\nenabled = false\n"
)
BAD = "[gatway]\n[servers.a]\ncomand = 'x'\n[servers.b]\ncommand = '${NOT_SET_ANYWHERE}'\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """An empty project that is the working folder, and a home without configuration."""
    for name in [name for name in os.environ if name.startswith("PEGBOARD_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def write(project, text):
    (project / "pegboard.toml").write_text(text, encoding="utf-8")


def test_check_says_that_all_is_well(project, monkeypatch, capsys):
    monkeypatch.setenv("WHO", "ada")
    write(project, GOOD)
    assert main(["config", "check"]) == 0
    assert capsys.readouterr().out == f"No problems: 2 servers, 1 disabled, from {project}/pegboard.toml.\n"


def test_check_without_a_file_says_so(project, capsys):
    assert main(["config", "check"]) == 0
    assert "No configuration file was found" in capsys.readouterr().out


def test_check_tells_every_problem_and_every_server_that_cannot_be_used(project, capsys):
    write(project, BAD)
    assert main(["config", "check"]) == 1
    path = project / "pegboard.toml"
    assert capsys.readouterr().out.splitlines() == [
        f"{path}:1: gatway: unknown key; did you mean gateway?",
        f"{path}:3: servers.a.comand: unknown key; did you mean command?",
        f"servers.b: environment variable NOT_SET_ANYWHERE is not set; servers.b.command in {path}:5 needs it",
        "3 problems.",
    ]


def test_check_shows_warnings_and_they_are_no_problems(project, capsys):
    write(project, "[tools]\nplugin_dirs = ['nowhere']\n")
    assert main(["config", "check"]) == 0
    assert capsys.readouterr().out.startswith(f"warning: {project}/nowhere: plug-in folder cannot be read")


def test_check_tells_bad_plug_ins_and_broken_json_entries(project, capsys):
    manifest = project / "plugins" / "p" / "plugin.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text("{}", encoding="utf-8")
    (project / "m.json").write_text('{"mcpServers": {"j": {"type": "ws"}}}', encoding="utf-8")
    assert main(["--config", "m.json", "--set", "tools.plugin_dirs=['plugins']", "config", "check"]) == 1
    out = capsys.readouterr().out
    assert f"servers.p: {manifest}: name: missing" in out
    assert f"servers.j: {project}/m.json:1: mcpServers.j.type:" in out
    assert out.endswith("2 problems.\n")


def test_check_as_json_has_the_parts_of_each_problem(project, capsys):
    write(project, BAD)
    assert main(["config", "check", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["ok"], answer["servers"], answer["files"]) == (False, 2, [str(project / "pegboard.toml")])
    assert answer["problems"][0] == {
        "where": str(project / "pegboard.toml"),
        "line": 1,
        "key": "gatway",
        "message": "unknown key; did you mean gateway?",
    }
    assert answer["problems"][2]["key"] == "servers.b"
    write(project, "")
    assert main(["config", "check", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True


def test_show_prints_the_effective_configuration_without_secrets(project, monkeypatch, capsys):
    monkeypatch.setenv("WHO", "hush-too")
    write(project, GOOD)
    assert main(["--set", "gateway.max_starting=9", "config", "show"]) == 0
    out = capsys.readouterr().out
    document = tomllib.loads(out)
    assert document["gateway"]["max_starting"] == 9
    assert document["servers"]["a"] == {"command": "x", "env": {"API_KEY": "***", "MODE": "***"}}
    assert f"# from {project}/pegboard.toml" in out
    assert "hush" not in out


def test_show_as_json(project, monkeypatch, capsys):
    monkeypatch.setenv("WHO", "hush-too")
    write(project, GOOD)
    assert main(["config", "show", "--json"]) == 0
    out = capsys.readouterr().out
    answer = json.loads(out)
    assert answer["servers"]["a"]["origin"] == str(project / "pegboard.toml")
    assert answer["files"] == [str(project / "pegboard.toml")]
    assert "hush" not in out


def test_show_of_a_wrong_configuration_is_an_error_in_words(project, capsys):
    write(project, BAD)
    assert main(["config", "show"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "unknown key; did you mean gateway?" in captured.err
    assert "Traceback" not in captured.err


def test_schema_prints_the_schema(project, capsys):
    assert main(["config", "schema"]) == 0
    assert json.loads(capsys.readouterr().out) == schema()


def test_the_command_works_as_a_process_of_its_own_and_imports_nothing_slow(project):
    write(project, "[servers.a]\ncommand = 'x'\n")
    script = (
        "import sys; from pegboard.cli.main import main; code = main(['config', 'check']);"
        "slow = {'asyncio', 'difflib', 'platformdirs', 'httpx2', 'subprocess', 'logging', 'dataclasses'};"
        "sys.exit(f'imported: {slow & set(sys.modules)}' if slow & set(sys.modules) else code)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("No problems: 1 server, from ")
