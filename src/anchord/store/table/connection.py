"""An open LanceDB table: opening, creating, and reading it while maintenance replaces its files.

A reader's handle can refer to files that maintenance has just deleted. A query that fails is
therefore repeated once on a fresh handle.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, TypeVar

import lancedb

from anchord.errors import DimensionMismatchError, NewerStateError, StoreDamagedError, StoreError
from anchord.store.table.arrow_vectors import ArrowBatch, dimensions_of
from anchord.store.table.event_loop import run_sync
from anchord.store.table.lance_errors import LANCE_ERRORS, first_line, raise_if_unavailable
from anchord.store.table.schema import (
    ArrowTable,
    LanceTable,
    create_or_replace_indices,
    table_schema,
    unknown_columns,
)
from anchord.store.table.uri import has_local_table, is_local
from anchord.store.table.vector_columns import Dimensions, dimension_by_tag
from anchord.store.table.versions import (
    MODEL_METADATA_KEY,
    SCHEMA_VERSION,
    SEVERAL_MODELS_VERSION,
    VERSION_METADATA_KEY,
)

T = TypeVar("T")

_SCAN_BATCH_ROWS = 65_536
_WRITER_CACHES = (16 << 20, 16 << 20)
_READER_CACHES = (128 << 20, 32 << 20)
"""Bytes of indices and of metadata that LanceDB keeps in memory.

Its defaults are gigabytes, and each commit would add 0.1 MB.
"""


class TableReadError(StoreError):
    """The table's files cannot be read: some may be lost or damaged."""

    def __init__(self, message: str, hint: str = "", table_name: str = "") -> None:
        """Create an error of the table with this name."""
        super().__init__(message, hint)
        self.table_name = table_name


