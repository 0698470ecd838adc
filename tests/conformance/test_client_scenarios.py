"""The client scenarios of the official conformance suite, all of them, against the list of those that pass."""

from __future__ import annotations

import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conformance.suite import CannotInstall, Suite, Verdict

PASSING: dict[str, list[str]] = {
    revision: table["passing"]
    for revision, table in tomllib.loads(Path(__file__).with_name("passing.toml").read_text()).items()
}
AT_ONCE = 2

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def suite() -> Suite:
    try:
        return Suite.install()
    except CannotInstall as error:
        pytest.skip(f"the conformance suite cannot be installed here: {error}")


def test_every_revision_of_the_suite_has_its_list(suite: Suite) -> None:
    assert set(suite.scenarios()) == set(PASSING)


@pytest.mark.parametrize("revision", PASSING)
def test_listed_scenarios_pass_and_others_do_not_yet(suite: Suite, revision: str, tmp_path: Path) -> None:
    known = suite.scenarios()[revision]
    listed = PASSING[revision]
    assert set(listed) <= set(known), "the list names scenarios that the suite does not have"
    with ThreadPoolExecutor(AT_ONCE) as workers:
        verdicts = list(workers.map(lambda name: judged(suite, name, revision, tmp_path), known))
    failed = [verdict.story for verdict in verdicts if verdict.scenario in listed and not verdict.is_passed]
    assert not failed, "\n\n".join(failed)
    grown = [verdict.scenario for verdict in verdicts if verdict.scenario not in listed and verdict.is_passed]
    assert not grown, f"these pass now; add them to passing.toml: {grown}"


def judged(suite: Suite, scenario: str, revision: str, folder: Path) -> Verdict:
    """Some scenarios measure time, and the machine may be busy: who fails and should not is heard twice."""
    verdict = suite.run(scenario, revision, folder / scenario / "first")
    if verdict.is_passed or scenario not in PASSING[revision]:
        return verdict
    return suite.run(scenario, revision, folder / scenario / "second")
