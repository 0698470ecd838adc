"""What a tool's input schema says for certain, compiled once. What we do not understand demands nothing.

Schemas come from servers: no pattern is run, nothing is fetched, every reference is followed once, and what is
left out only ever makes us more lenient, because the server validates anyway. Above: `arguments`. Below: nothing.
"""

from __future__ import annotations

from typing import Any

import msgspec

from pegboard.types import Json

TYPES = frozenset({"string", "boolean", "integer", "number", "array", "object", "null"})
LIMITS = {
    "minimum": ("number", "must be at least {}"),
    "maximum": ("number", "must be at most {}"),
    "exclusiveMinimum": ("number", "must be more than {}"),
    "exclusiveMaximum": ("number", "must be less than {}"),
    "minLength": ("string", "must have at least {} characters"),
    "maxLength": ("string", "must have at most {} characters"),
    "minItems": ("array", "must have at least {} items"),
    "maxItems": ("array", "must have at most {} items"),
}
"""Keywords that bound a value: the type they speak of, and how to say that they are not kept."""
_MAX_DEPTH = 96
_MAX_RULES = 10_000


class Enum(msgspec.Struct, frozen=True):
    """The values that are allowed, those that are quick to look up apart from the others."""

    values: list[Any]
    scalars: frozenset[Any]
    nested: tuple[Any, ...]


class Rule(msgspec.Struct):
    """What one schema demands. Empty fields demand nothing. Not frozen, because a rule may refer to itself."""

    types: frozenset[str] = frozenset()
    enum: Enum | None = None
    properties: dict[str, Rule] = {}
    required: tuple[str, ...] = ()
    closed: bool = False
    """No other properties are allowed."""
    items: Rule | None = None
    limits: tuple[tuple[str, float], ...] = ()
    all_of: tuple[Rule, ...] = ()
    any_of: tuple[tuple[Rule, ...], ...] = ()
    """Of each group, at least one."""
    only_types: bool = False
    """Demands a type and nothing else: most properties do."""
    only_fields: bool = False
    """Demands a type and properties, and nothing else of the whole."""


ANYTHING = Rule()


def compile_schema(schema: Any) -> Rule:
    """The rule of a schema, whatever it may be."""
    return _Compiler(schema).rule(schema) if isinstance(schema, dict) else ANYTHING


class _Compiler:
    """Turns one document into rules, each schema in it once: a cycle becomes a rule that refers to itself."""

    def __init__(self, root: Json) -> None:
        self._root = root
        self._made: dict[int, Rule] = {}
        dialect = root.get("$schema")
        # Up to draft 7, what stands beside a reference does not count.
        self._reference_alone = isinstance(dialect, str) and "draft-0" in dialect

    def rule(self, schema: Any, depth: int = 0) -> Rule:
        if not isinstance(schema, dict) or depth > _MAX_DEPTH:
            return ANYTHING
        known = self._made.get(id(schema))
        if known is not None:
            return known
        if len(self._made) >= _MAX_RULES:
            return ANYTHING
        rule = self._made[id(schema)] = Rule()
        self._fill(rule, schema, depth + 1)
        rule.only_types = rule == Rule(types=rule.types)
        rule.only_fields = not (rule.all_of or rule.any_of or rule.enum or rule.limits)
        return rule

    def _fill(self, rule: Rule, schema: Json, depth: int) -> None:
        reference = schema.get("$ref")
        if isinstance(reference, str):
            rule.all_of = (self.rule(self._target(reference), depth),)
            if self._reference_alone:
                return
        if depth > 1 and "$id" in schema:
            return  # a document in the document: its references mean other things than they say
        rule.types = _types(schema)
        if isinstance(enum := schema.get("enum"), list):
            rule.enum = _enum(enum)
        elif "const" in schema:
            rule.enum = _enum([schema["const"]])
        rule.limits = tuple((word, schema[word]) for word in LIMITS if _is_number(schema.get(word)))
        self._fill_object(rule, schema, depth)
        if "prefixItems" not in schema and isinstance(items := schema.get("items"), dict):
            rule.items = self.rule(items, depth)
        if isinstance(every := schema.get("allOf"), list):
            rule.all_of += tuple(self.rule(each, depth) for each in every)
        groups = [group for word in ("anyOf", "oneOf") if isinstance(group := schema.get(word), list) and group]
        rule.any_of = tuple(tuple(self.rule(each, depth) for each in group) for group in groups)

    def _fill_object(self, rule: Rule, schema: Json, depth: int) -> None:
        properties = schema.get("properties")
        if isinstance(properties, dict):
            rule.properties = {name: self.rule(each, depth) for name, each in properties.items()}
        required = schema.get("required")
        if isinstance(required, list):
            rule.required = tuple(dict.fromkeys(name for name in required if isinstance(name, str)))
        rule.closed = schema.get("additionalProperties") is False and "patternProperties" not in schema

    def _target(self, reference: str) -> Any:
        """What a reference inside the document means; None, which demands nothing, for any other."""
        if reference == "#":
            return self._root
        if not reference.startswith("#/") or "%" in reference:
            return None
        node: Any = self._root
        for escaped in reference[2:].split("/"):
            if not isinstance(node, dict) or (node is not self._root and "$id" in node):
                return None
            node = node.get(escaped.replace("~1", "/").replace("~0", "~"))
        return node


def _enum(values: list[Any]) -> Enum:
    nested = tuple(each for each in values if isinstance(each, dict | list))
    return Enum(values, frozenset(each for each in values if not isinstance(each, dict | list)), nested)


def _types(schema: Json) -> frozenset[str]:
    said = schema.get("type")
    types = frozenset([said] if isinstance(said, str) else filter(_is_text, said) if isinstance(said, list) else ())
    if not types or not types <= TYPES or (isinstance(said, list) and len(said) != len(types)):
        return frozenset()
    return types | {"null"} if schema.get("nullable") is True else types


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
