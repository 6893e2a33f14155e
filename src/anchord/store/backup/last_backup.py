"""When and where the last backup was made: `backup.json` in the data folder."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import msgspec

from anchord.core.quoting import escape_non_utf8
from anchord.core.regular_files import read_regular_file
from anchord.store.backup.copying import replace_file
from anchord.store.backup.pin import LAST_BACKUP_NAME


class LastBackup(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the file."""

    made_at: datetime
    """With a time zone."""
    folder: str
    """The backup folder; bytes that are not UTF-8 are escaped."""


def load_last_backup(data_folder: Path) -> LastBackup | None:
    """Return the last backup that succeeded; None if there is none, or the file is damaged."""
    try:
        content = read_regular_file(data_folder / LAST_BACKUP_NAME)
        return msgspec.json.decode(content, type=LastBackup)
    except (OSError, ValueError):
        return None


def save_last_backup(data_folder: Path, folder: Path, made_at: datetime) -> None:
    """Remember a backup.

    Raises:
        OSError: The file cannot be written.
    """
    last = LastBackup(made_at=made_at, folder=escape_non_utf8(str(folder)))
    replace_file(data_folder / LAST_BACKUP_NAME, msgspec.json.encode(last))
