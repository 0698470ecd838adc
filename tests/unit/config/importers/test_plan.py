"""What an import would do to a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from pegboard.config.importers.found import Found
from pegboard.config.importers.plan import configured, plan
from pegboard.config.model import ServerConfig
from pegboard.errors import ConfigError

GITHUB = ServerConfig(command="npx", env={"TOKEN": "abc", "HOST": "${GH_HOST}", "MODE": "${MODE:-x}"})
NEAR = ServerConfig(command="near", cwd="${GH_HOST}")


def found(key, config):
    return Found(source="cursor:user", file=Path("/f"), name=key, key=key, config=config)


def test_the_plan_has_the_whole_text_and_an_addition_fit_to_be_shown():
    planned = plan("# mine\n", [found("github", GITHUB)], {})

    assert planned.text.startswith('# mine\n\n[servers.github]\ncommand = "npx"\n')
    assert 'TOKEN = "abc"' in planned.text
    assert 'TOKEN = "***"' in planned.addition
    assert planned.secrets == {"github": ("env.TOKEN",)}


def test_variables_without_a_default_that_are_not_set_are_named_with_who_needs_them():
    picked = [found("github", GITHUB), found("near", NEAR)]

    assert plan("", picked, {}).unset == {"GH_HOST": ("github", "near")}
    assert plan("", picked, {"GH_HOST": "x"}).unset == {}


def test_hidden_secrets_are_neither_in_the_text_nor_reported_as_copied():
    planned = plan("", [found("github", GITHUB)], {}, hide_secrets=True)

    assert "abc" not in planned.text
    assert planned.secrets == {}
    assert planned.variables == {"TOKEN": ("github: env.TOKEN",)}
    assert planned.text == planned.addition


@pytest.mark.parametrize("there", ["github", "GitHub", "gIthub"])
def test_a_key_that_is_there_or_could_be_mistaken_for_one_is_skipped(there):
    text = f'[servers.{there}]\ncommand = "x"\n'

    planned = plan(text, [found("github", GITHUB), found("near", NEAR)], {})

    assert (planned.skipped, list(planned.servers)) == (("github",), ["near"])


def test_nothing_picked_changes_nothing():
    planned = plan("# mine", [], {})

    assert (planned.text, planned.addition, planned.servers) == ("# mine", "", {})


def test_a_file_that_is_not_toml_is_refused_before_anything_is_planned():
    with pytest.raises(ConfigError, match="not valid TOML"):
        plan("oops", [], {})


def test_a_file_without_servers_has_none():
    assert configured("servers = 3") == configured("") == frozenset()
