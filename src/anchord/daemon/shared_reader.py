"""The reading handles that all queries of the daemon share, and their replacement under load."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from anchord.daemon.rw_lock import ReadWriteLock
from anchord.errors import StoreError
from anchord.index.profile import reranker_of
from anchord.index.session import IndexReader, IndexWriter
from anchord.index.table_location import store_uri
from anchord.store.catalog.catalog import SqliteCatalog
from anchord.store.catalog.connection_pool import CatalogPool
from anchord.store.table.connection import TableReadError
from anchord.store.table.table import LanceStore

T = TypeVar("T")

_MAX_REPAIR_WAIT_S = 10.0
_MAX_QUERY_WAIT_S = 2.0
"""How long a new generation waits for the queries that run."""


class SharedReader:
    """An index reader for many threads. Each query gets a catalog connection of its own."""

    def __init__(self, writer: IndexWriter, reader: IndexReader) -> None:
        """Take over a reader.

        Args:
            writer: The daemon's writer, which knows the generation that serves.
            reader: Reading handles on the same index; its store is replaced by `reopen`.
        """
        self.current = reader
        """The handles that queries use now. They change: read this once per query."""
        self._writer = writer
        self._catalog_pool = CatalogPool(writer.paths.catalog_file)
        self._lock = ReadWriteLock()

    def query(self, answer: Callable[[IndexReader, SqliteCatalog], T]) -> T:
        """Run a function that reads the index; blocks while a new generation takes over.

        The function is called again if the handles were replaced while it ran and it failed.

        Args:
            answer: Called with the handles, and with a catalog connection of this thread.

        Raises:
            AnchordError: What the function raised.
        """
        reader = self.current
        try:
            return self._query_once(answer)
        except StoreError:
            if reader is self.current:
                raise
        return self._query_once(answer)

    def query_or_repair(
        self,
        answer: Callable[[IndexReader, SqliteCatalog], T],
        request_repair: Callable[[float], Future[None]],
    ) -> T:
        """Run a function as `query` does; if rows cannot be read, have them repaired and repeat.

        Args:
            answer: As for `query`.
            request_repair: Called with the monotonic time before the first try; asks the writer to
                check the table and to repair it.

        Raises:
            StoreError: The index cannot be read, or the repair takes over 10 s.
        """
        began = time.monotonic()
        try:
            return self.query(answer)
        except TableReadError:
            repair = request_repair(began)
            try:
                repair.result(_MAX_REPAIR_WAIT_S)
            except TimeoutError:
                raise StoreError(
                    "the table cannot be read and is about to be repaired",
                    "try again in a minute; `anchord status` shows the state",
                ) from None
        return self.query(answer)

    def reopen(self) -> None:
        """Open the table again, so that queries read the generation that serves now."""
        writer = self._writer
        self.current = dataclasses.replace(
            self.current,
            profile=writer.profile,
            catalog=writer.catalog,
            store=open_table_for_reading(writer),
        )

    def run_alone(self, change: Callable[[], None]) -> None:
        """Call a function while no query runs; queries that come meanwhile wait for it.

        Queries that still run after 2 seconds are not waited for.
        """
        with self._lock.write_lock(_MAX_QUERY_WAIT_S):
            change()

    def close(self) -> None:
        """Close the catalog connections. The reader itself stays open."""
        self._catalog_pool.close()

    def _query_once(self, answer: Callable[[IndexReader, SqliteCatalog], T]) -> T:
        with self._lock.read_lock(), self._catalog_pool.connection() as catalog:
            return answer(self.current, catalog)


def open_daemon_reader(writer: IndexWriter) -> IndexReader:
    """Open reading handles on the writer's index, for the daemon's queries.

    They share everything with the writer but the table, whose handle moves with its commits.

    Raises:
        StoreError: The table cannot be opened.
    """
    return IndexReader(
        paths=writer.paths,
        config=writer.config,
        roots=writer.roots,
        profile=writer.profile,
        catalog=writer.catalog,
        store=open_table_for_reading(writer),
        files=writer.files,
        parser_process=writer.parser_process,
        reranker=reranker_of(writer.config),
    )


def open_table_for_reading(writer: IndexWriter) -> LanceStore:
    """Open the writer's table once more: the writer's own handle moves with each of its commits.

    Raises:
        StoreError: The table cannot be opened.
    """
    return LanceStore(
        store_uri(writer.paths, writer.config), writer.profile.dimension, "", read_only=True
    )
