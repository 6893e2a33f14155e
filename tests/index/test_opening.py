"""What cannot be opened leaves no file open: the next command of the same process finds it free."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from index.running import index_all

from anchord.config.paths import Paths, find_paths
from anchord.config.schema import Config, EmbeddingConfig
from anchord.core.sqlite_connection import open_sqlite
from anchord.errors import StoreError, StoreUnavailableError
from anchord.index import opening
from anchord.index.opening import open_reader, open_writer
from anchord.index.session import IndexReader
from anchord.sources.conversations.archive.detached import DetachedExchanges
from anchord.sources.conversations.archive.reader import Archive

CONFIG = Config(embedding=EmbeddingConfig(provider="hash"))
OPEN_FILES = Path("/proc/self/fd")


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """Return the paths of an index that is closed."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("Words.\n")
    (tmp_path / "home").mkdir(mode=0o700)
    paths = find_paths({"ANCHORD_HOME": str(tmp_path / "home")})
    paths.create_folders()
    writer = open_writer(paths, CONFIG, [str(tmp_path / "docs")])
    index_all(writer)
    writer.close()
    return paths


def databases_open(paths: Paths) -> list[str]:
    found = []
    for link in OPEN_FILES.iterdir():
        with suppress(OSError):
            target = os.readlink(link)
            if target.startswith(str(paths.data_folder)) and ".sqlite" in target:
                found.append(target)
    return found


def _fail(*_: object, **__: object) -> None:
    raise StoreUnavailableError("the disk is full", "")


@pytest.mark.skipif(not OPEN_FILES.is_dir(), reason="only Linux lists a process's open files")
@pytest.mark.parametrize(
    ("place", "name"),
    [
        (DetachedExchanges, "restore_lost_groups"),
        (Archive, "is_intact"),
        (opening, "redact_archive"),
        (opening, "open_source_tree"),
    ],
)
def test_a_failed_open_leaves_no_database_open(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, place: object, name: str
) -> None:
    with sqlite3.connect(paths.catalog_file) as catalog:  # Only then the archive is checked.
        catalog.execute("UPDATE meta SET value='0' WHERE key='clean'")
    catalog.close()
    monkeypatch.setattr(place, name, _fail)
    opens: list[Callable[[], IndexReader]] = [
        lambda: open_writer(paths, CONFIG, []),
        lambda: open_reader(paths, CONFIG),
    ]
    for open_index in opens:
        try:
            open_index().close()
        except StoreUnavailableError as error:
            kept = error  # A traceback holds what was opened, as in a program that logs it.
            assert str(kept) == "the disk is full"
        assert databases_open(paths) == []


@pytest.mark.skipif(not OPEN_FILES.is_dir(), reason="only Linux lists a process's open files")
def test_an_error_of_a_database_does_not_hold_its_files(paths: Paths) -> None:
    """A program that keeps the error would keep the files, and their locks, of a closed database."""
    database = open_sqlite(paths.archive_file, read_only=False)
    database.execute("BEGIN")
    with pytest.raises(StoreError) as raised:
        database.executemany("INSERT INTO roots VALUES(?,?)", [("a", b"1"), ("b", b"2"), ("b", 3)])
    database.close()
    assert databases_open(paths) == []
    assert raised.traceback
