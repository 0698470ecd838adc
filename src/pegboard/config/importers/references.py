"""Other programs' references to variables, folders and prompts, rewritten as Pegboard's `${VAR}`.

What Pegboard has no word for stays as literal text, so that the file it is written to always loads, and a note
says so. Above: the program modules. Below: `expand`, which owns Pegboard's own grammar.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pegboard.config.expand import escape, expand
from pegboard.config.importers.fields import Translate, WrongShape
from pegboard.config.importers.found import Places
from pegboard.config.model import ServerConfig

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OURS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?::-[^{}]*)?", re.DOTALL)
_BRACED = re.compile(r"\$\{([^{}]*)\}|\$\{")
_DOLLAR = re.compile(r"\$\{([^{}]*)\}|\$\{|\$([A-Za-z_][A-Za-z0-9_]*)")
_OPENCODE = re.compile(r"\$\{|\{(env|file):([^{}]+)\}")


def literal(text: str, _notes: list[str]) -> str:
    """For programs that expand nothing: a `${` is meant for the server itself."""
    return escape(text)


def shell_like(text: str, notes: list[str]) -> str:
    """Claude Code: `${VAR}` and `${VAR:-default}`, as we have them."""

    def rewrite(match: re.Match[str]) -> str:
        return match[0] if _is_ours(match[1]) else _unknown(match[0], "Claude Code", notes)

    return _BRACED.sub(rewrite, text)


def dollar(text: str, notes: list[str]) -> str:
    """Gemini CLI: `$VAR` as well as `${VAR}`."""

    def rewrite(match: re.Match[str]) -> str:
        if match[2]:
            return f"${{{match[2]}}}"
        return match[0] if _is_ours(match[1]) else _unknown(match[0], "Gemini CLI", notes)

    return _DOLLAR.sub(rewrite, text)


def opencode(text: str, notes: list[str]) -> str:
    """opencode: `{env:VAR}` and `{file:path}`."""

    def rewrite(match: re.Match[str]) -> str:
        if match[0] == "${":
            return escape(match[0])
        if match[1] == "env" and _NAME.fullmatch(match[2]):
            return f"${{{match[2]}}}"
        return _unknown(match[0], "opencode", notes)

    return _OPENCODE.sub(rewrite, text)


def editor(program: str, places: Places, folder: Path | None, inputs: Mapping[str, Any] | None = None) -> Translate:
    """VS Code and its kin: `${env:VAR}`, `${userHome}`, `${workspaceFolder}`, `${input:id}`."""
    workspace = str(folder) if folder else "."
    separator = "\\" if places.platform == "win32" else "/"
    known = {
        "userHome": str(places.home),
        "workspaceFolder": workspace,
        "workspaceRoot": workspace,
        "cwd": workspace,
        "workspaceFolderBasename": folder.name if folder else "",
        "pathSeparator": separator,
        "/": separator,
    }

    def translate(text: str, notes: list[str]) -> str:
        def rewrite(match: re.Match[str]) -> str:
            inner = match[1] or ""
            kind, _, rest = inner.partition(":")
            if kind == "env" and _is_ours(rest):
                return f"${{{rest}}}"
            if kind == "input" and rest and inputs is not None:
                return _prompted(rest, inputs.get(rest), program, notes)
            if known.get(inner):
                if folder is None and known[inner] == workspace:
                    notes.append(f"`{match[0]}` became `.`, the folder that Pegboard runs in.")
                return escape(known[inner])
            # A plain name is passed on to the server, which often expands it from its own variables.
            return escape(match[0]) if _is_ours(inner) else _unknown(match[0], program, notes)

        return _BRACED.sub(rewrite, text)

    return translate


def reference(name: str) -> str:
    """Pegboard's reference to a variable of this name."""
    if not _NAME.fullmatch(name):
        raise WrongShape(f"{name!r} is not the name of a variable.")
    return f"${{{name}}}"


def unset_variables(config: ServerConfig, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The variables without which the server cannot be used now."""
    texts = (
        config.command,
        *config.args,
        *config.env.values(),
        config.cwd,
        config.url,
        *config.headers.values(),
    )
    return tuple(dict.fromkeys(name for text in texts if text for name in expand(text, environ).unset))


def variable_name(text: str) -> str:
    """A name fit for an environment variable."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_").upper() or "VALUE"
    return f"_{name}" if name[0].isdigit() else name


def _prompted(identifier: str, definition: Any, program: str, notes: list[str]) -> str:
    name = variable_name(identifier)
    about = definition if isinstance(definition, dict) else {}
    what = about.get("description")
    default = about.get("default")
    asked = f" ({what})" if isinstance(what, str) and what else ""
    if isinstance(default, str) and default and not about.get("password") and not set("{}") & set(default):
        notes.append(f"{program} asks for {name}{asked}; Pegboard takes {default!r} unless that variable is set.")
        return f"${{{name}:-{default}}}"
    notes.append(f"{program} asks for {name}{asked}; Pegboard reads it from that variable, so set it.")
    return f"${{{name}}}"


def _is_ours(inner: str | None) -> bool:
    return inner is not None and _OURS.fullmatch(inner) is not None


def _unknown(reference: str, program: str, notes: list[str]) -> str:
    if reference != "${":
        notes.append(f"`{reference}` means something to {program} only; write its value instead.")
    return escape(reference)
