"""Pegboard as a library: a board of tools, the conversations that use it, and Python functions as tools.

Above: the plug-ins for agent frameworks, and whoever writes an agent. Below: the engine and its desk.
"""

from pegboard.board.board import Pegboard
from pegboard.board.chat import Chat
from pegboard.board.result import Result

__all__ = ["Chat", "Pegboard", "Result"]
