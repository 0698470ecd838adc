"""A JSON Schema on one line: `create_issue(title: str, state?: open|closed, limit?: int 1..100 = 30)`.

A server wrote the schema, so every walk, list and text in here has an end. What the line cannot say but a call may
need is reported as missing. Above: `render`. Below: `visible`, `notes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from pegboard.surface import notes
from pegboard.surface.visible import as_json, literal, one_line, parameter_name
from pegboard.types import Json

MOST_PARAMETERS = 12
MOST_NEEDED = 20
MOST_NAMED = 12
MOST_CHARACTERS = 900
_MOST_NODES = 160
_DEEPEST = 4
_MOST_OPTIONS = 5
_MOST_CHOICES = 64
_CHOICES_CHARACTERS = 160
_FEW_CHOICES = 5
_LONGEST = 40
_LONGEST_DEFAULT = 24
_LONGEST_PATTERN = 24
_NOTES_CHARACTERS = 240
_MOST_STEPS = 16

_PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "dict", "null": "null"}
_UNSAYABLE = (
    "patternProperties",
    "propertyNames",
    "not",
    "if",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
    "contains",
    "$dynamicRef",
    "$recursiveRef",
)
_ALTERNATIVES = ("oneOf", "anyOf")


class Signature(msgspec.Struct, frozen=True):
    """The line, and what it leaves out that a call may need."""

    text: str
    missing: tuple[str, ...] = ()


def signature_of(name: str, schema: Json) -> Signature:
    """The signature of a tool that takes this."""
    writer = _Writer(schema)
    return Signature(f"{name}({writer.arguments()})", tuple(writer.missing))


class _Writer:
    """Writes one schema, and notes what it could not write."""

    def __init__(self, root: Json) -> None:
        self.root = root
        self.missing: dict[str, None] = {}
        self.nodes = _MOST_NODES
        self.notes = _NOTES_CHARACTERS
        self.open: set[str] = set()

    # ── parameters ───────────────────────────────────────────────────────────────────────────────────────────────────

    def arguments(self) -> str:
        """What stands between the brackets."""
        schema = self._followed(self.root, needed=True)
        schema = self._merged(schema, needed=True)
        for keyword in _ALTERNATIVES:
            if _options(schema, keyword):
                self._miss(f"it is one of several shapes ({keyword})")
        kind = schema.get("type", "object")
        if kind != "object" and not (isinstance(kind, list) and "object" in kind):
            self._miss("its arguments are no object")
        self._unsayable(schema, needed=True)
        return ", ".join(self._parameters(schema, 0, needed=True, characters=MOST_CHARACTERS))

    def _parameters(self, schema: Json, depth: int, *, needed: bool, characters: int) -> Iterator[str]:
        """Each parameter; those that are needed first. Beyond what there is room for, their names, then a count."""
        properties = schema.get("properties")
        members = properties if isinstance(properties, dict) else {}
        must = _strings(schema.get("required"))
        # In the order they are required in: that of the members themselves is lost where definitions are kept sorted.
        first = [name for name in must if name in members]
        names = [*first, *(name for name in members if name not in must)]
        most = min(max(MOST_PARAMETERS, len(first)), MOST_NEEDED)
        folded: list[str] = []
        for number, name in enumerate(names):
            fits = number < most and characters > 0
            text = self._parameter(name, members[name], depth, must=name in must, needed=needed) if fits else ""
            if fits and len(text) <= characters:
                characters -= len(text)
                yield text
            else:
                folded.append(name)
        yield from self._folded(folded, must, needed=needed)
        more = schema.get("additionalProperties")
        if isinstance(more, dict) and more:
            yield f"**: {self.type(more, depth + 1, needed=False)}"

    def _parameter(self, name: str, schema: Any, depth: int, *, must: bool, needed: bool) -> str:
        written = self.type(schema, depth + 1, needed=must and needed)
        said = schema if isinstance(schema, dict) else {}
        remark = self._note(name, said.get("description"), must=must) if depth == 0 else ""
        return f"{parameter_name(name, _LONGEST)}{'' if must else '?'}: {written}{_default(said)}{remark}"

    def _folded(self, names: list[str], must: dict[str, None], *, needed: bool) -> Iterator[str]:
        if not names:
            return
        if needed and any(name in must for name in names):
            self._miss("it needs more than a line holds")
        for name in names[:MOST_NAMED]:
            yield parameter_name(name, _LONGEST) + ("" if name in must else "?")
        if len(names) > MOST_NAMED:
            yield f"… {len(names) - MOST_NAMED} more"

    def _note(self, name: str, description: object, *, must: bool) -> str:
        if self.notes <= 0:
            return ""
        text = notes.note(name, description, needed=must)
        self.notes -= len(text)
        return f" ({text})" if text else ""

    # ── types ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def type(self, schema: Any, depth: int, *, needed: bool) -> str:
        """The type, as short as it can be."""
        self.nodes -= 1
        if not isinstance(schema, dict):
            return "never" if schema is False else "any"
        if depth > _DEEPEST or self.nodes < 0:
            self._miss("it is nested too deeply", needed=needed)
            return "…"
        target = schema.get("$ref")
        if not isinstance(target, str):
            return self._written(schema, depth, needed=needed)
        if target in self.open:
            self._miss("it refers to itself", needed=needed)
            return "…"
        self.open.add(target)
        try:
            return self._written(self._followed(schema, needed=needed), depth, needed=needed)
        finally:
            self.open.discard(target)

    def _written(self, schema: Json, depth: int, *, needed: bool) -> str:
        schema = self._merged(schema, needed=needed)
        self._unsayable(schema, needed=needed)
        if "const" in schema:
            return literal(schema["const"], _LONGEST)
        choices = schema.get("enum")
        if isinstance(choices, list) and choices:
            return self._choices(choices, needed=needed)
        kind = schema.get("type")
        if isinstance(kind, list):
            kinds = [each for each in kind[:_MOST_OPTIONS] if isinstance(each, str)]
            return _union(self._of_kind(schema, each, depth, needed=needed) for each in kinds)
        for keyword in _ALTERNATIVES:
            options = _options(schema, keyword)
            if options:
                if len(options) > _MOST_OPTIONS:
                    self._miss(f"it is one of {len(options):,} shapes", needed=needed)
                return _union(self.type(option, depth, needed=needed) for option in options[:_MOST_OPTIONS])
        return self._of_kind(schema, kind if isinstance(kind, str) else _guessed(schema), depth, needed=needed)

    def _of_kind(self, schema: Json, kind: str, depth: int, *, needed: bool) -> str:
        if kind == "array":
            return self._list(schema, depth, needed=needed)
        if kind == "object":
            return self._object(schema, depth, needed=needed)
        if kind == "string":
            return "str" + _form(schema)
        if kind in ("integer", "number"):
            return _PLAIN[kind] + _range(schema)
        return _PLAIN.get(kind) or one_line(kind, _LONGEST) or "any"

    def _list(self, schema: Json, depth: int, *, needed: bool) -> str:
        first, items = schema.get("prefixItems"), schema.get("items", {})
        places = first if isinstance(first, list) else items if isinstance(items, list) else None
        if not places:
            return f"list[{self.type(items if isinstance(items, dict | bool) else {}, depth + 1, needed=needed)}]"
        written = [self.type(place, depth + 1, needed=needed) for place in places[:_MOST_OPTIONS]]
        return f"[{', '.join(written)}{', …' if len(places) > _MOST_OPTIONS else ''}]"

    def _object(self, schema: Json, depth: int, *, needed: bool) -> str:
        if schema.get("properties") and isinstance(schema["properties"], dict):
            members = self._parameters(schema, depth, needed=needed, characters=MOST_CHARACTERS // 2)
            return "{" + ", ".join(members) + "}"
        more = schema.get("additionalProperties")
        if isinstance(more, dict) and more:
            return f"dict[str, {self.type(more, depth + 1, needed=needed)}]"
        return "dict"

    def _choices(self, choices: list[Any], *, needed: bool) -> str:
        """All of them, or the first few: a list that is cut is worth little, however long it is."""
        shown = list(dict.fromkeys(literal(choice, _LONGEST) for choice in choices[:_MOST_CHOICES]))
        if len(choices) <= _MOST_CHOICES and sum(map(len, shown)) + len(shown) <= _CHOICES_CHARACTERS:
            return "|".join(shown)
        self._miss("a parameter has more choices than a line holds", needed=needed)
        few = shown[:_FEW_CHOICES]
        return "|".join([*few, f"… {len(choices) - len(few):,} more"])

    # ── what schemas say of other schemas ────────────────────────────────────────────────────────────────────────────

    def _followed(self, schema: Json, *, needed: bool) -> Json:
        """The schema that a reference means, with what stands beside the reference."""
        for _ in range(_MOST_STEPS):
            target = schema.get("$ref")
            if not isinstance(target, str):
                return schema
            found = _target(self.root, target)
            if found is None:
                self._miss("it refers to what is not there", needed=needed)
                found = {}
            schema = {**found, **{key: value for key, value in schema.items() if key != "$ref"}}
        self._miss("it refers on and on", needed=needed)
        return {}

    def _merged(self, schema: Json, *, needed: bool) -> Json:
        """`allOf` of one is that one; of several that are plain objects, all their members together."""
        parts = _options(schema, "allOf")
        if not parts:
            return schema
        rest = {key: value for key, value in schema.items() if key != "allOf"}
        followed = [self._followed(part, needed=needed) for part in parts[:_MOST_OPTIONS] if isinstance(part, dict)]
        if len(followed) < len(parts) or any("allOf" in part for part in followed):
            self._miss("it is several shapes at once (allOf)", needed=needed)
        if len(followed) == 1:
            return {**followed[0], **rest}
        whole: Json = dict(rest)
        for part in followed:
            whole = _joined(whole, part)
            if not part.keys() <= {"type", "properties", "required", "title", "description", "additionalProperties"}:
                self._miss("it is several shapes at once (allOf)", needed=needed)
        return whole

    def _unsayable(self, schema: Json, *, needed: bool) -> None:
        for keyword in _UNSAYABLE:
            if schema.get(keyword):
                self._miss(f"it has rules that a line cannot say ({keyword})", needed=needed)

    def _miss(self, what: str, *, needed: bool = True) -> None:
        if needed:
            self.missing[what] = None


def _union(options: Iterable[str]) -> str:
    return "|".join(dict.fromkeys(options)) or "any"


def _options(schema: Json, keyword: str) -> list[Any]:
    found = schema.get(keyword)
    return found if isinstance(found, list) else []


def _strings(value: Any) -> dict[str, None]:
    """The texts in a list, in their order."""
    return dict.fromkeys(each for each in value if isinstance(each, str)) if isinstance(value, list) else {}


def _joined(one: Json, other: Json) -> Json:
    """Two object schemas as one."""
    properties = {**_mapping(one.get("properties")), **_mapping(other.get("properties"))}
    required = [*(_strings(one.get("required")) | _strings(other.get("required")))]
    return {**other, **one, "properties": properties, "required": required}


def _mapping(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _guessed(schema: Json) -> str:
    """What a schema without a type is about."""
    if isinstance(schema.get("properties"), dict):
        return "object"
    return "array" if "items" in schema else "any"


def _form(schema: Json) -> str:
    """What a string must look like, where that takes a word."""
    said = schema.get("format")
    if isinstance(said, str) and said and len(said) <= _LONGEST_PATTERN:
        return f"<{one_line(said, _LONGEST)}>"
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and 0 < len(pattern) <= _LONGEST_PATTERN and pattern.isprintable():
        return f" /{pattern}/"
    return ""


def _range(schema: Json) -> str:
    low = _bound(schema, "minimum", "exclusiveMinimum", "")
    high = _bound(schema, "maximum", "exclusiveMaximum", "")
    if low and high:
        return f" {low}..{high}"
    return f" >={low}" if low else f" <={high}" if high else ""


def _bound(schema: Json, keyword: str, exclusive: str, none: str) -> str:
    """An inclusive bound; one that is exclusive, or larger than any honest one, is left to the full schema."""
    value = schema.get(keyword)
    sensible = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e12
    return as_json(value) if sensible and exclusive not in schema else none


def _default(schema: Json) -> str:
    value = schema.get("default")
    if value is None or value in ("", [], {}):
        return ""
    text = literal(value, _LONGEST_DEFAULT)
    return f" = {text}" if "…" not in text else ""


def _target(root: Json, reference: str) -> Json | None:
    """The schema that `#/…` points at; any other kind of reference is not followed."""
    if reference == "#":
        return root
    if not reference.startswith("#/") or "%" in reference:
        return None
    node: Any = root
    for step in reference[2:].split("/")[:_MOST_STEPS]:
        key = step.replace("~1", "/").replace("~0", "~")
        node = node.get(key) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else None
