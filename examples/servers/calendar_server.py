"""A calendar in memory that reports progress and asks back: `python calendar_server.py [--http 8000]`."""

from __future__ import annotations

import argparse
import socket
from datetime import UTC, datetime
from itertools import count
from typing import Annotated

import uvicorn
from mcp.server.mcpserver import Context, Elicit, ElicitationResult, MCPServer, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import AfterValidator, BaseModel, Field

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
DELETES = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=False)


def in_utc(moment: datetime) -> datetime:
    """The moment with a zone, so that all can be compared."""
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


Moment = Annotated[datetime, AfterValidator(in_utc)]

server = MCPServer("calendar", title="Calendar", version="1.0", log_level="WARNING")


class Event(BaseModel):
    """One event."""

    id: int
    title: str
    start: Moment
    minutes: int


class Events(BaseModel):
    """Several events."""

    events: list[Event]


class Deletion(BaseModel):
    """What became of a wish to delete."""

    deleted: bool
    event: Event


class Confirmation(BaseModel):
    """What the person is asked before an event is deleted."""

    delete: bool = Field(description="Really delete it?")


ids = count(1)
calendar: dict[int, Event] = {}


@server.tool(title="Add an event", annotations=WRITES, meta={"com.example/category": "calendar"})
async def add_event(title: str, start: Moment, minutes: Annotated[int, Field(ge=1)] = 60) -> Event:
    """Enters an event. A time without a zone is taken as UTC."""
    event = Event(id=next(ids), title=title, start=start, minutes=minutes)
    calendar[event.id] = event
    return event


@server.tool(title="List events", annotations=READS)
async def list_events(after: Moment | None = None, before: Moment | None = None) -> Events:
    """The events in a span of time, earliest first."""
    found = (e for e in calendar.values() if (not after or e.start >= after) and (not before or e.start < before))
    return Events(events=sorted(found, key=lambda event: event.start))


@server.tool(title="Import events", annotations=WRITES)
async def import_events(lines: list[str], ctx: Context) -> Events:
    """Enters many events, one a line: `2027-03-01T14:00 Dentist`. All or none; reports progress line by line."""
    parsed: list[tuple[datetime, str]] = []
    for number, line in enumerate(lines, 1):
        start, _, title = line.partition(" ")
        try:
            parsed.append((in_utc(datetime.fromisoformat(start)), title.strip() or "Untitled"))
        except ValueError as error:
            raise ToolError(f"Line {number} does not begin with a time: {line!r}. Nothing was imported.") from error
        await ctx.report_progress(number, len(lines), f"read {title.strip()}")
    return Events(events=[await add_event(title, start) for start, title in parsed])


async def confirm(event_id: int) -> Elicit[Confirmation]:
    """The question before the deed."""
    if event_id not in calendar:
        raise ToolError(f"There is no event {event_id}. list_events shows the ids.")
    event = calendar[event_id]
    return Elicit(f"Delete {event.title!r} on {event.start:%d %B %Y at %H:%M}?", Confirmation)


@server.tool(title="Delete an event", annotations=DELETES)
async def delete_event(event_id: int, answer: Annotated[ElicitationResult[Confirmation], Resolve(confirm)]) -> Deletion:
    """Deletes an event, once the person has agreed to it."""
    agreed = answer.action == "accept" and answer.data.delete
    return Deletion(deleted=agreed, event=calendar.pop(event_id) if agreed else calendar[event_id])


def main() -> None:
    """Serves on stdio, or over HTTP on a port of this machine (0 takes a free one)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--http", type=int, metavar="PORT", help="serve streamable HTTP on 127.0.0.1 instead of stdio")
    if (port := parser.parse_args().http) is None:
        return server.run("stdio")
    with socket.create_server(("127.0.0.1", port)) as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
        return uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning")).run([listener])


if __name__ == "__main__":
    main()
