"""The parts of the plug-in for the OpenAI Agents SDK that need no runner."""

from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any

import pytest

from pegboard.integrations.openai_agents.approvals import Approvals
from pegboard.integrations.openai_agents.runs import key_of
from pegboard.types import Tool


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
