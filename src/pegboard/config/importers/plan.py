"""What importing the picked servers would do to a file: its new text, what stays out, which secrets are concerned.

Pure. Above: `pegboard import`, which shows the plan or writes it. Below: `write` and `secrets`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from pegboard.config.importers.found import Found
from pegboard.config.importers.naming import skeleton
from pegboard.config.importers.references import unset_variables
from pegboard.config.importers.secrets import mask_secrets, secrets_in, without_secrets
from pegboard.config.model import ServerConfig
from pegboard.config.write import append_servers, parse_toml


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """An import that has not happened yet."""

    servers: dict[str, ServerConfig]
    text: str
    """The whole file afterwards."""
    addition: str
    """What is added at its end, for showing: secrets are masked."""
    skipped: tuple[str, ...]
    """Keys that the file has already."""
    secrets: dict[str, tuple[str, ...]]
    """For each server the places where a secret is copied as plain text."""
    variables: dict[str, tuple[str, ...]]
    """Variables that take the place of secrets, each with where it is used."""
    unset: dict[str, tuple[str, ...]]
    """Variables that the servers refer to and that are not set, each with the servers that need it."""


def configured(text: str) -> frozenset[str]:
    """The servers a file has, by what a hasty reader sees of their keys."""
    servers = parse_toml(text).get("servers")
    return frozenset(map(skeleton, servers)) if isinstance(servers, dict) else frozenset()


def plan(text: str, picked: Iterable[Found], environ: Mapping[str, str], *, hide_secrets: bool = False) -> Plan:
    """What adding these servers to a file of this text comes to."""
    taken = configured(text)
    wanted = {item.key: item.config for item in picked if item.config is not None}
    servers = {key: config for key, config in wanted.items() if skeleton(key) not in taken}
    variables: dict[str, tuple[str, ...]] = {}
    if hide_secrets:
        servers, variables = without_secrets(servers)
    masked = {key: mask_secrets(config) for key, config in servers.items()}
    return Plan(
        servers=servers,
        text=append_servers(text, servers),
        addition=append_servers(text, masked)[len(text) :],
        skipped=tuple(key for key in wanted if key not in servers),
        secrets={key: places for key, config in servers.items() if (places := secrets_in(config))},
        variables=variables,
        unset=_unset(servers, environ),
    )


def _unset(servers: Mapping[str, ServerConfig], environ: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    needed: dict[str, tuple[str, ...]] = {}
    for key, config in servers.items():
        for variable in unset_variables(config, environ):
            needed[variable] = (*needed.get(variable, ()), key)
    return needed
