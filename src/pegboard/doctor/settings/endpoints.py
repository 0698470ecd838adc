"""Where agents send their requests: the addresses in their files, as those who redirect them know them.

Above: the modules of the agents. Below: the installers' list of agents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pegboard.config.installers.agents import Agent, agent_named
from pegboard.doctor.facts import Setting
from pegboard.doctor.settings.machine import Document, Glance, Machine
from pegboard.doctor.settings.values import Scope, settings_at

Said = tuple[Scope, Document]


def files_of(agent: str, machine: Machine) -> tuple[Path, ...]:
    """The user's files in which addresses are, the one that counts most first."""
    files = _known(agent).files
    return files(machine) if files else ()


def documents(scope: Scope, files: Iterable[Path], glance: Glance) -> Iterator[Said]:
    """Those of the files that are there."""
    for file in dict.fromkeys(files):
        if document := glance.document(file):
            yield scope, document


def addresses(agent: str, said: Sequence[Said], glance: Glance) -> Iterator[Setting]:
    """Every address of a provider, the strongest first."""
    known = _known(agent)
    keys = [spot.path for spot in known.spots([document.value for _, document in said])]
    for scope, document in said:
        yield from settings_at(document, scope, keys, glance)


def _known(agent: str) -> Agent:
    return agent_named(agent)
