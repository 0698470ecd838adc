"""Where skills are looked for: nowhere unless somebody asks, and then in one order."""

from __future__ import annotations

import pytest

from pegboard.config.load import from_tables
from pegboard.errors import ConfigError


def roots(config):
    return [(str(root.path), root.named) for root in config.skill_roots]


@pytest.mark.parametrize(
    ("said", "on"),
    [
        ("", False),
        ("enabled = true", True),
        ("enabled = false\nroots = ['x']", False),
        ("roots = ['x']", True),
        ("agent_folders = true", True),
        ("agent_folders = true\nenabled = false", False),
        ("index_tokens = 5", False),
    ],
)
def test_skills_are_off_unless_they_are_asked_for(place, said, on):
    place.write(f"[skills]\n{said}\n")
    assert bool(place.load().skill_roots) is on


def test_a_root_is_relative_to_the_file_that_names_it_and_named_ones_come_last(place):
    path = place.write("[skills]\nroots = ['mine', '/abs', '~/home', 'mine']\n")
    named = [path for path, is_named in roots(place.load()) if is_named]
    assert named[:2] == [str(path.parent / "mine"), "/abs"]
    assert len(named) == 3
    assert roots(place.load())[-3:] == [(each, True) for each in named]


def test_a_built_in_folder_that_is_named_counts_where_it_is_named(place):
    path = place.write("[skills]\nroots = ['.pegboard/skills', 'last']\n")
    found = [each for each, _ in roots(place.load())]
    assert found[-2:] == [str(path.parent / ".pegboard/skills"), str(path.parent / "last")]
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("roots = ['']", "must not be empty"),
        ("roots = 'x'", "expected a list of strings"),
        ("index_tokens = -1", "must be at least 0"),
        ("root = ['x']", "did you mean roots"),
        ("enabled = 'yes'", "expected true or false"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(place, said, told):
    place.write(f"[skills]\n{said}\n")
    with pytest.raises(ConfigError, match=told) as caught:
        place.load()
    assert "pegboard.toml:2: skills." in str(caught.value)


def test_a_program_says_it_in_a_table():
    config = from_tables({"skills": {"roots": ["/somewhere"]}})
    assert roots(config)[-1] == ("/somewhere", True)
