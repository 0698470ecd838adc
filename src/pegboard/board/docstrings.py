"""What a docstring says of a function and of its parameters, in Google's, Sphinx's or NumPy's way of writing."""

from __future__ import annotations

import re
from itertools import pairwise

_OF_PARAMETERS = ("Args", "Arguments", "Parameters", "Other Parameters")
_OTHERS = ("Return", "Returns", "Raises", "Yield", "Yields", "Example", "Examples", "Note", "Notes")
_SECTION = re.compile(rf"^({'|'.join((*_OF_PARAMETERS, *_OTHERS))})\s*:?\s*$")
_GOOGLE = re.compile(r"^\s{1,8}\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY = re.compile(r"^\*{0,2}(\w+)\s*(?::\s*.*)?$")
_SPHINX = re.compile(r"^:param\s+(?:[\w\[\], |.]+\s+)?(\w+)\s*:\s*(.*)$")
_RULE = re.compile(r"^-{3,}\s*$")


def read_docstring(doc: str) -> tuple[str, dict[str, str]]:
    """Its words on the whole, and on each parameter; indentation as `inspect.getdoc` leaves it."""
    lines = doc.splitlines()
    end = next((n for n, line in enumerate(lines) if _SECTION.match(line) or _SPHINX.match(line)), len(lines))
    notes: dict[str, str] = {}
    section, last = "", ""
    for line, following in pairwise([*lines[end:], ""]):
        if (found := _SECTION.match(line)) and not line.startswith(" "):
            section, last = (found[1], "") if not _RULE.match(following) else (f"{found[1]}-", "")
        elif found := _begins(line, section):
            last = found[1]
            notes.setdefault(last, found[2].strip() if found.re is not _NUMPY else "")
        elif last and line.startswith("  ") and line.strip():
            notes[last] = f"{notes[last]} {line.strip()}".strip()
        elif line.strip() and not _RULE.match(line):
            last = ""
    return "\n".join(lines[:end]).strip(), {name: note for name, note in notes.items() if note}


def _begins(line: str, section: str) -> re.Match[str] | None:
    """The parameter that a line begins to speak of."""
    if found := _SPHINX.match(line):
        return found
    if section.removesuffix("-") not in _OF_PARAMETERS:
        return None
    return _NUMPY.match(line) if section.endswith("-") else _GOOGLE.match(line)
