"""One table of LanceDB, open: how it is opened, made, and read even while its files are replaced.

A reader's handle can point at files that upkeep has just removed: it is opened anew, and asked once more.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, TypeVar

import lancedb

from anchord.adapters.lance_fold import TROUBLE, words
from anchord.adapters.lance_schema import SCHEMA, create_indices, schema
from anchord.adapters.waited import waited
from anchord.errors import NewerStateError, OtherFormError, StoreDamagedError, StoreError

T = TypeVar("T")

_SCAN_ROWS = 65_536
_WRITER_CACHES = (16 << 20, 16 << 20)
_READER_CACHES = (128 << 20, 32 << 20)
"""Bytes of indices and of metadata kept in memory. By default gigabytes are, and each commit adds a tenth of a megabyte."""


class OpenTable:
    """A table at a LanceDB uri. The writer makes its versions: between its own commits it need not look for newer ones."""

    def __init__(self, uri: str, name: str, dimension: int, model: str, *, writes: bool) -> None:
        """Open the table; the writer makes it, for vectors of a model, when it is missing.

        Raises:
            StoreDamagedError: it is there and cannot be read. OtherFormError: its vectors are of another size.
                NewerStateError: a newer anchord made it. StoreError: (to read) it is not there.
        """
        self.name = name
        self._uri = uri
        self._dimension = dimension
        self._writes = writes
        try:
            self._connect()
            there = name in waited(self._db.list_tables()).tables
        except TROUBLE as error:
            raise StoreError(f"{uri}: {words(error)}", "see the uri under [store]") from error
        if not there and not writes:
            raise StoreError(f"{uri}: there is no index yet", "run `anchord index` to make it")
        self.form = SCHEMA
        if there:
            self._open()
        else:
            self._make(model)

    def _connect(self) -> None:
        self.session = lancedb.Session(*(_WRITER_CACHES if self._writes else _READER_CACHES))
        consistency = None if self._writes else timedelta(0)
        self._db = waited(lancedb.connect_async(self._uri, read_consistency_interval=consistency, session=self.session))

    def _open(self) -> None:
        try:
            table = waited(self._db.open_table(self.name))
            waited(table.count_rows())
            form = waited(table.schema())
        except TROUBLE as error:
            raise StoreDamagedError(f"{self._uri}: {words(error)}", "`anchord index` makes it anew") from error
        self.form = int((form.metadata or {}).get(b"anchord.schema", b"0"))
        if self.form > SCHEMA:
            raise NewerStateError.of(f"the table in {self._uri}", self.form)
        if form.field("vector").type.list_size != self._dimension:
            raise OtherFormError(f"{self._uri} holds vectors of another size", "`anchord index` makes them anew")
        self.handle, self.schema = table, form

    def _make(self, model: str) -> None:
        self.schema = schema(self._dimension, model)
        try:
            self.handle = waited(self._db.create_table(self.name, schema=self.schema))
            waited(create_indices(self.handle))
        except TROUBLE as error:
            raise StoreError(f"{self._uri}: {words(error)}", "see the free space of the disk") from error

    def reopen(self, *, anew: bool) -> None:
        """See what was changed by other means; `anew`: without what was kept in memory.

        That holds files of an index open which a merge replaced and upkeep deleted.
        """
        if anew:
            self._connect()
        self._open()

    @property
    def dataset(self) -> str:
        """Where upkeep finds the table."""
        return f"{self._uri}/{self.name}.lance"

    def read(self, ask: Callable[[Any], Awaitable[T]], *, newest: bool = True) -> T:
        """Ask the table; `newest`: look first whether other means made a newer version.

        Raises:
            StoreError: it cannot be read.
        """

        async def asked() -> T:
            if newest:
                await self._look_for_newer()
            return await ask(self.handle)

        async def asked_anew() -> T:
            self.handle = await self._db.open_table(self.name)
            return await ask(self.handle)

        try:
            return waited(asked())
        except TROUBLE:
            with _reading():
                return waited(asked_anew())

    def select(self, where: str, columns: Sequence[str]) -> Any:  # noqa: ANN401 - lancedb ships no types
        """Return some columns of the rows that meet a condition, "" for all, as Arrow's table."""

        async def ask(table: Any) -> Any:  # noqa: ANN401 - likewise
            query = table.query().select(list(columns))
            return await (query.where(where) if where else query).to_arrow()

        return self.read(ask)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield every row as Arrow's batches, in no order; of an empty table one without rows."""
        with _reading():
            batches = waited(self._scan(columns))
            while (batch := waited(_next(batches))) is not None:
                yield batch

    async def versions(self, table: Any) -> int:  # noqa: ANN401 - likewise
        """Count the versions by their manifests: to read each of some hundred takes longer than all the rest."""
        with suppress(OSError):
            return sum(name.endswith(".manifest") for name in os.listdir(f"{self.dataset}/_versions"))
        return len(await table.list_versions())

    async def _scan(self, columns: Sequence[str]) -> Any:  # noqa: ANN401 - likewise
        await self._look_for_newer()
        return await self.handle.query().select(list(columns)).to_batches(max_batch_length=_SCAN_ROWS)

    async def _look_for_newer(self) -> None:
        if self._writes:  # A reader's connection does it by itself.
            await self.handle.checkout_latest()


async def _next(batches: Any) -> Any:  # noqa: ANN401 - likewise
    return await anext(batches, None)


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except TROUBLE as error:
        raise StoreError(f"reading rows failed: {words(error)}", "run `anchord verify --repair`") from error
