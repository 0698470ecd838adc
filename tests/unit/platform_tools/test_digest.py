"""All servers in few words: what is left out first when there is no room for everything."""

from __future__ import annotations

from itertools import pairwise

from pegboard.platform_tools.digest import Shelf, digest

SHELVES = [
    Shelf("github", 40, ("issue", "pull")),
    Shelf("slack", 12, ("message",)),
    Shelf("late", None),
    Shelf("notes", 3, ("note",)),
]
FORMS = [
    "github (40: issue pull), slack (12: message), late (not asked yet), notes (3: note)",
    "github (40), slack (12), late (?), notes (3)",
    "github, slack, late, notes",
]


def test_words_go_before_counts_and_counts_before_any_servers_name():
    for form, shorter in pairwise(FORMS):
        assert digest(SHELVES, len(form), len) == form
        assert digest(SHELVES, len(form) - 1, len) == shorter


def test_names_that_find_no_room_are_counted_and_never_lost_in_silence():
    many = [Shelf(f"server-{number}", 2) for number in range(100)]
    line = digest(many, 200, len)
    assert len(line) <= 200
    named = line.count("server-")
    assert line.endswith(f"{100 - named} more servers with {2 * (100 - named)} tools")
    assert named > 5
