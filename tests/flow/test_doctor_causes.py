"""Every cause is found in its home and in no other: from files on disk, through the readers, to the findings."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard.cli.doctor_examine import examine
from pegboard.doctor.checks import CAUSES
from pegboard.doctor.checks.causes import (
    AUTO,
    ENV,
    HELD_OFF,
    OLD_VERSION,
    PINNED_SERVER,
    PINNED_TOOLS,
    REFUSED,
    THRESHOLD,
    UNEXPLAINED,
    VERTEX,
)
from pegboard.doctor.diagnosis import diagnose
from pegboard.doctor.facts import Evidence, Finding, Proof
from pegboard.doctor.settings.machine import Machine
from tests.conftest import SHOWN
from tests.homes import HomeBuilder, versions
from tests.homes import causes as homes
from tests.homes.tools import patch_of

HEALTHY = "healthy"
BETWEEN: dict[str, tuple[int, int]] = {
    OLD_VERSION: (70, 303),
    VERTEX: (119, 220),
    PINNED_SERVER: (121, 325),
    PINNED_TOOLS: (300, 325),
    AUTO: (265, 325),
    THRESHOLD: (265, 325),
    UNEXPLAINED: (265, 325),
    REFUSED: (306, 325),
    HELD_OFF: (304, 325),
}
"""The versions of 2.1 that can have a cause, or that leave traces which show it; all of them, where none is said."""
IMPOSSIBLE = frozenset({REFUSED, HELD_OFF})
"""Homes that no version before has: there the same transcripts would tell of something else."""


def evidence_of(home: HomeBuilder) -> Evidence:
    """What the doctor reads in a home, and nothing beside it."""
    machine = Machine(
        home=home.folder, cwd=home.project, environ=home.environ, platform="linux", root=home.root, starts=False
    )
    return asyncio.run(examine(machine, now=home.now))


def found_in(home: HomeBuilder) -> tuple[Finding, ...]:
    return diagnose(evidence_of(home), now=home.now).findings


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, int]]:
    """How many findings of each cause each home has."""
    makers = {HEALTHY: homes.healthy, **homes.HOMES}
    found: dict[str, dict[str, int]] = {}
    for name, make in makers.items():
        row = dict.fromkeys(CAUSES, 0)
        for finding in found_in(make(tmp_path_factory.mktemp("home"))):
            row[finding.cause] += 1
        found[name] = row
    return found


def table(matrix: dict[str, dict[str, int]]) -> str:
    """Homes downwards, causes across by number."""
    width = max(map(len, matrix))
    head = " " * width + "".join(f"{number:>4}" for number in range(1, len(CAUSES) + 1))
    numbers = {cause: number for number, cause in enumerate(CAUSES, 1)}
    rows = [f"{name:{width}}" + "".join(f"{count or '.':>4}" for count in row.values()) for name, row in matrix.items()]
    legend = [f"{number:>4} {cause}" for cause, number in numbers.items()]
    return "\n".join([head, *rows, "", *legend, ""])


def test_each_cause_has_a_home() -> None:
    assert set(homes.HOMES) == set(CAUSES)


def test_the_confusion_matrix_has_nothing_off_its_diagonal(
    matrix: dict[str, dict[str, int]], record_property: Callable[[str, object], None]
) -> None:
    record_property(f"{SHOWN}the doctor's confusion matrix", table(matrix))
    wrong = {
        (home, cause): count
        for home, row in matrix.items()
        for cause, count in row.items()
        if count != (1 if home == cause else 0)
    }
    assert wrong == {}


def test_a_healthy_home_has_no_findings(tmp_path: Path) -> None:
    assert found_in(homes.healthy(tmp_path)) == ()


@pytest.mark.slow
@pytest.mark.parametrize("version", versions())
def test_a_healthy_home_has_no_findings_in_any_version(version: str, tmp_path: Path) -> None:
    assert [each.cause for each in found_in(homes.healthy(tmp_path, version=version))] == []


@pytest.mark.parametrize("version", versions())
def test_the_base_url_matters_between_two_versions(version: str, tmp_path: Path) -> None:
    found = [each.cause for each in found_in(homes.off_by_version(tmp_path, version=version))]
    assert found == ([OLD_VERSION] if 70 <= patch_of(version) <= 303 else [])


@pytest.mark.parametrize("version", versions())
def test_vertex_matters_between_two_versions(version: str, tmp_path: Path) -> None:
    found = [each.cause for each in found_in(homes.off_on_vertex(tmp_path, version=version))]
    assert found == ([VERTEX] if 119 <= patch_of(version) <= 220 else [])


@pytest.mark.parametrize("version", versions())
def test_a_pin_matters_from_one_version_on(version: str, tmp_path: Path) -> None:
    found = [each.cause for each in found_in(homes.pinned_server(tmp_path, version=version))]
    assert found == ([PINNED_SERVER] if patch_of(version) >= 121 else [])


@pytest.mark.slow
@pytest.mark.parametrize("version", versions())
def test_a_variable_matters_in_every_version(version: str, tmp_path: Path) -> None:
    [finding] = found_in(homes.off_by_variable(tmp_path, version=version))
    assert finding.cause == ENV
    assert finding.confidence == ("high" if patch_of(version) >= 265 else "low")


@pytest.mark.parametrize("place", ["user", "project", "local", "managed", "shell", "environment"])
def test_the_variable_is_found_wherever_it_is_said(place: str, tmp_path: Path) -> None:
    [finding] = found_in(homes.off_by_variable(tmp_path, place=place))
    assert finding.cause == ENV
    assert finding.proof is Proof.REQUESTS
    said = {
        "user": "home/ada/.claude/settings.json, line",
        "project": "engine/.claude/settings.json, line",
        "local": "engine/.claude/settings.local.json, line",
        "managed": "etc/claude-code/managed-settings.json, line",
        "shell": "home/ada/.zshrc, line 2",
        "environment": "the environment of this very shell",
    }[place]
    assert said in finding.why
    assert (finding.fix is not None) == (place in ("user", "project", "local"))
    assert (finding.by_hand != "") == (place not in ("user", "project", "local"))


def test_an_old_model_on_vertex_is_vertex_and_not_the_model(tmp_path: Path) -> None:
    assert [each.cause for each in found_in(homes.off_by_model_on_vertex(tmp_path))] == [VERTEX]


def test_a_server_of_a_project_is_known_by_its_whole_name(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    settings = home.project / "opencode.json"
    home.json(settings, {"mcp": {"my_files": {"type": "local", "command": ["my-files"]}}})
    os.utime(settings, (1, 1))
    for number in range(6):
        home.opencode_session(calls={"my_files_read": 1}, days_ago=6 - number)
    assert found_in(home) == ()


@pytest.mark.slow
@pytest.mark.parametrize("version", versions())
def test_the_matrix_has_nothing_off_its_diagonal_in_any_version(version: str, tmp_path: Path) -> None:
    patch = patch_of(version)
    for cause, make in homes.HOMES.items():
        first, last = BETWEEN.get(cause, (7, 325))
        if cause in IMPOSSIBLE and patch < first:
            continue
        found = [each.cause for each in found_in(make(tmp_path / cause, version=version))]
        assert found == ([cause] if first <= patch <= last else []), cause
