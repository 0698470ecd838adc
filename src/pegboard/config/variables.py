"""The layers above all files: `PEGBOARD_<SECTION>__<KEY>` variables, and `section.key=value` from flags.

Each variable and each flag is a layer of its own, so that a problem names exactly the one to change. Values are
read as TOML where that fits the field, and as plain text otherwise. Above: `load`. Below: `check`, `layer`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pegboard.config.check import ROOT, SECTIONS, check_layer
from pegboard.config.layer import Findings, Layer
from pegboard.config.problems import Problem, nearest

PREFIX = "PEGBOARD_"
_NOT_WORD = re.compile(r"[^A-Z0-9_]")
_TEXT_TABLES = {"env", "headers"}


def variable_layers(
    environ: Mapping[str, str], servers: Collection[str], cwd: Path, findings: Findings
) -> Iterator[Layer]:
    """One layer for every variable that sets a key, by name; one that cannot is reported."""
    for variable in sorted(environ):
        # A name without `__` sets no key: it is some other setting, as PEGBOARD_CONFIG is.
        if variable.startswith(PREFIX) and "__" in variable:
            path = _variable_path(variable, servers, findings)
            if path:
                yield _layer(variable, path, environ[variable], cwd)


def override_layers(overrides: Iterable[str], cwd: Path, findings: Findings) -> Iterator[Layer]:
    """One layer for every `section.key=value`; one that is not that is reported."""
    for override in overrides:
        key, equals, value = override.partition("=")
        where = f"--set {key}"  # without the value, which may be a secret
        path = _dotted(key)
        if equals and len(path) > 1:
            yield _layer(where, path, value, cwd)
        else:
            message = "expected section.key=value, such as gateway.max_starting=8"
            findings.problems.append(Problem(where=where, message=message))


def _layer(where: str, path: tuple[str, ...], text: str, cwd: Path) -> Layer:
    """The value as TOML, unless only the plain text fits."""
    as_toml = Layer(where, _nested(path, _toml_value(text)), folder=cwd)
    as_text = Layer(where, _nested(path, text), folder=cwd)
    return as_toml if _fits(as_toml) or not _fits(as_text) else as_text


def _fits(layer: Layer) -> bool:
    trial = Findings()
    check_layer(layer, trial)
    return not trial.problems


def _nested(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    for key in reversed(path):
        value = {key: value}
    assert isinstance(value, dict)
    return value


def _toml_value(text: str) -> Any:
    try:
        document = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    # A line break in the text could have started another key.
    return document["value"] if len(document) == 1 else text


def _dotted(key: str) -> tuple[str, ...]:
    """`servers."my server".enabled` as TOML reads it; empty when it is no key."""
    try:
        document: Any = tomllib.loads(f"{key} = 0")
    except (ValueError, RecursionError):
        return ()
    path: list[str] = []
    while isinstance(document, dict) and len(document) == 1:
        ((step, document),) = document.items()
        path.append(step)
    return tuple(path) if document == 0 else ()


def _variable_path(variable: str, servers: Collection[str], findings: Findings) -> tuple[str, ...]:
    section, _, rest = variable.removeprefix(PREFIX).partition("__")
    path: tuple[str, ...] = ()
    message = ""
    if section.lower() in SECTIONS:
        path = (section.lower(), rest.lower())
    elif section != "SERVERS":
        near = nearest(section, ROOT)
        there = f"did you mean {PREFIX}{near.upper()}__…?" if near else f"there are {', '.join(ROOT)}"
        message = f"unknown section {section}; {there}"
    else:
        path, message = _server_path(rest, servers)
    if message:
        findings.problems.append(Problem(where=variable, message=message))
    return path


def _server_path(rest: str, servers: Collection[str]) -> tuple[tuple[str, ...], str]:
    """The path that `<NAME>__<KEY>` means, or why it means none. Names may contain `__`: the longest match counts."""
    spelled: dict[str, list[str]] = {}
    for name in servers:
        spelled.setdefault(_as_variable(name), []).append(name)
    fitting = [start for start in spelled if _as_variable(rest).startswith(f"{start}__")]
    if not fitting and _as_variable(rest) in spelled:
        return (), f"names a server but none of its keys; write {PREFIX}SERVERS__{rest}__<KEY>"
    if not fitting:
        name = rest.partition("__")[0]
        near = nearest(name, servers)
        known = f"did you mean {near}?" if near else f"there are {', '.join(servers) or 'none'}"
        return (), f"no configured server is called {name.lower()}; {known}"
    start = max(fitting, key=len)
    if len(spelled[start]) > 1:
        return (), f"this could be any of the servers {', '.join(spelled[start])}; use --set or a file"
    key, _, below = rest[len(start) + 2 :].partition("__")
    key = key.lower()
    if not below:
        return ("servers", spelled[start][0], key), ""
    # Names of variables and headers are the user's own; other tables have lower-case keys.
    return ("servers", spelled[start][0], key, below if key in _TEXT_TABLES else below.lower()), ""


def _as_variable(name: str) -> str:
    return _NOT_WORD.sub("_", name.upper())
