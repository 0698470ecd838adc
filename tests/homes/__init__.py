"""Homes of people who use agents: settings and transcripts as the agents write them, made from what is known of them.

    from tests.homes import HomeBuilder, server_tools
    from tests.homes.causes import HOMES

    home = HomeBuilder(tmp_path)                        # home.folder, home.project, home.environ, home.root
    home.env(ENABLE_TOOL_SEARCH="false")                # `env` of ~/.claude/settings.json; scope="project" | "local"
    home.settings(permissions={"deny": ["ToolSearch"]}) # merged into the settings of that scope
    home.managed(env={...})                             # <home.root>/etc/claude-code/managed-settings.json
    home.shell('export ENABLE_TOOL_SEARCH=false')       # a line at the end of ~/.zshrc; file=".bashrc"
    home.process(ENABLE_TOOL_SEARCH="false")            # only in home.environ
    home.server("github", always_load=True)             # agent="claude-code", scope="user" | "project" | "local"
    home.server("github", agent="codex")                # or opencode, kilo, cline, gemini, cursor, vscode, zed
    home.installed("claude-code", "2.1.325")            # a package.json where a global install has one
    home.runs("claude", "--resume")                     # a process below <home.root>/proc
    home.machine                                        # what the doctor's readers take
    home.file("notes/a.txt", "…"); home.json("…", {…})  # anything else, relative to home.folder

    session = home.claude_session(                      # -> the session's id; the file is home.transcripts[session]
        version="2.1.325", deferral=True, tools=server_tools("github", 12), pinned={"github"},
        calls={"mcp__github__tool_3": 4, "Bash": 2}, searches=1, models=("claude-sonnet-5",),
        proof="requests" | "snapshot" | "record" | "betas" | "searches" | "none",  # the strongest trace it leaves
        announce=True,         # writes `deferred_tools_delta`, which proves nothing
        refused=False, resumed=False, copied_from=session, compactions=0, sub_agents=0, vertex=False,
        turns=6, days_ago=1.0, project=home.project, usage=Tokens(...), text="…", broken_lines=0, unknown_records=0)
    home.codex_session(calls={"mcp__github__tool_1": 2}, searches=0, model="gpt-5.5", version="0.166.0", turns=4)
    home.opencode_session(calls={"github_tool_1": 2}); home.kilo_session(...); home.cline_session(calls={"a__t": 1})

A tool is a `ToolSpec(name, server, tokens, plugin)`: `wire_name`, `definition()` and about as many tokens as it says.
`versions()` gives versions from 2.1.7 to 2.1.325 around every change of behaviour. `HOMES[cause](folder)` makes one
home with that cause and no other; `bulk.write_transcripts(home, total_bytes)` streams transcripts of any size to disk.
"""

from tests.homes.builder import HomeBuilder
from tests.homes.claude_records import Tokens
from tests.homes.tools import BUILT_IN, DEFERRABLE_BUILT_IN, ToolSpec, server_tools, versions

__all__ = ["BUILT_IN", "DEFERRABLE_BUILT_IN", "HomeBuilder", "Tokens", "ToolSpec", "server_tools", "versions"]
