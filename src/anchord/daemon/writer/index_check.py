"""Decides when the index is read as a whole and compared with the catalog, and does it.

The daemon says "up to date" only while it knows that the table holds what the catalog lists. It
reads the ids of all rows when it starts after a crash and once a week. It reads and repairs the
whole table when a file of it is lost or changed, or when rows cannot be read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog

from anchord.core.types import RootedPath
from anchord.daemon.writer.own_files import OwnFiles
from anchord.index.archive_recovery import note_archive_state
from anchord.index.clean_shutdown import record_clean_shutdown, record_start
from anchord.index.integrity.table_repair import audit_index, repair_index_table
from anchord.index.session import IndexWriter
from anchord.store.table.damage import FileStamps, find_altered_files, list_table_files

log = structlog.get_logger()

_AUDIT_EVERY_S = 7 * 24 * 3600.0
"""How often all ids of the table are compared with the catalog."""
_MIN_REPEAT_S = 60.0
"""A read of the whole table that found nothing is not repeated sooner for the same error."""


class IndexCheck:
    """The checks of one index. All methods run in the writer thread, between two commits."""

    def __init__(self, writer: IndexWriter) -> None:
        """Prepare; nothing is due before `start`.

        Args:
            writer: The opened index.
        """
        self.is_audit_due = False
        """Whether all ids must be compared before the index counts as up to date."""
        self.is_repair_due = False
        """Whether the whole table must be read: a file was altered, or rows cannot be read."""
        self.began_at = float("-inf")
        """When the last check began, by the monotonic clock."""
        self.on_repair: Callable[[], None] = lambda: None
        """Called after a repair: readers must open the table again."""
        self.own_files = OwnFiles(writer)
        self._writer = writer
        self._table = Path(writer.store.dataset_uri)
        self._files: FileStamps = {}
        self._altered_files: set[str] = set()
        self._fruitless_at = float("-inf")
        """When a read of the whole table last found nothing."""
        self._next_audit = time.monotonic() + _AUDIT_EVERY_S

    def start(self) -> None:
        """Note the table's files, and find out which checks are due.

        Raises:
            StoreError: The catalog or the table cannot be read.
        """
        writer = self._writer
        self.look_for_altered_files()
        self.own_files.note()
        expected_rows = sum(chunks for _, chunks in writer.catalog.counts_by_root().values())
        has_expected_rows = writer.store.count_rows() == expected_rows
        self.is_audit_due = not writer.was_clean_shutdown or not has_expected_rows
        record_start(writer.catalog)

    def record_end(self) -> None:
        """Note a clean shutdown, unless a check is due, a file was altered or the folder is gone.

        Raises:
            StoreError: The archive cannot be read, or the catalog cannot be written.
        """
        if self.own_files.find_problem():
            return
        self.look_for_altered_files()
        note_archive_state(self._writer.archive, self._writer.catalog)
        if not self.is_due:
            record_clean_shutdown(self._writer.catalog, self._files)

    @property
    def is_due(self) -> bool:
        """Whether the index may differ from what the catalog lists."""
        return self.is_audit_due or self.is_repair_due

    def look_for_altered_files(self) -> None:
        """Compare the table's files with its newest version and with what they were.

        Costs about 5 µs a file, and half a millisecond.
        """
        now = list_table_files(self._table)
        self._altered_files |= find_altered_files(self._table, self._files, now)
        self._files = now
        self.is_repair_due = self.is_repair_due or bool(self._altered_files)

    def has_all_files(self) -> bool:
        """Return whether every file of the table is there, as it was; else a repair is due."""
        self.look_for_altered_files()
        return not self.is_repair_due

    def note_new_table(self) -> None:
        """Take the table's files as they are: it was replaced or repaired.

        What was altered before does not count any more. But rows that the former table lacked can
        be missing in this one, too: all ids are compared.
        """
        self._files = list_table_files(self._table)
        self._altered_files.clear()
        self.is_audit_due, self.is_repair_due = True, False

    def request_repair(self) -> None:
        """Ask for a read of the whole table: rows could not be read.

        Ignored if such a read found nothing less than a minute ago and no file was altered since.
        """
        self.look_for_altered_files()
        if time.monotonic() - self._fruitless_at >= _MIN_REPEAT_S:
            self.is_repair_due = True

    def audit_if_due(self, now: float) -> None:
        """Make the weekly audit due if it is time."""
        self.is_audit_due = self.is_audit_due or now >= self._next_audit

    def run(self) -> Sequence[RootedPath]:
        """Repair the table if that is due, and compare all its ids with the catalog.

        Returns:
            The files to index again. They are marked in the catalog.

        Raises:
            StoreError: The table cannot be read or repaired; the check stays due.
        """
        self.began_at = time.monotonic()
        if self.is_repair_due:
            self._repair()
            # Before the comparison: a file that is lost while it runs makes a repair due again.
            self.note_new_table()
        files = audit_index(self._writer)
        self.is_audit_due = False
        self.look_for_altered_files()
        self._next_audit = time.monotonic() + _AUDIT_EVERY_S
        log.info("index.audited", files_to_reread=len(files))
        return files

    def _repair(self) -> None:
        # A second error soon after a read that found nothing: only an index is not read by that.
        is_repeated = not self._altered_files and self._fruitless_at > float("-inf")
        repairs = repair_index_table(
            self._writer,
            self._altered_files,
            rebuild_indices=is_repeated,
        )
        for repair in repairs:
            log.warning("index.repaired", what=repair)
        self._writer.repairs += repairs
        self._fruitless_at = float("-inf") if repairs else time.monotonic()
        if repairs:
            self.on_repair()
