"""What holds of the index for any tools, any changes to them and any query."""

from __future__ import annotations

from itertools import pairwise

import msgspec
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pegboard.index.documents import FIELDS, content_of, document_of
from pegboard.index.finder import Finder
from pegboard.index.index import Index, slots_of
from pegboard.index.intent import understand
from pegboard.index.narrow import Narrow
from pegboard.index.priors import BOUND
from pegboard.surface.render import signature
from pegboard.types import Priors, Tool
from tests.often import often
from tests.unit.index.given import (
    ThinEmbedder,
    arrays_equal,
    ask,
    by_name,
    finder_of,
    index_of,
    names,
    office,
    parts_of,
    static,
    suite_finder,
    suite_tools,
    tool,
)

several = settings(max_examples=often(80), deadline=None)
few = settings(max_examples=often(40), deadline=None)

VERBS = ["create", "delete", "list", "send", "search"]
THINGS = ["issue", "message", "file", "invoice", "channel", "日本語", "v2"]
ABOUT = ["", "Does it at once.", "Opens a ticket in the tracker.", "Sends mail to people.", "ファイルを検索する"]


@st.composite
def catalogs(draw, least=0, most=12, servers=("alpha", "beta", "gamma")):
    """Tools by public name, drawn from a small world so that they share words, copies and namesakes."""
    drawn = draw(
        st.dictionaries(
            st.tuples(st.sampled_from(servers), st.sampled_from(VERBS), st.sampled_from(THINGS)),
            st.tuples(st.sampled_from(ABOUT), st.sampled_from([(), ("crm",), ("crm", "hr")])),
            min_size=least,
            max_size=most,
        )
    )
    return [
        tool(f"{verb}_{thing}", about, server, tags=tags)
        for (server, verb, thing), (about, tags) in draw(st.permutations(list(drawn.items())))
    ]


queries = st.lists(
    st.sampled_from([*VERBS, *THINGS, "alpha", "the", "issues", "mesage", "+file", "and then", '"x"', "blorptang"]),
    min_size=1,
    max_size=6,
).map(" ".join)


def reachable(answer):
    return [name for hit in answer.hits for name in (hit.name, *hit.also)]


# ── building ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@several
@given(catalogs(), catalogs(), st.booleans())
def test_a_build_from_any_other_index_is_the_same_as_one_from_nothing(before, after, meaning):
    old, fresh = parts_of(before, meaning=meaning, thin=True), parts_of(after, meaning=meaning, thin=True)
    made = parts_of(after, old, meaning=meaning, thin=True)
    assert arrays_equal(made.arrays(), fresh.arrays())
    assert made.about.servers == fresh.about.servers


@st.composite
def edited(draw, tools):
    """The tools after a few changes: added, removed, changed, moved to another server, doubled, in another order."""
    tools = list(tools)
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["add", "remove", "change", "rename server", "double", "shuffle"]))
        at = draw(st.integers(0, max(len(tools) - 1, 0)))
        if kind == "add":
            tools.insert(at, tool(draw(st.sampled_from(["ring", "open_door"])), draw(st.sampled_from(ABOUT)), "door"))
        elif kind == "rename server":
            tools = [
                msgspec.structs.replace(each, server="omega") if each.server == "alpha" else each for each in tools
            ]
        elif kind == "shuffle":
            tools = draw(st.permutations(tools))
        elif tools and kind == "remove":
            del tools[at]
        elif tools and kind == "change":
            tools[at] = tool(tools[at].name, draw(st.sampled_from(ABOUT)), tools[at].server, tags=("new",))
        elif tools:
            tools.append(msgspec.structs.replace(tools[at], public_name=f"{tools[at].public_name}_{len(tools)}"))
    return list({each.public_name: each for each in tools}.values())


@several
@given(st.data())
def test_a_chain_of_edits_leads_to_the_same_index_and_the_same_answers(data):
    tools = data.draw(catalogs(least=1))
    parts = parts_of(tools, thin=True)
    for _ in range(3):
        tools = data.draw(edited(tools))
        parts = parts_of(tools, parts, thin=True)
    fresh = parts_of(tools, thin=True)
    assert arrays_equal(parts.arrays(), fresh.arrays())
    query = data.draw(queries)
    catalog = by_name(tools)
    assert ask(Finder(catalog, Index(parts), ThinEmbedder()), query) == ask(
        Finder(catalog, Index(fresh), ThinEmbedder()), query
    )


# ── order ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@several
@given(queries, st.integers(1, 20))
def test_the_same_query_has_the_same_answer_twice(query, limit):
    assert ask(suite_finder(), query, limit) == ask(suite_finder(), query, limit)


