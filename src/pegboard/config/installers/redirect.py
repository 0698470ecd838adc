"""What pointing an agent at the proxy comes to: which values are set in which file, and which upstreams are new.

Pure. Above: `pegboard proxy install`, which shows the plan, and `store.redirects`, which writes it. Below: the agents
and the editors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from pegboard.config.check import wrong_upstream
from pegboard.config.installers.agents import Agent, Spot
from pegboard.config.installers.documents import Format, parse
from pegboard.config.installers.journal import Redirect
from pegboard.config.installers.settings import Setting, apply, value_at
from pegboard.errors import ConfigError
from pegboard.wire.admission import is_loopback

UPSTREAMS = ("proxy", "upstreams")
_ILLEGAL = re.compile(r"[^a-z0-9]+")
_REFERENCE = re.compile(r"[{}$]")
_LONGEST = 40


class FilePlan(msgspec.Struct, frozen=True, kw_only=True):
    """Values to be set in one file."""

    file: Path
    format: Format
    before: str | None
    """None: there is no such file."""
    after: str
    settings: tuple[Setting, ...]
    upstreams: tuple[str, ...] = ()
    is_config: bool = False


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's way through the proxy that has not been laid yet."""

    agent: Agent
    files: tuple[FilePlan, ...]
    """Those of the agent that change."""
    config: FilePlan | None = None
    """The pegboard.toml, when an upstream is new."""
    stays: dict[str, str] = {}
    """Addresses that stay as they are, and why."""
    pointed: tuple[str, ...] = ()
    """Addresses that go through the proxy already."""

    @property
    def is_needed(self) -> bool:
        """Whether anything is to be done at all."""
        return bool(self.files)


class Proxy(msgspec.Struct, frozen=True, kw_only=True):
    """The proxy as an agent is told of it."""

    base: str
    """Its address, as in http://127.0.0.1:8722."""
    upstreams: Mapping[str, str]
    """All it knows, those that are built in first."""
    built_in: frozenset[str]

    def has(self, address: str) -> bool:
        """Whether the address is one of the proxy's own, however this machine is called in it."""
        try:
            ours, theirs = urlsplit(self.base), urlsplit(address)
            if ours.port != theirs.port or theirs.scheme != "http":
                return False
        except ValueError:
            return False
        both = (ours.hostname or "", theirs.hostname or "")
        return both[0] == both[1] or all(map(is_loopback, both))


def plan(
    agent: Agent,
    texts: Mapping[Path, str | None],
    proxy: Proxy,
    config: tuple[Path, str | None],
    journal: Sequence[Redirect],
) -> Plan:
    """What it comes to in these files of the agent, the one that counts most first, and in this pegboard.toml."""
    documents = {file: _parsed(file, text, agent.format) for file, text in texts.items()}
    written = frozenset((each.file, setting.path, setting.value) for each in journal for setting in each.settings)
    work = _Work(agent, proxy, written)
    for spot in agent.spots(list(documents.values())):
        holders = [file for file, document in documents.items() if value_at(document, spot.path) is not None]
        target = holders[0] if holders else _usual(agent, texts)
        work.look_at(spot, target, value_at(documents[target], spot.path))
    return Plan(
        agent=agent,
        files=tuple(_file_plan(file, texts[file], agent.format, *found) for file, found in work.found.items()),
        config=_config_plan(config, work.added),
        stays=work.stays,
        pointed=tuple(work.pointed),
    )


def _usual(agent: Agent, texts: Mapping[Path, str | None]) -> Path:
    there = [file for file, text in texts.items() if text is not None]
    return there[0] if there else list(texts)[agent.default]


class _Work:
    """Goes from address to address and keeps what is to be done."""

    def __init__(self, agent: Agent, proxy: Proxy, written: frozenset[tuple[str, tuple[str, ...], str]]) -> None:
        self._agent = agent
        self._proxy = proxy
        self._written = written
        self.found: dict[Path, tuple[list[Setting], list[str]]] = {}
        self.added: dict[str, str] = {}
        self.stays: dict[str, str] = {}
        self.pointed: list[str] = []

    def look_at(self, spot: Spot, file: Path, current: Any) -> None:
        """Decides what becomes of one address."""
        name = ".".join(spot.path)
        if current is None or current == "":
            if spot.upstream:
                self._set(spot, file, spot.upstream, spot.suffix)
        elif not isinstance(current, str):
            self.stays[name] = "it is no text"
        elif self._proxy.has(current):
            self.pointed.append(name)
        elif (str(file), spot.path, current) in self._written:
            # The proxy listened elsewhere when this was written.
            _, upstream, *rest = urlsplit(current).path.split("/", 2)
            self._set(spot, file, upstream, "".join(f"/{part}" for part in rest))
        else:
            self._move(spot, file, name, current)

    def _move(self, spot: Spot, file: Path, name: str, current: str) -> None:
        """Points an address of the agent's own at the proxy, under an upstream that has it."""
        if _REFERENCE.search(current):
            self.stays[name] = f"{current} is filled in by {self._agent.title} alone"
            return
        address = current.rstrip("/")
        suffix = "/v1" if address.endswith("/v1") else ""
        address = address.removesuffix("/v1")
        if wrong := wrong_upstream(address):
            self.stays[name] = f"{current}: {wrong}"
            return
        self._set(spot, file, self._upstream(spot.provider, address), suffix)

    def _set(self, spot: Spot, file: Path, upstream: str, suffix: str) -> None:
        settings, upstreams = self.found.setdefault(file, ([], []))
        settings.append(Setting(spot.path, f"{self._proxy.base}/{upstream}{suffix}"))
        if upstream not in upstreams:
            upstreams.append(upstream)

    def _upstream(self, provider: str, address: str) -> str:
        known = {**self._proxy.upstreams, **self.added}
        for name, there in known.items():
            if there.rstrip("/") == address:
                return name
        plain = _ILLEGAL.sub("-", provider.lower()).strip("-")[:_LONGEST] or self._agent.id
        names = (
            plain,
            f"{self._agent.id}-{plain}",
            *(f"{self._agent.id}-{plain}-{number}" for number in range(2, 100)),
        )
        name = next(name for name in names if name not in known and name not in self._proxy.built_in)
        self.added[name] = address
        return name


def _parsed(file: Path, text: str | None, format: Format) -> dict[str, Any]:  # noqa: A002 - it is the format
    try:
        return parse(text or "", format)
    except ConfigError as error:
        raise ConfigError(f"{file}: {error.message}", hint=f"{error.hint} Nothing was changed.") from None


def _file_plan(
    file: Path,
    text: str | None,
    format: Format,  # noqa: A002
    settings: Sequence[Setting],
    upstreams: Sequence[str],
    is_config: bool = False,
) -> FilePlan:
    try:
        after = apply(text or "", settings, format)
    except ConfigError as error:
        raise ConfigError(f"{file}: {error.message}", hint=f"{error.hint} Nothing was changed.") from None
    return FilePlan(
        file=file,
        format=format,
        before=text,
        after=after,
        settings=tuple(settings),
        upstreams=tuple(upstreams),
        is_config=is_config,
    )


def _config_plan(config: tuple[Path, str | None], added: Mapping[str, str]) -> FilePlan | None:
    if not added:
        return None
    file, text = config
    _parsed(file, text, "toml")
    settings = [Setting((*UPSTREAMS, name), address) for name, address in added.items()]
    return _file_plan(file, text, "toml", settings, (), is_config=True)
