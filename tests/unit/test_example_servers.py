"""The servers that other tests and the demo stand on, seen through the official SDK's client."""

from __future__ import annotations

import asyncio
import json
import os
import select
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.session import ElicitationFnT
from mcp.client.sse import sse_client
from mcp.types import CallToolResult, ElicitResult

from tests.pools import until
from tests.servers import PLAIN_TOOLS, example_command, example_http, legacy_sse, plain_command

Action = Literal["accept", "decline", "cancel"]
REACH = [("stdio", "legacy"), ("stdio", "auto"), ("http", "legacy"), ("http", "auto")]
NEWEST = {"legacy": "2025-11-25", "auto": "2026-07-28"}


def run(scenario: Awaitable[None]) -> None:
    """Runs a scenario with an end in sight."""

    async def bounded() -> None:
        async with asyncio.timeout(50):
            await scenario

    asyncio.run(bounded())


def stdio(command: list[str], **env: str) -> StdioServerParameters:
    return StdioServerParameters(command=command[0], args=command[1:], env={**os.environ, **env})


def answering(action: Action, **content: Any) -> ElicitationFnT:
    """A person who always answers the same."""

    async def answer(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action=action, content=content or None)

    return answer


def text_of(result: CallToolResult) -> str:
    block = result.content[0]
    assert block.type == "text"
    return block.text


async def names_of(client: Client) -> list[str]:
    """Every tool, page by page."""
    page = await client.list_tools(cache_mode="bypass")
    names = [tool.name for tool in page.tools]
    while page.next_cursor is not None:
        page = await client.list_tools(cursor=page.next_cursor)
        names += [tool.name for tool in page.tools]
    return names


@pytest.fixture(scope="module")
def reach() -> Iterator[Callable[[str, str], str | StdioServerParameters]]:
    """How to reach an example server; one HTTP process per server serves the whole module."""
    with ExitStack() as stack:
        urls: dict[str, str] = {}

        def target(server: str, transport: str) -> str | StdioServerParameters:
            if transport == "stdio":
                return stdio(example_command(server))
            if server not in urls:
                urls[server] = stack.enter_context(example_http(server))
            return urls[server]

        yield target


@pytest.mark.parametrize(("transport", "mode"), REACH)
def test_the_calendar_lists_reports_progress_and_asks_before_it_deletes(reach, transport, mode):
    async def scenario() -> None:
        steps: list[tuple[float, float | None, str | None]] = []

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            steps.append((progress, total, message))

        target = reach("calendar_server", transport)
        async with Client(target, mode=mode, elicitation_callback=answering("accept", delete=True)) as client:
            assert client.protocol_version == NEWEST[mode]
            assert await names_of(client) == ["add_event", "list_events", "import_events", "delete_event"]
            lines = ["2027-03-01T14:00 Dentist", "2027-02-01 Party"]
            added = await client.call_tool("import_events", {"lines": lines}, progress_callback=on_progress)
            assert steps == [(1, 2, "read Dentist"), (2, 2, "read Party")]
            assert added.structured_content is not None
            event = added.structured_content["events"][0]
            gone = await client.call_tool("delete_event", {"event_id": event["id"]})
            assert gone.structured_content == {"deleted": True, "event": event}
            left = await client.call_tool("list_events", {"after": "2027-02-15"})
            assert left.structured_content == {"events": []}

    run(scenario())


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_calendar_keeps_the_event_when_the_person_declines(reach, mode):
    async def scenario() -> None:
        target = reach("calendar_server", "http")
        async with Client(target, mode=mode, elicitation_callback=answering("decline")) as client:
            added = await client.call_tool("add_event", {"title": "Concert", "start": "2028-05-01T20:00:00+02:00"})
            assert added.structured_content is not None
            assert added.structured_content["start"] == "2028-05-01T18:00:00Z"
            kept = await client.call_tool("delete_event", {"event_id": added.structured_content["id"]})
            assert kept.structured_content == {"deleted": False, "event": added.structured_content}

    run(scenario())


@pytest.mark.parametrize(("transport", "mode"), [("stdio", "auto"), ("http", "legacy")])
def test_units_convert_and_a_wrong_unit_is_a_tool_error_that_names_the_units(reach, transport, mode):
    async def scenario() -> None:
        async with Client(reach("units", transport), mode=mode) as client:
            assert await names_of(client) == ["convert", "list_units"]
            boiling = await client.call_tool("convert", {"value": 100, "from_unit": "C", "to_unit": "F"})
            assert boiling.structured_content is not None
            assert boiling.structured_content["text"] == "100 C = 212 F"
            back = await client.call_tool("convert", {"value": 1, "from_unit": "mi", "to_unit": "km"})
            assert back.structured_content is not None
            assert back.structured_content["value"] == pytest.approx(1.609344)
            wrong = await client.call_tool("convert", {"value": 1, "from_unit": "mi", "to_unit": "parsec"})
            assert wrong.is_error
            assert "Unknown unit 'parsec'" in text_of(wrong)
            assert "km/h" in text_of(wrong)

    run(scenario())


