"""Rows of files that moved, made of the rows that they had at their old paths.

A file with the same bytes, suffix and recipe has the same chunks at another path. So nothing is cut
or counted again: the rows are read, and get the ids, the path and the room of the new path.
Whatever cannot be shown to be the same is chunked as any file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from anchord.core.diff import row_hash
from anchord.core.ids import make_file_key
from anchord.core.moved_ids import PlacedChunk, ids_at_new_path
from anchord.core.ports import Catalog, ChunkStore
from anchord.core.types import ChunkRecord, FileRecord, RootedPath, Row
from anchord.index.recipe import Recipe
from anchord.index.rows import HEADING_SEPARATOR, PreparedRow, prepare_moved_rows
from anchord.sources.conversations.exchange_document import is_exchange_path
from anchord.sources.documents.file_types import kind_of, language_of

_ROWS_AT_ONCE = 4_096
"""So many rows are read ahead, about 10 MB."""


class MovedRows(NamedTuple):
    """What a file that moved has at its new path."""

    prepared: list[PreparedRow]
    """As `rows.prepare_rows` returns them, without the texts to embed."""
    row_with_vector: dict[str, str]
    """Vector key -> id of the row at the old path that has the vector."""


class MovedFiles:
    """Finds the old path of a file among the files that are gone. Reads only; for one thread."""

    def __init__(self, catalog: Catalog, store: ChunkStore, recipe: Recipe) -> None:
        """Expect no files."""
        self._catalog = catalog
        self._store = store
        self._recipe = recipe
        self._gone: Sequence[RootedPath] = ()
        self._sources: dict[str, list[tuple[RootedPath, FileRecord]]] | None = None
        """Content digest -> files with that content that are gone; None until it is needed."""
        self._rows: dict[str, Row] = {}
        self._unread: dict[RootedPath, Sequence[ChunkRecord]] = {}
        """The gone files whose rows have not been read yet, with their chunks."""

    def expect(self, gone: Sequence[RootedPath]) -> None:
        """Forget what was read, and look for the old paths of files among these from now on.

        Args:
            gone: Files whose rows may be removed, in the order in which they are planned.
        """
        self._gone = gone
        self._sources = None
        self._rows = {}
        self._unread = {}

    def prepare_rows(
        self, path: RootedPath, data: bytes, new_record: FileRecord
    ) -> MovedRows | None:
        """Return the rows of a file that was at another path before.

        Args:
            path: The file.
            data: Its bytes.
            new_record: Its record, without its chunks.

        Returns:
            None if none of the files that are gone had these bytes, or its rows are not those that
            the catalog lists, or a row lacks its vector. Then the file is to be chunked.

        Raises:
            StoreError: The table cannot be read.
        """
        if is_exchange_path(path.path) or not self._store.can_lack_vectors:
            return None
        for source, record in self._find_sources().get(new_record.content_digest, ()):
            if _has_same_chunks(source, path, record, new_record):
                return self._move(source, record.chunks, path, data)
        return None

    def _find_sources(self) -> Mapping[str, Sequence[tuple[RootedPath, FileRecord]]]:
        if self._sources is None:
            self._sources = {}
            for file in self._gone:
                record = self._catalog.get_record(file)
                if record and record.chunks and not is_exchange_path(file.path):
                    self._sources.setdefault(record.content_digest, []).append((file, record))
                    self._unread[file] = record.chunks
        return self._sources

    def _move(
        self, source: RootedPath, chunks: Sequence[ChunkRecord], path: RootedPath, data: bytes
    ) -> MovedRows | None:
        rows = self._rows_of(source, chunks)
        if rows is None:
            return None
        placed = [_placed(row, chunk) for row, chunk in zip(rows, chunks, strict=True)]
        old_key, new_key = (make_file_key(file.root, file.path) for file in (source, path))
        ids = ids_at_new_path(placed, old_key, new_key)
        moved = prepare_moved_rows(path, data, self._recipe, rows, ids) if ids else None
        if moved is None:
            return None
        prepared = [
            PreparedRow(row, chunk.start_line, chunk.end_line, "")
            for row, chunk in zip(moved, chunks, strict=True)
        ]
        return MovedRows(prepared, {chunk.vector_key: chunk.chunk_id for chunk in chunks})

    def _rows_of(self, source: RootedPath, chunks: Sequence[ChunkRecord]) -> list[Row] | None:
        """Return the rows of these chunks, None unless all are as the catalog has them."""
        if source in self._unread:
            self._read_ahead(source)
        rows = [self._rows.pop(chunk.chunk_id, None) for chunk in chunks]
        intact = [
            row
            for row, chunk in zip(rows, chunks, strict=True)
            if row and row_hash(row) == chunk.row_hash
        ]
        return intact if len(intact) == len(chunks) else None

    def _read_ahead(self, source: RootedPath) -> None:
        """Read the rows of a file, and of those that are likely to be asked for next."""
        files = [source, *(file for file in self._unread if file != source)]
        ids: list[str] = []
        for file in files:
            chunks = self._unread[file]
            if ids and len(ids) + len(chunks) > _ROWS_AT_ONCE:
                break
            ids += [chunk.chunk_id for chunk in chunks]
            del self._unread[file]
        self._rows.update((row.id, row) for row in self._store.get_embedded_rows(ids))


def _has_same_chunks(
    source: RootedPath, path: RootedPath, record: FileRecord, new_record: FileRecord
) -> bool:
    """Whether a file's content is cut at another path as it was at its old one."""
    old, new = PurePosixPath(source.path), PurePosixPath(path.path)
    return (
        record.is_confirmed
        and record.problem is None
        and record.content_digest == new_record.content_digest
        and record.recipe_digest == new_record.recipe_digest
        and old.suffix.lower() == new.suffix.lower()
        and kind_of(source.path) == kind_of(path.path)
        and language_of(source.path) == language_of(path.path)
    )


def _placed(row: Row, chunk: ChunkRecord) -> PlacedChunk:
    titles = tuple(row.header_path.split(HEADING_SEPARATOR)) if row.header_path else ()
    return PlacedChunk(
        chunk_id=chunk.chunk_id,
        header_path=titles,
        content_hash=row.content_hash,
        start_line=chunk.start_line,
        end_line=chunk.end_line,
    )
