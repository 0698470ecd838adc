"""When the description of a parameter is worth its tokens: where it says what neither name nor type can.

A format, a unit, an example, a limit is worth it; "The name of the repository" for `repo` is not.
Above: `signature`. Below: `visible`.
"""

from __future__ import annotations

import re

from pegboard.surface.visible import one_line

LONGEST = 60
_LOOKED_AT = 600
_TELLING = re.compile(
    r"\d|[`\"]|'[^']+'|\be\.?g\b|\bi\.e\b|\bsuch as\b|\bfor example\b|\bformat(?:s|ted)?\b|\bISO\b|\bUTC\b"
    r"|\bcomma\b|\bseparated\b|\babsolute\b|\brelative\b|\bregex|\bregular expression\b|\bbase64\b|\bencoded\b"
    r"|\b(?:milli)?seconds?\b|\bminutes?\b|\bhours?\b|\bdays?\b|\bbytes?\b|\bpercent|\bcents\b|\bcurrency\b"
    r"|\bmust\b|\beither\b|\bone of\b|\bmarkdown\b|\bHTML\b|\bSQL\b|\bcron\b|\bIANA\b|\bslug\b|\bprefix|\bglob\b"
    r"|\bwildcards?\b|\brequired (?:if|when)\b|\bonly (?:if|when|for)\b|\binstead of\b|\bignored\b|\bcase[- ]",
    re.IGNORECASE,
)
_SENTENCE_ENDS = re.compile(r"(?<=[.!?;])\s+(?=[A-Z(\"'`])|\n\s*\n")
_ABBREVIATED = re.compile(r"\b(?:e\.g|i\.e|etc|vs|approx|incl|no)\.$", re.IGNORECASE)
_WORDS = re.compile(r"[a-z]{2,}")
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z]+")
_SAYS_NOTHING = re.compile(
    r"(?:the|an?|of|to|for|in|on|by|is|be|it|its|this|that|with|from|which|and|or|if|as|at|are|was|will|can|may|use|used"
    r"|using|name|id|identifier|value|string|number|integer|boolean|list|array|object|param(?:eter)?|argument|optional"
    r"|required|specif(?:y|ies|ied)|set|whether|want(?:ed)?|given|provided?|new|your?|not|all|any|default)"
)


def note(name: str, description: object, *, needed: bool) -> str:
    """What of a parameter's description is worth saying beside its name and type; often nothing."""
    if not isinstance(description, str) or not description.strip():
        return ""
    sentences = _sentences(description[:_LOOKED_AT])
    telling = next((each for each in sentences if _TELLING.search(each)), "")
    if telling:
        return _closed(one_line(_core(telling), LONGEST))
    # A needed parameter whose name alone says little gets its words, if they say more.
    if needed and sentences and len(_parts(name)) == 1 and len(name) <= 3 and _adds(name, sentences[0]):
        return _closed(one_line(_core(sentences[0]), LONGEST))
    return ""


def _sentences(text: str) -> list[str]:
    """The sentences; a full stop that only ends an abbreviation ends none."""
    whole: list[str] = []
    for part in _SENTENCE_ENDS.split(text):
        if whole and _ABBREVIATED.search(whole[-1]):
            whole[-1] += " " + part
        else:
            whole.append(part)
    return [each.strip() for each in whole if each.strip()]


def _core(sentence: str) -> str:
    """The sentence without what every description begins and ends with."""
    shorter = re.sub(r"^(?:optional|required)\s*[:.,-]?\s+|^(?:the|an?)\s+", "", sentence, flags=re.IGNORECASE)
    return shorter.rstrip(".")


def _closed(text: str) -> str:
    """The text without a bracket that the cut left open."""
    at = text.rfind("(")
    if text.count("(") <= text.count(")"):
        return text
    return text[:at].rstrip(" ,;:") if at > LONGEST // 3 else text.replace("(", "")


def _adds(name: str, sentence: str) -> bool:
    known = _parts(name)
    said = {word for word in _WORDS.findall(sentence.lower()) if not _SAYS_NOTHING.fullmatch(word)}
    return any(not any(word.startswith(part) or part.startswith(word) for part in known) for word in said)


def _parts(name: str) -> set[str]:
    return {part.lower() for part in _HUMPS.split(name) if part}
