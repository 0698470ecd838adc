"""What holds of configuration whatever it contains."""

from __future__ import annotations

import tempfile
import tomllib
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.config import jsonc, locate
from pegboard.config.environment import child_environment, looks_secret
from pegboard.config.expand import Malformed, escape, expand
from pegboard.config.load import examine, load
from pegboard.config.model import GatewayConfig, Requires, ServerConfig, StoreConfig, Table, ToolsConfig
from pegboard.config.resolve import INHERITED
from tests.often import often
from tests.property.toml_writer import Writer

RANDOMS = st.integers(0, 2**32).map(Random)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
WORD = st.text("abcXYZ019_-. ", min_size=1, max_size=8).filter(str.strip)
NAME = st.one_of(WORD, TEXT.filter(str.strip))
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
GLOBS = st.lists(st.sampled_from(["*", "a*", "[ab]?", "github__x"]), max_size=2).map(tuple)
SECONDS = st.floats(0.001, 1e6)
ENV_NAME = TEXT.filter(lambda name: name != "" and "=" not in name)
HEADER_NAME = st.text("abcABC-_9", min_size=1, max_size=6)
HEADERS = st.lists(st.tuples(HEADER_NAME, WORD), max_size=3, unique_by=lambda pair: pair[0].lower()).map(dict)
FOLDER = st.lists(st.text("abc$é ", min_size=1, max_size=4), max_size=2).map(lambda parts: "/" + "/".join(parts))


def table(kind: type[Table], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({}, optional=fields).map(lambda values: kind(**values))


SHARED = {
    "transport": st.none(),
    "enabled": st.booleans(),
    "lazy": st.booleans(),
    "include": GLOBS,
    "exclude": GLOBS,
    "tags": TEXTS,
    "scopes": TEXTS,
    "cost_usd": st.floats(0, 100),
    "start_timeout": SECONDS,
    "call_timeout": SECONDS,
    "idle_timeout": SECONDS,
    "max_result_bytes": st.integers(1024, 2**60),
    "requires": table(Requires, env=st.lists(WORD, max_size=2).map(tuple), url=st.just("https://x.org")).filter(
        lambda requires: requires != Requires()
    ),
}
LOCAL = st.builds(
    lambda server, command: msgspec.structs.replace(server, command=command),
    table(
        ServerConfig,
        **SHARED,
        args=TEXTS,
        env=st.dictionaries(ENV_NAME, TEXT, max_size=3),
        cwd=FOLDER,
        inherit_env=st.one_of(st.booleans(), TEXTS),
    ),
    NAME.filter(lambda text: not text.startswith((".", "~"))),
)
REMOTE = st.builds(
    lambda server, url, transport: msgspec.structs.replace(server, url=url, transport=transport),
    table(ServerConfig, **SHARED, headers=HEADERS),
    st.sampled_from(["https://example.org/mcp", "http://localhost:8000", "https://x.org/${A/$"]),
    st.sampled_from([None, "http", "sse"]),
)
SERVERS = st.dictionaries(NAME, st.one_of(LOCAL, REMOTE), max_size=4)
GATEWAYS = table(
    GatewayConfig,
    max_starting=st.integers(1, 99),
    background_refresh=st.booleans(),
    start_timeout=SECONDS,
    call_timeout=SECONDS,
    idle_timeout=SECONDS,
    max_result_bytes=st.integers(1024, 2**60),
    max_pages=st.integers(1, 99),
    max_tools=st.integers(1, 99),
)
TOOLS = table(ToolsConfig, deny=GLOBS, refresh_after=st.floats(0, 1e6))
STORES = table(StoreConfig, cache_dir=FOLDER, state_dir=FOLDER)


def said(config: Table) -> dict[str, Any]:
    """What a file has to say to mean this table."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(config))
    for key in ("command", "cwd", "url"):
        if key in plain:
            plain[key] = escape(plain[key])
    if isinstance(config, ServerConfig) and "args" in plain:
        plain["args"] = [escape(text) for text in plain["args"]]
    for key in ("env", "headers"):
        if isinstance(config, ServerConfig) and key in plain:
            plain[key] = {name: escape(text) for name, text in plain[key].items()}
    return plain


@settings(max_examples=often(150), deadline=None)
@given(SERVERS, GATEWAYS, TOOLS, STORES, RANDOMS)
def test_a_configuration_written_as_toml_in_any_style_is_read_as_it_was(servers, gateway, tools, store, random):
    document = {"gateway": said(gateway), "tools": said(tools), "store": said(store)}
    document["servers"] = {name: said(server) for name, server in servers.items()}
    writer = Writer(random)
    writer.table(document)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.toml"
        path.write_bytes(writer.text.encode())
        config = load(files=[path], environ={"HOME": "/home/ada"}, cwd=Path(folder))
    assert (config.gateway, config.tools, config.store) == (gateway, tools, store)
    assert {name: spec.config for name, spec in config.servers.items()} == {
        name: with_defaults(server, gateway) for name, server in servers.items()
    }
    assert not [spec.problem for spec in config.servers.values() if spec.problem]


def with_defaults(server: ServerConfig, gateway: GatewayConfig) -> ServerConfig:
    missing = {key: getattr(gateway, key) for key in INHERITED if getattr(server, key) is None}
    return msgspec.structs.replace(server, **missing)


LEAVES = st.one_of(
    TEXT, st.booleans(), st.integers(-9, 99), st.sampled_from(["[a]\nb = 1", '"""', "'''", "x # y", "\\"])
)
TREES = st.dictionaries(
    st.one_of(WORD, TEXT),
    st.recursive(
        LEAVES,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.one_of(WORD, TEXT), inner, max_size=3)),
        max_leaves=8,
    ),
    max_size=4,
)


