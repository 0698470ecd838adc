"""An MCP server on stdio with prompts, resources, a template and completions. Standard library only.

--id ID       what it calls itself in its answers
--log FILE    a line with its id for every start
--broken      fails to list its prompts
--bare        has no prompts and no resources at all
--grows       has one more prompt and one more resource after every call, and says so
--restless N  so many times has one more prompt as soon as it was asked for them, and says so before it answers
"""

from __future__ import annotations

import json
import sys
from typing import Any


def option(name: str, default: str = "") -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


ID = option("--id", "offering")
BARE = "--bare" in sys.argv
PROMPTS: list[Any] = [
    {"name": "greet", "description": f"A greeting by {ID}", "arguments": [{"name": "who", "required": True}]},
    {"name": "part", "description": "A farewell"},
]
RESOURCES: list[Any] = [
    {"uri": "note://shared", "name": "shared"},
    {"uri": f"note://{ID}", "name": ID, "mimeType": "text/plain"},
]


restless = int(option("--restless", "0"))


def say(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def initialize(params: Any) -> Any:
    tells = {"listChanged": True} if "--grows" in sys.argv or restless else {}
    offers: dict[str, Any] = {} if BARE else {"prompts": tells, "resources": tells, "completions": {}}
    about = {"name": ID, "version": "1"}
    return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}, **offers}, "serverInfo": about}


def list_prompts(params: Any) -> Any:
    if "--broken" in sys.argv:
        raise ValueError("the prompts are lost")
    if params.get("cursor") == "2":
        answer = {"prompts": PROMPTS[1:]}
        be_restless()
        return answer
    return {"prompts": PROMPTS[:1], "nextCursor": "2"}


def be_restless() -> None:
    global restless
    if restless:
        restless -= 1
        PROMPTS.append({"name": f"late{restless}"})
        say(method="notifications/prompts/list_changed")


def call(params: Any) -> Any:
    if "--grows" in sys.argv:
        number = len(PROMPTS)
        PROMPTS.append({"name": f"new{number}"})
        RESOURCES.append({"uri": f"note://{ID}/new{number}", "name": "new"})
        say(method="notifications/prompts/list_changed")
        say(method="notifications/resources/list_changed")
    return {"content": [{"type": "text", "text": "nothing"}]}


def get_prompt(params: Any) -> Any:
    who = (params.get("arguments") or {}).get("who", "you")
    text = f"{ID} {params['name']} {who} {json.dumps(params.get('_meta'))}"
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}


def read_resource(params: Any) -> Any:
    if not params["uri"].startswith(("note://", "page://")):
        raise LookupError("no such resource")
    return {"contents": [{"uri": params["uri"], "text": f"{ID} has {params['uri']}"}]}


METHODS: dict[str, Any] = {
    "initialize": initialize,
    "tools/list": lambda _: {"tools": [{"name": "nothing", "inputSchema": {"type": "object"}}]},
    "tools/call": call,
    "prompts/list": list_prompts,
    "prompts/get": get_prompt,
    "resources/list": lambda _: {"resources": RESOURCES},
    "resources/templates/list": lambda _: {"resourceTemplates": [{"uriTemplate": "page://{n}", "name": "page"}]},
    "resources/read": read_resource,
    "completion/complete": lambda params: {"completion": {"values": [f"{ID} {json.dumps(params['ref'])}"]}},
}


def main() -> None:
    """Answers until the input ends."""
    if log := option("--log"):
        with open(log, "a", encoding="utf-8") as file:  # noqa: PTH123
            file.write(f"{ID}\n")
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        answer: dict[str, Any] = {"id": message["id"]}
        try:
            answer["result"] = METHODS[message["method"]](message.get("params") or {})
        except KeyError:
            answer["error"] = {"code": -32601, "message": "Method not found"}
        except LookupError as error:
            answer["error"] = {"code": -32002, "message": str(error)}
        except ValueError as error:
            answer["error"] = {"code": -32603, "message": str(error)}
        say(**answer)


if __name__ == "__main__":
    main()
