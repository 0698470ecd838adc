"""A SKILL.md as people write it, well and badly."""

from __future__ import annotations

import pytest

from pegboard.skills.parse import MAX_HEADER, Malformed, body_of, header_in, header_of


def test_a_header_says_name_description_and_tools():
    header = header_of(
        "name: pdf-forms\ndescription: >\n  Fills in\n  PDF forms.\ntools: [pdf__fill, units__convert]\n"
    )
    assert (header.name, header.description) == ("pdf-forms", "Fills in PDF forms.")
    assert header.tools == ("pdf__fill", "units__convert")
    assert header.remarks == ()


@pytest.mark.parametrize(
    "written",
    [
        "tools:\n  - a\n  - b",
        "tools: a, b",
        "tools: a b",
        "metadata:\n  tools: [a, b]",
        "metadata: {tools: 'a, b'}",
        "tools: [a]\nmetadata: {tools: [b, a]}",
    ],
)
def test_tools_may_be_a_list_or_words_and_stand_under_metadata(written):
    assert header_of(f"name: x\ndescription: y\n{written}\n").tools == ("a", "b")


@pytest.mark.parametrize("written", ["tools: {a: b}", "tools: [[a]]", "metadata: {tools: {}}"])
def test_tools_that_are_no_names_cost_the_tools_and_not_the_skill(written):
    header = header_of(f"name: x\ndescription: y\n{written}\n")
    assert header.tools == ()
    assert len(header.remarks) == 1


@pytest.mark.parametrize(
    "written", ["metadata: none", "metadata:", "tools:", "license: Apache-2.0", "allowed-tools: Bash"]
)
def test_what_says_nothing_of_tools_is_no_trouble(written):
    header = header_of(f"name: x\ndescription: y\n{written}\n")
    assert (header.tools, header.remarks) == ((), ())


@pytest.mark.parametrize("word", ["yes", "null", "2024-01-01", "1e3", "0x1f", "true"])
def test_words_that_yaml_would_read_as_something_else_are_names(word):
    assert header_of(f"name: {word}\ndescription: {word}\n").name == word


@pytest.mark.parametrize("name", ["pdf-forms", "PDF_Forms.v2", "rapport-trimestriel-été", "表", "7z", "a" * 64])
def test_names_of_letters_digits_and_joints_are_legal(name):
    assert header_of(f"name: {name}\ndescription: y\n").name == name


@pytest.mark.parametrize(
    "name", ["My Skill", "../evil", "a/b", "-a", "a-", ".hidden", "a" * 65, "a:b", '"a\\nb"', "a`b"]
)
def test_other_names_are_not(name):
    with pytest.raises(Malformed, match="its name"):
        header_of(f"name: {name}\ndescription: y\n")


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("description: y", "has no name"),
        ("name: ''\ndescription: y", "has no name"),
        ("name: [a]\ndescription: y", "has no name"),
        ("name: x", "has no description"),
        ("name: x\ndescription: '  '", "has no description"),
        ("- name: x", "no table"),
        ("just text", "no table"),
        ("", "no table"),
        ("name: [x\ndescription: y", "not valid YAML in line"),
        ("name: x\n\tdescription: y", "not valid YAML in line 3"),
        ('name: "\\UFFFFFFFF"', "an escape stands for no character"),
        ("name: a\x00b", "not valid YAML"),
        ("a: " + "[" * 3000, "nested too deeply"),
        ("? " * 2000, "nested too deeply"),
        ("? [a, b]\n: c", "not valid YAML"),
    ],
)
def test_what_is_wrong_is_said(header, told):
    with pytest.raises(Malformed, match=told):
        header_of(header)


def test_a_bomb_of_aliases_is_refused_before_it_is_built():
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{after}: &{after} [{', '.join([f'*{before}'] * 9)}]\n"
        for before, after in zip("abcdefgh", "bcdefghi", strict=True)
    )
    with pytest.raises(Malformed, match="aliases"):
        header_of(f"{bomb}name: x\ndescription: y\n")


def test_nothing_is_built_that_a_tag_asks_for():
    header = header_of("name: !!python/object/apply:os.system [echo]\ndescription: y\n".replace("[echo]", "x"))
    assert header.name == "x"


def test_a_colon_in_a_description_is_what_people_write_and_is_remarked_on():
    header = header_of('name: x\ndescription: Reviews code. Use when: asked to, as in: "look at this"\n')
    assert header.description == 'Reviews code. Use when: asked to, as in: "look at this"'
    assert "mapping values are not allowed here" in header.remarks[0]


def test_a_long_description_is_cut_and_half_characters_do_no_harm():
    header = header_of(f'name: x\ndescription: "\\ud800 {"é" * 3000}"\n')
    assert len(header.description) == 1024
    header.description.encode()


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_byte_order_marks_make_no_difference(newline, mark):
    text = mark + newline.join(["---", "name: x", "description: y", "--- ", "", "Body", "---", "more", ""])
    assert header_in(text.encode()).description == "y"
    assert body_of(text.removeprefix("\ufeff")) == newline.join(["Body", "---", "more"])


@pytest.mark.parametrize(
    ("start", "told"),
    [
        (b"", "does not begin with a line ---"),
        (b"# A title\n---\nname: x\n---\n", "does not begin with a line ---"),
        (b"---\nname: x\ndescription: y\n", "not closed"),
        (b"---\nname: x\ndescription: " + b"y" * MAX_HEADER + b"\n---\n", "not closed"),
        (b"---\nname: x\ndescription: caf\xe9\n---\n", "not UTF-8"),
        ("---\nname: x\n---\n".encode("utf-16"), "does not begin with a line ---"),
    ],
)
def test_a_file_without_a_header_is_no_skill(start, told):
    with pytest.raises(Malformed, match=told):
        header_in(start)
