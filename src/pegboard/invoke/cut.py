"""Where to cut a text so that a stretch of it, made visible, fits in so many bytes. A character is never torn.

The text stays as it came; only the stretch that is shown is looked at, so a huge text costs no more than a page.
Above: `shape`, `pages`. Below: `visible`.
"""

from __future__ import annotations

from pegboard.invoke.visible import sticks_to_previous, visible

_BACK = 16
"""How far a cut moves to keep signs together that are written with several characters."""


def size_of(text: str) -> int:
    """Bytes of the text as UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def head_end(text: str, start: int, stop: int, limit: int) -> int:
    """The end of the longest stretch from `start` that fits; at least one character, unless there is none."""
    end = start + _characters_from_start(text[start : min(stop, start + limit)], limit)
    while end > start + 1 and (size := size_of(visible(text, start, end))) > limit:
        end = max(start + 1, min(end - 1, start + (end - start) * limit // size))
    for back in range(_BACK if end < stop else 0):
        if end - back <= start + 1:
            break
        if not sticks_to_previous(text, end - back):
            return end - back
    return min(max(end, start + 1), stop)


def tail_start(text: str, start: int, stop: int, limit: int) -> int:
    """The beginning of the longest stretch up to `stop` that fits, not before `start`."""
    begin = stop - _characters_from_end(text[max(start, stop - limit) : stop], limit)
    while begin < stop and (size := size_of(visible(text, begin, stop))) > limit:
        begin = min(stop, max(begin + 1, stop - (stop - begin) * limit // size))
    for forward in range(_BACK if begin > start else 0):
        if begin + forward >= stop or not sticks_to_previous(text, begin + forward):
            return begin + forward
    return begin


def _characters_from_start(text: str, limit: int) -> int:
    if text.isascii():
        return min(len(text), limit)
    raw = text.encode("utf-8", "surrogatepass")
    cut = min(limit, len(raw))
    while cut < len(raw) and cut and raw[cut] & 0xC0 == 0x80:
        cut -= 1
    return len(raw[:cut].decode("utf-8", "surrogatepass"))


def _characters_from_end(text: str, limit: int) -> int:
    if text.isascii():
        return min(len(text), limit)
    raw = text.encode("utf-8", "surrogatepass")
    cut = max(0, len(raw) - limit)
    while cut < len(raw) and raw[cut] & 0xC0 == 0x80:
        cut += 1
    return len(raw[cut:].decode("utf-8", "surrogatepass"))
