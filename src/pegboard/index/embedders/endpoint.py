"""Vectors from an OpenAI-compatible endpoint: what is embedded leaves this machine, to the address you configured.

Every failure is an EmbedderError that names the host and the cause. The key is read from the environment for each
request, sent, and kept nowhere; no message repeats it. Above: `choose`. Below: the HTTP client with the house rules.
"""

from __future__ import annotations

import asyncio
import email.utils
import math
import random
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

import httpx2
import msgspec
import numpy as np
from numpy.typing import NDArray

from pegboard.errors import ConfigError, EmbedderError, ServerError
from pegboard.index.embedders.rows import LONGEST_TEXT, checked, placed, readable
from pegboard.upstream.http_client import network_error, new_client, shown

BATCH = 128
MOST_REQUEST_BYTES = 250_000
"""No tokenizer makes more tokens than there are bytes, and 300,000 tokens are OpenAI's limit for one request."""
MOST_ANSWER_BYTES = 32 * 1024 * 1024
RETRIES = 2
FIRST_PAUSE = 0.25
LONGEST_PAUSE = 4.0
_TRY_AGAIN = (429, 500, 502, 503, 504)
_KEY_TROUBLE = (401, 403)
_PROBE = {0: "tool"}


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds that one request may take, with its retries."""

    query: float = 8.0
    """A search is waiting, and can go on by words."""
    documents: float = 60.0


class _Row(msgspec.Struct):
    embedding: list[float]
    index: int | None = None


class _Answer(msgspec.Struct):
    data: list[_Row]


class _Complaint(msgspec.Struct):
    message: str = ""


class _Refusal(msgspec.Struct):
    error: _Complaint | str = ""


class _Again(Exception):
    """Not this time; perhaps the next."""

    def __init__(self, error: EmbedderError, pause: float | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.pause = pause


class EndpointEmbedder:
    """One model of one endpoint."""

    def __init__(self, url: str, model: str, key: Callable[[], str] = str, patience: Patience | None = None) -> None:
        """`key` is asked for the key before each request; an empty one is not sent."""
        self._url = embeddings_url(url)
        self._model = model
        self._key = key
        self._patience = patience or Patience()
        self._width: int | None = None
        self.identity = f"endpoint:{shown(self._url)}:{model}"

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """One row for each text. Texts that say nothing are not sent; their rows are zero."""
        fit = readable(texts, LONGEST_TEXT)
        if not texts or (not fit and self._width is not None):
            return np.zeros((len(texts), self._width or 0), np.float32)
        patience = self._patience.query if query else self._patience.documents
        found: list[NDArray[np.float32]] = []
        try:
            # A client for each call: connections would not live until the next, and there is nothing to close.
            async with self._client() as client:
                for part in batches(fit or _PROBE):
                    async with asyncio.timeout(patience):
                        found.append(await self._tried(client, part))
        except TimeoutError:
            raise self._error(f"no answer within {patience:g} s", "Is the endpoint overloaded?") from None
        return placed(len(texts), found[0].shape[1], list(fit), found if fit else [])

    def _client(self) -> httpx2.AsyncClient:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        key = self._key()
        if key:
            headers["Authorization"] = f"Bearer {key}"
        try:
            return new_client("endpoint", self._url, headers)
        except ServerError as error:
            raise self._error(error.cause) from None

    async def _tried(self, client: httpx2.AsyncClient, texts: list[str]) -> NDArray[np.float32]:
        pause = FIRST_PAUSE
        for left in range(RETRIES, -1, -1):
            try:
                return await self._asked(client, texts)
            except _Again as again:
                if not left:
                    raise again.error from None
                asked = pause * random.uniform(0.75, 1.25) if again.pause is None else again.pause  # noqa: S311
                await asyncio.sleep(min(asked, LONGEST_PAUSE))
                pause *= 3
        raise AssertionError("the last try returns or raises")

    async def _asked(self, client: httpx2.AsyncClient, texts: list[str]) -> NDArray[np.float32]:
        request = msgspec.json.encode({"model": self._model, "input": texts})
        try:
            async with client.stream("POST", self._url, content=request) as response:
                body = await self._body(response)
        except httpx2.LocalProtocolError as error:
            raise self._error(network_error("endpoint", str(self._url), error).cause) from None
        except httpx2.HTTPError as error:
            broken = self._error(network_error("endpoint", str(self._url), error).cause, "Is search.url right?")
            raise _Again(broken) from None
        self._check_status(response, body)
        return await asyncio.to_thread(self._rows, body, len(texts))

    async def _body(self, response: httpx2.Response) -> bytes:
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > MOST_ANSWER_BYTES:
                raise self._error(f"the answer is larger than {MOST_ANSWER_BYTES // 2**20} MiB")
        return bytes(body)

    def _check_status(self, response: httpx2.Response, body: bytes) -> None:
        status = response.status_code
        if status == 200:
            return
        if response.is_redirect:
            raise self._error(f"it answered {status}, a redirect, which is not followed", "Is search.url right?")
        if status in _KEY_TROUBLE:
            # What it says of a key may repeat parts of it.
            raise self._error(f"it answered {status}: it does not accept the key", "Check search.api_key_env.")
        error = self._error(f"it answered {status}{self._complaint(body)}", "Are search.url and search.model right?")
        if status in _TRY_AGAIN:
            raise _Again(error, _retry_after(response.headers.get("retry-after", "")))
        raise error

    def _complaint(self, body: bytes) -> str:
        try:
            said = msgspec.json.decode(body, type=_Refusal).error
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return ""
        words = said if isinstance(said, str) else said.message
        key = self._key()
        words = words.replace(key, "…") if key else words
        words = " ".join(re.sub(r"[^\x20-\x7e\xa0-\U0010ffff]", " ", words).split())[:200]
        return f": {words}" if words else ""

    def _rows(self, body: bytes, count: int) -> NDArray[np.float32]:
        try:
            data = msgspec.json.decode(body, type=_Answer).data
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise self._error("the answer is not a list of embeddings in JSON", "Is search.url right?") from None
        if len(data) != count:
            raise self._error(f"it answered {count} texts with {len(data)} vectors")
        if any(row.index is not None for row in data):
            if {row.index for row in data} != set(range(count)):
                raise self._error("the answer does not say which vector is which text's")
            data.sort(key=lambda row: row.index or 0)
        widths = {len(row.embedding) for row in data}
        if len(widths) != 1 or 0 in widths:
            raise self._error("its vectors are of different lengths, or empty")
        try:
            rows = checked(np.array([row.embedding for row in data], np.float64), count)
        except EmbedderError as error:
            raise self._error(error.message) from None
        return self._of_one_width(rows)

    def _of_one_width(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        width = rows.shape[1]
        if self._width is None:
            self._width = width
        if width != self._width:
            raise self._error(f"its vectors have {width} numbers, and had {self._width} before")
        return rows

    def _error(self, cause: str, hint: str = "") -> EmbedderError:
        host = self._url.netloc.decode("ascii", "replace")
        return EmbedderError(f"The embeddings endpoint {host}: {cause}", hint=hint)


def embeddings_url(url: str) -> httpx2.URL:
    """Where to post: the address itself if it ends in /embeddings, else that under it."""
    hint = 'url = "https://api.openai.com/v1"'
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL:
        raise ConfigError("search.url: not an address", hint=hint) from None
    if parsed.scheme not in ("http", "https") or not parsed.host or not 0 < (parsed.port or 80) < 65536:
        raise ConfigError("search.url: not an address that HTTP can reach", hint=hint)
    if parsed.userinfo:
        raise ConfigError("search.url: has credentials in it", hint="Put the key into a variable; see api_key_env.")
    path = parsed.path.rstrip("/")
    return parsed.copy_with(path=path if path.endswith("/embeddings") else f"{path}/embeddings", fragment=None)


def batches(texts: dict[int, str]) -> Iterator[list[str]]:
    """The texts in their order, in as few requests as an endpoint takes."""
    part: list[str] = []
    size = 0
    for text in texts.values():
        length = len(text.encode())
        if part and (len(part) == BATCH or size + length > MOST_REQUEST_BYTES):
            yield part
            part, size = [], 0
        part.append(text)
        size += length
    if part:
        yield part


def _retry_after(value: str) -> float | None:
    """Seconds, from seconds or a date; None if it says nothing."""
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (email.utils.parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
