"""Names of snapshots sort in the order in which they were made."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from anchord.errors import NewerStateError, UsageError
from anchord.store.backup.manifest import (
    MANIFEST_VERSION,
    Manifest,
    list_snapshots,
    load_manifest,
    next_snapshot_name,
    require_backup_folder,
)

NOW = datetime(2026, 11, 23, 7, 50, 11, tzinfo=UTC)


def test_every_new_name_sorts_after_the_ones_before(tmp_path: Path) -> None:
    names: list[str] = []
    for second in (0, 0, 0, 5, 1, 1, 6):
        existing = [tmp_path / name for name in names]
        names.append(next_snapshot_name(NOW + timedelta(seconds=second), existing))
    assert names == sorted(set(names))
    assert names[0] == "2026-11-23T075011Z"
    for name in names:
        (tmp_path / name).mkdir()
    assert [folder.name for folder in list_snapshots(tmp_path)] == names


def test_a_disk_of_its_own_may_hold_backups(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "2026-11-23T075011Z").mkdir()
    (tmp_path / "2026-11-23T075011Z.partial").mkdir()
    require_backup_folder(tmp_path)
    (tmp_path / "2026-11-23").mkdir()
    with pytest.raises(UsageError):
        require_backup_folder(tmp_path)


def test_a_backup_of_a_newer_anchord_is_refused(tmp_path: Path) -> None:
    manifest = Manifest(version=MANIFEST_VERSION + 1, anchord="9", created="", home="", files=())
    (tmp_path / "manifest.json").write_bytes(msgspec.json.encode(manifest))
    with pytest.raises(NewerStateError):
        load_manifest(tmp_path)
