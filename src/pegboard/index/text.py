"""Words into terms: identifiers whole and in parts, stems, folded Unicode, bigrams where a script has no spaces.

Tools and queries go through the same code, so that what is written alike is found alike. Above: `documents`,
`intent`. Below: nothing of ours.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from typing import Any

# An identifier or a word: parts joined by what programmers join names with.
TOKEN = re.compile(r"[^\W_]+(?:[_\-./:][^\W_]+)*")
PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_A-Za-z]+")
# Han, kana and Hangul: written without spaces, or with particles grown on to the words.
UNSPACED = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+|[\u30a0-\u30ff]+|[\u3040-\u309f]+|[\uac00-\ud7af]+")
HIRAGANA = re.compile(r"[\u3040-\u309f]+")
WHOLE = "="
"""Marks a term that is a whole identifier, so that `createIssue` and `create_issue` are one and no word is either."""

STOP_WORDS = frozenset(
    """
    a about an and any are as at be been but by can could did do does for from had has have hello help hey hi how i if
    in into is it its like may me might my need of on or our out please should so some than that the their them then
    there these they this those to us use using very want was we were what when where which who why will with would
    you your""".split()  # noqa: SIM905 - a list would hide the words
)
_LONGEST_WORD = 64


def fold(text: str) -> str:
    """One spelling for what reads alike: compatibility forms, accents; case is kept, for it parts identifiers."""
    if text.isascii():
        return text
    apart = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text))
    # Only the marks that sit on letters of alphabets: kana keep their dakuten, Hangul is put together again.
    return unicodedata.normalize("NFC", "".join(each for each in apart if not "\u0300" <= each <= "\u036f"))


def spoken(text: str) -> str:
    """Identifiers as words: `createJiraIssue` becomes `create Jira Issue`."""
    return " ".join(part for token in TOKEN.findall(fold(text)) for part in PART.findall(token))


def terms(text: str, *, keep_stop_words: bool = False) -> list[str]:
    """All terms of a text in their order, repetitions included."""
    found: list[str] = []
    for token in TOKEN.findall(fold(text)):
        found += _terms_of(token, keep_stop_words)
    return found


def words(text: str) -> list[str]:
    """The terms that are words or parts of identifiers, none that is a whole identifier."""
    return [term for term in terms(text) if not term.startswith(WHOLE)]


@lru_cache(maxsize=1 << 16)
def _terms_of(token: str, keep_stop_words: bool) -> tuple[str, ...]:
    parts = [part.lower() for part in PART.findall(token)]
    found: list[str] = []
    for part in parts:
        if part.isascii():
            if keep_stop_words or part not in STOP_WORDS:
                found.append(stem(part[:_LONGEST_WORD]))
        else:
            found += _terms_beyond_ascii(part)
    if len(parts) > 1 and token.isascii():
        found.append(WHOLE + "".join(parts)[:_LONGEST_WORD])
    return tuple(found)


def _terms_beyond_ascii(part: str) -> list[str]:
    runs = UNSPACED.findall(part)
    if not runs:
        return [stem(part[:_LONGEST_WORD])]
    found: list[str] = []
    for run in runs:
        if HIRAGANA.fullmatch(run) and len(run) <= 2:
            continue  # particles and endings
        found += [run[at : at + 2] for at in range(len(run) - 1)] or [run]
    return found


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """The word without its endings, as English has them."""
    stemmed: str = _stemmer().stemWord(word)
    return stemmed


@cache
def _stemmer() -> Any:
    import Stemmer  # type: ignore[import-not-found]

    return Stemmer.Stemmer("english", 0)
