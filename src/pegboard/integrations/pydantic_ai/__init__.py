"""Pegboard for Pydantic AI: a toolset that lists what is loaded, and a capability that runs what is not listed.

Above: whoever writes an agent. Below: the board. Nothing here looks at all tools for a step.
"""

from __future__ import annotations

from pegboard.integrations import needs

with needs("pydantic-ai"):
    import pydantic_ai  # noqa: F401  here so that what is missing is said with how to install it

from pegboard.integrations.pydantic_ai.approval import run_approval
from pegboard.integrations.pydantic_ai.capability import PegboardCapability
from pegboard.integrations.pydantic_ai.toolset import PegboardToolset

__all__ = ["PegboardCapability", "PegboardToolset", "run_approval"]
