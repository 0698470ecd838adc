"""What a cache file holds, whom it serves, and when it is passed over."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pegboard.catalog.cache import CacheMiss, cache_key, cache_path, decode, encode, snapshot_of
from tests.unit.catalog.given import NOW, listing, spec, tool

FULL = listing(
    tool(
        "create_issue",
        "Opens an issue.\nSecond line \u2028 and “quotes”.",
        title="Create an issue",
        outputSchema={"type": "object", "properties": {"url": {"type": "string"}}},
        annotations={"readOnlyHint": False},
        _meta={"example.com/cost": 1},
        futureKey=[1, 2.5, None, True],
    ),
    tool("list", "Lists."),
    server_name="GitHub",
    server_version="2.1",
    protocol_version="2025-11-25",
    instructions="Be kind.",
    ttl_ms=60_000,
)
PRIVATE = listing("mine", cache_scope="private")


def content_of(what=FULL, key=None, salt=b"salt"):
    return encode(what, key or cache_key(spec()), now=NOW, salt=salt)


def test_the_file_is_one_json_document_with_everything_in_it():
    document = json.loads(content_of())
    assert document.pop("checksum").startswith("sha256:")
    assert document.pop("tools") == list(FULL.tools)
    assert document == {
        "format": 1,
        "version": {"manifest": "", "server": "2.1", "launch": cache_key(spec()).launch},
        "cachedAt": datetime.fromtimestamp(NOW, UTC).isoformat().replace("+00:00", "Z"),
        "ttlMs": 60_000,
        "cacheScope": "public",
        "principal": None,
        "protocolVersion": "2025-11-25",
        "serverName": "GitHub",
        "instructions": "Be kind.",
        "withheld": {},
    }


def test_the_first_line_is_the_checksum_of_every_byte_after_it():
    first, _, rest = content_of().partition(b"\n")
    assert first == b'{"checksum":"sha256:' + hashlib.sha256(rest).hexdigest().encode() + b'",'


def test_each_tool_is_one_canonical_line_whose_hash_is_its_fingerprint():
    content = content_of()
    lines = content.split(b"\n")
    start = lines.index(b'"tools":[') + 1
    written = [line.rstrip(b",") for line in lines[start : start + 2]]
    assert [json.loads(line) for line in written] == list(FULL.tools)
    assert written[0] == json.dumps(FULL.tools[0], sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    for cached, line in zip(decode(content, cache_key(spec())).tools, written, strict=True):
        assert cached.definition == line
        assert cached.fingerprint == "sha256:" + hashlib.sha256(line).hexdigest()


@pytest.mark.parametrize("what", [FULL, PRIVATE, listing(), listing("one")], ids=["full", "private", "empty", "one"])
def test_a_file_gives_back_what_a_live_listing_gives(what):
    key = cache_key(spec())
    assert decode(content_of(what), key) == snapshot_of(what, key, NOW)


def test_what_lists_and_searches_show_is_taken_out():
    snapshot = decode(content_of(), cache_key(spec()))
    first = snapshot.tools[0]
    assert (first.name, first.title) == ("create_issue", "Create an issue")
    assert first.description.startswith("Opens an issue.\n")
    assert (snapshot.cached_at, snapshot.server_name, snapshot.instructions) == (NOW, "GitHub", "Be kind.")


@pytest.mark.parametrize(
    "change",
    [
        {"command": "other"},
        {"args": ("--all",)},
        {"cwd": "/elsewhere"},
        {"env": {"EXTRA": "1"}},
        {"command": None, "url": "http://127.0.0.1:1/mcp"},
        {"command": None, "url": "http://127.0.0.1:1/mcp", "transport": "sse"},
        {"command": None, "url": "http://127.0.0.1:1/mcp", "headers": {"X-Extra": "1"}},
        {"version": "2"},
    ],
    ids=lambda change: "+".join(change),
)
def test_a_list_made_for_another_launch_or_version_is_passed_over(change):
    with pytest.raises(CacheMiss) as miss:
        decode(content_of(), cache_key(spec(**change)))
    assert not miss.value.damaged


def test_every_way_to_launch_has_its_own_digest():
    url = {"command": None, "url": "http://127.0.0.1:1/mcp"}
    ways: list[dict] = [{}, {"args": ("a", "b")}, {"args": ("a b",)}, {"args": ("a",), "cwd": "b"}, url]
    ways += [{**url, "transport": "sse"}, {**url, "headers": {"A": "1"}}, {"env": {"A": "1"}}, {"version": "A"}]
    assert len({cache_key(spec(**way)).launch for way in ways}) == len(ways)


def test_secrets_bear_on_the_launch_by_name_only_and_header_names_ignore_case():
    url = {"command": None, "url": "http://127.0.0.1:1/mcp"}
    one = cache_key(spec(**url, env={"A": "1"}, headers={"X-Key": "1"}))
    other = cache_key(spec(**url, env={"A": "2"}, headers={"x-key": "2"}))
    assert one.launch == other.launch
    assert one.principal != other.principal


@pytest.mark.parametrize(
    ("mine", "yours"),
    [
        ({"env": {"TOKEN": "mine"}}, {"env": {"TOKEN": "yours"}}),
        (
            {"command": None, "url": "http://127.0.0.1:1", "headers": {"Authorization": "mine"}},
            {"command": None, "url": "http://127.0.0.1:1", "headers": {"Authorization": "yours"}},
        ),
    ],
)
def test_a_private_list_is_for_the_same_principal_only_and_a_public_one_for_all(mine, yours):
    my_key, your_key = cache_key(spec(**mine)), cache_key(spec(**yours))
    assert my_key.launch == your_key.launch
    private = content_of(PRIVATE, my_key)
    assert [one.name for one in decode(private, my_key).tools] == ["mine"]
    with pytest.raises(CacheMiss, match="private") as miss:
        decode(private, your_key)
    assert not miss.value.damaged
    assert decode(content_of(FULL, my_key), your_key).tools


def test_who_is_logged_in_and_what_is_inherited_make_the_principal_too():
    passed_on = spec(inherit_env=("GH_TOKEN",))
    needed = spec(requires={"env": ("GH_TOKEN",)})
    everything = spec(inherit_env=True)
    for server in (passed_on, needed, everything):
        keys = {cache_key(server, environ={"GH_TOKEN": value}).principal for value in ("a", "b", "")}
        assert len(keys) == 3
    assert cache_key(spec(), environ={"GH_TOKEN": "a"}) == cache_key(spec(), environ={"GH_TOKEN": "b"})
    assert cache_key(spec(), identity="ann").principal != cache_key(spec(), identity="bob").principal


def test_no_secret_and_no_unsalted_hash_of_one_is_in_the_file():
    server = spec(env={"TOKEN": "hunter2"}, headers={"Authorization": "hunter3"})
    key = cache_key(server)
    content = content_of(PRIVATE, key)
    for secret in (b"hunter2", b"hunter3", key.principal.hex().encode()):
        assert secret not in content
    assert content_of(PRIVATE, key, salt=b"one") != content_of(PRIVATE, key, salt=b"two")


def test_a_variable_that_is_not_valid_text_is_no_obstacle():
    odd = b"\xff\xfe".decode("utf-8", "surrogateescape")
    assert cache_key(spec(env={"A": odd}, args=(odd,))) != cache_key(spec(env={"A": ""}, args=("",)))


@pytest.mark.parametrize(
    ("ttl_ms", "age", "fresh"),
    [
        (None, 3599, True),
        (None, 3600, False),
        (60_000, 59, True),
        (60_000, 60, False),
        (0, 3599, True),
        (0, 3600, False),
        (-5, 3600, False),
        (10**12, 86_399, True),
        (10**12, 86_400, False),
        (None, -1, False),
    ],
)
def test_the_servers_word_on_freshness_counts_within_a_day(ttl_ms, age, fresh):
    snapshot = decode(content_of(listing("a", ttl_ms=ttl_ms)), cache_key(spec()))
    assert snapshot.is_fresh(NOW + age, refresh_after=3600) is fresh


def test_each_server_of_each_configuration_file_has_a_path_of_its_own():
    root = Path("/cache")
    names = ["github", "GitHub", "a/../b", "日本", "x" * 300]
    paths = [cache_path(root, spec(name)) for name in names]
    paths += [cache_path(root, spec("github", origin=f"/{project}/.mcp.json")) for project in "ab"]
    assert len({str(path).casefold() for path in paths}) == len(paths)
    assert {path.parent for path in paths} == {root / "servers"}
    assert all(path.suffix == ".json" and len(path.name) < 60 for path in paths)
    assert cache_path(root, spec("github")) == cache_path(root, spec("github", args=("--new",)))


def test_a_plug_in_keeps_its_cache_where_it_says(tmp_path):
    path = tmp_path / "tools-cache.json"
    assert cache_path(Path("/cache"), spec(cache_path=path)) == path
