"""Variables of shell profiles: the file, the line, and only what a program would really get."""

from __future__ import annotations

from pathlib import Path

import pytest

from pegboard.doctor.facts import Setting
from pegboard.doctor.settings.machine import Glance, Shelf
from pegboard.doctor.settings.variables import variables
from tests.homes import HomeBuilder

NAME = "ENABLE_TOOL_SEARCH"


def found(home: HomeBuilder, *names: str) -> tuple[Setting, ...]:
    return variables(home.machine, Glance(Shelf()), names or (NAME,))


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("export ENABLE_TOOL_SEARCH=false", "false"),
        ("  export ENABLE_TOOL_SEARCH='false'  # why", "false"),
        ('export ENABLE_TOOL_SEARCH="auto:5"; echo', "auto:5"),
        ("export A=1 ENABLE_TOOL_SEARCH=no B=2", "no"),
        ('export A="x y" ENABLE_TOOL_SEARCH=no', "no"),
        ("declare -x ENABLE_TOOL_SEARCH=0", "0"),
        ("typeset -gx ENABLE_TOOL_SEARCH=0", "0"),
        ("ENABLE_TOOL_SEARCH=off; export ENABLE_TOOL_SEARCH", "off"),
        ("export ENABLE_TOOL_SEARCH=", ""),
        ("export ENABLE_TOOL_SEARCH=a\\ b", "a b"),
        ('export ENABLE_TOOL_SEARCH="say \\"no\\""', 'say "no"'),
        ("export ENABLE_TOOL_SEARCH=$WISH", "$WISH"),
    ],
)
def test_an_exported_variable_is_found(line: str, value: str, tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).shell("# first").shell(line)

    [setting] = found(home)

    assert (setting.value, setting.line, setting.scope) == (value, 3, "shell")
    assert setting.file == home.folder / ".zshrc"
    assert setting.changed_at > 0
    assert not setting.editable


@pytest.mark.parametrize(
    "line",
    [
        "# export ENABLE_TOOL_SEARCH=false",
        "echo export ENABLE_TOOL_SEARCH=false",
        "export ENABLE_TOOL_SEARCHING=false",
        "export NOT_ENABLE_TOOL_SEARCH=false",
        "ENABLE_TOOL_SEARCH=false claude",
        "ENABLE_TOOL_SEARCH=false",
        "export ENABLE_TOOL_SEARCH",
        "export ENABLE_TOOL_SEARCH=false\nunset ENABLE_TOOL_SEARCH",
        "export A=1 && echo ENABLE_TOOL_SEARCH=false",
    ],
)
def test_what_no_program_would_get_is_not_found(line: str, tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).shell(line)

    assert found(home) == ()


def test_a_variable_that_is_exported_later_counts_where_it_is_set(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).shell("ENABLE_TOOL_SEARCH=false").shell("export ENABLE_TOOL_SEARCH")

    [setting] = found(home)

    assert (setting.value, setting.line) == ("false", 2)


def test_the_last_line_of_a_file_counts(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).shell("export ENABLE_TOOL_SEARCH=a").shell("ENABLE_TOOL_SEARCH=b")

    assert [(each.value, each.line) for each in found(home)] == [("b", 3)]


@pytest.mark.parametrize(
    ("file", "line", "value"),
    [
        (".config/fish/config.fish", "set -gx ENABLE_TOOL_SEARCH false", "false"),
        (".config/fish/conf.d/a.fish", "set --global --export ENABLE_TOOL_SEARCH 'false'", "false"),
        (".config/fish/config.fish", "export ENABLE_TOOL_SEARCH=false", "false"),
        (".config/fish/fish_variables", "SETUVAR --export ENABLE_TOOL_SEARCH:auto\\x3a5", "auto:5"),
        (".cshrc", "setenv ENABLE_TOOL_SEARCH false", "false"),
        (".config/powershell/profile.ps1", '$env:ENABLE_TOOL_SEARCH = "false"', "false"),
        (".bash_profile", "export ENABLE_TOOL_SEARCH=false", "false"),
        (".zshenv", "export ENABLE_TOOL_SEARCH=false", "false"),
        (".profile", "export ENABLE_TOOL_SEARCH=false", "false"),
    ],
)
def test_every_shell_has_its_files_and_its_ways(file: str, line: str, value: str, tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).shell(line, file=file)

    assert [(each.value, each.file) for each in found(home)] == [(value, home.folder / file)]


@pytest.mark.parametrize("line", ["set -g ENABLE_TOOL_SEARCH false", "set -e ENABLE_TOOL_SEARCH"])
def test_fish_variables_that_are_not_exported_do_not_count(line: str, tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).shell(line, file=".config/fish/config.fish")

    assert found(home) == ()


def test_where_the_shell_is_known_other_shells_have_no_say(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).shell("export ENABLE_TOOL_SEARCH=false", file=".bashrc")

    assert found(home.process(SHELL="/usr/bin/bash"))
    assert not found(home.process(SHELL="/usr/bin/zsh"))
    assert found(home.process(SHELL="/opt/bin/nu"))


def test_a_later_profile_overrides_an_earlier_one_and_all_are_told(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).process(SHELL="/bin/zsh")
    for file, value in ((".zshrc", "later"), (".zshenv", "sooner"), (".profile", "first")):
        home.shell(f"export {NAME}={value}", file=file)
    home.file(home.root / "etc/environment", f"{NAME}=machine\n")

    assert [each.value for each in found(home)] == ["later", "sooner", "first", "machine"]


def test_zdotdir_moves_the_files(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path)
    home.process(ZDOTDIR=str(home.folder / "zsh")).shell("export ENABLE_TOOL_SEARCH=a", file="zsh/.zshrc")

    assert [each.file for each in found(home)] == [home.folder / "zsh" / ".zshrc"]


def test_a_value_of_this_process_is_traced_to_its_profile(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).shell("export ENABLE_TOOL_SEARCH=false").process(ENABLE_TOOL_SEARCH="false")

    [setting] = found(home)

    assert (setting.scope, setting.line) == ("shell", 2)


def test_a_computed_value_is_known_from_this_process(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).shell("export ENABLE_TOOL_SEARCH=$WISH").process(ENABLE_TOOL_SEARCH="false")

    [setting] = found(home)

    assert (setting.scope, setting.value) == ("shell", "false")


def test_a_value_that_no_profile_has_is_of_this_process(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).shell("export ENABLE_TOOL_SEARCH=true").process(ENABLE_TOOL_SEARCH="false")

    assert [(each.scope, each.value, each.file is None) for each in found(home)] == [
        ("environment", "false", True),
        ("shell", "true", False),
    ]


def test_addresses_lose_their_passwords(tmp_path: Path) -> None:
    secret = "https://ada:hush@a.example/v1?key=hush"
    home = HomeBuilder(tmp_path).shell(f"export ANTHROPIC_BASE_URL='{secret}'").process(OPENAI_BASE_URL=secret)

    settings = found(home, "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL")

    assert [each.value for each in settings] == ["https://a.example/v1"] * 2


def test_profiles_are_read_and_never_written(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path).shell("export ENABLE_TOOL_SEARCH=false")
    before = (home.folder / ".zshrc").stat()

    found(home)

    assert (home.folder / ".zshrc").stat().st_mtime_ns == before.st_mtime_ns
