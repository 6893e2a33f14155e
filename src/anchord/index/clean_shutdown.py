"""The catalog's note that the last writer ended in good order, and which files its table had then.

The note counts only while the table's files are the same: one that was lost, restored or changed
while nobody ran makes the next start read the table, as after a crash.
"""

from __future__ import annotations

from pathlib import Path

from anchord.core.ids import hash_fields
from anchord.store.catalog.catalog import SqliteCatalog
from anchord.store.table.damage import FileStamps, list_table_files

_CLEAN_KEY = "clean"
_FILES_KEY = "table files"


def was_clean_shutdown(catalog: SqliteCatalog, table: Path) -> bool:
    """Whether the last writer ended in good order, and the table's files are still the same.

    Args:
        catalog: The catalog.
        table: The table's folder; one that does not exist, as of a remote table, has no files.
    """
    if catalog.get_meta(_CLEAN_KEY) != "1":
        return False
    return catalog.get_meta(_FILES_KEY) == _digest(list_table_files(table))


def record_clean_shutdown(catalog: SqliteCatalog, files: FileStamps) -> None:
    """Note that the writer ends in good order.

    Args:
        catalog: The catalog.
        files: The table's files, which this process has read or written.

    Raises:
        StoreError: The catalog cannot be written.
    """
    catalog.set_meta(_FILES_KEY, _digest(files))
    catalog.set_meta(_CLEAN_KEY, "1")


def record_start(catalog: SqliteCatalog) -> None:
    """Note that a writer is at work: until `record_clean_shutdown`, its end counts as a crash.

    Raises:
        StoreError: The catalog cannot be written.
    """
    catalog.set_meta(_CLEAN_KEY, "0")


def _digest(files: FileStamps) -> str:
    fields: list[str] = []
    for path, (size, time) in sorted(files.items()):
        fields.append(f"{path} {size} {time}")
    return hash_fields(*fields)
