"""`PEGBOARD_*` variables and `--set`: what they reach, and what is told when they reach nothing."""

from __future__ import annotations

import pytest

from pegboard.config.check import ROOT

SERVERS = """\
[servers.github]
command = "npx"
env = { Token = "x" }
[servers."my-server.v2"]
url = "https://example.org"
[servers.deep__name]
command = "x"
[servers.deep]
command = "y"
"""


def test_a_variable_sets_a_key_of_a_section(place):
    config = place.load(
        PEGBOARD_GATEWAY__MAX_STARTING="8",
        PEGBOARD_GATEWAY__BACKGROUND_REFRESH="false",
        PEGBOARD_TOOLS__DENY='["a*", "b"]',
        PEGBOARD_STORE__CACHE_DIR="/var/cache/pegboard",
    )
    assert config.gateway.max_starting == 8
    assert config.gateway.background_refresh is False
    assert config.tools.deny == ("a*", "b")
    assert config.store.cache_dir == "/var/cache/pegboard"


def test_a_server_is_found_whatever_the_case_and_the_marks_in_its_name(place):
    place.write(SERVERS)
    config = place.load(
        PEGBOARD_SERVERS__GITHUB__ENABLED="false",
        PEGBOARD_SERVERS__MY_SERVER_V2__LAZY="false",
        PEGBOARD_SERVERS__DEEP__NAME__ENABLED="false",
    )
    assert not config.servers["github"].config.enabled
    assert not config.servers["my-server.v2"].config.lazy
    assert not config.servers["deep__name"].config.enabled
    assert config.servers["deep"].config.enabled


def test_variables_and_headers_of_a_server_can_be_set_one_by_one(place):
    place.write(SERVERS)
    config = place.load(
        PEGBOARD_SERVERS__GITHUB__ENV__Token="y",
        PEGBOARD_SERVERS__GITHUB__ENV__PORT="8080",
        PEGBOARD_SERVERS__GITHUB__REQUIRES__COMMAND='["npx"]',
        PEGBOARD_SERVERS__MY_SERVER_V2__HEADERS__AUTHORIZATION="Bearer 1",
    )
    github = config.servers["github"].config
    assert github.env == {"Token": "y", "PORT": "8080"}
    assert github.requires is not None
    assert github.requires.command == ("npx",)
    assert config.servers["my-server.v2"].config.headers == {"AUTHORIZATION": "Bearer 1"}


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("npx", "npx"),
        ('"npx"', "npx"),
        ("8080", "8080"),
        ("true", "true"),
        ("2024-01-01", "2024-01-01"),
        ("a\nb = 1", "a\nb = 1"),
        ("1\nb = 1", "1\nb = 1"),
        ("[" * 5000, "[" * 5000),
    ],
)
def test_a_value_is_plain_text_where_only_text_fits(place, text, command):
    place.write(SERVERS)
    config = place.load(PEGBOARD_SERVERS__GITHUB__COMMAND=text)
    assert config.servers["github"].config.command == command


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("PEGBOARD_GATEWAY__MAX_STARTIN", "1", "gateway.max_startin: unknown key; did you mean max_starting?"),
        ("PEGBOARD_GATEWAY__MAX_STARTING", "many", "gateway.max_starting: expected a whole number, got a string"),
        ("PEGBOARD_TOOLS__DENY", "a*", "tools.deny: expected a list of strings, got a string"),
        ("PEGBOARD_GATWAY__X", "1", "unknown section GATWAY; did you mean PEGBOARD_GATEWAY__…?"),
        ("PEGBOARD_XYZ__X", "1", f"unknown section XYZ; there are {', '.join(ROOT)}"),
        ("PEGBOARD_SERVERS__GITHUP__ENABLED", "1", "no configured server is called githup; did you mean github?"),
        ("PEGBOARD_SERVERS__GITHUB__ENABLE", "1", "servers.github.enable: unknown key; did you mean enabled?"),
        ("PEGBOARD_SERVERS__GITHUB", "1", "names a server but none of its keys; write PEGBOARD_SERVERS__GITHUB__<KEY>"),
        ("PEGBOARD_GATEWAY__", "1", 'gateway."": unknown key; there are'),
    ],
)  # fmt: skip
def test_a_variable_that_sets_nothing_is_told_by_its_name(place, variable, value, told):
    place.write(SERVERS)
    (problem,) = place.problems(**{variable: value})
    assert problem.startswith(f"{variable}: {told}")


def test_two_servers_that_a_variable_cannot_tell_apart_are_told(place):
    place.write("[servers.a-b]\ncommand = 'x'\n[servers.a_b]\ncommand = 'x'\n")
    (problem,) = place.problems(PEGBOARD_SERVERS__A_B__ENABLED="false")
    assert "could be any of the servers a-b, a_b" in problem


def test_a_variable_without_a_section_is_not_ours_to_judge(place):
    assert place.problems(PEGBOARD_CONFIG="", PEGBOARD_DEBUG="1", PEGBOARDISH__X="1", OTHER__GATEWAY="1") == []


def test_an_override_sets_any_key_and_may_define_a_server(place):
    place.write(SERVERS)
    config = place.load(
        overrides=[
            "gateway.max_starting=8",
            'servers."my-server.v2".enabled=false',
            "servers.new.command=python",
            'servers.new.args=["-m", "server"]',
            "servers.new.env.TEXT=a=b",
        ]
    )
    assert config.gateway.max_starting == 8
    assert not config.servers["my-server.v2"].config.enabled
    new = config.servers["new"].config
    assert (new.command, new.args, new.env) == ("python", ("-m", "server"), {"TEXT": "a=b"})


def test_of_two_overrides_the_last_counts(place):
    assert place.load(overrides=["gateway.max_pages=1", "gateway.max_pages=2"]).gateway.max_pages == 2


@pytest.mark.parametrize(
    "override", ["", "gateway", "gateway=1", "=1", "a b.c=1", "a.b.=1", "gateway.max_pages", "a\nb.c=1", "."]
)
def test_an_override_that_is_none_is_told(place, override):
    (problem,) = place.problems(overrides=[override])
    assert "expected section.key=value" in problem or "unknown key" in problem


def test_the_value_of_a_wrong_override_is_not_repeated(place):
    (problem,) = place.problems(overrides=["servers.x.tokn=hush-hush"])
    assert "hush" not in problem
    assert problem.startswith("--set servers.x.tokn: servers.x.tokn: unknown key")
