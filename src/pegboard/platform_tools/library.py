"""The library behind the desk: the skills there are, the index a model is shown of them, and the ones that fit.

What is shown is decided once for each version of the skills and stays the same until one of them changes, whatever is
loaded meanwhile. The disk is looked at by a thread. Above: `desk`. Below: `skills.source`, `skill_index`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pegboard.config.model import Config
from pegboard.errors import StoreError
from pegboard.platform_tools.definitions import load_skill
from pegboard.platform_tools.skill_index import all_fit, index_text
from pegboard.skills.source import Skill, Skills, SkillSource
from pegboard.surface.tokens import WORD_PIECES
from pegboard.types import Json

if TYPE_CHECKING:
    import asyncio

    from pegboard.index.skill_finder import SkillFinder
    from pegboard.protocols import Embedder

AskEmbedder = Callable[[], "Embedder | None"]
"""Gives what skills are embedded with, when one is first searched for."""


async def open_library(
    config: Config,
    embedder: AskEmbedder,
    *,
    on_change: Callable[[], None] | None = None,
    on_warning: Callable[[str], None] | None = None,
) -> Library:
    """The library of this configuration. When its skills were last used is asked only where it matters."""
    import asyncio

    source = SkillSource(config.skill_roots)
    skills = await asyncio.to_thread(source.look)
    budget, count = config.skills.index_tokens, WORD_PIECES.count
    used: Mapping[str, float] = {}
    if not all_fit(list(skills.skills.values()), budget, count):
        used = await _used_before(config, on_warning)
    return Library(source, embedder, budget=budget, count=count, used=used, on_change=on_change, on_warning=on_warning)


async def _used_before(config: Config, on_warning: Callable[[str], None] | None) -> Mapping[str, float]:
    """When each skill was last loaded, by any process, as the record has it."""
    from pegboard.store.sqlite import open_store, store_path

    if not config.record.enabled or not store_path(config).exists():
        return {}
    store = open_store(config, on_warning=on_warning)
    try:
        return await store.skills_used()
    except StoreError as error:
        if on_warning is not None:
            on_warning(f"skills are shown by name, not by use: {error.message}")
        return {}
    finally:
        await store.close()


class Library:
    """The skills of one configuration."""

    def __init__(
        self,
        source: SkillSource,
        embedder: AskEmbedder = lambda: None,
        *,
        budget: int,
        count: Callable[[str], int],
        used: Mapping[str, float] | None = None,
        on_change: Callable[[], None] | None = None,
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        """`used` says when skills were last loaded, before now; `on_change` is told that there are others."""
        self._source, self._embedder = source, embedder
        self._budget, self._count = budget, count
        self._used = dict(used or {})
        self._on_change, self._on_warning = on_change, on_warning
        self._told: frozenset[str] = frozenset()
        self._made: tuple[str, Json | None] | None = None
        self._finder: SkillFinder | None = None
        self._looking: asyncio.Task[Skills] | None = None
        # Whoever asked for a look may have been cancelled: then the next one tells of what it found.
        self._seen = source.known.version
        self._tell(source.known)

    @property
    def version(self) -> str:
        """Another one whenever the index is another."""
        return self._source.known.version

    def definition(self) -> Json | None:
        """`load_skill` as a model sees it, with the index; None while there is no skill."""
        known = self._source.known
        if self._made is None or self._made[0] != known.version:
            skills = list(known.skills.values())
            index = index_text(skills, self._used, self._budget, self._count)
            self._made = (known.version, load_skill(index) if skills else None)
        return self._made[1]

    def glance(self) -> None:
        """Looks at the disk again in the background, if it was not looked at just now."""
        import asyncio

        if self._looking is None and self._source.is_due:
            try:
                self._looking = asyncio.get_running_loop().create_task(self.look(), name="pegboard skills")
            except RuntimeError:
                return  # no loop: whoever searches or loads looks
            self._looking.add_done_callback(self._looked)

    async def look(self) -> Skills:
        """The skills as they are now."""
        import asyncio

        if not self._source.is_due:
            return self._source.known
        found = await asyncio.to_thread(self._source.look)
        self._tell(found)
        if found.version != self._seen:
            self._seen = found.version
            if self._on_change is not None:
                self._on_change()
        return found

    async def search(self, query: str) -> list[Skill]:
        """The few that surely fit."""
        skills = await self.look()
        if self._finder is None:
            from pegboard.index.skill_finder import SkillFinder

            self._finder = SkillFinder(self._embedder())
        return await self._finder.search(skills, query)

    def used(self, name: str, at: float) -> None:
        """A skill was loaded; that counts when the index is made anew."""
        self._used[name] = max(at, self._used.get(name, 0.0))

    async def close(self) -> None:
        """Stops looking."""
        import asyncio

        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    def _looked(self, task: asyncio.Task[Skills]) -> None:
        self._looking = None
        if not task.cancelled() and (error := task.exception()) is not None and self._on_warning is not None:
            self._on_warning(f"skills were not looked for: {error}")

    def _tell(self, skills: Skills) -> None:
        """Of each problem once, for as long as it lasts."""
        problems = frozenset(skills.problems)
        if self._on_warning is not None:
            for problem in skills.problems:
                if problem not in self._told:
                    self._on_warning(f"skills: {problem}")
        self._told = problems
