"""Names are legal, short, told apart, and never depend on their siblings."""

from __future__ import annotations

import pytest

from pegboard.catalog.naming import (
    MAX_PUBLIC,
    all_plain_and_distinct,
    confusable,
    name_problem,
    public_name,
    refused_servers,
    server_prefix,
    split,
)
from tests.unit.catalog.given import spec


@pytest.mark.parametrize(
    ("key", "prefix"),
    [
        ("github", "github"),
        ("my-server", "my-server"),
        ("my.server", "my_server"),
        ("a  b//c", "a_b_c"),
        ("a__b___c", "a_b_c"),
        ("ends_", "ends"),
        ("ends.", "ends"),
        ("_starts", "_starts"),
        ("x" * 32, "x" * 32),
    ],
)
def test_a_server_key_becomes_a_legal_prefix(key, prefix):
    assert server_prefix(key) == prefix


@pytest.mark.parametrize("key", ["", "___", "日本", "中国", "\n", "x" * 33, "é" * 40])
def test_a_key_with_nothing_legal_or_too_much_gets_a_hash(key):
    prefix = server_prefix(key)
    assert 1 <= len(prefix) <= 32
    assert prefix[-9] == "-"
    assert int(prefix[-8:], 16) >= 0


def test_different_keys_without_a_legal_letter_do_not_share_a_prefix():
    assert server_prefix("日本") != server_prefix("中国")


@pytest.mark.parametrize("tool", ["create_issue", "list-repos", "_private", "a__b", "UPPER", "9"])
def test_legal_and_short_names_stay_as_they_are(tool):
    assert public_name("github", tool) == f"github__{tool}"
    assert split(public_name("github", tool)) == ("github", tool)


def test_a_name_of_exactly_64_characters_stays_and_one_more_is_cut():
    fits = "t" * (MAX_PUBLIC - len("github__"))
    assert public_name("github", fits) == "github__" + fits
    cut = public_name("github", fits + "t")
    assert len(cut) == MAX_PUBLIC
    assert cut.startswith("github__ttt")
    assert cut[-9] == "-"


@pytest.mark.parametrize("tool", ["issue.create", "issue/create", "issue create", "issué", "x\n", "日本"])
def test_illegal_characters_are_replaced_and_a_hash_keeps_names_apart(tool):
    name = public_name("github", tool)
    assert name.startswith("github__")
    assert name.isascii()
    assert name[-9] == "-"
    assert name != public_name("github", tool + "!")


def test_altered_names_differ_between_servers_and_are_the_same_every_time():
    assert public_name("github", "issue.create")[-8:] != public_name("gitlab", "issue.create")[-8:]
    # Names are kept in other programs' settings, so they may never change between releases:
    # the hash is the beginning of `printf '6:github12:issue.create' | sha256sum`.
    assert public_name("github", "issue.create") == "github__issue_create-bfdf0c37"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("list_files", "List_Files"),
        ("list_files", "list-files"),
        ("list_files", "1ist_fiIes"),
        ("go", "g0"),
        ("go", "GO"),
        ("create", "\uff43reate"),
        ("create", "cre\u200bate"),
        ("straße", "STRASSE"),
    ],
)
def test_names_that_a_hasty_reader_confuses_have_one_skeleton(one, other):
    assert confusable(one) == confusable(other)


@pytest.mark.parametrize(("one", "other"), [("get", "set"), ("file", "files"), ("a_b", "ab"), ("read2", "read3")])
def test_names_that_differ_visibly_do_not(one, other):
    assert confusable(one) != confusable(other)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        (None, "not a string"),
        (7, "not a string"),
        (["x"], "not a string"),
        ("", "has no name"),
        ("x" * 257, "257 characters"),
    ],
)
def test_what_cannot_be_a_name_is_refused_with_a_reason(name, problem):
    assert problem in (name_problem(name) or "")


def test_a_name_of_256_characters_is_accepted():
    assert name_problem("x" * 256) is None


def servers(*specs):
    return {one.name: one for one in specs}


def test_of_two_keys_with_one_prefix_the_later_is_refused():
    refused = refused_servers(servers(spec("a_b"), spec("a.b"), spec("c")))
    assert list(refused) == ["a_b"]
    assert "has the same prefix as server 'a.b'" in refused["a_b"]


def test_keys_that_are_easily_confused_are_refused_too():
    refused = refused_servers(servers(spec("github"), spec("GitHub"), spec("glthub")))
    assert list(refused) == ["github", "glthub"]
    assert "easily confused with server 'GitHub'" in refused["github"]


@pytest.mark.parametrize("key", ["pegboard", "Pegboard", "PEGB0ARD"])
def test_pegboards_own_name_is_reserved(key):
    assert "kept for Pegboard" in refused_servers(servers(spec(key)))[key]


def test_a_plug_in_never_displaces_a_configured_server(tmp_path):
    plugin = spec("Github", cache_path=tmp_path / "tools-cache.json")
    assert list(refused_servers(servers(plugin, spec("github")))) == ["Github"]


def test_a_server_that_is_disabled_or_wrong_is_in_nobodys_way():
    assert refused_servers(servers(spec("a.b", enabled=False), spec("a_b"), spec("a b", problem="no"))) == {}


@pytest.mark.parametrize(
    "names",
    [
        ["a", "b", "a"],
        ["list", "1ist"],
        ["a.b"],
        ["a\nb"],
        ["x" * 60],
        ["", ""],
        ["日"],
    ],
)
def test_the_quick_look_leaves_every_doubtful_list_to_the_slow_one(names):
    assert not all_plain_and_distinct("github", names)


@pytest.mark.parametrize("names", [["a"], ["a", "b", "a_b", "ab"], ["x" * 56]])
def test_the_quick_look_passes_ordinary_lists(names):
    assert all_plain_and_distinct("github", names)
