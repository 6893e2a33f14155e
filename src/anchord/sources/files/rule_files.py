"""Reads ignore files so that they fail closed.

- A file that cannot be read keeps its last good rules. Without any, nothing below its folder is
  indexed (`RuleFile.is_closed`). Most errors, such as one of the disk, may pass: after two seconds
  the file is read again.
- A file that is gone, or that ignores less than before, is believed once its folder, or the file,
  has been quiet for two seconds: an editor may be in the middle of a save. Until then its last good
  rules hold, together with what it newly ignores. After ten seconds it is believed in any case.
"""

from __future__ import annotations

import codecs
import errno
import os
import stat
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from anchord.core.types import Problem
from anchord.sources.files.source_memory import SourceMemory

SETTLE_NS = 2_000_000_000
"""Longer than a save takes, also one that deletes the file and writes it again."""
_MAX_WAIT_NS = 10_000_000_000
_MAX_BYTES = 1_000_000
_LASTING_ERRORS = frozenset(
    (errno.EACCES, errno.EPERM, errno.ELOOP, errno.EISDIR, errno.EINVAL, errno.EFBIG, errno.ENXIO)
)
"""Errors that do not pass by themselves: what the file is, and who may read it."""

OpenFile = Callable[[], AbstractContextManager[int]]
"""Opens a file; raises OSError."""


@dataclass(frozen=True, slots=True)
class RuleFile:
    """What an ignore file says now."""

    layers: tuple[tuple[str, ...], ...] = ()
    """Lists of lines; later ones overrule earlier ones. An empty line keeps the others' numbers."""
    problem: Problem | None = None
    """Why the file cannot be read."""
    is_closed: bool = False
    """Whether its rules are unknown, so that nothing below its folder may be indexed."""
    settles_at_ns: int = 0
    """When the file has to be looked at again, by the wall clock; 0 if it does not change."""


class RuleFiles:
    """Reads ignore files, and remembers the last good content of each."""

    def __init__(self, memory: SourceMemory, clock: Callable[[], int] = time.time_ns) -> None:
        """Read nothing yet.

        Args:
            memory: Where good contents are kept.
            clock: Returns the time in nanoseconds since the epoch.
        """
        self._memory = memory
        self._clock = clock
        self._unsettled_since: dict[str, int] = {}
        self._failing_since: dict[str, int] = {}

    def is_remembered(self, path: str) -> bool:
        """Return whether a file had rules when it was last read."""
        return path in self._memory.rules

    def read(self, path: str, open_file: OpenFile, *, is_outside: bool = False) -> RuleFile:
        """Read an ignore file.

        Args:
            path: Its absolute path.
            open_file: Opens it.
            is_outside: Whether it is above the root or one of git's own. The rules of another one
                are not forgotten when its folder is gone: they wait for the folder.
        """
        known = self._memory.rules.get(path)
        try:
            content, changed_ns = _read(open_file)
        except (FileNotFoundError, NotADirectoryError):
            self._failing_since.pop(path, None)
            return self._absent(path, known, is_outside=is_outside)
        except OSError as error:
            unreadable = _unreadable(known, error)
            if error.errno in _LASTING_ERRORS:
                return unreadable
            now = self._clock()
            settles_at = self._failing_since.setdefault(path, now) + SETTLE_NS
            return replace(unreadable, settles_at_ns=settles_at if settles_at > now else 0)
        self._failing_since.pop(path, None)
        lines = split_lines(content)
        if known is not None and _ignores_less(split_lines(known), lines):
            settles_at = self._settles_at(path, changed_ns)
            if settles_at:
                known_lines = split_lines(known)
                return RuleFile(
                    (known_lines, _only_new(known_lines, lines)), None, False, settles_at
                )
        self._unsettled_since.pop(path, None)
        self._memory.rules[path] = content
        return RuleFile((lines,))

    def _absent(self, path: str, known: bytes | None, *, is_outside: bool) -> RuleFile:
        if known is None:
            return RuleFile()
        if not is_outside and not os.path.isdir(os.path.dirname(path)):
            return RuleFile((split_lines(known),))
        settles_at = self._settles_at(path, _folder_changed_ns(path))
        if settles_at:
            return RuleFile((split_lines(known),), None, False, settles_at)
        del self._memory.rules[path]
        self._unsettled_since.pop(path, None)
        return RuleFile()

    def _settles_at(self, path: str, changed_ns: int) -> int:
        """Return when a change may be believed; 0 if it may be believed now.

        Args:
            path: The ignore file.
            changed_ns: The last change of the file or of its folder, by the file system's clock.
        """
        now = self._clock()
        first_seen = self._unsettled_since.setdefault(path, now)
        settles_at = min(changed_ns + SETTLE_NS, first_seen + _MAX_WAIT_NS)
        return settles_at if settles_at > now else 0


