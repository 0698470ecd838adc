"""What a server requires, held against what was found."""

from __future__ import annotations

import pytest

from pegboard.catalog.gate import reason, unavailable
from pegboard.config.model import Requires
from pegboard.upstream.probe import Facts
from tests.unit.catalog.given import spec


@pytest.mark.parametrize(
    ("requires", "facts", "words"),
    [
        (Requires(), Facts(), None),
        (Requires(env=("A",)), Facts(env=frozenset({"A", "B"})), None),
        (
            Requires(env=("GITHUB_TOKEN",)),
            Facts(),
            "needs the environment variable GITHUB_TOKEN, which is not set",
        ),
        (Requires(command=("docker",)), Facts(), "needs docker on PATH"),
        (Requires(command=("docker",)), Facts(commands=frozenset({"docker"})), None),
        (
            Requires(url="http://127.0.0.1:9"),
            Facts(url_problem="connection refused"),
            "needs http://127.0.0.1:9 to accept connections: connection refused",
        ),
        (Requires(url="http://127.0.0.1:9"), Facts(), None),
        (
            Requires(env=("A", "B"), command=("c",)),
            Facts(env=frozenset({"B"})),
            "needs the environment variable A, which is not set; needs c on PATH",
        ),
    ],
)
def test_the_reason_names_all_that_is_missing(requires, facts, words):
    assert reason(requires, facts) == words


def test_what_an_address_may_hide_is_not_shown():
    requires = Requires(url="https://user:hunter2@db.example:8443/path?token=hunter2#x")
    shown = reason(requires, Facts(url_problem="connection refused"))
    assert shown == "needs https://db.example:8443 to accept connections: connection refused"


def test_only_servers_that_lack_something_are_unavailable():
    specs = [spec("free"), spec("needy", requires={"env": ("A",)}), spec("fine", requires={"env": ("B",)})]
    facts = {"needy": Facts(), "fine": Facts(env=frozenset({"B"}))}
    assert unavailable(specs, facts) == {"needy": "needs the environment variable A, which is not set"}
