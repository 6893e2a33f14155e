"""Check that every file of a local table is there, has its full size and can be read.

The manifest of the newest version lists the data files and the files of the search indices with
their sizes. So this costs a few microseconds a file and reads no rows. It does not notice changed
bytes: `damage.repair_table` does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from anchord.core.os_errors import is_unavailable, unavailable_error
from anchord.errors import StoreDamagedError, StoreUnavailableError
from anchord.store.table.lance_errors import raise_if_unavailable
from anchord.store.table.version_files import ManifestError, read_version_files


@dataclass(frozen=True, slots=True)
class FileProblem:
    """A file that is not as the table's newest version needs it."""

    path: str
    """Relative to the table's folder."""
    reason: str
    """What is wrong, to be read after the path."""
    unavailable: StoreUnavailableError | None = field(default=None, compare=False)
    """Why it cannot be read now; None if it is damaged or gone."""


def find_file_problems(table: Path) -> list[FileProblem]:
    """Return the files of the table's newest version that are missing, truncated or unreadable.

    While another process writes, a file can be listed and deleted a moment later. So if there are
    problems, the version that is the newest by then is checked, and only problems that both checks
    found are returned.

    Args:
        table: The table's folder.

    Raises:
        StoreUnavailableError: The newest version cannot be opened for a reason that may pass, such
            as missing permissions.
        StoreDamagedError: It cannot be opened because it is damaged.
    """
    problems = _find_once(table)
    return [problem for problem in _find_once(table) if problem in problems] if problems else []


def _find_once(table: Path) -> list[FileProblem]:
    try:
        files = read_version_files(table)
    except (ManifestError, OSError) as error:
        raise_if_unavailable(f"the table in {table.parent}", error)
        raise StoreDamagedError(
            f"the table in {table.parent} cannot be opened: {error}",
            "`anchord index` repairs it",
        ) from error
    return [problem for path, size in files.items() for problem in _problems(table, path, size)]


def _problems(table: Path, path: str, size: int | None) -> Iterator[FileProblem]:
    """Yield what is wrong with a file; `size` is its size in bytes, None if that is unknown."""
    try:
        with (table / path).open("rb") as file:
            found = os.fstat(file.fileno()).st_size
            file.seek(max(0, found - 1))
            file.read(1)
    except OSError as error:
        yield _problem(path, error)
        return
    if not found or (size and found != size):
        expected = f" of {size:,}" if size else ""
        yield FileProblem(path, f"is cut: it has {found:,}{expected} bytes")


def _problem(path: str, error: OSError) -> FileProblem:
    if isinstance(error, FileNotFoundError):
        return FileProblem(path, "is missing")
    reason = f"cannot be read: {os.strerror(error.errno or 0).lower()}"
    if is_unavailable(error.errno):
        return FileProblem(path, reason, unavailable_error(path, error.errno or 0))
    return FileProblem(path, reason)
