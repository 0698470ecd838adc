"""The parts of the plug-in for the OpenAI Agents SDK that need no runner."""

from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.integrations.openai_agents.approvals import Approvals, names_called
from pegboard.integrations.openai_agents.runs import key_of
from pegboard.types import Tool

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["name", "calls", "x"]), inner),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("forge__tool", {"name": "other"}, ["forge__tool"]),
        ("call_tool", {"name": "forge__tool"}, ["forge__tool"]),
        ("call_tool_write", {"name": "forge__tool"}, ["forge__tool"]),
        ("call_tool", {"name": "search_tools"}, []),
        ("batch_tools", {"calls": [{"name": "a"}, {"name": "read_result"}, {"name": "b"}]}, ["a", "b"]),
        ("batch_tools", {"calls": "a"}, []),
        ("search_tools", {"query": "x"}, []),
        ("read_result", {}, []),
    ],
)
def test_a_call_calls_itself_or_what_one_of_our_own_calls_for_it(
    name: str, arguments: Any, expected: list[str]
) -> None:
    assert names_called(name, arguments) == expected


@given(st.sampled_from(["call_tool", "batch_tools", "forge__tool"]), JSON)
def test_whatever_a_model_sends_gives_names(name: str, arguments: Any) -> None:
    assert all(isinstance(each, str) for each in names_called(name, arguments))


def test_approval_is_wanted_by_any_name_a_tool_is_known_by() -> None:
    tool = Tool(server="forge", name="delete_all", public_name="forge__delete_all", definition=b"{}", fingerprint="")
    assert not Approvals(())
    assert not Approvals(("drop_*",)).wants(tool)
    for glob in ("delete_*", "forge__*", "forge__delete_all"):
        assert Approvals((glob,)).wants(tool)


def test_a_session_is_known_by_its_id_and_anything_else_by_what_it_is() -> None:
    class Session:
        session_id = "ada"

    assert [key_of(each) for each in (Session(), "ada", 42)] == ["ada", "ada", "42"]


def test_where_the_framework_is_missing_the_import_says_how_to_get_it() -> None:
    code = "import sys; sys.modules['agents'] = None; import pegboard.integrations.openai_agents"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    assert "pip install 'pegboard[openai-agents]'" in done.stderr


def test_a_wrapped_model_can_be_copied_and_has_what_the_model_has() -> None:
    from agents.models.interface import Model

    from pegboard.integrations.openai_agents.unlisted import UnlistedCalls

    class Named(Model):
        label = "named"

        async def get_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    for wrapped in (UnlistedCalls(Named()), copy.copy(UnlistedCalls(Named())), copy.deepcopy(UnlistedCalls(Named()))):
        assert wrapped.label == "named"
        with pytest.raises(AttributeError):
            _ = wrapped.colour
