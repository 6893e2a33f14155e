"""What a backup leaves out."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from anchord.store.backup.pin import BackupSources, pin_home


def test_notes_of_damage_and_unfinished_repairs_are_left_out(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "transcripts.sqlite")) as db:
        db.execute("CREATE TABLE t(x)")
    for name in ("transcripts.sqlite-damaged", "transcripts.sqlite-salvaging", "asked.json"):
        (tmp_path / name).write_bytes(b"{}")
    sources = BackupSources(
        config_file=tmp_path / "config.toml",
        data_folder=tmp_path,
        promotion_marker=tmp_path / "promoting",
        tables_folder=None,
    )
    with closing(pin_home(sources)) as pinned:
        assert list(pinned.databases) == ["data/transcripts.sqlite"]
        assert list(pinned.small_files) == ["data/asked.json"]
