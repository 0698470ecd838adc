"""Homes with settings that a seed decides: what they say, how they are written, where they lie, and what is to change.

The outcome is known from what was written, not from what was read: a case says what its files must say afterwards.
"""

from __future__ import annotations

import copy
import os
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from pegboard.doctor.facts import Fix, ServerEntry, Setting
from tests.unit.doctor.plans import handwriting
from tests.unit.doctor.plans.handwriting import Hand, Keys
from tests.unit.doctor.plans.made import Bench

ENV = ("env", "ENABLE_TOOL_SEARCH")
_NAMES = ["a", "model", "theme", "ключ", "a b", "x.y", 'q"uote', "emoji 😀", "https://x", "#no", "UPPER", "1", "-", "é"]
_TEXTS = [
    "",
    "false",
    "a // b",
    "# c",
    "{",
    "日本語",
    "tab\there",
    "back\\slash",
    "/* x */",
    "'single'",
    "😀",
    "line\ntwo",
]
MODES = [0o600, 0o600, 0o640, 0o644, 0o644, 0o604, 0o660, 0o666, 0o700]
LOCKED = [0o400, 0o444]
_JSON_AGENTS = ["claude-code", "opencode", "kilo", "zed", "cline", "gemini", "cursor", "vscode"]


class File(NamedTuple):
    """One file of a case."""

    path: Path
    format: str
    said: dict[str, Any] | None
    """None: there is no such file."""
    wanted: dict[str, Any]
    """What it must say afterwards."""
    target: Keys
    """What changes; comments that stand at it may go with it."""
    comments: dict[str, Keys]
    hand: Hand | None
    mode: int


class Case(NamedTuple):
    """A home, and what is to be done in it."""

    fix: Fix
    files: tuple[File, ...]
    """Those that must change."""
    is_locked: bool


def case(seed: int, bench: Bench) -> Case:
    """The case of this seed, in this home."""
    rng = Random(seed)
    makers = [_removed, _removed, _threshold, _told, _denied, _unpinned, _off, _off, _off]
    return rng.choice(makers)(rng, bench)


# ── kinds of changes ─────────────────────────────────────────────────────────────────────────────────────────────


def _removed(rng: Random, bench: Bench) -> Case:
    """A variable goes, from one file or from two."""
    files = []
    for _ in range(rng.choice([1, 1, 2])):
        said = _grown(rng, {ENV[:1]: {ENV[1]: rng.choice(["false", "0", False])}})
        wanted = copy.deepcopy(said)
        del wanted["env"][ENV[1]]
        files.append(_put(rng, bench, said, wanted, ENV))
    settings = tuple(_setting(each.path) for each in files)
    return _case(Fix(kind="defer-enable", agent="claude-code", settings=settings), files)


def _threshold(rng: Random, bench: Bench) -> Case:
    said = _grown(rng, {ENV[:1]: {ENV[1]: rng.choice(["auto:40", "auto:7"])}})
    wanted = copy.deepcopy(said)
    wanted["env"][ENV[1]] = "auto:3"
    file = _put(rng, bench, said, wanted, ENV)
    fix = Fix(kind="defer-threshold", agent="claude-code", settings=(_setting(file.path),), value="auto:3")
    return _case(fix, [file])


def _told(rng: Random, bench: Bench) -> Case:
    """A variable comes, into a file that may not even be there."""
    said = rng.choice([None, {}, _grown(rng, {}), _grown(rng, {ENV[:1]: {}}), _grown(rng, {ENV[:1]: {"A": "1"}})])
    wanted = copy.deepcopy(said or {})
    wanted.setdefault("env", {})[ENV[1]] = "true"
    file = _put(rng, bench, said, wanted, ENV)
    fix = Fix(kind="defer-enable", agent="claude-code", settings=(_setting(file.path),), value="true")
    return _case(fix, [file])


