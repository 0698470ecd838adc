"""A made-up machine under a temporary folder, on which every program that can be imported from has its settings."""

from __future__ import annotations

from pathlib import Path

from pegboard.config.importers import find

GOLDEN = Path(__file__).with_name("golden")
WINDOWS_LINES, WITH_MARK = "windows lines", "with byte-order mark"


class Machine:
    """Home folder, project, variables and platform, as `find` is told them."""

    def __init__(self, root, platform="linux"):
        self.home = root / "home of zoë"
        self.project = self.home / "work" / "my project"
        self.cwd = self.project
        self.project.mkdir(parents=True)
        self.environ = {}
        self.platform = platform

    def put(self, place, content):
        """Writes a file; relative places are in the home folder."""
        path = self.home / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def put_golden(self, place, name, *forms):
        """Writes one of the golden files, perhaps as Windows editors would have saved it."""
        text = (GOLDEN / name).read_text(encoding="utf-8").replace("@PROJECT@", str(self.project))
        if WINDOWS_LINES in forms:
            text = text.replace("\n", "\r\n")
        return self.put(place, ("\ufeff" if WITH_MARK in forms else "") + text)

    def find(self):
        return find(self.home, self.cwd, self.environ, self.platform)

    def found(self, source):
        """What one source has, by the name it has there; also what was merged into another source's."""
        everything = [entry for item in self.find() for entry in (item, *item.duplicates)]
        return {item.name: item for item in everything if item.source == source}

    def install_everything(self):
        """All programs, user and project."""
        project = self.project
        self.put_golden(".claude.json", "claude.json")
        self.put_golden(project / ".mcp.json", "project.mcp.json")
        self.put(project / ".claude" / "settings.local.json", '{"disabledMcpjsonServers": ["denied"]}')
        self.put_golden(
            ".config/Claude/claude_desktop_config.json", "claude_desktop_config.json", WINDOWS_LINES, WITH_MARK
        )
        self.put_golden(".cursor/mcp.json", "cursor.json")
        self.put_golden(project / ".cursor" / "mcp.json", "cursor-project.json")
        self.put_golden(".config/Code/User/mcp.json", "vscode.json", WINDOWS_LINES)
        self.put_golden(project / ".vscode" / "mcp.json", "vscode-project.json")
        self.put_golden(".cline/data/settings/cline_mcp_settings.json", "cline.json")
        extension = ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
        self.put_golden(extension, "cline-extension.json")
        self.put_golden(".codex/config.toml", "codex.toml", WITH_MARK)
        self.put_golden(".gemini/settings.json", "gemini.json")
        self.put_golden(project / ".gemini" / "settings.json", "gemini-project.json")
        self.put_golden(".config/opencode/opencode.jsonc", "opencode.jsonc")
        self.put_golden(project / ".opencode" / "opencode.json", "opencode-project.json")
        self.put_golden(".codeium/windsurf/mcp_config.json", "windsurf.json")
        self.put_golden(".config/zed/settings.json", "zed.json")
        self.put_golden(project / ".zed" / "settings.json", "zed-project.json")
        return self
