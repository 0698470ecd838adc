"""Whatever a settings file looks like, an install changes only what it should, and undoing it changes nothing else."""

from __future__ import annotations

import tomllib
from random import Random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.config import jsonc
from pegboard.config.importers.claude_code import SOURCES
from pegboard.config.importers.secrets import MASK
from pegboard.config.installers.show import diff, hidden_values
from pegboard.config.installers.undo import Change, apply, servers_at, take_back
from pegboard.errors import ConfigError
from tests.often import often
from tests.property.toml_writer import Writer

RANDOMS = st.builds(Random, st.integers(0, 2**32))
WORDS = st.one_of(
    st.text("abAB_- .é☕\"\\'/#,{}[]:", min_size=1, max_size=6), st.sampled_from(["pegboard", "// x", "/* y */", "☕"])
)
LEAVES = st.one_of(
    st.booleans(), st.integers(-9, 99), WORDS, st.sampled_from(["", "\n", "// no", "/* no */", ",]", ",}", '"', "\\"])
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=3)),
    max_leaves=6,
)
SERVERS = st.dictionaries(WORDS, st.dictionaries(WORDS, VALUES, max_size=3), max_size=5)
OTHERS = st.dictionaries(WORDS.filter(lambda key: key not in {"mcpServers", "mcp"}), VALUES, max_size=3)
PATHS = st.sampled_from([("mcpServers",), ("mcp", "servers")])
ENTRY = {"command": "/opt/bin/pegboard", "args": ["serve", "--config", "/home/zoë/a b.toml"]}


def written_json(value: Any, random: Random, newline: str) -> str:
    """JSON as people write it: comments anywhere, trailing commas, odd white space."""

    def gap() -> str:
        choices = (
            "",
            " ",
            newline,
            newline + "  ",
            f'// a "comment" ]{newline}',
            "/* b */",
            f"/* , }} */{newline}",
            "\t",
        )
        return random.choice(choices)

    def joined(members: list[str]) -> str:
        trailing = random.choice(("", ",")) if members else ""
        return gap() + f"{gap()},{gap()}".join(members) + gap() + trailing + gap()

    def written(part: Any) -> str:
        if isinstance(part, list):
            return f"[{joined([written(item) for item in part])}]"
        if isinstance(part, dict):
            return f"{{{joined([f'{written(key)}{gap()}:{gap()}{written(item)}' for key, item in part.items()])}}}"
        return msgspec.json.encode(part).decode()

    return random.choice(("", "\ufeff")) + gap() + written(value) + gap()


def nested(path, servers):
    for key in reversed(path):
        servers = {key: servers}
    return servers


def picked(servers, random):
    return tuple(name for name in servers if name == "pegboard" or random.random() < 0.6)


def change_of(form, path, servers, random):
    return Change(format=form, table=path, moved=picked(servers, random), name="pegboard", entry=ENTRY)


@settings(max_examples=often(300), deadline=None)
@given(OTHERS, SERVERS, PATHS, st.sampled_from(["\n", "\r\n"]), RANDOMS)
def test_an_install_in_any_json_moves_what_it_should_and_keeps_every_other_value(
    others, servers, path, newline, random
):
    text = written_json({**others, **nested(path, servers)}, random, newline)
    change = change_of("json", path, servers, random)
    after = apply(text, change)
    kept = {name: value for name, value in servers.items() if name not in change.moved}
    assert jsonc.parse(after) == {**others, **nested(path, {**kept, "pegboard": ENTRY})}
    assert after.startswith("\ufeff") == text.startswith("\ufeff")
    assert apply(after, msgspec.structs.replace(change, moved=())) == after


@settings(max_examples=often(300), deadline=None)
@given(OTHERS, SERVERS, PATHS, st.sampled_from(["\n", "\r\n"]), RANDOMS)
def test_taking_back_from_any_json_that_was_left_alone_gives_the_same_bytes(others, servers, path, newline, random):
    text = written_json({**others, **nested(path, servers)}, random, newline)
    change = change_of("json", path, servers, random)
    assert take_back(apply(text, change), text, change).text == text


@settings(max_examples=often(300), deadline=None)
@given(OTHERS, OTHERS, SERVERS, SERVERS, PATHS, RANDOMS)
def test_taking_back_from_json_that_was_rewritten_keeps_what_is_new(others, later, servers, new, path, random):
    """As Claude Code does: the whole file is parsed, changed and written anew."""
    text = written_json({**others, **nested(path, servers)}, random, "\n")
    change = change_of("json", path, servers, random)
    kept = {name: value for name, value in servers.items() if name not in change.moved}
    now = {**new, **kept, "pegboard": {**ENTRY, "disabled": True}}
    current = written_json({**later, **nested(path, now)}, random, "\r\n")
    undone = take_back(current, text, change)
    had = {name: servers[name] for name in change.moved if name not in new or name == "pegboard"}
    wanted = {name: value for name, value in now.items() if name != "pegboard"} | had
    assert jsonc.parse(undone.text) == {**later, **nested(path, wanted)}
    assert set(undone.restored) == set(had)
    assert set(undone.kept) == set(change.moved) - set(had)