def _denied(rng: Random, bench: Bench) -> Case:
    """A rule goes from a list, which only JSON has."""
    others = [f"Bash(rm {number}:*)" for number in range(rng.randrange(4))]
    rules = [*others, *["ToolSearch"] * rng.choice([1, 1, 2])]
    rng.shuffle(rules)
    said = _grown(rng, {("permissions",): {"deny": rules, "allow": ["Read", "ToolSearch"]}})
    wanted = copy.deepcopy(said)
    wanted["permissions"]["deny"] = [rule for rule in rules if rule != "ToolSearch"]
    file = _put(rng, bench, said, wanted, ("permissions", "deny", "ToolSearch"), forms=["json", "jsonc"])
    where = Setting(name="permissions.deny", value="ToolSearch", file=file.path, key=("permissions", "deny"))
    return _case(Fix(kind="defer-enable", agent="claude-code", settings=(where,)), [file])


def _unpinned(rng: Random, bench: Bench) -> Case:
    key = rng.choice([("mcpServers", "gh"), ("projects", "/h/a b", "mcpServers", "gh")])
    is_removed = rng.random() < 0.6
    entry = _entry(rng, {"alwaysLoad": True} if is_removed or rng.random() < 0.3 else {})
    said = _grown(rng, {key: entry, (*key[:-1], "other"): _entry(rng, {})})
    wanted = copy.deepcopy(said)
    if is_removed:
        del _at(wanted, key)["alwaysLoad"]
    else:
        _at(wanted, key)["alwaysLoad"] = False
    file = _put(rng, bench, said, wanted, (*key, "alwaysLoad"))
    value = "" if is_removed else "false"
    servers = (ServerEntry(agent="claude-code", name="gh", file=file.path, scope="user", key=key),)
    return _case(Fix(kind="defer-alwaysload", agent="claude-code", servers=servers, value=value), [file])


def _off(rng: Random, bench: Bench) -> Case:
    """A server is turned off, in the way of its agent."""
    agent: Any = rng.choice([*_JSON_AGENTS, "codex", "codex"])
    name = rng.choice(["gh", "my server", "a.b", "ü"])
    table = {"codex": "mcp_servers", "opencode": "mcp", "kilo": "mcp", "zed": "context_servers", "vscode": "servers"}
    key: Keys = (table.get(agent, "mcpServers"), name)
    said = _grown(rng, {key: _entry(rng, {}), (key[0], "other"): _entry(rng, {})})
    wanted = copy.deepcopy(said)
    target: Keys = key
    if agent in ("codex", "opencode", "kilo", "zed"):
        target, _at(wanted, key)["enabled"] = (*key, "enabled"), False
    elif agent == "cline":
        target, _at(wanted, key)["disabled"] = (*key, "disabled"), True
    elif agent == "gemini":
        target = ("mcp", "excluded")
        wanted.setdefault("mcp", {}).setdefault("excluded", []).append(name)
    else:
        del _at(wanted, key[:-1])[name]
    forms = {"codex": ["toml"], "gemini": ["json", "jsonc"], "opencode": ["json", "jsonc", "yaml"]}
    file = _put(rng, bench, said, wanted, target, forms=forms.get(agent, ["json", "jsonc"]))
    servers = (ServerEntry(agent=agent, name=name, file=file.path, scope="user", key=key),)
    return _case(Fix(kind="server-disable", agent=agent, servers=servers), [file])


def _case(fix: Fix, files: list[File]) -> Case:
    return Case(fix, tuple(files), any(each.said is not None and each.mode in LOCKED for each in files))


def _setting(file: Path) -> Setting:
    return Setting(name=ENV[1], value="false", file=file, scope="user", key=ENV)


# ── what files say ───────────────────────────────────────────────────────────────────────────────────────────────


def _grown(rng: Random, wanted: dict[Keys, dict[str, Any]]) -> dict[str, Any]:
    """A document that has these tables, among others, in any order."""
    document: dict[str, Any] = {name: _value(rng, 0) for name in rng.sample(_NAMES, rng.randrange(5))}
    for keys, table in wanted.items():
        holder = document
        for key in keys[:-1]:
            holder = holder.setdefault(key, {})
        holder[keys[-1]] = _mixed(rng, {**({"A": "1", "ПУТЬ": "/x"} if rng.random() < 0.6 else {}), **table})
    return _mixed(rng, document)


