"""What the Messages API says no to, each documented rule by itself. Wordings are near the API's, not the same.

Above: `messages`. Below: `shapes`, `search_rules`, `binding`, `history`. Pure: a proxy's tests can hold a request
against them as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pegboard.testing.llm.asked import Asked, Rule, blocks, objects, unique
from pegboard.testing.llm.binding import pauses_are_gone_on_from, thinking_is_in_its_place
from pegboard.testing.llm.history import SEARCHES, inline, inside, references, search_tool, turns
from pegboard.testing.llm.search_rules import SEARCH_RULES
from pegboard.testing.llm.shapes import blocks_are_whole, messages_are_typed
from pegboard.types import Json

MOST_DEFERRED = 10_000
MOST_BREAKPOINTS = 4
_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_OLD = re.compile(r"claude-(?:[23]|instant|(?:opus|sonnet)-4(?:-[01]|-2025\d{4}|@|$))")
_TOOL_CHANGES = "mid-conversation-tool-changes-2026-07-01"
_INLINE = "inline-tools-2026-09-15"
_KEEPS_TOOLS = re.compile(r"claude-(?:[23]|instant|haiku-4|sonnet-[45]$|sonnet-4|opus-4-[0-7](?:\D|$)|opus-4-2025)")
_REFUSES_FORCE = re.compile(r"fable-5-[12]")


def asks_for_something(asked: Asked) -> str | None:
    """A model, a limit of output and at least one message are needed, and the first message is the user's."""
    for field in ("model", "max_tokens", "messages"):
        if not asked.body.get(field):
            return f"{field}: Field required"
    return None if asked.messages[0].get("role") == "user" else "messages: first message must use the `user` role"


def names_tools_once(asked: Asked) -> str | None:
    """No two tools may share a name."""
    names = [str(each.get("name")) for each in asked.tools if "name" in each]
    return None if unique(names) else "tools: Tool names must be unique."


def names_are_plain(asked: Asked) -> str | None:
    """A client tool's name has up to 128 letters, digits, underscores and dashes."""
    names = [str(each.get("name") or "") for each in _client_tools(asked)]
    odd = [name for name in names if not _NAME.fullmatch(name)]
    return f"tools: name {odd[0]!r} should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'" if odd else None


def schemas_are_objects(asked: Asked) -> str | None:
    """An input schema is an object, has no choice at its root, and its parameters have plain names."""
    for each in _client_tools(asked):
        schema, name = each.get("input_schema"), each.get("name")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            return f"tools.{name}.custom.input_schema.type: Input should be 'object'"
        if any(key in schema for key in ("oneOf", "allOf", "anyOf")):
            return f"tools.{name}.custom.input_schema: does not support oneOf, allOf, or anyOf at the top level"
        if any(not _KEY.fullmatch(key) for key in schema.get("properties") or ()):
            return f"tools.{name}.custom.input_schema.properties: Property keys should match pattern"
    return None


def some_tool_is_resident(asked: Asked) -> str | None:
    """Where tools are deferred, at least one is not: the model would be left with none to begin with."""
    if asked.tools and all(each.get("defer_loading") for each in asked.tools):
        return "At least one tool must have defer_loading=false. All tools cannot be deferred."
    return None


def no_marker_on_deferred(asked: Asked) -> str | None:
    """A deferred tool is not in the prefix, so no cache breakpoint can stand on it."""
    both = [each.get("name") for each in asked.tools if each.get("defer_loading") and each.get("cache_control")]
    return f"tools: {both[0]!r} cannot have both defer_loading and cache_control" if both else None


def not_too_many_deferred(asked: Asked) -> str | None:
    """A request holds at most 10,000 deferred tools."""
    return f"tools: at most {MOST_DEFERRED} deferred" if sum(map(_deferred, asked.tools)) > MOST_DEFERRED else None


def model_defers(asked: Asked) -> str | None:
    """Models before Claude 4.5 know neither deferral nor the API's own search."""
    if not _OLD.search(asked.model):
        return None
    if any("defer_loading" in each for each in asked.tools):
        return "tools.0.custom.defer_loading: Extra inputs are not permitted"
    return f"'{asked.model}' does not support tool search" if search_tool(asked.tools) else None


def references_resolve(asked: Asked) -> str | None:
    """Each reference, wherever in the history, needs the full definition of its tool in this very request; the API's
    own search has none, so that one which found itself makes every later request fail."""
    defined = [each for each in asked.tools if not str(each.get("type", "")).startswith(SEARCHES)]
    known = {each.get("name") for each in (*defined, *inline(asked.messages))}
    missing = [name for name in references(asked.messages) if name not in known]
    return f"Tool reference '{missing[0]}' not found in available tools" if missing else None


def few_breakpoints(asked: Asked) -> str | None:
    """At most four cache breakpoints, and one that lasts an hour never after one that lasts five minutes."""
    markers = list(breakpoints(asked.body))
    if len(markers) > MOST_BREAKPOINTS:
        return f"A maximum of {MOST_BREAKPOINTS} blocks with cache_control may be provided. Found {len(markers)}."
    lasts = [str(each.get("ttl", "5m")) for each in markers]
    if "5m" in lasts and "1h" in lasts[lasts.index("5m") :]:
        return "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
    return None


