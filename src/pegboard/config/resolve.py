"""Turns what all layers say of a server into one that can be used: variables filled in, paths anchored, sense made.

What is wrong in Pegboard's own files is a problem of the configuration; what depends on the environment, or stands
in another program's file, is a fault of that server alone. Pure but for `~user`. Above: `load`, `plugins`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from pegboard.config.expand import Expansion, Malformed, expand
from pegboard.config.layer import Findings, Layer, Said
from pegboard.config.model import GatewayConfig, Requires, ServerConfig, ServerSpec
from pegboard.config.places import expand_home
from pegboard.config.problems import KeyPath, key_text, quoted, summary

EXPANDED = ("command", "args", "env", "cwd", "url", "headers")
INHERITED = ("start_timeout", "call_timeout", "idle_timeout", "max_result_bytes")

_HTTP = re.compile(
    r"https?://(?:[^/?#\s@]*@)?(?:\[[0-9a-f:.%]+\]|[^/?#\s@:\[\]]+)(?::\d{1,5})?(?:[/?#]\S*)?", re.IGNORECASE
)
_BREAKS = re.compile(r"[\r\n]")
_WITHOUT_COMMAND = ("args", "env", "cwd", "inherit_env")


def resolve_server(
    name: str, said: Mapping[KeyPath, Said], mentions: list[Layer], environ: Mapping[str, str], findings: Findings
) -> ServerSpec:
    """The server as it will be used; what makes it unusable is in `problem`."""
    server = _Server(name, said, mentions, environ, findings)
    fields = {path: server.value(path) for path in said}
    server.check_reach(fields)
    config = _config(fields)
    problem = summary([*findings.faults.get(name, ()), *server.faults])
    if problem and not config.enabled:
        findings.warnings.append(f"{key_text(('servers', name))} is disabled, and could not be used: {problem}")
        problem = ""
    return ServerSpec(name=name, config=config, origin=server.origin(), problem=problem, variables=server.variables)


def with_defaults(spec: ServerSpec, gateway: GatewayConfig) -> ServerSpec:
    """The server with the gateway's limits where it has none of its own."""
    missing = {key: getattr(gateway, key) for key in INHERITED if getattr(spec.config, key) is None}
    return msgspec.structs.replace(spec, config=msgspec.structs.replace(spec.config, **missing))


def anchored(text: str, folder: Path, environ: Mapping[str, str]) -> str:
    """A path as an absolute one: `~` is the home folder, and a relative path starts at `folder`."""
    return str(folder / expand_home(text, environ))


def _config(fields: Mapping[KeyPath, Any]) -> ServerConfig:
    tables: dict[str, Any] = {}
    for path, value in fields.items():
        if len(path) == 1:
            tables[str(path[0])] = value
        else:
            tables.setdefault(str(path[0]), {})[path[1]] = value
    if "requires" in tables:
        tables["requires"] = Requires(**tables["requires"])
    return ServerConfig(**tables)


