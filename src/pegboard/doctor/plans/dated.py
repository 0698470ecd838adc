"""When entries changed that lie in files which an agent rewrites all the time: only what was applied here tells.

Without it, sessions from before a fix would be held against the settings of after it. Pure. Above: the commands.
Below: the actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from pegboard.doctor.facts import AgentState, ServerEntry
from pegboard.doctor.plans.actions import Action


def dated(states: Iterable[AgentState], actions: Sequence[Action]) -> tuple[AgentState, ...]:
    """The states, in which entries without a date have that of the last action that touched them."""
    touched = [
        (change.file, edit.path, action.undone_at or action.applied_at)
        for action in actions
        for change in action.changes
        for edit in change.edits
    ]
    if not touched:
        return tuple(states)

    def of(entry: ServerEntry) -> ServerEntry:
        moments = [at for file, path, at in touched if file == str(entry.file) and path[: len(entry.key)] == entry.key]
        if entry.changed_at or not moments:
            return entry
        return msgspec.structs.replace(entry, changed_at=max(moments))

    return tuple(msgspec.structs.replace(state, servers=tuple(map(of, state.servers))) for state in states)
