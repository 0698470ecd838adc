"""Every number that ranking was measured with, in one place. `pegboard eval` and `make bench` say what they bring."""

from __future__ import annotations

# ── words: fielded BM25, in the order of documents.FIELDS ────────────────────────────────────────────────────────────

FIELD_WEIGHT = (2.0, 1.0, 1.0, 1.0, 0.5, 0.3, 1.0, 0.5, 2.0, 1.0)
FIELD_LENGTH = (3.0, 3.0, 3.0, 22.0, 6.0, 40.0, 3.0, 3.0, 3.0, 6.0)
"""Usual lengths in terms. Constants, not averages of the catalog: a tool's part of the index depends on nothing but
the tool, and no server can shift the others by padding its own texts."""
LENGTH_PULL = 0.75
SATURATION = 1.2
MOST_REPEATS = 4
"""More repetitions of a term in one field count no more: stuffing a description is of no use."""

LITERAL = 0.2
"""Weight of words inside quotes, paths, addresses and numbers: they are what a tool is given, rarely what it is."""
KIND = 0.5
"""Weight of the words a literal stands for: a path speaks of files, an address of pages."""
MISSPELT = 0.6
SYNONYM = 0.25
"""Weight of words that stand for one that was asked."""
BRAND_PART = 0.25
"""Weight of `git` in a query that says `GitHub`."""
REPEATED = 0.3
"""What each repetition of a word in the query adds."""

# ── meaning ──────────────────────────────────────────────────────────────────────────────────────────────────────────

LEXICAL, DENSE = 0.3, 0.7
"""Shares of the two halves, each standardised over all tools for one query."""

# ── re-ranking, in units of the fused score ──────────────────────────────────────────────────────────────────────────

NAME_COVERED = 0.5
QUERY_COVERED = 1.5
SERVER_NAMED = 0.5
VERB_AGREES = 0.15
CLAUSE = 0.5
"""Share of the best clause's score where a task has several."""

CANDIDATES = 100
CROWD = 20
"""Candidates of servers of limited trust from which on others are looked for besides."""

# ── which results are copies of each other ───────────────────────────────────────────────────────────────────────────

COPY_LIKENESS = 0.95
NAMESAKE_LIKENESS = 0.85
SAME_GIST = 5
"""Equal columns of two descriptions' sketches, of eight, that make namesakes copies where there are no vectors."""
FEW = 200
"""Where filters leave no more tools than this, all of them are candidates."""
