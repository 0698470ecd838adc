"""The effective configuration in a form people can read, paste and share: secrets are masked.

Pure: takes a `Config`, gives plain values or text. Above: `pegboard config show`. Below: the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from pegboard.config.environment import looks_secret
from pegboard.config.model import Config, ServerSpec
from pegboard.config.problems import key_text, quoted
from pegboard.config.resolve import INHERITED
from pegboard.types import Json

MASK = "***"

_OPTION = re.compile(r"(--?[A-Za-z][\w.-]*)(?:=(.*))?", re.DOTALL)
_USER = re.compile(r"(?<=://)[^/?#\s@]+@")
_PARAMETER = re.compile(r"(?<=[?&])([^=&#]+)=([^&#]*)")
_ADDRESS_START = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")


def masked(config: Config) -> Json:
    """All of it as plain values, without what is secret."""
    return {
        "files": [str(path) for path in config.files],
        "warnings": list(config.warnings),
        "tools": _all_fields(config.tools),
        "search": _all_fields(config.search),
        "surface": _all_fields(config.surface),
        "calls": _all_fields(config.calls),
        "record": _all_fields(config.record),
        "skills": _all_fields(config.skills),
        "gateway": _all_fields(config.gateway),
        "proxy": _all_fields(config.proxy),
        "store": {"cache_dir": str(config.cache_dir), "state_dir": str(config.state_dir)},
        "servers": {name: _server(spec, config) for name, spec in config.servers.items()},
    }


def as_toml(config: Config) -> str:
    """The same as text that TOML can read; what is no configuration stands in comments."""
    plain = masked(config)
    lines = [f"# read: {_comment(path)}" for path in plain["files"]] or ["# no configuration file was found"]
    for name in ("tools", "search", "surface", "calls", "record", "skills", "gateway", "proxy", "store"):
        lines += ["", *_table((name,), plain[name])]
    for name, server in plain["servers"].items():
        origin, problem = server.pop("origin"), server.pop("problem", "")
        lines += ["", f"# from {_comment(origin)}" if origin else "# from flags or variables"]
        if version := server.pop("version", ""):
            lines.append(f"# plug-in version {_comment(version)}")
        if problem:
            lines.append(f"# problem: {_comment(problem)}")
        lines += _table(("servers", name), server)
    return "\n".join(lines)


def _all_fields(table: msgspec.Struct) -> Json:
    """Every key with its value, also where that is the default; lists as lists."""
    return {key: _plain(value) for key, value in msgspec.structs.asdict(table).items()}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _server(spec: ServerSpec, config: Config) -> Json:
    fields: Json = msgspec.to_builtins(spec.config)
    for key in INHERITED:
        if fields.get(key) == getattr(config.gateway, key):
            del fields[key]
    for table in ("env", "headers"):
        if table in fields:
            fields[table] = {name: _masked_pair(spec, table, name, text) for name, text in fields[table].items()}
    if "args" in fields:
        fields["args"] = _masked_args(spec)
    if spec.config.url:
        fields["url"] = _masked_url(spec, spec.config.url)
    about: Json = {"origin": str(spec.origin) if spec.origin else None}
    about |= {"version": spec.version} if spec.version else {}
    about |= {"problem": spec.problem} if spec.problem else {}
    return about | {key: _plain(value) for key, value in fields.items()}


def _masked_pair(spec: ServerSpec, table: str, name: str, text: str) -> str:
    filled_in = key_text((table, name)) in spec.variables
    return MASK if filled_in or looks_secret(name, text) else text


def _masked_args(spec: ServerSpec) -> list[str]:
    shown: list[str] = []
    previous = ""
    for number, text in enumerate(spec.config.args):
        option = _OPTION.fullmatch(text)
        if _filled_from_secret(spec, key_text(("args", number))) or looks_secret(previous, text):
            shown.append(MASK)
        elif option and option[2] and looks_secret(option[1], option[2]):
            shown.append(f"{option[1]}={MASK}")
        else:
            shown.append(_masked_address(text))
        previous = text if option and option[2] is None else ""
    return shown


def _masked_url(spec: ServerSpec, url: str) -> str:
    start = _ADDRESS_START.match(_masked_address(url))
    if start and _filled_from_secret(spec, "url"):
        return f"{start[0]}/{MASK}"
    return _masked_address(url)


def _masked_address(text: str) -> str:
    text = _USER.sub(f"{MASK}@", text)
    return _PARAMETER.sub(lambda pair: f"{pair[1]}={MASK}" if looks_secret(pair[1], pair[2]) else pair[0], text)


def _filled_from_secret(spec: ServerSpec, key: str) -> bool:
    return any(looks_secret(variable) for variable in spec.variables.get(key, ()))


def _table(path: tuple[str, ...], values: Mapping[str, Any]) -> Iterator[str]:
    yield f"[{key_text(path)}]"
    for key, value in values.items():
        if value is not None:
            yield f"{key_text((key,))} = {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return quoted(value).replace("\x7f", "\\u007F")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        inner = ", ".join(f"{key_text((key,))} = {_value(item)}" for key, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)


def _comment(text: str) -> str:
    """On one line, so that it cannot end the comment."""
    return " ".join(quoted(text)[1:-1].split()) if not text.isprintable() else text
