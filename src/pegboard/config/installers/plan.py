"""What putting Pegboard into one file of a client comes to: which servers move, which stay and why, both new texts.

Pure. Above: `pegboard install`, which shows the plan, and `store.installs`, which writes it. Below: the clients, the
editors and the plan of an import, whose rules for keys and secrets hold here too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from pegboard.config.importers.found import Found, Places
from pegboard.config.importers.gather import gather
from pegboard.config.importers.merge import same_server
from pegboard.config.importers.naming import Keys
from pegboard.config.importers.plan import Plan as ImportPlan
from pegboard.config.importers.plan import plan as plan_import
from pegboard.config.importers.references import unset_variables
from pegboard.config.installers.clients import Launch, Site
from pegboard.config.installers.undo import Change, apply, parse, servers_at
from pegboard.config.model import ServerConfig
from pegboard.config.problems import nearest
from pegboard.config.write import parse_toml
from pegboard.errors import ConfigError, PegboardError

ENTRY_NAME = "pegboard"
ITSELF = "It is Pegboard itself."
# Without these a server that works in its program would not work behind Pegboard.
_NEEDED = {
    "envFile": "its variables come from a file that only the client reads",
    "headersHelper": "its headers come from a program that only the client runs",
}


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """A server that goes behind Pegboard."""

    name: str
    key: str
    is_new: bool
    """False: the pegboard.toml has it already."""
    notes: tuple[str, ...] = ()


class SitePlan(msgspec.Struct, frozen=True, kw_only=True):
    """An install in one file that has not happened yet."""

    site: Site
    before: str | None
    """None: there is no such file."""
    after: str
    change: Change
    moves: tuple[Move, ...]
    stays: dict[str, str]
    """Servers that stay with the client, and why."""
    imported: ImportPlan
    configs: tuple[ServerConfig, ...]
    warnings: tuple[str, ...] = ()

    @property
    def is_needed(self) -> bool:
        """Whether anything is to be done at all."""
        return self.after != (self.before or "")


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the person asked for."""

    launch: Launch
    keep_servers: bool = False
    only: tuple[str, ...] = ()
    hide_secrets: bool = False


def servers_in(site: Site, places: Places) -> tuple[Found, ...]:
    """The servers of one file; a file that cannot be understood is left alone, with words."""
    found = gather((site.source,), places)
    for item in found:
        if not item.name:
            line = f":{item.line}" if item.line else ""
            raise ConfigError(f"{site.file}{line}: {item.problem}", hint="Mend it first. Nothing was changed.")
    return found


def plan_all(
    sites: Sequence[Site], texts: Sequence[str | None], config_text: str, wish: Wish, places: Places
) -> tuple[SitePlan, ...]:
    """What the wish comes to in all these files, whose texts are `texts`; each finds what the one before it added."""
    plans: list[SitePlan] = []
    for site, text in zip(sites, texts, strict=True):
        plans.append(plan(site, text, config_text, wish, places))
        config_text = plans[-1].imported.text
    names = {name for each in plans for name in (*each.change.moved, *each.stays)}
    for name in wish.only:
        if name not in names:
            near = nearest(name, names)
            hint = f"Did you mean {near}?" if near else f"There are {', '.join(sorted(names)) or 'none'}."
            raise PegboardError(f"There is no server named {name!r}.", hint=hint)
    for each in plans:
        for name in set(wish.only) & each.stays.keys():
            raise PegboardError(f"{name} cannot be moved: {each.stays[name]}", hint="Leave it out.")
    return tuple(plans)


def plan(site: Site, text: str | None, config_text: str, wish: Wish, places: Places) -> SitePlan:
    """What the wish comes to in this file, whose text is `text`, with a pegboard.toml of `config_text`."""
    found = servers_in(site, places)
    try:
        document = parse(text or "", site.format)
        table = site.client.table(document)
        entries = servers_at(document, table)
        picked, stays = _sorted_out(found, entries, wish, places.environ)
        moves, imports = _moves(picked, config_text, site.source.program)
        name, entry = _entry(site, found, entries, wish, [move.name for move in moves])
        change = Change(
            format=site.format, table=table, moved=tuple(move.name for move in moves), name=name, entry=entry
        )
        after = apply(text or "", change) if moves or entry is not None else text or ""
    except ConfigError as error:
        raise ConfigError(f"{site.file}: {error.message}", hint=error.hint) from None
    return SitePlan(
        site=site,
        before=text,
        after=after,
        change=change,
        moves=moves,
        stays=stays,
        imported=plan_import(config_text, imports, places.environ, hide_secrets=wish.hide_secrets),
        configs=tuple(item.config for item in found if item.config is not None),
        warnings=_warnings(site, document, name),
    )


