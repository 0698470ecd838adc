"""Which action a person means: by its id, the beginning of one, or `last`. Pure.

Above: `pegboard doctor undo`. Below: the actions.
"""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.doctor.plans.actions import Action
from pegboard.errors import PegboardError

LAST = "last"


def chosen(actions: Sequence[Action], name: str) -> Action:
    """The action that is meant, among those that were applied; each reason that there is none has its own words."""
    standing = [each for each in actions if each.status != "undone"]
    if not standing and (name == LAST or not actions):
        raise PegboardError(
            "There is nothing to undo.", hint="All that was applied is undone." if actions else "Nothing was applied."
        )
    if name == LAST:
        return standing[-1]  # the journal's order, whatever clocks said
    found = [each for each in actions if each.id == name]
    found = found or [each for each in actions if name and each.id.startswith(name)]
    if not found:
        known = ", ".join(each.id for each in standing) or "none that could be undone"
        raise PegboardError(f"No action is called {name!r}.", hint=f"There are {known}; `last` is the latest.")
    if len(found) > 1:
        raise PegboardError(f"{name} may be any of {', '.join(each.id for each in found)}.", hint="Say more of the id.")
    if found[0].status == "undone":
        raise PegboardError(f"{found[0].id} was undone already.", hint="There is nothing left of it to take back.")
    return found[0]
