"""`backup` and `restore` of a whole home: where its files are, where they may go.

Restoring needs an empty home and only adds files. The configuration is put in place first: a start
without it would take the index of roots that nobody configures for leftovers. The catalog is last:
without it there is no index.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import structlog

from anchord.config.cli_state import load_cli_state, save_cli_state
from anchord.config.file import load_config
from anchord.config.paths import Paths
from anchord.config.roots import covers, gather_roots, resolve_path
from anchord.config.schema import Config
from anchord.core.os_errors import os_errors_as_unavailable
from anchord.core.quoting import quote_name
from anchord.core.types import Root
from anchord.errors import AnchordError, StoreError, TargetNotWritableError, UsageError
from anchord.index.table_location import store_uri
from anchord.sources.conversations.archive.writer import ArchiveWriter
from anchord.store.backup.copying import replace_file
from anchord.store.backup.last_backup import save_last_backup
from anchord.store.backup.manifest import Manifest, load_manifest
from anchord.store.backup.pin import (
    CONFIG_NAME,
    DATA_NAME,
    TABLE_NAME,
    BackupSources,
    PinnedHome,
    pin_home,
)
from anchord.store.backup.restore import copy_snapshot, find_snapshot
from anchord.store.backup.snapshot import OnProgress, SnapshotResult, write_snapshot
from anchord.store.table.uri import is_local
from anchord.store.writer_lock import WriterLock

log = structlog.get_logger()

_RESTORING_NAME = "restoring"
_ALLOWED_IN_EMPTY_HOME = frozenset({"anchord.lock", "models", "tmp", _RESTORING_NAME})
_NOT_WRITABLE = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_OUTSIDE_HINT = "choose a folder outside, best on another disk"
PinInWriter = Callable[[Callable[[], PinnedHome]], PinnedHome]
"""Calls a function where nobody writes the index, and returns its result."""


@dataclass(frozen=True, slots=True)
class BackupRequest:
    """Where to back up."""

    target: str
    """The backup folder; absolute. Its parent must exist."""
    keep: int | None = None
    """How many snapshots to keep; None keeps all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreResult:
    """What was restored."""

    snapshot: Path
    manifest: Manifest
    missing_roots: tuple[Root, ...]
    """Roots whose folders do not exist on this machine."""
    damaged_table_files: tuple[str, ...]
    """Paths in the snapshot. They were left out: the next start repairs the table."""


def backup_home(
    paths: Paths,
    config: Config,
    request: BackupRequest,
    *,
    run_pin: PinInWriter,
    on_progress: OnProgress,
) -> SnapshotResult:
    """Back up a home into a folder. Blocks for as long as copying takes.

    Args:
        paths: The files and folders of the home.
        config: Its configuration.
        request: Where to.
        run_pin: Runs a function that takes milliseconds in the writer thread.
        on_progress: Called with bytes done and in all; may raise to cancel.

    Raises:
        UsageError: The folder is in a root or among anchord's own, or holds something else.
        AnchordError: The backup failed; earlier ones are unchanged.
    """
    folder = require_target(paths, config, request.target)
    with translate_os_errors(folder):
        sources = backup_sources(paths, store_uri(paths, config))
        pinned = run_pin(lambda: pin_home(sources))
        try:
            result = write_snapshot(
                pinned,
                folder,
                request.keep,
                on_progress,
            )
        finally:
            pinned.close()
    return record_backup(paths, folder, result)


def record_backup(paths: Paths, folder: Path, result: SnapshotResult) -> SnapshotResult:
    """Remember where and when a backup was made; return its result, with a warning if that failed.

    The snapshot is complete, and what it is for may be a home whose disk is full.
    """
    try:
        save_last_backup(paths.data_folder, folder, datetime.now(UTC))
    except OSError as error:
        log.warning("backup.not_recorded", error=str(error))
        reason = os.strerror(error.errno).lower() if error.errno else str(error)
        warning = f"{paths.data_folder} cannot record that this backup was made: {reason}"
        return replace(result, warning=warning)
    return result


