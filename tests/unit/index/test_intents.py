"""A team's own intents: verdicts, files that say what is wrong with them, and the suite that comes with Pegboard."""

from __future__ import annotations

import asyncio

import pytest

from pegboard.errors import EvaluationError
from pegboard.index.finder import Terms
from pegboard.index.intents import AT_LEAST, SUITE, TOP, TOP_STEPS, Case, read_intents, run
from pegboard.types import Answer, Hit
from tests.unit.index.given import by_name, suite_finder, suite_tools, tool

TOOLS = by_name(
    [tool("search", server="a"), tool("search", server="b"), tool("send", server="a"), tool("list", server="c")]
)


def hit(name, also=()):
    return Hit(name=name, server=name.partition("__")[0], confidence=0.5, also=also)


def judged(*cases, found=()):
    asked = []

    async def search(query, limit):
        asked.append(limit)
        return Answer(hits=tuple(found))

    report = asyncio.run(run(cases, search, TOOLS))
    return [verdict.passed for verdict in report.verdicts], asked


def case(*groups, **more):
    return Case(ask="do it", groups=groups, **more)


@pytest.mark.parametrize(
    ("groups", "found", "passed"),
    [
        ([("a__send",)], ["a__send"], True),
        ([("a__send",)], ["c__list", "a__send"], True),
        ([("a__send",)], ["c__list"], False),
        ([("send",)], ["a__send"], True),
        ([("search",)], ["b__search"], True),
        ([("a__search",)], ["b__search"], False),
        ([("send", "list")], ["c__list"], True),
        ([("send",), ("list",)], ["c__list"], False),
        ([("send",), ("list",)], ["c__list", "b__search", "a__send"], True),
        ([], [], True),
        ([], ["c__list"], False),
        ([("send",)], [], False),
    ],
)
def test_an_intent_passes_when_each_step_finds_one_of_its_tools(groups, found, passed):
    assert judged(case(*groups), found=map(hit, found))[0] == [passed]


def test_a_tool_that_is_named_as_a_copy_is_found():
    assert judged(case(("a__search",)), found=[hit("b__search", ("a__search",))])[0] == [True]


def test_one_tool_is_sought_among_three_and_the_tools_of_a_task_among_five():
    assert judged(case(("send",)), case(("send",), ("list",)), case())[1] == [TOP, TOP_STEPS, TOP]


def test_a_tool_that_no_server_has_is_an_error_and_no_failure():
    with pytest.raises(EvaluationError, match=r"'fly'.*no server has") as error:
        judged(case(("send", "fly")))
    assert "do it" in error.value.message


def test_a_report_counts_what_passed_by_kind_and_apart_from_what_should_find_nothing():
    async def search(query, limit):
        return Answer(hits=(hit("a__send"),))

    cases = [case(("send",), kind="x"), case(("list",), kind="x"), case(("send",), kind="y"), case(kind="none")]
    report = asyncio.run(run(cases, search, TOOLS))
    assert report.share(nothing=False) == pytest.approx(2 / 3)
    assert report.share(nothing=True) == 0
    assert report.by_kind() == {"x": (1, 2), "y": (1, 1), "none": (0, 1)}
    assert report.verdicts[0].found == ("a__send",)
    assert asyncio.run(run([], search, TOOLS)).share(nothing=False) is None


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def file(tmp_path, text):
    path = tmp_path / "intents.toml"
    path.write_text(text, "utf-8")
    return path


