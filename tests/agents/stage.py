"""All of one try in a world without a network: the model's API, the proxy, an agent with two MCP servers.

Started as `python -m tests.agents.stage PLAN`. Writes what it saw to `report.json` in the folder that the plan names.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pegboard.testing import FakeLLM
from pegboard.testing.llm.exchange import Answer
from tests.agents.namespace import is_cut_off, raise_loopback
from tests.agents.play import ANOTHER, COPY, NOTE, SECRET, Clerk
from tests.agents.settings import AGENTS, Agent, Line, Place
from tests.agents.tee import Spoken, Tee
from tests.served_llm import served

HEARD_PORT, PROXY_PORT = 8722, 8723
"""Agents are pointed at the first, where every byte is written down; the proxy listens on the second."""
FIRST_WORDS = "Refund invoice INV-7731, then read the note."
AGENT_SECONDS = 150
COMMAND_SECONDS = 60


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is tried."""

    agent: str
    program: str
    folder: str
    executor: str
    wire: str = "messages"


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """One start of the agent."""

    code: int
    out: str
    err: str


class Reached(msgspec.Struct, frozen=True, kw_only=True):
    """One request that reached the model's API."""

    path: str
    headers: dict[str, str]
    """By lower-case name."""
    raw: str
    """The body as it came."""
    shown: list[str]
    """The tools that the model saw."""
    refused: str
    reply: str
    """The body of the reply, as it went."""


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """One request that the agent sent to the proxy, and the reply that it got."""

    method: str
    path: str
    headers: dict[str, str]
    body: str
    status: int
    reply: str
    is_whole: bool


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen."""

    cut_off: bool
    runs: list[Ran]
    reached: list[Reached]
    heard: list[Heard]
    called: list[dict[str, Any]]
    """What the MCP servers were asked to do."""
    tallies: list[dict[str, Any]]
    """What the proxy counted, once per start of it."""
    before: str
    """Its settings before it was pointed at the proxy."""
    pointed: str
    """The same while it was."""
    after: str
    """And in the end, when that was taken back."""
    copy: str
    """What its shell wrote."""


class Api(FakeLLM):
    """The model's API, which keeps the bytes that it was sent and those that it answered."""

    def __init__(self, clerk: Clerk) -> None:
        super().__init__(clerk)
        self.reached: list[Reached] = []

    def respond(self, path: str, headers: Mapping[str, str], raw: bytes) -> Answer:
        """As always."""
        seen, shown = len(self.requests), len(self.model.shown)
        answer = super().respond(path, headers, raw)
        names = self.model.shown[-1].names if len(self.model.shown) > shown else ()
        reached = Reached(
            path=path,
            headers={name.lower(): value for name, value in headers.items()},
            raw=raw.decode(),
            shown=list(names),
            refused=self.requests[-1].refused if len(self.requests) > seen else "not understood",
            reply=b"".join(answer.pieces).decode(),
        )
        self.reached.append(reached)
        return answer