@pytest.mark.parametrize(("transport", "mode"), [("stdio", "legacy"), ("http", "auto")])
def test_notes_are_added_found_tagged_and_deleted(reach, transport, mode):
    async def scenario() -> None:
        async with Client(reach("notes", transport), mode=mode) as client:
            milk = (await client.call_tool("add_note", {"text": "Buy MILK", "tags": ["shop"]})).structured_content
            tea = (await client.call_tool("add_note", {"text": "Buy tea"})).structured_content
            assert milk is not None
            assert tea is not None
            assert (milk["text"], milk["tags"]) == ("Buy MILK", ["shop"])
            for query, found in (("milk shop", [milk]), ("buy", [tea, milk]), ("milk tea", []), ("", [tea, milk])):
                result = await client.call_tool("search_notes", {"query": query})
                assert result.structured_content == {"notes": found}, query
            tagged = await client.call_tool("tag_note", {"note_id": tea["id"], "add": ["hot"], "remove": ["cold"]})
            assert tagged.structured_content == {**tea, "tags": ["hot"]}
            listed = await client.call_tool("list_notes", {"tag": "hot"})
            assert listed.structured_content == {"notes": [{**tea, "tags": ["hot"]}]}
            await client.call_tool("delete_note", {"note_id": milk["id"]})
            again = await client.call_tool("delete_note", {"note_id": milk["id"]})
            assert again.is_error
            assert f"There is no note {milk['id']}." in text_of(again)

    run(scenario())


def test_notes_outlive_the_server_in_a_file_and_their_tools_are_fully_described(tmp_path):
    target = stdio(example_command("notes"), NOTES_FILE=str(tmp_path / "notes.db"))

    async def scenario() -> None:
        async with Client(target) as client:
            tool = (await client.list_tools()).tools[0]
            assert tool.annotations is not None
            assert tool.annotations.destructive_hint is False
            assert tool.meta == {"com.example/category": "notes"}
            assert tool.output_schema is not None
            await client.call_tool("add_note", {"text": "kept"})
        async with Client(target) as client:
            listed = await client.call_tool("list_notes", {})
            assert listed.structured_content is not None
            assert [note["text"] for note in listed.structured_content["notes"]] == ["kept"]

    run(scenario())


@pytest.mark.parametrize(
    ("era", "mode", "version"),
    [
        ("legacy", "auto", "2025-11-25"),
        ("legacy", "legacy", "2025-11-25"),
        ("modern", "auto", "2026-07-28"),
        ("both", "auto", "2026-07-28"),
        ("both", "legacy", "2025-11-25"),
    ],
)
def test_plain_serves_its_tools_in_every_era(era, mode, version):
    async def scenario() -> None:
        steps: list[float] = []

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            steps.append(progress)

        command = plain_command("--era", era, "--tools", "3", "--page", "5", "--name", "peg", "--version", "9")
        async with Client(stdio(command), mode=mode, elicitation_callback=answering("accept", name="Ada")) as client:
            assert client.protocol_version == version
            assert client.server_info is not None
            assert (client.server_info.name, client.server_info.version) == ("peg", "9")
            assert await names_of(client) == [*PLAIN_TOOLS, "tool_000", "tool_001", "tool_002"]
            echo = await client.call_tool("echo", {"text": "é\u2028\n"})
            assert (text_of(echo), echo.structured_content) == ("é\u2028\n", {"text": "é\u2028\n"})
            assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == {"sum": 3}
            assert (await client.call_tool("fail", {})).is_error
            assert len(text_of(await client.call_tool("big", {"n": 100_000}))) == 100_000
            await client.call_tool("progress", {"steps": 3}, progress_callback=on_progress)
            assert steps == [1, 2, 3]
            assert text_of(await client.call_tool("ask", {"question": "Who?"})) == "accept Ada"
            assert text_of(await client.call_tool("tool_002", {"value": "x"})) == 'tool_002 {"value": "x"}'
            wrong = await client.call_tool("add", {"a": 1, "b": "two"})
            assert wrong.is_error
            assert "Wrong arguments" in text_of(wrong)
            with pytest.raises(MCPError, match="Unknown tool: nope"):
                await client.call_tool("nope", {})

    run(scenario())


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_plain_does_not_ask_a_client_that_cannot_be_asked(mode):
    async def scenario() -> None:
        async with Client(stdio(plain_command()), mode=mode) as client:
            if mode == "legacy":
                assert (await client.call_tool("ask", {})).is_error
            else:
                with pytest.raises(MCPError, match="Needs elicitation"):
                    await client.call_tool("ask", {})

    run(scenario())


