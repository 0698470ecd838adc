"""Skills at the desk: the index stays as it is, loading surfaces tools, and nobody gets more than they may use."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from pegboard.catalog.catalog import build
from pegboard.config.model import Config, ServerConfig, ServerSpec
from pegboard.platform_tools.library import Library
from pegboard.skills.read import MAX_BYTES
from pegboard.skills.source import LOOK_SECONDS
from pegboard.surface.tokens import WORD_PIECES, definition_tokens
from pegboard.types import Caller, SkillLoad
from tests.unit.index.given import office, static, tool
from tests.unit.platform_tools.given import ANA, Office, text_of
from tests.unit.skills.given import source, write

OWN = ["search_tools", "call_tool", "batch_tools", "read_result", "load_skill"]
TRIAGE: dict[str, Any] = {
    "name": "triage",
    "description": "How bug reports are triaged here.",
    "header": ["tools: [create_issue, slack__send_message]"],
}


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


class Shelf:
    """A root of skills, a library over it and a clock for it."""

    def __init__(self, root: Path, **options: Any) -> None:
        self.root, self.now = root, 0.0
        self.changes, self.warnings = 0, list[str]()
        self.library = Library(
            source(root, clock=lambda: self.now),
            static,
            **{
                "budget": 200,
                "count": WORD_PIECES.count,
                "on_change": self._changed,
                "on_warning": self.warnings.append,
                **options,
            },
        )

    def _changed(self) -> None:
        self.changes += 1

    def later(self) -> None:
        """The disk may be looked at again."""
        self.now += LOOK_SECONDS


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    write(tmp_path, **TRIAGE)
    write(tmp_path, "pdf-forms", "Fills in PDF forms.", body="Open the form first.")
    return Shelf(tmp_path)


def described(desk: Office, caller: Caller = ANA) -> str:
    """What `load_skill` says of itself."""
    return str({each["name"]: each for each in desk.desk.tools(caller)}["load_skill"]["description"])


# ── what is shown ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_there_is_no_such_tool_where_there_are_no_skills(tmp_path):
    assert "load_skill" not in Office().listed()
    assert "load_skill" not in Office(library=Shelf(tmp_path).library).listed()


def test_without_skills_the_name_is_nobodys():
    result = run(Office().call("load_skill", {"name": "x"}))
    assert result["isError"] is True


def test_the_index_names_every_skill_with_what_it_is_for(shelf):
    desk = Office(library=shelf.library)
    assert desk.listed() == OWN
    assert described(desk).endswith(
        "Skills:\n- pdf-forms: Fills in PDF forms.\n- triage: How bug reports are triaged here."
    )


@pytest.mark.parametrize("surface", [{"mode": "off"}, {"mode": "auto"}])
def test_where_nothing_is_deferred_it_comes_after_the_tools_which_are_as_they_were(shelf, surface):
    with_skills, without = Office(library=shelf.library, **surface), Office(**surface)
    assert with_skills.listed() == [*without.listed(), "load_skill"]
    assert list(with_skills.desk.tools(ANA))[:-1] == list(without.desk.tools(ANA))


def test_the_index_stays_byte_for_byte_while_skills_are_loaded_and_tools_searched(tmp_path):
    for number in range(40):
        write(tmp_path, f"skill-{number:02}", f"Says how task number {number} is done, step by step, and why.")
    desk = Office(library=Shelf(tmp_path).library)

    async def scenario() -> None:
        before = list(desk.desk.tools(ANA))
        version = desk.desk.version(ANA)
        for number in (39, 38, 20):
            await desk.call("load_skill", {"name": f"skill-{number}"})
        await desk.search("open an issue")
        assert list(desk.desk.tools(ANA)) == before
        assert desk.desk.version(ANA) == version

    run(scenario())


def test_what_was_used_last_has_a_description_first(tmp_path):
    for number in range(40):
        write(tmp_path, f"skill-{number:02}", f"Says how task number {number} is done, step by step, and why.")
    index = described(Office(library=Shelf(tmp_path, used={"skill-37": 5.0, "skill-21": 9.0}).library))
    assert "- skill-37: Says how" in index
    assert "- skill-21: Says how" in index
    assert "- skill-39: Says how" not in index
    assert "skill-39" in index.partition("- Also: ")[2]


def test_with_a_handful_of_skills_all_own_tools_stay_within_700_tokens(tmp_path):
    for number in range(12):
        write(tmp_path, f"skill-{number}", "Says how such a thing is done here, and what to look out for. " * 5)
    own = Office(library=Shelf(tmp_path).library).desk.tools(Caller())
    assert sum(definition_tokens(each, WORD_PIECES) for each in own) <= 700


def test_what_a_description_hides_is_spelled_out(tmp_path):
    write(tmp_path, "odd", '"Says \\u202e this"')
    assert "\\u202e" in described(Office(library=Shelf(tmp_path).library))


# ── loading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_loading_gives_the_body_its_tools_and_where_it_lies(shelf):
    desk = Office(library=shelf.library)
    result = run(desk.call("load_skill", {"name": "triage"}))
    said = text_of(result)
    assert said.startswith(f"Skill triage. Its folder: {shelf.root / 'triage'}\n")
    assert said.endswith("\n\nDo it so.")
    assert "[call_tool] github__create_issue(" in said
    assert "[call_tool] slack__send_message(" in said
    assert result["_meta"]["pegboard/found"] == ["github__create_issue", "slack__send_message"]
    assert desk.active() == ["github__create_issue", "slack__send_message"]


def test_loaded_tools_are_on_the_list_where_it_may_grow_and_what_gave_way_is_told(shelf):
    desk = Office(library=shelf.library, list_active=True, max_active=1)

    async def scenario() -> None:
        said = text_of(await desk.call("load_skill", {"name": "triage"}))
        assert "Loaded: github__create_issue." in said
        assert "Not loaded for want of room, still callable: slack__send_message." in said
        assert desk.listed() == [*OWN, "github__create_issue"]

    run(scenario())


def test_a_conversation_that_lists_what_it_loads_is_told_to_call_by_name(shelf):
    listing = Caller(conversation="ana", reveal="listed")
    desk = Office(library=shelf.library)
    said = text_of(run(desk.call("load_skill", {"name": "triage"}, listing)))
    assert "Its tools, loaded; call each by its name:\ngithub__create_issue: " in said
    assert "call_tool" not in said


def test_a_pattern_for_thousands_of_tools_does_not_bury_what_the_skill_says(tmp_path):
    write(tmp_path, "all", header=["tools: 'many__*'"], body="Choose well.")
    tools = [tool(f"tool_{number}", "Does one thing.", "many") for number in range(3000)]
    desk = Office(tools, library=Shelf(tmp_path).library, list_active=True)
    result = run(desk.call("load_skill", {"name": "all"}))
    said = text_of(result)
    assert len(said) < 6_000
    assert said.endswith("Choose well.")
    assert "Not loaded for want of room, still callable: many__tool_" in said
    assert result["_meta"]["pegboard/found"][:24] == desk.active()


def test_where_nothing_is_deferred_tools_are_named_and_none_is_loaded(shelf):
    desk = Office(library=shelf.library, mode="off")
    said = text_of(run(desk.call("load_skill", {"name": "triage"})))
    assert "Its tools: github__create_issue, slack__send_message." in said
    assert desk.active() == []


def test_tools_that_are_not_named_stay_callable(shelf):
    desk = Office(library=shelf.library)

    async def scenario() -> None:
        await desk.call("load_skill", {"name": "triage"})
        other = next(name for name in desk.catalog.tools if name not in desk.active())
        await desk.call(other, {})
        assert desk.called[-1][0] == other

    run(scenario())


def test_unknown_tools_are_named_with_near_misses(tmp_path):
    write(
        tmp_path, "odd", header=["tools: [github__create_isue, nobody__knows, mcp__github__create_issue, 'slack__*']"]
    )
    said = text_of(run(Office(library=Shelf(tmp_path).library).call("load_skill", {"name": "odd"})))
    missing = said.partition("Named by the skill, but not available here: ")[2].partition("\n")[0]
    assert missing.startswith("github__create_isue (nearest: github__create_issue")
    assert missing.endswith("; nobody__knows.")
    assert "[call_tool] github__create_issue(" in said
    assert "slack__send_message" in said


def test_a_tool_of_a_server_that_nobody_asked_yet_may_be_called_all_the_same(tmp_path):
    write(tmp_path, "odd", header=["tools: jira__create_ticket"])
    desk = Office(library=Shelf(tmp_path).library)
    jira = ServerSpec(name="jira", config=ServerConfig(command="jira-mcp"))
    desk.catalog = build(Config(servers={"jira": jira}), {})
    said = text_of(run(desk.call("load_skill", {"name": "odd"})))
    assert "jira__create_ticket (its server was not asked yet; call it by its name all the same)" in said


def test_an_allowlist_keeps_skills_and_surfaces_only_what_it_has(tmp_path):
    write(tmp_path, **{**TRIAGE, "header": ["tools: [create_issue, slack__send_message, slack__sendmessage, '*']"]})
    bound = Caller(conversation="ana", allow=("github__*",))
    desk = Office(library=Shelf(tmp_path).library)
    result = run(desk.call("load_skill", {"name": "triage"}, bound))
    said = text_of(result)
    assert "[call_tool] github__create_issue(" in said
    assert "slack__send_message(" not in said
    assert "nearest: slack" not in said
    assert all(name.startswith("github__") for name in desk.active(bound))
    assert desk.active(bound)


def test_whoever_may_be_elsewhere_is_not_told_where_the_folder_lies(shelf):
    desk = Office(library=shelf.library)
    said = text_of(run(desk.call("load_skill", {"name": "triage"}, Caller(identity="BOB", conversation="b"))))
    assert str(shelf.root) not in said


def test_further_files_are_listed_and_read_by_name(shelf):
    (shelf.root / "pdf-forms" / "reference.md").write_text("All the fields.")
    desk = Office(library=shelf.library)

    async def scenario() -> None:
        said = text_of(await desk.call("load_skill", {"name": "pdf-forms"}))
        assert 'Further files, read by load_skill("pdf-forms", file): reference.md (15 B)' in said
        assert (
            text_of(await desk.call("load_skill", {"name": "pdf-forms", "file": "reference.md"})) == "All the fields."
        )
        out = await desk.call("load_skill", {"name": "pdf-forms", "file": "../triage/SKILL.md"})
        assert out["isError"] is True
        assert "not a path inside the skill's folder" in text_of(out)

    run(scenario())


def test_a_long_file_is_handed_on_in_pages(shelf):
    (shelf.root / "pdf-forms" / "long.md").write_text("line\n" * (MAX_BYTES // 5))
    desk = Office(library=shelf.library)
    said = text_of(run(desk.call("load_skill", {"name": "pdf-forms", "file": "long.md"})))
    assert len(said) < 60_000
    assert "read_result" in said


@pytest.mark.parametrize("caller", [ANA, Caller(conversation="ana", reveal="all")])
def test_a_long_file_is_handed_on_whole_where_nothing_is_listed_that_reads_pages(shelf, caller):
    text = "line\n" * (MAX_BYTES // 5 - 1) + "\u202e"
    (shelf.root / "pdf-forms" / "long.md").write_text(text)
    desk = Office(library=shelf.library, mode="off")
    assert "read_result" not in desk.listed(caller)
    said = text_of(run(desk.call("load_skill", {"name": "pdf-forms", "file": "long.md"}, caller)))
    assert said == text.replace("\u202e", r"\u202e")


def test_an_unknown_skill_is_answered_with_the_nearest(shelf):
    result = run(Office(library=shelf.library).call("load_skill", {"name": "pdf-form"}))
    assert result["isError"] is True
    assert text_of(result) == "There is no skill named 'pdf-form'. Did you mean pdf-forms?"
    assert result["_meta"]["pegboard/ending"] == "not_found"


def test_call_tool_and_a_batch_load_skills_too(shelf):
    desk = Office(library=shelf.library)

    async def scenario() -> None:
        inside = {"name": "load_skill", "arguments": {"name": "pdf-forms"}}
        assert "Open the form first." in text_of(await desk.call("call_tool", inside))
        assert "Open the form first." in text_of(await desk.call("batch_tools", {"calls": [inside]}))

    run(scenario())


@pytest.mark.parametrize("arguments", [{}, {"name": 5}, {"name": "x", "path": "y"}, {"file": "x"}, {"name": ["x"]}])
def test_wrong_arguments_are_told_with_the_schema(shelf, arguments):
    result = run(Office(library=shelf.library).call("load_skill", arguments))
    assert result["isError"] is True


def test_loading_is_recorded(shelf):
    desk = Office(library=shelf.library)

    async def scenario() -> None:
        await desk.call("load_skill", {"name": "PDF forms"})
        await desk.call("load_skill", {"name": "nobody"})

    run(scenario())
    [load] = [record for record in desk.records if isinstance(record, SkillLoad)]
    assert (load.skill, load.conversation, load.at) == ("pdf-forms", "ana", desk.now)
    assert load.tokens > 0


# ── searching ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_search_names_the_skills_that_fit_beside_the_tools(shelf):
    said = run(Office(library=shelf.library).search("triage a bug report"))
    assert said.splitlines()[-1] == 'skill: triage — How bug reports are triaged here.; load_skill("triage")'


def test_tools_are_found_as_they_were_without_skills(shelf):
    for query in ("open an issue", "send a message", "nothing of the kind, xyzzy", "select:github__create_issue"):
        plain, beside = Office(), Office(library=shelf.library)
        assert run(beside.search(query)).startswith(run(plain.search(query)))
        assert beside.active() == plain.active()


def test_who_narrows_a_search_looks_for_tools(shelf):
    assert "skill:" not in run(Office(library=shelf.library).search("triage a bug report", server="github"))


# ── changes ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_skill_that_comes_is_noticed_by_whoever_loads_or_searches(shelf):
    desk = Office(library=shelf.library)

    async def scenario() -> None:
        version = desk.desk.version(ANA)
        write(shelf.root, "new-one", "Just written.")
        shelf.later()
        assert "Do it so." in text_of(await desk.call("load_skill", {"name": "new-one"}))
        assert "- new-one: Just written." in described(desk)
        assert desk.desk.version(ANA) != version
        assert shelf.changes == 1

    run(scenario())


def test_a_list_is_from_memory_and_looks_at_the_disk_afterwards(shelf):
    desk = Office(library=shelf.library)

    async def scenario() -> None:
        described(desk)
        write(shelf.root, "new-one", "Just written.")
        shelf.later()
        assert "new-one" not in described(desk)
        while not shelf.changes:
            await asyncio.sleep(0)
        assert "new-one" in described(desk)

    run(scenario())


def test_what_was_found_for_somebody_who_was_cancelled_meanwhile_is_told_by_the_next_look(shelf):
    write(shelf.root, "new-one", "Just written.")
    shelf.later()
    shelf.library._source.look()  # what the thread does, whoever waits for it
    assert shelf.changes == 0
    shelf.later()
    run(shelf.library.look())
    assert shelf.changes == 1


def test_calls_of_tools_never_look_at_the_disk(shelf):
    desk = Office(library=shelf.library)

    async def scenario() -> None:
        described(desk)
        await asyncio.sleep(0)
        write(shelf.root, "new-one", "Just written.")
        shelf.later()
        await desk.call("github__create_issue", {"title": "x"})
        await desk.call("call_tool", {"name": "github__create_issue", "arguments": {"title": "x"}})
        assert shelf.library.version == desk.desk._current().skills
        assert "new-one" not in desk.desk._always()[0]["description"]

    run(scenario())


def test_when_the_last_skill_goes_the_tool_goes_with_it(tmp_path):
    folder = write(tmp_path)
    shelf = Shelf(tmp_path)
    desk = Office(library=shelf.library)

    async def scenario() -> None:
        assert desk.listed() == OWN
        (folder / "SKILL.md").unlink()
        shelf.later()
        assert "There are none now." in text_of(await desk.call("load_skill", {"name": "pdf-forms"}))
        assert desk.listed() == OWN[:-1]

    run(scenario())


def test_what_is_wrong_is_warned_of_once(tmp_path):
    write(tmp_path, "My Skill", folder="x")
    shelf = Shelf(tmp_path)

    async def scenario() -> None:
        for _ in range(3):
            shelf.later()
            await shelf.library.look()

    run(scenario())
    assert len(shelf.warnings) == 1
    assert "skipped: its name 'My Skill'" in shelf.warnings[0]


def test_a_tool_of_the_catalog_changes_nothing_of_the_index(shelf):
    desk = Office(library=shelf.library)
    before = described(desk)
    desk.show([*office(), tool("another", "x", "github")], version="2")
    assert described(desk) == before
