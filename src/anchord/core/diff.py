"""Known chunks + wanted rows -> what must be written. Ours to get right: everything else serves this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anchord.core.identity import fields_digest
from anchord.model import Diff, Placed, Row


def row_hash(row: Row) -> str:
    """Hash everything of a row that can differ under one id."""
    return fields_digest(
        row.path, row.root, row.kind, row.room, row.header_path, row.vector_key, row.text, row.search_text,
        row.source, row.session, row.exchange_id, row.at, row.until, row.project, row.model, row.tools, row.files, row.branch,
        str(row.part_index), str(row.total_parts),
    )  # fmt: skip


def diff(known: Sequence[Placed], rows: Sequence[Row], placed: Sequence[Placed]) -> Diff:
    """Compare by id; `rows` and `placed` are the same wanted chunks in the same order."""
    before: Mapping[str, Placed] = {chunk.chunk_id: chunk for chunk in known}
    wanted = {chunk.chunk_id for chunk in placed}
    added, changed = [], []
    shifted = kept = 0
    for row, new in zip(rows, placed, strict=True):
        old = before.get(new.chunk_id)
        if old is None:
            added.append(row)
        elif old.row_hash != new.row_hash:
            changed.append(row)
        elif (old.start_line, old.end_line) != (new.start_line, new.end_line):
            shifted += 1
        else:
            kept += 1
    removed = tuple(chunk_id for chunk_id in before if chunk_id not in wanted)
    return Diff(tuple(added), tuple(changed), removed, shifted, kept)