def _sorted_out(
    found: Sequence[Found], entries: Mapping[str, Any], wish: Wish, environ: Mapping[str, str]
) -> tuple[list[Found], dict[str, str]]:
    """Those that move, and why the others stay."""
    others = [item for item in found if item.problem != ITSELF]
    picked: list[Found] = []
    stays: dict[str, str] = {}
    for item in others:
        if reason := _reason_to_stay(item, entries.get(item.name), wish, environ):
            stays[item.name] = reason
        else:
            picked.append(item)
    return picked, stays


def _reason_to_stay(item: Found, raw: Any, wish: Wish, environ: Mapping[str, str]) -> str:
    if item.config is None:
        return item.problem
    if wish.keep_servers:
        return "as asked"
    if wish.only:
        return "" if item.name in wish.only else "not asked for"
    if unset := unset_variables(item.config, environ):
        return f"it needs {', '.join(unset)}, which is not set; set it, or name the server with --only"
    lost = [reason for field, reason in _NEEDED.items() if isinstance(raw, dict) and raw.get(field)]
    return f"{lost[0]}; name the server with --only to move it anyway" if lost else ""


def _moves(picked: Sequence[Found], config_text: str, program: str) -> tuple[tuple[Move, ...], list[Found]]:
    """Each server with its key: the one that the pegboard.toml has for it, or one that is free there."""
    known = _configured(config_text)
    keys = Keys(known)
    moves: list[Move] = []
    imports: list[Found] = []
    for item in picked:
        assert item.config is not None  # what has none stays
        same = (key for key, config in known.items() if config is not None and same_server(config, item.config))
        existing = next(same, None)
        key = existing or keys.claim(item.name, program)
        moves.append(Move(name=item.name, key=key, is_new=existing is None, notes=item.notes))
        if existing is None:
            imports.append(msgspec.structs.replace(item, key=key))
    return tuple(moves), imports


def _configured(text: str) -> dict[str, ServerConfig | None]:
    """The servers of a pegboard.toml; None for one that is wrong."""
    servers = parse_toml(text).get("servers")
    return {key: _understood(table) for key, table in servers.items()} if isinstance(servers, dict) else {}


def _understood(table: Any) -> ServerConfig | None:
    try:
        return msgspec.convert(table, ServerConfig)
    except msgspec.ValidationError:
        return None


def _entry(
    site: Site, found: Sequence[Found], entries: Mapping[str, Any], wish: Wish, moved: Sequence[str]
) -> tuple[str, dict[str, Any] | None]:
    """What Pegboard is called in this file, and what is to be written there; None when it is there already."""
    itself = [item.name for item in found if item.problem == ITSELF]
    name = itself[0] if itself else ENTRY_NAME
    if not site.enters:
        return name, None
    if name in entries and name not in moved and not itself:
        raise ConfigError(
            f"Another server is called {name!r} there, and it would stay.", hint="Rename it, or let it be moved too."
        )
    wanted = site.client.entry(wish.launch)
    there = entries.get(name) if itself else None
    if not isinstance(there, dict):
        return name, wanted
    if all(there.get(field) == value for field, value in wanted.items()):
        return name, None
    # What the client keeps in our entry, such as approvals, stays.
    return name, {**there, **wanted}


def _warnings(site: Site, document: Any, name: str) -> tuple[str, ...]:
    *outer, last = site.client.allowed or ("",)
    allowed = servers_at(document, tuple(outer)).get(last)
    if site.enters and isinstance(allowed, list) and allowed and name not in allowed:
        key = ".".join(site.client.allowed)
        return (f"{site.client.title} uses only the servers that `{key}` lists: add {name!r} to it.",)
    return ()
