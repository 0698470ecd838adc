"""Whatever files say, reading never fails, never keeps a secret, and reads no file twice."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegboard.doctor.settings.machine import Glance, Shelf
from pegboard.doctor.settings.read import read_states
from tests.homes import HomeBuilder
from tests.often import often

SECRET = "hush-0123456789abcdef"
FILES = (
    "../../etc/claude-code/managed-settings.json", "../../etc/claude-code/managed-settings.d/1.json",
    "../../etc/claude-code/managed-mcp.json", "../../etc/codex/config.toml", "../../etc/gemini-cli/settings.json",
    "../../etc/opencode/opencode.json", "../../etc/environment", "../../proc/12/cmdline",
    ".claude/plugins/installed_plugins.json",
    ".claude/settings.json", ".claude/remote-settings.json", ".claude.json", ".codex/config.toml",
    ".config/opencode/opencode.json", ".config/kilo/kilo.json", ".cline/data/settings/cline_mcp_settings.json",
    ".cline/data/settings/providers.json", ".gemini/settings.json", ".gemini/.env", ".config/zed/settings.json",
    ".cursor/mcp.json", ".config/Code/User/mcp.json", ".config/Code/User/settings.json", ".zshrc", ".bashrc",
    ".config/fish/fish_variables", ".config/fish/config.fish",
    ".local/lib/node_modules/@openai/codex/package.json",
    "code/engine/.claude/settings.json", "code/engine/.claude/settings.local.json", "code/engine/.mcp.json",
    "code/engine/opencode.json", "code/engine/.kilo/kilo.json", "code/engine/.codex/config.toml",
    "code/engine/.gemini/settings.json", "code/engine/.vscode/mcp.json", "code/engine/.vscode/settings.json",
)  # fmt: skip
KEYS = st.sampled_from(
    (
        "env", "permissions", "deny", "model", "mcpServers", "servers", "mcp", "context_servers", "mcp_servers",
        "projects", "provider", "providers", "options", "baseURL", "settings", "baseUrl", "model_providers",
        "model_provider", "base_url", "language_models", "api_url", "ENABLE_TOOL_SEARCH", "ANTHROPIC_BASE_URL",
        "a", "b", "type", "command", "args", "url", "enabled", "disabled", "alwaysLoad", "headers", "trust_level",
        "enabledMcpjsonServers", "disabledMcpServers", "enableAllProjectMcpServers", "agent", "default_model",
        "name", "version", "excluded", "plugins", "installPath", "enabledPlugins", "allowed", "managedSourcesBehavior",
    )
) | st.text(max_size=4)  # fmt: skip
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(("ToolSearch", "false", "auto:5", "${", "${A}", "{env:A}", "remote", "http", f"https://a:{SECRET}@b"))
)  # fmt: skip
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=25
)
SCRIPTS = st.lists(
    st.sampled_from(
        ("export ", "set -gx ", "ENABLE_TOOL_SEARCH", "=", "'", '"', "\\", "$", "\n", "unset ", "setenv ", ";", " ",
         "SETUVAR --export ", ":", "[mcp_servers.a]\n", 'command = "a"\n', "model = 3\n", "\\x", "\\u1")
    ),
    max_size=30,
).map("".join)  # fmt: skip
CONTENTS = VALUES.map(lambda value: json.dumps(value).encode()) | SCRIPTS.map(str.encode) | st.binary(max_size=30)
HOMES = st.dictionaries(st.sampled_from(FILES), CONTENTS, max_size=10)
LIKELY = st.fixed_dictionaries(
    {},
    optional={
        "command": st.just("a-mcp"),
        "args": st.just(["--token", SECRET]),
        "url": st.just(f"https://a:{SECRET}@b.example/mcp?key={SECRET}"),
        "headers": st.just({"Authorization": f"Bearer {SECRET}"}),
        "env": st.just({"API_KEY": SECRET}),
        "alwaysLoad": st.booleans() | LEAVES,
        "type": st.sampled_from(("http", "ws", "stdio", "remote", "nothing")),
    },
)


def written(root: Path, contents: dict[str, bytes]) -> HomeBuilder:
    home = HomeBuilder(root)
    for name, content in contents.items():
        file = home.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return home


@given(HOMES)
@settings(max_examples=often(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_nothing_in_any_file_stops_the_reading(contents: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = written(Path(folder), contents)

        states = read_states(home.machine, [home.project, home.folder, Path("\0")])

        assert len({state.agent for state in states}) == 9
        for state in states:
            names = [each.name for each in state.settings if each.name != "permissions.deny"]
            assert len(names) == len(set(names))
            assert {each.name for each in state.overridden} <= set(names)


@given(st.dictionaries(st.text(max_size=5), LIKELY | VALUES, max_size=4))
@settings(max_examples=often(60), deadline=None)
def test_no_secret_of_a_server_is_kept(servers: dict[str, Any]) -> None:
    tables = ("mcpServers", "mcp", "servers", "context_servers")
    document = json.dumps(dict.fromkeys(tables, servers)).encode()
    names = [name for name in FILES if name.endswith(".json") and "code/" not in name]
    with tempfile.TemporaryDirectory() as folder:
        home = written(Path(folder), dict.fromkeys(names, document))

        kept = msgspec.json.encode(read_states(home.machine), enc_hook=str).decode()

        assert SECRET not in kept


def test_every_file_is_read_once(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).env(ENABLE_TOOL_SEARCH="false")
    file = home.folder / ".claude" / "settings.json"
    shelf = Shelf()
    first = Glance(shelf).document(file)
    file.write_text("{", "utf-8")

    assert Glance(shelf).document(file) is first
    assert Glance(shelf).problems == ()
