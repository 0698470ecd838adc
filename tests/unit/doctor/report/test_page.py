"""The report as a page: it stands by itself, anybody can read it, and no name in it becomes markup."""

import re
import shutil
import struct
import subprocess
import zlib
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.doctor.facts import Fix, Usage
from pegboard.doctor.report.frame import ticks
from pegboard.doctor.report.markup import element
from pegboard.doctor.report.outcome import Report, State
from pegboard.doctor.report.page import page_of
from tests.unit.doctor.report.stories import DISABLE, at, change, report, server, session, sessions

BEFORE = sessions(28, -14, 0)
DEFERRED = {"": 4_000}
SVG = "svg"
CHROMIUM = shutil.which("chromium")


def _report() -> Report:
    codex = Fix(kind="server-disable", agent="codex", servers=(server("sentry"),))
    cached, fresh = (Usage(cache_read=read, cache_write=100_000 - read, messages=9) for read in (90_000, 50_000))
    hurt = sessions(28, -14, 0, agent="codex", usage=cached), sessions(28, 0, 14, agent="codex", usage=fresh)
    changes = [
        change(known=BEFORE, id="1a2b3c4d5e6f"),
        change(DISABLE, known=BEFORE, id="77777777aaaa", files=("/home/ada/.claude.json",)),
        change(DISABLE, 20, known=[], id="pending00000"),
        change(codex, known=hurt[0], id="deadbeef0000"),
    ]
    return report(changes, [*BEFORE, *sessions(28, 0, 14, DEFERRED), *hurt[0], *hurt[1]], day=21)


def _tree(page: str) -> ET.Element:
    """The page is also well-formed XML, which forgives nothing."""
    return ET.fromstring(page.removeprefix("<!DOCTYPE html>\n"))


def _words(page: str) -> str:
    return " ".join("".join(_tree(page).itertext()).split())


def _drawings(page: str) -> list[ET.Element]:
    """Those of changes; the table has small ones too."""
    return [drawing for section in _tree(page).iter("section") for drawing in section.iter(SVG)]


def test_every_change_has_its_row_its_section_and_its_charts():
    tree = _tree(page_of(_report()))
    assert len(tree.findall(".//main/div/div/table/tbody/tr")) == 4
    assert [each.get("aria-label", "").split()[0] for each in tree.iter("section")] == [
        "deadbeef", "pending0", "1a2b3c4d", "77777777",
    ]  # fmt: skip
    assert [len(list(each.iter(SVG))) for each in tree.iter("section")] == [4, 2, 4, 4]


def test_what_hurt_the_cache_comes_before_everything_else():
    main = _tree(page_of(_report())).find(".//main")
    assert main is not None
    alarm = main[2]
    assert alarm.get("role") == "alert"
    assert "".join(alarm.itertext()).startswith("deadbeef server-disable: sentry. It hurt the cache: the hit rate fell")


def test_it_asks_nobody_for_anything_and_runs_nothing():
    page = page_of(_report())
    tree = _tree(page)
    tags, keys = {each.tag for each in tree.iter()}, {key for each in tree.iter() for key in each.attrib}
    assert tags.isdisjoint({"script", "link", "img", "iframe", "object", "base", "a", "use"})
    assert not any(key in ("src", "href", "action") or key.startswith("on") for key in keys)
    assert not re.search(r"https?:|//\w|url\(|@import", page)
    policy = tree.find(".//meta[@http-equiv='Content-Security-Policy']")
    assert policy is not None
    assert "default-src 'none'" in policy.get("content", "")


def test_it_follows_the_reader_into_the_dark():
    page = page_of(_report())
    assert "@media (prefers-color-scheme: dark)" in page
    assert "color-scheme: light dark" in page


