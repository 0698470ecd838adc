"""A well-behaved MCP server on stdio that needs nothing but the standard library, so that it starts in a few dozen ms.

Tests start it by the dozen. Both eras, a blocking read loop, threads only for the calls that wait (`slow`, `ask`).

    --tools N          N filler tools besides the named ones (tool_000, tool_001, …)
    --era ERA          legacy (handshake), modern (2026-07-28) or both
    --name, --version  what it calls itself
    --page N           list N tools a page
    --ttl MS, --scope  caching hints of the list (modern era only)
    --log FILE         append `start PID`, every received method (`tools/call NAME`), `slow cancelled` and `end`
    --delay-start S    wait before reading anything
    --asks KIND        the type of the one value that `ask` asks for
    --changed-after N  after N calls list one more tool (`tool_new`) and say so
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

Json = dict[str, Any]

MODERN = "2026-07-28"
LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
META = "io.modelcontextprotocol/"
OPTIONS = {
    "tools": "0",
    "era": "both",
    "name": "plain",
    "version": "1.0",
    "page": "0",
    "ttl": "0",
    "scope": "public",
    "log": "",
    "delay-start": "0",
    "asks": "string",
    "changed-after": "0",
}
PATIENCE = 60.0
"""How long `ask` waits for the answer to its question."""


def schema(required: tuple[str, ...] = (), **types: str) -> Json:
    """An object schema: property names and their types."""
    properties = {name: {"type": kind} for name, kind in types.items()}
    return {"type": "object", "properties": properties, "required": list(required)}


TOOLS: tuple[Json, ...] = (
    {
        "name": "echo",
        "title": "Echo",
        "description": "Returns the text it is given.",
        "inputSchema": schema(("text",), text="string"),
        "outputSchema": schema(("text",), text="string"),
        "annotations": {"readOnlyHint": True, "idempotentHint": True},
        "_meta": {"com.example/origin": "plain"},
    },
    {
        "name": "add",
        "description": "Adds two numbers.",
        "inputSchema": schema(("a", "b"), a="number", b="number"),
        "outputSchema": schema(("sum",), sum="number"),
    },
    {"name": "slow", "description": "Waits, then answers.", "inputSchema": schema(("seconds",), seconds="number")},
    {"name": "fail", "description": "Always fails.", "inputSchema": schema(reason="string")},
    {"name": "env", "description": "The names of its environment variables.", "inputSchema": schema()},
    {"name": "progress", "description": "Reports each step.", "inputSchema": schema(steps="integer")},
    {"name": "ask", "description": "Asks the person for a name.", "inputSchema": schema(question="string")},
    {"name": "big", "description": "n bytes of text.", "inputSchema": schema(("n",), n="integer")},
    {"name": "pid", "description": "Its process id.", "inputSchema": schema()},
)


def filler(name: str) -> Json:
    """A tool of no use but its existence."""
    return {"name": name, "description": f"Filler {name}.", "inputSchema": schema(value="string")}


def text_result(text: str, **more: Any) -> Json:
    """A `tools/call` result with one text block."""
    return {"content": [{"type": "text", "text": text}], **more}


class Refused(Exception):
    """The request ends in a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Json | None = None) -> None:
        super().__init__(message)
        self.error: Json = {"code": code, "message": message, **({"data": data} if data else {})}


class Call:
    """One request under way: what it asks, how it was asked, and what may interrupt it."""

    def __init__(self, message: Json, *, knows_modern: bool) -> None:
        self.id = message["id"]
        self.method: str = message["method"]
        self.params: Json = message.get("params") or {}
        self.meta: Json = self.params.get("_meta") or {}
        self.arguments: Json = self.params.get("arguments") or {}
        self.modern = knows_modern and META + "protocolVersion" in self.meta
        self.cancelled = threading.Event()


