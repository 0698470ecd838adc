"""Files that are not what they should be."""

from __future__ import annotations

import os

import pytest

from pegboard.config.check import ROOT
from pegboard.config.read import MAX_BYTES


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[gateway\n", "1: not valid TOML: "),
        ("[gateway]\nmax_starting 3\n", "2: not valid TOML: "),
        ("[gateway]\nmax_starting = 1\nmax_starting = 2\n", "3: not valid TOML: Cannot overwrite a value"),
        ("[a]\n[a]\n", "2: not valid TOML: "),
        ("[gateway]\nx = [1,\n", "2: not valid TOML: "),
        ("[gateway]\nx = '", "2: not valid TOML: "),
    ],
)
def test_a_syntax_error_is_told_with_its_line(place, text, told):
    place.write(text)
    (problem,) = place.problems()
    assert problem.startswith(f"pegboard.toml:{told}")
    assert "(at " not in problem


def test_nesting_without_end_is_a_problem_and_no_crash(place):
    place.write("x = " + "[" * 100_000)
    assert place.problems() == ["pegboard.toml: arrays or tables are nested too deeply"]


def test_a_table_of_absurd_depth_is_an_unknown_key(place):
    place.write("[" + ".".join("a" * 5000) + "]\nx = 1\n")
    assert place.problems() == [f"pegboard.toml:1: a: unknown key; there are {', '.join(ROOT)}"]


def test_a_byte_order_mark_and_windows_line_ends_are_no_trouble(place):
    place.write("\ufeff[gateway]\r\nmax_starting = 3\r\nmax_page = 3\r\n")
    assert place.problems() == ["pegboard.toml:3: gateway.max_page: unknown key; did you mean max_pages?"]


def test_a_file_that_is_not_utf_8_is_told(place):
    (place.project / "pegboard.toml").write_bytes(b"[gateway]\n# caf\xe9\n")
    assert place.problems() == ["pegboard.toml: not UTF-8 text: line 2 has the byte 0xe9"]


def test_a_folder_in_place_of_a_named_file_is_told(place):
    (place.project / "sub").mkdir()
    assert place.problems(files=[place.project / "sub"]) == ["sub: cannot be read: Is a directory"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told(place):
    place.write("").chmod(0)
    assert place.problems() == ["pegboard.toml: cannot be read: Permission denied"]


def test_a_user_file_that_leads_nowhere_is_told(place):
    path = place.write_user("")
    path.unlink()
    path.symlink_to(place.home / "gone.toml")
    assert place.problems() == [f"{path}: there is no such file"]


def test_something_endless_given_as_a_file_is_refused(place):
    assert place.problems(files=["/dev/zero"]) == ["/dev/zero: larger than 16 MiB, which no configuration is"]
    assert MAX_BYTES == 16 * 1024 * 1024


def test_a_name_no_file_can_have_is_told(place):
    assert place.problems(files=["a\0b"])[0].endswith("not a possible file name")
