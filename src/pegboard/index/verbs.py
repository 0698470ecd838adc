"""Verbs that ask for the same kind of work: `remove` and `cancel` both mean that something goes away."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from pegboard.index.text import stem

KINDS = (
    "create add new make insert register open generate build compose start schedule book reserve",
    "get fetch retrieve read show view display see check give describe know provide lookup obtain access",
    "list enumerate browse",
    "search find look query discover seek locate recommend suggest",
    "update edit modify change set rename adjust replace patch alter",
    "delete remove cancel drop erase clear unsubscribe revoke",
    "send email message notify share post publish tell announce inform ping",
    "calculate compute convert solve estimate evaluate determine",
    "run execute launch play trigger",
    "upload import save store write put",
    "download export",
    "login signin authenticate",
    "translate",
    "analyze analyse summarize compare",
)
ALL = tuple(verb for kind in KINDS for verb in kind.split())
NONE = 255
"""The kind of a name that says no verb."""


@cache
def _kinds() -> dict[str, int]:
    return {stem(verb): number for number, kind in enumerate(KINDS) for verb in kind.split()}


def kind_of(name_words: Iterable[str]) -> int:
    """The kind of the first verb in a tool's name."""
    kinds = _kinds()
    return next((kinds[word] for word in name_words if word in kinds), NONE)


def kinds_in(query_words: Iterable[str]) -> frozenset[int]:
    """The kinds of all verbs in a query."""
    kinds = _kinds()
    return frozenset(kinds[word] for word in query_words if word in kinds)
