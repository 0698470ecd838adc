"""Where a text is cut: what is one sign to a reader stays whole."""

from __future__ import annotations

import pytest

from pegboard.invoke.cut import head_end, tail_start

FAMILY = "👨\u200d👩\u200d👧"


@pytest.mark.parametrize("sign", [FAMILY, "e\u0301\u0302", "❤\ufe0f", "\r\n", "क\u094d\u200dष"])
def test_a_sign_written_with_several_characters_is_not_parted(sign: str) -> None:
    text = "a" * 100 + sign + "b" * 100
    whole_signs = {*range(101), *range(100 + len(sign), 201 + len(sign))}
    for limit in range(80, 120 + len(sign.encode())):
        assert head_end(text, 0, len(text), limit) in whole_signs
        assert tail_start(text, 0, len(text), limit) in whole_signs


def test_signs_without_end_are_cut_all_the_same() -> None:
    text = "e" + "\u0301" * 1000
    assert 0 < head_end(text, 0, len(text), 100) < 60
    assert 950 < tail_start(text, 0, len(text), 100) <= len(text)


def test_nothing_is_cut_from_nothing() -> None:
    assert head_end("", 0, 0, 100) == 0
    assert tail_start("", 0, 0, 100) == 0
    assert head_end("abc", 0, 3, 100) == 3
    assert tail_start("abc", 0, 3, 100) == 0
