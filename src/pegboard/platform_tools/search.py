"""`search_tools`: a query in, what a model needs to call what was found out. As few tokens as will do.

Above: `desk`. Below: the index, through a function; `surface.render`. Pure but for that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from pegboard.index.finder import Terms
from pegboard.index.narrow import Narrow
from pegboard.platform_tools.asked import Asked
from pegboard.surface.activation import Change
from pegboard.surface.render import Detail, rendered, summary
from pegboard.surface.visible import one_line
from pegboard.types import Answer, Caller, Hit, Json, Tool, Unlisted

Search = Callable[[str, Terms], Awaitable[Answer]]

MOST_ALSO = 3
_LONGEST_QUERY = 120
_LONGEST_NAME = 80
_MOST_UNKNOWN = 10
_MOST_FAILED = 3
_LONGEST_REASON = 160


def terms_of(asked: Asked, caller: Caller) -> Terms:
    """How the index is to answer it: nothing that the caller may not use is found."""
    narrow = Narrow(
        servers=(asked.server,) if asked.server else (),
        tags=asked.tags,
        scopes=caller.scopes,
        allow=caller.allow,
        within=caller.within,
        max_cost_usd=asked.max_cost_usd,
        max_latency_ms=asked.max_latency_ms,
    )
    return Terms(limit=asked.limit, narrow=narrow)


def answer_text(
    asked: Asked,
    answer: Answer,
    tools: Mapping[str, Tool],
    *,
    call: Callable[[Tool], str] | None,
    change: Change | None = None,
    skills: str = "",
    news: str = "",
    unlisted: Sequence[Unlisted] = (),
) -> str:
    """The answer as a model reads it: `call` names what calls a tool, None where what is listed is called by name;
    `change` is told where loaded ones are listed, `unlisted` where nothing fits; `skills` are those that fit too."""
    hits = [hit for hit in answer.hits if hit.name in tools]
    parts = [_nothing(asked, answer)]
    if hits:
        left_out = change.left_out if change is not None else ()
        parts = [
            _found(hits, tools, asked.detail, call)
            if call is not None
            else _by_name(hits, tools, asked.detail, left_out, loaded=change is not None)
        ]
    if answer.unknown:
        parts.append(_unknown(answer.unknown))
    if change is not None:
        parts += truth_about(change, told=call is None)
    if skills:
        parts.append(skills)
    if unlisted and not hits:
        parts += _not_known(unlisted)
    parts += [f"Note: {note}." for note in answer.notes]
    if news:
        parts.append(news)
    return "\n\n".join(part for part in parts if part)


def _found(hits: Sequence[Hit], tools: Mapping[str, Tool], detail: Detail, call: Callable[[Tool], str]) -> str:
    lines = [f"{rendered(tools[hit.name], detail)}{_also(hit)}" for hit in hits]
    if detail == "names":
        return "\n".join(lines)
    ways = [call(tools[hit.name]) for hit in hits]
    if len(set(ways)) == 1:
        return "\n".join([f"Call with {ways[0]}(name, arguments):", *lines])
    marked = [f"[{way}] {line}" for way, line in zip(ways, lines, strict=True)]
    return "\n".join([f"Call each with what stands before it, as in {ways[0]}(name, arguments):", *marked])


def _by_name(
    hits: Sequence[Hit], tools: Mapping[str, Tool], detail: Detail, left_out: Sequence[str], *, loaded: bool
) -> str:
    """Found tools that are on the list, or are from now on: their schemas stand there, and are not said twice."""

    def line(hit: Hit) -> str:
        tool = tools[hit.name]
        if detail != "signature" or hit.name in left_out:
            return rendered(tool, detail) + _also(hit)
        about = summary(tool)
        return (f"{hit.name}: {about}" if about else hit.name) + _also(hit)

    where = "Loaded" if loaded else "Nothing is deferred here, all tools are on your list"
    return "\n".join([f"{where}; call each by its name:", *map(line, hits)])


def _also(hit: Hit) -> str:
    if not hit.also:
        return ""
    more = f" and {len(hit.also) - MOST_ALSO} more" if len(hit.also) > MOST_ALSO else ""
    return f"\n  also: {', '.join(hit.also[:MOST_ALSO])}{more}"


def _nothing(asked: Asked, answer: Answer) -> str:
    if answer.unknown:
        return ""
    nearest = f" Nearest servers: {', '.join(answer.nearest_servers)}." if answer.nearest_servers else ""
    filters = " The filters may leave out what you need." if is_narrowed(asked) else ""
    return (
        f"No tool fits {one_line(asked.query, _LONGEST_QUERY)!r}; nothing was loaded.{nearest}{filters} "
        "Say it in other words, or name a server."
    )


def _not_known(servers: Sequence[Unlisted]) -> list[str]:
    """Only who waits for something that is to come is told to wait: a server that is down must not look like one."""
    asking = [each.server for each in servers if each.asking]
    failed = [each for each in servers if each.error and not each.asking]
    others = [each.server for each in servers if not each.error and not each.asking]
    said = []
    if asking:
        said.append(
            f"The tools of {_some(asking)} are not known yet: these servers are being asked. Search again in a moment."
        )
    said += [
        f"The tools of {each.server} are not known, for it failed: "
        f"{one_line(each.error.removeprefix(f'{each.server}: '), _LONGEST_REASON)}. Do without it, or tell the user."
        for each in failed[:_MOST_FAILED]
    ]
    if rest := [each.server for each in failed[_MOST_FAILED:]]:
        said.append(f"Nor are those of {_some(rest)}, which failed too.")
    if others:
        said.append(f"The tools of {_some(others)} were never asked for; `pegboard refresh` does, if the user runs it.")
    return said


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_UNKNOWN} more" if len(names) > _MOST_UNKNOWN else ""
    return ", ".join(names[:_MOST_UNKNOWN]) + more


def is_narrowed(asked: Asked) -> bool:
    """Whether it asks for some tools only."""
    return bool(asked.server or asked.tags or asked.max_cost_usd is not None or asked.max_latency_ms is not None)


def _unknown(names: Sequence[str]) -> str:
    return f"No tool is named: {_some([one_line(name, _LONGEST_NAME) for name in names])}."


def truth_about(change: Change, *, told: bool = False) -> list[str]:
    """The truth about what is in the list now; `told`: but for what was said to be loaded already."""
    said = []
    if change.activated and not told:
        said.append(f"Loaded: {', '.join(change.activated)}.")
    if change.evicted:
        said.append(f"Unloaded to make room, still callable: {', '.join(change.evicted)}.")
    if change.left_out:
        # A skill's pattern may stand for thousands.
        said.append(f"Not loaded for want of room, still callable: {_some(change.left_out)}.")
    return [" ".join(said)] if said else []


def result_of(text: str, found: Sequence[str]) -> Json:
    """The `tools/call` result."""
    return {"content": [{"type": "text", "text": text}], "_meta": {"pegboard/found": list(found)}}
