"""Everything that a backup copies, fixed at one moment.

The archive, the catalog and the table refer to each other, so a backup has them as they were
between two commits of the writer. Pinning takes milliseconds and is all that the writer waits for;
copying needs no lock.

Left out: the vector cache, exported models and a generation that is being built, since all three
are computed again when they are needed; locks, markers and temporary files.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from anchord.errors import StoreError
from anchord.store.backup.databases import pin_database
from anchord.store.table.pinned_files import pin_table, unpin_table

DATA_NAME = "data"
CONFIG_NAME = "config.toml"
DAMAGED_NAME = "damaged"
TABLE_NAME = "data/lance/chunks.lance"
"""Where the table is in a snapshot, wherever it is in the home."""
LAST_BACKUP_NAME = "backup.json"
_SKIPPED_NAMES = frozenset(
    {
        "anchord.lock",
        "promoting",
        "parsing",
        "next.sqlite",
        "vectors.sqlite",
        "mcp-token",  # A secret, and a new one is made where it is missing.
        LAST_BACKUP_NAME,
    }
)
_SKIPPED_SUFFIXES = frozenset({".tmp", ".sqlite-wal", ".sqlite-shm", ".sqlite-journal"})
_SKIPPED_ENDS = ("-damaged", "-salvaging")
"""Notes that a database must be repaired, and unfinished repairs: no concern of a restored home."""
_DATABASE_SUFFIX = ".sqlite"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupSources:
    """Where the files of a home are."""

    config_file: Path
    data_folder: Path
    promotion_marker: Path
    """Exists while a new generation takes over, or after a crash in that moment."""
    tables_folder: Path | None
    """The folder that holds the table; None if the table is not on this machine."""
    remote_table: str = ""
    """The uri of a table that is not on this machine."""
    home: Path | None = None
    """What the manifest names as the origin; None means `data_folder`."""


@dataclass(slots=True, kw_only=True)
class PinnedHome:
    """What a backup copies. `close` it afterwards."""

    sources: BackupSources
    databases: dict[str, sqlite3.Connection] = field(default_factory=dict)
    """Path in the snapshot -> connection in a read transaction."""
    small_files: dict[str, bytes] = field(default_factory=dict)
    """Path in the snapshot -> content."""
    table: Path | None = None
    """A folder of hard links to the table's files."""

    def close(self) -> None:
        """End the read transactions, and delete the hard links."""
        for connection in self.databases.values():
            connection.close()
        if self.sources.tables_folder:
            unpin_table(self.sources.tables_folder)


def pin_home(sources: BackupSources) -> PinnedHome:
    """Fix the present state of a home. Only for the holder of the writer lock, between two commits.

    Raises:
        StoreDamagedError: A database is corrupt.
        StoreError: There is no index, a database cannot be read, or a crash left a new generation
            half in place.
        OSError: A file cannot be read or linked.
    """
    if sources.promotion_marker.exists():
        raise StoreError(
            "anchord was killed while it replaced the index by a new one",
            "`anchord index` finishes the replacement; then back up again",
        )
    pinned = PinnedHome(sources=sources)
    try:
        for file in sorted(sources.data_folder.iterdir()):
            _pin_file(pinned, file)
        with suppress(FileNotFoundError):
            pinned.small_files[CONFIG_NAME] = sources.config_file.read_bytes()
        if sources.tables_folder:
            pinned.table = pin_table(sources.tables_folder)
    except BaseException:
        pinned.close()
        raise
    if not pinned.databases:
        raise StoreError("there is no index yet", "`anchord index FOLDER` builds one")
    return pinned


def _pin_file(pinned: PinnedHome, file: Path) -> None:
    is_skipped = file.name in _SKIPPED_NAMES or file.suffix in _SKIPPED_SUFFIXES
    if is_skipped or file.name.endswith(_SKIPPED_ENDS) or file.is_symlink() or not file.is_file():
        return
    path = f"{DATA_NAME}/{file.name}"
    if file.suffix == _DATABASE_SUFFIX:
        pinned.databases[path] = pin_database(file)
    else:
        pinned.small_files[path] = file.read_bytes()
