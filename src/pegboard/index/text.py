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
# Vowel signs of Indic scripts, Thai and their neighbours are no letters to `\w`, but belong to the word.
_SIGNS = "\u0900-\u0963\u0971-\u0dff\u0e01-\u0e3a\u0e40-\u0e4e\u0e80-\u0ecd\u0f71-\u0fbc\u1000-\u103f\u1780-\u17d3"
_LETTER = rf"(?:[^\W_]|[{_SIGNS}])"
_WIDE_TOKEN = re.compile(rf"{_LETTER}+(?:[_\-./:]{_LETTER}+)*")
_WIDE_PART = re.compile(rf"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|(?:[^\W\d_A-Za-z]|[{_SIGNS}])+")
# Han, kana and Hangul: written without spaces, or with particles grown on to the words.
UNSPACED = re.compile(
    r"[\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+|[\u30a0-\u30ff]+|[\u3040-\u309f]+|[\uac00-\ud7af]+"
)
HIRAGANA = re.compile(r"[\u3040-\u309f]+")
# `GitHub`, `PostgreSQL`, `YouTube`: names of products, which others write as one word.
# A capital after a small letter or two before one, or what is not ASCII: told by what all begin with, which is looked
# for in a quarter of the time that three alternatives take.
_MAY_BE_BRAND = re.compile(r"[A-Z\x80-\U0010ffff](?:(?<=[a-z].)|(?<=[^\x00-\x7f])|[A-Z][a-z])")
_BRAND = re.compile(r"[A-Z]+[a-z]+[A-Z][A-Za-z]*|[A-Z]{2,}[a-z]+")
_JOINT = re.compile(r"[_\-./:]")
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
_LONGEST_TOKEN = 256


def fold(text: str) -> str:
    """One spelling for what reads alike: compatibility forms, accents; case is kept, for it parts identifiers."""
    if text.isascii():
        return text
    apart = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text))
    # Only the marks that sit on letters of alphabets: kana keep their dakuten, Hangul is put together again.
    return unicodedata.normalize("NFC", "".join(each for each in apart if not "\u0300" <= each <= "\u036f"))


def spoken(text: str) -> str:
    """Identifiers as words: `createJiraIssue` becomes `create Jira Issue`."""
    return " ".join(part for token in _tokens(text) for part in _parts_of(token))


def terms(text: str, *, keep_stop_words: bool = False, brands: bool = True) -> list[str]:
    """All terms of a text in their order, repetitions included; `brands` also gives `GitHub` as one word."""
    found: list[str] = []
    for token in _tokens(text):
        found += _terms_of(token[:_LONGEST_TOKEN], keep_stop_words, brands)
    return found


def brand_parts(text: str) -> list[str]:
    """The parts of products' names in a text, which say little by themselves: `git` and `hub` of `GitHub`."""
    if not _MAY_BE_BRAND.search(text):
        return []
    brands = (brand for token in _tokens(text) for brand in _brands_in(token))
    return [stem(part.lower()[:_LONGEST_WORD]) for brand in brands for part in _parts_of(brand)]


def words(text: str, *, keep_stop_words: bool = False) -> list[str]:
    """The terms that are words or parts of identifiers, none that is a whole identifier."""
    return [term for term in terms(text, keep_stop_words=keep_stop_words, brands=False) if not term.startswith(WHOLE)]


def _tokens(text: str) -> list[str]:
    plain = fold(text)
    found: list[str] = (TOKEN if plain.isascii() else _WIDE_TOKEN).findall(plain)
    return found


def _parts_of(token: str) -> list[str]:
    found: list[str] = (PART if token.isascii() else _WIDE_PART).findall(token)
    return found


def _brands_in(token: str) -> list[str]:
    """The products' names in it: two of them in `GitHub/GitLab`."""
    return [piece for piece in _JOINT.split(token) if _BRAND.fullmatch(piece)]


@lru_cache(maxsize=1 << 16)
def _terms_of(token: str, keep_stop_words: bool, brands: bool) -> tuple[str, ...]:
    parts = [part.lower() for part in _parts_of(token)]
    found: list[str] = []
    for part in parts:
        if part.isascii():
            if keep_stop_words or part not in STOP_WORDS:
                found.append(stem(part[:_LONGEST_WORD]))
        else:
            found += _terms_beyond_ascii(part)
    if len(parts) > 1 and token.isascii():
        found.append(WHOLE + "".join(parts)[:_LONGEST_WORD])
        found += [stem(brand.lower()[:_LONGEST_WORD]) for brand in _brands_in(token)] if brands else []
    return tuple(found)


def _terms_beyond_ascii(part: str) -> list[str]:
    found = [stem(spaced[:_LONGEST_WORD]) for spaced in UNSPACED.split(part) if spaced]
    for run in UNSPACED.findall(part):
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
