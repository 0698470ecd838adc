"""Functions as tools: what their types and docstrings say, and what they are called with."""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, Optional, TypedDict

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from pegboard.board.signatures import read_function
from pegboard.errors import ConfigError
from pegboard.types import CallContext, Json


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: float
    y: float = 0.0


class Box(TypedDict):
    label: str
    corners: list[Point]


class Line(BaseModel):
    start: int
    end: int


class Person(BaseModel):
    name: str
    lines: list[Line] = []


def called(function: Any, arguments: Json) -> Any:
    reading = read_function(function)
    return function(**reading.given(arguments, CallContext()))


def test_required_optional_and_default_parameters_are_told_apart() -> None:
    def search(query: str, limit: int = 10, exact: bool = False, after: datetime | None = None) -> None: ...

    schema = read_function(search).schema
    assert schema["required"] == ["query"]
    assert schema["properties"]["limit"] == {"type": "integer", "default": 10}
    assert schema["properties"]["exact"] == {"type": "boolean", "default": False}
    assert "default" not in schema["properties"]["after"]
    assert schema["additionalProperties"] is False


def test_types_come_out_as_schemas_that_say_them() -> None:
    def place(
        colour: Colour,
        where: Point,
        how: Literal["soft", "hard"],
        box: Box,
        score: Annotated[int, msgspec.Meta(ge=0, le=5, description="How good.")],
        tags: Optional[dict[str, list[str]]] = None,  # noqa: UP045 - the old way of writing is met in the wild
    ) -> None: ...

    schema = read_function(place).schema
    jsonschema.Draft202012Validator.check_schema(schema)
    fits = {
        "colour": "red",
        "where": {"x": 1},
        "how": "soft",
        "box": {"label": "b", "corners": [{"x": 1, "y": 2}]},
        "score": 5,
    }
    jsonschema.validate(fits, schema)
    faults: list[Json] = [{"colour": "green"}, {"how": "medium"}, {"score": 6}, {"where": {}}, {"box": {"label": 1}}]
    for wrong in faults:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**fits, **wrong}, schema)
    assert schema["properties"]["score"]["description"] == "How good."


def test_a_function_gets_the_types_it_asked_for() -> None:
    def gather(colour: Colour, where: Point, when: datetime, many: set[int], who: Person) -> tuple[Any, ...]:
        return colour, where, when, many, who

    got = called(
        gather,
        {
            "colour": "blue",
            "where": {"x": 1, "y": 2},
            "when": "2026-01-02T03:04:05Z",
            "many": [1, 1, 2],
            "who": {"name": "Ada", "lines": [{"start": 1, "end": 2}]},
        },
    )
    assert got[:2] == (Colour.BLUE, Point(1, 2))
    assert got[2].year == 2026
    assert got[3] == {1, 2}
    assert got[4] == Person(name="Ada", lines=[Line(start=1, end=2)])


def test_definitions_that_models_bring_along_stand_at_the_root() -> None:
    def hire(person: Person) -> None: ...

    schema = read_function(hire).schema
    assert "Line" in schema["$defs"]
    jsonschema.validate({"person": {"name": "Ada", "lines": [{"start": 1, "end": 2}]}}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"person": {"name": "Ada", "lines": [{"start": "one"}]}}, schema)


def test_what_is_not_given_is_left_to_the_function() -> None:
    marker: list[int] = []

    def collect(into: list[int] = marker, size: int = 7) -> tuple[Any, ...]:
        return into, size

    assert called(collect, {})[0] is marker
    assert called(collect, {"size": 1}) == (marker, 1)


def test_numpy_docstrings_describe_the_parameters() -> None:
    def numpy(city: str, days: int = 1) -> str:
        """The weather.

        Parameters
        ----------
        city : str
            Where,
            by name.
        days
            How many.

        Returns
        -------
        str
            days: of the week.
        """
        return ""

    reading = read_function(numpy)
    assert reading.description == "The weather."
    assert reading.schema["properties"]["city"]["description"] == "Where, by name."
    assert reading.schema["properties"]["days"]["description"] == "How many."


def test_google_and_sphinx_docstrings_describe_the_parameters() -> None:
    def google(city: str, days: int = 1, unit: str = "c") -> str:
        """The weather in a city.

        Looks ahead a few days.

        Args:
            city: Where.
            days (int): How many days
                to look ahead.

        Returns:
            unit: not a parameter here.
        """
        return ""

    def sphinx(city: str) -> str:
        """The weather.

        :param city: Where.
        """
        return ""

    reading = read_function(google)
    assert reading.description == "The weather in a city.\n\nLooks ahead a few days."
    properties = reading.schema["properties"]
    assert properties["city"]["description"] == "Where."
    assert properties["days"]["description"] == "How many days to look ahead."
    assert "description" not in properties["unit"]
    assert read_function(sphinx).schema["properties"]["city"]["description"] == "Where."
    assert read_function(sphinx).description == "The weather."


