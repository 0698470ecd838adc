"""What tests of Pegboard, and of whatever is built on it, need: fakes of its seams and of the model APIs.

They keep the contracts of the real things. Above: nothing but tests.
"""

from pegboard.testing.fakes import FakeDesk, FakeSource, FakeStore, Handler, text_result, tool_definition
from pegboard.testing.llm import FakeLLM
from pegboard.testing.script import Fault, Move, ScriptedModel, Search, Shown

__all__ = [
    "FakeDesk",
    "FakeLLM",
    "FakeSource",
    "FakeStore",
    "Fault",
    "Handler",
    "Move",
    "ScriptedModel",
    "Search",
    "Shown",
    "text_result",
    "tool_definition",
]
