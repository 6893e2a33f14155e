"""Checking a snapshot: every byte against the manifest, every database, the table."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from anchord.errors import NewerStateError, StoreDamagedError
from anchord.store.backup.copying import OnBytes, hash_file
from anchord.store.backup.databases import find_damage
from anchord.store.backup.manifest import MANIFEST_NAME, BackedUpFile, Manifest, load_manifest
from anchord.store.backup.pin import TABLE_NAME
from anchord.store.table import maintenance as table_maintenance

_Identity = tuple[int, int]
"""Device and inode: snapshots share files by hard links."""


class SnapshotChecker:
    """Checks the snapshots of a backup folder; reads a file that several share only once."""

    def __init__(self, on_bytes: OnBytes) -> None:
        """Prepare.

        Args:
            on_bytes: Called for each block that is read.
        """
        self._on_bytes = on_bytes
        self._digests: dict[_Identity, tuple[int, str]] = {}

    def find_problems(self, snapshot: Path) -> Iterator[str]:
        """Yield what is wrong with a snapshot, one line for each file.

        Args:
            snapshot: Its folder. Nothing in it is changed.
        """
        try:
            manifest = load_manifest(snapshot)
        except (StoreDamagedError, NewerStateError) as error:
            yield error.message.removeprefix(f"{snapshot}/")
            return
        damaged = False
        for entry in manifest.files:
            if problem := self._check_file(snapshot / entry.path, entry):
                damaged = True
                yield f"{entry.path}: {problem}"
        yield from _find_unlisted(snapshot, manifest)
        for entry in manifest.files:
            file = Path(entry.path)
            is_database = file.suffix == ".sqlite" and file.parent.name == "data"
            if is_database and (problem := find_damage(snapshot / entry.path)):
                yield f"{entry.path}: {problem}"
        if not damaged and (problem := _check_table(snapshot, manifest)):
            yield problem

    def _check_file(self, file: Path, entry: BackedUpFile) -> str:
        try:
            status = file.lstat()
            if not stat.S_ISREG(status.st_mode):
                return "is not a regular file"
            if status.st_size != entry.size:
                return f"has {status.st_size:,} bytes instead of {entry.size:,}"
            identity = (status.st_dev, status.st_ino)
            if identity not in self._digests:
                self._digests[identity] = hash_file(file, self._on_bytes)
        except FileNotFoundError:
            return "is missing"
        except OSError as error:
            return f"cannot be read: {os.strerror(error.errno) if error.errno else error}"
        return "" if self._digests[identity] == (entry.size, entry.sha256) else "was changed"


def _check_table(snapshot: Path, manifest: Manifest) -> str:
    table = snapshot / TABLE_NAME
    if not any(Path(entry.path).is_relative_to(TABLE_NAME) for entry in manifest.files):
        return ""
    with tempfile.TemporaryDirectory() as folder:
        # LanceDB takes a path for a URI: `?`, `#` and `%` in it would lead elsewhere.
        tables = Path(folder) / "tables"
        tables.symlink_to(table.parent)
        if table_maintenance.can_be_read(tables, table.stem):
            return ""
    return f"{TABLE_NAME}: cannot be opened as a table"


def _find_unlisted(snapshot: Path, manifest: Manifest) -> Iterator[str]:
    listed = {MANIFEST_NAME, *(entry.path for entry in manifest.files)}
    for file in sorted(snapshot.rglob("*")):
        path = str(file.relative_to(snapshot))
        if path not in listed and not stat.S_ISDIR(file.lstat().st_mode):
            yield f"{path}: is not part of the backup"
