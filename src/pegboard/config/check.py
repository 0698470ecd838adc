"""Checks one layer against the model: every key, every type, every value, each with its exact path.

msgspec decides whether a value fits its field; the words for what does not fit are ours, because a person has to
mend it. Nothing here stops at the first problem. Above: `load` and `plugins`. Below: the model.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec

from pegboard.config.layer import Findings, Layer
from pegboard.config.model import (
    CallsConfig,
    GatewayConfig,
    ProxyConfig,
    RecordConfig,
    Requires,
    SearchConfig,
    ServerConfig,
    SkillsConfig,
    StoreConfig,
    SurfaceConfig,
    Table,
    ToolsConfig,
)
from pegboard.config.problems import SHOWN, KeyPath, quoted, suggestion

SECTIONS: dict[str, type[Table]] = {
    "tools": ToolsConfig,
    "search": SearchConfig,
    "surface": SurfaceConfig,
    "calls": CallsConfig,
    "record": RecordConfig,
    "skills": SkillsConfig,
    "gateway": GatewayConfig,
    "proxy": ProxyConfig,
    "store": StoreConfig,
}
ROOT = (*SECTIONS, "servers")

Report = Callable[[KeyPath, str], None]
Leaf = tuple[KeyPath, Any]

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UPSTREAM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s]+")


def check_layer(layer: Layer, findings: Findings) -> list[Leaf]:
    """The values of the layer that fit, one per leaf; what does not fit is reported."""
    report = functools.partial(findings.report, layer)
    leaves: list[Leaf] = []
    for name, raw in layer.tables.items():
        if name == "servers":
            leaves += _servers(raw, report)
        elif name in SECTIONS:
            leaves += check_table(raw, SECTIONS[name], (name,), report)
        else:
            known = suggestion(name, ROOT, otherwise=f"; there are {', '.join(ROOT)}")
            report((name,), f"unknown key{known}")
    return leaves


def server_names(layer: Layer) -> tuple[str, ...]:
    """The servers a layer speaks of."""
    servers = layer.tables.get("servers")
    return tuple(name for name in servers if name.strip()) if isinstance(servers, dict) else ()


def check_table(raw: Any, table: type[Table], path: KeyPath, report: Report) -> Iterator[Leaf]:
    """The leaves of one table that fit its struct."""
    if not isinstance(raw, Mapping):
        report(path, f"expected a table, got {kind_of(raw)}")
        return
    fields = fields_of(table)
    unknown = [key for key in raw if key not in fields]
    if len(unknown) > SHOWN:
        report(path, f"{len(unknown)} unknown keys, of which the first {SHOWN} are listed")
    for key in unknown[:SHOWN]:
        report((*path, key), "unknown key" + suggestion(key, fields, otherwise=_one_of(fields)))
    for key in raw:
        if key in fields:
            yield from _field(fields[key], raw[key], (*path, key), report)


def fields_of(table: type[Table]) -> Mapping[str, Any]:
    """The fields of a table and their types."""
    return _fields(table)


@functools.cache
def _fields(table: type[Table]) -> Mapping[str, Any]:
    return {field.name: field.type for field in msgspec.structs.fields(table)}


def _one_of(fields: Mapping[str, Any]) -> str:
    return f"; there are {', '.join(sorted(fields))}"


def _servers(raw: Any, report: Report) -> Iterator[Leaf]:
    if not isinstance(raw, Mapping):
        report(("servers",), f"expected tables such as [servers.github], got {kind_of(raw)}")
        return
    for name, entry in raw.items():
        if name.strip():
            yield from check_table(entry, ServerConfig, ("servers", name), report)
        else:
            report(("servers", name), "a server needs a name")


def _field(annotation: Any, value: Any, path: KeyPath, report: Report) -> Iterator[Leaf]:
    options = _options(annotation)
    if Requires in options:
        yield from check_table(value, Requires, path, report)
    elif any(get_origin(option) is dict for option in options):
        yield from _text_map(value, path, report)
    elif any(get_origin(option) is tuple for option in options) and isinstance(value, list | tuple):
        yield from _texts(value, path, report)
    else:
        yield from _scalar(annotation, options, value, path, report)


def _text_map(value: Any, path: KeyPath, report: Report) -> Iterator[Leaf]:
    if not isinstance(value, Mapping):
        report(path, f"expected a table of strings, got {kind_of(value)}")
        return
    for key, item in value.items():
        wrong = _wrong_name(str(path[-1]), key) or _wrong_text(item, ())
        if not wrong and path == ("proxy", "upstreams"):
            wrong = wrong_upstream(item)
        if wrong:
            report((*path, key), wrong)
        else:
            yield (*path, key), item


def _texts(value: list[Any] | tuple[Any, ...], path: KeyPath, report: Report) -> Iterator[Leaf]:
    wrong = [(number, _wrong_text(item, path)) for number, item in enumerate(value)]
    for number, message in wrong:
        if message:
            report((*path, number), message)
    if not any(message for _, message in wrong):
        yield path, tuple(value)


def _scalar(annotation: Any, options: tuple[Any, ...], value: Any, path: KeyPath, report: Report) -> Iterator[Leaf]:
    try:
        fitting = msgspec.convert(value, annotation)
    except msgspec.ValidationError:
        report(path, _misfit(options, value))
        return
    wrong = ""
    if isinstance(fitting, str):
        wrong = _wrong_text(fitting, path)
    elif isinstance(fitting, float) and not math.isfinite(fitting):
        wrong = "expected a finite number"
    elif fitting is None:
        wrong = _misfit(options, value)
    if wrong:
        report(path, wrong)
    else:
        yield path, fitting


def _wrong_text(value: Any, path: KeyPath) -> str:
    """What is wrong with a string (in a list or alone); its field decides which strings are possible."""
    if not isinstance(value, str):
        return f"expected a string, got {kind_of(value)}"
    if "\0" in value:
        return "a string here cannot contain the character NUL"
    rule = _RULES.get(path[1:] if path[:1] in _WITH_RULES else path[2:]) if path else None
    return rule(value) if rule else ""


def _wrong_glob(value: str) -> str:
    if not value.strip():
        return "an empty pattern matches no tool"
    opened = value.find("[")
    # As fnmatch reads it: a `]` right after the opening (or after `[!`) is a member of the set, not its end.
    if opened >= 0 and value.find("]", opened + (3 if value[opened + 1 : opened + 2] == "!" else 2)) < 0:
        return f"the [ in pattern {quoted(value)} is never closed; a literal [ is written [[]"
    return ""


def _wrong_address(value: str) -> str:
    return "" if _ADDRESS.match(value) else f"expected an address such as https://example.org, got {quoted(value)}"


def _not_blank(value: str) -> str:
    return "" if value.strip() else "must not be empty"


def _wrong_listen(value: str) -> str:
    host, _, port = value.rpartition(":")
    # Without a host it would listen on every network.
    fits = host.strip("[]") and port.isdecimal() and int(port) < 65536
    return "" if fits else f"expected a host and a port, as in 127.0.0.1:8722, got {quoted(value)}"


_WITH_RULES = {("tools",), ("skills",), ("proxy",)}
_RULES: dict[KeyPath, Callable[[str], str]] = {
    ("deny",): _wrong_glob,
    ("roots",): _not_blank,
    ("listen",): _wrong_listen,
    ("keep",): _wrong_glob,
    ("deny_models",): _wrong_glob,
    ("include",): _wrong_glob,
    ("exclude",): _wrong_glob,
    ("command",): _not_blank,
    ("url",): _not_blank,
    ("cwd",): _not_blank,
    ("requires", "url"): _wrong_address,
    ("requires", "env"): _not_blank,
    ("requires", "command"): _not_blank,
}


def _wrong_name(table: str, key: str) -> str:
    if table == "env" and (not key or "=" in key or "\0" in key):
        return "not a name an environment variable can have"
    if table == "upstreams" and not _UPSTREAM_NAME.fullmatch(key):
        return "not a name that can stand in an address: letters, digits, `.`, `_` and `-`, a letter or digit first"
    if table == "headers" and not _HEADER_NAME.fullmatch(key):
        return "not a name an HTTP header can have"
    return ""


def wrong_upstream(address: str) -> str:
    """What is wrong with an address that requests with API keys are sent to; empty when nothing is."""
    if not _ADDRESS.match(address):
        return f"expected an address such as https://api.example.org, got {quoted(address)}"
    from urllib.parse import urlsplit

    from pegboard.wire.admission import is_loopback

    try:
        parts = urlsplit(address)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return f"not an address: {quoted(address)}"
    if parts.query or parts.fragment or parts.username is not None:
        return "an address here has no user, no query and no fragment; keys stay with the agent"
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
        return "must begin with https:// unless it is on this machine: your API keys are sent there"
    return ""


def _misfit(options: tuple[Any, ...], value: Any) -> str:
    words = " or ".join(_expected(option) for option in options)
    if len(options) == 1:
        option = options[0]
        base = _base(option)
        if get_origin(base) is Literal and isinstance(value, str):
            allowed = get_args(base)
            return f"expected {words}, got {quoted(value)}" + suggestion(value, allowed)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if number and base in {int, float} and (base is float or isinstance(value, int)):
            return f"must be {_bounds(option)}, got {value}"
    return f"expected {words}, got {kind_of(value)}"


def _options(annotation: Any) -> tuple[Any, ...]:
    """What a field may hold besides nothing: the members of a union, or the one type."""
    while get_origin(annotation) is Annotated and not _is_bounded(annotation):
        annotation = get_args(annotation)[0]
    members = get_args(annotation) if NoneType in get_args(annotation) else (annotation,)
    return tuple(member for member in members if member is not NoneType)


def _is_bounded(annotation: Any) -> bool:
    return bool(_bounds(annotation))


def _base(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _expected(option: Any) -> str:
    base = _base(option)
    if get_origin(base) is Literal:
        return "one of " + ", ".join(get_args(base))
    if get_origin(base) is tuple:
        return "a list of strings"
    words = {str: "a string", bool: "true or false", int: "a whole number", float: "a number"}
    return words.get(base, "another value")


def _bounds(annotation: Any) -> str:
    if get_origin(annotation) is not Annotated:
        return ""
    words = []
    for meta in annotation.__metadata__:
        words += [f"greater than {meta.gt}"] if meta.gt is not None else []
        words += [f"at least {meta.ge}"] if meta.ge is not None else []
        words += [f"at most {meta.le}"] if meta.le is not None else []
    return " and ".join(words)


def kind_of(value: Any) -> str:
    """What a value of a file is, in words."""
    if isinstance(value, bool):
        return "true" if value else "false"
    kinds = {str: "a string", int: "a whole number", float: "a number", dict: "a table", list: "a list"}
    return "null" if value is None else kinds.get(type(value), "a date or time")
