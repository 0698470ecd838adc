"""Which keys of which files a fix comes to: one edit for each setting or server, and nothing beside it.

Pure. Above: `make`. Below: the doctor's nouns, and the edits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pegboard.config.installers.documents import table_at
from pegboard.doctor.facts import Fix, ServerEntry, Setting
from pegboard.doctor.plans.edits import Edit

Document = Callable[[Path], Any]
"""What a file says; an empty table when there is none."""

_SWITCHES: dict[str, tuple[str, bool]] = {
    "codex": ("enabled", False),
    "opencode": ("enabled", False),
    "kilo": ("enabled", False),
    "zed": ("enabled", False),
    "cline": ("disabled", True),
}
"""The key of an entry that turns a server off, where the agent knows one."""
ALWAYS_LOAD = "alwaysLoad"


def changes_of(fix: Fix, document: Document) -> Iterator[tuple[Path, Edit]]:
    """The edits of a fix, each with its file."""
    if fix.kind in ("defer-enable", "defer-threshold"):
        for setting in fix.settings:
            if setting.editable and setting.file is not None and setting.key:
                said = document(setting.file)
                if fix.kind == "defer-enable" or _is_there(said, setting.key):
                    yield from ((setting.file, edit) for edit in _of_setting(setting, fix.value, said))
        return
    for entry in filter(is_editable, fix.servers):
        # A switch without its server would be an entry that starts nothing, which agents refuse to read.
        if not _is_there(document(entry.file), entry.key):
            continue
        if fix.kind == "server-disable":
            yield _turned_off(entry)
        elif fix.kind == "defer-alwaysload":
            path = (*entry.key, ALWAYS_LOAD)
            yield entry.file, Edit(path=path, do="set", value=False) if fix.value else Edit(path=path, do="remove")


def is_editable(entry: ServerEntry) -> bool:
    """Whether the entry lies in a file that may be changed: no policy's and no plugin's."""
    is_switchable = entry.switch is None or entry.switch.editable
    return entry.scope in ("local", "project", "user") and bool(entry.key) and is_switchable


def loses_entry(entry: ServerEntry) -> bool:
    """Whether turning the server off takes its entry out, because the agent knows no switch for it."""
    return is_editable(entry) and _turned_off(entry)[1].do == "remove"


def _is_there(said: Any, key: tuple[str, ...]) -> bool:
    return key[-1] in table_at(said, key[:-1])


def _of_setting(setting: Setting, value: str, document: Any) -> Iterator[Edit]:
    found = table_at(document, setting.key[:-1]).get(setting.key[-1])
    if isinstance(found, list):
        # One rule of a list: it may be there more than once, or with blanks around it.
        rules = dict.fromkeys(rule for rule in found if isinstance(rule, str) and rule.strip() == setting.value)
        yield from (Edit(path=setting.key, do="drop", value=rule) for rule in rules)
    elif value:
        yield Edit(path=setting.key, do="set", value=value)
    else:
        yield Edit(path=setting.key, do="remove")


def _turned_off(entry: ServerEntry) -> tuple[Path, Edit]:
    if entry.switch is not None and entry.switch.file is not None:
        return entry.switch.file, Edit(path=entry.switch.key, do="set", value=False)
    if entry.agent in _SWITCHES:
        key, value = _SWITCHES[entry.agent]
        return entry.file, Edit(path=(*entry.key, key), do="set", value=value)
    if entry.agent == "gemini":
        return entry.file, Edit(path=("mcp", "excluded"), do="add", value=entry.name)
    if entry.agent == "claude-code" and entry.scope == "project":
        # The project's own file is everybody's; who rejects a server does so for himself.
        own = entry.file.parent / ".claude" / "settings.local.json"
        return own, Edit(path=("disabledMcpjsonServers",), do="add", value=entry.name)
    if entry.agent == "claude-code" and entry.scope == "local":
        return entry.file, Edit(path=(*entry.key[:2], "disabledMcpServers"), do="add", value=entry.name)
    return entry.file, Edit(path=entry.key, do="remove")
