"""How tokens are counted."""

from __future__ import annotations

import pytest

from pegboard.surface.tokens import WORD_PIECES, definition_tokens, tool_tokens
from tests.unit.index.given import suite_tools, taking, tool


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", 0),
        ("   \n", 0),
        ("create an issue", 3),
        ("createIssue", 2),
        ("create_issue", 3),
        ("internationalization", 2),
        ("HTTPServer", 3),
        ("1234567", 3),
        ('{"type":"object"}', 5),
        ("日本語", 3),
    ],
)
def test_words_numbers_and_signs_are_counted(text, pieces):
    assert WORD_PIECES.count(text) == pieces


DEFINITION = (
    '{"name":"github__create_issue","description":"Open a new issue in a GitHub repository, optionally with labels and '
    'assignees.","input_schema":{"type":"object","properties":{"owner":{"type":"string","description":"Account or '
    'organization that owns the repository"}},"required":["owner"]}}'
)
PROSE = "Read the complete contents of a local file as text. Only works within allowed directories."
SIGNATURE = "github__list_issues(owner: str, repo: str, state?: open|closed|all, labels?: list[str])"


# Counted with tiktoken's o200k_base.
@pytest.mark.parametrize(("text", "o200k"), [(DEFINITION, 59), (PROSE, 17), (SIGNATURE, 26)])
def test_the_estimate_is_near_a_real_tokenizer(text, o200k):
    assert abs(WORD_PIECES.count(text) - o200k) <= 0.15 * o200k


def test_a_very_long_text_is_worked_out_from_its_beginning():
    whole = "create an issue " * 40_000
    assert abs(WORD_PIECES.count(whole) - 120_000) < 100


def test_a_tool_costs_what_a_model_is_sent_of_it():
    plain = tool("t", "Does it.", schema=taking(title="A title"))
    assert tool_tokens(plain) == definition_tokens({**plain.parsed(), "name": plain.public_name})
    assert tool_tokens(tool("t", "Does it.", schema=taking(title="A title"), meta={"a": "b" * 99})) == tool_tokens(
        plain
    )
    assert tool_tokens(tool("t", "Does it at once.", schema=taking(title="A title"))) > tool_tokens(plain)


def test_a_real_tokenizer_can_be_handed_in():
    class Characters:
        name = "characters"

        def count(self, text: str) -> int:
            return len(text)

    for each in suite_tools()[:20]:
        assert tool_tokens(each, Characters()) > 2 * tool_tokens(each)


def test_the_estimate_says_its_name():
    assert WORD_PIECES.name == "word pieces (estimate)"
