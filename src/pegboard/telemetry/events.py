"""What happened, as frozen values. Whoever watches the engine gets these; nothing here decides anything."""

from __future__ import annotations

import msgspec

from pegboard.types import ServerState


class ToolsUpdated(msgspec.Struct, frozen=True, kw_only=True, tag="tools_updated", tag_field="event"):
    """A refresh changed what one server offers; the tools are named by their public names."""

    server: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    catalog_version: str = ""


class ServerChanged(msgspec.Struct, frozen=True, kw_only=True, tag="server_changed", tag_field="event"):
    """One server moved to another state; `reason` says why when that is not obvious."""

    server: str
    state: ServerState
    reason: str = ""


class SkillsUpdated(msgspec.Struct, frozen=True, kw_only=True, tag="skills_updated", tag_field="event"):
    """Skills came, went, or say something else of themselves."""


class OffersChanged(msgspec.Struct, frozen=True, kw_only=True, tag="offers_changed", tag_field="event"):
    """One server says that its prompts or resources are others now. It may say so as often as it likes."""

    server: str


Event = ToolsUpdated | ServerChanged | SkillsUpdated | OffersChanged
