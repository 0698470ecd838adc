"""Adding servers to the end of a pegboard.toml."""

from __future__ import annotations

import tomllib

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.config.model import Requires, ServerConfig
from pegboard.config.write import append_servers
from pegboard.errors import ConfigError

TEXT = st.text()
SECONDS = st.floats(min_value=0.001, allow_nan=False, allow_infinity=False)
SERVERS = st.dictionaries(
    TEXT,
    st.builds(
        ServerConfig,
        command=st.none() | TEXT,
        args=st.lists(TEXT).map(tuple),
        env=st.dictionaries(TEXT, TEXT),
        headers=st.dictionaries(TEXT, TEXT),
        cwd=st.none() | TEXT,
        url=st.none() | TEXT,
        transport=st.none() | st.sampled_from(["stdio", "http", "sse"]),
        enabled=st.booleans(),
        lazy=st.booleans(),
        include=st.lists(TEXT).map(tuple),
        cost_usd=st.none() | st.floats(min_value=0, allow_nan=False, allow_infinity=False),
        call_timeout=st.none() | SECONDS | st.integers(min_value=1, max_value=2**53),
        max_result_bytes=st.none() | st.integers(min_value=1024, max_value=2**62),
        inherit_env=st.none() | st.booleans() | st.lists(TEXT).map(tuple),
        requires=st.none() | st.builds(Requires, env=st.lists(TEXT).map(tuple), url=st.none() | TEXT),
    ),
    max_size=2,
)
BEFORE = st.sampled_from(
    [
        "",
        "\n",
        "\ufeff",
        "# only a comment, and no line end",
        "[tools]\ndeny = []",
        "[gateway]\r\nmax_starting = 2\r\n",
        "\ufeff[gateway]\r\nmax_starting = 2 # two",
        '[servers."old one"]\ncommand = "x"\n\n[servers."old one".env]\nA = """\n[servers.fake]\n"""\n',
        "servers.dotted.command = 'x'\n",
        "[gateway]\ncall_timeout = nan\n",
        "[[other]]\na = 1\n[[other]]\na = 1.0",
    ]
)


def plain(value):
    return msgspec.json.decode(msgspec.json.encode(value))


@given(BEFORE, SERVERS)
@settings(deadline=None)
def test_the_result_is_exactly_the_old_and_the_new(before, servers):
    after = append_servers(before, servers)

    old, new = (tomllib.loads(text.removeprefix("\ufeff")) for text in (before, after))
    assert after.startswith(before)
    assert {key: value for key, value in new.items() if key != "servers"}.keys() == old.keys() - {"servers"}
    assert new.get("servers", {}) == old.get("servers", {}) | {key: plain(config) for key, config in servers.items()}
    for key, config in servers.items():
        assert msgspec.convert(new["servers"][key], ServerConfig) == config


@given(BEFORE, SERVERS)
@settings(deadline=None)
def test_line_ends_are_those_of_the_file(before, servers):
    added = append_servers(before, servers)[len(before) :]

    if "\r\n" in before:
        assert added.replace("\r\n", "").count("\n") == 0
    else:
        assert "\r" not in added


def test_the_text_is_one_that_people_would_write():
    config = ServerConfig(
        command="npx", args=("-y", 'say "hi"'), env={"A": "1", "B C": "tab\there"}, enabled=False, call_timeout=2.5
    )

    assert append_servers("[gateway]\nmax_starting = 2", {"git-hub": config, "two": ServerConfig(command="x")}) == (
        "[gateway]\n"
        "max_starting = 2\n"
        "\n"
        "[servers.git-hub]\n"
        'command = "npx"\n'
        'args = ["-y", "say \\"hi\\""]\n'
        "enabled = false\n"
        "call_timeout = 2.5\n"
        "\n"
        "[servers.git-hub.env]\n"
        'A = "1"\n'
        '"B C" = "tab\\there"\n'
        "\n"
        "[servers.two]\n"
        'command = "x"\n'
    )


def test_an_empty_file_does_not_begin_with_an_empty_line():
    assert append_servers("", {"a": ServerConfig(command="x")}) == '[servers.a]\ncommand = "x"\n'


def test_nothing_to_add_leaves_even_a_broken_text_alone():
    assert append_servers("not toml", {}) == "not toml"


def test_a_server_that_is_there_already_is_refused():
    with pytest.raises(ConfigError, match="Already configured: a"):
        append_servers('[servers.a]\ncommand = "x"\n', {"a": ServerConfig(command="y"), "b": ServerConfig(command="z")})


@pytest.mark.parametrize("before", ["a = ", 'a = """never closed', "[a]\n[a]\n", "a = 1\ra = 2"])
def test_a_text_that_is_not_toml_is_refused(before):
    with pytest.raises(ConfigError, match="not valid TOML"):
        append_servers(before, {"a": ServerConfig(command="x")})


@pytest.mark.parametrize("before", ['servers = {old = {command = "x"}}', "servers = 3", "[[servers]]\na = 1"])
def test_a_text_that_cannot_grow_at_its_end_is_refused_with_a_way_out(before):
    with pytest.raises(ConfigError, match="cannot be added") as caught:
        append_servers(before, {"a": ServerConfig(command="x")})

    assert "--to" in caught.value.hint


def test_text_that_no_file_can_hold_is_refused():
    with pytest.raises(ConfigError, match="Unicode"):
        append_servers("", {"a": ServerConfig(command="\ud800")})
