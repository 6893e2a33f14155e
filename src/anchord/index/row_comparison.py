"""Compares the rows of the table with those that the catalog expects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class RowDifferences(NamedTuple):
    """Ids of rows that are not as the catalog says."""

    stray: list[str]
    """In the table alone."""
    duplicate: list[str]
    """Expected, and more than once in the table."""
    wrong: list[str]
    """Expected, and missing, duplicate or with another hash."""


def compare_rows(
    expected_hashes: Mapping[str, str], stored_rows: Sequence[tuple[str, str]]
) -> RowDifferences:
    """Compare rows by their ids and hashes.

    Args:
        expected_hashes: Row id -> hash, of every row that the catalog lists.
        stored_rows: Id and hash of every row of the table. A hash of "" is unknown.
    """
    counts = Counter(row_id for row_id, _ in stored_rows)
    missing = [row_id for row_id in expected_hashes if row_id not in counts]
    stray = [row_id for row_id in counts if row_id not in expected_hashes]
    repeated = [row_id for row_id, count in counts.items() if count > 1]
    duplicate = [row_id for row_id in repeated if row_id in expected_hashes]
    # An id that the catalog lacks is stray, not different.
    different = [
        row_id
        for row_id, stored_hash in stored_rows
        if stored_hash and expected_hashes.get(row_id, stored_hash) != stored_hash
    ]
    return RowDifferences(stray, duplicate, [*missing, *duplicate, *different])