@settings(max_examples=often(200), deadline=None)
@given(TREES, RANDOMS)
def test_every_key_of_any_toml_is_located_on_its_line(tree, random):
    writer = Writer(random)
    writer.table(tree)
    assert tomllib.loads(writer.text) == tree  # the writer itself is right
    known = locate.lines(writer.text)
    assert {path: known.get(path) for path in writer.lines} == writer.lines


@settings(max_examples=often(200), deadline=None)
@given(st.text("[]{}=,.#\"'\\\n ab1\r", max_size=60))
def test_locating_never_fails_on_any_text(text):
    assert all(1 <= line <= text.count("\n") + 1 for line in locate.lines(text).values())


JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(exclude_categories=["Cs"])),
        st.sampled_from(["// no", "/* no */", ",]", ",}", '"', "\\"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXT, inner, max_size=4)),
    max_leaves=10,
)


def with_comments(value: Any, random: Random) -> str:
    """JSON with comments between any two pieces, and commas after last members."""

    def gap() -> str:
        return random.choice(("", " ", "\n", '// a "comment" ]\n', "/* b */", "/* , } */\r\n", "/**/\t"))

    def joined(members: list[str]) -> str:
        trailing = random.choice(("", ",")) if members else ""
        return gap() + f"{gap()},{gap()}".join(members) + gap() + trailing + gap()

    def written(part: Any) -> str:
        if isinstance(part, list):
            return f"[{joined([written(item) for item in part])}]"
        if isinstance(part, dict):
            pairs = [f"{written(key)}{gap()}:{gap()}{written(item)}" for key, item in part.items()]
            return f"{{{joined(pairs)}}}"
        return msgspec.json.encode(part).decode()

    return gap() + written(value) + gap()


@settings(max_examples=often(200), deadline=None)
@given(JSON, RANDOMS)
def test_comments_and_trailing_commas_never_change_a_json_value(value, random):
    text = with_comments(value, random)
    assert jsonc.parse(text) == value
    assert jsonc.parse("\ufeff" + text) == value


@settings(max_examples=often(200), deadline=None)
@given(JSON, RANDOMS)
def test_every_key_of_any_json_is_located_where_its_name_stands(value, random):
    text = with_comments(value, random)
    numbered = text.split("\n")
    known = jsonc.lines(text)
    for path, line in known.items():
        assert jsonc.line_of(text, path) == line
        if isinstance(path[-1], str):
            assert msgspec.json.encode(path[-1]).decode() in numbered[line - 1]
    assert set(known) == set(paths(value))


def attempt(kind: type[Exception], function: Any, *arguments: Any) -> tuple[Any, Any]:
    """The refusal or the value; anything else that is raised fails the test."""
    try:
        return None, function(*arguments)
    except kind as error:
        return error, None


def paths(value: Any, path: tuple[str | int, ...] = ()) -> Any:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in members:
        yield (*path, step)
        yield from paths(item, (*path, step))


