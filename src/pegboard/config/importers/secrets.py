"""Values of imported servers that look like secrets: where they are, and how to write the servers without them.

Above: `pegboard import`. Below: `looks_secret`, which decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

import msgspec

from pegboard.config.environment import looks_secret
from pegboard.config.expand import expand
from pegboard.config.importers.references import variable_name
from pegboard.config.model import ServerConfig

MASK = "***"

Replace = Callable[[str, str, str], str]
"""Where a value is (`env`, `headers`, `args` or `url`), its name and the value; gives what is written instead."""

_SCHEME = re.compile(r"(?i:bearer|basic|token)\s+")
# An address is not a name and its value, though it too has a colon.
_NAMED = re.compile(r"(-{0,2}[A-Za-z][\w.-]*)(?:=|:(?!//)\s*)(?:(?i:bearer|basic|token)\s+)?(?=\S)")
_QUERY = re.compile(r"([?&])([^=&#]+)=([^&#]+)")
_PASSWORD = re.compile(r"(://[^/?#\s@:]*:)([^/?#\s@]+)(?=@)")


def secrets_in(config: ServerConfig) -> tuple[str, ...]:
    """The places that hold a secret as plain text, such as `env.GITHUB_TOKEN`."""
    found: list[str] = []

    def note(place: str, name: str, value: str) -> str:
        found.append(f"{place}.{name}" if name else place)
        return value

    _rewritten(config, note)
    return tuple(dict.fromkeys(found))


def secret_values(config: ServerConfig) -> tuple[str, ...]:
    """The secrets themselves, so that they can be kept off the screen."""
    found: list[str] = []

    def note(_place: str, _name: str, value: str) -> str:
        found.append(value)
        return value

    _rewritten(config, note)
    return tuple(dict.fromkeys(found))


def masked(config: ServerConfig) -> ServerConfig:
    """For showing: every literal value of `env` and `headers` hidden; references say nothing and stay."""
    return msgspec.structs.replace(config, env=_masked(config.env), headers=_masked(config.headers))


def mask_secrets(config: ServerConfig) -> ServerConfig:
    """For showing what would be written: only what looks like a secret in `env` and `headers` is hidden."""

    def hide(place: str, _name: str, value: str) -> str:
        return MASK if place in {"env", "headers"} else value

    return _rewritten(config, hide)


def without_secrets(servers: Mapping[str, ServerConfig]) -> tuple[dict[str, ServerConfig], dict[str, tuple[str, ...]]]:
    """The servers with `${NAME}` in place of every secret, and for each variable to set where it is used."""
    values: dict[str, str] = {}
    used: dict[str, list[str]] = {}

    def replacer(key: str) -> Replace:
        def replace(place: str, name: str, value: str) -> str:
            variable = _variable(key, place, name, value, values)
            values[variable] = value
            used.setdefault(variable, []).append(f"{key}: {place}.{name}" if name else f"{key}: {place}")
            return f"${{{variable}}}"

        return replace

    written = {key: _rewritten(config, replacer(key)) for key, config in servers.items()}
    return written, {variable: tuple(places) for variable, places in used.items()}


def _variable(key: str, place: str, name: str, value: str, values: Mapping[str, str]) -> str:
    """A variable that is free or has this very value: two accounts must not end up with one token."""
    own = variable_name(f"{key}_{name or place}")
    candidates = [variable_name(name), own] if place == "env" else [own]
    candidates += [f"{own}_{number}" for number in range(2, len(values) + 3)]
    return next(variable for variable in candidates if values.get(variable, value) == value)


def _rewritten(config: ServerConfig, replace: Replace) -> ServerConfig:
    return msgspec.structs.replace(
        config,
        env={name: _pair("env", name, value, replace) for name, value in config.env.items()},
        headers={name: _pair("headers", name, value, replace) for name, value in config.headers.items()},
        args=tuple(_arguments(config.args, replace)),
        url=None if config.url is None else _address(config.url, replace),
    )


def _pair(place: str, name: str, value: str, replace: Replace) -> str:
    scheme = _SCHEME.match(value) if place == "headers" else None
    start = scheme.end() if scheme else 0
    secret = _is_secret(name, value) or (start > 0 and _is_secret(name, value[start:]))
    return value[:start] + replace(place, name, value[start:]) if secret else value


def _arguments(args: tuple[str, ...], replace: Replace) -> Iterator[str]:
    """`--token=…`, `--token …`, `TOKEN=…`, `Authorization: …`, and what is a secret by its look alone."""
    flag = ""
    for word in args:
        named = _NAMED.match(word)
        option = named[1].lstrip("-") if named else flag
        start = named.end() if named else 0
        is_flag = word.startswith("-") and named is None
        if not is_flag and _is_secret(option, word[start:]):
            yield word[:start] + replace("args", option, word[start:])
        else:
            yield word
        flag = word.lstrip("-") if is_flag else ""


def _address(url: str, replace: Replace) -> str:
    def parameter(match: re.Match[str]) -> str:
        mark, name, value = match.groups()
        return f"{mark}{name}={replace('url', name, value)}" if _is_secret(name, value) else match[0]

    def password(match: re.Match[str]) -> str:
        return match[1] + replace("url", "password", match[2]) if _is_secret("password", match[2]) else match[0]

    return _PASSWORD.sub(password, _QUERY.sub(parameter, url))


def _is_secret(name: str, value: str) -> bool:
    """A reference is no secret: it says where one is."""
    return bool(value) and looks_secret(name, value) and not expand(value, {}).names


def _masked(values: Mapping[str, str]) -> dict[str, str]:
    return {name: value if _is_reference(value) else MASK for name, value in values.items()}


def _is_reference(value: str) -> bool:
    scheme = _SCHEME.match(value)
    return re.fullmatch(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}", value[scheme.end() :] if scheme else value) is not None
