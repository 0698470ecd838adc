"""An index made from the one before is the same as one made from nothing, and reads only what changed."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from pegboard.index.build import assemble, plan, texts_to_embed
from pegboard.index.documents import FIELDS
from pegboard.index.index import Index
from pegboard.index.intent import understand
from pegboard.index.parts import FORMAT, from_arrays
from pegboard.index.rank import candidates
from tests.unit.index.given import arrays_equal, index_of, office, office_index, parts_of, static, tool


def found_by(parts, word):
    """Public names of the tools that have a word."""
    numbers = parts.vocabulary.numbers([each.term for each in understand(word).words])
    having = {int(each) for number in numbers if number >= 0 for each in parts.postings.tool[parts.postings.of(number)]}
    return {parts.facts.name(each) for each in having}


EDITS = {
    "nothing": lambda tools: tools,
    "added at the end": lambda tools: [*tools, tool("ring", "Rings a bell.", "door")],
    "added at the front": lambda tools: [tool("ring", "Rings a bell.", "door"), *tools],
    "removed": lambda tools: tools[:2] + tools[3:],
    "changed": lambda tools: [tool("create_issue", "Opens a ticket.", "github"), *tools[1:]],
    "turned round": lambda tools: tools[::-1],
    "a server renamed": lambda tools: [
        tool(each.name, each.description, "gitlab" if each.server == "github" else each.server) for each in tools
    ],
    "a server gone": lambda tools: [each for each in tools if each.server != "slack"],
    "a copy on another server": lambda tools: [*tools, *(tool(each.name, each.description, "b") for each in tools)],
    "only public names": lambda tools: [
        msgspec.structs.replace(each, public_name=each.public_name + "_2") for each in tools
    ],
    "twins": lambda tools: [
        *tools,
        *(msgspec.structs.replace(each, public_name=each.public_name + "_2") for each in tools[:3]),
    ],
    "tagged": lambda tools: [msgspec.structs.replace(tools[0], tags=("urgent",)), *tools[1:]],
    "emptied": lambda tools: [],
}


@pytest.mark.parametrize("meaning", [True, False], ids=["vectors", "words"])
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_build_from_the_one_before_is_the_same_as_one_from_nothing(edit, meaning):
    before = parts_of(office(), meaning=meaning, thin=True)
    after = edit(office())
    fresh, made = parts_of(after, meaning=meaning, thin=True), parts_of(after, before, meaning=meaning, thin=True)
    assert arrays_equal(made.arrays(), fresh.arrays())
    assert made.about.servers == fresh.about.servers
    assert arrays_equal(parts_of(office(), made, meaning=meaning, thin=True).arrays(), before.arrays())


@pytest.mark.parametrize(
    ("edit", "unread"),
    [
        ("nothing", 0),
        ("added at the front", 1),
        ("removed", 0),
        ("changed", 1),
        ("turned round", 0),
        ("a server renamed", 3),
        ("only public names", 0),
        ("twins", 0),
        ("tagged", 1),
    ],
)
def test_only_what_changed_is_read_and_embedded(edit, unread):
    work = plan(EDITS[edit](office()), static().identity, office_index().parts)
    assert len(work.unread) == len(work.unembedded) == len(texts_to_embed(work)) == unread


def test_all_is_read_where_nothing_is_known():
    work = plan(office(), static().identity)
    assert len(work.unread) == len(work.unembedded) == len(office())


def test_vectors_are_kept_by_content_and_never_asked_for_again():
    before = parts_of(office())
    after = [tool("ring", "Rings.", "door"), *office()[::-1]]
    work = plan(after, static().identity, before)
    strange = np.full((1, static().dimensions), 0.5, np.float32)
    made = assemble(work, catalog="v2", embedder=static().identity, vectors=strange)
    assert made.vectors is not None
    assert before.vectors is not None
    assert np.array_equal(made.vectors.of(np.array([0], np.int32)), strange)
    places = np.arange(len(office()), dtype=np.int32)
    assert np.array_equal(made.vectors.of(places + 1), before.vectors.of(places[::-1].copy()))


def test_another_embedder_embeds_all_anew_and_reads_nothing():
    work = plan(office(), "another:1", parts_of(office()))
    assert len(work.unembedded) == len(office())
    assert work.unread == []


def test_vectors_are_made_for_an_index_that_had_none_without_reading_its_tools():
    work = plan(office(), static().identity, parts_of(office(), meaning=False))
    assert len(work.unembedded) == len(office())
    assert work.unread == []
    made = parts_of(office(), parts_of(office(), meaning=False))
    assert arrays_equal(made.arrays(), office_index().parts.arrays())


def test_without_an_embedder_nothing_is_embedded():
    work = plan(office(), "", parts_of(office()))
    assert work.unembedded == ()
    made = assemble(work, catalog="v2")
    assert made.vectors is None
    assert made.about.embedder == ""


def test_without_vectors_an_index_does_not_say_that_it_has_some():
    assert assemble(plan(office(), static().identity), catalog="v", embedder=static().identity).about.embedder == ""


def test_an_index_of_another_format_is_not_built_on():
    before = parts_of(office())
    old = msgspec.structs.replace(before, about=msgspec.structs.replace(before.about, format=FORMAT + 1))
    work = plan(office(), static().identity, old)
    assert len(work.unread) == len(work.unembedded) == len(office())


def test_an_index_says_what_it_was_made_from():
    about = parts_of(office(), catalog="sha256:abc").about
    assert (about.catalog, about.embedder, about.format) == ("sha256:abc", static().identity, FORMAT)
    assert about.tools == len(office())
    assert about.servers == tuple(dict.fromkeys(each.server for each in office()))


@pytest.mark.parametrize("meaning", [True, False])
def test_an_empty_catalog_and_one_tool_make_an_index(meaning):
    empty = parts_of([], meaning=meaning)
    assert empty.about.tools == 0
    one = parts_of([tool("ring", "Rings a bell.")], empty, meaning=meaning)
    assert found_by(one, "bell") == {"github__ring"}
    assert arrays_equal(parts_of([], one, meaning=meaning).arrays(), parts_of([], meaning=meaning).arrays())


def test_every_field_can_be_found():
    made = parts_of(
        [
            tool(
                "nameword",
                "descriptionword",
                "serverword",
                title="titleword",
                schema={"properties": {"parameterword": {"description": "parametertextword"}}},
                tags=("tagword",),
                scopes=("scopeword",),
                aliases=("aliasword",),
                meta={"anthropic/searchHint": "hintword"},
            ),
            tool("other"),
        ]
    )
    for word in (
        "name",
        "server",
        "title",
        "description",
        "parameter",
        "parametertext",
        "tag",
        "scope",
        "alias",
        "hint",
    ):
        assert found_by(made, word + "word") == {"serverword__nameword"}
    assert len(FIELDS) == 10


def test_a_term_that_no_tool_has_any_more_is_forgotten():
    before = parts_of([tool("ring", "Rings the carillon.", "door"), *office()])
    assert found_by(before, "carillon") == {"door__ring"}
    after = parts_of(office(), before)
    assert found_by(after, "carillon") == set()
    assert after.vocabulary.meant(["carilon"]) in ({}, {"carilon": []})


def test_a_tool_that_is_not_in_the_catalog_is_outside_of_all_figures():
    rogue = [tool(f"issue_{number}", "issue repository channel " * 50, "rogue") for number in range(20)]
    with_rogue = parts_of([*office(), *rogue])
    assert arrays_equal(parts_of(office(), with_rogue).arrays(), office_index().parts.arrays())


def test_arrays_become_the_same_index_again():
    made = parts_of(office())
    again = from_arrays(made.about, made.arrays())
    assert arrays_equal(again.arrays(), made.arrays())
    words = parts_of(office(), meaning=False)
    assert from_arrays(words.about, words.arrays()).vectors is None
    arrays = made.arrays()
    del arrays["postings.tool"]
    with pytest.raises(KeyError):
        from_arrays(made.about, arrays)


def test_names_of_all_scripts_are_given_back():
    names = ["github__create_issue", "サーバー__検索", "x", "é" * 50, "half\ud83d"]
    made = parts_of([tool("t", public_name=name) for name in names])
    assert [made.facts.name(place) for place in range(len(names))] == names


def test_only_names_with_the_same_words_are_namesakes():
    same = ["create_issue", "createIssue", "issue-create", "CREATE_ISSUES"]
    other = ["create_issues_list", "issue", "delete_issue"]
    found = parts_of([tool(name, server=f"s{place}") for place, name in enumerate([*same, *other])]).facts.namesake
    assert len(set(found[: len(same)].tolist())) == 1
    assert len(set(found.tolist())) == 1 + len(other)


def test_hostile_definitions_cost_no_other_tool_its_place():
    hostile = [
        tool("a", "word " * 100_000),
        tool("b", schema={"properties": {"p": {"enum": ["x" * 1000] * 20_000}}}),
        tool("c", schema={"properties": {f"p{number}": {} for number in range(20_000)}}),
        tool("x" * 10_000, "\x00\x01\x1b[31m"),
        tool("😀", "👩‍👩‍👧‍👦" * 1000, "🚀"),
        tool("d", schema={"properties": [["deep"] * 10]}),
    ]
    index = index_of(*hostile, *office())
    _, ranked = candidates(index.parts, understand("merge a pull request"), None)
    assert index.parts.facts.name(int(ranked.tools[np.argmax(ranked.score)])) == "github__merge_pull_request"
    assert isinstance(index, Index)
