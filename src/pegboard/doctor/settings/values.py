"""Single values of settings files, as settings that say where they stand.

Above: the modules of the agents. Below: the machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from pegboard.config.importers.fields import kind_of
from pegboard.doctor.facts import Setting
from pegboard.doctor.settings.addresses import without_credentials
from pegboard.doctor.settings.machine import Document, Glance

Scope = Literal["managed", "local", "project", "user"]
Key = tuple[str, ...]

_ADDRESSES = ("url",)


def setting_at(document: Document, scope: Scope, key: Key, glance: Glance, *, name: str = "") -> Iterator[Setting]:
    """The value of a key, if it has a plain one; anything else is a problem."""
    value = document.at(key)
    if value is None:
        return
    text = as_text(value)
    if text is None:
        glance.report(document.file, f"`{'.'.join(key)}` should be text, but is {kind_of(value)}")
        return
    yield made(document, scope, key, name or ".".join(key), text)


def settings_at(document: Document, scope: Scope, keys: Iterable[Key], glance: Glance) -> Iterator[Setting]:
    """The values of several keys."""
    for key in keys:
        yield from setting_at(document, scope, key, glance)


def made(document: Document, scope: Scope, key: Key, name: str, text: str, element: int | None = None) -> Setting:
    """A value of this document; an address loses what only its owner should know."""
    is_address = key[-1].lower().endswith(_ADDRESSES)
    return Setting(
        name=name,
        value=without_credentials(text) if is_address else text,
        file=document.file,
        line=document.line(key, element),
        scope=scope,
        key=key,
        changed_at=document.changed_at,
    )


def as_text(value: Any) -> str | None:
    """A plain value as text; people write switches and numbers without quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


def texts(value: Any) -> list[str]:
    """The texts of what should be a list of them."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
