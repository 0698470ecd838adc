"""What servers offer besides tools, under names that lead back to them. Pure values and functions.

A prompt is `<server>__<name>`. A resource keeps its URI; where two servers have the same one, the first in the order of
the configuration keeps it and the others get `pegboard://<server>/<URI>`, as do URIs that begin like that themselves.
The prefix is simply put in front: a template under it can be filled in by a client that knows nothing of us.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from pegboard.types import Json

SCHEME = "pegboard://"
SEPARATOR = "__"
LONGEST_NAME = 4096
LARGEST_ENTRY = 64 * 1024


class Offers(msgspec.Struct, frozen=True, kw_only=True):
    """What one server offered at one moment."""

    capabilities: tuple[str, ...] = ()
    prompts: tuple[Json, ...] = ()
    resources: tuple[Json, ...] = ()
    templates: tuple[Json, ...] = ()
    at: float = 0.0
    """Seconds since the epoch."""
    salt: str = ""
    launch: str = ""
    """Salted digest of how the server was launched, and for whom."""


Known = Mapping[str, Offers]
"""Offers by the prefix of their server's names, in the order of the configuration."""


def fit(entries: Iterable[Any], field: str) -> tuple[Json, ...]:
    """The entries of a list that can be handed on: objects of bounded size with a name or URI, each only once."""
    kept: dict[str, Json] = {}
    for entry in entries:
        key = entry.get(field) if isinstance(entry, dict) else None
        if isinstance(key, str) and 0 < len(key) <= LONGEST_NAME and _is_small(entry):
            kept.setdefault(key, entry)
    return tuple(kept.values())


def _is_small(entry: Json) -> bool:
    try:
        return len(msgspec.json.encode(entry)) <= LARGEST_ENTRY
    except (TypeError, ValueError, RecursionError):
        return False


# ── prompts ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def prompts(known: Known) -> list[Json]:
    """All prompts under their public names."""
    return [
        {**prompt, "name": f"{prefix}{SEPARATOR}{prompt['name']}"}
        for prefix, offers in known.items()
        for prompt in offers.prompts
    ]


def prompt_owner(name: str, known: Known) -> tuple[str, str] | None:
    """The prefix of the server whose prompt this is, and the prompt's own name."""
    meant = [(prefix, name[len(prefix) + len(SEPARATOR) :]) for prefix in known if name.startswith(prefix + SEPARATOR)]
    for prefix, own in meant:
        if any(prompt["name"] == own for prompt in known[prefix].prompts):
            return prefix, own
    if meant:
        return max(meant, key=lambda each: len(each[0]))
    bearers = [prefix for prefix, offers in known.items() if any(prompt["name"] == name for prompt in offers.prompts)]
    return (bearers[0], name) if len(bearers) == 1 else None


# ── resources ────────────────────────────────────────────────────────────────────────────────────────────────────────


def resources(known: Known) -> list[Json]:
    """All resources, each under a URI of its own."""
    return _distinct(known, "uri", {prefix: offers.resources for prefix, offers in known.items()})


def templates(known: Known) -> list[Json]:
    """All resource templates, each of its own."""
    return _distinct(known, "uriTemplate", {prefix: offers.templates for prefix, offers in known.items()})


def _distinct(known: Known, field: str, entries: Mapping[str, Iterable[Json]]) -> list[Json]:
    taken: set[str] = set()
    listed = []
    for prefix in known:
        for entry in entries[prefix]:
            uri = entry[field]
            if uri in taken or uri.startswith(SCHEME):
                uri = f"{SCHEME}{prefix}/{uri}"
            taken.add(uri)
            listed.append({**entry, field: uri})
    return listed


def resource_owner(uri: str, known: Known) -> tuple[str, str] | None:
    """The prefix of the server to ask for a resource, and its URI there; None when that cannot be told.

    Tools hand out URIs that no list has: then a template decides, or the scheme, if one server alone is known by it.
    """
    if uri.startswith(SCHEME):
        prefix, slash, own = uri.removeprefix(SCHEME).partition("/")
        return (prefix, own) if slash and prefix in known else None
    for test in (_lists, _has_template_for):
        for prefix, offers in known.items():
            if test(offers, uri):
                return prefix, uri
    able = [prefix for prefix, offers in known.items() if "resources" in offers.capabilities]
    akin = [prefix for prefix in able if _scheme(uri) in _schemes(known[prefix])]
    for candidates in (akin, able):
        if len(candidates) == 1:
            return candidates[0], uri
    return None


def _lists(offers: Offers, uri: str) -> bool:
    return any(entry["uri"] == uri for entry in offers.resources)


def _has_template_for(offers: Offers, uri: str) -> bool:
    return any(fills(entry["uriTemplate"], uri) for entry in offers.templates)


def template_owner(template: str, known: Known) -> tuple[str, str] | None:
    """The prefix of the server whose template this is, and the template there."""
    for prefix, offers in known.items():
        if any(entry["uriTemplate"] == template for entry in offers.templates):
            return prefix, template
    return resource_owner(template, known)


def fills(template: str, uri: str) -> bool:
    """Whether a URI can be this template filled in. Literal parts in their order: linear, whatever a server sends."""
    parts = _literals(template)
    first, last = parts[0], parts[-1]
    if len(parts) == 1:
        return uri == first
    if len(uri) < len(first) + len(last) or not uri.startswith(first) or not uri.endswith(last):
        return False
    at, end = len(first), len(uri) - len(last)
    for part in parts[1:-1]:
        found = uri.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _literals(template: str) -> list[str]:
    """What stands before, between and after the `{expressions}`."""
    parts, rest = [], template
    while True:
        literal, brace, after = rest.partition("{")
        expression, closed, rest = after.partition("}")
        if not brace or not closed:
            parts.append(literal + brace + expression)
            return parts
        parts.append(literal)


def _scheme(uri: str) -> str:
    return uri.partition(":")[0].lower()


def _schemes(offers: Offers) -> set[str]:
    listed = {_scheme(entry["uri"]) for entry in offers.resources}
    return listed | {_scheme(entry["uriTemplate"]) for entry in offers.templates}
