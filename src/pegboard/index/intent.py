"""What somebody asks for, taken apart: names, demanded words, what is only an argument, and the steps of a task.

Above: `rank`, `index`. Below: `text`, `verbs`. No tool is known here.
"""

from __future__ import annotations

import re
from collections import Counter

import msgspec

from pegboard.index import weights
from pegboard.index.text import STOP_WORDS, WHOLE, brand_parts, fold, spoken, stem, terms, words
from pegboard.index.thesaurus import in_english, same_as
from pegboard.index.verbs import ALL, kinds_in

LONGEST = 8000
"""Characters of a query that are read."""
MOST_CLAUSES = 6
MOST_WITH_SYNONYMS = 16
"""Words of a query up to which synonyms are added: a longer text says things in more ways than one itself."""
SELECT = "select:"

_FILE_ENDINGS = (
    "py|js|ts|txt|csv|tsv|json|md|html?|pdf|docx?|xlsx?|pptx?|png|jpe?g|gif|svg|ya?ml|toml|xml|sh|sql|log|mp[34]|wav|"
    "zip|tar|gz|ipynb|parquet|db"
)
_ADDRESS = r"(?:https?|ftp)://\S+|www\.\S+"
_MAIL = r"[\w.+-]{1,64}@[\w-]{1,64}\.[\w.]{1,64}"
_PATH = rf"(?<![\w/])(?:\.{{0,2}}/|~/|[A-Za-z]:[\\/])[\w.\-/\\{{}}]+|\b[\w\-/]{{1,200}}\.(?:{_FILE_ENDINGS})\b"
_QUOTED = r'"[^"]{1,400}"|“[^”]{1,400}”|‘[^’]{1,400}’|«[^»]{1,400}»|(?<!\w)\'[^\'\n]{1,200}\'(?!\w)|`[^`]{1,400}`'
_CODE = r"[#$@][\w\-]+|\b[A-Za-z]*\d[\w\-.:/]*|(?:(?<!\w)[-+])?\d[\d.,:/\-]*"
# None begins inside a word, and none is a plain word: not to try there halves the time that a long query takes.
_MAY_BEGIN = r"(?:(?<![A-Za-z])|(?![A-Za-z]))(?=[^\w\s]|\w*[\d.@:/\\+\-])"
_LITERAL = re.compile(f"{_MAY_BEGIN}(?:{_ADDRESS}|{_MAIL}|{_PATH}|{_QUOTED}|{_CODE})")
_KINDS = (
    (re.compile(_ADDRESS), "url"),
    (re.compile(_MAIL), "email"),
    (re.compile(_PATH), "file"),
    (re.compile(r"^#[a-z]"), "channel"),
    (re.compile(r"^\+\d"), "phone"),
)
_DEMANDED = re.compile(r"(?<!\S)\+([^\W\d_]\S*)")
_MORE_VERBS = (
    "answer|ask|assign|attach|click|close|comment|copy|count|deploy|draft|draw|fill|go|install|invite|log|mark|merge|"
    "move|pay|plot|pull|push|put|rate|reply|review|scroll|sort|submit|sync|take|tag|test|turn|type|visit|wait"
)
"""Verbs that begin a step, beside those that say what kind of tool is meant."""
_IDIOMS = (
    ("ell ", re.compile(r"\btell (me|us)\b", re.IGNORECASE), r"show \1"),
    ("et ", re.compile(r"\blet (me|us) know\b", re.IGNORECASE), r"show \1"),
    (
        "ile ",
        re.compile(r"\bfile (an?|the|this|that) (bug|issue|ticket|report|complaint|claim)", re.IGNORECASE),
        r"create \1 \2",
    ),
    ("PR", re.compile(r"\bPRs?\b"), "pull request"),
    ("MR", re.compile(r"\bMRs?\b"), "merge request"),
    ("et up", re.compile(r"\bset up\b", re.IGNORECASE), "create"),
)
"""Turns of phrase whose words taken one by one mean something else, each with a quick sign that it may be there."""
_VERBS = f"{'|'.join(ALL)}|{_MORE_VERBS}"
_STEP = re.compile(
    r"(?=[\s,;。！？；，])(?:(?<=[.!?;])\s+|[\n。！？；]+|;\s*|，"
    r"|,?\s+(?:and then|then|after that|and also|also|additionally|next|finally|afterwards|as well as)\s+"
    rf"|,?\s+and\s+(?=(?:{_VERBS})\b)|,\s+and\s+|,\s+(?=(?:{_VERBS})\b))",
    re.IGNORECASE,
)


_SPACES = re.compile(r"\s(?:\s+|(?<=[^ \n]))")
"""Several blanks, or one that is neither a space nor a line end."""


class Word(msgspec.Struct, frozen=True):
    """One term of the query: what it weighs, and in which clauses it stands (a bit each)."""

    term: str
    weight: float
    clauses: int = 0
    asked: bool = True
    """False for what is inside a literal, or only stands for a word or is a part of it: it may be missing."""


