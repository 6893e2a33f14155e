"""Exchanges that the archive has lost are restored from their rows in the table.

Nothing else may have them: an assistant deletes its transcripts. So this comes before rows of
conversations are deleted. The archive loses exchanges to a damaged page, or if an older file, or
that of another home, takes its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from anchord.core.ports import IndexerDependencies
from anchord.core.types import RootedPath, Row
from anchord.index.commit import ROWS_PER_WRITE
from anchord.sources.conversations.exchange_document import is_exchange_path


class LostExchanges:
    """Finds what the archive has lost, and restores it. Only the writer's thread uses it."""

    def __init__(self, dependencies: IndexerDependencies) -> None:
        """Restore from this store to these conversations."""
        self._catalog = dependencies.catalog
        self._store = dependencies.store
        self._conversations = dependencies.conversations
        self._heartbeat = dependencies.heartbeat
        self._roots_with_loss: set[str] = set()

    def note_found(self, exchanges: Iterable[RootedPath]) -> None:
        """Take note of exchanges that a transcript contains."""
        for path in exchanges:
            self._conversations.without_copy.pop(path, None)

    def restore(self, path: RootedPath) -> list[RootedPath]:
        """Restore an exchange if it is lost.

        Args:
            path: An exchange; other files are never lost.

        Returns:
            With the first loss of a root, its files, which must be marked and read again: the
            archive may have lost what they contain, too.
        """
        if not self._conversations.is_lost(path):
            return []
        self._heartbeat(0)
        rows = self.rows_of(path)
        if rows:
            self._conversations.restore(path, rows)
        else:
            self._conversations.without_copy[path] = None
        if path.root in self._roots_with_loss:
            return []
        self._roots_with_loss.add(path.root)
        records = self._catalog.list_records(path.root, "")
        return [RootedPath(path.root, each) for each in records if not is_exchange_path(each)]

    def restore_rows(self, row_ids: Sequence[str]) -> list[RootedPath]:
        """Restore the exchanges that only these rows have.

        Whether the catalog knows the rows does not matter: it may be lost or older, too.

        Returns:
            The exchanges of configured roots, and the files of these roots that are to be read
            again.
        """
        lost = self.find(row_ids)
        files_to_reread = [file for path in lost for file in self.restore(path)]
        # The next start detaches the exchanges of other roots.
        restored = [path for path in lost if self._conversations.has_root(path.root)]
        return [*restored, *files_to_reread]

    def restore_root(self, name: str) -> None:
        """Restore what a root of conversations has lost. Call it before its rows are made anew."""
        for path in self._catalog.list_records(name, ""):
            if is_exchange_path(path):
                self._catalog.mark_for_reread(self.restore(RootedPath(name, path)))
        self._catalog.mark_for_reread(self.restore_rows(self._store.ids_of_root(name)))

    def find(self, row_ids: Sequence[str]) -> list[RootedPath]:
        """Return the exchanges of these rows that the archive has lost."""
        origins: set[RootedPath] = set()
        for start in range(0, len(row_ids), ROWS_PER_WRITE):
            rows = self._store.get_rows(row_ids[start : start + ROWS_PER_WRITE])
            origins.update(RootedPath(row.root, row.path) for row in rows if row.source)
        return [each for each in sorted(origins) if self._conversations.is_lost(each)]

    def rows_of(self, path: RootedPath) -> list[Row]:
        """Return the rows of an exchange in their order."""
        found = self._store.get_rows(self._store.ids_of_file(path))
        # A row can be there twice.
        return sorted({row.id: row for row in found}.values(), key=lambda row: row.part_index)
