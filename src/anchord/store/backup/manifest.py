"""Snapshots in a backup folder: their names and manifests.

    TARGET/2026-11-23T075011Z/manifest.json     every file with its size and SHA-256; written last
    TARGET/2026-11-23T075011Z/config.toml       the files of a home as they are in ANCHORD_HOME
    TARGET/2026-11-23T075011Z/data/...
    TARGET/2026-11-23T081500Z.partial/          a snapshot that is being written, or was interrupted

A snapshot takes its name without `.partial` by a rename after everything in it was flushed.
"""

from __future__ import annotations

import os
import re
import stat
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from anchord.errors import NewerStateError, StoreDamagedError, UsageError

MANIFEST_VERSION = 1
MANIFEST_NAME = "manifest.json"
_USE_ANOTHER = "use another backup of the folder"
PARTIAL_SUFFIX = ".partial"
_SNAPSHOT_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d{6}Z(-\d{3})?")
_FOREIGN_NAMES_ALLOWED = frozenset({"lost+found"})
"""A disk's own folder at its mount point."""


class BackedUpFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a snapshot."""

    path: str
    """Relative to the snapshot's folder."""
    size: int
    """Bytes."""
    mtime_ns: int
    """When the original changed last. An immutable file of the same name, size and time is the
    same file."""
    sha256: str
    """Hexadecimal."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `manifest.json`."""

    version: int = MANIFEST_VERSION
    anchord: str
    """The version of anchord that made the backup."""
    created: str
    """ISO 8601, UTC."""
    home: str
    """The data folder of the home that was backed up."""
    remote_table: str = ""
    """The uri of a table that is not on this machine, and so not in the backup."""
    files: tuple[BackedUpFile, ...]

    @property
    def total_bytes(self) -> int:
        """The size of all files."""
        return sum(file.size for file in self.files)


def load_manifest(snapshot: Path) -> Manifest:
    """Read the manifest of a snapshot.

    Raises:
        StoreDamagedError: It is missing, cannot be read, or is not what was written.
        NewerStateError: A newer anchord made the backup.
    """
    file = snapshot / MANIFEST_NAME
    try:
        manifest = msgspec.json.decode(file.read_bytes(), type=Manifest)
    except OSError as error:
        reason = os.strerror(error.errno).lower() if error.errno else str(error)
        raise StoreDamagedError(f"{file} cannot be read: {reason}", _USE_ANOTHER) from error
    except ValueError as error:
        raise StoreDamagedError(f"{file} cannot be read: {error}", _USE_ANOTHER) from error
    if manifest.version > MANIFEST_VERSION:
        raise NewerStateError.for_schema_version(str(file), manifest.version)
    for entry in manifest.files:
        parts = Path(entry.path).parts
        if not parts or parts[0] == "/" or ".." in parts:
            raise StoreDamagedError(
                f"{file} names a path outside the backup: {entry.path!r}",
                _USE_ANOTHER,
            )
    return manifest


def list_snapshots(target: Path) -> list[Path]:
    """Return the complete snapshots of a backup folder, oldest first.

    Raises:
        OSError: The folder cannot be listed.
    """
    return sorted(each for each in target.iterdir() if is_snapshot(each))


def is_snapshot(folder: Path) -> bool:
    """Whether a path is a folder, not a link to one, with the name of a complete snapshot."""
    return bool(_SNAPSHOT_NAME.fullmatch(folder.name)) and _is_real_folder(folder)


def list_partial_snapshots(target: Path) -> list[Path]:
    """Return the snapshots that were interrupted.

    Raises:
        OSError: The folder cannot be listed.
    """
    return [each for each in target.iterdir() if _is_partial(each)]


def require_backup_folder(target: Path) -> None:
    """Return if a folder is empty or holds nothing but backups.

    Raises:
        UsageError: It holds something else.
        OSError: It cannot be listed.
    """
    for entry in sorted(target.iterdir()):
        if entry.name in _FOREIGN_NAMES_ALLOWED or is_snapshot(entry) or _is_partial(entry):
            continue
        raise UsageError(
            f"{target} holds `{entry.name}`, which is not a backup of anchord",
            "choose a folder that is empty or does not exist yet",
        )


def next_snapshot_name(now: datetime, existing: list[Path]) -> str:
    """Return a name that sorts after all existing ones, also if the clock was set back.

    Args:
        now: The time, with a time zone.
        existing: What `list_snapshots` returned.
    """
    name = f"{now.astimezone(UTC):%Y-%m-%dT%H%M%SZ}"
    newest = existing[-1].name if existing else ""
    if name > newest:
        return name
    base, _, suffix = newest.partition("Z")
    number = int(suffix.lstrip("-") or 1) + 1
    return f"{base}Z-{number:03}"


def folder_id(folder: Path) -> tuple[int, int] | None:
    """Return the device and inode of a folder, None if there is none."""
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_partial(folder: Path) -> bool:
    name = folder.name.removesuffix(PARTIAL_SUFFIX)
    is_named = name != folder.name and bool(_SNAPSHOT_NAME.fullmatch(name))
    return is_named and _is_real_folder(folder)


def _is_real_folder(folder: Path) -> bool:
    return stat.S_ISDIR(folder.lstat().st_mode)
