"""How a model is shown tools: on its list, or in a message at the place where they were loaded.

Tools in a message leave all before it as it was, so the provider's cache stays good. Each message stands at the same
place with the same bytes for as long as the message that loaded its tools is there. Pure. Above: `middleware`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableBinding

from pegboard.integrations.dialects.schema import rooted, with_items, with_plain_keys
from pegboard.integrations.langchain.messages import LOADED
from pegboard.types import Json

Provider = Literal["anthropic", "openai", ""]
_SPOKEN: dict[object, Provider] = {"anthropic": "anthropic", "openai": "openai", "azure": "openai"}


def provider_of(model: object) -> Provider:
    """Whose API a chat model speaks, as far as it matters here."""
    asked = getattr(_bare(model), "_get_ls_params", None)
    params = asked() if callable(asked) else None
    return _SPOKEN.get(params.get("ls_provider"), "") if isinstance(params, dict) else ""


def takes_tools_in_messages(model: object) -> bool:
    """Whether the model's profile says that tools may come in the middle of a conversation."""
    profile = getattr(_bare(model), "profile", None)
    return isinstance(profile, dict) and profile.get("mid_conversation_tools") is True


def _bare(model: object) -> object:
    return model.bound if isinstance(model, RunnableBinding) else model


def on_list(definition: Json, provider: Provider) -> dict[str, Any]:
    """A definition as every chat model's `bind_tools` takes it."""
    return {"type": "function", "function": _function(definition, provider, "parameters")}


def in_message(definitions: Sequence[Json], provider: Provider) -> SystemMessage:
    """The message that makes these callable from its place on."""
    if provider == "anthropic":
        tools = [_function(each, provider, "input_schema") for each in definitions]
        return SystemMessage(
            content=[
                {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": each}} for each in tools
            ]
        )
    functions = [{"type": "function", **_function(each, provider, "parameters")} for each in definitions]
    return SystemMessage(content=[{"type": "additional_tools", "role": "developer", "tools": functions}])


def _function(definition: Json, provider: Provider, schema_key: str) -> dict[str, Any]:
    given = definition.get("inputSchema")
    about = str(definition.get("description") or definition.get("title") or "")
    schema: Json = given if isinstance(given, dict) else {}
    if provider:  # they refuse whole requests; what is bent here is checked on the call's way
        schema = rooted(schema)
    if provider == "openai":
        schema = with_items(schema)
    if provider == "anthropic":
        schema, odd = with_plain_keys(schema)
        about += f"\nAlso takes these arguments, by exactly these names: {', '.join(odd)}" if odd else ""
    # Both must be there for OpenAI; MCP lets a tool that takes nothing leave them out.
    return {
        "name": definition["name"],
        "description": about,
        schema_key: {"type": "object", "properties": {}, **schema},
    }


def with_tools(
    messages: Sequence[AnyMessage],
    active: Iterable[str],
    definition_of: Callable[[str], Json | None],
    provider: Provider,
) -> tuple[list[AnyMessage], list[Json]]:
    """The messages with what was loaded put in at its places, and the tools there was no place for.

    What made room for others stays where it is: to take it out would cost the cache all that comes after it.
    """
    anchors = _anchors(messages)
    for name in active:
        # The history does not say where: it was summarised, or it is another agent's.
        anchors.setdefault(name, 0)
    places: dict[int, list[Json]] = {}
    left: list[Json] = []
    for name, anchor in anchors.items():
        if definition := definition_of(name):
            place = _place(messages, anchor)
            (left if place is None else places.setdefault(place, [])).append(definition)
    shown = list(messages)
    for place in sorted(places, reverse=True):  # from the end, so that places stay what they are
        shown.insert(place, in_message(places[place], provider))
    return shown, left


def _anchors(messages: Sequence[AnyMessage]) -> dict[str, int]:
    """Where each tool was first loaded, as far as the history still has it."""
    anchors: dict[str, int] = {}
    for index, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            names = message.response_metadata.get(LOADED)
            for name in names if isinstance(names, list) else ():
                anchors.setdefault(str(name), index)
    return anchors


def _place(messages: Sequence[AnyMessage], anchor: int) -> int | None:
    """The first place from there where both APIs take it: after the user's or tools' turn, before the model's."""
    for index in range(anchor + 1, len(messages) + 1):
        before = messages[index - 1]
        if not isinstance(before, HumanMessage | ToolMessage):
            continue
        if index == len(messages) or _is_turn_of_model(messages[index]):
            return index
    return None


def _is_turn_of_model(message: AnyMessage) -> bool:
    # One that is empty is not sent.
    return isinstance(message, AIMessage) and bool(message.content or message.tool_calls)
