"""The report for scripts."""

import json

from pegboard.doctor.report.plain import plain_report
from tests.unit.doctor.report.stories import DISABLE, change, report, sessions

BEFORE = sessions(28, -14, 0)


def test_a_script_finds_every_figure_of_both_sides():
    found = report([change(DISABLE, known=BEFORE, id="1a2b3c4d5e6f")], sessions(28, 0, 14, {"": 4_000}))
    whole = json.loads(json.dumps(plain_report(found)))
    (one,) = whole.pop("changes")
    assert whole["saved_in_all"] == one["saved_in_all"] == 28 * 8_000
    assert (one["id"], one["state"], one["servers"], one["agent"]) == (
        "1a2b3c4d5e6f", "measured", ["github"], "claude-code",
    )  # fmt: skip
    assert one["before"] == {
        "sessions": 28,
        "sessions_with_definitions": 28,
        "sessions_counted": 28,
        "definition_tokens": 8_000,
        "by_server": {"github": 8_000},
        "cache_write_tokens": 9_900,
        "cache_hit_rate": 0.9,
        "input_tokens_per_reply": 10_000,
        "uncached_tokens_per_reply": 1_000,
    }
    assert one["after"]["definition_tokens"] == 0
    assert (one["saved"], one["confidence"], one["cache_hurt"]) == (8_000, "high", False)
    assert one["cache_hit_rate_change"] == one["cache_write_change"] == 0
    assert [each["day"] for each in one["days"]] == list(range(-14, 14))


def test_what_is_not_known_is_null():
    (one,) = plain_report(report([change(known=[])], []))["changes"]
    assert one["state"] == "pending"
    assert one["saved"] is one["confidence"] is one["measure"] is one["before"]["definition_tokens"] is None
