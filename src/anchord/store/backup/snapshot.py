"""Writing a snapshot: what has changed is copied, the rest is shared with the snapshot before.

No file of a snapshot is ever written again, so two snapshots share a file by a hard link. None is
shared with the home itself: a bad sector or a program that damages the home's file must not damage
its backup too.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from anchord._version import __version__
from anchord.core.quoting import escape_non_utf8
from anchord.errors import AlreadyRunningError, NewerStateError, StoreDamagedError, StoreError
from anchord.store.backup.copying import copy_file, flush, flush_folders, hash_file, write_file
from anchord.store.backup.databases import copy_database, pinned_bytes
from anchord.store.backup.manifest import (
    MANIFEST_NAME,
    PARTIAL_SUFFIX,
    BackedUpFile,
    Manifest,
    list_partial_snapshots,
    list_snapshots,
    load_manifest,
    next_snapshot_name,
    require_backup_folder,
)
from anchord.store.backup.pin import DAMAGED_NAME, DATA_NAME, TABLE_NAME, PinnedHome
from anchord.store.disk_usage import free_bytes
from anchord.store.table.pinned_files import list_version_files

OnProgress = Callable[[int, int], None]
"""Called with the bytes that are done and those in all. May raise, to cancel."""

_SHAREABLE_TABLE_FOLDERS = frozenset({"data", "_indices", "_deletions"})
"""Names in these contain a random number: the same name is the same file. Those in `_versions`
count from 1 in each new generation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotResult:
    """What a backup did."""

    folder: Path
    """The new snapshot."""
    file_count: int
    total_bytes: int
    """The size of all files of the snapshot."""
    copied_count: int
    """Files that no earlier snapshot had."""
    copied_bytes: int
    deleted_snapshots: tuple[str, ...]
    """Names of the old snapshots that `keep` deleted."""
    remote_table: str
    """The uri of a table that is not on this machine, and so not in the snapshot."""
    warning: str = ""
    """What failed when the snapshot was complete; "" if nothing."""


@dataclass(frozen=True, slots=True)
class _PlainFile:
    """A file to copy, or to share with the snapshot before."""

    path: str
    """In the snapshot."""
    source: Path
    size: int
    shared_with: Path | None
    """The same file in the snapshot before."""


def write_snapshot(
    pinned: PinnedHome, target: Path, keep: int | None, on_progress: OnProgress
) -> SnapshotResult:
    """Write a snapshot of a pinned home. Blocks for as long as copying takes.

    Until the last step, a rename, the snapshots that were there before are all there are: a failed
    or killed backup leaves them as they were.

    Args:
        pinned: What to copy; not closed here.
        target: The backup folder; created if its parent exists.
        keep: Delete all but this many of the newest snapshots afterwards; None keeps all.
        on_progress: Called about once per megabyte.

    Raises:
        UsageError: The folder holds something else than backups.
        AlreadyRunningError: Another backup into this folder is running.
        StoreDamagedError: A file of the home is damaged.
        StoreError: A file of the home cannot be read, or the disk has too little space.
        OSError: A file cannot be read or written.
    """
    if not target.is_dir():
        target.mkdir(mode=0o700)
    with _locked(target):
        require_backup_folder(target)
        for interrupted in list_partial_snapshots(target):
            shutil.rmtree(interrupted)
        snapshots = list_snapshots(target)
        name = next_snapshot_name(datetime.now(UTC), snapshots)
        partial = target / f"{name}{PARTIAL_SUFFIX}"
        partial.mkdir(mode=0o700)
        try:
            writer = _SnapshotWriter(pinned, partial, snapshots, on_progress)
            manifest = writer.write()
            partial.rename(target / name)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        flush(target)
        deleted = _delete_old([*snapshots, target / name], keep)
    return SnapshotResult(
        folder=target / name,
        file_count=len(manifest.files),
        total_bytes=manifest.total_bytes,
        copied_count=writer.copied_count,
        copied_bytes=writer.copied_bytes,
        deleted_snapshots=deleted,
        remote_table=manifest.remote_table,
    )


