"""A file of named arrays that opens by being mapped: milliseconds, whatever its size.

The first line says how long the header is and what its checksum is; the header names every array with its place and
checksum. Above: the index keeps itself in one. Below: `files` replaces it whole or not at all.
"""

from __future__ import annotations

import mmap
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from pegboard.errors import IndexDamaged
from pegboard.store.files import open_regular, replace_file

_MAGIC = b"pegboard-arrays 1"
_FIRST_LINE = 64
_ALIGNED = 64
CHECKED_AT_ONCE = 8 << 20
"""Arrays up to this size are checked when the file is opened; larger ones when someone asks."""
_KINDS = frozenset("biuf")


class _Place(msgspec.Struct):
    name: str
    dtype: str
    shape: tuple[int, ...]
    at: int
    size: int
    checksum: int


class _Header(msgspec.Struct):
    about: msgspec.Raw
    arrays: list[_Place]


class ArrayFile(msgspec.Struct, frozen=True):
    """An open file: what it says of itself, and its arrays, read from the disk as they are touched."""

    path: Path
    about: bytes
    arrays: dict[str, NDArray[Any]]
    checksums: dict[str, int]

    def damaged(self) -> list[str]:
        """The names of all arrays that are not what was written. Reads the whole file."""
        return [name for name, array in self.arrays.items() if _checksum(array) != self.checksums[name]]


def write_arrays(path: Path, about: bytes, arrays: Mapping[str, NDArray[Any]]) -> int:
    """Replaces the file; gives its size. `about` is a JSON document."""
    places: list[_Place] = []
    at = 0
    for name, array in arrays.items():
        flat = np.ascontiguousarray(array)
        places.append(_Place(name, flat.dtype.str, flat.shape, at, flat.nbytes, _checksum(flat)))
        at += flat.nbytes + _padding(flat.nbytes)
    header = msgspec.json.encode(_Header(msgspec.Raw(about), places))
    header += b" " * _padding(_FIRST_LINE + len(header))
    first = b"%s %08x %08x\n" % (_MAGIC, len(header), zlib.crc32(header))
    replace_file(path, _chunks(first.ljust(_FIRST_LINE), header, arrays))
    return _FIRST_LINE + len(header) + at


def open_arrays(path: Path) -> ArrayFile:
    """Maps the file. IndexDamaged when it is not what was written; OSError when it cannot be read."""
    fd = open_regular(path)
    try:
        content = mmap.mmap(fd, 0, access=mmap.ACCESS_READ)
    except ValueError:
        raise IndexDamaged(f"{path} is empty.") from None
    finally:
        os.close(fd)
    header, start = _header_of(content, path)
    arrays: dict[str, NDArray[Any]] = {}
    for place in header.arrays:
        arrays[place.name] = array = _array_of(content, place, start, path)
        if array.nbytes <= CHECKED_AT_ONCE and _checksum(array) != place.checksum:
            raise IndexDamaged(f"{path}: {place.name} does not match its checksum.")
    return ArrayFile(path, bytes(header.about), arrays, {place.name: place.checksum for place in header.arrays})


def _header_of(content: mmap.mmap, path: Path) -> tuple[_Header, int]:
    first = content[:_FIRST_LINE].split()
    if len(first) != 4 or b" ".join(first[:2]) != _MAGIC:
        raise IndexDamaged(f"{path} is not an index, or one of another version.")
    try:
        length, checksum = int(first[2], 16), int(first[3], 16)
        start = _FIRST_LINE + length
        header = content[_FIRST_LINE:start]
        if len(header) != length or zlib.crc32(header) != checksum:
            raise IndexDamaged(f"{path}: its header is damaged.")
        return msgspec.json.decode(header, type=_Header), start
    except (ValueError, msgspec.MsgspecError):
        raise IndexDamaged(f"{path}: its header is damaged.") from None


def _array_of(content: mmap.mmap, place: _Place, start: int, path: Path) -> NDArray[Any]:
    try:
        dtype = np.dtype(place.dtype)
    except TypeError:
        raise IndexDamaged(f"{path}: {place.name} is of a kind that is not known.") from None
    count = int(np.prod(place.shape, dtype=np.int64))
    fits = place.at >= 0 and start + place.at + place.size <= len(content)
    if dtype.kind not in _KINDS or count * dtype.itemsize != place.size or not fits:
        raise IndexDamaged(f"{path} is cut short, or {place.name} is damaged.")
    return np.frombuffer(content, dtype, count, start + place.at).reshape(place.shape)


def _chunks(first: bytes, header: bytes, arrays: Mapping[str, NDArray[Any]]) -> Iterator[bytes | memoryview]:
    yield first
    yield header
    for array in arrays.values():
        flat = np.ascontiguousarray(array)
        if flat.nbytes:
            yield flat.data.cast("B")
        yield b"\0" * _padding(flat.nbytes)


def _padding(size: int) -> int:
    return -size % _ALIGNED


def _checksum(array: NDArray[Any]) -> int:
    return zlib.crc32(np.ascontiguousarray(array).data.cast("B")) if array.nbytes else 0
