"""A tool as a search's answer has it: a line to call it by, and one on what it does.

The full schema stands in where a line cannot say what a call needs. Above: the command line and Pegboard's own
tools. Below: `signature`, `visible`.
"""

from __future__ import annotations

import re
from typing import Literal

from pegboard.surface.signature import Signature, signature_of
from pegboard.surface.visible import as_json, one_line
from pegboard.types import Tool

Detail = Literal["signature", "schema", "names"]

LONGEST_SUMMARY = 140
FULL_WITHIN = 2_000
"""Characters of a schema that may stand in for a signature without being asked for."""
_FIRST_SENTENCE = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\betc)[.!?](?=\s|$)|\n\s*\n|\n(?=\s*[-*#\d])")
_LOOKED_AT = 2_000
_SHORTEST = 8
"""Characters of a first sentence that says something."""


def signature(tool: Tool) -> str:
    """`github__create_issue(title: str, body?: str, state?: open|closed)`."""
    return signed(tool).text


def signed(tool: Tool) -> Signature:
    """The signature, and what it cannot say."""
    return signature_of(tool.public_name, tool.input_schema)


def fits(tool: Tool) -> bool:
    """Whether a signature says all that a call needs."""
    return not signed(tool).missing


def summary(tool: Tool) -> str:
    """The first sentence on what it does, on one line."""
    text = tool.description.strip()[:_LOOKED_AT] or tool.title
    end = _FIRST_SENTENCE.search(text)
    return one_line(text[: end.end()] if end and end.start() >= _SHORTEST else text, LONGEST_SUMMARY)


def full_schema(tool: Tool) -> str:
    """The whole schema of its arguments, as compact JSON."""
    return as_json(tool.input_schema)


def rendered(tool: Tool, detail: Detail = "signature") -> str:
    """The tool as an answer shows it, in as much detail as was asked for, or as a call needs."""
    if detail == "names":
        return tool.public_name
    if detail == "schema":
        return _lines(tool.public_name, summary(tool), f"arguments: {full_schema(tool)}")
    line = signed(tool)
    if not line.missing:
        return _lines(line.text, summary(tool))
    schema = full_schema(tool)
    if len(schema) <= FULL_WITHIN:
        return _lines(tool.public_name, summary(tool), f"arguments: {schema}")
    return _lines(line.text, summary(tool), f'not all of it: {line.missing[0]}; ask with detail "schema"')


def _lines(first: str, *more: str) -> str:
    return "\n  ".join([first, *(line for line in more if line)])