class _Server:
    """One server on its way from what was said to what is meant."""

    def __init__(
        self,
        name: str,
        said: Mapping[KeyPath, Said],
        mentions: list[Layer],
        environ: Mapping[str, str],
        findings: Findings,
    ) -> None:
        self.name = name
        self.said = said
        self.mentions = mentions
        self.environ = environ
        self.findings = findings
        self.variables: dict[str, tuple[str, ...]] = {}
        self.faults: list[str] = []
        enabled = said.get(("enabled",))
        self.enabled = enabled is None or bool(enabled.value)

    def origin(self) -> Path | None:
        """The file that says how the server is reached, or the strongest that speaks of it."""
        reach = [said.layer for key in ("url", "command") if (said := self.said.get((key,)))]
        return next((layer.file for layer in (*reach, *reversed(self.mentions)) if layer.file), None)

    def value(self, path: KeyPath) -> Any:
        """The value with its variables filled in and its path anchored."""
        value, layer = self.said[path].value, self.said[path].layer
        if path[0] not in EXPANDED:
            return value
        if isinstance(value, tuple):
            return tuple(self._expanded(text, (*path, number), layer) for number, text in enumerate(value))
        text = self._expanded(value, path, layer)
        if path == ("cwd",):
            return anchored(text, layer.folder, self.environ)
        if path == ("command",):
            text = expand_home(text, self.environ)
            return anchored(text, layer.folder, self.environ) if text.startswith(("./", "../")) else text
        return text

    def _expanded(self, text: str, path: KeyPath, layer: Layer) -> str:
        try:
            expansion = expand(text, self.environ, layer.known, editors=layer.foreign)
        except Malformed as error:
            self.findings.report(layer, ("servers", self.name, *path), str(error))
            return text
        if expansion.names:
            self.variables[key_text(path)] = expansion.names
        self._check_expansion(expansion, path, layer)
        return expansion.text

    def _check_expansion(self, expansion: Expansion, path: KeyPath, layer: Layer) -> None:
        for variable in expansion.unset:
            if self.enabled:
                self._fault(f"environment variable {variable} is not set", path, layer)
        wrong = "\0" in expansion.text or (path[0] == "headers" and bool(_BREAKS.search(expansion.text)))
        if wrong and expansion.names:
            self._fault(f"{' or '.join(expansion.names)} has a line break or NUL in it", path, layer)
        elif wrong:
            self._report(path, "an HTTP header cannot contain a line break")
        if path == ("url",) and not expansion.unset and not _HTTP.fullmatch(expansion.text):
            self._report_address(expansion, layer)

    def _report_address(self, expansion: Expansion, layer: Layer) -> None:
        if layer.foreign and self.findings.faults.get(self.name):
            return  # a transport that Pegboard does not speak has an address of its own kind
        message = "expected an address such as https://example.org/mcp"
        if not expansion.names:
            self._report(("url",), f"{message}, got {quoted(expansion.text)}")
            return
        # What the environment says today must not take the other servers along, nor be shown: it may be a secret.
        message += f", which it is not with {' and '.join(expansion.names)} filled in"
        self.faults.append(str(layer.problem(("servers", self.name, "url"), message)))

    def _fault(self, what: str, path: KeyPath, layer: Layer) -> None:
        whole: KeyPath = ("servers", self.name, *path)
        line = layer.line(whole)
        place = layer.where if line is None else f"{layer.where}:{line}"
        self.faults.append(f"{what}; {key_text(layer.original(whole))} in {place} needs it")

    def check_reach(self, fields: Mapping[KeyPath, Any]) -> None:
        """Exactly one of command and url, and a transport that fits it."""
        has_command, has_url = ("command",) in fields, ("url",) in fields
        transport = fields.get(("transport",))
        if has_command and has_url:
            other = self.said["command",].layer
            place = "" if other is self.said["url",].layer else f" ({other.where} says command)"
            self._report(("url",), f"a server has a command or a url, not both{place}")
        elif not has_command and not has_url:
            self._report_unreachable()
        elif transport == "stdio" and not has_command:
            self._report(("transport",), "stdio needs a command, but the server has a url")
        elif transport in {"http", "sse"} and not has_url:
            self._report(("transport",), f"{transport} needs a url, but the server has a command")
        else:
            self._warn_idle(_WITHOUT_COMMAND if has_url else ("headers",), "url" if has_url else "command")

    def _report_unreachable(self) -> None:
        """Neither command nor url; nothing is said when a misspelt key already explains it."""
        key = key_text(("servers", self.name))
        told = any(problem.key == key or problem.key.startswith(f"{key}.") for problem in self.findings.problems)
        if told or self.findings.faults.get(self.name):
            return
        path: KeyPath = ("servers", self.name)
        self.findings.report(self.mentions[-1], path, "needs a command (a local server) or a url (a remote one)")

    def _report(self, path: KeyPath, message: str) -> None:
        self.findings.report(self.said[path].layer, ("servers", self.name, *path), message)

    def _warn_idle(self, keys: tuple[str, ...], reach: str) -> None:
        for path, said in self.said.items():
            if path[0] in keys and len(path) == 1 + (path[0] in {"env", "headers"}) and not said.layer.foreign:
                message = f"has no effect on a server that has a {reach}"
                self.findings.warn(said.layer, ("servers", self.name, *path), message)
