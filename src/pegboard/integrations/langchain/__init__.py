"""LangChain: middleware that gives a `create_agent` agent a board of tools, a source for its own tools,
and approval by interrupts.

Above: whoever writes an agent. Below: the board. `pip install 'pegboard[langchain]'`.
"""

from pegboard.integrations import needs

with needs("langchain"):
    from pegboard.integrations.langchain.approval import run_approval
    from pegboard.integrations.langchain.middleware import PegboardMiddleware
    from pegboard.integrations.langchain.tools import ToolSource

__all__ = ["PegboardMiddleware", "ToolSource", "run_approval"]
