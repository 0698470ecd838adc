"""Agents as they come from npm, behind the real proxy, without a network: what they can do, and what each side sees.

One test is one life of an agent: it is pointed at the proxy, does what it is asked for, and is asked for more after the
proxy was begun anew. The model behind is scripted; everything else is what a person would have.
"""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pegboard.proxy.profiles import is_core, profile_of
from tests.agents.books import NOUNS, VERBS
from tests.agents.namespace import refusal, run_alone
from tests.agents.packages import program
from tests.agents.play import COPIED, FAREWELL, FAREWELL_AGAIN, FIRST, SECOND, TOOL
from tests.agents.settings import AGENTS, SERVERS, Agent
from tests.agents.stage import Heard, Plan, Reached, Report
from tests.conformance.suite import ROOT, CannotInstall

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

SECONDS = 500
CASES = [
    *((agent, how, "messages") for agent in AGENTS if agent != "claude" for how in ("native", "bridge")),
    *((agent, "bridge", wire) for agent in ("opencode", "kilo", "cline") for wire in ("completions", "responses")),
]
OURS = re.compile(r"server_tool_use|tool_search_tool|tool_reference|search_tools|call_tool")
"""What stands in the search blocks of either executor, and nowhere else."""
DECLARED = (None, "custom", "function")
"""Types of tools that the client runs; the others are run by the API, and always stay."""
UNSAID = {"type", "id", "call_id", "tool_call_id", "tool_use_id", "status", "annotations", "logprobs", "cache_control"}
MOST_SHOWN = 25
SEARCHED = {"native": "tool_search_tool_result", "bridge": "search_tools"}


def lived(agent: str, executor: str, wire: str, folder: Path) -> Report:
    """One life; skips where there can be none."""
    if reason := refusal():
        pytest.skip(reason)
    try:
        found = program(agent)
    except CannotInstall as error:
        pytest.skip(f"{agent} cannot be installed here: {error}")
    plan = Plan(agent=agent, program=str(found), folder=str(folder), executor=executor, wire=wire)
    line = [sys.executable, "-m", "tests.agents.stage", msgspec.json.encode(plan).decode()]
    env = {"PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin", "OPENBLAS_NUM_THREADS": "1"}
    ran = run_alone(line, env=env, folder=ROOT, seconds=SECONDS)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return msgspec.json.decode((folder / "report.json").read_bytes(), type=Report)


def tools_of(raw: str) -> dict[str, Any]:
    """The definitions in a request, by name."""
    listed = json.loads(raw).get("tools") or []
    return {each.get("name") or each.get("function", {}).get("name") or each["type"]: each for each in listed}


def of_servers(names: Any) -> list[str]:
    """Those of the MCP servers."""
    return [name for name in names if re.match(rf"(mcp__)?({'|'.join(SERVERS)})_", name)]


def at_work(said: list[Any], field: str) -> list[Any]:
    """The requests that bring tools: agents also ask for titles and the like."""
    return [each for each in said if tools_of(getattr(each, field))]


def agent_did_its_work(report: Report) -> None:
    """In both runs, with the deferred tool, and with its own ones."""
    assert report.cut_off
    assert [run.code for run in report.runs] == [0, 0], report.runs
    assert FAREWELL in report.runs[0].out
    assert FAREWELL_AGAIN in report.runs[1].out
    first, *rest, last = report.called
    assert [first, last] == [{"server": "books", "name": TOOL, "arguments": each} for each in (FIRST, SECOND)]
    named = {(each["server"], each["name"]) for each in rest}
    assert named == {(server, f"{verb}_{noun}") for server in SERVERS for verb in VERBS for noun in NOUNS}
    assert len(rest) == len(named)
    assert report.copy == COPIED


def nothing_was_refused_or_cut(report: Report) -> None:
    """By the API, or on the way back."""
    assert [each.refused for each in report.reached if each.refused] == []
    assert [(each.path, each.status) for each in report.heard if each.status != 200 or not each.is_whole] == []
    assert [tally["failures"] for tally in report.tallies] == [{}, {}]


def tools_were_deferred(reached: list[Reached], heard: list[Heard], executor: str) -> None:
    """The agent sends them all, always; the model sees few, and the same bytes of them each time."""
    for request in heard:
        assert len(of_servers(tools_of(request.body))) == 48
    for each in reached:
        shown = [name for name, tool in tools_of(each.raw).items() if not tool.get("defer_loading")]
        assert of_servers(shown) == []
        assert len(shown) <= MOST_SHOWN
        if executor == "bridge":
            assert {"search_tools", "call_tool"} <= set(shown)
    assert of_servers(reached[0].shown) == []
    sent = {json.dumps(json.loads(each.raw)["tools"]) for each in reached}
    assert len(sent) == len({json.dumps(json.loads(each.body)["tools"]) for each in heard})


