"""The index file of one configuration: opened, built anew as far as needed, and never trusted blindly."""

from __future__ import annotations

import asyncio

import msgspec
import numpy as np
import pytest

from pegboard.index import keeper as keepers
from pegboard.index.finder import Finder
from pegboard.index.keeper import IndexKeeper, read_parts, words_only, write_parts
from pegboard.index.parts import FORMAT
from pegboard.store.arrays import open_arrays, write_arrays
from tests.unit.index.given import (
    BrokenEmbedder,
    CountingEmbedder,
    arrays_equal,
    ask,
    by_name,
    names,
    office,
    parts_of,
    static,
    suite_tools,
    tool,
)

TOOLS = by_name(office())


@pytest.fixture
def keeper(tmp_path):
    return IndexKeeper(tmp_path / "index" / "it.pegboard", static())


def build(keeper, tools=TOOLS, catalog="v1", previous=None):
    return asyncio.run(keeper.build(tools, catalog, previous))


def test_where_there_is_no_file_there_is_no_index_and_nothing_wrong(keeper):
    assert keeper.open() == (None, "")
    assert not keeper.current(None, "v1")


def test_what_was_built_is_in_the_file(keeper):
    built = build(keeper)
    assert (built.read, built.embedded, built.warnings) == (len(TOOLS), len(TOOLS), ())
    opened, warning = keeper.open()
    assert warning == ""
    assert opened.parts.about == built.index.parts.about
    assert arrays_equal(opened.parts.arrays(), parts_of(TOOLS.values()).arrays())
    assert names(ask(Finder(TOOLS, opened, static()), "open an issue"))[0] == "github__create_issue"


def test_what_was_built_serves_from_the_file_and_not_from_memory(keeper):
    assert not any(array.flags.owndata for array in build(keeper).index.parts.arrays().values())


def test_an_index_is_current_for_one_catalog_and_one_embedder(keeper):
    index = build(keeper).index
    assert keeper.current(index, "v1")
    assert not keeper.current(index, "v2")
    assert not IndexKeeper(keeper.path, None).current(index, "v1")
    assert not IndexKeeper(keeper.path, BrokenEmbedder("another:1")).current(index, "v1")


def test_only_what_changed_is_read_and_embedded(keeper):
    counting = CountingEmbedder()
    keeper = IndexKeeper(keeper.path, counting)
    build(keeper)
    counting.tools.clear()
    more = by_name([tool("ring", "Rings a bell.", "door"), *office()[1:]])
    built = build(keeper, more, "v2", keeper.open()[0])
    assert (built.read, built.embedded) == (1, 1)
    assert len(counting.tools) == 1
    assert "Rings a bell." in counting.tools[0]
    assert arrays_equal(built.index.parts.arrays(), parts_of(more.values()).arrays())
    assert keeper.open()[0].parts.about.catalog == "v2"


def test_nothing_new_is_nothing_read(keeper):
    first = build(keeper).index
    built = build(keeper, TOOLS, "v2", first)
    assert (built.read, built.embedded) == (0, 0)
    assert keeper.current(built.index, "v2")


def test_another_embedder_embeds_all_anew_and_reads_nothing(keeper):
    first = build(keeper).index
    other = CountingEmbedder("another:1")
    built = build(IndexKeeper(keeper.path, other), TOOLS, "v1", first)
    assert (built.read, built.embedded) == (0, len(TOOLS))
    assert built.index.parts.about.embedder == "another:1"


def test_without_an_embedder_the_index_goes_by_words(keeper):
    built = build(IndexKeeper(keeper.path, None))
    assert built.index.parts.vectors is None
    assert (built.embedded, built.warnings) == (0, ())
    assert arrays_equal(built.index.parts.arrays(), words_only(TOOLS, "v1").parts.arrays())


@pytest.mark.parametrize("after", [0, 1])
def test_an_embedder_that_fails_leaves_an_index_by_words_and_a_warning(keeper, monkeypatch, after):
    monkeypatch.setattr(keepers, "BATCH", 2)
    keeper = IndexKeeper(keeper.path, BrokenEmbedder(after=after))
    built = build(keeper)
    (warning,) = built.warnings
    assert "the model is asleep" in warning
    assert built.index.parts.vectors is None
    assert not keeper.current(built.index, "v1")
    again = build(IndexKeeper(keeper.path, static()), TOOLS, "v1", built.index)
    assert (again.read, again.embedded, again.warnings) == (0, len(TOOLS), ())


def test_batches_are_joined_in_their_order(keeper, monkeypatch):
    monkeypatch.setattr(keepers, "BATCH", 4)
    assert arrays_equal(build(keeper).index.parts.arrays(), parts_of(TOOLS.values()).arrays())


def test_progress_is_told_from_nothing_to_all(tmp_path):
    told = []
    build(IndexKeeper(tmp_path / "it", static(), lambda *what: told.append(what)), by_name(suite_tools()))
    for stage in ("embedding", "indexing"):
        steps = [(done, every) for what, done, every in told if what == stage]
        assert steps == sorted(steps)
        assert steps[0][0] == 0
        assert steps[-1][0] == steps[-1][1] > 0


