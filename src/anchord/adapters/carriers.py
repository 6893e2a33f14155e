"""What holds conversations, opened to be read: files, compressed files, members of archives, folders, others' databases.

Nothing is extracted to the disk, and nothing is written to what others own. What comes out of compressed data is counted as
it comes, whatever its headers say: a bomb is a broken carrier.
"""

from __future__ import annotations

import io
import json
import os
import sqlite3
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import BinaryIO, cast
from urllib.parse import quote

import zstandard

from anchord.conversation import Line

MOST_LINE_BYTES = 64 << 20
MOST_MEMBER_BYTES = 2 << 30
MOST_TOTAL_BYTES = 8 << 30
MOST_MEMBERS = 10_000
MOST_RATIO = 200
_RATIO_FROM = 10 << 20
_COUNTED = 1 << 20
_BUFFER = 1 << 20
_BUSY_S = 5.0

Opener = Callable[[], BinaryIO]


class TooLargeError(OSError):
    """More came out of an archive than is read of one."""


class BrokenError(OSError):
    """What was compressed, or a program's database, is damaged."""


class _Counting(io.RawIOBase):
    """A stream that refuses to give more than so many bytes, in all and for each byte that it was made from."""

    def __init__(self, inner: BinaryIO, packed: int) -> None:
        self._inner, self._packed, self._given = inner, max(packed, 1), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # the base says "WriteableBuffer"
        try:
            data = self._inner.read(min(len(buffer), _COUNTED))
        except (zlib.error, zipfile.BadZipFile, zstandard.ZstdError) as error:
            raise BrokenError(str(error)) from error
        self._given += len(data)
        swollen = self._given > _RATIO_FROM and self._given > MOST_RATIO * self._packed
        if swollen or self._given > MOST_MEMBER_BYTES:
            raise TooLargeError("more comes out of it than is read of an archive")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._inner.close()
        super().close()


def _counted(inner: BinaryIO, packed: int) -> BinaryIO:
    return cast("BinaryIO", io.BufferedReader(_Counting(inner, packed), _BUFFER))


@dataclass(frozen=True, slots=True)
class FileCarrier:
    """A file, or a member of an archive; `opener` opens it anew from its start."""

    path: str
    opener: Opener
    database: str = ""
    """Its absolute path, for a database."""

    def lines(self, start: int = 0) -> Iterator[Line]:
        """Yield whole lines; a line that is longer than is read of one comes cut, and its rest is passed over.

        A last line without an end is whole if it is a JSON object: half of one is none.
        """
        at = start
        with self.open() as stream:
            _skip(stream, start)
            while data := stream.readline(MOST_LINE_BYTES):
                size = len(data)
                while not data.endswith(b"\n") and size >= MOST_LINE_BYTES and (rest := stream.readline(MOST_LINE_BYTES)):
                    size += len(rest)
                    if rest.endswith(b"\n"):
                        data += b"\n"
                if not data.endswith(b"\n") and not _is_whole(data):
                    return
                yield Line(at, data.rstrip(b"\r\n"))
                at += size

    def open(self) -> BinaryIO:
        """Return it as a stream."""
        return self.opener()

    def names(self) -> list[str]:
        """Return nothing: it has no members."""
        return []

    def member(self, name: str) -> BinaryIO:
        """Return nothing: it has no members."""
        raise KeyError(name)

    def query(self, sql: str, *values: str | int) -> Iterator[tuple[str | int | float | bytes | None, ...]]:
        """Ask the database, beside the program that owns it. A table that is not there has no rows."""
        uri = f"file:{quote(self.database)}?mode=ro"
        try:
            with closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_S)) as connection:
                connection.text_factory = lambda data: data.decode("utf-8", "replace")
                yield from connection.execute(sql, values)
        except sqlite3.Error as error:
            if "no such" not in str(error):
                raise BrokenError(str(error)) from error


@dataclass(frozen=True, slots=True)
class FolderCarrier:
    """A folder, or an archive taken as one, by the names of its members."""

    path: str
    members: Sequence[str]
    opener: Callable[[str], BinaryIO]

    def lines(self, start: int = 0) -> Iterator[Line]:  # noqa: ARG002 - it has none
        """Yield nothing: it is no file."""
        return iter(())

    def open(self) -> BinaryIO:
        """Return an empty stream: it is no file."""
        return io.BytesIO()

    def names(self) -> list[str]:
        """Return the names of its members."""
        return list(self.members)

    def member(self, name: str) -> BinaryIO:
        """Return a member as a stream."""
        return self.opener(name)

    def query(self, sql: str, *values: str | int) -> Iterator[tuple[str | int | float | bytes | None, ...]]:  # noqa: ARG002
        """Yield nothing: it is no database."""
        return iter(())


def file_carrier(path: str, opener: Opener, full: str) -> FileCarrier:
    """Return a file as a carrier; one that ends in .zst is read as what was compressed."""
    if not path.endswith(".zst"):
        return FileCarrier(path, opener, full)

    def unpacked() -> BinaryIO:
        packed = opener()
        size = os.fstat(packed.fileno()).st_size
        reader = zstandard.ZstdDecompressor(max_window_size=1 << 31).stream_reader(packed, read_across_frames=True)
        return _counted(cast("BinaryIO", reader), size)

    return FileCarrier(path.removesuffix(".zst"), unpacked)


def is_archive(head: bytes) -> bool:
    """Whether a file is a zip, by its first bytes."""
    return head.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def members_of(path: str, archive: zipfile.ZipFile) -> FolderCarrier:
    """Return a zip as a folder. Members that would lie outside of it, links, and those beyond the limits are refused.

    Raises:
        TooLargeError: it has too many members, or they are too large together.
    """
    infos = archive.infolist()
    if len(infos) > MOST_MEMBERS:
        raise TooLargeError(f"{len(infos):,} members are more than are read of an archive ({MOST_MEMBERS:,})")
    if sum(info.file_size for info in infos) > MOST_TOTAL_BYTES:
        raise TooLargeError("its members are larger together than is read of an archive")
    known = {info.filename: info for info in infos if _is_safe(info)}

    def opener(name: str) -> BinaryIO:
        info = known[name]
        return _counted(cast("BinaryIO", archive.open(info)), info.compress_size)

    return FolderCarrier(path, list(known), opener)


def _is_safe(info: zipfile.ZipInfo) -> bool:
    name = info.filename.replace("\\", "/")
    parts = name.split("/")
    is_link = stat.S_ISLNK(info.external_attr >> 16)
    return bool(name) and not (
        info.is_dir() or is_link or name.startswith("/") or ".." in parts or ":" in parts[0] or info.flag_bits & 1
    )


def _is_whole(data: bytes) -> bool:
    try:
        return isinstance(json.loads(data), dict)
    except (ValueError, RecursionError):
        return False


def _skip(stream: BinaryIO, count: int) -> None:
    if count and stream.seekable():
        stream.seek(count)
        return
    while count > 0 and (data := stream.read(min(count, _BUFFER))):
        count -= len(data)
