"""Rows that were written without their own vector, because making it takes long.

The vector key of such a row begins with `DUE_MARK`, which sorts after every key: the index of the
vector keys finds these rows. Its vector is null, or a provisional one, that of the chunk which it
replaced: a search by meaning finds it by that. Its checksum covers the texts and the vector as they
are stored.
"""

from __future__ import annotations

from collections.abc import Mapping

from anchord.core.ids import DUE_MARK
from anchord.core.types import Vector
from anchord.store.table.connection import TableConnection
from anchord.store.table.filters import sql_in_conditions
from anchord.store.table.schema import ArrowTable, vectors_to_arrow

IS_DUE = f"vector_key >= '{DUE_MARK}'"
"""The SQL condition of a row that lacks its own vector."""


def arrow_of_new_vectors(
    table: TableConnection, keyed_vectors_by_id: Mapping[str, tuple[str, Vector]]
) -> ArrowTable | None:
    """Return the rows to merge by id so that rows that lack their own vector get it.

    Args:
        table: The table.
        keyed_vectors_by_id: Row id -> (vector key, vector).

    Returns:
        None if no row lacks one of these vectors.

    Raises:
        StoreError: The table cannot be read.
    """
    columns = table.schema.names
    conditions = sql_in_conditions("id", list(keyed_vectors_by_id))
    found = [table.select(f"{condition} AND {IS_DUE}", columns) for condition in conditions]
    if not found:
        return None
    rows = vectors_to_arrow(found, keyed_vectors_by_id, table.schema)
    return rows if rows.num_rows else None
