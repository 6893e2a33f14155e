"""A backup in two steps, for a service that may write only to its own folders.

`anchord service install --sandbox` makes all other folders read-only for the daemon. So the daemon
copies one snapshot into its folder for temporary files, and the command copies that to the target.
A snapshot has the files as a home has them: it is backed up like one.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from anchord.config.paths import Paths
from anchord.config.schema import Config
from anchord.index.backup import (
    BackupRequest,
    PinInWriter,
    backup_sources,
    record_backup,
    require_target,
    translate_os_errors,
)
from anchord.index.table_location import store_uri
from anchord.store.backup.manifest import load_manifest
from anchord.store.backup.pin import (
    CONFIG_NAME,
    DATA_NAME,
    TABLE_NAME,
    BackupSources,
    pin_home,
)
from anchord.store.backup.restore import find_snapshot
from anchord.store.backup.snapshot import OnProgress, SnapshotResult, write_snapshot

_STAGING_NAME = "outgoing"


def staging_folder(paths: Paths) -> Path:
    """Return the folder for a snapshot that a client copies elsewhere; each start empties it."""
    return paths.temp_folder / _STAGING_NAME


def stage_home(
    paths: Paths, config: Config, *, run_pin: PinInWriter, on_progress: OnProgress
) -> SnapshotResult:
    """Make one snapshot in `staging_folder`, in place of an earlier one. Blocks while it copies.

    Args:
        paths: The files and folders of the home.
        config: Its configuration.
        run_pin: Runs a function that takes milliseconds in the writer thread.
        on_progress: Called with bytes done and in all; may raise to cancel.

    Raises:
        AnchordError: It failed; the folder is empty.
    """
    folder = staging_folder(paths)
    shutil.rmtree(folder, ignore_errors=True)
    with translate_os_errors(folder):
        pinned = run_pin(lambda: pin_home(backup_sources(paths, store_uri(paths, config))))
        try:
            folder.parent.mkdir(mode=0o700, exist_ok=True)
            return write_snapshot(pinned, folder, None, on_progress)
        finally:
            pinned.close()


def backup_staged_home(
    paths: Paths, config: Config, request: BackupRequest, on_progress: OnProgress
) -> SnapshotResult:
    """Back up what `stage_home` has copied, and delete the copy. Blocks while it copies.

    Args:
        paths: The files and folders of the home.
        config: Its configuration.
        request: Where to.
        on_progress: Called with bytes done and in all.

    Raises:
        UsageError: As `backup_home`.
        AnchordError: The backup failed; earlier ones are unchanged.
    """
    folder = require_target(paths, config, request.target)
    staging = staging_folder(paths)
    try:
        with translate_os_errors(folder):
            snapshot = find_snapshot(staging)
            remote_table = load_manifest(snapshot).remote_table
            data = snapshot / DATA_NAME
            sources = BackupSources(
                config_file=snapshot / CONFIG_NAME,
                data_folder=data,
                promotion_marker=data / paths.promotion_marker.name,
                tables_folder=None if remote_table else (snapshot / TABLE_NAME).parent,
                remote_table=remote_table,
                home=paths.data_folder,
            )
            pinned = pin_home(sources)
            try:
                result = write_snapshot(
                    pinned,
                    folder,
                    request.keep,
                    on_progress,
                )
            finally:
                pinned.close()
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return record_backup(paths, folder, result)
