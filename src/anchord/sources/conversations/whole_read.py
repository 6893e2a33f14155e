"""Reads a whole transcript file: what it is, and every exchange in it, in one pass.

Zips, databases and exports of other programs are read so. It needs nothing but the file, so that it
can run in a child process (`reader_process`).
"""

from __future__ import annotations

import functools
import os
import sys
import zipfile
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import BinaryIO

from anchord.core.ids import hash_content
from anchord.core.types import Fingerprint
from anchord.sources.conversations.containers import (
    SingleTranscriptFile,
    TranscriptFolder,
    is_zip,
    make_transcript_file,
    zip_as_folder,
)
from anchord.sources.conversations.events import TranscriptFile
from anchord.sources.conversations.exchanges import ExchangeStreamItem, build_exchanges
from anchord.sources.conversations.formats.registry import (
    FORMATS,
    HEAD_BYTES,
    TranscriptFormat,
    detect_folder_format,
    detect_format,
    read_events,
)
from anchord.sources.files.safe_open import open_stream

SQLITE_MAGIC = b"SQLite format 3\0"
_DIGEST_BYTES = 1 << 16

Transcript = tuple[TranscriptFormat, TranscriptFile]
"""A transcript and the format that reads it. A zip can hold several."""
ReadItem = TranscriptFormat | ExchangeStreamItem
"""A format begins a transcript; the items after it are of that transcript."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """A transcript file to read."""

    root_path: str
    """Absolute path of the root's folder."""
    path: str
    """Path relative to it, with "/", as the index knows the file: without secrets."""
    disk_path: str = ""
    """Path relative to it, by which the file is opened; "" if it is `path`."""
    member_names: tuple[str, ...] = ()
    """For a folder that is one transcript: the paths of its files relative to it."""
    recorded_source: str = ""
    """The format of a folder. For a file, the one that it had at the last read; "" if unknown."""
    size: int
    """Size in bytes; 0 if unknown. Of a file of lines, no line is read that begins beyond it."""
    resume_offset: int = 0
    """For a file of lines: where to begin, the byte offset of an exchange; 0 reads all."""
    resume_number: int = 0
    """The number of that exchange in its session."""

    def open(self, member_name: str = "") -> BinaryIO:
        """Open the file, or a file of the folder.

        Raises:
            OSError: It cannot be opened.
        """
        path = self.disk_path or self.path
        return open_stream(self.root_path, f"{path}/{member_name}" if member_name else path)


WholeReader = Callable[[ReadRequest], Generator[ReadItem]]
"""Yields nothing if the file is no transcript. Raises OSError, ValueError and others."""


def read_whole(request: ReadRequest) -> Generator[ReadItem]:
    """Yield each transcript's format and then its items; nothing if the file is no transcript.

    Raises:
        OSError, ValueError, MemoryError, RecursionError, and others: The file is broken.
    """
    if request.member_names:
        yield from _read_folder(request)
        return
    with request.open() as stream:
        head = stream.read(HEAD_BYTES)
        if is_zip(head):
            with zipfile.ZipFile(stream) as archive:
                yield from _read_zip(zip_as_folder(request.path, archive))
            return
    absolute_path = f"{request.root_path}/{request.disk_path or request.path}"
    transcript_file = make_transcript_file(
        request.path, request.open, absolute_path, end_offset=request.size or sys.maxsize
    )
    with closing(transcript_file):
        if head.startswith(SQLITE_MAGIC):
            # Tables that were created last are in the write-ahead log alone, not in the head.
            tables = transcript_file.query("SELECT sql FROM sqlite_master")
            head += "\n".join(str(sql) for (sql,) in tables).encode("utf-8", "replace")
        elif transcript_file.path != request.path:
            with transcript_file.open() as decompressed:
                head = decompressed.read(HEAD_BYTES)
        transcript_format = detect_format(head, transcript_file.path)
        transcript_format = transcript_format or format_of_source(request.recorded_source)
        if transcript_format:
            yield transcript_format
            events = read_events(transcript_format, transcript_file, request.resume_offset)
            yield from build_exchanges(events, request.resume_number)


def read_transcript(
    transcript_format: TranscriptFormat, transcript_file: TranscriptFile
) -> Iterator[ReadItem]:
    """Yield the format and all items of one transcript."""
    yield transcript_format
    yield from build_exchanges(read_events(transcript_format, transcript_file))


def format_of_source(source: str) -> TranscriptFormat | None:
    """Return the format of a program's name as the archive stores it; None for another name."""
    return next((each for each in FORMATS if each.source == source), None)


def digest_of_read(request: ReadRequest, fingerprint: Fingerprint) -> str:
    """Return a digest of a file's beginning, end, size and times: its content in small files.

    Databases of gigabytes are read often, and their change counter is at their beginning.
    """
    edges = b"".join(_edges(request)) if not request.member_names else b""
    times = () if fingerprint.size <= 2 * _DIGEST_BYTES else (fingerprint.mtime_ns,)
    return hash_content(repr((fingerprint.size, times, request.member_names)).encode() + edges)


def _edges(request: ReadRequest) -> Iterable[bytes]:
    with request.open() as stream:
        yield stream.read(_DIGEST_BYTES)
        read_so_far = stream.tell()
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(read_so_far, size - _DIGEST_BYTES))
        yield stream.read(_DIGEST_BYTES)


def _read_folder(request: ReadRequest) -> Iterator[ReadItem]:
    folder = TranscriptFolder(request.path, request.member_names, request.open)
    transcript_format = format_of_source(request.recorded_source)
    if transcript_format:
        yield from read_transcript(transcript_format, folder)


def _read_zip(folder: TranscriptFolder) -> Iterator[ReadItem]:
    """Yield the transcript that a zip is, or those among its members."""
    transcript_format = detect_folder_format(folder.member_names())
    if transcript_format:
        yield from read_transcript(transcript_format, folder)
        return
    for each_format, member in _transcripts_in(folder):
        yield from read_transcript(each_format, member)


def _transcripts_in(folder: TranscriptFolder) -> Iterator[Transcript]:
    """Yield the members of a zip that are transcripts by themselves."""
    for name in folder.member_names():
        path = f"{folder.path}!{name}"
        with closing(folder.open_member(name)) as stream:
            transcript_format = detect_format(stream.read(HEAD_BYTES), path)
        if transcript_format is not None:
            opener = functools.partial(folder.open_member, name)
            yield transcript_format, SingleTranscriptFile(path, opener)


def folder_fingerprint(listed: Sequence[tuple[str, Fingerprint]]) -> Fingerprint:
    """Combine the fingerprints of a folder's files into one: any changed file changes it."""
    digest = hash_content(repr(listed).encode())
    return Fingerprint(
        size=sum(file.size for _, file in listed),
        mtime_ns=max(file.mtime_ns for _, file in listed),
        ctime_ns=max(file.ctime_ns for _, file in listed),
        inode=int(digest[:12], 16),
        device=0,
    )
