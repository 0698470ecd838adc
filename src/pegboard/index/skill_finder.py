"""Skills that fit what somebody wants to do: an index of their own, so that no tool's place depends on them.

The same engine as for tools, over one document for each skill. It is small, lives in memory, and is made when a search
first needs it. Above: the engine. Below: `finder`, `build`, the skills.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from pegboard.errors import EmbedderError
from pegboard.index.build import assemble, plan
from pegboard.index.finder import Finder, Terms
from pegboard.index.index import Index
from pegboard.index.keeper import embedded, words_only
from pegboard.protocols import Embedder
from pegboard.skills.source import Skill, Skills
from pegboard.types import Tool

MOST = 2
"""Skills in one answer: they stand beside the tools, and must not bury them."""
SURE = 0.35
"""A skill is told of unasked, so it must fit better than a tool that was searched for."""
_SERVER = "skill"


class SkillFinder:
    """Searches the skills there are now."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._made: tuple[str, Finder] | None = None
        self._making = asyncio.Lock()

    async def search(self, skills: Skills, query: str, limit: int = MOST) -> list[Skill]:
        """The skills that surely fit, best first; none is better than a wrong one."""
        if not skills.skills:
            return []
        finder = await self._finder(skills)
        answer = await finder.search(query, Terms(limit=limit))
        fitting = (hit.name for hit in answer.hits if hit.exact or hit.confidence >= SURE)
        return [skills.skills[name] for name in fitting if name in skills.skills]

    async def _finder(self, skills: Skills) -> Finder:
        async with self._making:
            if self._made is None or self._made[0] != skills.version:
                documents = {name: _document(skill) for name, skill in skills.skills.items()}
                self._made = (skills.version, await self._new(documents, skills.version))
            return self._made[1]

    async def _new(self, documents: Mapping[str, Tool], version: str) -> Finder:
        embedder = self._embedder
        if embedder is not None:
            try:
                work = plan(documents.values(), embedder.identity)
                vectors = await embedded(work, embedder, lambda *_: None)
                parts = assemble(work, catalog=version, embedder=embedder.identity, vectors=vectors)
                return Finder(documents, Index(parts), embedder)
            except EmbedderError:
                pass  # by words alone, then, as tools are found too
        return Finder(documents, words_only(documents, version), None)


def _document(skill: Skill) -> Tool:
    """The skill as the index reads it: what it says it is for. Its tools are found as tools are."""
    return Tool(
        server=_SERVER,
        name=skill.name,
        public_name=skill.name,
        description=skill.description,
        definition=b"{}",
        fingerprint=f"{skill.name}\0{skill.description}",
    )
