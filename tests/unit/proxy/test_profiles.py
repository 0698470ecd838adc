"""Which agent is talking, and which of its tools stay in sight: by what real ones sent and what their packages name."""

from __future__ import annotations

import pytest

from pegboard.proxy.profiles import PROFILES, is_core, profile_of

_SDK = "ai-sdk/provider-utils/4.0.27 runtime/bun/1.3.14"
CALL_THEMSELVES = {
    f"opencode/1.18.33 {_SDK}": "opencode",
    f"kilo/latest/7.7.7/cli {_SDK}": "kilo",
    f"Kilo-Code/7.7.7 {_SDK}": "kilo",
    "ai-sdk/anthropic/4.0.42 ai-sdk/provider-utils/5.0.30 runtime/bun/1.3.13": "",  # Cline, which does not say so
    "claude-cli/2.1.325 (external, sdk-cli)": "claude",
    "GeminiCLI/0.61.0/gemini-3-pro (linux; x64; terminal)": "gemini",
    "OpenAI/Python 2.1.0": "",
    "": "",
}
SENT = {
    "opencode": "apply_patch bash edit glob grep read skill task todowrite webfetch write",
    "kilo": """apply_patch background_process bash board_post board_read cancel_wakeup edit glob grep kilo_local_recall
        read schedule_wakeup skill task todowrite webfetch write""",
    "": "read_files search_codebase run_commands fetch_web_content editor ask_question spawn_agent",
    "claude": "Agent Bash Edit ListAgents Read ReportFindings ScheduleWakeup Skill ToolSearch Workflow Write",
    "gemini": """list_directory read_file read_many_files write_file replace glob grep_search run_shell_command
        web_fetch google_web_search write_todos ask_user enter_plan_mode exit_plan_mode activate_skill invoke_agent
        update_topic complete_task get_internal_docs read_mcp_resource list_mcp_resources""",
}


@pytest.mark.parametrize(("user_agent", "profile"), CALL_THEMSELVES.items())
def test_an_agent_is_known_by_what_it_calls_itself(user_agent: str, profile: str) -> None:
    assert profile_of(user_agent) == profile


@pytest.mark.parametrize("user_agent", ["optimized-client/1.0", "sleepycline/2", "authorized (recline)"])
def test_a_name_inside_of_another_word_is_not_that_agent(user_agent: str) -> None:
    assert profile_of(user_agent) == ""


@pytest.mark.parametrize(("profile", "names"), SENT.items())
def test_what_an_agent_works_with_stays_in_sight(profile: str, names: str) -> None:
    assert [name for name in names.split() if not is_core(name, profile)] == []


@pytest.mark.parametrize("profile", [*PROFILES, ""])
def test_tools_of_servers_are_nobodys_own(profile: str) -> None:
    for name in ("books_refund_invoice", "books__refund_invoice", "mcp__books__refund_invoice", "team_status"):
        assert not is_core(name, profile)


@pytest.mark.parametrize("profile", [*PROFILES, ""])
def test_whoever_searches_for_tools_keeps_that(profile: str) -> None:
    for name in ("ToolSearch", "mcp__hub__search_tools", "pegboard_call_tool"):
        assert is_core(name, profile)


def test_one_that_is_not_known_keeps_what_any_agent_has() -> None:
    assert all(is_core(name.upper(), "") for names in PROFILES.values() for name in names)
    assert is_core("read_files", "nobody's")
