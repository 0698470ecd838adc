"""`batch_tools`: several calls, a few at a time, each with its own outcome, in the order they were asked for.

Above: `desk`. Below: one call, through a function.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from pegboard.platform_tools.asked import Wanted
from pegboard.surface.visible import one_line
from pegboard.types import Json

NOT_RUN = "not called: one before it failed"
_LONGEST_NAME = 120

CallOne = Callable[[str, Any], Awaitable[Json]]


async def run(calls: Sequence[Wanted], call: CallOne, *, parallel: int, stop_on_error: bool) -> list[Json | None]:
    """The results in order; None for those that were not called. A cancel ends all of them."""
    if stop_on_error:
        return await _one_by_one(calls, call)
    slots = asyncio.Semaphore(parallel)

    async def one(wanted: Wanted) -> Json:
        async with slots:
            return await call(wanted.name, wanted.arguments)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(wanted)) for wanted in calls]
    return [task.result() for task in tasks]


async def _one_by_one(calls: Sequence[Wanted], call: CallOne) -> list[Json | None]:
    results: list[Json | None] = []
    for wanted in calls:
        failed = bool(results) and (results[-1] is None or bool(results[-1].get("isError")))
        results.append(None if failed else await call(wanted.name, wanted.arguments))
    return results


def combined(calls: Sequence[Wanted], results: Sequence[Json | None]) -> Json:
    """One result out of all: each under a line that says which it is and how it ended."""
    content: list[Any] = []
    outcomes: list[Json] = []
    for number, (wanted, result) in enumerate(zip(calls, results, strict=True), 1):
        name = one_line(wanted.name, _LONGEST_NAME)
        ended = NOT_RUN if result is None else "failed" if result.get("isError") else "ok"
        content.append({"type": "text", "text": f"[{number}] {name}: {ended}"})
        blocks = result.get("content") if result is not None else None
        if isinstance(blocks, list):
            content += blocks
        if result is not None and not blocks and result.get("structuredContent") is not None:
            content.append({"type": "text", "text": msgspec.json.encode(result["structuredContent"]).decode()})
        outcomes.append({"name": name, "ended": "not_called" if result is None else ended, **_meta_of(result)})
    whole: Json = {"content": content, "_meta": {"pegboard/outcomes": outcomes}}
    if not any(outcome["ended"] == "ok" for outcome in outcomes):
        whole["isError"] = True
    return whole


def _meta_of(result: Json | None) -> Json:
    meta = result.get("_meta") if result is not None else None
    return {"_meta": meta} if isinstance(meta, dict) and meta else {}
