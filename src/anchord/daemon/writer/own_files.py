"""Whether the data folder and the databases are still those that this process opened.

What is written to a deleted file is lost. So when one is gone, nothing is indexed any more and a
new process takes over. The archive of conversations can be the only copy of what was said: it is
saved first, from the file that is still open.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import structlog

from anchord.core.os_errors import os_errors_as_unavailable
from anchord.index.recovery import SQLITE_SUFFIXES, make_damaged_folder
from anchord.index.session import IndexWriter

log = structlog.get_logger()

_SETTLE_S = 0.5


class OwnFiles:
    """The folder and the databases of one writer. All methods run in the writer thread."""

    def __init__(self, writer: IndexWriter) -> None:
        """Look at nothing before `note`.

        Args:
            writer: The opened index.
        """
        self._writer = writer
        self._identities: dict[Path, tuple[int, int]] = {}
        """Device and inode of each database and of its write-ahead log."""
        self.is_unsaved = False
        """Whether the archive was lost and could not be saved: another try costs a copy of it."""
        self._lost_database = ""
        """What was found lost; the archive has been saved then, and must not be saved again."""

    def note(self) -> None:
        """Note which files the opened databases are."""
        self._identities = {}
        for file in self._databases():
            self._is_lost(file)

    def find_problem(self) -> str:
        """Return why a new process must take over; "" if everything is in its place.

        Saves the archive of conversations if its file is gone.

        Raises:
            StoreUnavailableError: The folder cannot be looked at, or the archive cannot be saved
                now; nothing has changed.
        """
        problem = self._find_folder_problem() or self._lost_database
        if problem or not self._find_lost_databases():
            return problem
        # Whoever deletes the whole folder deletes its files first.
        time.sleep(_SETTLE_S)
        if problem := self._find_folder_problem():
            return problem
        lost = self._find_lost_databases()
        if not lost:
            return ""
        if self._writer.paths.archive_file in lost:
            self.is_unsaved = True
            self._save_archive()
            self.is_unsaved = False
        self._lost_database = f"{lost[0]} was deleted or replaced"
        return self._lost_database

    def _find_folder_problem(self) -> str:
        folder = self._writer.paths.data_folder
        try:
            with os_errors_as_unavailable(str(folder)):
                is_same = os.path.samestat(folder.stat(), os.fstat(self._writer.lock.descriptor))
        except OSError:
            return f"the folder {folder} was deleted"
        return "" if is_same else f"the folder {folder} was replaced by another one"

    def _find_lost_databases(self) -> list[Path]:
        return [file for file in self._databases() if self._is_lost(file)]

    def _databases(self) -> tuple[Path, Path]:
        paths = self._writer.paths
        return paths.archive_file, paths.catalog_file

    def _is_lost(self, file: Path) -> bool:
        """Whether a database, or its write-ahead log, is not the file that was noted."""
        for each in (file, file.with_name(f"{file.name}-wal")):
            noted, now = self._identities.get(each), _identify(each)
            if noted is None and now is not None:
                # SQLite creates the log with the first write, and keeps it as long as it is open.
                self._identities[each] = now
            elif noted != now:
                return True
        return False

    def _save_archive(self) -> None:
        """Write what the open archive holds to a new file, in the place of the lost one.

        Another file that was put there meanwhile is set aside.
        """
        archive_file = self._writer.paths.archive_file
        saved = archive_file.with_name(f"{archive_file.name}.saved")
        with os_errors_as_unavailable(str(saved)):
            saved.unlink(missing_ok=True)
            self._writer.archive.copy_to(saved)
            present = [archive_file.with_name(archive_file.name + each) for each in SQLITE_SUFFIXES]
            present = [file for file in present if file.exists()]
            if present:
                folder = make_damaged_folder(self._writer.paths)
                for file in present:
                    file.rename(folder / file.name)
            saved.rename(archive_file)
        log.warning("archive.saved", reason="its file was deleted or replaced")


def _identify(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
