"""Which tools of an agent are its own and stay in sight. On the wire nothing tells them from those of MCP servers.

Above: `decide`. Below: nothing. Pure. Names are compared in lower case: agents disagree about `Bash` and `bash`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_OPENCODE = """bash read edit multiedit write glob grep list ls patch apply_patch todowrite todoread task webfetch
websearch codesearch codebase_search skill question lsp lsp_hover lsp_diagnostics batch invalid plan
plan_enter plan_exit execute"""
_KILO = f"""{_OPENCODE} suggest recall kilo_local_recall agent_manager agent_manager_models background_process
board_post board_read schedule_wakeup cancel_wakeup browser_open notify_user send_file warpgrep
semantic_search notebook_edit"""
_CLINE = """execute_command read_file write_to_file replace_in_file apply_diff apply_patch search_files list_files
list_code_definition_names browser_action use_mcp_tool access_mcp_resource load_mcp_documentation
ask_followup_question plan_mode_respond act_mode_respond attempt_completion new_task condense
summarize_task report_bug new_rule web_fetch web_search focus_chain use_skill use_subagents
generate_explanation read_files run_commands editor search_codebase fetch_web_content ask_question
submit_and_exit skills spawn_agent"""
_ZED = """read_file edit_file write_file create_file streaming_edit_file list_directory find_path grep terminal
thinking fetch web_search now open diagnostics delete_path move_path copy_path create_directory
save_file restore_file_from_disk spawn_agent subagent update_plan skill ask_user create_thread"""
_GEMINI = """list_directory read_file read_many_files write_file replace edit glob search_file_content grep_search
run_shell_command web_fetch google_web_search save_memory write_todos ask_user enter_plan_mode
exit_plan_mode activate_skill delegate_to_agent invoke_agent codebase_investigator update_topic
complete_task get_internal_docs read_mcp_resource list_mcp_resources tracker_create_task
tracker_update_task tracker_get_task tracker_list_tasks tracker_add_dependency tracker_visualize"""
_CLAUDE = """bash bashoutput killshell read edit multiedit write glob grep ls task agent todowrite skill webfetch
websearch notebookedit askuserquestion enterplanmode exitplanmode toolsearch listagents taskcreate
taskupdate taskget tasklist taskoutput taskstop slashcommand workflow reportfindings schedulewakeup"""
_CODEX = """shell shell_command local_shell exec_command write_stdin apply_patch update_plan view_image spawn_agent
request_user_input"""

PROFILES: Mapping[str, frozenset[str]] = {
    "opencode": frozenset(_OPENCODE.split()),
    "kilo": frozenset(_KILO.split()),
    "cline": frozenset(_CLINE.split()),
    "zed": frozenset(_ZED.split()),
    "gemini": frozenset(_GEMINI.split()),
    "claude": frozenset(_CLAUDE.split()),
    "codex": frozenset(_CODEX.split()),
}
GENERIC = frozenset().union(*PROFILES.values())
_AGENTS = (
    ("kilo", "kilo"),
    ("opencode", "opencode"),
    ("cline", "cline"),
    ("zed", "zed"),
    ("gemini", "gemini"),
    ("claude-cli", "claude"),
    ("claude-code", "claude"),
    ("codex", "codex"),
)
_SEARCHES = re.compile(r"(?:^|_|-|\.)(?:tool_?search|search_?tools?|find_?tools?|load_?(?:tools?|skill)|call_?tool)$")


def profile_of(user_agent: str) -> str:
    """The agent that calls itself this; empty when it is none we know, or says only what library it uses (Cline)."""
    lowered = user_agent.lower()
    return next((profile for sign, profile in _AGENTS if re.search(rf"\b{sign}", lowered)), "")


def is_core(name: str, profile: str) -> bool:
    """Whether an agent cannot do without this tool; whoever searches for tools itself must not lose that."""
    lowered = name.lower()
    return lowered in PROFILES.get(profile, GENERIC) or _SEARCHES.search(lowered) is not None