class _SnapshotWriter:
    """Writes the files of one snapshot, and counts."""

    def __init__(
        self, pinned: PinnedHome, folder: Path, snapshots: list[Path], on_progress: OnProgress
    ) -> None:
        self.copied_count = 0
        self.copied_bytes = 0
        self._pinned = pinned
        self._folder = folder
        self._previous, self._previous_files = _newest_readable(snapshots)
        self._on_progress = on_progress
        self._entries: list[BackedUpFile] = []
        self._done_bytes = 0
        self._total_bytes = 0

    def write(self) -> Manifest:
        """Write all files, the manifest last, and flush them."""
        plain_files = list(self._plain_files())
        databases = self._pinned.databases
        copied_files = [file for file in plain_files if not file.shared_with]
        self._total_bytes = sum(map(pinned_bytes, databases.values()))
        self._total_bytes += sum(file.size for file in copied_files)
        self._require_space(self._total_bytes)
        for path, connection in databases.items():
            file = self._make_folder_of(path)
            copy_database(connection, file, self._on_bytes)
            size, sha256 = hash_file(file, lambda _: None)
            self._add_or_link(path, size, sha256)
        for path, content in self._pinned.small_files.items():
            sha256 = write_file(self._make_folder_of(path), content)
            self._add_or_link(path, len(content), sha256)
        for plain_file in plain_files:
            self._write_plain_file(plain_file)
        sources = self._pinned.sources
        home = sources.home or sources.data_folder
        now = datetime.now(UTC)
        files = sorted(self._entries, key=lambda entry: entry.path)
        manifest = Manifest(
            anchord=__version__,
            created=f"{now:%Y-%m-%dT%H:%M:%SZ}",
            home=escape_non_utf8(str(home)),
            remote_table=sources.remote_table,
            files=tuple(files),
        )
        write_file(self._folder / MANIFEST_NAME, msgspec.json.encode(manifest))
        flush_folders(self._folder)
        return manifest

    def _plain_files(self) -> Iterator[_PlainFile]:
        """List the files of the table's newest version, and those that were set aside."""
        if table := self._pinned.table:
            for name in list_version_files(table):
                is_shareable = Path(name).parts[0] in _SHAREABLE_TABLE_FOLDERS
                path = f"{TABLE_NAME}/{name}"
                yield self._plan(
                    path,
                    table / name,
                    is_shareable=is_shareable,
                )
        damaged_folder = self._pinned.sources.data_folder / DAMAGED_NAME
        for file in sorted(damaged_folder.rglob("*")):
            if stat.S_ISREG(file.lstat().st_mode):
                path = f"{DATA_NAME}/{DAMAGED_NAME}/{file.relative_to(damaged_folder)}"
                yield self._plan(path, file, is_shareable=True)

    def _plan(self, path: str, source: Path, *, is_shareable: bool) -> _PlainFile:
        status = source.lstat()
        known = self._previous_files.get(path) if is_shareable else None
        is_same = known is not None and known.size == status.st_size
        if known and is_same and known.mtime_ns == status.st_mtime_ns:
            return _PlainFile(
                path,
                source,
                status.st_size,
                self._previous_file(path, known.size),
            )
        return _PlainFile(path, source, status.st_size, None)

    def _write_plain_file(self, file: _PlainFile) -> None:
        destination = self._make_folder_of(file.path)
        if file.shared_with and _try_link(file.shared_with, destination):
            self._entries.append(self._previous_files[file.path])
            return
        size, sha256 = copy_file(file.source, destination, self._on_bytes)
        self._add_or_link(file.path, size, sha256)

    def _add_or_link(self, path: str, size: int, sha256: str) -> None:
        """List a written file, or replace it by a hard link to the same one of the snapshot before.

        The earlier copy is read first: a new copy must not be replaced by one that was damaged.
        """
        known = self._previous_files.get(path)
        shared = self._previous_file(path, size) if known and known.sha256 == sha256 else None
        if shared and hash_file(shared, lambda _: None)[1] != sha256:
            shared = None
        spare = self._folder / f"{MANIFEST_NAME}.spare"
        if known and shared and _try_link(shared, spare):
            spare.replace(self._folder / path)
            self._entries.append(known)
            return
        self._add(path, size, sha256)

    def _add(self, path: str, size: int, sha256: str) -> None:
        modified_ns = (self._folder / path).stat().st_mtime_ns
        self._entries.append(
            BackedUpFile(
                path=path,
                size=size,
                mtime_ns=modified_ns,
                sha256=sha256,
            )
        )
        self.copied_count += 1
        self.copied_bytes += size

    def _previous_file(self, path: str, size: int) -> Path | None:
        """Return a file of the snapshot before, if it is there in its full size."""
        if self._previous is None:
            return None
        file = self._previous / path
        try:
            status = file.lstat()
        except OSError:
            return None
        return file if stat.S_ISREG(status.st_mode) and status.st_size == size else None

    def _make_folder_of(self, path: str) -> Path:
        file = self._folder / path
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return file

    def _on_bytes(self, count: int) -> None:
        self._done_bytes = min(self._done_bytes + count, self._total_bytes)
        self._on_progress(self._done_bytes, self._total_bytes)

    def _require_space(self, needed: int) -> None:
        free = free_bytes(self._folder)
        if free < needed:
            raise StoreError(
                f"the backup needs {needed:,} bytes, and its disk has {free:,} free",
                "free some space, or delete old backups with --keep",
            )


def _newest_readable(snapshots: list[Path]) -> tuple[Path | None, dict[str, BackedUpFile]]:
    """Return the newest snapshot with a manifest that can be read, and its files by path."""
    for snapshot in reversed(snapshots):
        try:
            manifest = load_manifest(snapshot)
        except (StoreDamagedError, NewerStateError):
            continue
        return snapshot, {file.path: file for file in manifest.files}
    return None, {}


def _try_link(existing: Path, new: Path) -> bool:
    """Hard-link a file; return False if the file system cannot."""
    try:
        os.link(existing, new, follow_symlinks=False)
    except OSError:
        return False
    return True


def _delete_old(snapshots: list[Path], keep: int | None) -> tuple[str, ...]:
    """Delete all but the newest snapshots. Each gives up its name first: no half one counts."""
    old = snapshots[:-keep] if keep else []
    for snapshot in old:
        doomed = snapshot.with_name(f"{snapshot.name}{PARTIAL_SUFFIX}")
        snapshot.rename(doomed)
        shutil.rmtree(doomed)
    return tuple(snapshot.name for snapshot in old)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a lock on a backup folder: two backups would delete each other's partial snapshots."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunningError(
                f"another backup into {folder} is running", "wait until it is done"
            ) from None
        yield
    finally:
        os.close(descriptor)
