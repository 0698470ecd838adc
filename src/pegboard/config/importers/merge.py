"""The same launch, configured in several programs, becomes one server with a note of where else it is.

Above: `gather`. Below: the nouns.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from pegboard.config.expand import expand
from pegboard.config.importers.found import Found
from pegboard.config.model import ServerConfig


def merge(found: Iterable[Found]) -> tuple[Found, ...]:
    """Each launch once, in the order in which it was first found; what cannot be launched is kept apart."""
    groups: list[list[Found]] = []
    by_launch: dict[object, list[list[Found]]] = {}
    for item in found:
        same = by_launch.setdefault(_launch(item), [])
        group = next((group for group in same if _belongs(item, group)), None)
        if group is None:
            group = []
            same.append(group)
            groups.append(group)
        group.append(item)
    return tuple(map(_one, groups))


def same_server(left: ServerConfig, right: ServerConfig) -> bool:
    """Whether two configurations reach one server with one account."""
    return _reached(left) == _reached(right) and not _differing(left, right)


def _launch(item: Found) -> object:
    return id(item) if item.config is None else _reached(item.config)


def _reached(config: ServerConfig) -> object:
    """What is run or reached. Values are left out: the same server often has its token written in two ways."""
    if config.url is not None:
        return config.url
    return config.command, config.args, config.cwd, tuple(sorted(config.env))


def _belongs(item: Found, group: list[Found]) -> bool:
    """Two entries of one file are two servers, whatever they have in common; so are two accounts."""
    if any((other.source, other.file) == (item.source, item.file) for other in group):
        return False
    return item.name == group[0].name or not _differing(item.config, group[0].config)


def _one(group: list[Found]) -> Found:
    chosen = next((item for item in group if item.config is not None and item.config.enabled), group[0])
    others = tuple(item for item in group if item is not chosen)
    notes = tuple(
        f"{other.source} has another value for {', '.join(differing)}."
        for other in others
        if (differing := _differing(chosen.config, other.config))
    )
    return msgspec.structs.replace(chosen, notes=(*chosen.notes, *notes), duplicates=others)


def _differing(left: ServerConfig | None, right: ServerConfig | None) -> list[str]:
    """Variables and headers that the two set to different texts; a reference may well mean the other's text."""
    ours, theirs = _values(left), _values(right)
    return sorted(
        name
        for name in ours.keys() | theirs.keys()
        if ours.get(name) != theirs.get(name) and not _refers(ours.get(name)) and not _refers(theirs.get(name))
    )


def _values(config: ServerConfig | None) -> dict[str, str]:
    return {} if config is None else {**config.env, **config.headers}


def _refers(value: str | None) -> bool:
    return value is not None and bool(expand(value, {}).names)