def test_intents_are_read(tmp_path):
    text = """
    [[intent]]
    ask = "open a bug"
    find = ["create_issue", "createIssue"]
    kind = "plain"
    [[intent]]
    ask = "find it, then send it"
    steps = [["search"], ["send", "post"]]
    [[intent]]
    ask = "fly to the moon"
    nothing = true
    """
    one, steps, nothing = read_intents(file(tmp_path, text))
    assert one == Case(ask="open a bug", groups=(("create_issue", "createIssue"),), kind="plain")
    assert steps.groups == (("search",), ("send", "post"))
    assert nothing.nothing
    assert not one.nothing


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ('find = ["a"]', "ask"),
        ('ask = 7\nfind = ["a"]', "ask"),
        ('ask = "x"', "one of find"),
        ('ask = "x"\nfind = ["a"]\nnothing = true', "one of find"),
        ('ask = "x"\nfind = ["a"]\nsteps = [["b"]]', "one of find"),
        ('ask = "x"\nnothing = false', "one of find"),
        ('ask = "x"\nfind = []', "one of find"),
        ('ask = "x"\nfind = "a"', "lists"),
        ('ask = "x"\nfind = [7]', "lists"),
        ('ask = "x"\nsteps = ["a"]', "lists"),
        ('ask = "x"\nsteps = [["a"], []]', "lists"),
        ('ask = "x"\nfinds = ["a"]', "'finds'"),
    ],
)
def test_a_bad_intent_is_named_by_its_number(tmp_path, entry, problem):
    path = file(tmp_path, f'[[intent]]\nask = "fine"\nfind = ["a"]\n[[intent]]\n{entry}\n')
    with pytest.raises(EvaluationError, match=problem) as error:
        read_intents(path)
    assert f"{path}: intent 2" in error.value.message


@pytest.mark.parametrize("text", ["", "intent = 7", "[intent]\nask = 'x'", "[[intents]]\nask = 'x'", "intent = []"])
def test_a_file_without_intents_says_how_one_is_written(tmp_path, text):
    path = file(tmp_path, text)
    with pytest.raises(EvaluationError) as error:
        read_intents(path)
    assert str(path) in error.value.message
    assert "[[intent]]" in error.value.hint


def test_a_file_that_is_no_toml_or_not_there_is_named(tmp_path):
    broken, odd = file(tmp_path, "[[intent]\n"), tmp_path / "odd.toml"
    odd.write_bytes(b"\xff\xfe\x00")
    for path in (broken, odd, tmp_path / "none.toml", tmp_path):
        with pytest.raises(EvaluationError) as error:
            read_intents(path)
        assert str(path) in error.value.message


# ── ours ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def suite():
    return read_intents(SUITE / "intents.toml")


def test_the_suite_has_intents_of_every_kind_and_none_twice(suite):
    assert len(suite) >= 150
    assert len({each.ask for each in suite}) == len(suite)
    assert all(each.kind for each in suite)
    assert len({each.kind for each in suite}) >= 5
    assert sum(each.nothing for each in suite) >= 15
    assert sum(len(each.groups) > 1 for each in suite) >= 15


def test_every_tool_that_the_suite_names_is_there(suite):
    async def search(query, limit):
        return Answer()

    report = asyncio.run(run(suite, search, by_name(suite_tools())))
    assert report.share(nothing=False) == 0
    assert report.share(nothing=True) == 1


@pytest.mark.parametrize(
    ("query", "tool_name"),
    [("score this account against ICP", "icp_scorer"), ("pull pipeline data from HubSpot", "hubspot_crm")],
)
def test_the_intents_we_promised_are_in_the_suite_and_found_in_the_top_three(suite, query, tool_name):
    assert any(each.ask.lower() == query.lower() for each in suite)
    answer = asyncio.run(suite_finder().search(query, Terms(limit=TOP)))
    assert tool_name in [suite_finder().tools[each.name].name for each in answer.hits]


def test_names_that_are_written_out_are_always_found(suite):
    async def search(query, limit):
        return await suite_finder().search(query, Terms(limit=limit))

    report = asyncio.run(run(suite, search, suite_finder().tools))
    passed, every = report.by_kind()["exact"]
    assert passed == every > 0


@pytest.mark.parametrize("steps", ["5", "true", '"create_issue"', "1.5", "{ a = 1 }"])
def test_steps_that_are_no_lists_are_told_in_words(tmp_path, steps):
    path = tmp_path / "intents.toml"
    path.write_text(f'[[intent]]\nask = "open a bug"\nsteps = {steps}\n')
    with pytest.raises(EvaluationError, match="tools are lists of names"):
        read_intents(path)


def test_our_own_intents_pass_as_we_ask_of_others(suite):
    async def search(query, limit):
        return await suite_finder().search(query, Terms(limit=limit))

    share = asyncio.run(run(suite, search, suite_finder().tools)).share(nothing=False)
    assert share is not None
    assert share >= AT_LEAST
