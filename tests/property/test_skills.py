"""Whatever a skill's files hold and whatever is asked of it: nothing crashes, nothing leaves the folder."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.errors import SkillUnreadable
from pegboard.platform_tools.skill_index import index_text
from pegboard.skills.parse import LONGEST_DESCRIPTION, LONGEST_NAME, Header, Malformed, header_in, header_of
from pegboard.skills.read import further_files, read_text
from pegboard.skills.source import Skill
from pegboard.surface.tokens import WORD_PIECES
from tests.often import often
from tests.unit.skills.given import look

MARKS = (
    *(
        "name: ",
        "description: ",
        "tools: ",
        "metadata:",
        "\n",
        " ",
        "- ",
        "? ",
        ": ",
        "[",
        "]",
        "{",
        "}",
        ",",
        "|",
        "> ",
    ),
    *("&a ", "*a", "!!binary ", "!t ", "'", '"', "#", "%", "@", "`", "\\", "---", "...", "\t", "<<: ", "x"),
)
YAMLISH = st.lists(
    st.one_of(
        st.sampled_from(MARKS),
        st.text(max_size=8),
    ),
    max_size=40,
).map("".join)


def fits(header: Header) -> bool:
    return (
        0 < len(header.name) <= LONGEST_NAME
        and not set(header.name) & set("/\\\0\n ")
        and 0 < len(header.description) <= LONGEST_DESCRIPTION
        and "\n" not in header.description
        and all(tool and tool.isprintable() for tool in header.tools)
    )


@given(st.one_of(st.text(max_size=200), YAMLISH))
@settings(max_examples=often(400))
def test_any_header_gives_a_sound_skill_or_a_reason(text):
    with suppress(Malformed):
        assert fits(header_of(text))


@given(
    st.one_of(st.binary(max_size=300), YAMLISH.map(lambda text: f"---\n{text}\n---\nbody".encode("utf-8", "replace")))
)
@settings(max_examples=often(400))
def test_any_file_gives_a_sound_skill_or_a_reason(raw):
    with suppress(Malformed):
        assert fits(header_in(raw))
    with TemporaryDirectory() as root:
        (Path(root) / "a").mkdir()
        (Path(root) / "a" / "SKILL.md").write_bytes(raw)
        found = look(Path(root))
        assert len(found.skills) + len([each for each in found.problems if ": skipped: " in each]) == 1


PARTS = st.sampled_from(
    ["..", ".", "", "a", "b.md", "in", "out", "up", "SKILL.md", "secret", "/", "~", "\0", "a/b.md", "%2e%2e", "..\\"]
)
PATHS = st.one_of(st.lists(PARTS, max_size=6).map("/".join), st.text(max_size=20))


@given(st.lists(PATHS, min_size=1, max_size=20))
@settings(max_examples=often(100), deadline=None)
def test_no_path_leaves_the_folder(paths):
    with TemporaryDirectory() as place:
        skill = Path(place) / "skill"
        (skill / "a").mkdir(parents=True)
        (Path(place) / "secret").write_text("outside")
        for inside in ("SKILL.md", "b.md", "a/b.md"):
            (skill / inside).write_text("inside")
        (skill / "in").symlink_to("a")
        (skill / "out").symlink_to(Path(place) / "secret")
        (skill / "up").symlink_to(Path(place))
        (skill / "a" / "up").symlink_to("../..")
        for path in paths:
            with suppress(SkillUnreadable):
                assert read_text(skill, path) == "inside"
        assert {read_text(skill, each.path) for each in further_files(skill, "SKILL.md").files} == {"inside"}


SKILLS = st.dictionaries(
    st.from_regex(r"[a-z][a-z0-9-]{0,20}[a-z]", fullmatch=True), st.text(min_size=1, max_size=300), max_size=40
)


def skill(name: str, description: str) -> Skill:
    return Skill(name=name, description=description, folder=Path(os.sep), root=Path(os.sep))


def shown_in(index: str) -> tuple[dict[str, str], list[str]]:
    """The descriptions and the bare names that an index has."""
    rows = dict(row[2:].split(": ", 1) for row in index.splitlines() if row.startswith("- ") and row[2:7] != "Also:")
    if not rows:
        return {}, [name for name in index.strip().rstrip(".").split(", ") if name]
    also = [row for row in index.splitlines() if row.startswith("- Also: ")]
    return rows, also[0].removeprefix("- Also: ").split(", ") if also else []


@given(SKILLS, st.integers(0, 500), st.dictionaries(st.integers(0, 39), st.floats(1, 1e9)))
def test_names_never_drop_whatever_the_budget(described, budget, uses):
    names = sorted(described)
    used = {names[place]: at for place, at in uses.items() if place < len(names)}
    skills = [skill(name, described[name]) for name in names]
    rows, bare = shown_in(index_text(skills, used, budget, WORD_PIECES.count))
    assert sorted([*rows, *bare]) == names
    assert sum(map(WORD_PIECES.count, rows.values())) <= budget
    # Whoever has a description was used no earlier than anybody who has none.
    assert all(used.get(one, 0.0) >= used.get(other, 0.0) for one in rows for other in bare)


@given(SKILLS, st.dictionaries(st.integers(0, 39), st.floats(1, 1e9)))
def test_while_all_descriptions_fit_use_changes_nothing(described, uses):
    skills = [skill(name, described[name]) for name in sorted(described)]
    used = {skills[place].name: at for place, at in uses.items() if place < len(skills)}
    plenty = 1_000_000
    assert index_text(skills, used, plenty, WORD_PIECES.count) == index_text(skills, {}, plenty, WORD_PIECES.count)
