"""The proxy's benchmark measures what it says: on small numbers, over real sockets, without the others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from bench.proxy import first_byte, held, session, slow_reader, subjects, tools
from bench.proxy.agent import plan
from bench.proxy.caller import Caller, unchunked
from bench.proxy.subjects import BRIDGE, DIRECT, NATIVE, PASSES, Subject
from bench.proxy.upstream import Spec, spec_of, whole

Subjects = dict[str, Subject]


@pytest.fixture(scope="module")
def everyone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subjects]:
    """The API itself, and Pegboard before it in the two ways."""
    folder = tmp_path_factory.mktemp("bench")
    with (
        subjects.upstream(folder) as api,
        subjects.pegboard(PASSES, "native", api, folder) as passes,
        subjects.pegboard(BRIDGE, "bridge", api, folder) as bridge,
    ):
        yield {DIRECT: Subject(name=DIRECT, port=api), PASSES: passes, BRIDGE: bridge}


def test_a_request_says_what_its_answer_is_to_be():
    spec = Spec(events=7, gap_ms=1.5, stamped=True, search="native", query="open an issue", call="a__b")
    assert spec_of(tools.few(spec)) == spec
    assert spec_of(b'{"system": "none"}') == Spec()


def test_chunks_are_put_together_again():
    assert unchunked(b"3\r\nabc\r\n1;x=y\r\nd\r\n0\r\n\r\n") == b"abcd"


def test_what_passes_is_what_was_sent(everyone: Subjects):
    spec = Spec(events=5, seed=9)
    for subject in everyone.values():
        with closing(Caller(subject)) as caller:
            assert caller.ask(tools.few(spec)).body == whole(spec)


def test_every_event_of_a_stream_is_timed(everyone: Subjects):
    with closing(Caller(everyone[PASSES])) as caller:
        timed = caller.ask(tools.few(Spec(events=30, gap_ms=0.5, stamped=True)))
    assert len(timed.delays_ms) == 30
    assert 0 < timed.first_ms <= timed.whole_ms


def test_the_first_byte_is_measured_of_all_in_turn(everyone: Subjects, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(first_byte, "WARM", 1)
    monkeypatch.setattr(first_byte, "SHORT", 3)
    monkeypatch.setattr(first_byte, "LONG", 2)
    monkeypatch.setattr(first_byte, "LONG_SPEC", Spec(events=5, gap_ms=0.5, stamped=True))
    failed: dict[str, str] = {}
    result = first_byte.run(everyone, failed)
    assert not failed
    assert {name: len(each["first_ms"]) for name, each in result["few"].items()} == {DIRECT: 3, PASSES: 3}
    assert {name: len(each["delay_ms"]) for name, each in result["many"].items()} == {DIRECT: 2, BRIDGE: 2}


def test_one_that_answers_wrongly_is_told_and_the_others_go_on(everyone: Subjects, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(first_byte, "WARM", 1)
    monkeypatch.setattr(first_byte, "SHORT", 2)
    monkeypatch.setattr(first_byte, "LONG", 1)
    monkeypatch.setattr(first_byte, "LONG_SPEC", Spec(events=5, stamped=True))
    failed: dict[str, str] = {}
    lost = msgspec.structs.replace(everyone[PASSES], name=subjects.NGINX, path="/nowhere")
    result = first_byte.run({**everyone, subjects.NGINX: lost}, failed)
    assert list(failed) == [subjects.NGINX]
    assert set(result["few"]) == {DIRECT, PASSES}


def test_streams_at_once_are_counted_and_compared_byte_by_byte(everyone: Subjects):
    found = held.Held()
    asyncio.run(held.streams(everyone[BRIDGE], 20, Spec(events=3), found))
    assert (found.whole, found.wrong) == (20, [])


def test_a_slow_reader_is_one(everyone: Subjects, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(slow_reader, "SECONDS", 0.3)
    monkeypatch.setattr(slow_reader, "WARM_S", 0.2)
    monkeypatch.setattr(slow_reader, "AFTER_S", 0.0)
    monkeypatch.setattr(slow_reader, "BULK_MB", 50)
    found = slow_reader.run(everyone, {})
    assert all(0 < each["read_mb"] < 50 for each in found.values())


def test_a_session_runs_the_same_calls_however_its_tools_are_found(tmp_path: Path):
    turns = 4
    found = {name: session.measured(name, executor, tmp_path, turns) for name, executor in session.EXECUTORS.items()}
    wanted = [name for turn in plan(turns) for name in turn]
    assert [each.calls for each in found.values()] == [wanted] * 3
    assert found[NATIVE].definitions < found[DIRECT].definitions / 2
    assert found[BRIDGE].definitions < found[DIRECT].definitions / 2
    assert found[BRIDGE].requests == found[DIRECT].requests + 2  # a search for each tool that is not in sight
    assert found[DIRECT].lost == found[NATIVE].lost == 0
