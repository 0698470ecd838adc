"""Compressed bodies: decoded within bounds, and never half."""

from __future__ import annotations

import contextlib
import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.proxy.bodies import PIECE, Decoder, EncodingBroken, EncodingUnknown, TooLarge, decode

TEXT = b'{"model": "m", "messages": []}' * 50


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACKED = {
    "": TEXT,
    "identity": TEXT,
    "gzip": gzip.compress(TEXT),
    "x-gzip": gzip.compress(TEXT),
    " GZIP ": gzip.compress(TEXT[:99]) + gzip.compress(TEXT[99:]),
    "deflate": zlib.compress(TEXT),
    "Deflate": raw_deflate(TEXT),
}


@pytest.mark.parametrize("encoding", PACKED)
def test_a_body_comes_out_as_it_went_in(encoding: str) -> None:
    assert decode(PACKED[encoding], encoding, 1 << 20) == TEXT


@pytest.mark.parametrize("encoding", PACKED)
@pytest.mark.parametrize("step", [1, 2, 7, 64])
def test_any_slicing_gives_the_same(encoding: str, step: int) -> None:
    decoder, packed = Decoder(encoding), PACKED[encoding]
    parts = [piece for at in range(0, len(packed), step) for piece in decoder.feed(packed[at : at + step])]
    decoder.finish()
    assert b"".join(parts) == TEXT


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "compress"])
def test_other_encodings_are_not_read(encoding: str) -> None:
    with pytest.raises(EncodingUnknown):
        decode(b"x", encoding, 100)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_body_that_ends_early_is_broken(encoding: str) -> None:
    for cut in range(1, len(PACKED[encoding])):
        with pytest.raises(EncodingBroken):
            decode(PACKED[encoding][:cut], encoding, 1 << 20)


def test_a_bomb_is_stopped_before_it_is_large() -> None:
    bomb = gzip.compress(bytes(200_000_000))
    with pytest.raises(TooLarge):
        decode(bomb, "gzip", 1_000_000)


def test_a_bomb_in_a_reply_comes_in_small_pieces() -> None:
    sizes = [len(piece) for piece in Decoder("gzip").feed(gzip.compress(bytes(10_000_000)))]
    assert sum(sizes) == 10_000_000
    assert max(sizes) <= PIECE


@given(st.binary(max_size=200), st.sampled_from(["gzip", "deflate"]))
def test_garbage_is_broken_and_nothing_worse(data: bytes, encoding: str) -> None:
    with contextlib.suppress(EncodingBroken, TooLarge):
        decode(data, encoding, 1000)