class Demand(msgspec.Struct, frozen=True):
    """A word that a tool must have, and the terms by which it does: all those of one of the alternatives."""

    word: str
    ways: tuple[tuple[str, ...], ...]

    @property
    def is_common(self) -> bool:
        """Whether it is one of the words that texts are not indexed by."""
        return self.word in STOP_WORDS


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """A query, understood as far as that goes without knowing the tools."""

    text: str
    selected: tuple[str, ...] = ()
    """Exact names that `select:` asks for."""
    demanded: tuple[Demand, ...] = ()
    """What a tool must have: `+word`."""
    words: tuple[Word, ...] = ()
    clauses: tuple[str, ...] = ()
    """The steps of a task that has several; none when it has one."""
    verbs: frozenset[int] = frozenset()
    embedded: tuple[str, ...] = ()
    """What the embedder is given: the whole, the whole without its literals, and each clause."""


def understand(query: str) -> Intent:
    """The query taken apart. Any text will do: nothing here fails, and the work is bounded."""
    if query.lstrip()[: len(SELECT)].lower() == SELECT:
        names = (name.strip() for name in query.lstrip()[len(SELECT) : LONGEST].split(","))
        return Intent(text=query[:LONGEST], selected=tuple(dict.fromkeys(name for name in names if name)))
    text = _with_single_spaces(fold(query[:LONGEST])[:LONGEST]).strip()
    demanded: tuple[Demand, ...] = ()
    if "+" in text:
        demanded = tuple(dict.fromkeys(_demand(word) for word in _DEMANDED.findall(text)))
        text = _DEMANDED.sub(lambda match: match.group(1), text)
    for hint, idiom, plain in _IDIOMS:
        if hint in text:
            text = idiom.sub(plain, text)
    core, literals = _parted(text)
    kinds = dict.fromkeys(kind for each in literals if (kind := _kind_of(each)))
    steps = _steps(core)
    english = in_english(core)
    said = terms(core)
    asked = " ".join((core, *kinds, *english)) if literals or english else text
    return Intent(
        text=text,
        demanded=demanded,
        words=_words(core, said, literals, (*kinds, *english), list(steps.values())),
        clauses=tuple(steps),
        verbs=kinds_in((*said, *map(stem, english))),
        embedded=(text, asked if asked.strip() else text, *steps),
    )


def _parted(text: str) -> tuple[str, list[str]]:
    """The text without its literals, and these."""
    literals: list[str] = []

    def take(match: re.Match[str]) -> str:
        literals.append(match.group())
        return " "

    return _with_single_spaces(_LITERAL.sub(take, text)), literals


def _with_single_spaces(text: str) -> str:
    """For whatever looks for steps would try each run of blanks from each of its places."""
    return _SPACES.sub(lambda run: "\n" if "\n" in run.group() else " ", text)


def _kind_of(literal: str) -> str:
    """What a literal speaks of: a path of files, an address of pages."""
    return next((kind for pattern, kind in _KINDS if pattern.search(literal)), "")


def _demand(word: str) -> Demand:
    """What `+word` asks a tool to have: all parts of it, or the product it is the name of."""
    every, parts = terms(word), words(word, keep_stop_words=True)
    # Texts are not indexed by the `in` of `sign-in`: there it is found whole or not at all.
    whole = [term for term in every if term.startswith(WHOLE)] if parts != words(word) else []
    brand = [term for term in every if not term.startswith(WHOLE) and term not in parts]
    return Demand(spoken(word).lower(), tuple(tuple(each) for each in (parts, whole, brand) if each))


def _steps(core: str) -> dict[str, list[str]]:
    """The steps of a task and their terms; none when it has only one."""
    parts = _STEP.split(core)
    if len(parts) < 2:
        return {}
    steps = {step: said for part in parts if part and len(said := terms(step := part.strip(" ,."))) >= 2}
    return dict(list(steps.items())[:MOST_CLAUSES]) if len(steps) > 1 else {}


def _words(
    core: str, said: list[str], literals: list[str], kinds: tuple[str, ...], steps: list[list[str]]
) -> tuple[Word, ...]:
    weighed: dict[str, float] = {}
    for term in said:
        weighed[term] = weighed.get(term, 1.0 - weights.REPEATED) + weights.REPEATED
    times = Counter(said)  # in products' names and elsewhere
    said_in_brands = {part for part, number in Counter(brand_parts(core)).items() if number == times[part]}
    weighed |= dict.fromkeys(said_in_brands, weights.BRAND_PART)
    where: dict[str, int] = {}
    for number, step in enumerate(steps):
        for term in step:
            where[term] = where.get(term, 0) | 1 << number
    for kind in kinds:
        weighed.setdefault(stem(kind), weights.KIND)
    found = [
        Word(term, weight, where.get(term, 0), asked=term not in said_in_brands) for term, weight in weighed.items()
    ]
    found += _synonyms(weighed, where)
    quoted = dict.fromkeys(term for literal in literals for term in terms(literal))
    found += [Word(term, weights.LITERAL, asked=False) for term in quoted if term not in weighed]
    if not found:
        # Nothing but stop words: then they are all there is to go by.
        found = [Word(term, 1.0) for term in dict.fromkeys(terms(core, keep_stop_words=True))]
    return tuple(found)


def _synonyms(weighed: dict[str, float], where: dict[str, int]) -> list[Word]:
    """Other words for what was asked, which count for less and are not missed where they are not found."""
    found: dict[str, Word] = {}
    if len(weighed) > MOST_WITH_SYNONYMS:
        return []
    for term, weight in weighed.items():
        for other in same_as(term):
            if other not in weighed:
                found.setdefault(other, Word(other, weight * weights.SYNONYM, where.get(term, 0), asked=False))
    return list(found.values())