@few
@given(catalogs(least=1, servers=("alpha",)), queries, st.randoms(use_true_random=False), st.booleans())
def test_the_order_of_the_catalog_decides_nothing_but_ties(tools, query, chance, meaning):
    shuffled = list(tools)
    chance.shuffle(shuffled)
    one = ask(finder_of(*tools, thin=True, meaning=meaning), query, 20, always=True)
    other = ask(finder_of(*shuffled, thin=True, meaning=meaning), query, 20, always=True)
    scores = {hit.name: hit.match.score for hit in one.hits}
    again = {hit.name: hit.match.score for hit in other.hits}
    assert scores.keys() == again.keys()
    assert all(abs(scores[name] - again[name]) < 1e-2 for name in scores)
    in_order = [scores[name] for name in names(other)]
    assert all(better > worse - 1e-2 for better, worse in pairwise(in_order))


# ── exact names ──────────────────────────────────────────────────────────────────────────────────────────────────────


@several
@given(catalogs(least=1), st.text(max_size=40), st.data())
def test_adding_an_unrelated_tool_never_removes_an_exact_match(tools, about, data):
    one = data.draw(st.sampled_from(tools))
    stranger = tool("unrelated_stranger", f"{one.public_name} {one.name} {about}", "zeta")
    finder = finder_of(*tools, stranger, thin=True)
    assert names(ask(finder, one.public_name)) == [one.public_name]
    if sum(each.name == one.name for each in tools) == 1:
        assert names(ask(finder, one.name))[0] == one.public_name


# ── filters ──────────────────────────────────────────────────────────────────────────────────────────────────────────

narrows = st.builds(
    Narrow,
    servers=st.sampled_from([(), ("alpha",), ("beta", "gamma"), ("nobody",)]),
    tags=st.sampled_from([(), ("crm",), ("hr", "crm")]),
    scopes=st.sampled_from([None, (), ("admin",)]),
    allow=st.sampled_from([None, (), ("alpha__*",), ("*_issue", "send_message"), ("beta__list_file",)]),
    max_cost_usd=st.sampled_from([None, 0.0, 0.5]),
    max_latency_ms=st.sampled_from([None, 100.0]),
    latency=st.sampled_from(["p95", "p99"]),
)


@st.composite
def priced(draw):
    tools = [
        msgspec.structs.replace(
            each,
            cost_usd=draw(st.sampled_from([None, 0.0, 0.1, 9.0])),
            scopes=draw(st.sampled_from([(), ("admin",), ("admin", "root")])),
        )
        for each in draw(catalogs(least=1))
    ]
    figures = st.sampled_from([None, 10.0, 5000.0])
    records = st.none() | st.builds(Priors, calls=st.just(5.0), p95_ms=figures, p99_ms=figures, cost_usd=figures)
    drawn = {each.public_name: draw(records) for each in tools}
    return tools, {name: record for name, record in drawn.items() if record is not None}


@several
@given(priced(), narrows, queries | st.sampled_from(["create_issue", "alpha__create_issue"]), st.integers(1, 20))
def test_no_filter_ever_leaks_and_the_list_stays_full(given_tools, narrow, query, limit):
    tools, priors = given_tools
    finder = finder_of(*tools, thin=True, priors=priors)
    narrowing = {field: getattr(narrow, field) for field in narrow.__struct_fields__}
    admitted = {each.public_name for each in tools if narrow.admits(each, priors.get(each.public_name))}
    answer = ask(finder, query, limit, always=True, **narrowing)
    assert set(reachable(answer)) <= admitted
    if not understand(query).demanded and not any(name in (query, f"x{query}") for name in by_name(tools)):
        assert len(answer.hits) == limit or len(set(reachable(answer))) >= min(limit, len(admitted))


@few
@given(priced(), narrows, queries)
def test_what_no_filter_has_figures_of_is_never_left_out(given_tools, narrow, query):
    tools, _ = given_tools
    unknown = [msgspec.structs.replace(each, cost_usd=None) for each in tools]
    free = Narrow(max_cost_usd=narrow.max_cost_usd, max_latency_ms=narrow.max_latency_ms, latency=narrow.latency)
    assert all(free.admits(each, None) and free.admits(each, Priors()) for each in unknown)


# ── trust ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@several
@given(catalogs(least=1), queries, st.integers(1, 20), st.floats(0, 1), st.booleans())
def test_a_server_of_limited_trust_never_holds_more_than_its_share(tools, query, limit, share, always):
    finder = finder_of(*tools, thin=True, limited=["alpha"], max_share=share)
    answer = ask(finder, f"{query} please", limit, always=always)
    assert sum(hit.server == "alpha" for hit in answer.hits) <= slots_of(share, limit)


