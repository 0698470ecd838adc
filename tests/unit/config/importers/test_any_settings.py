"""Whatever other programs' files say, finding never fails, and what it offers Pegboard can load."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.config.importers.secrets import without_secrets
from pegboard.config.load import examine
from pegboard.config.write import append_servers
from tests.often import often
from tests.unit.config.importers.machine import Machine

FILES = (
    ".claude.json",
    ".config/Claude/claude_desktop_config.json",
    ".cursor/mcp.json",
    ".config/Code/User/mcp.json",
    ".cline/data/settings/cline_mcp_settings.json",
    ".gemini/settings.json",
    ".config/opencode/opencode.json",
    ".codeium/windsurf/mcp_config.json",
    ".config/zed/settings.json",
    "work/my project/.mcp.json",
    "work/my project/.cursor/mcp.json",
    "work/my project/opencode.json",
    "work/my project/.gemini/settings.json",
)
FIELDS = (
    "type", "command", "args", "env", "environment", "cwd", "url", "httpUrl", "serverUrl", "headers", "transport",
    "enabled", "disabled", "timeout", "alwaysLoad", "includeTools", "excludeTools", "disabledTools", "envFile",
    "source", "settings", "path", "initializeTimeoutMs", "transportType",
)  # fmt: skip

PIECES = (
    "${A}", "${A:-b}", "$A", "${", "}", "{env:A}", "{file:x}", "${env:A}", "${input:a-b}", "${workspaceFolder}",
    "${userHome}", "./x", "https://x.example/sse", "stdio", "http", "remote", "Bearer t", "\r\n", "\0", "[", "~",
)  # fmt: skip
WORDS = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=3).map("".join)
TABLES = st.dictionaries(WORDS, WORDS | st.none(), max_size=3)
VALUES = (
    WORDS
    | st.lists(WORDS, max_size=3)
    | TABLES
    | st.booleans()
    | st.none()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.dictionaries(st.sampled_from(FIELDS), WORDS | st.lists(WORDS, max_size=2) | TABLES | st.integers(), max_size=3)
)
SERVERS = st.dictionaries(WORDS, st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=6) | VALUES, max_size=3)
LIKELY = st.dictionaries(
    WORDS,
    st.fixed_dictionaries({}, optional={"command": WORDS, "args": st.lists(WORDS), "env": TABLES, "cwd": WORDS})
    | st.fixed_dictionaries({"url": WORDS.map("https://x.example/".__add__)}, optional={"headers": TABLES}),
    max_size=3,
)


@given(SERVERS | LIKELY, st.sampled_from(["darwin", "linux", "win32"]))
@settings(max_examples=often(60), deadline=None)
def test_finding_never_fails_and_what_it_offers_loads(servers, platform):
    inputs = [{"id": "a-b", "default": "x}y"}, {"id": 3}, None]
    tables = {"mcpServers": servers, "servers": servers, "context_servers": servers, "mcp": servers, "inputs": inputs}
    content = json.dumps(tables)
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder), platform)
        for place in FILES:
            machine.put(place, content)
        found = machine.find()
        offered = {item.key: item.config for item in found if item.config}
        assert len(offered) == sum(item.config is not None for item in found)
        for written in (offered, without_secrets(offered)[0]):
            target = machine.put("pegboard.toml", append_servers("", written))
            examination = examine(files=[target], environ={}, cwd=Path(folder))
            assert examination.problems == ()
            assert set(examination.config.servers) == set(offered)
