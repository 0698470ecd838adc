"""Claude Code: what decides over deferral, and its servers in every scope.

Above: `read`. Below: its files, and the importers, which know its servers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pegboard.config.importers.fields import kind_of, member
from pegboard.config.importers.found import Entry
from pegboard.doctor.facts import ServerEntry, Setting
from pegboard.doctor.settings import claude_files, values
from pegboard.doctor.settings.claude_files import Layer
from pegboard.doctor.settings.claude_plugins import plugin_servers
from pegboard.doctor.settings.machine import Glance, Machine
from pegboard.doctor.settings.precedence import Draft
from pegboard.doctor.settings.servers import Place, in_folder_of_file, servers_at, source
from pegboard.doctor.settings.variables import variables

VARIABLES = (
    "ENABLE_TOOL_SEARCH",
    "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS",
    "ANTHROPIC_BASE_URL",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_FOUNDRY",
    "ANTHROPIC_VERTEX_BASE_URL",
    "ANTHROPIC_BEDROCK_BASE_URL",
    "ANTHROPIC_FOUNDRY_BASE_URL",
    "ANTHROPIC_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "CLAUDE_CODE_SUBAGENT_MODEL",
    "CLAUDE_CONFIG_DIR",
)
"""Those that have a say in whether tools are deferred, or in which files count."""

_DENIED = ("permissions", "deny")
_TOOL_SEARCH = re.compile(r"ToolSearch(?:\(\s*\*?\s*\))?")


def read(machine: Machine, glance: Glance, project: Path | None) -> Draft:
    """What it is set to in a folder, or in none."""
    found = claude_files.layers(machine, glance, project)
    return Draft(
        settings=(*_of_files(found, glance), *variables(machine, glance, VARIABLES)),
        servers=_servers(machine, glance, project, found),
        joined=frozenset({".".join(_DENIED)}),
    )


def _of_files(found: Sequence[Layer], glance: Glance) -> Iterator[Setting]:
    for layer in found:
        document, scope = layer.document, layer.scope
        yield from _environment(layer, glance)
        yield from values.setting_at(document, scope, ("model",), glance)
        yield from _denials(layer, glance)


def _environment(layer: Layer, glance: Glance) -> Iterator[Setting]:
    """`env` is merged variable by variable, and overrides the shell."""
    table = layer.document.at(("env",))
    if table is not None and not isinstance(table, dict):
        glance.report(layer.document.file, f"`env` should be a table of variables, but is {kind_of(table)}")
        return
    for name in VARIABLES:
        yield from values.setting_at(layer.document, layer.scope, ("env", name), glance, name=name)


def _denials(layer: Layer, glance: Glance) -> Iterator[Setting]:
    listed = layer.document.at(_DENIED)
    if listed is not None and not isinstance(listed, list):
        glance.report(layer.document.file, f"`permissions.deny` should be a list, but is {kind_of(listed)}")
        return
    rules: dict[str, int] = {}
    for index, rule in enumerate(listed or ()):
        if isinstance(rule, str) and _TOOL_SEARCH.fullmatch(rule.strip()):
            rules.setdefault(rule.strip(), index)
    for rule, index in rules.items():
        yield values.made(layer.document, layer.scope, _DENIED, ".".join(_DENIED), rule, index)


# ── servers ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _servers(machine: Machine, glance: Glance, project: Path | None, found: Sequence[Layer]) -> tuple[ServerEntry, ...]:
    administered = claude_files.managed_servers(machine)
    managed = servers_at(_managed_place(administered), machine, glance)
    places = [_USER] if project is None else [_LOCAL, _PROJECT, _USER]
    others = [entry for place in places for entry in servers_at(place, machine, glance)]
    others += plugin_servers(machine, glance, project, found)
    if glance.document(administered) is not None:
        # An administrator's list is the only one that counts.
        others = [msgspec.structs.replace(entry, enabled=False) for entry in others]
    approvals = _Approvals(machine, glance, found)
    return (*managed, *(approvals.applied(entry) for entry in others))


def _managed_place(file: Path) -> Place:
    return Place(agent="claude-code", scope="managed", source=source("claude-code:user", [file]))


def _of_local(_file: Path, entry: Entry) -> str:
    return str(Path(entry.where[1]))


_LOCAL = Place(agent="claude-code", scope="local", source=source("claude-code:local"), folder=_of_local)
_PROJECT = Place(agent="claude-code", scope="project", source=source("claude-code:project"), folder=in_folder_of_file)
_USER = Place(agent="claude-code", scope="user", source=source("claude-code:user"))


class _Approvals:
    """Which servers of `.mcp.json` somebody has approved: in any settings file, or when asked for it."""

    def __init__(self, machine: Machine, glance: Glance, found: Sequence[Layer]) -> None:
        lists = [layer.document.value for layer in found]
        said = [each.get("enableAllProjectMcpServers") for each in lists]
        self._all = next((each for each in said if isinstance(each, bool)), False)
        lists += list(_projects(machine, glance))
        self._names = {name for each in lists for name in values.texts(each.get("enabledMcpjsonServers"))}

    def applied(self, entry: ServerEntry) -> ServerEntry:
        """The entry, which waits when nobody has approved it."""
        if entry.scope != "project" or not entry.enabled or self._all or entry.name in self._names:
            return entry
        return msgspec.structs.replace(entry, pending=True)


def _projects(machine: Machine, glance: Glance) -> Iterator[dict[str, Any]]:
    """What the state file says of this folder and those above it."""
    projects = member(glance.value(claude_files.state_file(machine)), "projects")
    for folder in machine.upward():
        for name in dict.fromkeys((str(folder), folder.as_posix())):
            if isinstance(about := member(projects, name), dict):
                yield about