def texts_are_not_empty(asked: Asked) -> str | None:
    """No block of text is empty, in a message or in a result."""
    inner = [each for message in asked.messages for block in blocks(message) for each in (block, *inside(block))]
    empty = any(each.get("type") == "text" and not str(each.get("text", "")).strip() for each in inner)
    return "messages: text content blocks must be non-empty" if empty else None


def calls_are_answered(asked: Asked) -> str | None:
    """Every call has its result at the beginning of the very next user turn, and there is no result without a call."""
    asking: list[str] = []
    for at, message in enumerate(turns(asked.messages)):
        content = blocks(message)
        results = [str(each.get("tool_use_id")) for each in content if each.get("type") == "tool_result"]
        if any(each not in asking for each in results):
            return f"messages.{at}: unexpected `tool_use_id` found in `tool_result` blocks: {results}"
        if not unique(results):
            return f"messages.{at}: each tool_use must have a single result"
        if missing := [each for each in asking if each not in results]:
            return f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {missing}"
        if any(each.get("type") != "tool_result" for each in content[: len(results)]):
            return f"messages.{at}: tool_result blocks come before other content"
        asking = [str(each.get("id")) for each in content if each.get("type") == "tool_use"]
    return f"messages: `tool_use` ids were found without `tool_result` blocks: {asking}" if asking else None


def no_result_for_server_tools(asked: Asked) -> str | None:
    """What the API ran itself takes no result from the client."""
    inner = [each for message in asked.messages for each in blocks(message) if each.get("type") == "tool_result"]
    ids = [str(each.get("tool_use_id")) for each in inner]
    return "messages: tool_result for a server tool" if any(each.startswith("srvtoolu_") for each in ids) else None


def tools_stay_while_used(asked: Asked) -> str | None:
    """A history with calls or results needs `tools`."""
    kinds = {each.get("type") for message in asked.messages for each in blocks(message)}
    if kinds & {"tool_use", "tool_result"} and not asked.tools:
        return "Requests which include `tool_use` or `tool_result` blocks must define tools."
    return None


def tools_are_not_forced(asked: Asked) -> str | None:
    """Some models refuse to be made to call a tool."""
    choice = asked.body.get("tool_choice")
    forced = isinstance(choice, dict) and choice.get("type") in ("any", "tool")
    return "tool_choice: forced tool use is not supported" if forced and _REFUSES_FORCE.search(asked.model) else None


def tool_changes_are_asked_for(asked: Asked) -> str | None:
    """Adding and removing tools in the middle of a conversation is a beta that a request has to name, for some models;
    to define one there is another, which has the first in it."""
    kinds = {each.get("type") for message in asked.messages for each in blocks(message)}
    if not kinds & {"tool_addition", "tool_removal"}:
        return None
    if _KEEPS_TOOLS.search(asked.model):
        return f"messages: tool_addition is not supported with {asked.model}"
    needed = (_INLINE,) if inline(asked.messages) else (_TOOL_CHANGES, _INLINE)
    return None if asked.betas.intersection(needed) else f"messages: tool_addition requires the beta {needed[0]}"


def inline_tools_are_new(asked: Asked) -> str | None:
    """A tool that is defined in a message has a name that no other has."""
    names = [str(each.get("name")) for each in (*asked.tools, *inline(asked.messages)) if "name" in each]
    return None if unique(names) else "messages: tool_name_conflict"


def system_messages_have_their_place(asked: Asked) -> str | None:
    """A system's message follows a user's turn, and comes before the model's or at the end."""
    roles = [str(message.get("role")) for message in asked.messages]
    for at, role in enumerate(roles):
        before, after = roles[at - 1] if at else "", roles[at + 1] if at + 1 < len(roles) else "assistant"
        if role == "system" and (before != "user" or after != "assistant"):
            return f"messages.{at}: a system message must directly follow a user turn and precede an assistant turn"
    return None


RULES: tuple[Rule, ...] = (
    messages_are_typed,
    blocks_are_whole,
    asks_for_something,
    names_tools_once,
    names_are_plain,
    schemas_are_objects,
    model_defers,
    some_tool_is_resident,
    no_marker_on_deferred,
    not_too_many_deferred,
    references_resolve,
    few_breakpoints,
    texts_are_not_empty,
    tools_stay_while_used,
    no_result_for_server_tools,
    calls_are_answered,
    tools_are_not_forced,
    tool_changes_are_asked_for,
    inline_tools_are_new,
    system_messages_have_their_place,
    *SEARCH_RULES,
    pauses_are_gone_on_from,
    thinking_is_in_its_place,
)


def _client_tools(asked: Asked) -> list[Json]:
    return [each for each in asked.tools if each.get("type") in (None, "custom")]


def _deferred(tool: Json) -> bool:
    return bool(tool.get("defer_loading"))


def breakpoints(body: Json) -> Iterator[Json]:
    """The cache markers in the order of the prompt; one on the request itself counts for its end."""
    system = objects(body.get("system"))
    inner = [
        each for message in objects(body.get("messages")) for each in blocks(message) for each in (each, *inside(each))
    ]
    for each in (*objects(body.get("tools")), *system, *inner, body):
        marker = each.get("cache_control")
        if isinstance(marker, dict):
            yield marker
