"""A team's own intents: what people ask for, and the tools that must be found. For their CI, and for ours.

Above: `pegboard eval intents`. Below: `evaluate` counts places.
"""

from __future__ import annotations

import tomllib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pegboard.catalog.naming import by_bare_name
from pegboard.errors import EvaluationError
from pegboard.index.evaluate import places_of
from pegboard.types import Answer, Tool

AT_LEAST = 0.9
TOP = 3
TOP_STEPS = 5
"""How deep the tools for a task of several steps may stand."""
SUITE = Path(__file__).with_name("suite")
"""The intents that come with Pegboard, and the tools they are about."""

_KEYS = frozenset(("ask", "find", "steps", "nothing", "kind"))


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One intent."""

    ask: str
    groups: tuple[tuple[str, ...], ...] = ()
    """Each needs one member found; none means that nothing fits."""
    kind: str = ""

    @property
    def nothing(self) -> bool:
        """Whether the right answer is that nothing fits."""
        return not self.groups


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """How one intent went."""

    case: Case
    passed: bool
    found: tuple[str, ...]


class Report(msgspec.Struct, frozen=True):
    """How all of them went."""

    verdicts: tuple[Verdict, ...]

    def share(self, *, nothing: bool) -> float | None:
        """The share that passed, of those that have something to find or of those that have nothing."""
        some = [verdict.passed for verdict in self.verdicts if verdict.case.nothing is nothing]
        return sum(some) / len(some) if some else None

    def by_kind(self) -> dict[str, tuple[int, int]]:
        """Passed and all, by kind."""
        kinds: dict[str, tuple[int, int]] = {}
        for verdict in self.verdicts:
            passed, every = kinds.get(verdict.case.kind, (0, 0))
            kinds[verdict.case.kind] = (passed + verdict.passed, every + 1)
        return kinds


def read_intents(path: Path) -> list[Case]:
    """The intents of a file; EvaluationError names what is wrong with which."""
    try:
        said = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise EvaluationError(f"{path} cannot be read: {error.strerror}.", hint=EXAMPLE) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise EvaluationError(f"{path}: {error}") from None
    entries = said.get("intent")
    if not isinstance(entries, list) or not entries:
        raise EvaluationError(f"{path} has no [[intent]].", hint=EXAMPLE)
    return [_case(entry, f"{path}: intent {number}") for number, entry in enumerate(entries, 1)]


EXAMPLE = 'An intent is written [[intent]] ask = "open a bug" find = ["create_issue"]'


def _case(entry: Any, where: str) -> Case:
    if not isinstance(entry, dict) or not isinstance(entry.get("ask"), str):
        raise EvaluationError(f"{where}: an intent needs a text under `ask`.", hint=EXAMPLE)
    unknown = sorted(set(entry) - _KEYS)
    if unknown:
        raise EvaluationError(f"{where}: unknown key {unknown[0]!r}; there are {', '.join(sorted(_KEYS))}.")
    given = [key for key in ("find", "steps", "nothing") if entry.get(key)]
    if len(given) != 1:
        raise EvaluationError(f"{where}: say one of find, steps or nothing = true.", hint=EXAMPLE)
    groups = [entry["find"]] if given == ["find"] else entry.get("steps", [])
    if not isinstance(groups, list) or not all(
        isinstance(group, list) and group and all(isinstance(each, str) for each in group) for group in groups
    ):
        raise EvaluationError(f"{where}: tools are lists of names.", hint=EXAMPLE)
    return Case(ask=entry["ask"], groups=tuple(tuple(group) for group in groups), kind=str(entry.get("kind", "")))


async def run(
    cases: Sequence[Case], search: Callable[[str, int], Awaitable[Answer]], tools: Mapping[str, Tool]
) -> Report:
    """Asks every intent. Names may be public or bare; one that no tool has is an error, lest it fail for ever."""
    bare = by_bare_name(tools.values())
    verdicts = []
    for case in cases:
        groups = [[name for each in group for name in _public(each, tools, bare, case)] for group in case.groups]
        answer = await search(case.ask, TOP if len(groups) < 2 else TOP_STEPS)
        names = tuple(hit.name for hit in answer.hits)
        reachable = [name for hit in answer.hits for name in (hit.name, *hit.also)]
        found = not names if case.nothing else None not in places_of(groups, reachable)
        verdicts.append(Verdict(case=case, passed=found, found=names))
    return Report(tuple(verdicts))


def _public(name: str, tools: Mapping[str, Tool], bare: Mapping[str, list[Tool]], case: Case) -> list[str]:
    if name in tools:
        return [name]
    if name in bare:
        return [tool.public_name for tool in bare[name]]
    raise EvaluationError(f"The intent {case.ask!r} names the tool {name!r}, which no server has.")
