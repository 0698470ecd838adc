"""The index of skills that a model is shown: every name, and as many descriptions as there is room for.

Pure, and all that a list of tools needs of skills. Above: `library`. Below: `surface.visible`, the skills.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pegboard.skills.source import Skill
from pegboard.surface.visible import one_line

LENGTHS = (1024, 240, 120)
"""Characters of a description that are shown: the first of these at which all fit, else the last."""


def index_text(skills: Sequence[Skill], used: Mapping[str, float], budget: int, count: Callable[[str], int]) -> str:
    """Every skill by name; descriptions within so many tokens, to those used last first.

    The order is that of the names, so that as long as all descriptions fit nothing depends on what was used when.
    """
    shown: dict[str, str] = {}
    for longest in LENGTHS:
        shown = _described(skills, used, budget, count, longest)
        if len(shown) == len(skills):
            break
    rows = [f"\n- {skill.name}: {shown[skill.name]}" for skill in skills if skill.name in shown]
    bare = ", ".join(skill.name for skill in skills if skill.name not in shown)
    if not rows:
        return f" {bare}."
    return "".join(rows) + (f"\n- Also: {bare}" if bare else "")


def all_fit(skills: Sequence[Skill], budget: int, count: Callable[[str], int]) -> bool:
    """Whether every description is shown, so that it does not matter which skills were used last."""
    return len(_described(skills, {}, budget, count, LENGTHS[-1])) == len(skills)


def _described(
    skills: Sequence[Skill], used: Mapping[str, float], budget: int, count: Callable[[str], int], longest: int
) -> dict[str, str]:
    """The descriptions there is room for; once one does not fit, none that was used less lately gets its place."""
    shown: dict[str, str] = {}
    left = budget
    for skill in sorted(skills, key=lambda each: (-used.get(each.name, 0.0), each.name)):
        text = one_line(skill.description, longest)
        left -= count(text)
        if left < 0:
            break
        shown[skill.name] = text
    return shown
