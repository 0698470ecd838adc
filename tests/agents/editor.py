"""An editor that goes on with an agent's earlier session over the Agent Client Protocol, and says one thing in it.

Started as `python editor.py SESSION WORDS PROGRAM …`. What the agent says back is printed; it may use every tool.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

Json = dict[str, Any]
HELLO: Json = {"protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}}}


class Editor:
    """One connection, a question at a time."""

    def __init__(self, reader: IO[str], writer: IO[str]) -> None:
        self._reader, self._writer = reader, writer
        self._asked = 0
        self.said = ""
        """What the agent said, put together."""

    def ask(self, method: str, params: Json) -> Json:
        """The result; what the agent says or asks meanwhile is printed and granted."""
        self._asked += 1
        self._send({"id": self._asked, "method": method, "params": params})
        for line in self._reader:
            message: Json = json.loads(line)
            if "method" in message:
                self._heed(message)
            elif message.get("id") == self._asked:
                if "error" in message:
                    raise SystemExit(f"{method}: {message['error']}")
                return message.get("result") or {}
        raise SystemExit(f"{method}: the agent hung up")

    def _heed(self, message: Json) -> None:
        if "id" not in message:
            print(json.dumps(message["params"], ensure_ascii=False), flush=True)
            update = message["params"].get("update", {})
            if update.get("sessionUpdate") == "agent_message_chunk":
                self.said += update["content"].get("text", "")
        elif message["method"] == "session/request_permission":
            allowed = [each for each in message["params"]["options"] if each["kind"].startswith("allow")]
            chosen = {"outcome": {"outcome": "selected", "optionId": allowed[0]["optionId"]}}
            self._send({"id": message["id"], "result": chosen})
        else:
            self._send({"id": message["id"], "error": {"code": -32601, "message": "This editor cannot."}})

    def _send(self, message: Json) -> None:
        self._writer.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._writer.flush()


def main(session: str, words: str, command: list[str]) -> None:
    """Begins the agent, has it open the session, says the words and waits for its turn to end."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        editor = Editor(agent.stdout, agent.stdin)
        editor.ask("initialize", HELLO)
        editor.ask("session/load", {"sessionId": session, "cwd": str(Path.cwd()), "mcpServers": []})
        ended = editor.ask("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": words}]})
        print(json.dumps(ended), editor.said, flush=True)
        agent.terminate()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