def own_tools_stayed(reached: list[Reached], heard: list[Heard], agent: Agent) -> None:
    """What the agent calls its own is as the profile has it; what it can do without is still to be found."""
    profile = profile_of(heard[0].headers["user-agent"])
    own = set(tools_of(heard[0].body)) - set(of_servers(tools_of(heard[0].body)))
    typed = {name: tool for name, tool in tools_of(heard[0].body).items() if tool.get("type") not in DECLARED}
    kept = {name for name in own - set(typed) if not re.fullmatch(agent.spare, name)}
    assert {name for name in kept if not is_core(name, profile)} == set()
    assert kept <= set(reached[0].shown)
    assert typed == {name: tool for name, tool in tools_of(reached[0].raw).items() if name in typed}


def searches_stayed_hidden(report: Report, executor: str) -> None:
    """The model did search; the agent neither got nor sent a word of it."""
    assert any(SEARCHED[executor] in each.reply for each in report.reached)
    for each in report.heard:
        assert OURS.search(each.reply) is None
        body = json.loads(each.body)
        assert OURS.search(json.dumps([body.get("messages"), body.get("input")])) is None
    assert not any(OURS.search(run.out) for run in report.runs)


def what_was_found_stayed_found(report: Report) -> None:
    """Every history begins with all of the one before it, searches too, so nothing has to be found or cached again."""
    for before, after in pairwise(said(each.raw) for each in at_work(report.reached, "raw")):
        assert after[: len(before)] == before
    first, second = (tally["searches"] for tally in report.tallies)
    assert first > 0
    assert second == 0


def said(raw: str) -> list[str]:
    """All words of a history; clients leave ids out, move cache markers, and write a text as one or as a block."""
    body = json.loads(raw)
    return words([body.get("messages"), body.get("input")])


def words(value: Any) -> list[str]:
    """In an order that does not depend on how objects were written."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value) if key not in UNSAID]
    return [text for each in value for text in words(each)] if isinstance(value, list) else []


def pointing_was_taken_back(report: Report) -> None:
    """The agent went nowhere but to the proxy; then its address is what it was."""
    address = re.search(r"http://127\.0\.0\.1:\d+/v1", report.before)
    assert address is not None
    assert address[0] not in report.pointed
    assert "http://127.0.0.1:8722/" in report.pointed
    assert address[0] in report.after
    assert "8722" not in report.after


@pytest.mark.parametrize(("agent", "executor", "wire"), CASES)
def test_an_agents_tools_are_deferred_found_and_run_by_it_and_it_notices_nothing(
    agent: str, executor: str, wire: str, tmp_path: Path
) -> None:
    report = lived(agent, executor, wire, tmp_path)
    agent_did_its_work(report)
    nothing_was_refused_or_cut(report)
    reached, heard = at_work(report.reached, "raw"), at_work(report.heard, "body")
    assert len(heard) >= 5
    tools_were_deferred(reached, heard, executor)
    own_tools_stayed(reached, heard, AGENTS[agent])
    searches_stayed_hidden(report, executor)
    what_was_found_stayed_found(report)
    assert [tally["deferred"].get(executor, 0) > 0 for tally in report.tallies] == [True, True]
    if AGENTS[agent].settings:
        pointing_was_taken_back(report)


def end_to_end(headers: dict[str, str]) -> list[tuple[str, str]]:
    """Without those that are between two neighbours only."""
    return sorted((name, value) for name, value in headers.items() if name not in ("host", "connection"))


@pytest.mark.parametrize("executor", ["auto", "native", "bridge"])
def test_claude_code_keeps_its_own_deferral_and_not_a_byte_is_changed(executor: str, tmp_path: Path) -> None:
    report = lived("claude", executor, "messages", tmp_path)
    agent_did_its_work(report)
    nothing_was_refused_or_cut(report)
    heard = [(each.body, end_to_end(each.headers)) for each in report.heard]
    assert sorted(heard) == sorted((each.raw, end_to_end(each.headers)) for each in report.reached)
    assert all("anthropic-beta" in dict(headers) for _, headers in heard)
    assert sorted(each.reply for each in report.heard) == sorted(each.reply for each in report.reached)
    assert of_servers(report.reached[0].shown) == []
    assert any('"name": "ToolSearch"' in each.reply or '"name":"ToolSearch"' in each.reply for each in report.heard)
    assert any("tool_reference" in each.body for each in report.heard)
    assert [tally["deferred"] for tally in report.tallies] == [{}, {}]
    assert all("the client defers by itself" in tally["passed"] for tally in report.tallies)


def test_what_takes_too_long_in_there_is_ended_with_all_that_it_has_started(tmp_path: Path) -> None:
    if reason := refusal():
        pytest.skip(reason)
    held = tmp_path / "held"
    os.mkfifo(held)
    reader = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
    line = ["sh", "-c", f"exec 3>{held}; echo begun >&3; setsid sleep 500 & sleep 500"]
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        with pytest.raises(subprocess.TimeoutExpired):
            run_alone(line, env={"PATH": os.environ["PATH"]}, folder=tmp_path, seconds=2)
        assert pipe.read(100) == b"begun\n"
        assert select.select([pipe], [], [], 60)[0], "somebody holds it still"
        assert pipe.read(100) == b""
