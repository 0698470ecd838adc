"""`pegboard skills`: the skills there are, what is wrong with any, and what one says. Nothing is started."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from pathlib import Path

from pegboard.catalog.catalog import Catalog
from pegboard.cli import output
from pegboard.cli.context import load_config
from pegboard.config.model import Config
from pegboard.engine import load_catalog
from pegboard.errors import PegboardError
from pegboard.platform_tools.skill_text import Declared, declared, missing_text
from pegboard.skills.source import Skill, Skills, SkillSource
from pegboard.types import Json

OFF_HINT = 'Say where they are: [skills] roots = ["~/.claude/skills"] in pegboard.toml; or enabled = true.'
_SUMMARY = 100


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("action", nargs="?", choices=("list", "show"), default="list", help="list is the default")
    parser.add_argument("name", nargs="?", default="", help="with show: the skill")
    parser.add_argument("file", nargs="?", default="", help="with show: one of its further files")


def run(args: argparse.Namespace) -> int:
    """Lists the skills, or shows one."""
    config = load_config(args)
    if not config.skill_roots:
        raise PegboardError("Skills are off.", hint=OFF_HINT)
    skills = SkillSource(config.skill_roots).look()
    if args.action == "show":
        return _show(skills, config, args)
    if args.name:
        raise PegboardError("list takes no name.", hint=f"pegboard skills show {args.name}")
    return _list(skills, config, args)


def _list(skills: Skills, config: Config, args: argparse.Namespace) -> int:
    catalog = _catalog(config, skills.skills.values())
    tools = {name: _tools(skill, catalog) for name, skill in skills.skills.items()}
    if args.json:
        rows = [_as_json(skill, tools[name]) for name, skill in skills.skills.items()]
        output.emit(
            {
                "skills": rows,
                "problems": [output.printable(each) for each in skills.problems],
                "roots": [_plain(root.path) for root in config.skill_roots],
            }
        )
        return 0
    _print(skills, tools)
    for problem in skills.problems:
        output.warn(f"warning: {output.printable(problem)}")
    if not skills.skills:
        looked = ", ".join(output.printable(str(root.path)) for root in config.skill_roots)
        output.warn(f"There are no skills. Looked in {looked}.")
    return 0


def _print(skills: Skills, tools: dict[str, Declared]) -> None:
    width = max(map(len, skills.skills), default=0)
    for name, skill in skills.skills.items():
        about = output.printable(skill.description)
        output.say(f"{name:{width}}  {about if len(about) <= _SUMMARY else about[: _SUMMARY - 1] + '…'}")
        output.say(f"{'':{width}}  {output.printable(_plain(skill.folder))}")
        if tools[name].found:
            output.say(f"{'':{width}}  tools: {', '.join(tools[name].found)}")
        if tools[name].missing:
            output.warn(f"warning: {name}: {output.printable(missing_text(tools[name].missing))}")


def _show(skills: Skills, config: Config, args: argparse.Namespace) -> int:
    if not args.name:
        raise PegboardError("Which skill?", hint="pegboard skills show NAME [FILE]")
    skill = skills.find(args.name)
    if args.file:
        text = skill.text(args.file)
        if args.json:
            output.emit({"name": skill.name, "file": args.file, "text": text})
        else:
            output.say(output.printable(text))
        return 0
    tools = _tools(skill, _catalog(config, [skill]))
    body, files = skill.body(), skill.files()
    if args.json:
        listed = [{"path": each.path, "bytes": each.size} for each in files.files]
        output.emit(_as_json(skill, tools) | {"body": body, "files": listed})
        return 0
    output.say(output.printable(f"{skill.name}: {skill.description}"))
    output.say(output.printable(f"folder  {_plain(skill.folder)}"))
    if tools.found:
        output.say(f"tools   {', '.join(tools.found)}")
    if tools.missing:
        output.say(output.printable(missing_text(tools.missing)))
    for each in files.files:
        output.say(output.printable(f"file    {each.path}"))
    output.say("\n" + output.printable(body))
    return 0


def _catalog(config: Config, skills: Iterable[Skill]) -> Catalog | None:
    """What the cache knows of tools, if a skill names any."""
    named = any(skill.tools for skill in skills)
    return load_catalog(config) if named and config.servers else None


def _tools(skill: Skill, catalog: Catalog | None) -> Declared:
    known = catalog or Catalog(version="", tools={}, servers={})
    return declared(skill, known, known.tools, bound=False)


def _as_json(skill: Skill, tools: Declared) -> Json:
    return {
        "name": skill.name,
        "description": skill.description,
        "folder": _plain(skill.folder),
        "root": _plain(skill.root),
        "declared": list(skill.tools),
        "tools": list(tools.found),
        "unknown": [each.name for each in tools.missing],
        "remarks": [output.printable(each) for each in skill.remarks],
    }


def _plain(path: Path) -> str:
    return os.fsencode(path).decode("utf-8", "replace")
