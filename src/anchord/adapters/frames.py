"""What goes over the pipe of an embedding process: four bytes of length, then MessagePack."""

from __future__ import annotations

import struct
from typing import BinaryIO

import msgspec

_LENGTH = struct.Struct("<I")


def read_frame(stream: BinaryIO) -> object:
    """Return the next frame's value, None at the end of the stream and for bytes that are no frame."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (size,) = _LENGTH.unpack(head)
    body = stream.read(size)
    try:
        return msgspec.msgpack.decode(body) if len(body) == size else None
    except msgspec.DecodeError:
        return None


def write_frame(stream: BinaryIO, value: object) -> None:
    """Send a frame."""
    body = msgspec.msgpack.encode(value)
    stream.write(_LENGTH.pack(len(body)) + body)
    stream.flush()