def split_lines(content: bytes) -> tuple[str, ...]:
    """Split an ignore file as git does: at line feeds only.

    Names are bytes to git: they become text as `os.fsdecode` does it for paths.
    """
    text = os.fsdecode(content.removeprefix(codecs.BOM_UTF8))
    before_zeros = [line.partition("\0")[0] for line in text.split("\n")]
    return tuple(line.removesuffix("\r") for line in before_zeros)


def _read(open_file: OpenFile) -> tuple[bytes, int]:
    """Return a file's content, and its last change in nanoseconds.

    Raises:
        OSError: It cannot be read as an ignore file.
    """
    with open_file() as descriptor:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        if status.st_size > _MAX_BYTES:
            raise OSError(errno.EFBIG, f"it is larger than {_MAX_BYTES:,} bytes")
        content = _read_whole(descriptor)
        status = os.fstat(descriptor)
    if b"\0" in content:
        raise OSError(errno.EINVAL, "it is not UTF-8 text")
    return content, max(status.st_ctime_ns, status.st_mtime_ns)


def _read_whole(descriptor: int) -> bytes:
    blocks = []
    size = 0
    while block := os.read(descriptor, _MAX_BYTES + 1 - size):
        blocks.append(block)
        size += len(block)
        if size > _MAX_BYTES:
            raise OSError(errno.EFBIG, f"it is larger than {_MAX_BYTES:,} bytes")
    return b"".join(blocks)


def _unreadable(known: bytes | None, error: OSError) -> RuleFile:
    reason = error.strerror or str(error)
    if error.errno == errno.ELOOP:
        reason = "it is a symbolic link"
    elif error.errno in (errno.EACCES, errno.EIO, errno.EISDIR):
        reason = os.strerror(error.errno).lower()
    remedy = "make it a readable file, or delete it"
    if known is not None:
        message = f"cannot be read ({reason}): its last good rules stay in force; {remedy}"
        return RuleFile((split_lines(known),), Problem(message, is_partial=True))
    message = (
        f"cannot be read ({reason}): nothing in its folder is indexed until it can be; {remedy}"
    )
    return RuleFile(problem=Problem(message), is_closed=True)


def _folder_changed_ns(path: str) -> int:
    """Return the last change of the folder that a file is in, or of the next one above it."""
    folder = os.path.dirname(path)
    try:
        return os.stat(folder).st_ctime_ns
    except OSError:
        return _folder_changed_ns(folder) if folder not in ("", "/") else 0


def _is_pattern(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


def _ignores_less(known: tuple[str, ...], new: tuple[str, ...]) -> bool:
    """Return whether new lines may include what the known ones ignore."""
    if known == new:
        return False
    known_patterns = [line for line in known if _is_pattern(line)]
    new_patterns = [line for line in new if _is_pattern(line)]
    if not any(line.startswith("!") for line in new_patterns):
        ignoring = {line for line in known_patterns if not line.startswith("!")}
        return not ignoring <= set(new_patterns)
    # With exceptions the order counts: then nothing but added patterns ignores no less.
    known_set = set(known_patterns)
    kept = [line for line in new_patterns if line in known_set]
    added = [line for line in new_patterns if line not in known_set]
    return kept != known_patterns or any(line.startswith("!") for line in added)


def _only_new(known: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    """Return the new lines that ignore more; the others are empty."""
    return tuple("" if line in known or line.startswith("!") else line for line in new)
