"""Damage to an index while no daemon runs: lost files, files from a backup, lost and doubled rows (F5, F6).

Each function damages the folder of a closed index, and returns what it did; "" if there was nothing to damage.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import lancedb

_BACKUP = "backup"


def back_up(base: Path) -> None:
    """Copy all files; the copy replaces the one before."""
    folder = base / _BACKUP
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for file in _databases(base, "*"):
        shutil.copy2(file, folder / file.name)
    shutil.copytree(base / "lance", folder / "lance")


def lose_catalogue(base: Path, _: Random) -> str:
    """Delete the catalog."""
    _remove(base, "state")
    return "lose the catalogue"


def lose_vanished(base: Path, _: Random) -> str:
    """Delete the vector cache."""
    _remove(base, "vectors")
    return "lose the vanished vectors"


def older_catalogue(base: Path, _: Random) -> str:
    """Restore an old catalog beside the present table."""
    return _put_back(base, "state")


def older_table(base: Path, _: Random) -> str:
    """Restore an old table beside the present catalog."""
    backup = base / _BACKUP / "lance"
    if not backup.is_dir():
        return ""
    shutil.rmtree(base / "lance")
    shutil.copytree(backup, base / "lance")
    return "put back the table as it was"


def lose_rows(base: Path, rng: Random) -> str:
    """Delete some rows."""
    table = _table(base)
    ids = sorted(table.to_arrow()["id"].to_pylist())
    lost = rng.sample(ids, min(len(ids), rng.randint(1, 3)))
    if not lost:
        return ""
    table.delete(f"id IN ({', '.join(repr(each) for each in lost)})")
    return f"lose {len(lost)} rows"


def double_rows(base: Path, rng: Random) -> str:
    """Write some rows a second time."""
    table = _table(base)
    rows = table.to_arrow()
    if not rows.num_rows:
        return ""
    table.add(rows.slice(rng.randrange(rows.num_rows), 2))
    return "double a row or two"


Loss = Callable[[Path, Random], str]
LOSSES: tuple[Loss, ...] = (
    lose_catalogue,
    lose_vanished,
    older_catalogue,
    older_table,
    lose_rows,
    double_rows,
)


def _databases(base: Path, name: str) -> list[Path]:
    return sorted(base.glob(f"{name}.sqlite*"))


def _remove(base: Path, name: str) -> None:
    for file in _databases(base, name):
        file.unlink()


def _put_back(base: Path, name: str) -> str:
    kept = _databases(base / _BACKUP, name)
    if not kept:
        return ""
    _remove(base, name)
    for file in kept:
        shutil.copy2(file, base / file.name)
    return f"put back {name} as it was"


def _table(base: Path) -> Any:  # noqa: ANN401 - lancedb ships no types
    return lancedb.connect(str(base / "lance")).open_table("chunks")
