"""Opens what holds conversations: files, compressed files, zips, folders, programs' databases.

Nothing is extracted to disk, and nothing is written to other programs' files. Bytes that come out
of compressed data are counted as they come, whatever its headers say: a decompression bomb is a
broken file.
"""

from __future__ import annotations

import io
import json
import os
import stat
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, cast

import zstandard

from anchord.sources.conversations.events import Line
from anchord.sources.conversations.foreign_database import BrokenError, ForeignDatabase, Value

MAX_LINE_BYTES = 64 << 20
"""A longer line is cut there."""
MAX_MEMBER_BYTES = 2 << 30
"""Of a zip's member, or a compressed file, after decompression."""
MAX_TOTAL_BYTES = 8 << 30
"""Of all members of a zip together, by its headers."""
MAX_MEMBERS = 10_000
"""Of a zip."""
MAX_COMPRESSION_RATIO = 200
_RATIO_FROM_BYTES = 10 << 20
"""Less than this may have any compression ratio."""
_MAX_READ_BYTES = 1 << 20
_BUFFER_BYTES = 1 << 20
_ZSTD_WINDOW_BYTES = 1 << 31
_ENCRYPTED_FLAG = 1

Opener = Callable[[], BinaryIO]
"""Opens a file or a member at its start. Each call returns a new stream."""


class TooLargeError(OSError):
    """An archive exceeds one of the limits above."""


class _LimitedStream(io.RawIOBase):
    """A decompressing stream that raises TooLargeError beyond the size and ratio limits."""

    def __init__(self, inner: BinaryIO, compressed_size: int) -> None:
        self._inner = inner
        self._compressed_size = max(compressed_size, 1)
        self._read_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # the base says "WriteableBuffer"
        try:
            data = self._inner.read(min(len(buffer), _MAX_READ_BYTES))
        except (zlib.error, zipfile.BadZipFile, zstandard.ZstdError) as error:
            raise BrokenError(str(error)) from error
        self._read_bytes += len(data)
        self._check_limits()
        buffer[: len(data)] = data
        return len(data)

    def _check_limits(self) -> None:
        is_over_ratio = (
            self._read_bytes > _RATIO_FROM_BYTES
            and self._read_bytes > MAX_COMPRESSION_RATIO * self._compressed_size
        )
        if is_over_ratio or self._read_bytes > MAX_MEMBER_BYTES:
            raise TooLargeError("it decompresses to more than the limit")

    def close(self) -> None:
        self._inner.close()
        super().close()


def _limited(inner: BinaryIO, compressed_size: int) -> BinaryIO:
    stream = _LimitedStream(inner, compressed_size)
    return cast("BinaryIO", io.BufferedReader(stream, _BUFFER_BYTES))


@dataclass(frozen=True, slots=True)
class SingleTranscriptFile:
    """A file, or a member of a zip."""

    path: str
    """The path relative to the root; for a member `archive.zip!member`."""
    opener: Opener
    database: ForeignDatabase = field(default_factory=lambda: ForeignDatabase(""))
    """The same file as a database; one without a path where the content is no file of its own."""
    end_offset: int = sys.maxsize
    """Byte offset from which no line is read: the file may be growing faster than it is read."""

    def lines(self, start_offset: int = 0) -> Iterator[Line]:
        """Yield the complete lines.

        A line longer than 64 MiB is cut there. A last line without a line end is yielded if it is
        a complete JSON object, for half of one is not valid JSON; else it is left for later.

        Args:
            start_offset: Byte offset of the first line to read.

        Raises:
            OSError: The file cannot be read, or decompresses to more than the limits.
        """
        offset = start_offset
        with self.open() as stream:
            _skip(stream, start_offset)
            while offset < self.end_offset:
                data, size = _read_line(stream)
                if not data.endswith(b"\n") and not _is_json_object(data):
                    return  # The end of the file, or a line that is still being written.
                yield Line(offset, data.rstrip(b"\r\n"))
                offset += size

    def open(self) -> BinaryIO:
        """Open the whole content as a stream.

        Raises:
            OSError: The file cannot be opened.
        """
        return self.opener()

    def member_names(self) -> list[str]:
        """Return []: a file has no members."""
        return []

    def open_member(self, name: str) -> BinaryIO:
        """Raise: a file has no members.

        Raises:
            KeyError: Always.
        """
        raise KeyError(name)

    def close(self) -> None:
        """Close the database, if a query opened it."""
        self.database.close()

    def query(self, sql: str, *values: str | int) -> Iterator[tuple[Value, ...]]:
        """Yield the rows of a query, read-only; nothing if a table or column is missing.

        Args:
            sql: One SELECT statement with `?` for each value.
            *values: Its values.

        Raises:
            BrokenError: As for `ForeignDatabase.query`.
        """
        return self.database.query(sql, *values)