class PlainServer:
    """The whole server: a read loop and the few things it remembers."""

    def __init__(self, options: dict[str, str]) -> None:
        self.options = options
        self.versions = [MODERN] if options["era"] == "modern" else [MODERN, *reversed(LEGACY)]
        tools = {"tools/list": self.list_tools, "tools/call": self.call_tool}
        self.handlers = {
            False: {"initialize": self.initialize, "ping": self.ping, **tools},
            True: {"server/discover": self.discover, "subscriptions/listen": self.listen, **tools},
        }
        self.named = [*TOOLS, *(filler(f"tool_{n:03}") for n in range(int(options["tools"])))]
        self.capabilities: Json | None = None
        """The client's, once it has shaken hands (legacy)."""
        self.calls = 0
        self.waiting: dict[Any, Call] = {}
        self.subscriptions: list[Any] = []
        self.questions: dict[str, Json] = {}
        """Our own requests to the client: id → its answer, once it came."""
        self.answered = threading.Condition()
        self.writing = threading.RLock()

    def log(self, line: str) -> None:
        """One line in the log file, whole."""
        if self.options["log"]:
            with Path(self.options["log"]).open("a") as file:
                file.write(line + "\n")

    def send(self, **message: Any) -> None:
        """One message on one line."""
        line = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":"), ensure_ascii=False) + "\n"
        with self.writing:
            sys.stdout.buffer.write(line.encode())
            sys.stdout.buffer.flush()

    def run(self) -> None:
        """Reads until the client closes our stdin."""
        self.log(f"start {os.getpid()}")
        time.sleep(float(self.options["delay-start"]))
        for line in sys.stdin.buffer:
            try:
                message = json.loads(line)
            except ValueError:
                message = None
            if isinstance(message, dict):
                self.receive(message)
            else:
                self.send(id=None, error={"code": -32700, "message": "Parse error"})
        self.log("end")

    def receive(self, message: Json) -> None:
        """One message from the client: a request, a notification, or an answer to our own question."""
        if "method" not in message:
            with self.answered:
                self.questions[message.get("id", "")] = message
                self.answered.notify_all()
            return
        params = message.get("params") or {}
        self.log(f"{message['method']} {params.get('name', '')}".strip())
        if "id" in message:
            self.begin(Call(message, knows_modern=self.options["era"] != "legacy"))
        elif message["method"] == "notifications/cancelled":
            self.cancel(params.get("requestId"))

    def cancel(self, request_id: Any) -> None:
        """Ends a subscription, or tells a waiting call to give up."""
        if request_id in self.subscriptions:
            self.subscriptions.remove(request_id)
        if call := self.waiting.pop(request_id, None):
            call.cancelled.set()
            with self.answered:
                self.answered.notify_all()

    def begin(self, call: Call) -> None:
        """Answers at once, or in a thread when the call has to wait."""
        if call.method == "tools/call" and call.params.get("name") in ("slow", "ask"):
            self.waiting[call.id] = call
            threading.Thread(target=self.finish, args=(call,), daemon=True).start()
        else:
            self.finish(call)

    def finish(self, call: Call) -> None:
        """Runs the request and sends its answer, unless it was cancelled meanwhile."""
        answer: Json
        try:
            answer = {"result": self.complete(call, self.dispatch(call))}
        except Refused as refused:
            answer = {"error": refused.error}
        self.waiting.pop(call.id, None)
        if call.cancelled.is_set():
            self.log(f"{call.params.get('name')} cancelled")
        elif call.method != "subscriptions/listen" or "error" in answer:
            self.send(id=call.id, **answer)
        if call.method == "tools/call":
            self.count_call()

    def complete(self, call: Call, result: Json) -> Json:
        """What every modern result carries besides its content."""
        if not call.modern:
            return result
        info = {META + "serverInfo": {"name": self.options["name"], "version": self.options["version"]}}
        return {"resultType": "complete", "_meta": info, **result}

    def dispatch(self, call: Call) -> Json:
        """The result of a request, in the era it was asked in."""
        if call.modern:
            self.check_metadata(call)
        elif self.options["era"] == "modern":
            versions = {"supported": [MODERN], "requested": call.params.get("protocolVersion")}
            raise Refused(-32022, f"This server speaks {MODERN} only", versions)
        handler = self.handlers[call.modern].get(call.method)
        if handler is None:
            raise Refused(-32601, f"Method not found: {call.method}")
        if not call.modern and call.method.startswith("tools/") and self.capabilities is None:
            raise Refused(-32600, "Not initialized")
        return handler(call)

    def check_metadata(self, call: Call) -> None:
        """Refuses a modern request whose `_meta` is not as it must be."""
        requested = call.meta[META + "protocolVersion"]
        if requested != MODERN:
            raise Refused(-32022, "Unsupported protocol version", {"supported": self.versions, "requested": requested})
        if not isinstance(call.meta.get(META + "clientCapabilities"), dict):
            raise Refused(-32602, f"_meta lacks {META}clientCapabilities")

    def offered(self) -> Json:
        """The server's capabilities."""
        return {"tools": {"listChanged": True} if int(self.options["changed-after"]) else {}}

    def initialize(self, call: Call) -> Json:
        self.capabilities = call.params.get("capabilities") or {}
        wanted = call.params.get("protocolVersion")
        return {
            "protocolVersion": wanted if wanted in LEGACY else LEGACY[-1],
            "capabilities": self.offered(),
            "serverInfo": {"name": self.options["name"], "version": self.options["version"]},
            "instructions": "A plain server for tests.",
        }

    def ping(self, _call: Call) -> Json:
        return {}

    def discover(self, _call: Call) -> Json:
        return {
            "supportedVersions": self.versions,
            "capabilities": self.offered(),
            "instructions": "A plain server for tests.",
            **self.hints(),
        }

    def hints(self) -> Json:
        """Caching hints, which only the modern era knows."""
        return {"ttlMs": int(self.options["ttl"]), "cacheScope": self.options["scope"]}

    def listen(self, call: Call) -> Json:
        wanted = call.params.get("notifications") or {}
        honoured = {"toolsListChanged": True} if wanted.get("toolsListChanged") and self.offered()["tools"] else {}
        self.notify(call.id, "notifications/subscriptions/acknowledged", notifications=honoured)
        if honoured:
            self.subscriptions.append(call.id)
        return {}

    def notify(self, subscription: Any, method: str, **params: Any) -> None:
        """A notification on one subscription."""
        self.send(method=method, params={"_meta": {META + "subscriptionId": subscription}, **params})

    def changed(self) -> bool:
        """Whether the list has grown by now."""
        after = int(self.options["changed-after"])
        return bool(after) and self.calls >= after

    def count_call(self) -> None:
        """Counts a finished call, and tells of the change when it is the one that brings it."""
        with self.writing:
            before = self.changed()
            self.calls += 1
            if before or not self.changed():
                return
        if self.capabilities is not None:
            self.send(method="notifications/tools/list_changed")
        for subscription in self.subscriptions:
            self.notify(subscription, "notifications/tools/list_changed")

    def tools(self) -> list[Json]:
        """Every tool, in listing order."""
        return [*self.named, filler("tool_new")] if self.changed() else self.named

    def list_tools(self, call: Call) -> Json:
        tools = self.tools()
        cursor = call.params.get("cursor") or "0"
        if not str(cursor).isdecimal():
            raise Refused(-32602, f"Invalid cursor: {cursor}")
        first = int(cursor)
        end = first + (int(self.options["page"]) or len(tools))
        result: Json = {"tools": tools[first:end]}
        if end < len(tools):
            result["nextCursor"] = str(end)
        return {**result, **self.hints()} if call.modern else result

    def call_tool(self, call: Call) -> Json:
        name = str(call.params.get("name"))
        tool = next((tool for tool in self.tools() if tool["name"] == name), None)
        if tool is None:
            raise Refused(-32602, f"Unknown tool: {name}")
        missing = [key for key in tool["inputSchema"]["required"] if key not in call.arguments]
        if missing:
            return text_result(f"Missing arguments: {', '.join(missing)}", isError=True)
        run = getattr(self, f"tool_{name}", None)
        try:
            result: Json = run(call) if run else text_result(f"{name} {json.dumps(call.arguments, sort_keys=True)}")
        except (TypeError, ValueError) as error:
            return text_result(f"Wrong arguments: {error}", isError=True)
        return result

    def tool_echo(self, call: Call) -> Json:
        text = call.arguments["text"]
        return text_result(text, structuredContent={"text": text})

    def tool_add(self, call: Call) -> Json:
        total = call.arguments["a"] + call.arguments["b"]
        return text_result(str(total), structuredContent={"sum": total})

    def tool_slow(self, call: Call) -> Json:
        call.cancelled.wait(float(call.arguments["seconds"]))
        return text_result(f"waited {call.arguments['seconds']} s")

    def tool_fail(self, call: Call) -> Json:
        return text_result(call.arguments.get("reason", "It failed, as asked."), isError=True)

    def tool_env(self, _call: Call) -> Json:
        names = sorted(os.environ)
        return text_result("\n".join(names), structuredContent={"names": names})

    def tool_progress(self, call: Call) -> Json:
        steps = int(call.arguments.get("steps", 3))
        token = call.meta.get("progressToken")
        for step in range(1, steps + 1) if token is not None else ():
            state = {"progress": step, "total": steps, "message": f"step {step} of {steps}"}
            self.send(method="notifications/progress", params={"progressToken": token, **state})
        return text_result(f"{steps} steps")

    def tool_big(self, call: Call) -> Json:
        return text_result("x" * int(call.arguments["n"]))

    def tool_pid(self, _call: Call) -> Json:
        return text_result(str(os.getpid()), structuredContent={"pid": os.getpid()})

    def tool_ask(self, call: Call) -> Json:
        question = call.arguments.get("question", "What is your name?")
        form = schema(("name",), name=self.options["asks"])
        params = {"mode": "form", "message": question, "requestedSchema": form}
        answer = self.ask_modern(call, params) if call.modern else self.ask_legacy(call, params)
        if "resultType" in answer or "isError" in answer:
            return answer
        content = answer.get("content") or {}
        return text_result(f"{answer['action']} {content.get('name', '')}".strip(), structuredContent=answer)

    def ask_modern(self, call: Call, params: Json) -> Json:
        """The client's answer, or the result that asks for it."""
        answer: Json | None = (call.params.get("inputResponses") or {}).get("name")
        if answer is not None and call.params.get("requestState") == "asked":
            return answer
        if "elicitation" not in call.meta[META + "clientCapabilities"]:
            raise Refused(-32021, "Needs elicitation", {"requiredCapabilities": {"elicitation": {}}})
        request = {"method": "elicitation/create", "params": params}
        return {"resultType": "input_required", "inputRequests": {"name": request}, "requestState": "asked"}

    def ask_legacy(self, call: Call, params: Json) -> Json:
        """The client's answer to our own request."""
        if "elicitation" not in (self.capabilities or {}):
            return text_result("This client cannot be asked.", isError=True)
        key = f"ask-{call.id}"
        self.send(id=key, method="elicitation/create", params=params)
        with self.answered:
            self.answered.wait_for(lambda: key in self.questions or call.cancelled.is_set(), PATIENCE)
            answer = self.questions.pop(key, {"error": {"message": "no answer"}})
        if "error" in answer:
            return text_result(f"Nobody answered: {answer['error'].get('message')}", isError=True)
        result: Json = answer["result"]
        return result


def parse(arguments: list[str]) -> dict[str, str]:
    """Options from the command line; argparse would double the start-up time."""
    names = [name.removeprefix("--") for name in arguments[::2]]
    unknown = [name for name in names if name not in OPTIONS]
    if unknown or len(arguments) % 2:
        sys.exit(f"plain.py: options are --{' VALUE --'.join(OPTIONS)} VALUE; got {' '.join(arguments)}")
    return {**OPTIONS, **dict(zip(names, arguments[1::2], strict=True))}


if __name__ == "__main__":
    try:
        PlainServer(parse(sys.argv[1:])).run()
    except BrokenPipeError:
        os._exit(0)  # the client is gone, and so is everyone who would read a traceback
