"""Elements of a page. Whatever is not itself an element is escaped, so that no name can become one.

Above: `charts` and `page`. Below: nothing.
"""

from __future__ import annotations

from html import escape

_VOID = frozenset({"meta", "br"})


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def element(name: str, /, *children: str | None, **attributes: str | float | None) -> Markup:
    """One element; `class_` becomes `class`, `aria_label` `aria-label`; None is left out."""
    given = "".join(
        f' {_attribute(key)}="{text(_plain(value))}"' for key, value in attributes.items() if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{given} />")
    inside = "".join(each if isinstance(each, Markup) else text(each) for each in children if each is not None)
    return Markup(f"<{name}{given}>{inside}</{name}>")


def text(words: str) -> Markup:
    """Words that stay words, with what an eye would be fooled by spelled out."""
    if not words.isprintable():
        words = "".join(each if each.isprintable() or each == "\n" else _spelled(each) for each in words)
    return Markup(escape(words))


def joined(*parts: Markup) -> Markup:
    """One after the other."""
    return Markup("".join(parts))


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _plain(value: str | float) -> str:
    """Numbers of a drawing need no more than a hundredth."""
    return value if isinstance(value, str) else f"{round(float(value), 2):g}"
