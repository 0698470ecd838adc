"""Characters that hide, reorder or steer text, spelled out so that a model and a person see the same.

Control characters (but \\n, \\t and \\r\\n), bidirectional controls, zero-width and invisible characters, tags and
variation selectors become `\\u202e` and the like. Kept is what writing needs: joiners between letters of the scripts
that join and inside emoji, one variation selector on a character that takes one, the flags that are spelled with
tags, directional marks beside right-to-left letters. Above: `shape`, `pages`, `words`. Below: nothing.
"""

from __future__ import annotations

import re
from functools import cache

_HIDDEN = (
    "[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_ASCII_HIDDEN = bytes([*range(9), *range(11, 32), 127])
_JOINING = "[\u0600-\u08ff\u0900-\u0dff\u0f00-\u109f\u1780-\u18af\u1900-\u1cff\ua800-\uabff\ufb50-\ufdff\ufe70-\ufefc]"
_RIGHT_TO_LEFT = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff]"
_UNSPACED = "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]"
_PICTURE = "[\u00a9\u00ae\u203c-\u2bff\u3030-\u303d\u3297\u3299\U0001f000-\U0001faff]"
_IDEOGRAPH = "[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
_FLAGS = tuple(
    "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f"
    for region in ("gbeng", "gbsct", "gbwls")
)


@cache
def _class(characters: str) -> re.Pattern[str]:
    """Compiled when first needed: most text needs none, and every start would pay milliseconds for them."""
    return re.compile(characters)


def is_clean(text: str) -> bool:
    """Whether there is nothing to spell out; quick for most text."""
    if text.isascii():
        raw = text.encode()
        return len(raw.translate(None, _ASCII_HIDDEN)) == len(raw) or visible(text) == text
    return _class(_HIDDEN).search(text) is None or visible(text) == text


def visible(text: str, start: int = 0, end: int | None = None) -> str:
    """A stretch of the text with what hides spelled out; what stands around it decides as if it were shown too."""
    end = len(text) if end is None else end
    parts: list[str] = []
    done = start
    for found in _class(_HIDDEN).finditer(text, start, end):
        at = found.start()
        if not _belongs(text, at):
            parts += (text[done:at], text[at].encode("unicode_escape").decode())
            done = at + 1
    if not parts:
        return text[start:end]
    parts.append(text[done:end])
    return "".join(parts)


def shown(text: str, longest: int) -> str:
    """Text that somebody else chose, on one line and no longer than that."""
    line = " ".join(visible(text[: longest + 1]).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def sticks_to_previous(text: str, at: int) -> bool:
    """Whether a cut before this character would tear something apart that is one sign, or one line end."""
    import unicodedata

    character, before = text[at], text[at - 1]
    if before == "\r":
        return character == "\n"
    return (
        before == "\u200d" or _class(_HIDDEN).match(character) is not None or unicodedata.category(character)[0] == "M"
    )


def _belongs(text: str, at: int) -> bool:
    """Whether writing needs this character here."""
    character = text[at]
    before = text[at - 1] if at else ""
    after = text[at + 1] if at + 1 < len(text) else ""
    if character == "\r":
        return after == "\n"
    if character in "\u200c\u200d":
        return _joins(character, before, after, text, at)
    if character in "\u200e\u200f\u061c":
        return bool(_class(_RIGHT_TO_LEFT).match(before) or _class(_RIGHT_TO_LEFT).match(after))
    if character == "\u200b":
        return bool(_class(_UNSPACED).match(before) and _class(_UNSPACED).match(after))
    return _selects(character, before) or _spells_a_flag(text, at)


def _joins(character: str, before: str, after: str, text: str, at: int) -> bool:
    if _class(_JOINING).match(before) and (_class(_JOINING).match(after) or not after.isalnum()):
        return after not in ("\u200c", "\u200d")
    if character == "\u200c" or not _class(_PICTURE).match(after):
        return False
    return bool(_class(_PICTURE).match(before)) or (
        before == "\ufe0f" and at > 1 and bool(_class(_PICTURE).match(text[at - 2]))
    )


def _selects(character: str, before: str) -> bool:
    if "\ufe00" <= character <= "\ufe0f":
        keycap = before in "0123456789#*" and character in "\ufe0e\ufe0f" and before != ""
        return keycap or bool(_class(_PICTURE).match(before) or _class(_IDEOGRAPH).match(before))
    if "\U000e0100" <= character <= "\U000e01ef":
        return bool(_class(_IDEOGRAPH).match(before))
    return "\u180b" <= character <= "\u180f" and "\u1820" <= before <= "\u18aa"


def _spells_a_flag(text: str, at: int) -> bool:
    if not "\U000e0020" <= text[at] <= "\U000e007f":
        return False
    begin = text.rfind("\U0001f3f4", max(0, at - 6), at)
    return begin >= 0 and text[begin : begin + 7] in _FLAGS