class Stage:
    """One try."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.agent: Agent = AGENTS[plan.agent]
        folder = Path(plan.folder)
        self.place = Place(home=folder / "home", project=folder / "project", log=folder / "calls.jsonl")
        self.config = folder / "pegboard.toml"
        self.variables: dict[str, str] = {}
        self.tallies: list[dict[str, Any]] = []
        self.runs: list[Ran] = []

    def prepare(self, base: str) -> None:
        """Homes, files and settings."""
        for each in (self.place.home, self.place.project):
            each.mkdir(parents=True)
        (self.place.project / NOTE).write_text(SECRET + "\n")
        self.place.log.touch()
        self.agent.write(self.place, base, self.plan.wire)

    def configure(self, base: str) -> None:
        """Settles the proxy, and points the agent at it."""
        folder = self.config.parent
        lines = ["[proxy]", f'executor = "{self.plan.executor}"', f'listen = "127.0.0.1:{HEARD_PORT}"']
        lines += ["[store]", f'state_dir = "{folder / "state"}"', f'cache_dir = "{folder / "cache"}"']
        if not self.agent.settings:
            lines += ["[proxy.upstreams]", f'anthropic = "{base}"']
        self.config.write_text("\n".join(lines) + "\n")
        if self.agent.settings:
            self.pegboard("proxy", "install", self.agent.install, "--yes")
        else:
            self.variables = json.loads(self.pegboard("proxy", "install", self.agent.install, "--json"))["variables"]

    def settings(self) -> str:
        """The agent's settings as they are now, if they are what points it."""
        return (self.place.home / self.agent.settings).read_text() if self.agent.settings else ""

    def pegboard(self, *words: str) -> str:
        """Runs one of our own commands to its end."""
        command = [sys.executable, "-m", "pegboard", *words, "--config", str(self.config)]
        ran = subprocess.run(
            command, env=self.environment(), cwd=self.place.project, capture_output=True, text=True,
            timeout=COMMAND_SECONDS, check=False,
        )  # fmt: skip
        if ran.returncode:
            raise SystemExit(f"pegboard {' '.join(words)}: {ran.stdout}\n{ran.stderr}")
        return ran.stdout

    def environment(self) -> dict[str, str]:
        """Nothing of the machine's but where programs are."""
        kept = {"PATH": os.environ["PATH"], "HOME": str(self.place.home), "LANG": "C.UTF-8", "TERM": "dumb"}
        return {**kept, **self.agent.env, **self.variables}

    @contextlib.contextmanager
    def proxy(self) -> Iterator[None]:
        """The real proxy, in the background; what it counted is kept."""
        self.pegboard("proxy", "start", "--background", "--listen", f"127.0.0.1:{PROXY_PORT}")
        try:
            yield
            with urllib.request.urlopen(f"http://127.0.0.1:{PROXY_PORT}/_pegboard/status", timeout=10) as answer:
                self.tallies.append(json.load(answer)["tally"])
        finally:
            self.pegboard("proxy", "stop")

    def say(self, words: str) -> None:
        """Starts the agent with these words, until it ends. What is said later is said in the same conversation."""
        line = Line(self.place, self.plan.program, words, self.plan.wire)
        command = self.agent.again(line) if self.runs else self.agent.command(line)
        out, err = (self.place.home.parent / f"{name}-{len(self.runs)}.txt" for name in ("out", "err"))
        with out.open("wb") as stdout, err.open("wb") as stderr:  # no pipes: what it leaves behind might hold them open
            process = subprocess.Popen(
                command, env=self.environment(), cwd=self.place.project, stdin=subprocess.DEVNULL, stdout=stdout,
                stderr=stderr,
            )  # fmt: skip
            try:
                code = process.wait(AGENT_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
        self.runs.append(Ran(code=code, out=out.read_text(errors="replace"), err=err.read_text(errors="replace")))

    def play(self) -> Report:
        """The whole try: two things are asked for, and between them the proxy is ended and begun again."""
        clerk = Clerk(self.agent.tool, self.agent.steps(self.place), at_work=self.agent.own(self.place)[0][0])
        api, tee = Api(clerk), Tee()
        with served(api) as base:
            self.prepare(base)
            before = self.settings()
            self.configure(base)
            pointed = self.settings()
            with tee.listening(HEARD_PORT, PROXY_PORT):
                for words in (FIRST_WORDS, ANOTHER):
                    with self.proxy():
                        self.say(words)
        if self.agent.settings:
            self.pegboard("proxy", "uninstall", self.agent.install)
        copy = self.place.project / COPY
        return Report(
            cut_off=is_cut_off(),
            runs=self.runs,
            reached=api.reached,
            heard=[_heard(each) for each in tee.spoken],
            called=[json.loads(line) for line in self.place.log.read_text().splitlines()],
            tallies=self.tallies,
            before=before,
            pointed=pointed,
            after=self.settings(),
            copy=copy.read_text() if copy.exists() else "",
        )


def _heard(spoken: Spoken) -> Heard:
    return Heard(
        method=spoken.method,
        path=spoken.path,
        headers=spoken.headers,
        body=spoken.body.decode(),
        status=spoken.status,
        reply=spoken.reply.decode(errors="replace"),
        is_whole=spoken.is_whole,
    )


if __name__ == "__main__":
    raise_loopback()
    plan = msgspec.json.decode(sys.argv[1], type=Plan)
    report = Stage(plan).play()
    (Path(plan.folder) / "report.json").write_bytes(msgspec.json.encode(report))