@dataclass(frozen=True, slots=True)
class TranscriptFolder:
    """A folder or a zip that holds transcripts."""

    path: str
    """The path relative to the root."""
    members: Sequence[str]
    """Paths of its files relative to it, with "/"."""
    open_member_by_name: Callable[[str], BinaryIO]

    def lines(self, start_offset: int = 0) -> Iterator[Line]:  # noqa: ARG002 - it has none
        """Yield nothing: a folder has no lines."""
        return iter(())

    def open(self) -> BinaryIO:
        """Return an empty stream: a folder has no content of its own."""
        return io.BytesIO()

    def member_names(self) -> list[str]:
        """Return the paths of its files, with "/"."""
        return list(self.members)

    def open_member(self, name: str) -> BinaryIO:
        """Open a member as a stream.

        Raises:
            KeyError: There is no member of this name, in a zip.
            OSError: The member cannot be opened.
        """
        return self.open_member_by_name(name)

    def query(
        self,
        sql: str,  # noqa: ARG002 - it is no database
        *values: str | int,  # noqa: ARG002 - likewise
    ) -> Iterator[tuple[Value, ...]]:
        """Yield nothing: a folder is no database."""
        return iter(())


def make_transcript_file(
    path: str, opener: Opener, absolute_path: str, *, end_offset: int = sys.maxsize
) -> SingleTranscriptFile:
    """Return a file as a transcript file; content of a `.zst` file is decompressed as it is read.

    Args:
        path: The path relative to the root. A `.zst` at its end is left out of the result's path.
        opener: Opens the file.
        absolute_path: The absolute path, by which a database is opened.
        end_offset: Byte offset from which no line is read; ignored for a `.zst` file.
    """
    if not path.endswith(".zst"):
        return SingleTranscriptFile(
            path,
            opener,
            ForeignDatabase(absolute_path),
            end_offset,
        )

    def open_decompressed() -> BinaryIO:
        compressed = opener()
        size = os.fstat(compressed.fileno()).st_size
        decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
        reader = decompressor.stream_reader(compressed, read_across_frames=True)
        return _limited(cast("BinaryIO", reader), size)

    return SingleTranscriptFile(path.removesuffix(".zst"), open_decompressed)


def is_zip(head: bytes) -> bool:
    """Return whether a file is a zip, by its first bytes."""
    return head.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def zip_as_folder(path: str, zip_file: zipfile.ZipFile) -> TranscriptFolder:
    """Return a zip as a folder of its safe members.

    Encrypted members, symbolic links, and members whose name leads out of the zip are left out.

    Args:
        path: The zip's path relative to the root.
        zip_file: The open zip. It must stay open while members are read.

    Raises:
        TooLargeError: It has more than 10,000 members, or they are larger than 8 GiB together.
    """
    infos = zip_file.infolist()
    if len(infos) > MAX_MEMBERS:
        raise TooLargeError(f"{len(infos):,} members, more than the limit of {MAX_MEMBERS:,}")
    if sum(info.file_size for info in infos) > MAX_TOTAL_BYTES:
        raise TooLargeError("its members are larger together than the limit")
    members = {info.filename: info for info in infos if _is_safe(info)}

    def open_member(name: str) -> BinaryIO:
        info = members[name]
        member = cast("BinaryIO", zip_file.open(info))
        return _limited(member, info.compress_size)

    return TranscriptFolder(path, list(members), open_member)


def _is_safe(info: zipfile.ZipInfo) -> bool:
    name = info.filename.replace("\\", "/")
    if not name or info.is_dir():
        return False
    unix_mode = info.external_attr >> 16
    if stat.S_ISLNK(unix_mode) or info.flag_bits & _ENCRYPTED_FLAG:
        return False
    parts = name.split("/")
    has_drive_letter = ":" in parts[0]
    return not (name.startswith("/") or ".." in parts or has_drive_letter)


def _is_json_object(data: bytes) -> bool:
    try:
        return isinstance(json.loads(data), dict)
    except (ValueError, RecursionError):
        return False


def _read_line(stream: BinaryIO) -> tuple[bytes, int]:
    """Read a line, cut at the limit; return it and its full size. At the end: b"" and 0."""
    data = stream.readline(MAX_LINE_BYTES)
    size = len(data)
    if data.endswith(b"\n") or size < MAX_LINE_BYTES:
        return data, size
    # The line is longer than the limit: skip its rest, keep its line end.
    while rest := stream.readline(MAX_LINE_BYTES):
        size += len(rest)
        if rest.endswith(b"\n"):
            return data + b"\n", size
    return data, size


def _skip(stream: BinaryIO, count: int) -> None:
    if count and stream.seekable():
        stream.seek(count)
        return
    while count > 0 and (data := stream.read(min(count, _BUFFER_BYTES))):
        count -= len(data)