def require_target(paths: Paths, config: Config, target: str) -> Path:
    """Return the resolved backup folder, if a backup may be written there.

    Args:
        paths: The files and folders of the home.
        config: Its configuration.
        target: The folder; absolute.

    Raises:
        UsageError: It is in a root or among anchord's own, no folder, or has no parent folder.
    """
    remembered = load_cli_state(paths.cli_state_file).given_roots
    roots = gather_roots(config, remembered, (), paths.own_folders)
    uri = store_uri(paths, config)
    folder = Path(resolve_path(target))
    table_folders = [uri] if is_local(uri) else []
    _require_target(folder, roots, [*paths.own_folders, *table_folders])
    return folder


def require_outside_roots(target: str, roots: Sequence[Root]) -> None:
    """Return if a backup in a folder would not be indexed.

    Args:
        target: The folder; absolute.
        roots: The folders that are indexed.

    Raises:
        UsageError: The folder is in one of them.
    """
    folder = resolve_path(target)
    for root in roots:
        if covers(root.path, folder):
            raise UsageError(
                f"{quote_name(folder)} is in the indexed folder {quote_name(root.path)}",
                _OUTSIDE_HINT,
            )


def backup_without_daemon(
    paths: Paths, config: Config, request: BackupRequest, on_progress: OnProgress
) -> SnapshotResult:
    """Back up a home that no process writes. Holds the writer lock until it is done.

    Nothing in the home is repaired or changed first.

    Raises:
        AlreadyRunningError: Another process writes the index.
        StoreError: A `forget` was interrupted: what it should delete would be copied.
        AnchordError: As `backup_home`.
    """
    with os_errors_as_unavailable(str(paths.data_folder)):
        lock = WriterLock(paths.lock_file)
    try:
        if load_cli_state(paths.cli_state_file).unfinished_forget:
            raise StoreError(
                "a `forget` was interrupted: what it should delete would be part of the backup",
                "complete it with `anchord index`, then back up",
            )
        return backup_home(
            paths, config, request, run_pin=lambda pin: pin(), on_progress=on_progress
        )
    finally:
        lock.release()


def restore_home(
    paths: Paths, source: str, moved: Mapping[str, str], on_progress: OnProgress
) -> RestoreResult:
    """Restore a backup into an empty home. Blocks for as long as copying takes.

    Args:
        paths: The files and folders of the home; its folders exist.
        source: A backup folder, for its newest snapshot, or one of its snapshots.
        moved: Folder of the old machine -> absolute folder on this one, for roots below it.
        on_progress: Called with bytes done and in all.

    Raises:
        UsageError: The home is not empty, or there is no backup at `source`.
        StoreDamagedError: The backup is damaged, and not only its table; the home is still empty.
        AnchordError: A file cannot be written; the home is still empty.
    """
    folder = Path(resolve_path(source))
    with translate_os_errors(folder):
        snapshot = find_snapshot(folder)
        manifest = load_manifest(snapshot)
        lock = WriterLock(paths.lock_file)
        try:
            _require_empty_home(paths)
            restoring = paths.data_folder / _RESTORING_NAME
            shutil.rmtree(restoring, ignore_errors=True)
            restoring.mkdir(mode=0o700)
            try:
                damaged = copy_snapshot(
                    snapshot,
                    manifest,
                    restoring,
                    on_progress,
                )
                roots = _adapt_to_this_machine(paths, restoring, moved)
                _put_in_place(paths, restoring)
            finally:
                shutil.rmtree(restoring, ignore_errors=True)
            made_at = datetime.fromisoformat(manifest.created)
            save_last_backup(paths.data_folder, snapshot.parent, made_at)
        finally:
            lock.release()
    missing = tuple(root for root in roots if not Path(root.path).is_dir())
    return RestoreResult(
        snapshot=snapshot,
        manifest=manifest,
        missing_roots=missing,
        damaged_table_files=tuple(damaged),
    )


def backup_sources(paths: Paths, uri: str) -> BackupSources:
    """Return where the files of a home are, for `pin_home`."""
    return BackupSources(
        config_file=paths.config_file,
        data_folder=paths.data_folder,
        promotion_marker=paths.promotion_marker,
        tables_folder=Path(uri) if is_local(uri) else None,
        remote_table="" if is_local(uri) else uri,
    )


def _require_target(folder: Path, roots: Sequence[Root], own_folders: Sequence[str]) -> None:
    """Return if a backup may be written to a folder.

    Raises:
        UsageError: It would be indexed, is anchord's own, no folder, or has no parent folder.
    """
    require_outside_roots(str(folder), roots)
    if any(covers(os.path.realpath(own), str(folder)) for own in own_folders):
        raise UsageError(f"{folder} is where anchord keeps its own files", _OUTSIDE_HINT)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", "choose a folder")
    if not folder.parent.is_dir():
        raise UsageError(
            f"the folder {folder.parent} does not exist", "create it, or mount the disk first"
        )