def test_a_modern_only_plain_server_refuses_the_handshake_and_names_its_version():
    hello = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}\n'
    command = plain_command("--era", "modern")
    said = subprocess.run(command, input=hello, capture_output=True, timeout=20, check=True).stdout
    error = json.loads(said)["error"]
    assert error["code"] == -32022
    assert error["data"] == {"supported": ["2026-07-28"], "requested": "2025-11-25"}


def test_plain_sees_the_environment_it_was_given_and_its_own_pid():
    async def scenario() -> None:
        async with Client(stdio(plain_command(), PEG_TEST_MARK="1")) as client:
            names = (await client.call_tool("env", {})).structured_content
            assert names is not None
            assert "PEG_TEST_MARK" in names["names"]
            pid = int(text_of(await client.call_tool("pid", {})))
            os.kill(pid, 0)

    run(scenario())


def test_plain_logs_its_start_every_method_the_cancelled_call_and_its_end(tmp_path):
    log = tmp_path / "log"

    async def scenario() -> None:
        async with Client(stdio(plain_command("--log", str(log)))) as client:
            with pytest.raises(MCPError, match="timed out"):
                await client.call_tool("slow", {"seconds": 40}, read_timeout_seconds=0.2)
            assert text_of(await client.call_tool("slow", {"seconds": 0})) == "waited 0 s"
            await until(lambda: "slow cancelled" in log.read_text())  # the cancelled call ends in its own time

    run(scenario())
    start, *methods = log.read_text().splitlines()
    assert start.startswith("start ")
    expected = ["server/discover", "tools/call slow", "notifications/cancelled", "tools/call slow", "tools/list"]
    assert [line for line in methods if line not in ("slow cancelled", "end")] == expected
    assert "slow cancelled" in methods
    assert methods[-1] == "end"


def test_plain_gives_caching_hints_in_the_modern_era():
    async def scenario() -> None:
        async with Client(stdio(plain_command("--ttl", "60000", "--scope", "private"))) as client:
            listing = await client.list_tools()
            assert (listing.ttl_ms, listing.cache_scope) == (60000, "private")

    run(scenario())


def test_a_changed_list_is_announced_on_the_modern_subscription():
    async def scenario() -> None:
        async with Client(stdio(plain_command("--changed-after", "2"))) as client:
            assert "tool_new" not in await names_of(client)
            async with client.listen(tools_list_changed=True) as subscription:
                for _ in range(2):
                    await client.call_tool("pid", {})
                async for event in subscription:
                    assert type(event).__name__ == "ToolsListChanged"
                    break
            assert "tool_new" in await names_of(client)

    run(scenario())


def test_a_changed_list_is_announced_after_the_handshake():
    async def scenario() -> None:
        heard = asyncio.Event()

        async def on_message(message: Any) -> None:
            if type(message).__name__ == "ToolListChangedNotification":
                heard.set()

        command = plain_command("--changed-after", "1")
        async with Client(stdio(command), mode="legacy", message_handler=on_message) as client:
            await client.call_tool("pid", {})
            await heard.wait()
            assert "tool_new" in await names_of(client)

    run(scenario())


def test_plain_answers_nothing_before_its_delayed_start(tmp_path: Path):
    log = tmp_path / "log"
    os.mkfifo(log)
    command = plain_command("--delay-start", "30", "--log", str(log))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        process.stdin.flush()
        assert log.read_text() == f"start {process.pid}\n"
        assert select.select([process.stdout], [], [], 0.2)[0] == []
        process.kill()


def test_plain_answers_what_is_no_message_with_a_parse_error_and_goes_on():
    lines = b'{"jsonrpc"\n[]\n{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    said = subprocess.run(plain_command(), input=lines, capture_output=True, timeout=20, check=True).stdout
    first, second, third = map(json.loads, said.splitlines())
    assert first["error"]["code"] == second["error"]["code"] == -32700
    assert third == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_plain_refuses_an_unknown_option_in_words():
    wrong = subprocess.run(plain_command("--tool", "3"), capture_output=True, text=True, timeout=20, check=False)
    assert wrong.returncode == 1
    assert "--changed-after VALUE" in wrong.stderr


def test_legacy_sse_serves_the_tools_of_plain_over_the_old_transport():
    async def scenario(url: str) -> None:
        ask = answering("accept", name="Ada")
        async with Client(sse_client(url), mode="legacy", elicitation_callback=ask) as client:
            assert await names_of(client) == [*PLAIN_TOOLS, "tool_000"]
            assert text_of(await client.call_tool("echo", {"text": "old\nbut good"})) == "old\nbut good"
            assert text_of(await client.call_tool("ask", {})) == "accept Ada"

    with legacy_sse("--tools", "1") as url:
        run(scenario(url))
        run(scenario(url))  # the first stream's end leaves the server well