def test_who_cannot_see_it_can_read_it():
    tree = _tree(page_of(_report()))
    assert tree.get("lang") == "en"
    assert (tree.findtext(".//head/title") or "").strip()
    for drawing in tree.iter(SVG):
        assert drawing.get("role") == "img"
        assert drawing.get("aria-label")
        assert drawing.findtext("title")
        assert drawing.findtext("desc")
    for table in tree.iter("table"):
        assert table.findtext("caption")
        assert all(each.get("scope") in ("col", "row") for each in table.iter("th"))
        columns = len(table.findall("thead/tr/th"))
        assert all(len(row) == columns for row in table.findall("tbody/tr"))
    levels = [int(each.tag[1]) for each in tree.iter() if re.fullmatch(r"h\d", each.tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_bars_fall_where_the_change_was_applied():
    found = report([change(known=BEFORE)], sessions(28, 0, 14, DEFERRED))
    drawing = _drawings(page_of(found))[0]
    heights: dict[str, set[float]] = {"before": set(), "since": set()}
    for bar in drawing.iter("rect"):
        heights[bar.get("class", "")].add(float(bar.get("height", "0")))
    (before,), (since,) = heights["before"], heights["since"]
    assert since / before == pytest.approx(4_000 / 15_000, abs=0.001)
    lines = [float(line.get("y1", "0")) for line in drawing.iter("line") if line.get("class") == "grid"]
    labels = [each.text or "" for each in drawing.iter("text")][: len(lines)]
    assert labels == ["0", "5,000", "10,000", "15,000"]
    assert before == pytest.approx(max(lines) - min(lines))


def test_nothing_drawn_leaves_its_frame():
    for drawing in _tree(page_of(_report())).iter(SVG):
        _, _, width, height = map(float, drawing.get("viewBox", "").split())
        for bar in drawing.iter("rect"):
            x, y, wide, high = (float(bar.get(key, "-1")) for key in ("x", "y", "width", "height"))
            assert 0 <= x <= x + wide <= width
            assert 0 <= y <= y + high <= height


def test_nothing_applied_is_a_page_too():
    assert "Nothing was applied yet." in _words(page_of(report([], [])))


@given(st.floats(min_value=1e-3, max_value=1e12))
def test_the_lines_of_a_drawing_are_few_and_reach_its_top(top: float):
    found = ticks(top)
    assert found[0] == 0
    assert found[-2] < top <= found[-1] * (1 + 1e-6)
    assert 2 <= len(found) <= 5


@pytest.mark.parametrize("state", list(State))
def test_every_state_is_shown(state: State):
    whole = _report()
    one = msgspec.structs.replace(whole.outcomes[-1], state=state)
    tree = _tree(page_of(msgspec.structs.replace(whole, outcomes=(one,))))
    shown = [each.text for each in tree.iter("span") if (each.get("class") or "").startswith("state")]
    assert shown == [state, state]


NASTY = "<script>alert(1)</script>\"'&\x1b[31m\u202e"


def test_no_name_becomes_markup_and_none_fools_the_eye():
    whole = _report()
    change_of = msgspec.structs.replace(whole.outcomes[0].change, id=NASTY, kind=NASTY, files=(NASTY,))
    scope = msgspec.structs.replace(change_of.scope, servers=(NASTY,), projects=(NASTY,))
    outcome = msgspec.structs.replace(
        whole.outcomes[0],
        change=msgspec.structs.replace(change_of, scope=scope),
        notes=(NASTY,),
        doubts=(NASTY,),
        before=msgspec.structs.replace(whole.outcomes[0].before, by_server={NASTY: 5.0}),
        after=msgspec.structs.replace(whole.outcomes[0].after, by_server={NASTY: 5.0}),
    )
    page = page_of(msgspec.structs.replace(whole, outcomes=(outcome,)))
    assert "<script" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "<script>alert(1)</script>\"'&\\x1b[31m\\u202e" in "".join(_tree(page).itertext())


@given(st.text())
def test_any_words_stay_words_and_may_be_written_anywhere(words: str):
    made = element("p", words, title=words, data_x=None)
    made.encode("utf-8")
    found = _tree(made)
    assert [*found] == []
    assert set(found.attrib) == {"title"}
    if words.isprintable():
        assert (found.text or "") == found.get("title") == words


class _Balance(HTMLParser):
    """Whether a browser's parser sees every element end where it should."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        if tag not in ("meta", "br"):
            self.wrong.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def test_a_parser_of_html_sees_the_same_page():
    balance = _Balance()
    balance.feed(page_of(_report()))
    balance.close()
    assert (balance.open, balance.wrong) == ([], [])


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_a_browser_shows_it_in_light_and_in_dark_and_asks_nobody(tmp_path: Path):
    page = tmp_path / "report.html"
    page.write_text(page_of(_report()), "utf-8")
    light = _screenshot(page, tmp_path / "light.png")
    dark = _screenshot(page, tmp_path / "dark.png", "--force-dark-mode", "--blink-settings=preferredColorScheme=0")
    for picture in (light, dark):
        assert len(set(picture)) > 8
    assert sum(light[:3]) > 700
    assert sum(dark[:3]) < 150


def _screenshot(page: Path, picture: Path, *flags: str) -> list[int]:
    """The picture's bytes, row by row, as a browser without a network draws the page."""
    assert CHROMIUM is not None
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1000,1400",
               "--proxy-server=127.0.0.1:9", f"--user-data-dir={picture.with_suffix('')}", *flags,
               f"--screenshot={picture}", page.as_uri()]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return _pixels(picture.read_bytes())


def _pixels(content: bytes) -> list[int]:
    """The unpacked rows of a PNG, filters and all: enough to see that it is not blank."""
    assert content.startswith(b"\x89PNG")
    data, place = b"", 8
    while place < len(content):
        (size,) = struct.unpack(">I", content[place : place + 4])
        if content[place + 4 : place + 8] == b"IDAT":
            data += content[place + 8 : place + 8 + size]
        place += size + 12
    return list(zlib.decompress(data)[1:])


def test_a_session_before_and_one_since_are_enough_for_a_page():
    found = report([change()], [session(-1), session(1, {"": 0})])
    assert len(_drawings(page_of(found))) == 4
    assert found.outcomes[0].change.applied_at == at(0)
