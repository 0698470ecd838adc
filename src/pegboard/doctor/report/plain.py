"""The report for scripts: plain values under names that stay. docs/doctor.md lists them.

Above: the command. Below: `outcome` and its parts.
"""

from __future__ import annotations

from typing import Any

from pegboard.doctor.report import wording
from pegboard.doctor.report.days import Day
from pegboard.doctor.report.outcome import Outcome, Report
from pegboard.doctor.report.samples import Figures


def plain_report(report: Report) -> dict[str, Any]:
    """All of it; changes in the order in which people are told of them."""
    return {
        "at": report.at,
        "saved_in_all": report.saved_in_all,
        "changes": [plain_outcome(each) for each in report.outcomes],
        "rules": list(wording.RULES),
    }


def plain_outcome(outcome: Outcome) -> dict[str, Any]:
    """One change with both its sides."""
    change = outcome.change
    return {
        "id": change.id,
        "kind": change.kind,
        "finding": change.finding,
        "agent": change.scope.agent,
        "servers": list(change.scope.servers),
        "projects": list(change.scope.projects),
        "files": list(change.files),
        "applied_at": change.applied_at,
        "undone_at": change.undone_at,
        "stands": change.stands,
        "state": str(outcome.state),
        "meaning": wording.meaning(outcome),
        "cache_hurt": outcome.cache_hurt,
        "measure": outcome.measure,
        "before": plain_figures(outcome.before),
        "after": plain_figures(outcome.after),
        "saved": outcome.saved,
        "saved_in_all": outcome.saved_in_all,
        "cache_write_change": outcome.cache_write_change,
        "cache_hit_rate_change": outcome.hit_rate_change,
        "confidence": outcome.confidence,
        "doubts": list(outcome.doubts),
        "notes": list(outcome.notes),
        "days": [_day(each) for each in outcome.days],
    }


def plain_figures(figures: Figures) -> dict[str, Any]:
    """One side, per session."""
    return {
        "sessions": figures.sessions,
        "sessions_with_definitions": figures.known,
        "sessions_counted": figures.counted,
        "definition_tokens": figures.definition_tokens,
        "by_server": figures.by_server,
        "cache_write_tokens": figures.cache_write,
        "cache_hit_rate": figures.hit_rate,
        "input_tokens_per_reply": figures.input_per_reply,
        "uncached_tokens_per_reply": figures.uncached_per_reply,
    }


def _day(day: Day) -> dict[str, Any]:
    return {
        "day": day.number,
        "sessions": day.sessions,
        "tokens": day.tokens,
        "cache_write_tokens": day.cache_write,
        "cache_hit_rate": day.hit_rate,
    }
