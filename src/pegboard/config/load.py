"""Finds, reads, stacks and checks all configuration, and gives one frozen `Config`.

Layers, weakest first: what is built in, the user's file, the project's file, `PEGBOARD_*` variables, flags. Files
named by `--config` or PEGBOARD_CONFIG take the place of the user's and the project's. Every problem of every layer
is found before any is raised. Above: the command line and the engine. Below: the rest of this package.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pegboard.config.check import check_layer, server_names
from pegboard.config.layer import Findings, Layer, Stack
from pegboard.config.model import (
    CallsConfig,
    Config,
    GatewayConfig,
    ProxyConfig,
    RecordConfig,
    SearchConfig,
    ServerSpec,
    SkillRoot,
    SkillsConfig,
    StoreConfig,
    SurfaceConfig,
    ToolsConfig,
)
from pegboard.config.places import expand_home, project_file, user_file, user_folder
from pegboard.config.problems import Problem
from pegboard.config.read import read_layer
from pegboard.config.resolve import anchored, resolve_server, with_defaults
from pegboard.config.variables import override_layers, variable_layers
from pegboard.errors import ConfigError

FILES_VARIABLE = "PEGBOARD_CONFIG"
AGENT_FOLDERS = (".claude/skills", ".agents/skills")
"""Where agents keep skills, in the home folder and in a project."""
PERSONAL = ("proxy",)
"""Tables that a project's file cannot have."""


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    """What configuration amounts to, and all that is wrong with it."""

    config: Config
    problems: tuple[Problem, ...] = ()


def load(
    *,
    files: Sequence[Path] = (),
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    tables: Mapping[str, Any] | None = None,
) -> Config:
    """The configuration as files, variables and flags say, and above all these tables of a program.

    Raises one ConfigError with every problem.
    """
    return _sound(examine(files=files, overrides=overrides, environ=environ, cwd=cwd, tables=tables))


def from_tables(tables: Mapping[str, Any], *, environ: Mapping[str, str] | None = None) -> Config:
    """The configuration as a program says it, without any file; raises one ConfigError with every problem."""
    findings, stack = Findings(), Stack()
    _lay(_program_layer(tables), stack, findings)
    environ = os.environ if environ is None else environ
    config = _config(stack, environ, findings)
    roots = _skill_roots(config.skills, environ, _working_folder())
    config = msgspec.structs.replace(config, skill_roots=roots, warnings=tuple(findings.warnings))
    return _sound(Examination(config=config, problems=_in_order(findings.problems)))


def _program_layer(tables: Mapping[str, Any]) -> Layer:
    return Layer("Pegboard(...)", tables, folder=_working_folder())


def _sound(examination: Examination) -> Config:
    if examination.problems:
        lines = tuple(map(str, examination.problems))
        raise ConfigError("\n".join(lines), problems=lines, hint="`pegboard config schema` lists every key.")
    return examination.config


def examine(
    *,
    files: Sequence[Path] = (),
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    tables: Mapping[str, Any] | None = None,
) -> Examination:
    """As `load`, but the problems are part of the answer."""
    environ = os.environ if environ is None else environ
    folder = Path(cwd or _working_folder()).absolute()
    findings = Findings()
    stack = Stack()
    chosen, project = _chosen(files, environ, folder)
    layers = _file_layers(chosen, project, environ, findings, stack)
    names = tuple(stack.mentions)
    for layer in (*variable_layers(environ, names, folder, findings), *override_layers(overrides, folder, findings)):
        _lay(layer, stack, findings)
    if tables:
        _lay(_program_layer(tables), stack, findings)
    config = _config(stack, environ, findings)
    roots = _skill_roots(config.skills, environ, folder)
    read = tuple(layer.file for layer in layers if layer.file)
    config = msgspec.structs.replace(config, skill_roots=roots, files=read, warnings=tuple(findings.warnings))
    return Examination(config=config, problems=_in_order(findings.problems))


def _in_order(problems: list[Problem]) -> tuple[Problem, ...]:
    """Each once, place by place in the order they were read, and from top to bottom."""
    places = list(dict.fromkeys(problem.where for problem in problems))
    rank = {where: number for number, where in enumerate(places)}
    return tuple(sorted(dict.fromkeys(problems), key=lambda problem: (rank[problem.where], problem.line or 0)))


def _working_folder() -> Path:
    try:
        return Path.cwd()
    except OSError:  # it was deleted under us: there is no project then
        return Path(os.sep)


