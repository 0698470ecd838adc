"""From what was said of a server to what is meant: variables, paths, and faults of one server alone."""

from __future__ import annotations

from pathlib import Path

import pytest

SERVER = """\
[servers.github]
command = "${BIN:-npx}"
args = ["-y", "${PACKAGE}"]
env = { TOKEN = "${GITHUB_TOKEN}" }
cwd = "${WORK:-sub}"
"""


def test_variables_are_filled_in_everywhere_they_may_stand(place):
    place.write(SERVER + "[servers.r]\nurl = 'https://${HOST}/mcp'\nheaders = { Authorization = 'Bearer ${KEY}' }\n")
    config = place.load(PACKAGE="p", GITHUB_TOKEN="t", HOST="example.org", KEY="k", WORK="/w")
    github, remote = config.servers["github"], config.servers["r"]
    assert (github.config.command, github.config.args) == ("npx", ("-y", "p"))
    assert (github.config.env, github.config.cwd) == ({"TOKEN": "t"}, "/w")
    assert remote.config.url == "https://example.org/mcp"
    assert remote.config.headers == {"Authorization": "Bearer k"}
    assert github.variables == {
        "command": ("BIN",),
        "args[1]": ("PACKAGE",),
        "env.TOKEN": ("GITHUB_TOKEN",),
        "cwd": ("WORK",),
    }


def test_tags_and_patterns_are_never_expanded(place):
    place.write("[servers.a]\ncommand = 'x'\ntags = ['${HOME}']\ninclude = ['${HOME}']\n")
    server = place.load().servers["a"].config
    assert server.tags == server.include == ("${HOME}",)


def test_a_variable_that_is_not_set_is_the_fault_of_its_server_alone(place):
    path = place.write(SERVER + "[servers.other]\ncommand = 'x'\n")
    config = place.load(PACKAGE="p")
    assert config.servers["github"].problem == (
        f"environment variable GITHUB_TOKEN is not set; servers.github.env.TOKEN in {path}:4 needs it"
    )
    assert config.servers["other"].problem == ""


def test_every_variable_that_is_missing_is_told(place):
    place.write(SERVER)
    problem = place.load().servers["github"].problem
    assert "PACKAGE is not set; servers.github.args[1] in" in problem
    assert "GITHUB_TOKEN is not set" in problem


def test_a_disabled_server_needs_no_variables(place):
    place.write(SERVER + "enabled = false\n")
    config = place.load()
    assert config.servers["github"].problem == ""
    assert config.warnings == ()


def test_a_malformed_reference_is_an_error_with_file_line_and_key(place):
    place.write("[servers.a]\ncommand = 'x'\nargs = [\n  'ok',\n  'a ${B',\n]\n")
    (problem,) = place.problems()
    assert problem == (
        "pegboard.toml:5: servers.a.args[1]: the ${ at character 3 is not closed, or has braces inside; "
        "a literal ${ is written $${"
    )


def test_an_address_that_the_environment_spoils_is_one_servers_fault_and_not_shown(place):
    place.write("[servers.a]\nurl = '${ADDRESS}'\n[servers.b]\ncommand = 'x'\n")
    config = place.load(ADDRESS="hush-hush")
    problem = config.servers["a"].problem
    assert "expected an address" in problem
    assert "ADDRESS" in problem
    assert "hush" not in problem
    assert config.servers["b"].problem == ""


def test_a_line_break_from_a_variable_in_a_header_is_one_servers_fault(place):
    place.write("[servers.a]\nurl = 'https://x.org'\nheaders = { Authorization = 'Bearer ${KEY}' }\n")
    assert "KEY has a line break" in place.load(KEY="abc\n").servers["a"].problem
    assert place.load(KEY="abc").servers["a"].problem == ""


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("npx", "npx"),
        ("./run", "{project}/run"),
        ("../run", "{project}/../run"),
        ("bin/run", "bin/run"),
        ("/bin/run", "/bin/run"),
        ("~/run", "{home}/run"),
        ("${UP}/run", "{project}/../run"),
    ],
)
def test_a_command_that_is_a_relative_path_starts_at_its_file(place, said, meant):
    place.write(f"[servers.a]\ncommand = '{said}'\n")
    command = place.load(UP="..").servers["a"].config.command
    assert command == meant.format(project=place.project, home=place.home)


@pytest.mark.parametrize(
    ("said", "meant"),
    [("sub", "{project}/sub"), (".", "{project}"), ("/abs", "/abs"), ("~", "{home}"), ("~/x", "{home}/x")],
)
def test_a_working_folder_starts_at_its_file(place, said, meant):
    place.write(f"[servers.a]\ncommand = 'x'\ncwd = '{said}'\n")
    cwd = place.load().servers["a"].config.cwd
    assert cwd == meant.format(project=place.project, home=place.home)


def test_each_path_starts_at_the_file_that_says_it(place):
    user = place.write_user("[servers.a]\ncommand = './run'\ncwd = 'w'\n")
    place.write("[servers.a]\ncwd = 'w'\n")
    server = place.load().servers["a"].config
    assert (server.command, server.cwd) == (f"{user.parent}/run", f"{place.project}/w")
    assert place.load(overrides=["servers.a.cwd=o"]).servers["a"].config.cwd == f"{place.project}/o"


def test_the_home_of_a_user_who_does_not_exist_stays_as_written(place):
    place.write("[servers.a]\ncommand = '~nobody-of-this-name/x'\n")
    assert place.load().servers["a"].config.command == "~nobody-of-this-name/x"


def test_the_transport_follows_from_how_the_server_is_reached(place):
    place.write(
        "[servers.a]\ncommand = 'x'\n[servers.b]\nurl = 'https://x.org'\n"
        "[servers.c]\nurl = 'https://x.org'\ntransport = 'sse'\n"
    )
    servers = place.load().servers
    assert [servers[name].transport for name in "abc"] == ["stdio", "http", "sse"]
    assert all(isinstance(server.origin, Path) for server in servers.values())
