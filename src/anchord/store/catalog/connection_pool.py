"""Read-only connections to the catalog, reused so that their page cache stays warm."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from anchord.store.catalog.catalog import SqliteCatalog

_FileIdentity = tuple[int, int]
"""Device and inode."""


class CatalogPool:
    """Lends one connection to each concurrent query. Thread-safe."""

    def __init__(self, file: Path) -> None:
        """Use this `state.sqlite`; nothing is opened yet."""
        self._file = file
        self._idle: list[tuple[_FileIdentity, SqliteCatalog]] = []
        self._closed = False

    @contextmanager
    def connection(self) -> Iterator[SqliteCatalog]:
        """Lend a read-only connection for a block; one on which the block raised is closed.

        Raises:
            StoreError: There is no catalog, or it cannot be read.
        """
        identity = self._file_identity()
        catalog = self._take_idle(identity) or SqliteCatalog(self._file, read_only=True)
        try:
            yield catalog
        except BaseException:
            catalog.close()
            raise
        if identity is None or self._closed:
            catalog.close()
        else:
            self._idle.append((identity, catalog))

    def close(self) -> None:
        """Close the idle connections, and those still lent out when they come back."""
        self._closed = True
        self._take_idle(None)  # No idle connection has this identity, so all of them are closed.

    def _take_idle(self, identity: _FileIdentity | None) -> SqliteCatalog | None:
        """Return an idle connection to the present file; close those to a file it has replaced."""
        with suppress(IndexError):  # The list is empty, or another thread emptied it.
            while True:
                identity_then, catalog = self._idle.pop()
                if identity_then == identity:
                    return catalog
                catalog.close()
        return None

    def _file_identity(self) -> _FileIdentity | None:
        try:
            status = os.stat(self._file)
        except OSError:
            return None
        return status.st_dev, status.st_ino
