"""What the official suite wants of a server, as a desk and a relay before the gateway. A process on a free port.

--through URL    not the desk itself, but an engine with the server at this address behind the gateway
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from pegboard.config.model import Config, ServerConfig, ServerSpec, StoreConfig, SurfaceConfig
from pegboard.engine import Engine
from pegboard.errors import PegboardError, RemoteError, ToolNotFound
from pegboard.gateway.http import HttpGateway
from pegboard.gateway.listen import bind, serve_http
from pegboard.gateway.lobby import Lobby
from pegboard.gateway.relay import ServerRelay
from pegboard.testing import text_result
from pegboard.types import CallContext, Caller, Json, Progress
from pegboard.wire.admission import Admission
from pegboard.wire.messages import INVALID_PARAMS
from pegboard.wire.subscriptions import Kind

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
EMBEDDED = {"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource."}
SCHEMA_TOOL: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
Act = Callable[[Json, CallContext], Json | Awaitable[Json]]


def content(*blocks: Json) -> Act:
    return lambda _arguments, _context: {"content": list(blocks)}


def form(message: str, **properties: Json) -> Json:
    return {
        "message": message,
        "requestedSchema": {"type": "object", "properties": properties, "required": list(properties)},
    }


TEXT = {"type": "string"}
NAME = ("elicitation/create", form("What is your name?", name=TEXT))
CAPITAL = {"role": "user", "content": {"type": "text", "text": "What is the capital of France?"}}
SAMPLE = ("sampling/createMessage", {"messages": [CAPITAL], "maxTokens": 100})
ROOTS: tuple[str, Json] = ("roots/list", {})


def asking(*rounds: Sequence[tuple[str, Json]], says: str = "done") -> Act:
    """Asks all of a round at once, one round after the other."""

    async def act(_arguments: Json, context: CallContext) -> Json:
        if context.on_ask is None:
            return text_result("nobody can be asked", is_error=True)
        heard = []
        for questions in rounds:
            heard += await asyncio.gather(*(context.on_ask(method, params) for method, params in questions))
        return text_result(f"{says} {json.dumps(heard)}")

    return act


async def of_capabilities(_arguments: Json, context: CallContext) -> Json:
    able = {"elicitation": NAME, "sampling": SAMPLE, "roots": ROOTS}
    chosen = [question for name, question in able.items() if name in (context.asks or {})]
    heard = [await context.on_ask(*question) for question in chosen] if context.on_ask is not None else []
    return text_result(json.dumps(heard))


async def progressing(_arguments: Json, context: CallContext) -> Json:
    for done in (0, 50, 100):
        if context.on_progress is not None:
            context.on_progress(Progress(done, 100))
        await asyncio.sleep(0.05)
    return text_result("all steps done")


async def sampling(arguments: Json, context: CallContext) -> Json:
    prompt = {"role": "user", "content": {"type": "text", "text": arguments["prompt"]}}
    if context.on_ask is None:
        return text_result("nobody can be asked", is_error=True)
    reply = await context.on_ask("sampling/createMessage", {"messages": [prompt], "maxTokens": 100})
    return text_result(f"LLM response: {reply['content']['text']}")


def eliciting(**fixed: Json) -> Act:
    async def act(arguments: Json, context: CallContext) -> Json:
        if context.on_ask is None:
            return text_result("nobody can be asked", is_error=True)
        properties = fixed or {"username": TEXT, "email": TEXT}
        reply = await context.on_ask("elicitation/create", form(str(arguments.get("message", "?")), **properties))
        return text_result(f"User response: <action: {reply['action']}, content: {json.dumps(reply.get('content'))}>")

    return act


def needs_sampling(_arguments: Json, context: CallContext) -> Json:
    if "sampling" not in (context.asks or {}):
        raise RemoteError("desk", -32021, "This needs sampling", {"requiredCapabilities": {"sampling": {}}})
    return text_result("fine")


CHOICES = [{"const": f"value{n}", "title": f"Option {n}"} for n in (1, 2, 3)]
PLAIN = ["option1", "option2", "option3"]
IMAGE = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
TOOLS: dict[str, Act] = {
    "test_simple_text": content({"type": "text", "text": "This is a simple text response for testing."}),
    "test_image_content": content(IMAGE),
    "test_audio_content": content({"type": "audio", "data": SILENCE, "mimeType": "audio/wav"}),
    "test_embedded_resource": content({"type": "resource", "resource": EMBEDDED}),
    "test_multiple_content_types": content(
        {"type": "text", "text": "Multiple content types test:"}, IMAGE, {"type": "resource", "resource": EMBEDDED}
    ),
    "test_error_handling": lambda _a, _c: text_result(
        "This tool intentionally returns an error for testing", is_error=True
    ),
    "test_tool_with_progress": progressing,
    "test_sampling": sampling,
    "test_elicitation": eliciting(),
    "test_elicitation_sep1034_defaults": eliciting(
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        verified={"type": "boolean", "default": True},
    ),
    "test_elicitation_sep1330_enums": eliciting(
        untitledSingle={"type": "string", "enum": PLAIN},
        titledSingle={"type": "string", "oneOf": CHOICES},
        legacyEnum={"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
        untitledMulti={"type": "array", "items": {"type": "string", "enum": PLAIN}},
        titledMulti={"type": "array", "items": {"anyOf": CHOICES}},
    ),
    "test_header": content({"type": "text", "text": "routed"}),
    "test_logging_tool": content({"type": "text", "text": "logged nothing"}),
    "test_streaming_elicitation": asking([NAME]),
    "json_schema_2020_12_tool": content({"type": "text", "text": "fine"}),
    "test_missing_capability": needs_sampling,
    "test_input_required_result_elicitation": asking([NAME], says="Hello"),
    "test_input_required_result_sampling": asking([SAMPLE]),
    "test_input_required_result_list_roots": asking([ROOTS]),
    "test_input_required_result_request_state": asking([NAME], says="state-ok"),
    "test_input_required_result_multiple_inputs": asking([NAME, SAMPLE, ROOTS]),
    "test_input_required_result_multi_round": asking([NAME], [("elicitation/create", form("Colour?", color=TEXT))]),
    "test_input_required_result_tampered_state": asking([NAME]),
    "test_input_required_result_capabilities": of_capabilities,
}
ARGUMENTS: dict[str, Json] = {
    "test_header": {"region": {"type": "string", "x-mcp-header": "Region"}},
    "test_sampling": {"prompt": TEXT},
    "test_elicitation": {"message": TEXT},
}


def definition(name: str) -> Json:
    schema: Json = {"type": "object", "properties": ARGUMENTS.get(name, {})}
    return {
        "name": name,
        "description": f"For the suite: {name}",
        "inputSchema": SCHEMA_TOOL if name == "json_schema_2020_12_tool" else schema,
    }


class EverythingDesk:
    """The tools."""

    def instructions(self, caller: Caller) -> str:
        return "For the conformance suite."

    def remembers(self, caller: Caller) -> bool:
        return True

    async def recall(self, caller: Caller) -> None:
        pass

    def definition(self, name: str, caller: Caller) -> Json | None:
        return definition(name) if name in TOOLS else None

    def tools(self, caller: Caller) -> list[Json]:
        return [definition(name) for name in TOOLS]

    def version(self, caller: Caller) -> str:
        return "1"

    async def call_tool(self, name: str, arguments: Any, caller: Caller, context: CallContext) -> Json:
        if name not in TOOLS:
            raise ToolNotFound(name)
        result = TOOLS[name](arguments, context)
        return result if isinstance(result, dict) else await result


def message(block: Json) -> Json:
    return {"role": "user", "content": block}


def prompt(name: str, given: Json) -> list[Json]:
    if name == "test_simple_prompt":
        return [message({"type": "text", "text": "This is a simple prompt for testing."})]
    if name == "test_prompt_with_arguments":
        text = f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'"
        return [message({"type": "text", "text": text})]
    if name == "test_prompt_with_embedded_resource":
        told = {"uri": given.get("resourceUri"), "mimeType": "text/plain", "text": "Embedded resource content."}
        words = {"type": "text", "text": "Please process the embedded resource above."}
        return [message({"type": "resource", "resource": told}), message(words)]
    if name == "test_prompt_with_image":
        return [message(IMAGE), message({"type": "text", "text": "Please analyze the image above."})]
    raise RemoteError("desk", INVALID_PARAMS, f"Unknown prompt: {name}")


PROMPTS = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}
HINTS: Json = {"ttlMs": 1000, "cacheScope": "public"}


class EverythingRelay:
    """The prompts and resources."""

    def capabilities(self) -> Json:
        return {"prompts": {"listChanged": True}, "resources": {"listChanged": True}, "completions": {}}

    def serves(self, method: str) -> bool:
        return method.partition("/")[0] in ("prompts", "resources", "completion") and "subscribe" not in method

    def watch(self, changed: Callable[[Kind], None]) -> None:
        """Nothing ever changes here."""

    async def answer(self, method: str, params: Json, context: CallContext) -> Json:
        if method == "prompts/list":
            listed = [
                {"name": name, "description": name, "arguments": [{"name": each, "required": True} for each in wanted]}
                for name, wanted in PROMPTS.items()
            ]
            return {"prompts": listed, **HINTS}
        if method == "prompts/get":
            return await self._get(params, context)
        if method == "resources/list":
            uris = ("test://static-text", "test://static-binary")
            return {"resources": [{"uri": uri, "name": uri, "mimeType": "text/plain"} for uri in uris], **HINTS}
        if method == "resources/templates/list":
            return {"resourceTemplates": [{"uriTemplate": "test://template/{id}/data", "name": "template"}], **HINTS}
        if method == "resources/read":
            return {"contents": [self._read(str(params.get("uri")))], **HINTS}
        return {"completion": {"values": ["paris", "park"], "total": 2, "hasMore": False}}

    async def _get(self, params: Json, context: CallContext) -> Json:
        if params.get("name") == "test_input_required_result_prompt":
            assert context.on_ask is not None
            question = form("What context should the prompt use?", context=TEXT)
            reply = await context.on_ask("elicitation/create", question)
            return {"messages": [message({"type": "text", "text": json.dumps(reply)})]}
        return {"messages": prompt(str(params.get("name")), params.get("arguments") or {})}

    def _read(self, uri: str) -> Json:
        if uri == "test://static-text":
            return {"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."}
        if uri == "test://static-binary":
            return {"uri": uri, "mimeType": "image/png", "blob": PIXEL}
        if uri.startswith("test://template/") and uri.endswith("/data"):
            identity = uri.split("/")[3]
            text = json.dumps({"id": identity, "templateTest": True, "data": f"Data for ID: {identity}"})
            return {"uri": uri, "mimeType": "application/json", "text": text}
        raise RemoteError("desk", -32002, f"Resource not found: {uri}", {"uri": uri})


class BareDesk:
    """The engine's own desk, whose tools are listed under the names that the suite calls them by."""

    def __init__(self, engine: Engine) -> None:
        self._desk = engine.desk()

    def instructions(self, caller: Caller) -> str:
        return self._desk.instructions(caller)

    def remembers(self, caller: Caller) -> bool:
        return self._desk.remembers(caller)

    async def recall(self, caller: Caller) -> None:
        await self._desk.recall(caller)

    def definition(self, name: str, caller: Caller) -> Json | None:
        return self._desk.definition(f"far__{name}", caller)

    def tools(self, caller: Caller) -> list[Json]:
        return [{**each, "name": each["name"].removeprefix("far__")} for each in self._desk.tools(caller)]

    def version(self, caller: Caller) -> str:
        return self._desk.version(caller)

    async def call_tool(self, name: str, arguments: Any, caller: Caller, context: CallContext) -> Json:
        return await self._desk.call_tool(name, arguments, caller, context)


