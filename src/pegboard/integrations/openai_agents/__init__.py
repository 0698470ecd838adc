"""Pegboard for the OpenAI Agents SDK: a server for `Agent(mcp_servers=[...])` that lists what each run has loaded.

Start reading at `server`. Above: whoever writes an agent. Below: the board.
"""

from pegboard.integrations import needs

with needs("openai-agents"):
    from pegboard.integrations.openai_agents.approvals import run_approval
    from pegboard.integrations.openai_agents.server import PegboardServer

__all__ = ["PegboardServer", "run_approval"]