def _entry(rng: Random, more: dict[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {"command": "npx", "args": ["-y", "x"][: rng.randrange(3)], **more}
    if rng.random() < 0.5:
        entry["env"] = {"TOKEN": "s3cret # not a comment"}
    return _mixed(rng, entry)


def _mixed(rng: Random, table: dict[str, Any]) -> dict[str, Any]:
    names = list(table)
    rng.shuffle(names)
    return {name: table[name] for name in names}


def _value(rng: Random, depth: int) -> Any:
    draw = rng.random()
    if depth < 2 and draw < 0.25:
        return {name: _value(rng, depth + 1) for name in rng.sample(_NAMES, rng.randrange(4))}
    if draw < 0.4:
        return [rng.choice(_TEXTS) for _ in range(rng.randrange(4))]
    return rng.choice([rng.choice(_TEXTS), rng.choice(_TEXTS), True, False, 0, -7, 2.5, 10**15])


def _at(document: dict[str, Any], keys: Keys) -> dict[str, Any]:
    for key in keys:
        document = document[key]
    return document


# ── where they lie ───────────────────────────────────────────────────────────────────────────────────────────────


def _put(
    rng: Random,
    bench: Bench,
    said: dict[str, Any] | None,
    wanted: dict[str, Any],
    target: Keys,
    forms: list[str] | None = None,
) -> File:
    form = rng.choice(forms or ["json", "jsonc", "jsonc", "toml", "yaml"])
    folder = bench.home / f"f{rng.randrange(10**6)}"
    path = folder / f".s.{'json' if form == 'jsonc' else form}"
    mode = rng.choice(LOCKED) if rng.random() < 0.04 else rng.choice(MODES)
    if said is None:
        _lead_nowhere(rng, path)
        return File(path, form, None, wanted, target, {}, None, mode)
    text, comments, hand = _written(said, rng, form)
    if not said and rng.random() < 0.7:
        text, comments = rng.choice(["", "", "\ufeff", "\n", " \n\t\n"[: 2 if form == "yaml" else 4]]), {}
    real = _lead_to(rng, bench, path)
    real.parent.mkdir(parents=True, exist_ok=True)
    real.write_bytes(text.encode())
    real.chmod(mode)
    return File(path, form, said, wanted, target, comments, hand, mode)


def _written(said: dict[str, Any], rng: Random, form: str) -> tuple[str, dict[str, Keys], Hand]:
    if form == "toml":
        return handwriting.as_toml(said, rng)
    if form == "yaml":
        return handwriting.as_yaml(said, rng)
    return handwriting.as_json(said, rng, comments=form == "jsonc")


def _lead_to(rng: Random, bench: Bench, path: Path) -> Path:
    """Where the bytes go, so that the path leads to them: itself, or behind links."""
    real = bench.home / "dotfiles" / f"{rng.randrange(10**6)}{path.suffix}"
    way = rng.choice(["plain", "plain", "plain", "link", "relative", "chain", "folder"])
    if way == "plain":
        return path
    if way == "folder":
        (bench.home / "real" / path.parent.name).mkdir(parents=True)
        path.parent.symlink_to(bench.home / "real" / path.parent.name)
        return path
    path.parent.mkdir()
    if way == "chain":
        middle = path.with_name("middle")
        middle.symlink_to(real)
        path.symlink_to("middle")
    else:
        path.symlink_to(os.path.relpath(real, path.parent) if way == "relative" else real)
    return real


def _lead_nowhere(rng: Random, path: Path) -> None:
    """No such file; perhaps no such folder, perhaps a link to nothing."""
    way = rng.choice(["nothing", "folder", "dangling", "dangling in no folder"])
    if way != "nothing":
        path.parent.mkdir()
    if way.startswith("dangling"):
        path.symlink_to(path.parent / ("sub/gone.json" if way.endswith("folder") else "gone.json"))