async def serve(lobby: Lobby) -> None:
    """On a free port, which is printed."""
    listener = bind("127.0.0.1", 0, has_token=False)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    app = HttpGateway(lobby, Admission())
    await serve_http(app, lobby, listener, ready=lambda: print(url, flush=True))


async def through(upstream: str, folder: Path) -> None:
    """The gateway over an engine over the server at this address."""
    servers = {"far": ServerSpec(name="far", config=ServerConfig(url=upstream, protocol="auto"))}
    store = StoreConfig(cache_dir=str(folder), state_dir=str(folder))
    config = Config(servers=servers, store=store, surface=SurfaceConfig(mode="off"))
    async with Engine(config, refresh=False) as engine:
        relay = ServerRelay(engine)
        outcome = (await engine.refresh())[0]
        if outcome.error:
            raise PegboardError(outcome.error)
        await engine.server("far").list_tools()  # so that it runs, and what else it has can be asked
        try:
            await serve(Lobby(BareDesk(engine), relay))
        finally:
            await relay.close()


def main() -> None:
    """Serves until a signal."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--through", default="")
    args = parser.parse_args()
    if args.through:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(through(args.through, Path(folder)))
    else:
        asyncio.run(serve(Lobby(EverythingDesk(), EverythingRelay())))


if __name__ == "__main__":
    sys.stderr = os.fdopen(2, "w", buffering=1)
    main()
