"""How Claude Code decides whether it defers: in its order, with the versions between which each rule holds.

Above: the checks of deferral. Below: the facts, and what is known of models.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

import msgspec

from pegboard.doctor.checks import models
from pegboard.doctor.checks.causes import AUTO, BETAS, DENIED, ENV, OLD_MODEL, OLD_VERSION, THRESHOLD, VERTEX
from pegboard.doctor.facts import AgentState, Setting

Version = tuple[int, ...]

FIRST = (2, 1, 7)
"""Defers at all, from 10 % of the window on."""
NUMBERED_THRESHOLD = (2, 1, 9)
GATE = (2, 1, 70)
"""From here to `GATE_GONE`, only before Anthropic's own endpoint."""
OVERRIDE = (2, 1, 72)
"""ENABLE_TOOL_SEARCH opens the gate."""
VERTEX_OFF = (2, 1, 119)
ALWAYS_LOAD = (2, 1, 121)
VERTEX_ON = (2, 1, 221)
FORCE = (2, 1, 227)
GATE_GONE = (2, 1, 304)

SEARCH = "ENABLE_TOOL_SEARCH"
BASE_URL = "ANTHROPIC_BASE_URL"
NO_BETAS = "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS"
DENY = "permissions.deny"
ON_VERTEX = "CLAUDE_CODE_USE_VERTEX"
ELSEWHERE = (ON_VERTEX, "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_FOUNDRY")

_FIRST_PARTY = "api.anthropic.com"
_FALSY = frozenset({"false", "0", "no", "off"})
_TRUTHY = frozenset({"true", "1", "yes", "on"})
_AUTO = re.compile(r"auto(?::(?:(\d{1,9})|.*))?")
"""A percentage that is no number is none."""
_TOOL_SEARCH = re.compile(r"(?<![\w-])ToolSearch(?![\w-])")


class Blocker(msgspec.Struct, frozen=True):
    """One thing that keeps deferral off."""

    cause: str
    settings: tuple[Setting, ...] = ()
    """That say so: the one that counts first, then those that would count once it is gone."""
    certain: bool = True
    """False: a threshold, which only sessions can tell whether it was reached."""

    @property
    def since(self) -> float:
        """When the setting that counts was last written; 0 when unknown, or when no setting is at fault."""
        return self.settings[0].changed_at if self.settings else 0.0


def number(version: str) -> Version:
    """A version as numbers; nothing for one that is unknown."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def blockers(state: AgentState, version: str, names: Iterable[str]) -> tuple[Blocker, ...]:
    """All that keeps deferral off in this state, for this version and these models, as Claude Code meets it."""
    at = number(version)
    used = tuple(names)
    found = (
        Blocker(OLD_VERSION) if at and at < FIRST else None,
        Blocker(OLD_MODEL) if models.too_old(used) else None,
        _vertex(state, at, used),
        _denied(state),
        _betas(state, at),
        _search(state, at),
        _gate(state, at),
    )
    return tuple(each for each in found if each is not None)


def mode(value: str) -> str:
    """What a value of ENABLE_TOOL_SEARCH says: on, off, threshold, or unset."""
    text = value.strip().lower()
    if text in _FALSY:
        return "off"
    found = _AUTO.fullmatch(text)
    if found is None:
        return "on" if text else "unset"
    percent = threshold(value)
    return "on" if percent == 0 else "off" if percent >= 100 else "threshold"


def threshold(value: str) -> int:
    """The percentage of `auto` or `auto:N`."""
    found = _AUTO.fullmatch(value.strip().lower())
    return min(int(found[1] or 10), 100) if found else 0


def is_numbered(value: str) -> bool:
    """Whether somebody chose the percentage."""
    found = _AUTO.fullmatch(value.strip().lower())
    return found is not None and found[1] is not None


def set_to(state: AgentState, name: str) -> bool:
    """Whether a flag is set to something that means yes."""
    setting = state.setting(name)
    return setting is not None and setting.value.strip().lower() in _TRUTHY


def is_elsewhere(state: AgentState) -> bool:
    """Whether it talks to the API through another host than Anthropic's, by a base URL."""
    setting = state.setting(BASE_URL)
    if setting is None or not setting.value.strip() or any(set_to(state, name) for name in ELSEWHERE):
        return False
    try:
        return urlsplit(setting.value.strip()).hostname != _FIRST_PARTY
    except ValueError:
        return True


def search_mode(state: AgentState) -> str:
    """What ENABLE_TOOL_SEARCH says in this state."""
    setting = state.setting(SEARCH)
    return mode(setting.value) if setting else "unset"


def all_of(state: AgentState, name: str) -> tuple[Setting, ...]:
    """Every place that says something by this name, the one that counts first."""
    return tuple(each for each in (*state.settings, *state.overridden) if each.name == name)


# ── one rule each ────────────────────────────────────────────────────────────────────────────────────────────────


def _vertex(state: AgentState, at: Version, used: tuple[str, ...]) -> Blocker | None:
    if not set_to(state, ON_VERTEX) or not at or at < VERTEX_OFF:
        return None
    places = all_of(state, ON_VERTEX)
    if at < VERTEX_ON:
        return Blocker(VERTEX, places) if search_mode(state) == "unset" else None
    return Blocker(VERTEX, places) if models.too_old_on_vertex(used) else None


def _denied(state: AgentState) -> Blocker | None:
    # Lists are merged: a weaker file's rule holds beside a stronger one's.
    places = tuple(each for each in all_of(state, DENY) if _TOOL_SEARCH.search(each.value))
    return Blocker(DENIED, places) if places else None


def _betas(state: AgentState, at: Version) -> Blocker | None:
    if not set_to(state, NO_BETAS):
        return None
    search = state.setting(SEARCH)
    is_forced = search is not None and search.scope == "managed" and search.value.strip().lower() == "force"
    if is_forced and (not at or at >= FORCE):
        return None
    return Blocker(BETAS, tuple(each for each in all_of(state, NO_BETAS) if each.value.strip().lower() in _TRUTHY))


def _search(state: AgentState, at: Version) -> Blocker | None:
    setting = state.setting(SEARCH)
    says = search_mode(state)
    if says == "off":
        return Blocker(ENV, tuple(each for each in all_of(state, SEARCH) if mode(each.value) == "off"))
    if says == "threshold" and setting is not None:
        same = tuple(each for each in all_of(state, SEARCH) if mode(each.value) == "threshold")
        return Blocker(THRESHOLD if is_numbered(setting.value) else AUTO, same, certain=False)
    # In the first versions nothing said meant `auto`.
    return Blocker(AUTO, certain=False) if says == "unset" and at and FIRST <= at < GATE else None


def _gate(state: AgentState, at: Version) -> Blocker | None:
    if not is_elsewhere(state) or not at or not GATE <= at < GATE_GONE:
        return None
    if search_mode(state) != "unset" and at >= OVERRIDE:
        return None
    return Blocker(OLD_VERSION, all_of(state, BASE_URL))
