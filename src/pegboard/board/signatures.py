"""A function's types as the JSON Schema of its arguments, and arguments as its types have them.

Above: `functions`. Below: msgspec, which knows most types; models of pydantic speak for themselves.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import msgspec

from pegboard.board.docstrings import read_docstring
from pegboard.errors import ConfigError
from pegboard.types import CallContext, Json

_ANY = inspect.Parameter.empty


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """A function as a tool."""

    name: str
    description: str
    function: Callable[..., Any]
    schema: Json
    arguments: type[msgspec.Struct]
    fields: tuple[str, ...]
    context: str = ""
    """The parameter that takes the CallContext, if it has one."""
    takes_more: bool = False
    """Whether it takes any other keyword."""

    def given(self, arguments: Json, context: CallContext) -> Json:
        """What to call it with; raises a ValidationError where arguments do not fit its types."""
        known = {name: arguments[name] for name in self.fields if name in arguments}
        made = msgspec.convert(known, self.arguments, strict=False, dec_hook=_validated)
        given = {name: getattr(made, name) for name in known}
        if self.takes_more:
            given |= {name: value for name, value in arguments.items() if name not in given}
        elif unknown := sorted(arguments.keys() - known.keys()):
            raise ValueError(f"it takes no {', '.join(map(repr, unknown))}")
        return {**given, self.context: context} if self.context else given


def read_function(function: Callable[..., Any], name: str = "") -> Reading:
    """The function as a tool; a ConfigError says why it cannot be one."""
    inside = _inside(function)
    name = name or getattr(inside, "__name__", type(inside).__name__)
    if name == "<lambda>":
        raise ConfigError("A lambda cannot be a tool: it has no name.", hint="Give it one: `board.tool(name=...)`.")
    about, notes = read_docstring(inspect.getdoc(inside) or "")
    parameters, context, takes_more = _parameters(function, name)
    # Of a default only that there is one matters here: what is not given is not passed on.
    fields = [
        (each.name, each.annotation, *([] if each.default is _ANY else [msgspec.field(default=None)]))
        for each in parameters
    ]
    try:
        arguments = msgspec.defstruct("Arguments", fields, kw_only=True)
        schema = _schema(arguments)
    except (TypeError, ValueError, AttributeError) as error:
        raise ConfigError(
            f"The function {name!r} cannot be a tool: {error}.", hint="Give its parameters types that JSON can say."
        ) from None
    for each in parameters:
        about_it = schema["properties"].get(each.name, {})
        if said := _said_of(each.annotation) or notes.get(each.name):
            about_it.setdefault("description", said)
        if each.default is not _ANY and each.default is not None:
            _say_default(about_it, each.default)
    if not takes_more:
        schema["additionalProperties"] = False
    return Reading(
        name=name,
        description=about,
        function=function,
        schema=schema,
        arguments=arguments,
        fields=tuple(each.name for each in parameters),
        context=context,
        takes_more=takes_more,
    )


def _parameters(function: Callable[..., Any], name: str) -> tuple[list[inspect.Parameter], str, bool]:
    """Its parameters with their types resolved, the one for the context, and whether it takes any keyword."""
    try:
        signature = inspect.signature(function)
        hints = _hints(function)
    except (TypeError, ValueError, NameError, AttributeError) as error:
        raise ConfigError(
            f"The function {name!r} cannot be a tool: its signature cannot be read ({error}).",
            hint="Import the types that its annotations name.",
        ) from None
    kept, context, takes_more = [], "", False
    for each in signature.parameters.values():
        if each.kind is inspect.Parameter.VAR_KEYWORD:
            takes_more = True
        elif each.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY):
            raise ConfigError(
                f"The function {name!r} cannot be a tool: arguments come by name, and {each.name!r} takes none.",
                hint="Wrap it in a function whose parameters have names.",
            )
        elif each.name == "self" and each.annotation is _ANY:
            raise ConfigError(
                f"The function {name!r} cannot be a tool: nobody knows whose method it is.",
                hint="Give the method of an object: `thing.method`, not `Thing.method`.",
            )
        elif hints.get(each.name) is CallContext:
            context = each.name
        else:
            kept.append(each.replace(annotation=hints.get(each.name, Any)))
    return kept, context, takes_more


def _inside(function: Callable[..., Any]) -> Any:
    """What has the name and the words: of a partial, what it calls."""
    while isinstance(function, partial):
        function = function.func
    return function


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of its parameters. What it returns is no matter, and may be a name that only type checkers know."""
    inside = _inside(function)
    if isinstance(inside, type):
        inside = inside.__init__  # type: ignore[misc]
    elif not inspect.isroutine(inside):
        inside = type(inside).__call__
    inside = inspect.unwrap(inside)
    said = {name: kind for name, kind in getattr(inside, "__annotations__", {}).items() if name != "return"}
    names = getattr(inside, "__globals__", {})
    return typing.get_type_hints(SimpleNamespace(__annotations__=said), globalns=names, include_extras=True)


def _said_of(annotation: Any) -> str:
    """What stands beside a type in `Annotated`: words, or something that has a description, as a field of pydantic."""
    for each in getattr(annotation, "__metadata__", ()):
        said = each if isinstance(each, str) else getattr(each, "description", None)
        if isinstance(said, str) and said:
            return said
    return ""


def _schema(arguments: type[msgspec.Struct]) -> Json:
    (root,), components = msgspec.json.schema_components([arguments], schema_hook=_model_schema)
    name = root["$ref"].rsplit("/", 1)[-1]
    schema: Json = components.pop(name)
    schema.pop("title", None)
    for each in schema.setdefault("properties", {}).values():
        if each.get("default", ...) is None:
            del each["default"]
    return _lifted({**schema, "$defs": components} if components else schema)


def _lifted(schema: Json) -> Json:
    """The schema with all definitions at its root: models of pydantic bring theirs along."""
    found: Json = {}

    def without(part: Any, *, root: bool = False) -> Any:
        if isinstance(part, list):
            return [without(each) for each in part]
        if not isinstance(part, dict):
            return part
        if not root and isinstance(part.get("$defs"), dict):
            found.update({name: without(each) for name, each in part["$defs"].items()})
        return {key: without(value) for key, value in part.items() if root or key != "$defs"}

    lifted: Json = without(schema, root=True)
    return {**lifted, "$defs": {**lifted.get("$defs", {}), **found}} if found else lifted


def _model_schema(kind: type) -> Json:
    described = getattr(kind, "model_json_schema", None)
    if described is None:
        raise TypeError(f"the type {getattr(kind, '__name__', kind)} has no JSON Schema")
    schema: Json = described()
    return schema


def _validated(kind: type, value: Any) -> Any:
    validate = getattr(kind, "model_validate", None)
    if validate is None:
        raise TypeError(f"the type {kind.__name__} cannot be read from JSON")
    return validate(value)


def _say_default(about: Json, default: Any) -> None:
    try:
        about.setdefault("default", msgspec.to_builtins(default))
    except (TypeError, ValueError):
        return  # one that JSON cannot say is still the function's own