def test_a_function_without_a_docstring_or_types_is_a_tool_too() -> None:
    def bare(thing, other=None): ...

    reading = read_function(bare)
    assert reading.description == ""
    assert reading.schema["required"] == ["thing"]


def test_the_context_is_handed_in_and_not_shown() -> None:
    def ask(question: str, context: CallContext) -> CallContext:
        return context

    reading = read_function(ask)
    assert list(reading.schema["properties"]) == ["question"]
    mine = CallContext(timeout=3)
    assert reading.given({"question": "?"}, mine)["context"] is mine


def test_any_keyword_is_taken_where_the_function_takes_any() -> None:
    def log(level: str, **fields: Any) -> Json:
        return {"level": level, **fields}

    assert "additionalProperties" not in read_function(log).schema
    assert called(log, {"level": "info", "user": 1}) == {"level": "info", "user": 1}


def test_partials_methods_and_objects_that_can_be_called_are_tools() -> None:
    def scale(value: float, by: float) -> float:
        return value * by

    class Counter:
        def __call__(self, step: int) -> int:
            return step + 1

        def add(self, step: int) -> int:
            return step + 2

    assert "value" in read_function(functools.partial(scale, by=2.0), "double").schema["properties"]
    assert called(Counter(), {"step": 1}) == 2
    assert called(Counter().add, {"step": 1}) == 3
    assert read_function(Counter()).name == "Counter"


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda *things: None, "by name"),
        (lambda thing, /: None, "by name"),
        (print, "by name"),
    ],
)
def test_what_cannot_be_called_by_name_is_refused_with_the_reason(function: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        read_function(function, "it")


def test_a_type_that_json_cannot_say_is_refused_with_the_functions_name() -> None:
    class Odd: ...

    def use(odd: Odd) -> None: ...

    use.__annotations__["odd"] = Odd
    with pytest.raises(ConfigError, match="'use' cannot be a tool"):
        read_function(use)


def test_unknown_arguments_are_named() -> None:
    def only(this: int) -> int:
        return this

    with pytest.raises(ValueError, match="takes no 'that'"):
        called(only, {"this": 1, "that": 2})


@given(st.text())
def test_no_docstring_breaks_the_reading(doc: str) -> None:
    def documented(city: str = "") -> None: ...

    documented.__doc__ = doc
    reading = read_function(documented)
    assert reading.schema["properties"]["city"]["type"] == "string"


class Desk:
    """A desk."""

    def take(self, what: str, times: int = 1) -> str:
        """Takes something off the desk."""
        return what * times


@dataclass
class Order:
    """An order of a customer."""

    article: str
    pieces: int = 1


def test_a_partial_has_the_name_and_the_words_of_what_it_calls() -> None:
    reading = read_function(functools.partial(Desk().take, times=2))
    assert (reading.name, reading.description) == ("take", "Takes something off the desk.")
    assert reading.schema["properties"]["what"] == {"type": "string"}


def test_a_class_is_called_with_what_makes_one_of_it() -> None:
    reading = read_function(Order)
    assert (reading.name, reading.description) == ("Order", "An order of a customer.")
    assert reading.schema["properties"] == {"article": {"type": "string"}, "pieces": {"type": "integer", "default": 1}}


@pytest.mark.parametrize(("function", "why"), [(Desk.take, "whose method"), (lambda x: x, "no name")])
def test_what_cannot_be_called_or_named_is_refused_with_a_hint(function: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        read_function(function)
    assert caught.value.hint


def test_words_beside_a_type_say_what_the_parameter_is_for() -> None:
    def order(
        article: Annotated[str, "What to order."],
        pieces: Annotated[int, Field(description="How many.")] = 1,
        note: Annotated[str, 7] = "",
    ) -> None:
        """Orders.

        Args:
            article: Not this.
            note: For the packer.
        """

    properties = read_function(order).schema["properties"]
    assert [each["description"] for each in properties.values()] == ["What to order.", "How many.", "For the packer."]


def test_a_type_that_only_type_checkers_know_is_no_matter_where_it_is_returned() -> None:
    def fetch(article: str) -> Unknown:  # type: ignore[name-defined]  # noqa: F821
        """Fetches."""

    assert read_function(fetch).schema["properties"] == {"article": {"type": "string"}}


def test_an_object_that_has_a_func_is_still_the_one_that_is_called() -> None:
    class Counter:
        """Counts."""

        func = staticmethod(len)

        def __call__(self, number: int) -> int:
            return number

    assert read_function(Counter()).schema["properties"] == {"number": {"type": "integer"}}
