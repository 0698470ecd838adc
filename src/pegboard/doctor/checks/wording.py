"""Words that several findings share: places, counts and what the proof is.

Above: the checks. Below: the facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pegboard.doctor.facts import Proof, ServerEntry, Setting

_BEYOND = 3


def place(setting: Setting) -> str:
    """Where a setting is said."""
    if setting.file is None:
        return "the environment of this very shell"
    return f"{setting.file}, line {setting.line}" if setting.line else str(setting.file)


def places(settings: Iterable[Setting]) -> str:
    """All of them."""
    return joined([place(setting) for setting in settings])


def entry_place(entry: ServerEntry) -> str:
    """Where a server is set up."""
    where = f" for {entry.project}" if entry.project and entry.scope == "local" else ""
    return f"{entry.file}{where}"


def joined(parts: Sequence[str], last: str = "and") -> str:
    """Parts as a list in a sentence; beyond a few, how many more there are."""
    shown = list(parts[:_BEYOND])
    if len(parts) > _BEYOND:
        return f"{', '.join(shown)} and {len(parts) - _BEYOND} more"
    return f"{', '.join(shown[:-1])} {last} {shown[-1]}" if len(shown) > 1 else "".join(shown)


def count(number: int, one: str, many: str = "") -> str:
    """A number and what is counted."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def shown_by(proof: Proof) -> str:
    """What says so."""
    return f"as {proof.value} show{'s' if proof is Proof.SNAPSHOT else ''}" if proof is not Proof.NONE else ""


def by_policy(settings: Sequence[Setting]) -> bool:
    """Whether an administrator has the say."""
    return any(setting.scope == "managed" for setting in settings)


def by_hand(setting: Setting, what: str) -> str:
    """What a person has to do where no file may be edited for them."""
    if setting.scope == "managed":
        return f"{setting.file} is a policy: ask whoever manages this machine to {what}."
    if setting.scope == "shell":
        return f"Edit {place(setting)} yourself: {what}; shell profiles are never edited for you."
    return f"{what[0].upper()}{what[1:]} where this shell's environment is set up."
