"""What every agent on the machine is set to: with no project, and in each project that has something of its own.

Above: the doctor's commands. Below: one module per agent or family of agents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from pegboard.doctor.facts import Agent, AgentState
from pegboard.doctor.settings import claude_code, codex, opencode, others, processes, versions
from pegboard.doctor.settings.machine import Glance, Machine, Shelf
from pegboard.doctor.settings.precedence import Draft, settle

Read = Callable[[Machine, Glance, Path | None], Draft]

AGENTS: dict[Agent, Read] = {
    "claude-code": claude_code.read,
    "codex": codex.read,
    "opencode": opencode.reader(opencode.OPENCODE),
    "kilo": opencode.reader(opencode.KILO),
    "cline": others.cline,
    "gemini": others.gemini,
    "zed": others.zed,
    "cursor": others.cursor,
    "vscode": others.vscode,
}


def read_states(machine: Machine, projects: Iterable[Path] = ()) -> tuple[AgentState, ...]:
    """One state per agent and folder. Broken files become problems of the states that asked for them."""
    shelf = Shelf()
    active = processes.running(machine)
    folders = [folder for folder in dict.fromkeys(projects) if _is_folder(folder)]
    return tuple(state for agent in AGENTS for state in _states(agent, machine, shelf, folders, agent in active))


def _states(
    agent: Agent, machine: Machine, shelf: Shelf, folders: Iterable[Path], is_running: bool
) -> Iterator[AgentState]:
    is_there, version = versions.installed(agent, machine, shelf)
    about = AgentState(agent=agent, installed=is_there, version=version, running=is_running)
    # Where there is no project there is none above it either.
    glance = Glance(shelf)
    plain = AGENTS[agent](machine.at(machine.root), glance, None)
    anywhere = _state(about, plain, glance, shelf, "")
    yield anywhere
    for folder in folders:
        glance = Glance(shelf)
        draft = AGENTS[agent](machine.at(folder), glance, folder)
        state = _state(about, draft, glance, shelf, str(folder))
        # A file that says nothing any more may have said something until it was written.
        if _says_more(draft, plain, glance, anywhere) or state.changed_at > anywhere.changed_at:
            yield state


def _says_more(draft: Draft, plain: Draft, glance: Glance, anywhere: AgentState) -> bool:
    is_same = (draft.settings, draft.servers) == (plain.settings, plain.servers)
    return not is_same or bool(set(glance.problems) - set(anywhere.problems))


def _state(about: AgentState, draft: Draft, glance: Glance, shelf: Shelf, project: str) -> AgentState:
    settings, overridden = settle(draft.settings, draft.joined)
    written = [each.changed_at for each in draft.settings] + [each.changed_at for each in draft.servers]
    written += [document.changed_at for file in glance.files if (document := shelf.known(file))]
    return AgentState(
        agent=about.agent,
        installed=about.installed,
        version=about.version,
        running=about.running,
        project=project,
        settings=settings,
        overridden=overridden,
        servers=draft.servers,
        problems=glance.problems,
        changed_at=max(written, default=0.0),
        looked_at=glance.files,
    )


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False
