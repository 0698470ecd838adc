"""The schema says what the program does."""

from __future__ import annotations

import tomllib

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import pytest

from pegboard.config.check import SECTIONS, fields_of
from pegboard.config.model import Requires, ServerConfig, Table
from pegboard.config.schema import schema


def test_it_is_a_valid_schema_in_which_every_key_is_described():
    whole = schema()
    jsonschema.Draft202012Validator.check_schema(whole)
    tables: list[type[Table]] = [*SECTIONS.values(), ServerConfig, Requires]
    for table in tables:
        properties = whole["$defs"][table.__name__]["properties"]
        assert list(properties) == list(fields_of(table))
        assert [key for key, value in properties.items() if not value.get("description")] == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[tools]\ndeny = ['a*']\n[gateway]\nmax_starting = 1\n[store]\ncache_dir = 'x'\n",
        "[servers.a]\ncommand = 'x'\ninherit_env = ['A']\ncost_usd = 0.5\n[servers.'b c']\nurl = 'https://x.org'\n",
        "[servers.a]\nenabled = false\nrequires = { env = ['A'], url = 'https://x.org' }\ntransport = 'sse'\n",
    ],
)
def test_what_pegboard_reads_fits_it(text):
    jsonschema.validate(tomllib.loads(text), schema())


@pytest.mark.parametrize(
    "text",
    [
        "[gatway]",
        "[gateway]\nmax_starting = 0",
        "[gateway]\nstart_timeout = 0",
        "[servers.a]\ncomand = 'x'",
        "[servers.a]\nargs = 'x'",
        "[servers.a]\nargs = [1]",
        "[servers.a]\ntransport = 'ws'",
        "[servers.a]\ninherit_env = 3",
        "[servers.a]\nrequires = { x = 1 }",
        "[servers.'']\ncommand = 'x'",
    ],
)
def test_what_pegboard_refuses_does_not_fit_it(place, text):
    place.write(text)
    assert place.problems()
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tomllib.loads(text), schema())


def test_null_is_no_value_because_toml_has_none():
    assert "null" not in str(schema())
