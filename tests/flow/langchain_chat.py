"""A LangChain chat model that plays a script, and keeps what it was sent as plain JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, message_to_dict
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool

from pegboard import Pegboard
from pegboard.testing import FakeSource, Move, ScriptedModel, Shown, text_result, tool_definition


class ScriptedChat(BaseChatModel):
    """Speaks for a model of any provider: `speaks` is whose."""

    script: Any
    speaks: str = "scripted"

    @property
    def _llm_type(self) -> str:
        return self.speaks

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        return {"ls_provider": self.speaks, "ls_model_type": "chat"}

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(each) for each in tools])

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        system = messages[0].text if messages and isinstance(messages[0], SystemMessage) else ""
        rest = messages[1:] if system else messages
        shown = Shown(tools=tuple(kwargs.get("tools", ())), messages=tuple(rest), system=system)
        move = self.script.answer(shown)
        turn = len(self.script.shown)
        calls = [
            {"name": name, "args": arguments, "id": f"call-{turn}-{n}"}
            for n, (name, arguments) in enumerate(move.calls)
        ]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(move.text, tool_calls=calls))])


def chat_of(moves: Iterable[Any], *, speaks: str = "scripted", inline: bool = False) -> ScriptedChat:
    """A model that plays these moves; `inline`: its profile says that it takes tools in messages."""
    profile: Any = {"mid_conversation_tools": True, "mid_conversation_system_messages": True} if inline else {}
    return ScriptedChat(script=ScriptedModel(moves), speaks=speaks, profile=profile)


def calls(*named: tuple[str, dict[str, Any]]) -> Move:
    """A turn in which the model calls these."""
    return Move(calls=named)


def search(query: str, **more: Any) -> Move:
    """A turn in which the model searches."""
    return calls(("search_tools", {"query": query, **more}))


def as_sent(shown: Shown) -> bytes:
    """One request as a provider would get it, for comparing beginnings: tools first, then messages."""
    messages = [_plain(message) for message in shown.messages]
    return json.dumps([list(shown.tools), shown.system, *messages]).encode()


def _plain(message: BaseMessage) -> dict[str, Any]:
    data = message_to_dict(message)["data"]
    return {key: data.get(key) for key in ("type", "content", "tool_calls", "tool_call_id") if data.get(key)}


INVOICE = tool_definition(
    "create_invoice",
    "Create an invoice for a customer",
    inputSchema={"type": "object", "properties": {"customer": {"type": "string"}}, "required": ["customer"]},
)


def crm() -> FakeSource:
    """A server with tools that are told apart by their words."""
    tools = [
        INVOICE,
        tool_definition("send_reminder", "Send a payment reminder by email"),
        tool_definition("refund_payment", "Refund a payment to a card"),
        tool_definition("broken", "Always fails"),
        *(tool_definition(f"filler_{n}", f"Report number {n} of the archive") for n in range(40)),
    ]
    return FakeSource("crm", tools, results={"broken": text_result("it broke", is_error=True)})


def board_in(
    folder: Path, *sources: Any, servers: Any = None, asks: Any = None, approve: Any = None, **surface: Any
) -> Pegboard:
    """A board that keeps its files in this folder, and defers all that is not pinned; `asks` before calling some."""
    settings = {
        "calls": {"approve": list(asks or ())},
        "store": {"cache_dir": str(folder / "cache"), "state_dir": str(folder / "state")},
        "surface": {"mode": "on", **surface},
        "search": {"embedder": "none"},
    }
    return Pegboard(servers=servers, sources=sources or [crm()], settings=settings, approve=approve)
