"""Approval by the graph's own means: a call that needs a person interrupts the run, and is made when it goes on.

Middleware that asks goes by the name that the model used, and a tool has more than one: its bare name will do, and so
will `call_tool`. Here it is the call path that asks. Above: `Pegboard(approve=...)`. Below: `tools`.
"""

from __future__ import annotations

from typing import Any

from langgraph.errors import GraphBubbleUp
from langgraph.types import interrupt

from pegboard.integrations.langchain.tools import RUNNING
from pegboard.platform_tools.definitions import BATCH
from pegboard.types import Caller, Json, Tool


async def run_approval(tool: Tool, arguments: Json, _: Caller) -> bool:
    """Whether a person agrees, asked as `HumanInTheLoopMiddleware` asks; nobody can be asked about other calls."""
    running = RUNNING.get()
    # Of several calls at once some would be made again when the run goes on.
    if running is None or running.request.tool_call["name"] == BATCH:
        return False
    name = tool.public_name
    try:
        answer = interrupt(
            {
                "action_requests": [{"name": name, "args": arguments, "description": f"{name} needs your approval."}],
                "review_configs": [{"action_name": name, "allowed_decisions": ["approve", "reject"]}],
            }
        )
    except GraphBubbleUp as stop:
        running.raised = stop
        return False
    return _agrees(answer)


def _agrees(answer: Any) -> bool:
    decisions = answer.get("decisions") if isinstance(answer, dict) else None
    if not isinstance(decisions, list):
        return answer is True
    return [each.get("type") for each in decisions if isinstance(each, dict)] == ["approve"]
