"""Events are plain frozen values that travel as JSON."""

from __future__ import annotations

import msgspec
import pytest

from pegboard.telemetry.events import Event, OffersChanged, ServerChanged, ToolsUpdated
from pegboard.types import ServerState


@pytest.mark.parametrize(
    "event",
    [
        ToolsUpdated(server="a", added=("a__x",), removed=(), changed=("a__y",), catalog_version="sha256:0"),
        ServerChanged(server="a", state=ServerState.ERROR, reason="it died"),
        OffersChanged(server="a"),
    ],
)
def test_an_event_comes_back_from_json_as_itself(event):
    assert msgspec.json.decode(msgspec.json.encode(event), type=Event) == event


def test_the_name_of_an_event_is_in_its_json():
    assert msgspec.to_builtins(ToolsUpdated(server="a"))["event"] == "tools_updated"
    assert msgspec.to_builtins(ServerChanged(server="a", state=ServerState.READY))["event"] == "server_changed"


def test_an_event_cannot_be_changed():
    with pytest.raises(AttributeError):
        setattr(ToolsUpdated(server="a"), "server", "b")  # noqa: B010 -- an assignment would be caught by mypy
