"""The tools of `wire_server`, served by the official SDK: the counterpart of our client. On stdio when run."""

from __future__ import annotations

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

PAGE = 3
PATIENCE = 30
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
Context = ServerRequestContext[dict[str, object]]
Outcome = types.CallToolResult | types.InputRequiredResult


def text(words: str, *, is_error: bool = False) -> types.CallToolResult:
    """A result that says something."""
    return types.CallToolResult(content=[types.TextContent(text=words)], is_error=is_error)


class Tools:
    """The handlers, and what they share."""

    def __init__(self) -> None:
        self.names = ["echo", "fail", "refuse", "count", "wait", "cancelled", "ask", "grow", "whoami"]
        self.bus = InMemorySubscriptionBus()
        self.cancelled = anyio.Semaphore(0)

    async def listed(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        start = int((params and params.cursor) or 0)
        tools = [types.Tool(name=name, input_schema={"type": "object"}) for name in self.names]
        region = {"type": "string", "x-mcp-header": "Region"}
        tools.insert(9, types.Tool(name="route", input_schema={"type": "object", "properties": {"region": region}}))
        following = str(start + PAGE) if start + PAGE < len(tools) else None
        return types.ListToolsResult(tools=tools[start : start + PAGE], next_cursor=following)

    async def called(self, context: Context, params: types.CallToolRequestParams) -> Outcome:
        tool = getattr(self, f"tool_{params.name}", None)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        outcome: Outcome = await tool(context, params)
        return outcome

    async def tool_echo(self, context: Context, params: types.CallToolRequestParams) -> Outcome:
        return text(str((params.arguments or {})["text"]))

    async def tool_fail(self, context: Context, params: types.CallToolRequestParams) -> Outcome:
        return text("it broke", is_error=True)

    async def tool_refuse(self, context: Context, params: types.CallToolRequestParams) -> Outcome:
        raise MCPError(-31000, "not today", {"why": "closed"})

    async def tool_route(self, context: Context, params: types.CallToolRequestParams) -> Outcome:
        return text(f"routed to {(params.arguments or {}).get('region')}")

    async def tool_whoami(self, context: Context, params: types.CallToolRequestParams) -> Outcome:
        client = context.session.client_params
        assert client is not None
        declared = client.capabilities.model_dump(by_alias=True, exclude_none=True)
        return text(f"{client.client_info.name} {context.protocol_version} {' '.join(sorted(declared))}")

    async def tool_count(self, context: Context, params: types.CallToolRequestParams) -> Outcome:
        for done in range(1, 4):
            await context.session.report_progress(done, 3, f"step {done}")
        return text("counted")

    async def tool_wait(self, context: Context, params: types.CallToolRequestParams) -> Outcome:
        await context.session.report_progress(1, 2, "waiting")
        try:
            await anyio.sleep(PATIENCE)
        except anyio.get_cancelled_exc_class():
            self.cancelled.release()
            raise
        return text("nobody cancelled")

    async def tool_cancelled(self, context: Context, params: types.CallToolRequestParams) -> Outcome:
        with anyio.fail_after(PATIENCE):
            await self.cancelled.acquire()
        return text("yes")

    async def tool_grow(self, context: Context, params: types.CallToolRequestParams) -> Outcome:
        self.names.append(str((params.arguments or {})["name"]))
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            await self.bus.publish(ToolsListChanged())
        else:
            await context.session.send_tool_list_changed()
        return text("grown")

    async def tool_ask(self, context: Context, params: types.CallToolRequestParams) -> Outcome:
        question = types.ElicitRequestFormParams(message="Who are you?", requested_schema=SCHEMA)
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            reply = await context.session.elicit_form(question.message, SCHEMA, context.request_id)
            return _greeting(reply)
        if params.request_state != "asked":
            asks: types.InputRequests = {"who": types.ElicitRequest(params=question)}
            return types.InputRequiredResult(input_requests=asks, request_state="asked")
        given = (params.input_responses or {})["who"]
        assert isinstance(given, types.ElicitResult)
        return _greeting(given)


def _greeting(reply: types.ElicitResult) -> types.CallToolResult:
    return text(f"hello {(reply.content or {}).get('name')}" if reply.action == "accept" else "never mind")


def build() -> Server[dict[str, object]]:
    """A fresh server."""
    tools = Tools()
    return Server(
        "wire",
        version="1.0",
        instructions="Read the tools.",
        on_list_tools=tools.listed,
        on_call_tool=tools.called,
        on_subscriptions_listen=ListenHandler(tools.bus),
    )


async def main() -> None:
    """Serves standard input and output."""
    server = build()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
