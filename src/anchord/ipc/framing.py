"""Frames on the pipe of a worker: four bytes of length (little-endian), then MessagePack."""

from __future__ import annotations

import struct
from typing import BinaryIO

import msgspec

_LENGTH = struct.Struct("<I")


def read_frame(stream: BinaryIO) -> object:
    """Read the next frame, blocking until it is complete.

    Returns:
        The decoded value; None at the end of the stream, and for bytes that are not a frame.
    """
    header = stream.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        return None
    (size,) = _LENGTH.unpack(header)
    body = stream.read(size)
    if len(body) < size:
        return None
    try:
        return msgspec.msgpack.decode(body)
    except msgspec.DecodeError:
        return None


def write_frame(stream: BinaryIO, value: object) -> None:
    """Write a value as one frame and flush the stream.

    Args:
        stream: The pipe.
        value: Anything that MessagePack can encode.

    Raises:
        OSError: The reader closed the pipe.
    """
    body = msgspec.msgpack.encode(value)
    stream.write(_LENGTH.pack(len(body)) + body)
    stream.flush()
