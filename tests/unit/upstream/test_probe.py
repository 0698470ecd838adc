"""The prober looks at the real environment, PATH and network, and remembers for half a minute."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from contextlib import contextmanager

import pytest

from pegboard.config.model import Requires, ServerConfig, ServerSpec
from pegboard.upstream.probe import Facts, Prober, connect_problem


def needing(name="server", *, own=None, enabled=True, problem="", **requires):
    """A server that requires this; `own` is the environment it is configured with."""
    config = ServerConfig(command="x", env=own or {}, enabled=enabled, requires=Requires(**requires))
    return ServerSpec(name=name, config=config, problem=problem)


class Clock:
    """A clock that someone else moves."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@contextmanager
def listening(backlog=16):
    with socket.create_server(("127.0.0.1", 0), backlog=backlog) as server:
        yield server.getsockname()[1]


@contextmanager
def refusing():
    """A port that is taken and answers nobody."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def program(folder, name):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)
    return folder


def test_variables_count_when_they_are_set_to_something():
    prober = Prober(environ={"SET": "x", "EMPTY": "", "CLEARED": "x"})
    server = needing(own={"OWN": "y", "CLEARED": ""}, env=("SET", "EMPTY", "CLEARED", "OWN", "NONE"))
    assert prober.probe_all([server]) == {"server": Facts(env=frozenset({"SET", "OWN"}))}


def test_the_environment_of_the_process_is_the_default(monkeypatch):
    monkeypatch.setenv("PEGBOARD_TEST_VARIABLE", "x")
    server = needing(env=("PEGBOARD_TEST_VARIABLE", "PEGBOARD_OTHER_VARIABLE"))
    assert Prober().probe_all([server])["server"].env == {"PEGBOARD_TEST_VARIABLE"}


def test_programs_are_looked_up_on_path(tmp_path):
    folder = program(tmp_path / "bin", "tool")
    (folder / "plain").write_text("not executable")
    prober = Prober(environ={"PATH": str(folder)})
    facts = prober.probe_all([needing(command=("tool", "plain", "missing"))])
    assert facts["server"].commands == {"tool"}


def test_a_servers_own_path_is_the_one_that_counts(tmp_path):
    folder = program(tmp_path / "bin", "tool")
    prober = Prober(environ={"PATH": "/nowhere"})
    own = needing("own", own={"PATH": str(folder)}, command=("tool",))
    facts = prober.probe_all([own, needing("other", command=("tool",))])
    assert facts["own"].commands == {"tool"}
    assert facts["other"].commands == frozenset()


def test_servers_that_need_nothing_or_are_not_used_are_not_probed():
    free = ServerSpec(name="free", config=ServerConfig(command="x"))
    off, wrong = (
        needing("off", enabled=False, url="http://127.0.0.1:1"),
        needing("wrong", problem="bad", command=("x",)),
    )
    assert Prober().probe_all([free, off, wrong]) == {}


def test_an_address_that_accepts_connections_has_no_problem():
    with listening() as port:
        facts = Prober().probe_all([needing(url=f"http://127.0.0.1:{port}/path?q#f")])
    assert facts == {"server": Facts()}


def test_an_address_that_refuses_says_so():
    with refusing() as port:
        facts = Prober().probe_all([needing(url=f"http://127.0.0.1:{port}")])
    assert facts["server"].url_problem == "connection refused"


def test_an_address_that_does_not_answer_is_given_up_in_time():
    with listening(backlog=0) as port:
        waiting = []
        try:
            # Fill the queue of connections that nobody accepts, so that the next one is left hanging.
            for _ in range(4):
                one = socket.socket()
                one.setblocking(False)
                one.connect_ex(("127.0.0.1", port))
                waiting.append(one)
            prober = Prober(connect_timeout=0.05)
            facts = prober.probe_all([needing(url=f"http://127.0.0.1:{port}")])
        finally:
            for one in waiting:
                one.close()
    assert facts["server"].url_problem == "no answer within 0.05 s"


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://", "not an address"),
        ("http://host:99999999", "not an address"),
        ("http://[::1", "not an address"),
        ("", "not an address"),
        (f"http://{'a' * 70}.example", "not a host name"),
    ],
)
def test_what_is_no_address_is_told_and_not_raised(url, problem):
    assert problem in asyncio.run(connect_problem(url))


def test_a_host_name_is_resolved_and_an_unknown_one_is_told():
    with listening() as port:
        assert asyncio.run(connect_problem(f"http://localhost:{port}")) == ""
    # Without any name server the question itself may go unanswered.
    unknown = asyncio.run(connect_problem("http://no-such-host.invalid:80"))
    assert unknown in ("the host name cannot be resolved", "no answer within 1 s")


def test_each_address_is_tried_once_however_many_need_it():
    async def scenario():
        arrived = []

        def hang_up(_, writer):
            arrived.append(1)
            writer.close()

        server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        async with server, asyncio.timeout(10):
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            facts = await Prober().probe([needing(f"s{n}", url=url) for n in range(40)])
            other = await Prober().probe([needing(f"s{n}", url=f"{url}/{n}") for n in range(40)])
            while len(arrived) < 41:
                await asyncio.sleep(0)
        assert set(facts.values()) == set(other.values()) == {Facts()}
        return len(arrived)

    assert asyncio.run(scenario()) == 41


def test_an_answer_is_kept_for_thirty_seconds(tmp_path):
    clock = Clock()
    prober = Prober(clock=clock, environ={"PATH": str(tmp_path)})
    server = needing(command=("tool",))
    assert prober.probe_all([server])["server"].commands == frozenset()
    program(tmp_path, "tool")
    clock.now += 29.9
    assert prober.probe_all([server])["server"].commands == frozenset()
    clock.now += 0.2
    assert prober.probe_all([server])["server"].commands == {"tool"}


def test_a_kept_answer_about_an_address_asks_nobody():
    clock = Clock()
    prober = Prober(clock=clock)
    with refusing() as port:
        server = needing(url=f"http://127.0.0.1:{port}")
        assert prober.probe_all([server])["server"].url_problem
    with socket.create_server(("127.0.0.1", port)) as late:
        late.setblocking(False)
        assert prober.probe_all([server])["server"].url_problem == "connection refused"
        with pytest.raises(BlockingIOError):
            late.accept()
        clock.now += 31
        assert prober.probe_all([server])["server"].url_problem == ""


def test_a_changed_requirement_is_not_answered_from_memory(tmp_path):
    prober = Prober(environ={"PATH": str(program(tmp_path, "tool"))})
    assert prober.probe_all([needing(command=("other",))])["server"].commands == frozenset()
    assert prober.probe_all([needing(command=("tool",))])["server"].commands == {"tool"}
    assert prober.probe_all([needing(command=("tool",), own={"PATH": ""})])["server"].commands == frozenset()


def test_variables_and_programs_are_checked_without_an_event_loop():
    script = (
        "import sys\n"
        "from pegboard.catalog.gate import unavailable\n"
        "from pegboard.config.model import Requires, ServerConfig, ServerSpec\n"
        "from pegboard.upstream.probe import Prober\n"
        "requires = Requires(env=('NO_SUCH',), command=('sh',))\n"
        "spec = ServerSpec(name='s', config=ServerConfig(command='x', requires=requires))\n"
        "assert unavailable([spec], Prober().probe_all([spec]))\n"
        "slow = {'asyncio', 'socket', 'ssl', 'subprocess', 'concurrent', 'logging', 'difflib'} & set(sys.modules)\n"
        "assert not slow, slow\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)
