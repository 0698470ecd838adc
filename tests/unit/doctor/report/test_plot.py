"""A change day by day, drawn in a terminal."""

import re

from hypothesis import given
from hypothesis import strategies as st

from pegboard.doctor.report.days import Day
from pegboard.doctor.report.plot import BARE, BLOCKS, HEIGHT, Look, columns, plot_lines
from tests.unit.doctor.report.stories import change, outcome, session, sessions

BEFORE = sessions(28, -14, 0)
MEASURED = outcome(change(known=BEFORE, id="1a2b3c4d5e6f"), sessions(20, 0, 10, {"": 5_000}), day=10)
_COLOUR = re.compile("\x1b\\[[0-9]*m")


def test_the_columns_fall_where_the_change_was_applied():
    lines = plot_lines(MEASURED, width=80)
    assert lines[0] == "1a2b3c4d: definition tokens per session"
    assert lines[1] == " 15,000┤" + "█" * 14 + "│"
    assert lines[HEIGHT] == "       ┤" + "█" * 14 + "│" + "█" * 10
    assert lines[HEIGHT + 1] == "      0┼" + "─" * 14 + "┴" + "─" * 10
    assert lines[HEIGHT + 2].split() == ["-14", "d", "applied", "+10", "d"]
    mark = lines[1].index("│")
    assert lines[HEIGHT + 2][mark - 3 : mark + 4] == "applied"


def test_a_third_of_the_tokens_is_a_third_of_the_height():
    drawn = [line[-1] for line in plot_lines(MEASURED, width=80)[1 : HEIGHT + 1]]
    assert drawn == ["│", "│", "│", "│", "█", "█"]


def test_a_day_without_sessions_is_a_gap_and_one_that_paid_nothing_is_not():
    known = [session(-3.5), session(-1.5), session(0.5, {"": 5_000}), session(2.5, {"": 0})]
    bottom = plot_lines(outcome(change(), known), width=80)[HEIGHT]
    assert bottom.endswith("┤█ █ │█ ▁")


def test_nothing_is_drawn_of_a_change_that_is_pending():
    assert plot_lines(outcome(change(known=BEFORE), BEFORE), width=80) == []


def test_a_terminal_of_ascii_gets_hashes():
    text = "\n".join(plot_lines(MEASURED, width=80, look=BARE))
    assert text.isascii()
    assert "##############|##########" in text


def test_without_colours_there_are_none_and_with_them_the_picture_is_the_same():
    plain, painted = plot_lines(MEASURED, width=80), plot_lines(MEASURED, width=80, look=Look(colours=True))
    assert "\x1b" not in "".join(plain)
    assert "\x1b" in "".join(painted)
    assert [_COLOUR.sub("", line) for line in painted] == plain


def test_days_that_do_not_fit_share_a_column_but_never_across_the_change():
    days = [Day(number=number, sessions=1, tokens=100.0 if number < 0 else 10.0) for number in range(-14, 30)]
    before, since = columns(days, 12)
    assert len(before) + len(since) <= 12
    assert {each.tokens for each in before} == {100.0}
    assert {each.tokens for each in since} == {10.0}


def test_a_shared_column_weighs_days_by_their_sessions():
    days = [Day(number=-2, sessions=3, tokens=100.0), Day(number=-1, sessions=1, tokens=500.0)]
    before, since = columns(days, 2)
    assert [each.tokens for each in before] == [200.0]
    assert [each.tokens for each in since] == [None]


@given(st.integers(10, 200), st.sampled_from([BLOCKS, BARE]), st.integers(0, 13), st.integers(1, 30))
def test_no_line_is_wider_than_the_terminal(width: int, look: Look, since: int, until: int):
    known = [*(session(-each - 0.5) for each in range(since + 1)), session(until - 0.5, {"": 7})]
    lines = plot_lines(outcome(change(), known, day=60), width=width, look=look)
    assert len(lines) > HEIGHT
    assert max(map(len, lines)) <= width


@given(
    st.lists(st.tuples(st.integers(-14, 29), st.integers(1, 9)), min_size=1, unique_by=lambda each: each[0]),
    st.integers(2, 60),
)
def test_every_day_is_in_exactly_one_column(told, room: int):
    days = [Day(number=number, sessions=count, tokens=float(count)) for number, count in sorted(told)]
    before, since = columns(days, room)
    covered = [number for each in (*before, *since) for number in range(each.first, each.last + 1)]
    assert covered == list(range(min(-1, days[0].number), max(0, days[-1].number) + 1))
    assert len(before) + len(since) <= room
