"""Notes with tags, in the SQLite file that NOTES_FILE names or in memory: `python notes.py [--http 8000]`."""

from __future__ import annotations

import argparse
import os
import socket
import sqlite3
from typing import Annotated

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

SCHEMA = """
CREATE TABLE IF NOT EXISTS notes
    (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL, created TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE IF NOT EXISTS tags
    (note INTEGER NOT NULL REFERENCES notes (id) ON DELETE CASCADE, tag TEXT NOT NULL, PRIMARY KEY (note, tag));
PRAGMA foreign_keys = ON;
"""
SELECT = "SELECT id, text, created, (SELECT group_concat(tag, ' ') FROM tags WHERE note = id) FROM notes"
READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
DELETES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
META = {"com.example/category": "notes"}
Tag = Annotated[str, Field(pattern=r"^[\w-]+$", max_length=40)]
Limit = Annotated[int, Field(ge=1, le=100)]

server = MCPServer("notes", version="1.0", instructions="Keeps short notes with tags.", log_level="WARNING")
# The tools are coroutines that never wait, so they run one at a time on one thread, as this connection needs it.
database = sqlite3.connect(os.environ.get("NOTES_FILE", ":memory:"))
database.executescript(SCHEMA)


class Note(BaseModel):
    """One note."""

    id: int
    text: str
    created: str
    tags: list[str] = []


class Notes(BaseModel):
    """Notes, newest first."""

    notes: list[Note]


def select(where: str, *values: str | int | None) -> list[Note]:
    """The notes that match."""
    rows = database.execute(f"{SELECT} {where}", values)
    return [Note(id=row[0], text=row[1], created=row[2], tags=(row[3] or "").split()) for row in rows]


def one(note_id: int) -> Note:
    """The note with this id, or a failure the caller can act on."""
    if not (found := select("WHERE id = ?", note_id)):
        raise ToolError(f"There is no note {note_id}. list_notes shows the ids.")
    return found[0]


@server.tool(title="Add a note", annotations=WRITES, meta=META)
async def add_note(text: Annotated[str, Field(min_length=1)], tags: list[Tag] | None = None) -> Note:
    """Saves a note, and gives it back with its id."""
    with database:
        note_id = database.execute("INSERT INTO notes (text) VALUES (?) RETURNING id", (text,)).fetchone()[0]
    return await tag_note(note_id, tags)


@server.tool(title="Search notes", annotations=READS, meta=META)
async def search_notes(query: str, limit: Limit = 10) -> Notes:
    """Finds the notes that contain every word of the query, in their text or as a tag."""
    has_word = "(instr(lower(text), lower(?)) OR id IN (SELECT note FROM tags WHERE lower(tag) = lower(?)))"
    words = sorted(query.split() * 2)  # each twice, side by side: once for the text, once for the tags
    where = " AND ".join([has_word] * (len(words) // 2)) or "TRUE"
    return Notes(notes=select(f"WHERE {where} ORDER BY id DESC LIMIT ?", *words, limit))


@server.tool(title="List notes", annotations=READS, meta=META)
async def list_notes(tag: str | None = None, limit: Limit = 20) -> Notes:
    """The newest notes, all or those with a tag."""
    where = "WHERE ? IS NULL OR id IN (SELECT note FROM tags WHERE tag = ?) ORDER BY id DESC LIMIT ?"
    return Notes(notes=select(where, tag, tag, limit))


@server.tool(title="Tag a note", annotations=WRITES, meta=META)
async def tag_note(note_id: int, add: list[Tag] | None = None, remove: list[Tag] | None = None) -> Note:
    """Adds tags to a note and takes tags from it."""
    one(note_id)
    with database:
        database.executemany("DELETE FROM tags WHERE note = ? AND tag = ?", [(note_id, tag) for tag in remove or ()])
        database.executemany("INSERT OR IGNORE INTO tags VALUES (?, ?)", [(note_id, tag) for tag in add or ()])
    return one(note_id)


@server.tool(title="Delete a note", annotations=DELETES, meta=META)
async def delete_note(note_id: int) -> Note:
    """Deletes a note, and gives back what it was."""
    note = one(note_id)
    with database:
        database.execute("DELETE FROM notes WHERE id = ?", (note_id,))
    return note


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
