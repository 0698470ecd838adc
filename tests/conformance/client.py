"""The client that the official conformance suite tests: Pegboard's upstream, doing what each scenario asks for.

The suite starts it as `client.py URL`, with the scenario's name, its context and the protocol revision in the
environment. It goes the way the product goes: a pool with one server, `sign_in` where the server asks for it with a
"browser" that follows the address it is given, and the catalog's rules for which tools may be used at all.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import msgspec

from pegboard.catalog.budget import over_budget
from pegboard.config.model import Config, ServerConfig, ServerSpec, StoreConfig
from pegboard.errors import AuthRequired, PegboardError
from pegboard.types import CallContext, Json
from pegboard.upstream.oauth import Registration
from pegboard.upstream.pool import Pool
from pegboard.upstream.server import Server
from pegboard.upstream.sign_in import sign_in

T = TypeVar("T")
SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
REVISION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
CONTEXT: Json = msgspec.json.decode(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
CLIENT_METADATA = "https://conformance-test.local/client-metadata.json"
MOST_SIGN_INS = 3


class Subject:
    """One server behind Pegboard, and the person who uses it."""

    def __init__(self, url: str, state_dir: Path) -> None:
        self.spec = ServerSpec(name="subject", config=ServerConfig(url=url))
        self.state_dir = state_dir
        self.tools: dict[str, Json] = {}
        self.sign_ins = 0
        self.pool = Pool(
            Config(servers={"subject": self.spec}, store=StoreConfig(state_dir=str(state_dir))),
            on_state=lambda *_: None,
            on_tools_changed=lambda _: None,
            schema_of=lambda _, tool: self.tools.get(tool, {}).get("inputSchema"),
            known_version=lambda _: REVISION,
        )

    @property
    def server(self) -> Server:
        return self.pool.get("subject")

    async def list(self) -> list[str]:
        """The names of the tools that the catalog would show."""
        listing = await self.signed_in(self.server.list_tools)
        self.tools = {tool["name"]: tool for tool in listing.tools if not over_budget(tool, 0)}
        return list(self.tools)

    async def call(self, tool: str, arguments: Json | None = None, on_ask: Any = None) -> Json:
        """A call of a tool."""
        context = CallContext(on_ask=on_ask)
        return await self.signed_in(lambda: self.server.call_tool(tool, arguments or {}, context))

    async def signed_in(self, work: Callable[[], Awaitable[T]]) -> T:
        """Does something; when the server asks for it, the person signs in and tries again, but not for ever."""
        while True:
            try:
                return await work()
            except AuthRequired:
                if self.sign_ins >= MOST_SIGN_INS:
                    raise
            self.sign_ins += 1
            await sign_in(self.spec, self.state_dir, open_url=self.browse, timeout=10, registration=registration())

    async def browse(self, url: str) -> None:
        """A browser without a window: whoever comes has agreed."""
        self.visit = asyncio.create_task(_visit(url))


async def _visit(url: str) -> None:
    async with httpx2.AsyncClient(follow_redirects=True) as browser:
        await browser.get(url)


def registration() -> Registration | None:
    """Who we are to the authorisation server, where the scenario says so."""
    if "client_id" in CONTEXT:
        return Registration(client_id=CONTEXT["client_id"], client_secret=CONTEXT.get("client_secret", ""))
    return Registration(metadata_url=CLIENT_METADATA) if SCENARIO == "auth/basic-cimd" else None


# ── what the scenarios ask for ───────────────────────────────────────────────────────────────────────────────────────


async def add_numbers(subject: Subject) -> None:
    for tool in (await subject.list())[:1]:
        await subject.call(tool, {"a": 2, "b": 3})


async def only_list(subject: Subject) -> None:
    await subject.list()


async def call_everything(subject: Subject) -> None:
    for tool in await subject.list():
        await subject.call(tool)


async def speak_of_everything(subject: Subject) -> None:
    await call_everything(subject)
    resources = await subject.server.request("resources/list", {})
    for resource in resources["resources"]:
        await subject.server.request("resources/read", {"uri": resource["uri"]})
    prompts = await subject.server.request("prompts/list", {})
    for prompt in prompts["prompts"]:
        await subject.server.request("prompts/get", {"name": prompt["name"]})


async def call_as_told(subject: Subject) -> None:
    await subject.list()
    for each in CONTEXT["toolCalls"]:
        await subject.call(each["name"], each["arguments"])


async def accept_defaults(subject: Subject) -> None:
    async def agree(_method: str, params: Json) -> Json:
        fields: Json = params["requestedSchema"]["properties"]
        given = {name: field["default"] for name, field in fields.items() if "default" in field}
        return {"action": "accept", "content": given}

    for tool in await subject.list():
        await subject.call(tool, on_ask=agree)


async def answer_in_rounds(subject: Subject) -> None:
    async def confirm(_method: str, _params: Json) -> Json:
        await subject.call("test_mrtr_unrelated")
        return {"action": "accept", "content": {"confirmed": True}}

    await subject.list()
    for tool in ("test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_no_result_type"):
        await subject.call(tool, on_ask=confirm)


async def echo_schema(subject: Subject) -> None:
    await subject.list()
    await subject.call("json_schema_echo", {"schema": subject.tools["json_schema_2020_12_tool"]["inputSchema"]})


async def sign_in_and_call(subject: Subject) -> None:
    await subject.list()
    await subject.call("test-tool")


BY_SCENARIO: dict[str, Callable[[Subject], Awaitable[None]]] = {
    "initialize": add_numbers,
    "tools_call": add_numbers,
    "request-metadata": only_list,
    "sse-retry": call_everything,
    "elicitation-sep1034-client-defaults": accept_defaults,
    "sep-2322-client-request-state": answer_in_rounds,
    "http-standard-headers": speak_of_everything,
    "http-custom-headers": call_as_told,
    "http-invalid-tool-headers": call_everything,
    "json-schema-ref-no-deref": only_list,
    "json-schema-2020-12-preservation": echo_schema,
}


async def run(url: str) -> None:
    """One scenario, from an empty house to an empty house."""
    act = BY_SCENARIO.get(SCENARIO, sign_in_and_call)
    with tempfile.TemporaryDirectory() as folder:
        subject = Subject(url, Path(folder))
        try:
            await act(subject)
        finally:
            await subject.pool.close()


if __name__ == "__main__":
    try:
        asyncio.run(run(sys.argv[1]))
    except PegboardError as error:
        sys.exit(f"{type(error).__name__}: {error} {error.hint}")