@pytest.mark.parametrize("embedder", [None, static()], ids=["words", "vectors"])
def test_an_empty_catalog_is_kept_and_grows(keeper, embedder):
    keeper = IndexKeeper(keeper.path, embedder)
    empty = build(keeper, {}, "v0").index
    assert keeper.open()[0].parts.about.tools == 0
    grown = build(keeper, TOOLS, "v1", empty).index
    assert ask(Finder(TOOLS, grown, embedder), "open an issue").hits[0].name == "github__create_issue"
    assert build(keeper, {}, "v2", grown).index.parts.about.tools == 0


# ── files that are not what they should be ───────────────────────────────────────────────────────────────────────────


def test_a_damaged_file_is_ignored_with_a_warning_and_built_anew(keeper):
    build(keeper)
    content = keeper.path.read_bytes()
    for altered in (b"", b"x", content[: len(content) // 2], content[:-4000], b"\xff" + content[1:], content * 2):
        keeper.path.write_bytes(altered)
        index, warning = keeper.open()
        if altered == content * 2:
            assert index is not None, "what follows the last array is nobody's"
            continue
        assert index is None
        assert str(keeper.path) in warning
    build(keeper)
    assert keeper.open()[1] == ""


def test_no_flipped_byte_is_ever_served(keeper):
    whole = build(keeper).index.parts
    content = keeper.path.read_bytes()
    chance = np.random.default_rng(11)
    refused = 0
    for position in chance.integers(len(content), size=150):
        altered = bytearray(content)
        altered[position] ^= int(chance.integers(1, 256))
        keeper.path.write_bytes(altered)
        index, warning = keeper.open()
        assert (index is None) == bool(warning)
        refused += index is None
        assert index is None or arrays_equal(index.parts.arrays(), whole.arrays())
    assert refused > 100


@pytest.mark.parametrize("change", [{"format": FORMAT + 1}, {"tools": 3}, {"tools": 99}])
def test_an_index_of_another_version_or_that_does_not_add_up_is_ignored(keeper, change):
    parts = parts_of(TOOLS.values())
    write_parts(keeper.path, msgspec.structs.replace(parts, about=msgspec.structs.replace(parts.about, **change)))
    index, warning = keeper.open()
    assert index is None
    assert warning.startswith("index ignored")


@pytest.mark.parametrize("missing", ["facts.names", "vocabulary.hashes", "vectors.rows", "statistics.rarity"])
def test_an_index_without_one_of_its_arrays_is_ignored(keeper, missing):
    parts = parts_of(TOOLS.values())
    arrays = {name: array for name, array in parts.arrays().items() if name != missing}
    write_arrays(keeper.path, msgspec.json.encode(parts.about), arrays)
    assert keeper.open()[0] is None
    assert keeper.open()[1]


@pytest.mark.parametrize("about", [b"7", b"[]", b'{"format":"one"}', b'{"tools":null}'])
def test_a_file_of_arrays_that_is_no_index_is_ignored(keeper, about):
    write_arrays(keeper.path, about, parts_of(TOOLS.values()).arrays())
    assert keeper.open()[0] is None
    assert keeper.open()[1]


def test_keys_of_later_versions_of_the_same_format_are_no_harm(keeper):
    parts = parts_of(TOOLS.values())
    about = {**msgspec.to_builtins(parts.about), "later": True}
    write_arrays(keeper.path, msgspec.json.encode(about), {**parts.arrays(), "later.array": np.zeros(3)})
    assert read_parts(open_arrays(keeper.path)).about == parts.about


@pytest.mark.parametrize("obstacle", ["a folder in its place", "a file for its folder"])
def test_an_index_that_cannot_be_kept_serves_all_the_same_and_warns(tmp_path, obstacle):
    path = tmp_path / "index" / "it"
    if obstacle == "a folder in its place":
        path.mkdir(parents=True)
    else:
        path.parent.write_bytes(b"")
    keeper = IndexKeeper(path, static())
    assert keeper.open()[0] is None
    built = build(keeper)
    (warning,) = built.warnings
    assert warning.startswith("index not kept")
    assert str(path) in warning
    assert names(ask(Finder(TOOLS, built.index, static()), "open an issue"))[0] == "github__create_issue"


def test_a_folder_where_the_file_should_be_is_told(tmp_path):
    index, warning = IndexKeeper(tmp_path, static()).open()
    assert index is None
    assert "cannot be read" in warning


class Widening(CountingEmbedder):
    """An endpoint behind whose name another model answers, once it is `wide`."""

    wide = False

    async def embed(self, texts, *, query=False):
        rows = await super().embed(texts, query=query)
        return np.hstack((rows, rows)) / np.float32(2**0.5) if self.wide else rows


def test_another_model_behind_the_same_name_is_not_mixed_with_the_one_before(keeper):
    keeper.embedder = embedder = Widening()
    first = build(keeper).index
    embedder.wide = True
    answer = ask(Finder(TOOLS, first, embedder), "open an issue")
    assert names(answer)[0] == "github__create_issue"
    assert any("searched by words alone" in note for note in answer.notes)
    more = TOOLS | by_name([tool("ring_bell", "Ring the bell.", "door")])
    built = build(keeper, more, "v2", first)
    assert built.embedded == len(more)
    assert ask(Finder(more, built.index, embedder), "ring the bell").notes == ()


def test_an_index_that_another_process_put_in_its_place_is_not_taken_for_ones_own(keeper, monkeypatch):
    def overtaken(path, parts):
        write_parts(path, parts)
        return write_parts(path, parts_of(office("slack"), catalog="theirs"))

    monkeypatch.setattr(keepers, "write_parts", overtaken)
    assert build(keeper).index.parts.about.catalog == "v1"
