"""What is spelled out, and what writing needs and keeps."""

from __future__ import annotations

import unicodedata

import pytest

from pegboard.invoke.visible import is_clean, shown, visible


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a\x00b", "a\\x00b"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("bell\x07 back\x08", "bell\\x07 back\\x08"),
        ("over\rwritten", "over\\rwritten"),
        ("del\x7f c1\x9b", "del\\x7f c1\\x9b"),
        ("user\u202etxt.exe", "user\\u202etxt.exe"),
        ("\u2066iso\u2069", "\\u2066iso\\u2069"),
        ("lrm\u200e here", "lrm\\u200e here"),
        ("zero\u200bwidth\u200cjoin\u200dme", "zero\\u200bwidth\\u200cjoin\\u200dme"),
        ("\ufeffbom", "\\ufeffbom"),
        ("soft\xadhyphen", "soft\\xadhyphen"),
        ("tag\U000e0041\U000e0042", "tag\\U000e0041\\U000e0042"),
        ("line\u2028end", "line\\u2028end"),
        ("selector\ufe0f", "selector\\ufe0f"),
        ("word\u2060joiner", "word\\u2060joiner"),
        ("filler\u3164", "filler\\u3164"),
    ],
)
def test_what_hides_reorders_or_steers_is_spelled_out(text: str, seen: str) -> None:
    assert visible(text) == seen
    assert not is_clean(text)


@pytest.mark.parametrize(
    "text",
    [
        "plain, with\ttabs\nand lines\r\nof both kinds",
        "naïve café, 日本語, Ελληνικά, हिन्दी",
        "family 👨‍👩‍👧‍👦, heart ❤️, rainbow 🏳️‍🌈, dark skin 🤦🏿‍♀️, keycap 1️⃣",
        "England 🏴󠁧󠁢󠁥󠁮󠁧󠁿 and Scotland 🏴󠁧󠁢󠁳󠁣󠁴󠁿",
        "می‌خواهم",
        "क्‍ष and ක්‍ර",
        "שלום\u200f!",
        "葛\U000e0100城",
        "ภาษา\u200bไทย",
        "",
    ],
)
def test_what_writing_needs_stays(text: str) -> None:
    assert visible(text) == text
    assert is_clean(text)


def test_a_message_in_selectors_or_tags_after_an_emoji_is_seen() -> None:
    assert visible("😀" + "\ufe01" * 3) == "😀\ufe01\\ufe01\\ufe01"
    assert "\\U000e0179" in visible("😀\U000e0179\U000e0158")
    assert visible("🏴\U000e0067\U000e0062\U000e007f").count("\\U") == 3


def test_every_control_and_format_character_alone_in_plain_text_is_seen() -> None:
    kept = {"\n", "\t"}
    # Marks that stand before numbers in Arabic and other scripts, and shorthand that has a shape of its own.
    shown_by_themselves = {"Arabic", "Syriac", "Kaithi", "Egyptian"}
    for code in range(0x110000):
        character = chr(code)
        if unicodedata.category(character) not in ("Cc", "Cf") or character in kept:
            continue
        name = unicodedata.name(character, "").split(" ")[0].title()
        if code != 0x61C and name in shown_by_themselves:
            continue
        assert visible(f"a{character}b") != f"a{character}b", hex(code)


def test_a_stretch_is_judged_by_what_stands_around_it() -> None:
    family = "👨‍👩"
    assert "".join(visible(family, at, at + 1) for at in range(len(family))) == family
    assert visible("a\r\n", 1, 2) == "\r"


def test_a_name_is_shown_on_one_line_and_cut() -> None:
    assert shown("a\n b\x1b" + "c" * 100, 12) == "a b\\x1bcccc…"
