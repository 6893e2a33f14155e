"""Databases that are deleted or replaced under the writer: noticed, and the archive is saved."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from conversations.conftest import answer, claude
from index.running import index_all

from anchord.config.paths import find_paths
from anchord.config.schema import Config, EmbeddingConfig
from anchord.daemon.writer.own_files import OwnFiles
from anchord.index.opening import open_writer
from anchord.index.session import IndexWriter

COUNT = 3


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[IndexWriter]:
    """Give an open index of a transcript, whose archive is in its write-ahead log."""
    talks = tmp_path / "talks"
    talks.mkdir()
    turns = [(f"How is question {n} asked?", answer(f"subject{n}", 2)) for n in range(COUNT)]
    (talks / "s1.jsonl").write_bytes(claude(*turns))
    (tmp_path / "home").mkdir(mode=0o700)
    paths = find_paths({"ANCHORD_HOME": str(tmp_path / "home")})
    paths.create_folders()
    config = Config(embedding=EmbeddingConfig(provider="hash"))
    opened = open_writer(paths, config, [str(talks)], "conversations")
    index_all(opened)
    yield opened
    opened.close()


@pytest.fixture
def own_files(writer: IndexWriter) -> OwnFiles:
    made = OwnFiles(writer)
    made.note()
    return made


def exchange_count(file: Path) -> int:
    with closing(sqlite3.connect(file)) as archive:
        return int(archive.execute("SELECT count(*) FROM exchanges").fetchone()[0])


def replace_with_empty(file: Path) -> None:
    other = file.with_name("other")
    other.write_bytes(b"somebody's")
    other.rename(file)


def delete_all(file: Path) -> None:
    for each in file.parent.glob(f"{file.name}*"):
        each.unlink()


LOSSES: dict[str, Callable[[Path], None]] = {
    "file": Path.unlink,
    "log": lambda file: file.with_name(f"{file.name}-wal").unlink(),
    "all": delete_all,
    "replaced": replace_with_empty,
}


def test_databases_in_their_places_are_no_problem(own_files: OwnFiles) -> None:
    assert [own_files.find_problem(), own_files.find_problem()] == ["", ""]


@pytest.mark.parametrize("loss", LOSSES)
def test_an_archive_that_is_lost_under_the_writer_is_saved_from_the_open_file(
    writer: IndexWriter, own_files: OwnFiles, loss: str
) -> None:
    file = writer.paths.archive_file
    LOSSES[loss](file)
    assert own_files.find_problem() == f"{file} was deleted or replaced"
    saved = file.stat().st_ino
    # The stop saves again: a saved archive is not overwritten.
    assert own_files.find_problem() == f"{file} was deleted or replaced"
    assert file.stat().st_ino == saved
    writer.archive.close()
    assert exchange_count(file) == COUNT
    set_aside = {each.name for each in writer.paths.damaged_folder.rglob("*") if each.is_file()}
    assert (file.name in set_aside) == (loss in {"log", "replaced"})


def test_a_catalog_that_is_lost_under_the_writer_is_named(
    writer: IndexWriter, own_files: OwnFiles
) -> None:
    writer.paths.catalog_file.unlink()
    assert own_files.find_problem() == f"{writer.paths.catalog_file} was deleted or replaced"
    assert not writer.paths.damaged_folder.exists()


def test_a_data_folder_that_is_replaced_is_named(writer: IndexWriter, own_files: OwnFiles) -> None:
    folder = writer.paths.data_folder
    shutil.copytree(folder, folder.with_name("copy"))
    folder.rename(folder.with_name("former"))
    assert own_files.find_problem() == f"the folder {folder} was deleted"
    folder.with_name("copy").rename(folder)
    assert own_files.find_problem() == f"the folder {folder} was replaced by another one"