@settings(max_examples=often(300), deadline=None)
@given(st.text('[]{},:"\\/*\n1eatrufls \ufeff', max_size=60))
def test_whatever_msgspec_reads_jsonc_reads_the_same_and_nothing_else_fails_otherwise(text):
    refusal, value = attempt(jsonc.JsoncError, jsonc.parse, text)
    strict_refusal, strict_value = attempt(ValueError, msgspec.json.decode, text)
    if refusal is not None:
        assert strict_refusal is not None
        assert 1 <= refusal.line <= text.count("\n") + 1
    elif strict_refusal is None:
        assert value == strict_value


VARIABLE = st.text("ABC_", min_size=1, max_size=3)
PIECES = st.one_of(
    st.tuples(st.just("text"), st.text("ab${}:-\\ ", max_size=6), st.just("")),
    st.tuples(st.just("variable"), VARIABLE, st.just("")),
    st.tuples(st.just("default"), VARIABLE, st.text("ab$:- ", max_size=6).filter(lambda text: "${" not in text)),
)


@settings(max_examples=often(300), deadline=None)
@given(st.lists(PIECES, max_size=6), st.dictionaries(VARIABLE, TEXT))
def test_expansion_fills_in_exactly_the_references(pieces, environ):
    written, meant, unset = "", "", set()
    for kind, text, default in pieces:
        if kind == "text":
            # A dollar right before a reference would escape it.
            literal = text.rstrip("$")
            written += escape(literal)
            meant += literal
        elif kind == "variable":
            written += f"${{{text}}}"
            meant += environ.get(text, f"${{{text}}}")
            unset |= set() if text in environ else {text}
        else:
            written += f"${{{text}:-{default}}}"
            meant += environ.get(text) or default
    expansion = expand(written, environ)
    assert expansion.text == meant
    assert set(expansion.unset) == unset


@settings(max_examples=often(300), deadline=None)
@given(st.text("$${}A:- ", max_size=20))
def test_expansion_of_anything_is_text_or_a_clear_refusal(text):
    refusal, expansion = attempt(Malformed, expand, text, {"A": "x"})
    assert expand(escape(text), {}).text == text
    if refusal is not None:
        assert "${" in str(refusal)
    if "${" not in text:
        assert expansion.text == text


KEYS = st.sampled_from(
    ["servers", "tools", "gateway", "store", "mcpServers", "a", "command", "args", "env", "url", "headers", "type",
     "requires", "enabled", "deny", "max_starting", "plugin_dirs", "inherit_env", "", "x.y"]
)  # fmt: skip
ANYTHING = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(-5, 5),
        st.floats(),
        st.sampled_from(["", "${", "${A}", "x", "https://x.org", "ws", "\0"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)


@settings(max_examples=often(200), deadline=None)
@given(st.dictionaries(KEYS, ANYTHING, max_size=4), st.booleans(), RANDOMS)
def test_no_file_whatever_it_says_fails_in_any_other_way_than_by_being_told(tree, as_json, random):
    writer = Writer(random)
    writer.table(tree)
    raw = msgspec.json.encode(tree) if as_json else writer.text.encode()
    assert_only_told(raw, "x.json" if as_json else "x.toml")


@settings(max_examples=often(100), deadline=None)
@given(
    st.one_of(st.binary(max_size=80), st.text(max_size=80).map(lambda text: text.encode(errors="replace"))),
    st.booleans(),
)
def test_no_bytes_fail_in_any_other_way_than_by_being_told(raw, as_json):
    assert_only_told(raw, "x.json" if as_json else "x.toml")


def assert_only_told(raw: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(raw)
        examination = examine(files=[path], environ={"HOME": folder}, cwd=Path(folder))
    for problem in examination.problems:
        assert str(problem).startswith(str(path))
        assert "\n" not in str(problem)
        assert problem.line is None or 1 <= problem.line <= raw.count(b"\n") + 1
    for server, spec in examination.config.servers.items():
        assert spec.name == server


@given(st.dictionaries(st.sampled_from(["PATH", "HOME", "X", "A_TOKEN", "DB_DSN", "PEGBOARD_X", "KEYBOARD"]), TEXT))
def test_a_servers_environment_is_its_parents_without_secrets(parent):
    passed, withheld = child_environment(ServerConfig(command="x"), parent)
    assert passed == {name: value for name, value in parent.items() if name in passed}
    assert set(passed) | set(withheld) == {name for name in parent if not name.startswith("PEGBOARD_")}
    assert all(looks_secret(name, parent[name]) for name in withheld)
    assert not any(looks_secret(name, value) for name, value in passed.items())