def _require_empty_home(paths: Paths) -> None:
    present = [paths.config_file] if paths.config_file.exists() else []
    present += [
        file
        for file in sorted(paths.data_folder.iterdir())
        if file.name not in _ALLOWED_IN_EMPTY_HOME and not _is_empty_folder(file)
    ]
    if present:
        raise UsageError(
            f"this home is not empty: {present[0]} exists",
            "move the files away, or set ANCHORD_HOME to a new folder",
        )


def _is_empty_folder(file: Path) -> bool:
    # The configuration, the socket or the log may have a folder below the data folder.
    has_files = any(each.is_file() for each in file.rglob("*"))
    return file.is_dir() and not has_files


def _adapt_to_this_machine(paths: Paths, restoring: Path, moved: Mapping[str, str]) -> list[Root]:
    """Move the paths of roots in the copied configuration; return the roots that it gives.

    Raises:
        ConfigError: The configuration of the backup is wrong.
        UsageError: With the moved paths, two roots overlap, or the table's folder is in use.
    """
    config_file, cli_state_file = restoring / CONFIG_NAME, restoring / DATA_NAME / "asked.json"
    if moved and config_file.exists():
        from anchord.config.file_editor import move_paths  # noqa: PLC0415 - loads tomlkit

        names = [root.name for root in gather_roots(load_config(config_file), (), ())]
        move_paths(config_file, names, lambda path: _moved_path(path, moved))
    cli_state = load_cli_state(cli_state_file)
    if moved and cli_state_file.exists():
        cli_state = cli_state.with_moved_paths(lambda path: _moved_path(path, moved))
        save_cli_state(cli_state_file, cli_state)
    archive_file = restoring / DATA_NAME / paths.archive_file.name
    if moved and archive_file.exists():
        # A former folder that still exists here would count as another root's.
        with closing(ArchiveWriter(archive_file)) as archive, archive.transaction():
            archive.folder_records.move(lambda path: _moved_path(path, moved))
    config = load_config(config_file)
    uri = store_uri(paths, config)
    table = Path(uri)
    if config.store.uri and is_local(uri) and table.exists() and any(table.iterdir()):
        raise UsageError(
            f"the table's folder {uri}, which the configuration names, is not empty",
            f"move it away, or restore with --map {uri}=NEW",
        )
    return gather_roots(config, cli_state.given_roots, (), paths.own_folders)


def _moved_path(path: str, moved: Mapping[str, str]) -> str:
    expanded = os.path.expanduser(path)
    for old, new in moved.items():
        if covers(old, expanded):
            return os.path.join(new, os.path.relpath(expanded, old)).removesuffix("/.")
    return path


def _put_in_place(paths: Paths, restoring: Path) -> None:
    """Rename the copied files to their places: the configuration first, the catalog last."""
    config_file, data = restoring / CONFIG_NAME, restoring / DATA_NAME
    config = load_config(config_file)
    uri = store_uri(paths, config)
    if config_file.exists():
        # Not a rename: the configuration may be on another file system.
        replace_file(paths.config_file, config_file.read_bytes())
    table = restoring / TABLE_NAME
    if table.is_dir() and is_local(uri):
        table_folder = Path(uri)
        table_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.move(table, table_folder / table.name)
    shutil.rmtree(data / "lance", ignore_errors=True)
    catalog = data / paths.catalog_file.name
    others = sorted(file for file in data.iterdir() if file != catalog)
    for file in (*others, catalog):
        file.rename(paths.data_folder / file.name)


@contextmanager
def translate_os_errors(folder: Path) -> Iterator[None]:
    """Raise AnchordError for an OSError; `folder` is named if the error has no file name.

    One that says that this process may not write there is a TargetNotWritableError.
    """
    try:
        yield
    except OSError as error:
        place = os.fsdecode(error.filename) if error.filename else str(folder)
        reason = os.strerror(error.errno).lower() if error.errno else str(error)
        hint = "check its permissions and the free space of its disk"
        kind = TargetNotWritableError if error.errno in _NOT_WRITABLE else AnchordError
        raise kind(f"{place}: {reason}", hint) from error
