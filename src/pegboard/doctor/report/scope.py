"""Which sessions and which definitions a change is about: nothing else counts for it or against it.

Above: `samples`, `baseline` and `claims`. Below: the doctor's nouns.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePath

import msgspec

from pegboard.doctor.facts import Agent, Definition, Fix, ServerEntry, Session, Setting

NAMED = ("server-disable", "defer-alwaysload")
"""Kinds that are about the servers they name; the others are about all."""
OWN_TOOLS = ("defer-enable", "defer-threshold", "proxy-install")
"""Kinds that also touch the tools an agent brings along itself."""
_OTHER = re.compile(r"[^A-Za-z0-9_-]")


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """What a change can have touched."""

    agent: Agent
    servers: tuple[str, ...] = ()
    """As they are named on the wire; empty for every MCP server."""
    own: bool = False
    """The agent's own tools too."""
    projects: tuple[str, ...] = ()
    """Folders it holds in, and below; empty for everywhere."""

    def holds_in(self, project: str) -> bool:
        """Whether it is in force for a session in this folder."""
        if not self.projects:
            return True
        return bool(project) and any(PurePath(project).is_relative_to(each) for each in self.projects)

    def holds_for(self, server: str) -> bool:
        """Whether it touches what this server defines; the empty name is the agent itself."""
        if not server:
            return self.own
        return not self.servers or server in self.servers

    def has(self, session: Session) -> bool:
        """Whether this session counts."""
        return session.agent == self.agent and self.holds_in(session.project)

    def paid(self, session: Session) -> dict[str, int]:
        """Tokens of the definitions the session paid for, by server. What was deferred is paid once it is called."""
        tokens: dict[str, int] = {}
        for each in session.definitions:
            server = wire_name(each.server)
            if self.holds_for(server) and is_paid(each, session):
                tokens[server] = tokens.get(server, 0) + each.tokens
        return tokens


def scope_of(fix: Fix) -> Scope:
    """The scope of a fix: from its kind, the servers it names and the files it edits."""
    named = fix.kind in NAMED
    return Scope(
        agent=fix.agent,
        servers=tuple(dict.fromkeys(wire_name(each.name) for each in fix.servers)) if named else (),
        own=fix.kind in OWN_TOOLS,
        projects=_projects(fix),
    )


def is_paid(definition: Definition, session: Session) -> bool:
    """A deferred definition costs nothing until it is found, and what was called had been found."""
    return not definition.deferred or session.calls.get(definition.name, 0) > 0


def wire_name(server: str) -> str:
    """A server's name as it stands in the names of its tools."""
    return _OTHER.sub("_", server)


def _projects(fix: Fix) -> tuple[str, ...]:
    """The folders a fix holds in; empty as soon as one of its edits holds everywhere."""
    folders = [*map(_folder_of_server, fix.servers), *map(_folder_of_setting, fix.settings)]
    return () if "" in folders else tuple(dict.fromkeys(folders))


def _folder_of_server(server: ServerEntry) -> str:
    return server.project


def _folder_of_setting(setting: Setting) -> str:
    """A project's file lies in its folder, or in a hidden one in there."""
    if setting.scope not in ("local", "project") or setting.file is None:
        return ""
    folder: Path = setting.file.parent
    return str(folder.parent if folder.name.startswith(".") else folder)
