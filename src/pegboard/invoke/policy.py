"""Who may call what: the one check that every call passes, whichever way it came.

Above: `path`. Below: the catalog's globs. Nothing is asked of the model: what forbids a call is configuration.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

from pegboard.catalog.filter import Named, compile_globs, named
from pegboard.catalog.naming import split
from pegboard.catalog.permit import permit_of
from pegboard.errors import CallRefused
from pegboard.types import Caller, Json, Tool

Effect = Literal["read", "write"]
Approve = Callable[[Tool, Json, Caller], Awaitable[bool]]
"""Asks somebody whether this call may be made; only True allows it."""

CALL_TOOLS: dict[Effect, str] = {"read": "call_tool_read", "write": "call_tool_write"}


class Policy:
    """The rules of one configuration."""

    def __init__(self, *, deny: tuple[str, ...] = (), approve: tuple[str, ...] = ()) -> None:
        self._deny, self._approve = compile_globs(deny), compile_globs(approve)

    def check(self, tool: Tool, caller: Caller, asked: str = "") -> None:
        """Raises CallRefused where a rule forbids the call; the words say who can allow it.

        `asked` is how the caller called it: one who may not use it is not told whose it is.
        """
        name = tool.public_name
        if self._deny and self._deny.match(_named(tool)):
            raise CallRefused(
                f"{name} must not be used: it is denied by `deny` under [tools] in Pegboard's configuration.",
                hint="Only the user can change that. Use another tool, or tell the user.",
            )
        if not permit_of(caller.lists).admits(tool):
            raise CallRefused(
                f"{asked or name} is not among the tools that you may use.",
                hint="Whoever started you chose them, and can add it. Use another tool, or report that you need it.",
            )
        if caller.scopes is not None and (lacking := [each for each in tool.scopes if each not in caller.scopes]):
            raise CallRefused(
                f"{name} needs the permission {', '.join(lacking)}, which you do not have.",
                hint="Whoever runs Pegboard can grant it. Use another tool, or tell the user.",
            )

    async def approval(self, tool: Tool, arguments: Json, caller: Caller, approve: Approve | None) -> bool:
        """Whether somebody had to be asked; raises CallRefused unless the answer was yes."""
        if not self._approve or not self._approve.match(_named(tool)):
            return False
        if approve is None:
            raise CallRefused(
                f"{tool.public_name} needs the approval of a person, and nobody can be asked here.",
                hint="The user can take it out of `approve` under [calls] in Pegboard's configuration.",
            )
        try:
            said = await approve(tool, arguments, caller)
        except Exception as error:  # whatever keeps somebody from answering, it is no yes
            raise CallRefused(
                f"{tool.public_name} needs the approval of a person, and asking failed ({type(error).__name__}).",
                hint="Nothing was called. Tell the user.",
            ) from error
        if said is not True:
            raise CallRefused(
                f"{tool.public_name} was not approved.",
                hint="Nothing was called. Do not try it again unless the user asks for it.",
            )
        return True


def check_effect(tool: Tool, real: Effect, effect: Effect | None) -> None:
    """Raises CallRefused when a tool is called through the platform tool for the other effect."""
    if effect is not None and effect != real:
        does = "only reads" if real == "read" else "may change things"
        raise CallRefused(
            f"{tool.public_name} {does}, so {CALL_TOOLS[effect]} does not call it.",
            hint=f"Call it with {CALL_TOOLS[real]}, with the same arguments.",
        )


def may_know(caller: Caller, names: tuple[str, ...]) -> tuple[str, ...]:
    """Of these public names, those the caller may use: a miss must not tell of tools that are none of its business."""
    lists = permit_of(caller.lists).lists
    known = [(name, Named(split(name)[1] or name, name, name)) for name in names]
    return tuple(name for name, spellings in known if all(globs.match(spellings) for globs in lists))


def _named(tool: Tool) -> Named:
    return named(tool.server, tool.name, tool.public_name)
