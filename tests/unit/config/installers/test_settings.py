"""Single values set in settings as text, and taken back."""

from __future__ import annotations

import pytest

from pegboard.config.installers.settings import Setting, apply, take_back
from pegboard.errors import ConfigError

ADDRESS = Setting(("provider", "anthropic", "options", "baseURL"), "http://127.0.0.1:8722/anthropic/v1")
JSON = """\
{
\t// mine
\t"provider": {
\t\t"anthropic": {"options": {"baseURL": "https:\\/\\/llm.example\\/v1", "apiKey": "k"}}, // corp
\t},
}
"""
ROOT = Setting(("openai_base_url",), "http://p/openai/v1")
UPSTREAM = Setting(("proxy", "upstreams", "corp"), "https://llm.example")
VARIABLE = Setting(("GOOGLE_GEMINI_BASE_URL",), "http://p/gemini")


def test_a_value_is_set_where_it_stands_and_every_other_character_stays():
    after = apply(JSON, [ADDRESS], "json")
    assert after == JSON.replace('"https:\\/\\/llm.example\\/v1"', f'"{ADDRESS.value}"')


def test_taking_back_from_a_file_that_was_changed_brings_the_old_spelling_and_keeps_what_is_new():
    changed = apply(JSON, [ADDRESS], "json").replace("\t},\n}", '\t},\n\t"theme": "dark",\n}')
    back = take_back(changed, JSON, [ADDRESS], "json")
    assert back.text == JSON.replace("\t},\n}", '\t},\n\t"theme": "dark",\n}')
    assert back.restored == (ADDRESS,)


def test_a_value_that_someone_has_changed_since_is_theirs():
    changed = apply(JSON, [ADDRESS], "json").replace(ADDRESS.value, "https://mine.example")
    back = take_back(changed, JSON, [ADDRESS], "json")
    assert (back.text, back.restored, back.kept) == (changed, (), (ADDRESS,))


def test_a_value_that_someone_took_out_stays_out():
    back = take_back("{}", JSON, [ADDRESS], "json")
    assert (back.text, back.kept) == ("{}", (ADDRESS,))


def test_tables_that_were_made_go_with_the_value_unless_someone_uses_them():
    after = apply("{}", [ADDRESS], "json")
    assert take_back(after.replace("}}}}", '}, "models": {}}}}'), "{}", [ADDRESS], "json").text == (
        '{"provider": {"anthropic": { "models": {}}}}'
    )
    assert take_back(after.replace("{", '{"a": 1, ', 1), "{}", [ADDRESS], "json").text == '{"a": 1}'


def test_a_file_that_was_made_is_empty_again_unless_someone_wrote_a_comment():
    after = apply("", [VARIABLE], "env")
    assert take_back(after + "\n", None, [VARIABLE], "env").is_empty
    assert not take_back(after + "# mine\n", None, [VARIABLE], "env").is_empty


@pytest.mark.parametrize("text", ['{"provider": 3}', '{"provider": {"anthropic": []}}'])
def test_what_is_no_table_is_left_alone(text):
    with pytest.raises(ConfigError, match="should be a table"):
        apply(text, [ADDRESS], "json")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", 'openai_base_url = "http://p/openai/v1"\n'),
        ("a = 1", 'a = 1\nopenai_base_url = "http://p/openai/v1"\n'),
        ("a = 1 # x\r\n\r\n[b]\r\n", 'a = 1 # x\r\nopenai_base_url = "http://p/openai/v1"\r\n\r\n[b]\r\n'),
        ("# top\n\n# about b\n[b]\n", '# top\n\nopenai_base_url = "http://p/openai/v1"\n\n# about b\n[b]\n'),
        ("\ufeff[b]\nc = 1\n", '\ufeffopenai_base_url = "http://p/openai/v1"\n\n[b]\nc = 1\n'),
        ("'openai_base_url' = 'x' # mine\n", "'openai_base_url' = \"http://p/openai/v1\" # mine\n"),
        ("a = [\n  1, # one\n]\n[b]\n", 'a = [\n  1, # one\n]\nopenai_base_url = "http://p/openai/v1"\n[b]\n'),
    ],
)
def test_a_key_outside_of_tables_is_written_before_the_first_of_them(before, after):
    assert apply(before, [ROOT], "toml") == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[proxy.upstreams]\ncorp = "https://llm.example"\n'),
        ("[proxy]\nmin_tools = 3\n", '[proxy]\nmin_tools = 3\n\n[proxy.upstreams]\ncorp = "https://llm.example"\n'),
        (
            "[proxy.upstreams]\na = 'b' # x\n# y\n\n[z]\n",
            "[proxy.upstreams]\na = 'b' # x\ncorp = \"https://llm.example\"\n# y\n\n[z]\n",
        ),
        ("[proxy.upstreams]", '[proxy.upstreams]\ncorp = "https://llm.example"\n'),
    ],
)
def test_a_key_of_a_table_is_written_at_its_end(before, after):
    assert apply(before, [UPSTREAM], "toml") == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("proxy = {min_tools = 3}\n", 'proxy = {min_tools = 3, upstreams.corp = "https://llm.example"}\n'),
        (
            '[proxy]\nupstreams = { a = "https://a" } # x\n',
            '[proxy]\nupstreams = { a = "https://a", corp = "https://llm.example" } # x\n',
        ),
        ("proxy = { upstreams = {} }", 'proxy = { upstreams = { corp = "https://llm.example" } }'),
        (
            'proxy.upstreams.a = "https://a"\n[z]\n',
            'proxy.upstreams.a = "https://a"\nproxy.upstreams.corp = "https://llm.example"\n[z]\n',
        ),
    ],
)
def test_a_table_without_a_header_is_added_to_as_it_is_written(before, after):
    assert apply(before, [UPSTREAM], "toml") == after
    assert take_back(after, before, [UPSTREAM], "toml").text == before


def test_a_value_that_is_no_table_is_not_rewritten():
    with pytest.raises(ConfigError, match=r"`proxy\.upstreams` should be a table"):
        apply("proxy = {upstreams = 3}\n", [UPSTREAM], "toml")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "GOOGLE_GEMINI_BASE_URL=http://p/gemini\n"),
        ("A=1", "A=1\nGOOGLE_GEMINI_BASE_URL=http://p/gemini\n"),
        ("A=1\r\n", "A=1\r\nGOOGLE_GEMINI_BASE_URL=http://p/gemini\r\n"),
        (
            "\ufeffexport GOOGLE_GEMINI_BASE_URL = 'x#y' # mine\n",
            "\ufeffexport GOOGLE_GEMINI_BASE_URL = http://p/gemini # mine\n",
        ),
        (
            'A="\nGOOGLE_GEMINI_BASE_URL=no\n"\nGOOGLE_GEMINI_BASE_URL=1\nGOOGLE_GEMINI_BASE_URL=2\n',
            'A="\nGOOGLE_GEMINI_BASE_URL=no\n"\nGOOGLE_GEMINI_BASE_URL=1\nGOOGLE_GEMINI_BASE_URL=http://p/gemini\n',
        ),
        ("# GOOGLE_GEMINI_BASE_URL=no\n", "# GOOGLE_GEMINI_BASE_URL=no\nGOOGLE_GEMINI_BASE_URL=http://p/gemini\n"),
    ],
)
def test_a_variable_is_set_where_it_counts(before, after):
    assert apply(before, [VARIABLE], "env") == after
    assert take_back(after, before, [VARIABLE], "env").text == before
