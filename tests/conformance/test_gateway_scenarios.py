"""The server scenarios of the official suite: before the gateway itself, and through it to a server behind it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conformance.suite import CannotInstall, Suite, Verdict

EVERYTHING = Path(__file__).with_name("everything.py")
AT_ONCE = 2
LOGGING = {"logging-set-level", "tools-call-with-logging"}
"""Deprecated in 2026-07-28, and not relayed."""
WATCHING = {"resources-subscribe", "resources-unsubscribe"}
"""Single resources are not watched; lists are."""
RESUMING = {"server-sse-polling"}
"""Optional: streams that are cut are not resumed. The suite has nothing to check then."""
NOT_YET: dict[str, set[str]] = {
    "2025-06-18": LOGGING | WATCHING,
    "2025-11-25": LOGGING | WATCHING | RESUMING,
    "2026-07-28": {"input-required-result-basic-elicitation"},
}
"""The last one wants a key that the desk of the test, unlike a real server, has no way to choose."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def suite() -> Suite:
    try:
        return Suite.install()
    except CannotInstall as error:
        pytest.skip(f"the conformance suite cannot be installed here: {error}")


@contextmanager
def serving(*arguments: str) -> Iterator[str]:
    command = [sys.executable, "-W", "error", str(EVERYTHING), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def direct() -> Iterator[str]:
    with serving() as url:
        yield url


@pytest.fixture(scope="module")
def through(direct: str) -> Iterator[str]:
    with serving("--through", direct) as url:
        yield url


def failed(suite: Suite, revision: str, url: str) -> dict[str, str]:
    """Those that fail, twice where they should not: some measure time, and the machine may be busy."""

    def judged(name: str) -> Verdict:
        verdict = suite.run_server(name, revision, url)
        retry = not verdict.is_passed and name not in NOT_YET[revision]
        return suite.run_server(name, revision, url) if retry else verdict

    with ThreadPoolExecutor(AT_ONCE) as workers:
        verdicts = list(workers.map(judged, suite.scenarios("server")[revision]))
    return {verdict.scenario: verdict.story for verdict in verdicts if not verdict.is_passed}


@pytest.mark.parametrize("revision", NOT_YET)
def test_the_gateway_passes_all_but_those_listed(suite: Suite, direct: str, revision: str) -> None:
    found = failed(suite, revision, direct)
    assert set(found) == NOT_YET[revision], "\n\n".join(found.values())


@pytest.mark.parametrize("revision", NOT_YET)
def test_a_server_behind_the_gateway_does_no_worse_than_alone(suite: Suite, through: str, revision: str) -> None:
    found = failed(suite, revision, through)
    assert set(found) <= NOT_YET[revision], "\n\n".join(found[name] for name in set(found) - NOT_YET[revision])
