"""Follows `nextCursor` through a list, with an end to it: caps on pages and entries, no cursor twice."""

from __future__ import annotations

from typing import Any

from pegboard.types import Json


class Pages:
    """Collects the entries of a paginated list."""

    def __init__(self, field: str, *, max_pages: int, max_entries: int) -> None:
        self._field = field
        self._max_pages = max_pages
        self._max_entries = max_entries
        self._cursors: set[str] = set()
        self._last_cursor: str | None = None
        self._pages = 0
        self.entries: list[Any] = []
        self.first: Json = {}
        """The first page, which carries the list's cache hints."""
        self.warnings: list[str] = []

    def add(self, page: Json) -> str | None:
        """Takes a page; the cursor of the next, or None when the list is over or cut short."""
        self._pages += 1
        if self._pages == 1:
            self.first = page
        entries = page.get(self._field)
        if not isinstance(entries, list):
            self.warnings.append(f"page {self._pages} has no list of {self._field}")
            return None
        if self._last_cursor == "" and entries == self.first.get(self._field):
            return None  # to this server an empty cursor means the end, and then the beginning
        room = self._max_entries - len(self.entries)
        self.entries.extend(entries[:room])
        cursor = page.get("nextCursor")
        if len(entries) > room or (cursor is not None and len(self.entries) >= self._max_entries):
            self.warnings.append(f"only the first {self._max_entries} {self._field} were taken")
            return None
        if cursor is None:
            return None
        return cursor if self._may_go_on(cursor) else None

    def _may_go_on(self, cursor: Any) -> bool:
        if not isinstance(cursor, str):
            self.warnings.append(f"page {self._pages} has a cursor that is not a string; the list was cut there")
        elif self._pages >= self._max_pages:
            self.warnings.append(f"only the first {self._max_pages} pages of {self._field} were read")
        elif cursor in self._cursors:
            self.warnings.append(f"page {self._pages} repeats a cursor; the list was cut there")
        else:
            self._cursors.add(cursor)
            self._last_cursor = cursor
            return True
        return False
