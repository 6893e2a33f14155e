"""Which anchord home a table's folder belongs to.

The writer lock is on a home. With `[store] uri` two homes can name one folder, and each would
delete the other's rows as rows of no file. So the folder says whose it is.
"""

from __future__ import annotations

import os
from pathlib import Path

from anchord.errors import StoreError

OWNER_FILE = "anchord-owner"


def claim_table_folder(folder: Path, data_folder: Path, catalog_file: Path) -> None:
    """Write into a table's folder that it belongs to a home, unless it belongs to another one.

    A home that was moved or deleted loses its claim: its catalog is no longer where it was.

    Args:
        folder: The table's folder; created if needed.
        data_folder: The data folder of the home that wants to write.
        catalog_file: The home's catalog; another home's has the same name.

    Raises:
        StoreError: Another home, which still exists, writes this table.
        OSError: The folder cannot be written.
    """
    if folder.is_relative_to(data_folder):
        return
    home = os.path.realpath(data_folder)
    owner_file = folder / OWNER_FILE
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        _write_owner(owner_file, home, os.O_EXCL)
    except FileExistsError:
        owner = os.fsdecode(owner_file.read_bytes()).rstrip("\n")
        if owner == home:
            return
        if os.path.exists(os.path.join(owner, catalog_file.name)):
            raise StoreError(
                f"{folder} is the table of another anchord, whose data is in {owner}",
                "set another `uri` under [store]",
            ) from None
        _write_owner(owner_file, home, os.O_TRUNC)


def _write_owner(file: Path, home: str, flag: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | flag
    descriptor = os.open(file, flags, 0o600)
    try:
        os.write(descriptor, os.fsencode(home) + b"\n")
    finally:
        os.close(descriptor)
