"""Definitions and names that many sessions share, each once: a session refers to them by number.

Above: the readers and `kept`, which saves the tables along. Below: the doctor's nouns.
"""

from __future__ import annotations

from collections.abc import Iterable

from pegboard.doctor.facts import Definition


class Tables:
    """Two lists that only grow, and where everything is in them."""

    def __init__(self, definitions: Iterable[Definition] = (), names: Iterable[str] = ()) -> None:
        self.definitions = list(definitions)
        self.names = list(names)
        self._definition_at = {each: number for number, each in enumerate(self.definitions)}
        self._name_at = {each: number for number, each in enumerate(self.names)}

    def definition(self, definition: Definition) -> int:
        """Its number, a new one if need be."""
        number = self._definition_at.setdefault(definition, len(self.definitions))
        if number == len(self.definitions):
            self.definitions.append(definition)
        return number

    def name(self, name: str) -> int:
        """Likewise for a name."""
        number = self._name_at.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number