class TableConnection:
    """One table at a LanceDB uri.

    The writer creates every version, so it looks for newer ones only on request. A reader's
    connection looks before each query.
    """

    def __init__(
        self, uri: str, name: str, dimensions: Dimensions, model: str, *, is_writer: bool
    ) -> None:
        """Open the table; the writer creates it if it is missing.

        Args:
            uri: A LanceDB uri: a folder, or a remote store.
            name: The table's name at the uri.
            dimensions: Numbers in a vector. The writer must name all models of the table, a reader
                only the main one.
            model: The main model, noted in a table that is created.
            is_writer: Whether this process holds the writer lock.

        Raises:
            StoreUnavailableError: The disk is full, there is no permission, and the like.
            StoreDamagedError: The table exists and cannot be read.
            DimensionMismatchError: Its vectors have another dimension, or are of other further
                models.
            NewerStateError: A newer anchord created it.
            StoreError: The uri cannot be reached; for a reader also when there is no table.
        """
        self.name = name
        self.uri = uri
        """The LanceDB uri that the table is in."""
        self._dimensions = dimension_by_tag(dimensions)
        self._is_writer = is_writer
        self._model = model
        has_further = len(self._dimensions) > 1
        self.schema_version = SEVERAL_MODELS_VERSION if has_further else SCHEMA_VERSION
        self._connect()
        self._open_or_create()

    def _open_or_create(self) -> None:
        """Open the table; the writer creates it if it is missing."""
        try:
            if is_local(self.uri):
                exists = has_local_table(self.uri, self.name)
            else:
                exists = self.name in run_sync(self._db.list_tables()).tables
        except LANCE_ERRORS as error:
            raise self._unreachable(error) from error
        if exists:
            self._open()
        elif self._is_writer:
            self._create()
        else:
            message = f"{self.uri}: there is no index yet"
            raise StoreError(message, "run `anchord index` to create it")

    def _unreachable(self, error: Exception) -> StoreError:
        raise_if_unavailable(self.place, error)
        return StoreError(f"{self.uri}: {first_line(error)}", "check the uri under [store]")

    def _connect(self) -> None:
        index_cache, metadata_cache = _WRITER_CACHES if self._is_writer else _READER_CACHES
        self.session = lancedb.Session(index_cache, metadata_cache)
        connection = lancedb.connect_async(
            self.uri,
            # 0: look for a newer version before each query. None: never.
            read_consistency_interval=None if self._is_writer else timedelta(0),
            session=self.session,
        )
        try:
            self._db = run_sync(connection)
        except LANCE_ERRORS as error:
            raise self._unreachable(error) from error

    def _open(self) -> None:
        try:
            handle = run_sync(self._db.open_table(self.name))
            run_sync(handle.count_rows())  # A damaged table can open and fail here.
            schema = run_sync(handle.schema())
        except LANCE_ERRORS as error:
            raise_if_unavailable(self.place, error)
            raise StoreDamagedError(
                f"{self.uri}: {first_line(error)}", "run `anchord index` to rebuild it"
            ) from error
        self.schema_version = int((schema.metadata or {}).get(VERSION_METADATA_KEY.encode(), b"0"))
        if SCHEMA_VERSION < self.schema_version != SEVERAL_MODELS_VERSION:
            raise NewerStateError.for_schema_version(
                f"the table in {self.uri}", self.schema_version
            )
        # Lance reads a manifest that is all NUL, or whose names of columns are damaged, without an
        # error.
        if "vector" not in schema.names or unknown_columns(schema):
            raise StoreDamagedError(
                f"{self.uri}: the newest version has other columns",
                "run `anchord index` to rebuild it",
            )
        found = dimensions_of(schema)
        has_other_models = self._is_writer and found != self._dimensions
        if has_other_models or found[""] != self._dimensions[""]:
            raise DimensionMismatchError(
                f"{self.uri} has vectors of another dimension or of other models than configured",
                "run `anchord index` to rebuild it, or configure the former models again",
            )
        if self._is_writer and self._model and _noted_model(schema) != self._model:
            # The table is a copy of one that another model made, or older than the note.
            note = {"path": "vector", "metadata": {MODEL_METADATA_KEY: self._model}}
            with self._translate_read_errors():
                run_sync(handle.update_field_metadata(note))
        self.handle = handle
        self.schema = schema

    def _create(self) -> None:
        self.schema = table_schema(self._dimensions, self._model)
        try:
            self.handle = run_sync(self._db.create_table(self.name, schema=self.schema))
            run_sync(create_or_replace_indices(self.handle))
        except LANCE_ERRORS as error:
            raise_if_unavailable(self.place, error)
            raise StoreError(
                f"{self.uri}: {first_line(error)}", "check the free space of the disk"
            ) from error

    def reopen(self, *, clear_cache: bool) -> None:
        """Open the newest version, after another process or maintenance changed the table.

        The writer creates a table that is gone.

        Args:
            clear_cache: Also start with empty caches. They hold open the files of index parts that
                a merge replaced and maintenance deleted, so their disk space is not freed. And they
                hide that a file was lost.

        Raises:
            StoreError: A table that is gone cannot be created.
            StoreDamagedError: The table cannot be read.
            DimensionMismatchError: Another table took its place, with vectors of another dimension.
        """
        if clear_cache:
            self._connect()
        self._open_or_create()

    @property
    def place(self) -> str:
        """What a message calls the table."""
        return f"the table in {self.uri}"

    @property
    def dataset_uri(self) -> str:
        """The uri under which pylance opens the table."""
        return f"{self.uri}/{self.name}.lance"

    def run_query(
        self, query: Callable[[LanceTable], Awaitable[T]], *, check_for_newer: bool = True
    ) -> T:
        """Run a query and block until it ends; if it fails, run it again on a fresh handle.

        Args:
            query: Called once or twice with the open table.
            check_for_newer: Whether the writer looks first for a version that another process
                created.

        Raises:
            StoreError: The query failed twice.
        """

        async def run() -> T:
            if check_for_newer:
                await self._check_out_newest()
            return await query(self.handle)

        async def run_on_fresh_handle() -> T:
            self.handle = await self._db.open_table(self.name)
            return await query(self.handle)

        try:
            return run_sync(run())
        except LANCE_ERRORS:
            with self._translate_read_errors():
                return run_sync(run_on_fresh_handle())

    def select(self, condition: str, columns: Sequence[str]) -> ArrowTable:
        """Return some columns of the rows that meet a SQL condition; "" means all rows.

        Raises:
            StoreError: The table cannot be read.
        """

        async def query(table: LanceTable) -> ArrowTable:
            rows = table.query().select(list(columns))
            if condition:
                rows = rows.where(condition)
            return await rows.to_arrow()

        return self.run_query(query)

    def scan(self, columns: Sequence[str]) -> Iterator[ArrowBatch]:
        """Yield some columns of every row as Arrow batches, in no order.

        An empty table yields one batch without rows.

        Raises:
            StoreError: The table cannot be read.
        """
        with self._translate_read_errors():
            batches = run_sync(self._scan(columns))
            while (batch := run_sync(_next_or_none(batches))) is not None:
                yield batch

    async def _scan(self, columns: Sequence[str]) -> Any:  # noqa: ANN401 - lancedb ships no types
        await self._check_out_newest()
        query = self.handle.query().select(list(columns))
        return await query.to_batches(max_batch_length=_SCAN_BATCH_ROWS)

    @contextmanager
    def _translate_read_errors(self) -> Iterator[None]:
        try:
            yield
        except LANCE_ERRORS as error:
            raise_if_unavailable(self.place, error)
            raise TableReadError(
                f"reading rows failed: {first_line(error)}",
                "`anchord index` repairs the table, `anchord status` shows the state",
                self.name,
            ) from error

    async def count_versions(self, table: LanceTable) -> int:
        """Return how many versions the table has.

        Counts the manifest files of a local table: LanceDB would read each of several hundred.
        """
        with suppress(OSError):  # A remote store has no folder.
            names = os.listdir(f"{self.dataset_uri}/_versions")
            return sum(name.endswith(".manifest") for name in names)
        return len(await table.list_versions())

    async def _check_out_newest(self) -> None:
        if self._is_writer:  # A reader's connection looks by itself.
            await self.handle.checkout_latest()


async def _next_or_none(batches: Any) -> Any:  # noqa: ANN401 - likewise
    return await anext(batches, None)


def model_of_table(uri: str, name: str) -> str:
    """Return the id of the model that made a table's vectors; "" if that cannot be read.

    Args:
        uri: The LanceDB uri that the table is in.
        name: The table's name.
    """
    try:
        if is_local(uri) and not has_local_table(uri, name):
            return ""
        connection = run_sync(lancedb.connect_async(uri))
        handle = run_sync(connection.open_table(name))
        return _noted_model(run_sync(handle.schema()))
    except (OSError, *LANCE_ERRORS):
        return ""


def _noted_model(schema: Any) -> str:  # noqa: ANN401 - an Arrow schema
    """Return the model that a table's schema notes: with its vectors, else as it was created."""
    key = MODEL_METADATA_KEY.encode()
    of_vectors = schema.field("vector").metadata or {}
    return str((of_vectors.get(key) or (schema.metadata or {}).get(key, b"")).decode())
