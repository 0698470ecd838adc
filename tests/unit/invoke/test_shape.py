"""A result within its budget: what stays, what becomes text, and what is said of the rest."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pegboard.invoke.pages import Pages
from pegboard.invoke.shape import Caps, encoded, said, shape
from pegboard.types import Json
from tests.unit.invoke.given import ME, Time

CAPS = Caps(text_bytes=2000, blocks=10)


def shaped(result: Json, caps: Caps = CAPS, **more: Any) -> Json:
    pages = Pages(1024, 60, Time())
    return shape(result, encoded(result), caps, lambda *rest: pages.keep(ME, *rest), **more)


def text(content: str) -> Json:
    return {"type": "text", "text": content}


def texts(result: Json) -> str:
    return "".join(block["text"] for block in result["content"] if block["type"] == "text")


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


IMAGE = {"type": "image", "data": "aGk=" * 50_000, "mimeType": "image/png", "annotations": {"audience": ["user"]}}


@pytest.mark.parametrize(
    "result",
    [
        {"content": [text("a"), {"type": "resource_link", "uri": "x:y", "name": "n"}], "structuredContent": {"a": [1]}},
        {"content": [], "isError": False, "_meta": {"x": 1}, "resultType": "complete", "unknown": None},
        {"structuredContent": {"a": 1}},
        {"content": None},
        {},
    ],
)
def test_what_fits_is_the_very_same_object(result: Json) -> None:
    assert shaped(result) is result


def test_a_picture_stays_whole_though_it_is_larger_than_the_text_may_be() -> None:
    result = {"content": [text("see:"), IMAGE], "x": 1}
    assert shaped(result) == result


def test_a_picture_beyond_all_measure_is_described() -> None:
    huge = {**IMAGE, "data": "A" * (6 << 20)}
    assert "[image, image/png, 6,291," in texts(shaped({"content": [huge, IMAGE]}))
    assert IMAGE in shaped({"content": [huge, IMAGE]})["content"]


def test_long_text_keeps_its_head_and_tail_and_says_how_to_read_on() -> None:
    result = shaped({"content": [text("H" * 5000 + "T" * 5000)]})
    (block,) = result["content"]
    head, rest = block["text"].split("\n[… ")
    marker, tail = rest.split(" …]\n")
    assert set(head) == {"H"}
    assert set(tail) == {"T"}
    assert 0.68 < len(head) / (len(head) + len(tail)) < 0.72
    assert "of 10,000 bytes left out here" in marker
    assert "page=1) reads on, about 9 pages" in marker
    assert len(block["text"].encode()) <= CAPS.text_bytes


def test_several_texts_share_the_budget_and_what_is_no_text_keeps_its_place() -> None:
    link = {"type": "resource_link", "uri": "x:y", "name": "n"}
    result = shaped({"content": [text("a" * 3000), link, text("b" * 3000), text("c" * 3000)]})
    kinds = [block["type"] for block in result["content"]]
    assert kinds == ["text", "resource_link", "text"]
    assert texts(result).startswith("a")
    assert texts(result).endswith("c")
    assert "b" not in texts(result).replace("bytes", "").replace("about", "").replace("handle", "").split("page=1")[1]
    assert len(texts(result).encode()) <= CAPS.text_bytes


def test_text_too_large_to_keep_says_so() -> None:
    result = {"content": [text("x" * 9000)]}
    cut = shape(result, encoded(result), CAPS, lambda *_: ("", 9))
    assert "too large to keep: ask for less" in texts(cut)


def test_hidden_characters_are_seen_even_in_a_result_that_fits_and_the_block_keeps_its_fields() -> None:
    result = shaped({"content": [{**text("a\u202eb"), "annotations": {"priority": 1}}], "_meta": {"x": 1}})
    assert result == {"content": [{**text("a\\u202eb"), "annotations": {"priority": 1}}], "_meta": {"x": 1}}


def test_text_that_grows_over_the_limit_when_it_is_made_visible_is_cut() -> None:
    assert len(texts(shaped({"content": [text("\x00" * 1900)]})).encode()) <= CAPS.text_bytes


def test_too_many_blocks_become_fewer_and_no_text_is_lost_that_fits() -> None:
    blocks = [text(f"<{n}>") for n in range(50)]
    blocks[25] = {"type": "resource_link", "uri": "file:///x", "name": "n"}
    result = shaped({"content": blocks})
    assert len(result["content"]) == CAPS.blocks
    assert all(f"<{n}>" in texts(result) for n in range(50) if n != 25)
    assert "[resource_link, n, file:///x, " in texts(result)


def test_a_million_blocks_are_no_trouble() -> None:
    assert len(shaped({"content": [text("")] * 1_000_000})["content"]) <= CAPS.blocks


def test_a_large_text_resource_becomes_text_that_can_be_read_on() -> None:
    resource = {"type": "resource", "resource": {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "r" * 9000}}
    result = shaped({"content": [resource]})
    assert texts(result).startswith("[resource, file:///a.txt, text/plain, 9,")
    assert "read_result(handle=" in texts(result)


def test_large_structured_content_becomes_text_unless_the_text_says_the_same() -> None:
    structured = {"rows": ["r" * 50] * 100}
    as_text = shaped({"content": [], "structuredContent": structured})
    assert "structuredContent" not in as_text
    assert texts(as_text).startswith("[structuredContent of 5,")
    assert '{"rows":["rrr' in texts(as_text)
    for same in (structured, {"result": ["r" * 50] * 100}):
        written = msgspec.json.encode(same.get("result", same)).decode()
        both = shaped({"content": [text(written)], "structuredContent": same})
        assert "the text above says the same" in texts(both)
        assert texts(both).count("[structuredContent") == 1


def test_structured_content_that_fits_stays_beside_text_that_does_not() -> None:
    assert shaped({"content": [text("x" * 9000)], "structuredContent": {"a": 1}})["structuredContent"] == {"a": 1}


def test_promised_structured_content_stays_however_large() -> None:
    structured = {"rows": ["r" * 50] * 100}
    assert shaped({"content": [], "structuredContent": structured}, promised=True)["structuredContent"] == structured


@pytest.mark.parametrize("depth", [65, 500])
def test_what_is_nested_too_deeply_is_left_out_with_a_word(depth: int) -> None:
    result = shaped(
        {
            "content": [text("a"), {"type": "odd", "x": nested(depth)}, nested(depth)],
            "structuredContent": {"a": nested(depth)},
            "_meta": {"a": nested(depth)},
        }
    )
    assert set(result) == {"content"}
    assert texts(result).count("nested more than 64 levels deep") == 2
    assert "[a block that is none: list]" in texts(result)
    assert "being too large: _meta" in texts(result)


def test_depth_beyond_what_can_be_written_as_json_is_left_out_too() -> None:
    result = {"content": [text("a")], "structuredContent": nested(200_000)}
    assert encoded(result) is None
    assert "nested more than 64" in texts(shaped(result))


def test_fields_beyond_measure_are_left_out_and_named_few() -> None:
    result = shaped({"content": [text("a")], **{f"f{n}": "x" * 1500 for n in range(50)}})
    assert list(result) == ["content", "f0"]
    assert "being too large: f1, f2, f3, f4, f5, f6, f7, f8 and 41 more" in texts(result)


def test_fields_beside_a_text_are_dropped_when_they_are_too_large() -> None:
    assert shaped({"content": [{**text("a"), "x": "y" * 9000}]})["content"] == [text("a")]


@pytest.mark.parametrize("content", ["text", 7, {"type": "text", "text": 3}, [7, None, "x", [], {}, {"type": 5}]])
def test_content_that_is_no_content_is_survived(content: Any) -> None:
    assert shaped({"content": content, "more": "x" * 3000})["content"]


def test_what_a_model_reads_is_counted_and_pictures_are_not() -> None:
    resource = {"type": "resource", "resource": {"uri": "a:b", "text": "rtext"}}
    assert said({"content": [text("a"), IMAGE, resource], "structuredContent": {"b": 1}}) == "a\nrtext"
    assert said({"content": [], "structuredContent": {"b": 1}}) == '{"":{"b":1}}'


def test_results_made_to_keep_us_busy_are_cut_to_size() -> None:
    caps = Caps(text_bytes=40_000, blocks=100)
    many_images = {"content": [{"type": "image", "data": "A", "x": n} for n in range(100_000)]}
    many_lists = {"content": [], "structuredContent": {"a": [[]] * 1_000_000}}
    many_fields = {"content": [], **{f"f{n}": "x" for n in range(100_000)}}
    many_hidden = {"content": [text("a\u200b" * 1_000_000)]}
    for result in (many_images, many_lists, many_fields, many_hidden):
        assert len(msgspec.json.encode(shaped(result, caps))) < 150_000
    assert "more blocks that are no text]" in texts(shaped(many_images, caps))
