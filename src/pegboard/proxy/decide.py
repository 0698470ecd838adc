"""Whether a request's tools are deferred, by whom, and which stay: a pure function of the request and the settings.

Above: `planner`. Below: `profiles`, `declared`. Decided at the first request of a conversation, and kept to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

import msgspec

from pegboard.config.model import ProxyConfig
from pegboard.proxy.declared import Declared, Family, servers
from pegboard.proxy.memory import Executor
from pegboard.proxy.profiles import is_core
from pegboard.surface.models import messages_defers

LISTED_CHARS = 2_400
"""Of names that the description of a search tool has; what does not fit is counted."""
MOST_DEFERRED = 10_000
"""Tools that the Messages API defers in one request."""
NATIVE_SEARCH = "tool_search_tool_bm25"
"""What the search of the Messages API's own is called; it can have no other name."""
_FIRST_PARTY = ("api.anthropic.com",)


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision is made from, beside the tools."""

    family: Family
    model: str
    address: str
    """Of the upstream."""
    profile: str = ""


def executor_for(config: ProxyConfig, about: Circumstances) -> Executor | None:
    """Who searches for this model on this wire; None when nobody is to."""
    if config.executor == "off" or any(fnmatchcase(about.model, glob) for glob in config.deny_models):
        return None
    if about.family != "messages" or config.executor == "bridge":
        return "bridge"
    return "native" if api_searches(config, about) else "bridge"


def api_searches(config: ProxyConfig, about: Circumstances) -> bool:
    """Whether the model's API can search itself: what began so goes on so, whatever is preferred by now."""
    own = urlsplit(about.address).hostname in _FIRST_PARTY
    return messages_defers(about.model) and (own or config.executor != "auto")


def split(
    tools: Sequence[Declared], profile: str, keep: Sequence[str], kept: Sequence[str] = ()
) -> tuple[list[Declared], list[Declared]]:
    """Those that stay in sight, and those that can be deferred, both in their order."""
    resident: list[Declared] = []
    deferred: list[Declared] = []
    for tool in tools:
        stays = tool.stays or tool.name in kept or is_core(tool.name, profile)
        stays = stays or any(fnmatchcase(tool.name, glob) for glob in keep)
        (resident if stays else deferred).append(tool)
    return resident, deferred


def too_little(config: ProxyConfig, deferred: Sequence[Declared], count: Callable[[Declared], int]) -> str:
    """Why it is not worth deferring these; empty when it is."""
    if len(deferred) < config.min_tools:
        return "few tools"
    return "" if sum(map(count, deferred)) >= config.min_tokens else "small tools"


def listing(tools: Sequence[Declared]) -> str:
    """What can be searched for: names by server; where they are too many, how many each has."""
    where = servers(tools)
    groups: dict[str, list[str]] = {}
    for tool in tools:
        groups.setdefault(where[tool.name], []).append(tool.name)
    if sum(len(tool.name) + 2 for tool in tools) <= LISTED_CHARS:
        return "\n".join(f"- {server}: {', '.join(names)}" for server, names in groups.items())
    return _folded(groups)


def _folded(groups: dict[str, list[str]]) -> str:
    share = max(LISTED_CHARS // max(len(groups), 1), 0)
    lines = []
    for server, names in groups.items():
        shown: list[str] = []
        for name in names:
            if sum(len(each) + 2 for each in (*shown, name)) > share:
                break
            shown.append(name)
        more = len(names) - len(shown)
        rest = f"{', and ' if shown else ''}{more}{' more' if shown else ' tools'}" if more else ""
        lines.append(f"- {server}: {', '.join(shown)}{rest}")
    return "\n".join(lines)
