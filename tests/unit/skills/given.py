"""Folders of skills, written for one test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pegboard.config.model import SkillRoot
from pegboard.skills.source import Skills, SkillSource


def write(root: Path, name: str = "pdf-forms", description: str = "Fills in PDF forms.", **more: Any) -> Path:
    """A skill's folder. `header` are further lines of its header, `body` what it says, `folder` where it lies."""
    folder = root / str(more.get("folder", name))
    folder.mkdir(parents=True, exist_ok=True)
    header = "".join(f"{line}\n" for line in more.get("header", ()))
    text = f"---\nname: {name}\ndescription: {description}\n{header}---\n\n{more.get('body', 'Do it so.')}\n"
    (folder / "SKILL.md").write_text(text, "utf-8")
    return folder


def source(*roots: Path, **options: Any) -> SkillSource:
    """A source over these roots, all of which are named."""
    return SkillSource([SkillRoot(root, named=True) for root in roots], **options)


def look(*roots: Path) -> Skills:
    """What is there."""
    return source(*roots).look()