def _chosen(files: Sequence[Path], environ: Mapping[str, str], cwd: Path) -> tuple[list[Path], Path | None]:
    """The files to read, weakest first, and which of them nobody asked for: it lies in the project.

    Those that are named must exist, the others may.
    """
    named = [str(file) for file in files] or [
        name for name in environ.get(FILES_VARIABLE, "").split(os.pathsep) if name
    ]
    if named:
        return [cwd / expand_home(name, environ) for name in named], None
    user, project = user_file(environ), project_file(cwd)
    found = [user] if os.path.lexists(user) else []
    return ([*found, project], project) if project and project not in found else (found, None)


def _file_layers(
    paths: Iterable[Path], project: Path | None, environ: Mapping[str, str], findings: Findings, stack: Stack
) -> list[Layer]:
    layers = []
    for path in paths:
        layer = read_layer(path, environ, findings)
        if layer is not None:
            if path == project:
                _refuse_personal(layer, environ, findings)
            _lay(layer, stack, findings)
            layers.append(layer)
    return layers


def _refuse_personal(layer: Layer, environ: Mapping[str, str], findings: Findings) -> None:
    """What a repository that someone cloned must not decide: where requests go that carry the user's API keys."""
    for name in [name for name in layer.tables if name in PERSONAL]:
        own = user_file(environ)
        findings.warn(layer, (name,), f"ignored: only your own file may say this, {own}, or one named by --config")
        layer.tables = {key: table for key, table in layer.tables.items() if key != name}


def _lay(layer: Layer, stack: Stack, findings: Findings) -> None:
    stack.lay(layer, check_layer(layer, findings), server_names(layer))


def _config(stack: Stack, environ: Mapping[str, str], findings: Findings) -> Config:
    tools = ToolsConfig(**_section(stack, "tools", environ))
    gateway = GatewayConfig(**_section(stack, "gateway", environ))
    servers = {
        name: resolve_server(name, said, stack.mentions[name], environ, findings)
        for name, said in stack.servers().items()
    }
    servers |= _plugins(tools.plugin_dirs, servers, environ, findings)
    servers = {name: with_defaults(spec, gateway) for name, spec in servers.items()}
    return Config(
        servers=servers,
        tools=tools,
        search=SearchConfig(**_section(stack, "search", environ)),
        surface=SurfaceConfig(**_section(stack, "surface", environ)),
        calls=CallsConfig(**_section(stack, "calls", environ)),
        record=RecordConfig(**_section(stack, "record", environ)),
        skills=SkillsConfig(**_section(stack, "skills", environ)),
        gateway=gateway,
        proxy=ProxyConfig(**_section(stack, "proxy", environ)),
        store=StoreConfig(**_section(stack, "store", environ)),
    )


def _section(stack: Stack, name: str, environ: Mapping[str, str]) -> dict[str, Any]:
    """One table, with its paths made absolute."""
    fields: dict[str, Any] = {}
    for path, said in stack.table(name).items():
        key, value, folder = str(path[0]), said.value, said.layer.folder
        if key in {"plugin_dirs", "roots"}:
            value = tuple(anchored(text, folder, environ) for text in value)
        elif key in {"cache_dir", "state_dir"}:
            value = anchored(value, folder, environ)
        if len(path) > 1:
            fields.setdefault(key, {})[str(path[1])] = value
        else:
            fields[key] = value
    return fields


def _skill_roots(skills: SkillsConfig, environ: Mapping[str, str], cwd: Path) -> tuple[SkillRoot, ...]:
    """Where skills are looked for, weakest first: the user's folders, the project's, those that are named."""
    asked = bool(skills.roots) or skills.agent_folders
    if not (asked if skills.enabled is None else skills.enabled):
        return ()
    found = project_file(cwd)
    project = found.parent if found is not None else cwd
    home = Path(expand_home("~", environ))
    agents = AGENT_FOLDERS if skills.agent_folders else ()
    built_in = (
        *(home / folder for folder in agents),
        user_folder("config", environ) / "skills",
        *(project / folder for folder in agents),
        project / ".pegboard" / "skills",
    )
    named = dict.fromkeys(map(Path, skills.roots))
    # What is both counts where it is named.
    roots = [SkillRoot(path) for path in dict.fromkeys(built_in) if path not in named]
    return (*roots, *(SkillRoot(path, named=True) for path in named))


def _plugins(
    folders: tuple[str, ...], servers: Mapping[str, ServerSpec], environ: Mapping[str, str], findings: Findings
) -> dict[str, ServerSpec]:
    if not folders:
        return {}
    from pegboard.config.plugins import scan

    return scan(folders, servers, environ, findings)
