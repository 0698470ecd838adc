"""Builds one home, file by file. What each method is for is in the package's docstring."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pegboard.doctor.settings.machine import Machine
from tests.homes.agent_settings import add_server, merged
from tests.homes.claude_records import SessionPlan, Tokens, Trace, encoded, folder_name, lines
from tests.homes.other_records import cline_document, codex_lines, stamp, write_database_session
from tests.homes.tools import ToolSpec, patch_of

Scope = Literal["user", "project", "local"]
DAY = 86_400.0


class HomeBuilder:
    """A home folder, a project in it, and the machine around it."""

    def __init__(self, folder: Path, *, now: float | None = None) -> None:
        self.root = folder
        """Stands for `/`: managed settings are below it."""
        self.folder = folder / "home" / "ada"
        self.project = self.folder / "code" / "engine"
        self.environ: dict[str, str] = {"HOME": str(self.folder)}
        self.transcripts: dict[str, Path] = {}
        """The file of each Claude Code, Codex and Cline session."""
        self.now = time.time() if now is None else now
        self._sessions = 0
        self.project.mkdir(parents=True, exist_ok=True)

    @property
    def machine(self) -> Machine:
        """As the doctor gets it: nothing but what is below `root`, and nothing that is started."""
        return Machine(
            home=self.folder, cwd=self.project, environ=self.environ, platform="linux", root=self.root, starts=False
        )

    # Settings

    def file(self, relative: str | Path, text: str) -> Self:
        """Writes a file below the home folder."""
        path = self.folder / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return self

    def json(self, relative: str | Path, value: Any) -> Self:
        """Merges a value into a JSON file below the home folder."""
        path = self.folder / relative
        before = json.loads(path.read_text("utf-8")) if path.exists() else {}
        return self.file(relative, json.dumps(merged(before, value), indent=2) + "\n")

    def settings(self, *, scope: Scope = "user", **values: Any) -> Self:
        """Merges values into Claude Code's settings of a scope."""
        names = {"user": self.claude_folder / "settings.json", "project": self.project / ".claude/settings.json",
                 "local": self.project / ".claude/settings.local.json"}  # fmt: skip
        return self.json(names[scope], values)

    def env(self, *, scope: Scope = "user", **values: str) -> Self:
        """Sets variables in the `env` of Claude Code's settings."""
        return self.settings(scope=scope, env=values)

    def managed(self, **values: Any) -> Self:
        """Merges values into what an administrator has set for Claude Code."""
        return self.json(self.root / "etc/claude-code/managed-settings.json", values)

    def shell(self, line: str, *, file: str = ".zshrc") -> Self:
        """Adds a line to a shell profile."""
        path = self.folder / file
        before = path.read_text("utf-8") if path.exists() else "# my shell\n"
        return self.file(file, f"{before}{line}\n")

    def process(self, **values: str) -> Self:
        """Sets variables of the process that asks."""
        self.environ.update(values)
        return self

    def server(
        self, name: str, *, agent: str = "claude-code", scope: Scope = "user", always_load: bool | None = None,
        command: str = "", url: str = "",
    ) -> Self:  # fmt: skip
        """Adds an MCP server to the settings of an agent."""
        add_server(
            self, name, agent=agent, scope=scope, always_load=always_load, command=command or f"{name}-mcp", url=url
        )
        return self

    def installed(self, agent: str, version: str) -> Self:
        """Leaves what a global install with npm leaves: a package, and a link to its program on the path."""
        package = {"claude-code": "@anthropic-ai/claude-code", "codex": "@openai/codex", "opencode": "opencode-ai",
                   "kilo": "@kilocode/cli", "cline": "cline", "gemini": "@google/gemini-cli"}[agent]  # fmt: skip
        place = Path(".local/lib/node_modules") / package
        program = {"claude-code": "claude"}.get(agent, agent)
        self.json(place / "package.json", {"name": package, "version": version, "bin": {program: "cli.js"}})
        self.file(place / "cli.js", "#!/bin/false\n")
        (self.folder / place / "cli.js").chmod(0o755)
        self.environ.setdefault("PATH", str(self.folder / ".local/bin"))
        link = self.folder / ".local/bin" / program
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(self.folder / place / "cli.js")
        return self

    def runs(self, *words: str) -> Self:
        """Makes it look as if a process with these words ran."""
        folder = self.root / "proc" / str(1_000 + sum(1 for _ in (self.root / "proc").glob("*")))
        folder.mkdir(parents=True)
        (folder / "cmdline").write_bytes(b"\0".join(word.encode() for word in words) + b"\0")
        return self

    # Sessions

    def claude_session(
        self, *, version: str = "2.1.325", deferral: bool = True, tools: Iterable[ToolSpec] = (),
        pinned: Iterable[str] = (), calls: Mapping[str, int] | None = None, searches: int = 0,
        models: tuple[str, ...] = ("claude-sonnet-5",), proof: Trace | None = None, announce: bool | None = None,
        refused: bool = False, resumed: bool = False, copied_from: str = "", compactions: int = 0, sub_agents: int = 0,
        vertex: bool = False, turns: int = 6, days_ago: float = 1.0, project: Path | None = None,
        usage: Tokens | None = None, text: str = "look at the parser and mend it", broken_lines: int = 0,
        unknown_records: int = 0, identity: str = "",
    ) -> str:  # fmt: skip
        """Writes one session's transcript, and those of its sub-agents."""
        plan = SessionPlan(
            id=identity or self._identity(), version=version, deferral=deferral, tools=tuple(tools),
            pinned=frozenset(pinned), calls=dict(calls or {}), searches=searches, models=models,
            proof=proof or _usual_trace(version), announce=deferral if announce is None else announce, refused=refused,
            resumed=resumed, compactions=compactions, vertex=vertex, turns=turns, began=self._began(days_ago),
            project=str(project or self.project), usage=usage or Tokens(), text=text, broken_lines=broken_lines,
            unknown_records=unknown_records,
        )  # fmt: skip
        path = self.claude_folder / "projects" / folder_name(plan.project) / f"{plan.id}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            if copied_from:
                file.write(self.transcripts[copied_from].read_bytes())
            file.writelines(encoded(each) for each in lines(plan))
        for number in range(sub_agents):
            nested = path.with_suffix("") / "subagents" / f"agent-{number:08x}.jsonl"
            nested.parent.mkdir(parents=True, exist_ok=True)
            nested.write_bytes(b"".join(encoded(each) for each in lines(plan, agent=f"{number:08x}")))
        self.transcripts[plan.id] = path
        return plan.id

    def codex_session(
        self, *, calls: Mapping[str, int] | None = None, searches: int = 0, model: str = "gpt-5.5",
        version: str = "0.166.0", turns: int = 4, days_ago: float = 1.0, usage: Tokens | None = None,
        text: str = "look at the parser and mend it", records: bool = True, parent: str = "",
    ) -> str:  # fmt: skip
        """Writes one rollout."""
        identity, began = self._identity(), self._began(days_ago)
        day = stamp(began)[:10].replace("-", "/")
        path = self.codex_folder / "sessions" / day / f"rollout-{stamp(began)[:19].replace(':', '-')}-{identity}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        records_of = codex_lines(
            identity, began=began, project=str(self.project), version=version, model=model, turns=turns,
            calls=calls or {}, searches=searches, usage=usage or Tokens(), text=text, records=records, parent=parent,
        )  # fmt: skip
        path.write_bytes(b"".join(encoded(each) for each in records_of))
        self.transcripts[identity] = path
        return identity

    def opencode_session(self, **about: Any) -> str:
        """Adds a session to opencode's database: calls, model, version, turns, days_ago, usage, text, parent."""
        return self._database_session(self.data_folder / "opencode" / "opencode.db", "1.18.33", about)

    def kilo_session(self, **about: Any) -> str:
        """The same for Kilo."""
        return self._database_session(self.data_folder / "kilo" / "kilo.db", "7.7.9", about)

    def _database_session(self, file: Path, version: str, about: dict[str, Any]) -> str:
        identity = f"ses_{self._identity()[:20]}"
        usual: dict[str, Any] = {"version": version, "model": "claude-sonnet-5", "turns": 4, "calls": {},
                                 "usage": Tokens(), "text": "look at the parser and mend it"}  # fmt: skip
        began = self._began(about.pop("days_ago", 1.0))
        write_database_session(file, identity, began=began, project=str(self.project), **{**usual, **about})
        return identity

    def cline_session(
        self, *, calls: Mapping[str, int] | None = None, model: str = "claude-sonnet-5", version: str = "3.0.65",
        turns: int = 4, days_ago: float = 1.0, usage: Tokens | None = None,
        text: str = "look at the parser and mend it",
    ) -> str:  # fmt: skip
        """Writes one session's messages and what Cline says about it."""
        identity, began = self._identity(), self._began(days_ago)
        folder = Path(".cline/data/sessions") / identity
        document = cline_document(
            identity, began=began, model=model, turns=turns, calls=calls or {}, usage=usage or Tokens(), text=text
        )
        about = {"version": 1, "session_id": identity, "cwd": str(self.project), "cline_version": version,
                 "started_at": stamp(began), "model": model, "prompt": text}  # fmt: skip
        self.file(folder / f"{identity}.messages.json", json.dumps(document))
        self.file(folder / f"{identity}.json", json.dumps(about))
        self.transcripts[identity] = self.folder / folder / f"{identity}.messages.json"
        return identity

    # Places

    @property
    def claude_folder(self) -> Path:
        """Where Claude Code keeps things."""
        return Path(self.environ.get("CLAUDE_CONFIG_DIR", self.folder / ".claude"))

    @property
    def codex_folder(self) -> Path:
        """Where Codex does."""
        return Path(self.environ.get("CODEX_HOME", self.folder / ".codex"))

    @property
    def data_folder(self) -> Path:
        """Where opencode and Kilo do."""
        return Path(self.environ.get("XDG_DATA_HOME", self.folder / ".local/share"))

    def _identity(self) -> str:
        self._sessions += 1
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"session {self._sessions}"))

    def _began(self, days_ago: float) -> float:
        return round(self.now - days_ago * DAY + 60.0 * self._sessions, 3)


def _usual_trace(version: str) -> Trace:
    """The strongest that this version leaves."""
    patch = patch_of(version)
    if patch >= 300:
        return "requests"
    return "snapshot" if patch >= 265 else "searches"
