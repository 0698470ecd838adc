"""When tools are deferred, by whom, and which stay."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pegboard.config.model import ProxyConfig
from pegboard.proxy.decide import Circumstances, executor_for, listing, split, too_little
from pegboard.proxy.declared import Declarations, Declared, servers
from pegboard.proxy.profiles import is_core, profile_of
from pegboard.proxy.searching import names_for

ANTHROPIC = "https://api.anthropic.com"


def declared(*names: str, **more: Any) -> list[Declared]:
    entries = [msgspec.json.encode({"name": name, "description": "d", "input_schema": {}, **more}) for name in names]
    found = Declarations().read("messages", entries)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("setting", "family", "model", "address", "executor"),
    [
        ("auto", "messages", "claude-opus-5", ANTHROPIC, "native"),
        ("auto", "messages", "claude-opus-5", "https://gateway.example/anthropic", "bridge"),
        ("auto", "messages", "claude-3-5-haiku", ANTHROPIC, "bridge"),
        ("auto", "completions", "gpt-9", "https://api.openai.com", "bridge"),
        ("native", "messages", "claude-opus-5", "http://127.0.0.1:1", "native"),
        ("native", "responses", "gpt-9", "https://api.openai.com", "bridge"),
        ("bridge", "messages", "claude-opus-5", ANTHROPIC, "bridge"),
        ("off", "messages", "claude-opus-5", ANTHROPIC, None),
        ("auto", "messages", "claude-denied", ANTHROPIC, None),
    ],
)
def test_who_searches_depends_on_model_wire_and_upstream(setting, family, model, address, executor) -> None:
    config = ProxyConfig(executor=setting, deny_models=("*-denied",))
    about = Circumstances(family=family, model=model, address=address)
    assert executor_for(config, about) == executor


@pytest.mark.parametrize("name", ["Bash", "bash", "READ", "read_file", "ToolSearch", "my_search_tools", "x.call_tool"])
def test_core_tools_stay_whatever_their_case_and_searches_of_the_clients_too(name) -> None:
    assert is_core(name, "")


@pytest.mark.parametrize("name", ["mcp__github__read", "github_bash_run", "search_toolsets", "recall_tool_x"])
def test_names_that_only_look_like_core_do_not_stay(name) -> None:
    assert not is_core(name, "")


def test_a_profile_knows_its_own_core_alone() -> None:
    assert profile_of("opencode/1.18.33 ai-sdk/anthropic") == "opencode"
    assert profile_of("Kilo-Code/7.7") == "kilo"
    assert profile_of("curl/8") == ""
    assert is_core("attempt_completion", "cline")
    assert not is_core("attempt_completion", "zed")


def test_tools_that_the_api_runs_that_are_kept_or_were_forced_stay() -> None:
    tools = [
        *declared("a", "b", "keep_me", "forced"),
        *declared("web_search", type="web_search_20250305"),
    ]
    resident, deferred = split(tools, "", ["keep_*"], ["forced"])
    assert [tool.name for tool in resident] == ["keep_me", "forced", "web_search"]
    assert [tool.name for tool in deferred] == ["a", "b"]


def test_it_is_not_worth_it_below_either_threshold() -> None:
    config = ProxyConfig(min_tools=3, min_tokens=30)
    tools = declared("a", "b", "c")
    assert too_little(config, tools[:2], lambda _: 100) == "few tools"
    assert too_little(config, tools, lambda _: 9) == "small tools"
    assert too_little(config, tools, lambda _: 10) == ""


def test_servers_are_told_from_names() -> None:
    tools = declared("mcp__git__log", "hub__x", "mail_send", "mail_read", "lonely_one")
    assert list(servers(tools).values()) == ["git", "hub", "mail", "mail", "other"]


def test_names_never_drop_from_the_listing_without_being_counted() -> None:
    few = declared("mail_send", "mail_read")
    assert listing(few) == "- mail: mail_send, mail_read"
    many = declared(*(f"server{number % 3}_tool_{number:04}" for number in range(3000)))
    text = listing(many)
    assert len(text) < 3000
    counted = sum(int(line.rsplit(" and ", 1)[1].split()[0]) for line in text.splitlines())
    assert counted + text.count("_tool_") == 3000


def test_the_bridges_names_give_way_to_the_clients() -> None:
    assert names_for(declared("a")) == ("search_tools", "call_tool")
    assert names_for(declared("a", "Call_Tool")) == ("pegboard_search_tools", "pegboard_call_tool")
    taken = declared("search_tools", "pegboard_call_tool")
    assert names_for(taken) == ("pegboard_pegboard_search_tools", "pegboard_pegboard_call_tool")


def test_tools_that_code_of_the_apis_may_call_stay() -> None:
    code, direct = (
        declared("x", allowed_callers=["direct", "code_execution_20260120"]),
        declared("y", allowed_callers=["direct"]),
    )
    resident, deferred = split([*code, *direct], "", [])
    assert ([tool.name for tool in resident], [tool.name for tool in deferred]) == (["x"], ["y"])


def test_toolsets_stay_and_are_never_marked_as_deferred() -> None:
    toolsets = [
        *declared("", type="mcp_toolset", mcp_server_name="x"),
        *declared("computer", type="computer_toolset_20260801"),
    ]
    assert split(toolsets, "", [])[1] == []
