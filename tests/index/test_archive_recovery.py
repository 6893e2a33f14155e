"""A damaged archive: what is readable is saved, what is not is named, and a fault that passes changes nothing."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from sample_archive import ROOT, contents_of, write_archive

from anchord.config.paths import Paths, find_paths
from anchord.core import sqlite_connection
from anchord.core.change_detection import TRANSCRIPT_DIGEST
from anchord.core.types import NO_FINGERPRINT, ChunkDiff, FileRecord, FileUpdate, RootedPath
from anchord.errors import StoreDamagedError, StoreUnavailableError
from anchord.index import archive_recovery
from anchord.index.archive_recovery import open_or_salvage_archive, record_archive_damage
from anchord.sources.conversations.archive.salvage import SalvageResult
from anchord.sources.conversations.archive.writer import ArchiveWriter
from anchord.store.catalog.catalog import SqliteCatalog

TRANSCRIPT = RootedPath(ROOT, "project/0000.jsonl")


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    os.chmod(tmp_path, 0o700)
    found = find_paths({"ANCHORD_HOME": str(tmp_path)})
    found.create_folders()
    return found


@pytest.fixture
def catalog(paths: Paths) -> Iterator[SqliteCatalog]:
    with SqliteCatalog(paths.catalog_file) as opened:
        opened.set_meta("clean", "1")
        record = FileRecord(NO_FINGERPRINT, 1, TRANSCRIPT_DIGEST, "recipe", is_confirmed=True)
        diff = ChunkDiff(added=(), changed=(), removed=(), shifted=0, kept=0)
        update = FileUpdate(
            origin=TRANSCRIPT, new_record=record, diff=diff, texts_to_embed=(), reason="new"
        )
        opened.save_intents([update])
        opened.confirm_updates([update])
        yield opened


def damage_both(file: Path) -> None:
    """Damage the headers of an archive and of its WAL, without which SQLite ignores the WAL."""
    for suffix in ("", "-wal"):
        damage(Path(f"{file}{suffix}"), write_no_database)


def damage(file: Path, change: Callable[[bytearray], None]) -> None:
    data = bytearray(file.read_bytes())
    change(data)
    file.write_bytes(data)


def overwrite_content_pages(data: bytearray) -> None:
    """Overwrite three of the pages that hold exchanges."""
    for page in (60, 90, 120):
        data[page * 4096 : (page + 1) * 4096] = b"\xff" * 4096


def write_no_database(data: bytearray) -> None:
    data[:20] = b"x" * 20


def recovered(paths: Paths, catalog: SqliteCatalog) -> tuple[set[RootedPath], list[str]]:
    repairs: list[str] = []
    open_or_salvage_archive(paths, catalog, repairs).close()
    return set(contents_of(paths.archive_file)), repairs


def test_an_archive_whose_header_is_lost_is_saved_whole_with_its_wal(
    paths: Paths, catalog: SqliteCatalog
) -> None:
    contents = write_archive(paths.archive_file, 200)
    damage_both(paths.archive_file)
    damaged = {name: Path(f"{paths.archive_file}{name}").read_bytes() for name in ("", "-wal")}
    saved, (told,) = recovered(paths, catalog)
    assert contents_of(paths.archive_file) == contents
    assert saved == set(contents)
    assert "of 200 exchanges 200 were saved. Transcripts that still exist" in told
    (copy,) = paths.damaged_folder.rglob("conversations.sqlite")
    assert {name: Path(f"{copy}{name}").read_bytes() for name in damaged} == damaged
    record = catalog.get_record(TRANSCRIPT)
    assert record is not None
    assert not record.is_confirmed  # It is read again.


def test_bad_pages_found_after_an_unclean_stop_cost_what_is_on_them_and_that_is_named(
    paths: Paths, catalog: SqliteCatalog
) -> None:
    contents = write_archive(paths.archive_file, 200)
    with closing(sqlite3.connect(paths.archive_file)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    damage(paths.archive_file, overwrite_content_pages)
    catalog.set_meta("clean", "0")
    saved, (told,) = recovered(paths, catalog)
    lost = set(contents) - saved
    assert 1 <= len(lost) <= 40
    assert saved < set(contents)
    assert f"of 200 exchanges {len(saved)} were saved; {len(lost)} could not be read" in told
    (names,) = paths.damaged_folder.rglob(archive_recovery.LOST_EXCHANGES_FILE)
    assert set(names.read_text().splitlines()) == {f"{each.root}{each.path}" for each in lost}


@pytest.mark.parametrize("page", [0, 5, 40])
def test_a_damaged_page_of_the_wal_costs_no_other_commit(
    paths: Paths, catalog: SqliteCatalog, page: int
) -> None:
    # SQLite stops at the damaged page without a word, and deletes the WAL with all commits behind it.
    contents = write_archive(paths.archive_file, 200)

    def flip(data: bytearray) -> None:
        data[32 + page * (24 + 4096) + 300] ^= 1

    damage(Path(f"{paths.archive_file}-wal"), flip)
    saved, (told,) = recovered(paths, catalog)
    assert "its write-ahead log is damaged" in told
    assert len(contents) - len(saved) <= 10


@pytest.mark.parametrize("lost", ["emptied", "deleted"])
def test_what_is_in_the_wal_of_a_lost_archive_is_saved(
    paths: Paths, catalog: SqliteCatalog, lost: str
) -> None:
    write_archive(paths.archive_file, 200)
    paths.archive_file.unlink()
    if lost == "emptied":
        paths.archive_file.touch()
    saved, (told,) = recovered(paths, catalog)
    assert len(saved) >= 80
    assert "the file is empty beside its write-ahead log" in told


def test_a_wal_whose_last_transaction_was_interrupted_is_sound(
    paths: Paths, catalog: SqliteCatalog
) -> None:
    write_archive(paths.archive_file, 200)

    def tear(data: bytearray) -> None:
        del data[len(data) // 2 :]

    damage(Path(f"{paths.archive_file}-wal"), tear)
    saved, repairs = recovered(paths, catalog)
    assert repairs == []
    assert 100 <= len(saved) < 200


def test_a_sound_archive_is_opened_as_it_is_after_an_unclean_stop(
    paths: Paths, catalog: SqliteCatalog
) -> None:
    contents = write_archive(paths.archive_file, 40)
    catalog.set_meta("clean", "0")
    saved, repairs = recovered(paths, catalog)
    assert (saved, repairs) == (set(contents), [])
    assert not paths.damaged_folder.exists()


def test_damage_that_was_found_while_running_is_salvaged_at_the_next_start(
    paths: Paths, catalog: SqliteCatalog
) -> None:
    contents = write_archive(paths.archive_file, 40)
    record_archive_damage(paths, StoreDamagedError(f"{paths.catalog_file} is damaged"))
    assert recovered(paths, catalog)[1] == []  # It was about another file.
    record_archive_damage(paths, StoreDamagedError(f"{paths.archive_file} is damaged (a page)"))
    saved, (told,) = recovered(paths, catalog)
    assert saved == set(contents)
    assert "was damaged (a page could not be read)" in told
    assert recovered(paths, catalog)[1] == []  # Once.


def test_a_locked_archive_is_neither_moved_nor_replaced(
    paths: Paths, catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_connection, "_LOCK_TIMEOUT_S", 0)
    contents = write_archive(paths.archive_file, 40)
    with closing(sqlite3.connect(paths.archive_file, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreUnavailableError, match="another program has locked"):
            open_or_salvage_archive(paths, catalog, [])
        other.execute("ROLLBACK")
    assert not paths.damaged_folder.exists()
    assert recovered(paths, catalog) == (set(contents), [])


@pytest.mark.parametrize("step", ["copy", "write"])
def test_a_salvage_without_space_leaves_the_damaged_archive_in_place(
    paths: Paths, catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    contents = write_archive(paths.archive_file, 40)
    damage_both(paths.archive_file)
    before = paths.archive_file.read_bytes()

    def refuse(*_: object) -> None:
        if step == "copy":
            raise OSError(28, "No space left on device")
        raise StoreUnavailableError("the disk is full")

    with monkeypatch.context() as patch:
        name = "_copy_readable" if step == "copy" else "salvage_archive"
        patch.setattr(archive_recovery, name, refuse)
        with pytest.raises(StoreUnavailableError):
            open_or_salvage_archive(paths, catalog, [])
    assert paths.archive_file.read_bytes() == before
    assert list(paths.damaged_folder.iterdir()) == []
    assert recovered(paths, catalog)[0] == set(contents)


@pytest.mark.parametrize("died_before", ["rename", "replace", "marking"])
def test_a_start_that_is_killed_while_it_saves_an_archive_is_completed_by_the_next_one(
    paths: Paths, catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch, died_before: str
) -> None:
    contents = write_archive(paths.archive_file, 40)
    damage_both(paths.archive_file)

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if died_before == "marking":
            patch.setattr(archive_recovery, "_mark_for_reread", die)
        else:
            patch.setattr(Path, died_before, die)
        with pytest.raises(KeyboardInterrupt):
            open_or_salvage_archive(paths, catalog, [])
    assert paths.archive_file.exists(), "there is one at any moment"
    assert recovered(paths, catalog)[0] == set(contents)


def test_an_archive_that_is_missing_is_told_and_its_transcripts_are_read_again(
    paths: Paths, catalog: SqliteCatalog
) -> None:
    saved, (told,) = recovered(paths, catalog)
    assert saved == set()
    assert "was missing" in told
    record = catalog.get_record(TRANSCRIPT)
    assert record is not None
    assert not record.is_confirmed


@pytest.mark.parametrize("seed", range(3))
def test_an_archive_that_the_disk_cannot_read_in_places_is_saved_around_them(
    paths: Paths, catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    contents = write_archive(paths.archive_file, 100)
    damage_both(paths.archive_file)
    random, real_pread = Random(seed), os.pread  # noqa: S311 - any pages
    bad = {random.randrange(150) * 4096 for _ in range(3)}

    def failing_pread(descriptor: int, size: int, offset: int) -> bytes:
        if offset in bad and size == 4096:
            raise OSError(5, "Input/output error")
        return real_pread(descriptor, size, offset)

    monkeypatch.setattr(os, "pread", failing_pread)
    saved, (told,) = recovered(paths, catalog)
    assert saved <= set(contents)
    assert len(saved) >= 40
    assert "were saved" in told


def test_an_archive_with_the_text_of_one_exchange_damaged_is_damaged(paths: Paths) -> None:
    write_archive(paths.archive_file, 20)
    with closing(ArchiveWriter(paths.archive_file)) as archive:
        archive._db.execute("UPDATE exchanges SET content=x'789c00' WHERE id=5")
        (path,) = archive._db.execute("SELECT path FROM exchanges WHERE id=5").fetchone()
        with pytest.raises(StoreDamagedError, match="the text of"):
            archive.read(RootedPath(ROOT, path))


@pytest.mark.parametrize("clean", ["1", "0"])
def test_the_whole_archive_is_only_read_after_an_unclean_stop(
    paths: Paths, catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch, clean: str
) -> None:
    contents = write_archive(paths.archive_file, 20)
    read: list[ArchiveWriter] = []

    def is_intact(archive: ArchiveWriter) -> bool:
        read.append(archive)
        return False

    closed: list[ArchiveWriter] = []
    real_close = ArchiveWriter.close

    def close(archive: ArchiveWriter) -> None:
        closed.append(archive)
        real_close(archive)

    monkeypatch.setattr(ArchiveWriter, "is_intact", is_intact)
    monkeypatch.setattr(ArchiveWriter, "close", close)
    catalog.set_meta("clean", clean)
    saved, repairs = recovered(paths, catalog)
    assert saved == set(contents)
    assert (len(read), len(repairs)) == ((0, 0) if clean == "1" else (1, 1))
    assert all("was damaged (pages of it are damaged)" in told for told in repairs)
    assert set(read) <= set(closed)


def test_an_archive_that_opening_finds_damaged_is_salvaged_with_that_reason(
    paths: Paths, catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = write_archive(paths.archive_file, 20)
    opened: list[Path] = []
    real_open = ArchiveWriter.__init__

    def open_archive(archive: ArchiveWriter, file: Path) -> None:
        opened.append(file)
        if len(opened) == 1:
            raise StoreDamagedError("its schema is damaged", "")
        real_open(archive, file)

    monkeypatch.setattr(ArchiveWriter, "__init__", open_archive)
    saved, (told,) = recovered(paths, catalog)
    assert saved == set(contents)
    assert "was damaged (its schema is damaged)" in told
    assert opened[0] == opened[-1] == paths.archive_file


def test_a_complete_salvaged_file_takes_over_at_the_start_and_nothing_is_salvaged_again(
    paths: Paths, catalog: SqliteCatalog
) -> None:
    salvaged = write_archive(Path(f"{paths.archive_file}-salvaged"), 20)
    with closing(sqlite3.connect(f"{paths.archive_file}-salvaged")) as db:
        db.execute("PRAGMA journal_mode=DELETE")
    write_archive(paths.archive_file, 40)
    damage_both(paths.archive_file)
    Path(f"{paths.archive_file}-damaged").touch()
    assert recovered(paths, catalog) == (set(salvaged), [])
    assert not paths.damaged_folder.exists()
    assert not Path(f"{paths.archive_file}-damaged").exists()
    assert not Path(f"{paths.archive_file}-salvaged").exists()


def test_an_emptied_archive_is_told_like_a_missing_one(
    paths: Paths, catalog: SqliteCatalog
) -> None:
    paths.archive_file.touch()
    assert "was missing" in recovered(paths, catalog)[1][0]


def test_a_new_archive_without_any_transcript_is_no_news(paths: Paths) -> None:
    with SqliteCatalog(paths.catalog_file) as empty:
        assert recovered(paths, empty) == (set(), [])


@pytest.mark.parametrize(
    ("count", "named"),
    [
        (0, "of 5 exchanges 5 were saved. "),
        (1, 'of 6 exchanges 5 were saved; 1 could not be read: "talks/0". '),
        (3, '; 3 could not be read: "talks/0", "talks/1", "talks/2". '),
        (12, '"talks/8", "talks/9" and 2 more. '),
    ],
)
def test_at_most_ten_lost_exchanges_are_named_in_the_message(count: int, named: str) -> None:
    lost = tuple(RootedPath("talks", f"/{number}") for number in range(count))
    told = archive_recovery._describe(SalvageResult(5, lost), "why", Path("aside"))
    assert named in told
    assert "was damaged (why): of " in told
    assert "(the damaged copy is in aside)" in told


@pytest.mark.parametrize("about", ["archive", "catalog", "neither"])
@pytest.mark.usefixtures("catalog")
def test_opening_is_tried_again_only_after_damage_of_a_database(paths: Paths, about: str) -> None:
    file = {"archive": paths.archive_file, "catalog": paths.catalog_file}.get(about, "the table")
    calls: list[str] = []

    @archive_recovery.retry_after_damage
    def open_index(_: Paths, what: str) -> str:
        calls.append(what)
        if len(calls) == 1:
            raise StoreDamagedError(f"{file} is damaged")
        return "opened"

    if about == "neither":
        with pytest.raises(StoreDamagedError, match="the table"):
            open_index(paths, "index")
    else:
        assert open_index(paths, "index") == "opened"
    assert calls == ["index"] * (1 if about == "neither" else 2)
    assert Path(f"{paths.archive_file}-damaged").exists() == (about == "archive")
    assert Path(f"{paths.catalog_file}-damaged").exists() == (about == "catalog")


def test_a_full_disk_is_told_with_what_to_do(
    paths: Paths, catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_archive(paths.archive_file, 20)
    damage_both(paths.archive_file)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archive_recovery, "_copy_readable", full)
    with pytest.raises(StoreUnavailableError, match="cannot be saved now: No space") as refused:
        open_or_salvage_archive(paths, catalog, [])
    assert "conversations.sqlite" in refused.value.hint


def test_what_an_interrupted_salvage_left_is_not_used(paths: Paths, catalog: SqliteCatalog) -> None:
    contents = write_archive(paths.archive_file, 20)
    damage_both(paths.archive_file)
    for suffix in ("", "-wal", "-shm", "-journal"):
        Path(f"{paths.archive_file}-salvaging{suffix}").write_bytes(b"half written")
    assert recovered(paths, catalog)[0] == set(contents)
    assert not list(paths.archive_file.parent.glob("*-salvaging*"))


def test_a_copy_has_zeros_where_the_disk_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, real_pread = tmp_path / "source", os.pread
    source.write_bytes(b"x" * 10_000)
    flushed: list[int] = []

    def failing_pread(descriptor: int, size: int, offset: int) -> bytes:
        if offset == 4096:
            raise OSError(5, "Input/output error")
        return real_pread(descriptor, size, offset)

    monkeypatch.setattr(os, "pread", failing_pread)
    monkeypatch.setattr(os, "fsync", lambda file: flushed.append(os.fstat(file).st_size))
    archive_recovery._copy_readable(source, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"x" * 4096 + bytes(4096) + b"x" * 1808
    assert flushed == [10_000]


@pytest.mark.parametrize("fails", ["copy", "write"])
def test_a_copy_that_cannot_even_be_deleted_does_not_hide_why_it_failed(
    paths: Paths, catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    write_archive(paths.archive_file, 20)
    damage_both(paths.archive_file)

    def fail(*_: object) -> None:
        if fails == "copy":
            raise OSError(28, "No space left on device")
        raise StoreUnavailableError("No space left on device")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    name = "_copy_readable" if fails == "copy" else "salvage_archive"
    monkeypatch.setattr(archive_recovery, name, fail)
    monkeypatch.setattr(os, "rmdir", refuse)
    with pytest.raises(StoreUnavailableError, match="No space left"):
        open_or_salvage_archive(paths, catalog, [])


def test_the_folders_of_roots_and_groups_outlive_the_pages_that_held_them(
    paths: Paths, catalog: SqliteCatalog
) -> None:
    with closing(ArchiveWriter(paths.archive_file)) as archive:
        archive.attach_root("gone", "/old")
        write_archive(paths.archive_file, 20)
        with archive.transaction():
            for table in ("exchanges", "sessions", "carriers"):
                archive._db.execute(f"UPDATE {table} SET root='gone'")
        archive.detach_root("gone", 1)
        write_archive(paths.archive_file, 20, seed=1)
        archive.attach_root(ROOT, "/talks")
        recorded = archive.folder_records.all()
        archive_recovery.note_archive_state(archive, catalog)
        archive.truncate_wal()
    with closing(sqlite3.connect(paths.archive_file)) as db:
        pages = db.execute(
            "SELECT rootpage FROM sqlite_master WHERE name IN ('roots', 'detached')"
        ).fetchall()

    def overwrite_folders(data: bytearray) -> None:
        for (page,) in pages:
            data[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096

    damage(paths.archive_file, overwrite_folders)
    catalog.set_meta("clean", "0")
    with closing(open_or_salvage_archive(paths, catalog, [])) as archive:
        assert archive.folder_records.all() == recorded
        assert archive.attach_root("other", "/old") == 20
