"""What is kept of the days before a change."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.doctor.facts import Evidence, Session, Usage
from pegboard.doctor.report.baseline import BASELINE_DAYS, Baseline, baseline_of
from pegboard.doctor.report.samples import figures_of, samples_of
from pegboard.doctor.report.scope import scope_of
from tests.unit.doctor.report.stories import DISABLE, ENABLE, NOW, at, session, sessions


def _baseline(known: list[Session], fix=ENABLE) -> Baseline:
    return baseline_of(Evidence(sessions=tuple(known)), fix, now=NOW)


def test_it_has_the_tokens_per_session_the_cache_writes_and_the_hit_rate():
    known = [session(-1), session(-2, usage=Usage(cache_read=10_000, input=0, cache_write=20_100, messages=5))]
    figures = _baseline(known).figures
    assert figures.sessions == figures.known == figures.counted == 2
    assert figures.definition_tokens == 15_000
    assert figures.by_server == {"": 5_000, "github": 8_000, "sentry": 2_000}
    assert figures.cache_write == 15_000
    assert figures.hit_rate == pytest.approx(100_000 / 130_100)
    assert figures.input_per_reply == pytest.approx(130_100 / 15)
    assert figures.uncached_per_reply == pytest.approx(30_100 / 15)


def test_fourteen_days_count_the_first_of_them_whole_and_the_moment_of_the_change_not():
    known = [session(-14), session(-14.0001), session(0), session(-0.0001), session(3)]
    assert _baseline(known).figures.sessions == 2
    assert BASELINE_DAYS == 14


def test_only_sessions_of_the_agent_count_and_only_the_servers_meant():
    baseline = _baseline([session(-1), session(-1, agent="codex")], DISABLE)
    assert baseline.figures.sessions == 1
    assert baseline.figures.by_server == {"github": 8_000}


def test_sessions_of_which_no_definitions_are_known_count_for_the_cache_alone():
    figures = _baseline([session(-1), session(-2, {})]).figures
    assert (figures.sessions, figures.known) == (2, 1)
    assert figures.definition_tokens == 15_000
    assert figures.cache_write == 9_900


def test_without_sessions_nothing_is_known():
    figures = _baseline([]).figures
    assert figures.definition_tokens is figures.cache_write is figures.hit_rate is figures.input_per_reply is None
    assert _baseline([]).known_since == 0


def test_a_thousand_sessions_are_kept_as_a_row_for_each_day_and_folder():
    known = sessions(1_000, -14, 0)
    baseline = _baseline(known)
    assert len(baseline.samples) == 14
    assert baseline.figures.sessions == 1_000
    two_folders = [*known, *sessions(10, -1, 0, project="/home/ada/other")]
    assert len(_baseline(two_folders).samples) == 15


def test_it_says_since_when_anything_is_known_of_the_agent():
    assert _baseline([session(-40), session(-1), session(-90, agent="codex")]).known_since == at(-40)


def test_it_survives_being_written_down():
    baseline = _baseline(sessions(30, -14, 0))
    assert msgspec.json.decode(msgspec.json.encode(baseline), type=Baseline) == baseline


def test_no_name_of_a_session_and_no_text_is_kept():
    kept = msgspec.json.encode(_baseline([session(-1, id="secret-session", models=("secret-model",))]))
    assert b"secret" not in kept


@given(
    st.lists(
        st.tuples(
            st.floats(-20, 2, allow_nan=False),
            st.sampled_from(["/a", "/b", ""]),
            st.dictionaries(st.sampled_from(["", "github", "x"]), st.integers(0, 50_000)),
            st.tuples(*[st.integers(0, 10**6)] * 4),
        ),
        max_size=40,
    )
)
def test_rows_by_day_come_to_what_the_sessions_themselves_come_to(told):
    known = [
        session(day, paid, id=str(number), project=project,
                usage=Usage(input=used[0], cache_read=used[1], cache_write=used[2], messages=used[3]))
        for number, (day, project, paid, used) in enumerate(told)
    ]  # fmt: skip
    baseline = _baseline(known)
    alone = samples_of(known, scope_of(ENABLE), since=baseline.since, until=NOW)
    assert baseline.figures == figures_of(alone)
    assert len(baseline.samples) <= 15 * 3
    rate = baseline.figures.hit_rate
    assert rate is None or 0 <= rate <= 1
