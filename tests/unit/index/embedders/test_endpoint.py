"""An endpoint that refuses, stumbles or lies: across a real socket, and never with the key in what is said."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from pegboard.errors import EmbedderError
from pegboard.index.embedders import endpoint as module
from pegboard.index.embedders.cached import CachedQueries
from pegboard.index.embedders.endpoint import BATCH, MOST_REQUEST_BYTES, EndpointEmbedder, Patience, batches
from tests.servers.scripted_http import Asked, Handler, scripted

KEY = "sk-very-secret-0123456789"


def vectors(*rows: list[Any], indexed: bool = True) -> bytes:
    data = [{"embedding": row, **({"index": place} if indexed else {})} for place, row in enumerate(rows)]
    return msgspec.json.encode({"data": data})


def answering(body: bytes, status: int = 200, **headers: str) -> Handler:
    async def handle(asked: Asked) -> None:
        await asked.reply(status, body, **headers)

    return handle


async def numbered(asked: Asked) -> None:
    """Every text is a number, and its vector points there."""
    await asked.reply(200, vectors(*([1.0, float(text)] for text in asked.message["input"])))


def asked_of(handler: Handler, check: Callable[[EndpointEmbedder, Any], Awaitable[None]], **given: Any) -> None:
    async def scenario() -> None:
        async with scripted(handler) as site:
            await check(EndpointEmbedder(f"{site.origin}/v1", "m", key=lambda: KEY, **given), site)

    asyncio.run(scenario())


def failure_of(handler: Handler, texts: tuple[str, ...] = ("a", "b"), **given: Any) -> tuple[EmbedderError, int]:
    """What is said, and how often the endpoint was asked."""
    seen: list[tuple[EmbedderError, int]] = []

    async def check(embedder: EndpointEmbedder, site: Any) -> None:
        with pytest.raises(EmbedderError) as caught:
            await embedder.embed(texts, query=True)
        host = site.origin.removeprefix("http://")
        assert caught.value.message.startswith(f"The embeddings endpoint {host}: ")
        assert KEY not in f"{caught.value.message} {caught.value.hint} {caught.value!r}"
        seen.append((caught.value, len(site.requests)))

    asked_of(handler, check, **given)
    return seen[0]


def test_the_request_is_what_openai_documents() -> None:
    async def check(embedder: EndpointEmbedder, site: Any) -> None:
        await embedder.embed(["7"])
        [asked] = site.requests
        assert (asked.verb, asked.target) == ("POST", "/v1/embeddings")
        assert asked.message == {"model": "m", "input": ["7"]}
        assert asked.headers["authorization"] == f"Bearer {KEY}"
        assert asked.headers["content-type"] == "application/json"

    asked_of(numbered, check)


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("{}", "/embeddings"),
        ("{}/", "/embeddings"),
        ("{}/v1/embeddings", "/v1/embeddings"),
        ("{}/v1/embeddings/", "/v1/embeddings"),
        ("{}/openai?api-version=1", "/openai/embeddings?api-version=1"),
    ],
)
def test_the_address_may_be_given_with_or_without_its_end(url: str, target: str) -> None:
    async def scenario() -> None:
        async with scripted(numbered) as site:
            embedder = EndpointEmbedder(url.format(site.origin), "m")
            await embedder.embed(["1"])
            assert site.requests[0].target == target
            assert "authorization" not in site.requests[0].headers
            assert "api-version" not in embedder.identity

    asyncio.run(scenario())


def test_many_texts_go_in_batches_and_come_back_in_order() -> None:
    async def check(embedder: EndpointEmbedder, site: Any) -> None:
        texts = [str(number) for number in range(300)]
        rows = await embedder.embed(texts)
        assert [len(asked.message["input"]) for asked in site.requests] == [128, 128, 44]
        assert rows[:, 1] / rows[:, 0] == pytest.approx(np.arange(300), rel=1e-4)

    asked_of(numbered, check)


def test_a_request_is_bounded_in_texts_and_in_bytes() -> None:
    texts = dict(enumerate(["ü" * 4000] * 40 + ["x"] * 300))
    parts = list(batches(texts))
    assert [text for part in parts for text in part] == list(texts.values())
    assert max(map(len, parts)) <= BATCH
    assert max(sum(len(text.encode()) for text in part) for part in parts) <= MOST_REQUEST_BYTES


def test_texts_that_say_nothing_are_not_sent() -> None:
    async def check(embedder: EndpointEmbedder, site: Any) -> None:
        rows = await embedder.embed(["", "5", "  "])
        assert [asked.message["input"] for asked in site.requests] == [["5"]]
        assert rows.shape == (3, 2)
        assert not rows[[0, 2]].any()

    asked_of(numbered, check)


def test_vectors_without_an_index_are_taken_in_their_order() -> None:
    async def check(embedder: EndpointEmbedder, site: Any) -> None:
        assert np.array_equal(await embedder.embed(["a", "b"]), [[1, 0], [0, 1]])

    asked_of(answering(vectors([2, 0], [0, 2], indexed=False)), check)


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (400, b'{"error": {"message": "this model does not exist"}}', "it answered 400: this model does not exist"),
        (404, b'{"error": "no such\\n path\\u001b[31m"}', "it answered 404: no such path [31m"),
        (413, b"<html>too large</html>", "it answered 413"),
        (401, b'{"error": {"message": "Incorrect API key provided: sk-very*****6789"}}', "does not accept the key"),
        (403, b"", "does not accept the key"),
        (204, b"", "it answered 204"),
    ],
)
def test_a_bad_status_is_told_and_not_tried_again(status: int, body: bytes, said: str) -> None:
    error, asked = failure_of(answering(body, status))
    assert said in error.message
    assert "sk-very" not in error.message
    assert error.hint
    assert asked == 1


def test_a_key_that_the_endpoint_repeats_is_not_passed_on() -> None:
    body = msgspec.json.encode({"error": {"message": f"bad header Bearer {KEY}"}})
    error, _ = failure_of(answering(body, 400))
    assert error.message.endswith("it answered 400: bad header Bearer …")


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_an_endpoint_that_is_busy_is_tried_again(status: int) -> None:
    async def handle(asked: Asked) -> None:
        await (numbered(asked) if len(asked.site.requests) > 1 else asked.reply(status, Retry_After="0"))

    async def check(embedder: EndpointEmbedder, site: Any) -> None:
        assert (await embedder.embed(["1"])).shape == (1, 2)
        assert len(site.requests) == 2

    asked_of(handle, check)


def test_an_endpoint_that_stays_busy_is_given_up_after_two_retries() -> None:
    error, asked = failure_of(answering(b"", 429, Retry_After="0"))
    assert "it answered 429" in error.message
    assert asked == 3


def test_an_endpoint_that_asks_for_more_time_than_a_search_has_is_not_waited_for() -> None:
    error, asked = failure_of(answering(b"", 503, Retry_After="3600"), patience=Patience(query=0.2))
    assert "no answer within 0.2 s" in error.message
    assert asked == 1


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [
        ("3", 3, 3),
        ("-1", 0, 0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0),
        ("Wed, 21 Oct 2099 07:28:00 GMT", 1e8, 1e10),
    ],
)
def test_retry_after_is_read_as_seconds_or_a_date(value: str, least: float, most: float) -> None:
    pause = module._retry_after(value)
    assert pause is not None
    assert least <= pause <= most


@pytest.mark.parametrize("value", ["", "soon", "nan", "inf", "Wed, 21 Oct 2015 07:28:00"])
def test_a_retry_after_that_says_nothing_is_ignored(value: str) -> None:
    assert module._retry_after(value) is None


def test_a_connection_that_breaks_is_tried_again() -> None:
    async def handle(asked: Asked) -> None:
        if len(asked.site.requests) == 1:
            asked.cut()
        else:
            await numbered(asked)

    async def check(embedder: EndpointEmbedder, site: Any) -> None:
        assert (await embedder.embed(["1"])).shape == (1, 2)

    asked_of(handle, check)


def test_a_refused_connection_names_the_host() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody else answers there
        port = taken.getsockname()[1]
        embedder = EndpointEmbedder(f"http://127.0.0.1:{port}/v1", "m", key=lambda: KEY)
        with pytest.raises(EmbedderError, match=f"endpoint 127.0.0.1:{port}: .*cannot be reached") as caught:
            asyncio.run(embedder.embed(["a"]))
    assert KEY not in str(caught.value)


def test_an_endpoint_that_never_answers_is_given_up() -> None:
    error, _ = failure_of(Asked.gone, patience=Patience(query=0.2))
    assert "no answer within 0.2 s" in error.message


def test_an_answer_that_never_ends_is_given_up_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ANSWER_BYTES", 2**20)

    async def handle(asked: Asked) -> None:
        await asked.begin_events()
        while True:
            await asked.chunk(b" " * 65536)

    error, asked = failure_of(handle)
    assert "the answer is larger than 1 MiB" in error.message
    assert asked == 1


def test_a_redirect_is_not_followed() -> None:
    error, asked = failure_of(answering(b"", 307, Location="/elsewhere?token=secret"))
    assert "a redirect, which is not followed" in error.message
    assert "secret" not in error.message
    assert asked == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>hello</html>",
        b"\xff\xfe",
        b"[]",
        b'{"data": 5}',
        b'{"data": [{"embedding": "AAAA"}, {"embedding": "AAAA"}]}',
        b'{"data": [{"embedding": [NaN, 1]}, {"embedding": [1, 1]}]}',
        b'{"data": [{"embedding": [null, 1]}, {"embedding": [1, 1]}]}',
        b'{"data": [{"embedding": [1, 1]}',
    ],
)
def test_an_answer_that_is_not_embeddings_is_told(body: bytes) -> None:
    error, _ = failure_of(answering(body))
    assert "the answer is not a list of embeddings in JSON" in error.message


@pytest.mark.parametrize("number", [b"1e999", b"-1e999", b"1e300"])
def test_numbers_too_large_to_be_numbers_are_refused(number: bytes) -> None:
    body = b'{"data": [{"embedding": [%s, 1]}, {"embedding": [1, 1]}]}' % number
    error, _ = failure_of(answering(body))
    assert "not a number" in error.message or "not a list of embeddings" in error.message


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (vectors([1, 0]), "it answered 2 texts with 1 vectors"),
        (vectors([1, 0], [1, 0], [1, 0]), "it answered 2 texts with 3 vectors"),
        (vectors([1, 0], [1, 0, 0]), "its vectors are of different lengths, or empty"),
        (vectors([], []), "its vectors are of different lengths, or empty"),
        (b'{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}', "which vector is which"),
        (b'{"data": [{"index": 1, "embedding": [1]}, {"index": 2, "embedding": [1]}]}', "which vector is which"),
        (b'{"data": [{"index": 1, "embedding": [1]}, {"embedding": [1]}]}', "which vector is which"),
    ],
)
def test_vectors_that_do_not_fit_the_texts_are_refused(body: bytes, said: str) -> None:
    error, _ = failure_of(answering(body))
    assert said in error.message


def test_vectors_of_zeros_stay_zeros() -> None:
    async def check(embedder: EndpointEmbedder, site: Any) -> None:
        assert np.allclose(await embedder.embed(["a", "b"]), np.array([[0.0, 0.0], [0.6, 0.8]]))

    asked_of(answering(vectors([0, 0], [3, 4])), check)


def test_an_endpoint_that_changes_its_model_underneath_is_noticed() -> None:
    async def handle(asked: Asked) -> None:
        await asked.reply(200, vectors([1.0] * (2 + len(asked.site.requests))))

    async def check(embedder: EndpointEmbedder, site: Any) -> None:
        await embedder.embed(["a"])
        with pytest.raises(EmbedderError, match="its vectors have 4 numbers, and had 3 before"):
            await embedder.embed(["b"])

    asked_of(handle, check)


def test_a_key_that_http_cannot_carry_is_told_without_repeating_it() -> None:
    embedder = EndpointEmbedder("http://127.0.0.1:9/v1", "m", key=lambda: "secret\nX-Other: 1")
    with pytest.raises(EmbedderError, match="Authorization") as caught:
        asyncio.run(embedder.embed(["a"]))
    assert "secret" not in str(caught.value)


def test_the_key_is_neither_kept_nor_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def check(embedder: EndpointEmbedder, site: Any) -> None:
        await embedder.embed(["1"])
        assert KEY not in repr(vars(embedder))
        assert KEY not in embedder.identity

    asked_of(numbered, check)
    assert KEY not in caplog.text


def test_a_query_is_sent_once_and_a_document_each_time() -> None:
    async def check(embedder: EndpointEmbedder, site: Any) -> None:
        cached = CachedQueries(embedder)
        for _ in range(3):
            await cached.embed(["1", "2"], query=True)
        assert len(site.requests) == 1
        await cached.embed(["2", "3", "2"], query=True)
        assert site.requests[-1].message["input"] == ["3"]
        await cached.embed(["1"])
        assert len(site.requests) == 3

    asked_of(numbered, check)


def test_only_the_latest_queries_are_remembered() -> None:
    async def check(embedder: EndpointEmbedder, site: Any) -> None:
        cached = CachedQueries(embedder, kept=2)
        for text in ("1", "2", "1", "3"):
            await cached.embed([text], query=True)
        assert len(site.requests) == 3
        await cached.embed(["1"], query=True)
        assert len(site.requests) == 3, "the one used least recently went"
        await cached.embed(["2"], query=True)
        assert len(site.requests) == 4

    asked_of(numbered, check)


def test_a_failure_is_not_remembered() -> None:
    async def handle(asked: Asked) -> None:
        await (numbered(asked) if len(asked.site.requests) > 1 else asked.reply(400))

    async def check(embedder: EndpointEmbedder, site: Any) -> None:
        cached = CachedQueries(embedder)
        with pytest.raises(EmbedderError):
            await cached.embed(["1"], query=True)
        assert (await cached.embed(["1"], query=True)).shape == (1, 2)

    asked_of(handle, check)
