"""The vectors by which changed chunks are found until their own are made."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from anchord.core.ids import model_tag_of
from anchord.core.types import FileUpdate, Vector


def provisional_vectors(
    updates: Sequence[FileUpdate],
    due_keys: Collection[str],
    stored: Mapping[str, tuple[str, Vector]],
) -> dict[str, Vector]:
    """Return due key -> the vector of the row that its row replaces, or b"".

    That vector can be a provisional one itself. One of zeros serves nobody, and one of another
    model would be compared with queries of the wrong one.

    Args:
        updates: The updates of the commit.
        due_keys: The keys whose vectors are not made yet.
        stored: Row id -> (vector key, vector) of rows that leave the table.
    """
    due = dict.fromkeys(due_keys, b"")
    for update in updates if due else ():
        for row in (*update.diff.added, *update.diff.changed):
            key, vector = stored.get(update.predecessors.get(row.id, ""), ("", b""))
            has_same_model = model_tag_of(key) == model_tag_of(row.vector_key)
            if row.vector_key in due and has_same_model and any(vector):
                due[row.vector_key] = vector
    return due
