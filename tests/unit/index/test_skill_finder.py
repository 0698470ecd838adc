"""Skills that fit are found beside tools; what does not fit is not told of."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pegboard.errors import EmbedderError
from pegboard.index.skill_finder import MOST, SkillFinder
from pegboard.protocols import Embedder
from pegboard.skills.source import Skill, Skills
from tests.unit.index.given import static

ABOUT = {
    "pdf-forms": "Fill in PDF forms, extract text and tables from PDFs, merge and split documents.",
    "docx": "Create, edit and analyse Word documents with tracked changes and comments.",
    "release-notes": "Write release notes from merged pull requests and commits. Use when a version is released.",
    "incident-review": "Run a blameless post-mortem after an outage: timeline, causes, actions.",
    "sql-style": "House style for SQL queries and migrations against the warehouse.",
}


def skills_of(about: dict[str, str], version: str = "1") -> Skills:
    nowhere = Path("/")
    skills = {name: Skill(name=name, description=text, folder=nowhere, root=nowhere) for name, text in about.items()}
    return Skills(version=version, skills=skills)


def ask(query: str, about: dict[str, str] = ABOUT, embedder: Embedder | None = None) -> list[str]:
    finder = SkillFinder(embedder)
    return [skill.name for skill in asyncio.run(finder.search(skills_of(about), query))]


@pytest.mark.parametrize(
    ("query", "skill"),
    [
        ("fill in the tax form pdf", "pdf-forms"),
        ("extract the table from invoice.pdf", "pdf-forms"),
        ("write a word document", "docx"),
        ("the site was down yesterday, write the post-mortem", "incident-review"),
        ("query the warehouse for revenue", "sql-style"),
        ("docx", "docx"),
        ("select:release-notes", "release-notes"),
    ],
)
def test_what_fits_comes_first(query, skill):
    assert ask(query, embedder=static())[0] == skill


@pytest.mark.parametrize(
    "query", ["convert miles to kilometres", "weather in Paris", "send a message in slack", "split a string", "", "??"]
)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_what_does_not_fit_is_not_found_however_few_there_are(query, count):
    assert ask(query, dict(list(ABOUT.items())[:count]), static()) == []


def test_there_are_never_more_than_a_couple():
    many = {f"pdf-forms-{number}": f"Fill in PDF forms of kind {number}." for number in range(50)}
    assert 0 < len(ask("fill in a pdf form", many, static())) <= MOST


def test_it_goes_by_words_where_there_is_no_embedder_or_it_fails():
    class Broken:
        identity = "broken:1"

        async def embed(self, *_: object, **__: object):
            raise EmbedderError("no answer")

    assert ask("fill in pdf forms") == ["pdf-forms"]
    assert ask("fill in pdf forms", embedder=Broken()) == ["pdf-forms"]


def test_without_skills_nothing_is_made():
    assert ask("fill in pdf forms", {}) == []


def test_other_skills_are_another_index():
    async def scenario() -> None:
        finder = SkillFinder(static())
        assert await finder.search(skills_of({"docx": ABOUT["docx"]}, "1"), "fill in a pdf form") == []
        found = await finder.search(skills_of(ABOUT, "2"), "fill in a pdf form")
        assert [skill.name for skill in found] == ["pdf-forms"]

    asyncio.run(scenario())