# ── priors ───────────────────────────────────────────────────────────────────────────────────────────────────────────

records = st.builds(
    Priors,
    calls=st.floats(0, 1e6),
    success_rate=st.floats(0, 1),
    p95_ms=st.none() | st.floats(0, 1e6),
    cost_usd=st.none() | st.floats(0, 1e3),
    last_used=st.floats(0, 4e9),
)


@few
@given(queries, st.lists(records, min_size=5, max_size=5))
def test_records_reorder_near_ties_alone(query, drawn):
    tools = suite_tools()
    priors = {each.public_name: drawn[place % 5] for place, each in enumerate(tools)}
    plain = ask(suite_finder(), query, 20, always=True)
    assume(not understand(query).demanded)
    finder = Finder(by_name(tools), suite_finder().index, static(), priors=priors)
    scores = {hit.name: hit.match.score for hit in plain.hits}
    order = [scores[name] for name in names(ask(finder, query, 20, always=True)) if name in scores]
    for place, score in enumerate(order):
        assert all(later - score <= 2 * BOUND + 1e-3 for later in order[place:])


# ── demands ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@few
@given(catalogs(least=1), st.sampled_from([*VERBS, "issue", "message", "file", "tracker"]), queries)
def test_a_demanded_word_is_in_every_hit(tools, word, rest):
    answer = ask(finder_of(*tools, thin=True), f"+{word} {rest}", 20)
    said = {each.public_name: " ".join(document_of(each).texts).lower() for each in tools}
    assert all(word[:-1] in said[name] for name in reachable(answer))


# ── anything at all ──────────────────────────────────────────────────────────────────────────────────────────────────

OFFICE, WORDS_ONLY = finder_of(*office()), finder_of(*office(), meaning=False)


@settings(max_examples=often(200), deadline=None)
@given(st.text(max_size=200) | st.text(st.characters(), max_size=60), st.integers(-5, 50), st.booleans())
def test_any_text_is_a_query(query, limit, always):
    for finder in (OFFICE, WORDS_ONLY):
        answer = ask(finder, query, limit, always=always)
        assert set(reachable(answer)) <= set(finder.tools)
        assert all(0 <= hit.confidence <= 1 for hit in answer.hits)
        assert understand(query).selected or len(answer.hits) <= 20


scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=20)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["properties", "items", "enum", "description", "type", "anyOf", "tags"])
            | st.text(max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)
hashable_required = values.filter(
    lambda value: not isinstance(value, list) or all(isinstance(each, str | int | None) for each in value)
)


@st.composite
def hostile(draw):
    """A tool whose definition is any JSON, and whose texts are any text."""
    schema = draw(values)
    if isinstance(schema, dict):
        schema = schema | {"required": draw(hashable_required)}
    definition = {"inputSchema": schema, "_meta": draw(values), "title": draw(values), "annotations": draw(values)}
    name = draw(st.text(max_size=30))
    return Tool(
        server=draw(st.sampled_from(["alpha", "beta"])),
        name=name,
        public_name=f"{draw(st.integers(0, 9))}__{name}",
        definition=msgspec.json.encode({**definition, "name": name.encode("utf-8", "replace").decode()}),
        fingerprint="",
        title=draw(st.text(max_size=20)),
        description=draw(st.text(st.characters(), max_size=60) | st.sampled_from(["x" * 100_000, "\ud83d", "\x00"])),
        tags=tuple(draw(st.lists(st.text(max_size=8), max_size=3))),
        scopes=tuple(draw(st.lists(st.text(max_size=8), max_size=3))),
        aliases=tuple(draw(st.lists(st.text(max_size=8), max_size=3))),
    )


@few
@given(st.lists(hostile(), max_size=5, unique_by=lambda each: each.public_name), st.text(max_size=30))
def test_any_definition_can_be_indexed_and_costs_no_other_tool_its_place(odd, query):
    for each in odd:
        assert len(document_of(each).texts) == len(FIELDS)
        assert content_of(each) == content_of(each)
        assert signature(each).startswith(each.public_name)
    finder = finder_of(*odd, *office(), thin=True)
    assert names(ask(finder, "github__create_issue")) == ["github__create_issue"]
    assert set(reachable(ask(finder, query, 20, always=True))) <= set(finder.tools)
    assert arrays_equal(
        parts_of(office(), finder.index.parts, thin=True).arrays(), index_of(*office(), thin=True).parts.arrays()
    )
