"""The difference between the chunks that a file had and those that it has now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anchord.core.ids import hash_fields
from anchord.core.types import ChunkDiff, ChunkRecord, Row


def row_hash(row: Row) -> str:
    """Hash every column of a row that can change while its id stays.

    The hash is stored in the catalog and in the table. Its fields and their order are fixed.
    """
    return hash_fields(
        row.path,
        row.root,
        row.kind,
        row.room,
        row.header_path,
        row.vector_key,
        row.text,
        row.search_text,
        row.source,
        row.session,
        row.exchange_id,
        row.at,
        row.until,
        row.project,
        row.model,
        row.tools,
        row.files,
        row.branch,
        str(row.part_index),
        str(row.total_parts),
        row.chunk_type,
        row.language,
        str(row.level),
        str(row.token_count),
    )


def diff_chunks(
    known_chunks: Sequence[ChunkRecord],
    wanted_rows: Sequence[Row],
    wanted_chunks: Sequence[ChunkRecord],
) -> ChunkDiff:
    """Compare the chunks in the table with those that should be there, by id.

    Args:
        known_chunks: What the table holds of the file, in any order.
        wanted_rows: Rows that the table should hold of the file.
        wanted_chunks: The records of `wanted_rows`, in the same order.

    Returns:
        Rows to write and ids to delete. A chunk that only moved to other lines causes neither:
        its lines are stored in the catalog, not in the table.
    """
    known_by_id: Mapping[str, ChunkRecord] = {chunk.chunk_id: chunk for chunk in known_chunks}
    wanted_ids = {chunk.chunk_id for chunk in wanted_chunks}
    added: list[Row] = []
    changed: list[Row] = []
    shifted = kept = 0
    for row, wanted in zip(wanted_rows, wanted_chunks, strict=True):
        known = known_by_id.get(wanted.chunk_id)
        if known is None:
            added.append(row)
        elif known.row_hash != wanted.row_hash:
            changed.append(row)
        elif (known.start_line, known.end_line) != (wanted.start_line, wanted.end_line):
            shifted += 1
        else:
            kept += 1
    removed = [chunk_id for chunk_id in known_by_id if chunk_id not in wanted_ids]
    return ChunkDiff(
        added=tuple(added),
        changed=tuple(changed),
        removed=tuple(removed),
        shifted=shifted,
        kept=kept,
    )
