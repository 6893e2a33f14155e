"""Quarantine for contents whose parsing ended the process: a crash, out of memory, a hang.

The digest of a content is written to a file before it is parsed and erased after, which takes a few
microseconds. The file is not flushed: the system keeps it whatever becomes of the process. The next
process that opens the index finds the digest and counts a crash. After two crashes the content is
not parsed again, until another version of anchord runs.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from anchord._version import __version__
from anchord.core.regular_files import read_regular_file

_MAX_CRASHES = 2
_NOTE_BYTES = 64
_EMPTY_NOTE = bytes(_NOTE_BYTES)


class _CrashCounts(msgspec.Struct):
    """The content of `poison.json`."""

    version: str = __version__
    """Which anchord crashed. The counts of another version are ignored: it may not crash."""
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    """Content digest -> crashes while it was parsed."""


class CrashJournal:
    """The journal of one writer. Read-only ones, beside it, refuse quarantined contents too."""

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        """Read the crash counts; a writer adds the crash of its predecessor, if it had one.

        Args:
            folder: Where the journal's files are.
            read_only: Never write; needed where another process may be the writer.

        Raises:
            OSError: A crash was found, and cannot be written down.
        """
        self._counts_file = folder / "poison.json"
        self._crashes = _read_counts(self._counts_file)
        self._parsing = ""
        self._note_file = folder / "parsing"
        self._note = -1
        """Descriptor of the note file; -1 until it is needed."""
        self._is_writer = not read_only
        interrupted = _read_note(self._note_file) if self._is_writer else ""
        if interrupted:
            self._crashes.counts[interrupted] = self._crashes.counts.get(interrupted, 0) + 1
            self._save_counts()
            self._write_note(_EMPTY_NOTE)

    def begin_parse_unless_quarantined(self, content_digest: str) -> bool:
        """Write down that a content is about to be parsed, unless it is in quarantine.

        Args:
            content_digest: Up to 64 ASCII characters.

        Returns:
            False if parsing it ended the process twice: do not parse it. Otherwise True; call
            `end_parse` after it was parsed.

        Raises:
            OSError: The note cannot be written.
        """
        if self.is_quarantined(content_digest):
            return False
        self._parsing = content_digest
        self._write_note(content_digest.encode("ascii")[:_NOTE_BYTES].ljust(_NOTE_BYTES, b"\0"))
        return True

    def is_quarantined(self, content_digest: str) -> bool:
        """Return whether a content ended a process twice."""
        return self._crashes.counts.get(content_digest, 0) >= _MAX_CRASHES

    def count_crash(self, content_digest: str) -> None:
        """Record that a content ended a child process.

        Raises:
            OSError: The counts cannot be written.
        """
        counts = self._crashes.counts
        counts[content_digest] = counts.get(content_digest, 0) + 1
        if self._is_writer:
            self._save_counts()

    def end_parse(self) -> None:
        """Erase the note, and the content's crashes: it was parsed.

        Raises:
            OSError: The note or the counts cannot be written.
        """
        self._write_note(_EMPTY_NOTE)
        if self._is_writer and self._crashes.counts.pop(self._parsing, 0):
            self._save_counts()

    def close(self) -> None:
        """Close the note file."""
        if self._note >= 0:
            os.close(self._note)
            self._note = -1

    def _write_note(self, note: bytes) -> None:
        if not self._is_writer:
            return
        if self._note < 0:
            # Created on the first write, because a home that is refused must stay as it is.
            if self._note_file.is_fifo():  # Nothing can be written at a position of one.
                self._note_file.unlink()
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._note = os.open(self._note_file, flags, 0o600)
        os.pwrite(self._note, note, 0)

    def _save_counts(self) -> None:
        temporary = self._counts_file.with_name(self._counts_file.name + ".tmp")
        temporary.write_bytes(msgspec.json.encode(self._crashes))
        temporary.replace(self._counts_file)


def _read_note(file: Path) -> str:
    """Return the digest of the content that was being parsed; "" if there is none."""
    try:
        note = read_regular_file(file)[:_NOTE_BYTES]
    except OSError:
        return ""
    return note.strip(b"\0").decode("ascii", "replace")


def _read_counts(file: Path) -> _CrashCounts:
    try:
        counts = msgspec.json.decode(read_regular_file(file), type=_CrashCounts)
    except (OSError, ValueError):  # Missing or damaged: an empty journal costs two more crashes.
        return _CrashCounts()
    return counts if counts.version == __version__ else _CrashCounts()
