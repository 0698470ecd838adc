"""Prompts and resources under names that lead back to their servers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.gateway.offers import (
    Known,
    Offers,
    fills,
    fit,
    prompt_owner,
    prompts,
    resource_owner,
    resources,
    template_owner,
    templates,
)


def server(*uris: str, prompt: tuple[str, ...] = (), template: tuple[str, ...] = ()) -> Offers:
    return Offers(
        capabilities=("prompts", "resources"),
        prompts=tuple({"name": each, "title": "T"} for each in prompt),
        resources=tuple({"uri": each, "name": each} for each in uris),
        templates=tuple({"uriTemplate": each, "name": each} for each in template),
    )


def test_a_prompt_is_named_after_its_server_and_found_again() -> None:
    known = {"a": server(prompt=("ask", "b__ask")), "a__b": server(prompt=("ask",))}
    assert [each["name"] for each in prompts(known)] == ["a__ask", "a__b__ask", "a__b__ask"]
    assert prompt_owner("a__ask", known) == ("a", "ask")
    assert prompt_owner("c__ask", known) is None


def test_a_bare_prompt_name_will_do_when_one_server_has_it() -> None:
    known = {"a": server(prompt=("one", "both")), "b": server(prompt=("both",))}
    assert prompt_owner("one", known) == ("a", "one")
    assert prompt_owner("both", known) is None


def test_a_prompt_of_a_server_that_was_never_asked_can_still_be_meant() -> None:
    assert prompt_owner("new__thing", {"new": Offers(), "ne": Offers()}) == ("new", "thing")


def test_a_uri_stays_what_it_is_unless_an_earlier_server_has_it() -> None:
    known = {"a": server("x://1", "x://2"), "b": server("x://2", "x://3")}
    assert [each["uri"] for each in resources(known)] == ["x://1", "x://2", "pegboard://b/x://2", "x://3"]


def test_a_server_cannot_speak_for_another_by_its_uris() -> None:
    known = {"a": server("pegboard://b/x://1"), "b": server("x://1")}
    assert [each["uri"] for each in resources(known)] == ["pegboard://a/pegboard://b/x://1", "x://1"]
    assert resource_owner("pegboard://b/x://1", known) == ("b", "x://1")


def test_a_template_of_two_servers_can_be_filled_in_under_either_name() -> None:
    known = {"a": server(template=("note://{id}",)), "b": server(template=("note://{id}",))}
    assert [each["uriTemplate"] for each in templates(known)] == ["note://{id}", "pegboard://b/note://{id}"]
    assert resource_owner("note://a%20b", known) == ("a", "note://a%20b")
    assert resource_owner("pegboard://b/note://a%20b", known) == ("b", "note://a%20b")
    assert template_owner("pegboard://b/note://{id}", known) == ("b", "note://{id}")


def test_a_uri_that_no_list_has_goes_to_the_one_server_known_by_its_scheme() -> None:
    known = {"a": server("x://1"), "b": server("y://1"), "c": server("y://2", "z://1")}
    assert resource_owner("x://99", known) == ("a", "x://99")
    assert resource_owner("y://99", known) is None
    assert resource_owner("q://99", known) is None
    assert resource_owner("q://99", {"a": server("x://1"), "t": Offers(capabilities=("tools",))}) == ("a", "q://99")


@pytest.mark.parametrize("uri", ["pegboard://", "pegboard://a", "pegboard://nobody/x://1", ""])
def test_a_uri_that_leads_nowhere_has_no_owner(uri: str) -> None:
    assert resource_owner(uri, {"a": server("x://1"), "b": server("y://1")}) is None


@pytest.mark.parametrize(
    ("template", "uri", "fits"),
    [
        ("a://{x}", "a://1", True),
        ("a://{x}", "b://1", False),
        ("a://{x}/end", "a://1/2/end", True),
        ("a://{x}/end", "a:///end", True),
        ("a://{x}/end", "a://end", False),
        ("a://{x}-{y}", "a://1", False),
        ("a://{x}-{y}", "a://1-2", True),
        ("a://plain", "a://plain", True),
        ("a://plain", "a://plainer", False),
        ("a://{unclosed", "a://{unclosed", True),
        ("ab{x}ba", "aba", False),
    ],
)
def test_a_template_is_filled_in_literal_by_literal(template: str, uri: str, fits: bool) -> None:
    assert fills(template, uri) is fits


@pytest.mark.timeout(20)
def test_a_template_made_to_be_slow_comes_to_an_end() -> None:
    assert not fills("{a}x" * 10_000, "x" * 9_000 + "y")
    assert fills("{a}x" * 10_000, "x" * 100_000)
    assert not fills("{" * 100_000, "x" * 100_000)


def test_only_what_can_be_handed_on_is_kept() -> None:
    deep: dict[str, object] = {"uri": "x://deep"}
    for _ in range(3000):
        deep = {"uri": "x://deep", "in": deep}
    odd = [
        {"uri": "x://1", "n": 1},
        {"uri": "x://1", "n": 2},
        {"uri": 5},
        {},
        None,
        "x",
        {"uri": ""},
        {"uri": "x" * 5000},
    ]
    large = {"uri": "x://large", "d": "x" * 100_000}
    assert fit([*odd, large, {"uri": "x://2"}], "uri") == ({"uri": "x://1", "n": 1}, {"uri": "x://2"})
    assert len(fit([deep], "uri")) <= 1


uris = st.sampled_from(["x://1", "x://2", "pegboard://a/x://1", "pegboard://b/x://1", "pegboard://", "y:z", "://"])
houses = st.dictionaries(st.sampled_from(["a", "b", "c", "a__b"]), st.lists(uris, unique=True, max_size=6), max_size=4)


@given(houses)
def test_every_listed_uri_is_distinct_and_leads_back_to_its_own_server(house: dict[str, list[str]]) -> None:
    known: Known = {prefix: server(*own) for prefix, own in house.items()}
    listed = [each["uri"] for each in resources(known)]
    assert len(listed) == len(set(listed))
    expected = [(prefix, uri) for prefix, own in house.items() for uri in own]
    assert [resource_owner(uri, known) for uri in listed] == expected


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.lists(st.text(min_size=1), unique=True), max_size=3))
def test_every_listed_prompt_leads_back_to_its_own_server(house: dict[str, list[str]]) -> None:
    known = {prefix: server(prompt=tuple(own)) for prefix, own in house.items()}
    expected = [(prefix, name) for prefix, own in house.items() for name in own]
    assert [prompt_owner(each["name"], known) for each in prompts(known)] == expected
