"""The agents whose requests can go through the proxy: which of their files say where a model's API is, and where.

Only the user's own files: a project's are shared, and an address in them sends other people's keys along.
Above: `redirect`. Below: the importers, which know where programs keep their files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pegboard.config.importers.found import Places
from pegboard.config.installers.documents import Format, table_at
from pegboard.config.problems import nearest
from pegboard.errors import PegboardError


class Spot(msgspec.Struct, frozen=True, kw_only=True):
    """One address in an agent's settings."""

    path: tuple[str, ...]
    provider: str
    """What the agent calls the provider."""
    upstream: str = ""
    """The upstream that is meant when the key is missing; empty: then there is nothing to point."""
    suffix: str = ""
    """What the agent expects behind the upstream's address when the key is missing."""


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """One program, or a shell's variables."""

    id: str
    title: str
    format: Format = "json"
    files: Callable[[Places], tuple[Path, ...]] | None = None
    """The user's files, the one that counts most first; None: nothing is edited."""
    spots: Callable[[Sequence[Any]], Iterator[Spot]] = lambda _documents: iter(())
    """The addresses in these documents, which are those of the files."""
    default: int = 0
    """Which of the files is made when none is there."""
    variables: tuple[tuple[str, str, str], ...] = ()
    """Variables that do the same: name, upstream, suffix."""
    note: str = ""
    """What the person should know."""


def _opencode_files(places: Places) -> tuple[Path, ...]:
    return _in_folder(places.xdg_config / "opencode", ("opencode.jsonc", "opencode.json", "config.json"))


def _kilo_files(places: Places) -> tuple[Path, ...]:
    names = ("kilo.jsonc", "kilo.json", "opencode.jsonc", "opencode.json", "config.json")
    return _in_folder(places.xdg_config / "kilo", names)


def _in_folder(folder: Path, names: Sequence[str]) -> tuple[Path, ...]:
    return tuple(folder / name for name in names)


def _opencode_spots(documents: Sequence[Any]) -> Iterator[Spot]:
    for provider in ("anthropic", "openai"):
        yield Spot(path=_opencode_path(provider), provider=provider, upstream=provider, suffix="/v1")
    for provider in _members(documents, ("provider",)):
        if provider not in {"anthropic", "openai"}:
            yield Spot(path=_opencode_path(provider), provider=provider)


def _opencode_path(provider: str) -> tuple[str, ...]:
    return ("provider", provider, "options", "baseURL")


def _cline_files(places: Places) -> tuple[Path, ...]:
    root = places.from_variable("CLINE_DIR", places.home / ".cline")
    data = places.from_variable("CLINE_DATA_DIR", root / "data")
    return (places.from_variable("CLINE_PROVIDER_SETTINGS_PATH", data / "settings" / "providers.json"),)


def _cline_spots(documents: Sequence[Any]) -> Iterator[Spot]:
    """Only providers that someone has set up: an entry that we made would look like one."""
    for provider in _members(documents, ("providers",)):
        path = ("providers", provider, "settings", "baseUrl")
        known = {"upstream": "anthropic", "suffix": "/v1"} if provider == "anthropic" else {}
        yield Spot(path=path, provider=provider, **known)


def _zed_files(places: Places) -> tuple[Path, ...]:
    if places.platform == "win32":
        return (places.app_data / "Zed" / "settings.json",)
    return (places.xdg_config / "zed" / "settings.json",)


def _zed_spots(documents: Sequence[Any]) -> Iterator[Spot]:
    yield Spot(path=("language_models", "anthropic", "api_url"), provider="anthropic", upstream="anthropic")
    yield Spot(path=("language_models", "openai", "api_url"), provider="openai", upstream="openai", suffix="/v1")
    for family in ("openai_compatible", "anthropic_compatible"):
        for provider in _members(documents, ("language_models", family)):
            yield Spot(path=("language_models", family, provider, "api_url"), provider=provider)


def _members(documents: Sequence[Any], path: tuple[str, ...]) -> list[str]:
    found = [table_at(document, path) for document in documents]
    return list(dict.fromkeys(name for table in found for name, value in table.items() if isinstance(value, dict)))


def _one(path: str, upstream: str, suffix: str = "") -> Callable[[Sequence[Any]], Iterator[Spot]]:
    return lambda _documents: iter([Spot(path=(path,), provider=upstream, upstream=upstream, suffix=suffix)])


_CLAUDE = ("ANTHROPIC_BASE_URL", "anthropic", "")
_OPENAI = ("OPENAI_BASE_URL", "openai", "/v1")
_GEMINI = ("GOOGLE_GEMINI_BASE_URL", "gemini", "")
_GEMINI_PASSES = "Requests to Gemini go through as they are for now: nothing is deferred in them."

AGENTS: tuple[Agent, ...] = (
    Agent(id="opencode", title="opencode", files=_opencode_files, spots=_opencode_spots, default=1),
    Agent(id="kilo", title="Kilo", files=_kilo_files, spots=_opencode_spots, default=1),
    Agent(id="cline", title="Cline", files=_cline_files, spots=_cline_spots),
    Agent(
        id="zed",
        title="Zed",
        files=_zed_files,
        spots=_zed_spots,
        note="Zed keeps a key for the address it belongs to, so it may ask for yours again; ANTHROPIC_API_KEY and "
        "OPENAI_API_KEY in its environment count for any address.",
    ),
    Agent(
        id="gemini",
        title="Gemini CLI",
        format="env",
        files=lambda places: (places.from_variable("GEMINI_CLI_HOME", places.home) / ".gemini" / ".env",),
        spots=_one("GOOGLE_GEMINI_BASE_URL", "gemini"),
        note=_GEMINI_PASSES,
    ),
    Agent(
        id="codex",
        title="Codex",
        format="toml",
        files=lambda places: (places.from_variable("CODEX_HOME", places.home / ".codex") / "config.toml",),
        spots=_one("openai_base_url", "openai", "/v1"),
        note="Codex defers tools by itself for the models it knows, and goes on doing so: there is something to be won "
        "for other models only.",
    ),
    Agent(
        id="claude-code",
        title="Claude Code",
        variables=(_CLAUDE,),
        note="Claude Code defers tools by itself, and goes on doing so behind the proxy, which passes all that it uses "
        "intact: there is nothing to be won.",
    ),
    Agent(id="env", title="any program", variables=(_CLAUDE, _OPENAI, _GEMINI), note=_GEMINI_PASSES),
)


def agent_named(name: str) -> Agent:
    """The agent of this id."""
    for agent in AGENTS:
        if agent.id == name:
            return agent
    known = [agent.id for agent in AGENTS]
    near = nearest(name, known)
    hint = f"Did you mean {near}?" if near else f"There are {', '.join(known)}."
    raise PegboardError(f"There is no agent named {name!r} that the proxy knows.", hint=hint)