@settings(max_examples=often(200), deadline=None)
@given(OTHERS, PATHS, RANDOMS)
def test_tables_that_an_install_made_go_with_it(others, path, random):
    text = written_json(others, random, "\n")
    change = Change(format="json", table=path, moved=(), name="pegboard", entry=ENTRY)
    after = apply(text, change)
    current = written_json({**jsonc.parse(after), "new": 1}, random, "\n")
    assert jsonc.parse(take_back(current, text, change).text) == {**others, "new": 1}


TOML_LEAVES = st.one_of(
    st.booleans(), st.integers(-9, 99), WORDS, st.sampled_from(["[a]\nb = 1", '"""', "'''", "x # y"])
)
TOML_SERVERS = st.dictionaries(
    WORDS,
    st.dictionaries(
        WORDS,
        st.one_of(
            TOML_LEAVES, st.lists(TOML_LEAVES, max_size=2), st.dictionaries(WORDS, TOML_LEAVES, min_size=1, max_size=2)
        ),
        min_size=1,
        max_size=3,
    ),
    max_size=4,
)
TOML_OTHERS = st.dictionaries(
    WORDS.filter(lambda key: key != "mcp_servers"),
    st.one_of(TOML_LEAVES, st.dictionaries(WORDS, TOML_LEAVES, min_size=1, max_size=2)),
    max_size=3,
)


def written_toml(value, random):
    writer = Writer(random)
    writer.table(value)
    return random.choice(("", "\ufeff")) + writer.text


def pruned(document):
    return {key: value for key, value in document.items() if key != "mcp_servers" or value}


@settings(max_examples=often(300), deadline=None)
@given(TOML_OTHERS, TOML_SERVERS, RANDOMS)
def test_an_install_in_any_toml_moves_what_it_should_or_refuses_and_undoing_it_gives_the_same_bytes(
    others, servers, random
):
    text = written_toml({**others, "mcp_servers": servers}, random)
    change = change_of("toml", ("mcp_servers",), servers, random)
    try:
        after = apply(text, change)
    except ConfigError:
        # Only where the table of servers itself is written in one piece.
        assert any(
            line.lstrip().startswith(("mcp_servers", '"mcp_servers"', "'mcp_servers'"))
            for line in text.removeprefix("\ufeff").splitlines()
        )
        return
    kept = {name: value for name, value in servers.items() if name not in change.moved}
    assert tomllib.loads(after.removeprefix("\ufeff")) == {**others, "mcp_servers": {**kept, "pegboard": ENTRY}}
    assert take_back(after, text, change).text == text


@settings(max_examples=often(300), deadline=None)
@given(TOML_OTHERS, TOML_SERVERS, TOML_SERVERS, RANDOMS)
def test_taking_back_from_toml_that_was_rewritten_keeps_what_is_new(others, servers, new, random):
    text = written_toml({**others, "mcp_servers": servers}, random)
    change = change_of("toml", ("mcp_servers",), servers, random)
    now = {name: value for name, value in new.items() if name != "pegboard"}
    current = written_toml({"later": 1, "mcp_servers": {**now, "pegboard": ENTRY}}, random)
    try:
        undone = take_back(current, text, change)
    except ConfigError:
        return
    had = {name: servers[name] for name in change.moved if name not in now}
    assert pruned(tomllib.loads(undone.text.removeprefix("\ufeff"))) == pruned(
        {"later": 1, "mcp_servers": {**now, **had}}
    )


SECRET = st.text('abcdefghijklmnopqrstuvwxyz0123456789/\\"é', min_size=8, max_size=20)


@settings(max_examples=often(150), deadline=None)
@given(SECRET, SECRET, SECRET, RANDOMS)
def test_no_secret_of_a_settings_file_is_in_the_lines_that_are_shown(token, password, key, random):
    server = {"command": "npx", "args": ["--token", token], "env": {"API_KEY": key}, "headers": {}}
    document = {"account": {"password": password}, "mcpServers": {"a": server}}
    text = written_json(document, random, "\n")
    entries = SOURCES[-1].entries(document, None, None)  # type: ignore[arg-type]
    change = Change(format="json", table=("mcpServers",), moved=("a",), name="pegboard", entry=ENTRY)
    hidden = hidden_values(document, [entry.config for entry in entries if entry.config])
    shown = "\n".join(diff(text, apply(text, change), "f", hidden))
    spelled = [form for each in (token, password, key) for form in (each, msgspec.json.encode(each).decode()[1:-1])]
    assert not [each for each in spelled if each in shown]
    assert MASK in shown or "password" not in shown
    assert servers_at(document, ("mcpServers",)) == {"a": server}
