"""`pegboard doctor` without an action: what was found, why, what it costs, and what to do next. Reads only."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import textwrap
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pegboard.cli import doctor_examine, output
from pegboard.cli.progress import Progress
from pegboard.doctor import prices
from pegboard.doctor.diagnosis import Diagnosis, diagnose
from pegboard.doctor.facts import Agent, Evidence, Finding

WIDTH = 110
SHOWN = 8
"""Servers of a finding that a person is shown."""
TITLES: dict[Agent, str] = {
    "claude-code": "Claude Code",
    "codex": "Codex",
    "opencode": "opencode",
    "kilo": "Kilo",
    "cline": "Cline",
    "gemini": "Gemini CLI",
    "zed": "Zed",
    "cursor": "Cursor",
    "vscode": "VS Code",
}
_OWN_TOOLS = "its own tools"
_INDENT = "   "
_NARROWEST = 40


def run(args: argparse.Namespace) -> int:
    """Looks and tells; what is found is no failure."""
    machine = doctor_examine.here()
    with Progress() as progress:
        actions = doctor_examine.applied(args)
        whole = asyncio.run(doctor_examine.examine(machine, days=args.days, progress=progress, actions=actions))
    evidence = doctor_examine.only(whole, agent=args.agent, project=args.project)
    diagnosis = diagnose(evidence, now=time.time())
    if args.json:
        output.emit(as_json(diagnosis, evidence, days=args.days))
    else:
        _tell(diagnosis, evidence, days=args.days, home=machine.home)
    return 0


def as_json(diagnosis: Diagnosis, evidence: Evidence, *, days: int) -> dict[str, Any]:
    """All of it, for scripts."""
    plain: dict[str, Any] = msgspec.to_builtins(diagnosis, enc_hook=str, order="deterministic")
    return {
        **plain,
        "days": days,
        "prices": prices.NOTE,
        "read": {
            "files": evidence.read_files,
            "bytes": evidence.read_bytes,
            "broken_lines": evidence.broken_lines,
            "unknown_records": evidence.unknown_records,
        },
        "problems": list(doctor_examine.problems(evidence)),
    }


# ── for people ───────────────────────────────────────────────────────────────────────────────────────────────────


def _tell(diagnosis: Diagnosis, evidence: Evidence, *, days: int, home: Path) -> None:
    for problem in doctor_examine.problems(evidence):
        output.warn(_short(f"skipped: {problem}", home))
    if _is_empty(evidence):
        output.say(
            f"There is nothing to look at: no sessions of the last {days} days, and no agent that is installed or has "
            "servers."
        )
        return
    output.say(textwrap.fill(_looked_at(diagnosis, evidence, days), _width()))
    if not diagnosis.findings:
        output.say("Nothing is wrong: no definitions were found that are paid for in vain.")
        return
    for number, finding in enumerate(diagnosis.findings, 1):
        output.say()
        _tell_finding(number, finding, home)
    output.say()
    output.say(textwrap.fill(_together(diagnosis, days), _width()))


def _is_empty(evidence: Evidence) -> bool:
    return not evidence.sessions and not any(state.installed or state.servers for state in evidence.states)


def _looked_at(diagnosis: Diagnosis, evidence: Evidence, days: int) -> str:
    counts = [f"{_count(count, 'session')} of {TITLES[agent]}" for agent, count in diagnosis.sessions.items()]
    skipped = [
        _count(number, word)
        for number, word in ((evidence.broken_lines, "broken line"), (evidence.unknown_records, "unknown record"))
        if number
    ]
    over = f" ({' and '.join(skipped)} skipped)" if skipped else ""
    if not counts:
        return f"No sessions of the last {days} days were found, so only settings were looked at.{over}"
    return f"Looked at {', '.join(counts)}, of the last {days} days, and at the settings of today.{over}"


def _tell_finding(number: int, finding: Finding, home: Path) -> None:
    output.say(output.printable(f"{number}. {finding.title}"))
    heads = (
        TITLES[finding.agent],
        _count(finding.sessions, "session") + _rate(finding),
        f"confidence {finding.confidence}",
        finding.id,
    )
    dot = output.symbol("·", "-")
    for line in _filled(heads, f" {dot} ", _width() - len(_INDENT)):
        output.say(output.printable(_INDENT + line))
    output.say(output.printable(_wrapped(_short(finding.why, home))))
    _tell_costs(finding)
    for text in _next(finding):
        output.say(output.printable(_wrapped(_short(text, home))))


def _rate(finding: Finding) -> str:
    return "" if finding.call_rate is None else f" with {finding.call_rate:.1f} calls each"


def _tell_costs(finding: Finding) -> None:
    """What is paid for, by server, and what of it could be saved."""
    paid = finding.tokens_per_session
    total = sum(paid.values())
    if not total:
        return
    dear = sorted(paid.items(), key=lambda item: (-item[1], item[0]))
    rows = [(server or _OWN_TOOLS, tokens) for server, tokens in dear[:SHOWN]]
    if len(dear) > SHOWN:
        rows.append((f"{len(dear) - SHOWN:,} more", sum(tokens for _, tokens in dear[SHOWN:])))
    rows.append(("could be saved", finding.saving_per_session))
    width = max(len(name) for name, _ in rows)
    for name, tokens in rows:
        cost = _dollars(finding.cost_per_session * tokens / total)
        output.say(output.printable(f"{_INDENT}  {name:{width}}  {tokens:>9,} tokens a session{cost}"))


def _dollars(amount: float) -> str:
    if not amount:
        return ""
    return f"  ${amount:,.2f}" if amount >= 1 else f"  ${amount:.3f}" if amount >= 0.0005 else "  under $0.001"


def _next(finding: Finding) -> list[str]:
    command = f"Next: `pegboard doctor plan {finding.id}` shows the very change." if finding.fix else ""
    return [text for text in (command, finding.by_hand) if text]


def _together(diagnosis: Diagnosis, days: int) -> str:
    worth = f", worth {_dollars(diagnosis.cost).strip()} {prices.NOTE}" if diagnosis.cost else ""
    return (
        f"Together: {diagnosis.saving:,} tokens of definitions in the last {days} days{worth}; what several findings "
        "are about is counted once. Nothing was changed."
    )


def _count(number: int, one: str) -> str:
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def _short(text: str, home: Path) -> str:
    return text.replace(f"{home}/", "~/") if len(home.parts) > 1 else text


def _width() -> int:
    """Of a line: that of the terminal, where it is narrower than what is easy to read."""
    return max(min(shutil.get_terminal_size((WIDTH, 24)).columns, WIDTH), _NARROWEST)


def _filled(parts: Sequence[str], joint: str, width: int) -> Iterator[str]:
    """Parts joined, as many in a line as there is room for; one that has no room is not broken."""
    line = ""
    for part in parts:
        if line and len(line) + len(joint) + len(part) > width:
            yield line
            line = part
        else:
            line = f"{line}{joint}{part}" if line else part
    yield line


def _wrapped(text: str) -> str:
    return textwrap.fill(
        text,
        _width(),
        initial_indent=_INDENT,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
