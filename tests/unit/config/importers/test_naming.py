"""Keys for `[servers.<key>]`."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.config.importers.naming import MAX_KEY, Keys, legal_key, skeleton


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("github", "github"),
        ("my_server-2", "my_server-2"),
        ("Notion Search", "Notion-Search"),
        ("a__b", "a_b"),
        ("__init__", "init"),
        ("@scope/name", "name"),
        ("io.example/their/server/", "server"),
        ("a.b", "a-b"),
        ("Café", "Cafe"),
        ("日本語", "server"),
        ("", "server"),
        ("x" * 50, "x" * 32),
    ],
)
def test_a_name_becomes_a_key_that_still_resembles_it(name, key):
    assert legal_key(name) == key


@given(st.lists(st.tuples(st.text(), st.sampled_from(["cursor", "claude-desktop"])), max_size=30))
@settings(deadline=None)
def test_keys_are_always_legal_and_never_alike(wanted):
    keys = Keys()

    given_out = [keys.claim(name, program) for name, program in wanted]

    assert all(re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?", key) for key in given_out)
    assert all("__" not in key and len(key) <= MAX_KEY for key in given_out)
    assert len({skeleton(key) for key in given_out} | {skeleton("pegboard")}) == len(given_out) + 1
