"""Cuts a transcript into pieces at places that its content chooses.

Two files, or two states of one file, have the pieces in common whose text they have in common,
wherever it stands. A piece that ends at such a place stays the same when the file grows: only the
last one changes.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

LEAST_BYTES = 32_768
MOST_BYTES = 524_288
_CUTS_ONE_OF = 256
"""So many ends of lines or fields make one cut: 10 to 25 KB of JSON."""
_END_OF_FIELD = re.compile(rb"[,\n]")
_SEEN_BYTES = 24
"""So many bytes before such an end decide whether it is a cut."""
_HOLE = b"\0" * 64
"""Transcripts are text: a run of NUL bytes is what a crash or a full disk left."""
_MAX_CHANGED_BYTES = 200


class Piece(NamedTuple):
    """A part of a file."""

    digest: bytes
    data: bytes


def digest_of(data: bytes) -> bytes:
    """Return the digest that names a piece. It is cryptographic: strangers write transcripts."""
    return hashlib.blake2b(data, digest_size=20).digest()


def read_pieces(stream: BinaryIO, size: int) -> Iterator[Piece]:
    """Yield the pieces of a stream, from where it stands.

    Args:
        stream: A file.
        size: How many bytes to read; fewer if the file ends before.
    """
    data = b""
    left = size
    while True:
        block = stream.read(min(MOST_BYTES, left)) if len(data) < MOST_BYTES and left else b""
        left -= len(block)
        data += block
        if not data:
            return
        end = _cut(data)
        if block and end == len(data) and end < MOST_BYTES:
            continue  # More of the piece may follow.
        yield Piece(digest_of(data[:end]), data[:end])
        data = data[end:]


def _cut(data: bytes) -> int:
    for found in _END_OF_FIELD.finditer(data, LEAST_BYTES, MOST_BYTES):
        end = found.end()
        if zlib.crc32(data[end - _SEEN_BYTES : end]) % _CUTS_ONE_OF == 0:
            return end
    return min(len(data), MOST_BYTES)


def has_hole(data: bytes) -> bool:
    """Return whether a part of a transcript was lost and is NUL bytes now."""
    return _HOLE in data


def contains(newer: bytes, former: bytes) -> bool:
    """Return whether a state of a file holds all that a former state held.

    Programs that write a whole file again change a time and a counter in it: 200 bytes may differ.
    """
    known = set(_fields(newer))
    missing = sum(len(field) for field in _fields(former) if field not in known)
    return missing <= _MAX_CHANGED_BYTES


def _fields(data: bytes) -> Iterator[bytes]:
    return (field.strip() for field in re.split(rb"[,\n]", data))
