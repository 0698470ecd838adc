"""Cache files, fingerprints and differences, for any JSON a server may send."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from pegboard.catalog.cache import CacheKey, CacheMiss, decode, encode, snapshot_of
from pegboard.catalog.catalog import build, diff
from pegboard.catalog.snapshot import canonical, fingerprint
from pegboard.types import Listing
from tests.often import often
from tests.unit.catalog.given import config, snapshot, spec, tool

KEY = CacheKey(manifest_version="1", launch="sha256:0", principal=b"me")
several = settings(max_examples=often(120), deadline=None)

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
definitions = st.builds(
    lambda name, more: {**more, "name": name},
    st.text(min_size=1, max_size=30),
    st.dictionaries(
        st.sampled_from(["title", "description", "annotations", "_meta"]) | st.text(max_size=8), values, max_size=5
    ),
)
listings = st.builds(
    Listing,
    tools=st.lists(definitions, max_size=4).map(tuple),
    server_name=st.text(max_size=10),
    server_version=st.text(max_size=10),
    protocol_version=st.text(max_size=10),
    instructions=st.text(max_size=30),
    ttl_ms=st.none() | st.integers(-5, 10**10),
    cache_scope=st.sampled_from(["public", "private"]),
)
moments = st.floats(0, 4e9)


@several
@given(listings, moments)
def test_a_file_gives_back_what_was_listed(listing, now):
    content = encode(listing, KEY, now=now, salt=b"salt")
    found = decode(content, KEY)
    assert found == snapshot_of(listing, KEY, now)
    assert [msgspec.json.decode(cached.definition) for cached in found.tools] == list(listing.tools)
    assert [cached.name for cached in found.tools] == [one["name"] for one in listing.tools]
    assert encode(found, KEY, now=0, salt=b"salt") == content


@several
@given(listings)
def test_a_file_is_one_json_document_for_any_other_reader(listing):
    document = json.loads(encode(listing, KEY, now=1.0, salt=b""))
    assert document["tools"] == list(listing.tools)
    assert document["instructions"] == listing.instructions


@several
@given(listings, st.data())
def test_any_damage_is_noticed(listing, data):
    content = bytearray(encode(listing, KEY, now=1.0, salt=b""))
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= data.draw(st.integers(1, 255))
    with pytest.raises(CacheMiss) as miss:
        decode(bytes(content), KEY)
    assert miss.value.damaged


@several
@given(st.binary(max_size=400))
def test_any_bytes_are_a_miss_and_nothing_worse(content):
    with pytest.raises(CacheMiss) as miss:
        decode(content, KEY)
    assert miss.value.reason


def shuffled(value, order):
    if isinstance(value, dict):
        return {key: shuffled(value[key], order) for key in order.draw(st.permutations(list(value)))}
    return [shuffled(item, order) for item in value] if isinstance(value, list) else value


@several
@given(definitions, st.data())
def test_a_fingerprint_does_not_depend_on_the_order_of_keys(definition, data):
    assert canonical(shuffled(definition, data)) == canonical(definition)


def places(value, path=()):
    """The way to every value in here."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield from places(item, (*path, key))


def changed_at(value, path, change):
    if not path:
        return change(value)
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed_at(value[path[0]], path[1:], change)
    return copy


CHANGES = [
    lambda value: [value],
    lambda value: {"": value},
    lambda value: {**value, "another": None} if isinstance(value, dict) and "another" not in value else {"x": value},
    lambda value: value + " " if isinstance(value, str) else [value],
    lambda value: value + 1 if isinstance(value, int) and not isinstance(value, bool) else [value],
]


@several
@given(definitions, st.data())
def test_a_fingerprint_depends_on_every_value(definition, data):
    path = data.draw(st.sampled_from(list(places(definition))))
    other = changed_at(definition, path, data.draw(st.sampled_from(CHANGES)))
    assert fingerprint(canonical(other)) != fingerprint(canonical(definition))


def test_numbers_and_words_that_look_alike_have_different_fingerprints():
    likenesses = [1, 1.0, True, "1", None, "null", "", [], {}, [1], 0, False, -0.0]
    assert len({canonical({"name": "a", "v": value}) for value in likenesses}) == len(likenesses)


names = st.sampled_from("abcdefgh")
catalogs = st.dictionaries(
    st.sampled_from(["one", "two", "three"]), st.dictionaries(names, st.sampled_from(["old", "new"]), max_size=6)
)


def catalog_of(listed):
    specs = [spec(key) for key in listed]
    return build(
        config(*specs),
        {one.name: snapshot(one, *(tool(name, text) for name, text in listed[one.name].items())) for one in specs},
    )


def fingerprints(catalog):
    return {name: one.fingerprint for name, one in catalog.tools.items()}


@several
@given(catalogs, catalogs)
def test_a_difference_applied_to_the_old_catalog_gives_the_new_one(before, after):
    old, new = catalog_of(before), catalog_of(after)
    result, wanted = fingerprints(old), fingerprints(new)
    for server, changes in diff(old, new).items():
        touched = (*changes.added, *changes.removed, *changes.changed)
        assert touched
        assert all(name.startswith(f"{server}__") for name in touched)
        assert all(name in result for name in (*changes.removed, *changes.changed))
        assert not any(name in result for name in changes.added)
        assert all(result[name] != wanted[name] for name in changes.changed)
        for name in changes.removed:
            del result[name]
        result.update({name: wanted[name] for name in (*changes.added, *changes.changed)})
    assert result == wanted


@several
@given(catalogs, catalogs)
@example({"one": {"a": "old", "b": "old"}}, {"one": {"b": "old", "a": "old"}})
def test_equal_versions_mean_equal_tools_in_the_same_order(before, after):
    old, new = catalog_of(before), catalog_of(after)
    in_order = [(list(catalog.tools.items()), list(catalog.servers)) for catalog in (old, new)]
    assert (old.version == new.version) == (in_order[0] == in_order[1])
    assert (diff(old, new) == {}) == (fingerprints(old) == fingerprints(new))


@several
@given(catalogs, catalogs)
def test_a_rebuild_from_the_previous_catalog_is_the_same_as_one_from_nothing(before, after):
    assume(after)
    fresh = catalog_of(after)
    snapshots = {key: part.inputs.snapshot for key, part in fresh.slices.items() if part.inputs.snapshot}
    servers = config(*(part.inputs.spec for part in fresh.slices.values()))
    assert build(servers, snapshots, previous=catalog_of(before)) == fresh
