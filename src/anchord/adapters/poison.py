"""Contents that ended the process while they were parsed: a crash in a grammar, all of the memory, a step that never ended.

What is being parsed is noted in a file before, and taken back after: a few microseconds. It is not synced, for the system keeps
it whatever becomes of the process. Who opens the index next finds the note and counts it; what was there twice is left alone.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from anchord import __version__

_MOST = 2
_BYTES = 64
_NOTHING = bytes(_BYTES)


class _Strikes(msgspec.Struct):
    """How often a content was being parsed when its process ended. Another version of anchord may do better."""

    version: str = __version__
    counts: dict[str, int] = msgspec.field(default_factory=dict)


class PoisonFile:
    """For one writer; readers beside it (`read_only`) note nothing."""

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        """Read what was noted; a writer counts what its predecessor was doing when it ended."""
        self._file = folder / "poison.json"
        self._strikes = _read(self._file)
        self._now = ""
        self._place = folder / "parsing"
        self._note = -1
        self._notes = not read_only
        left = _left(self._place) if self._notes else ""
        if left:
            self._strikes.counts[left] = self._strikes.counts.get(left, 0) + 1
            self._save()
            self._write(_NOTHING)

    def enter(self, content: str) -> bool:
        """Begin to parse a content, by its digest; False when that must not be."""
        if self._strikes.counts.get(content, 0) >= _MOST:
            return False
        self._now = content
        self._write(content.encode("ascii")[:_BYTES].ljust(_BYTES, b"\0"))
        return True

    def leave(self) -> None:
        """End it: nothing happened."""
        self._write(_NOTHING)
        if self._notes and self._strikes.counts.pop(self._now, 0):
            self._save()

    def close(self) -> None:
        """Close the file."""
        if self._note >= 0:
            os.close(self._note)
            self._note = -1

    def _write(self, note: bytes) -> None:
        """Write the note; the file is made when it is first needed, for an index that is not opened must stay as it is."""
        if not self._notes:
            return
        if self._note < 0:
            self._note = os.open(self._place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        os.pwrite(self._note, note, 0)

    def _save(self) -> None:
        fresh = self._file.with_name(self._file.name + ".tmp")
        fresh.write_bytes(msgspec.json.encode(self._strikes))
        fresh.replace(self._file)


def _left(file: Path) -> str:
    try:
        return file.read_bytes()[:_BYTES].strip(b"\0").decode("ascii", "replace")
    except OSError:
        return ""


def _read(file: Path) -> _Strikes:
    try:
        found = msgspec.json.decode(file.read_bytes(), type=_Strikes)
    except (OSError, ValueError):  # It is only a help: begun anew, it costs two more crashes.
        return _Strikes()
    return found if found.version == __version__ else _Strikes()
