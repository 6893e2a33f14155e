"""A snapshot copies what changed, shares the rest with the one before, and appears as a whole or not at all."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from anchord._version import __version__
from anchord.errors import AlreadyRunningError, StoreDamagedError, StoreError
from anchord.store.backup import snapshot as module
from anchord.store.backup.check import SnapshotChecker
from anchord.store.backup.copying import hash_file
from anchord.store.backup.databases import pin_database
from anchord.store.backup.manifest import MANIFEST_NAME, Manifest, load_manifest
from anchord.store.backup.pin import BackupSources, PinnedHome
from anchord.store.backup.snapshot import SnapshotResult, write_snapshot

TABLE = "data/lance/chunks.lance"
MTIME_NS = 1_700_000_000_000_000_123


class Home:
    """A home with a database, a configuration, a table of three files and a damaged copy."""

    def __init__(self, base: Path) -> None:
        """Write its files."""
        self.base = base
        self.table = base / "table"
        self.target = base / "backups"
        self.small = {"config.toml": b"[watch]\n"}
        self.progress: list[tuple[int, int]] = []
        self.remote_table = ""
        self.write("data/a.lance", b"rows " * 100)
        self.write("_indices/i/one.idx", b"index")
        self.write("_versions/1.manifest", b"version one")
        self.damaged = base / "home" / "damaged" / "then" / "state.sqlite"
        self.damaged.parent.mkdir(parents=True)
        self.damaged.write_bytes(b"damaged")
        with closing(sqlite3.connect(base / "state.sqlite")) as database:
            database.execute("CREATE TABLE t(a TEXT)")
            database.commit()

    def write(self, name: str, content: bytes) -> None:
        """Write a file of the table, always with the same time of change."""
        file = self.table / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        file.write_bytes(content)
        os.utime(file, ns=(MTIME_NS, MTIME_NS))

    def backup(self, keep: int | None = None) -> SnapshotResult:
        """Write a snapshot."""
        sources = BackupSources(
            config_file=self.base / "config.toml",
            data_folder=self.base / "home",
            promotion_marker=self.base / "promoting",
            tables_folder=None,
            remote_table=self.remote_table,
        )
        with closing(pin_database(self.base / "state.sqlite")) as database:
            pinned = PinnedHome(
                sources=sources,
                databases={"data/state.sqlite": database},
                small_files=self.small,
                table=self.table,
            )
            self.progress.clear()
            return write_snapshot(
                pinned, self.target, keep, lambda done, total: self.progress.append((done, total))
            )

    def names(self) -> list[str]:
        """Return what the backup folder holds."""
        return sorted(each.name for each in self.target.iterdir())


def _files_of(table: Path) -> Iterator[str]:
    yield from sorted(str(file.relative_to(table)) for file in table.rglob("*") if file.is_file())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setattr(module, "list_version_files", _files_of)
    return Home(tmp_path)


def problems(folder: Path) -> list[str]:
    return [
        each
        for each in SnapshotChecker(lambda _: None).find_problems(folder)
        if "opened" not in each
    ]


def inodes(result: SnapshotResult) -> dict[str, int]:
    files = [file for file in result.folder.rglob("*") if file.is_file()]
    return {str(file.relative_to(result.folder)): file.stat().st_ino for file in files}


def test_a_snapshot_holds_each_file_with_its_size_time_and_digest(home: Home) -> None:
    home.remote_table = "db://somewhere"
    made = home.backup()
    manifest = load_manifest(made.folder)
    assert [entry.path for entry in manifest.files] == [
        "config.toml",
        "data/damaged/then/state.sqlite",
        f"{TABLE}/_indices/i/one.idx",
        f"{TABLE}/_versions/1.manifest",
        f"{TABLE}/data/a.lance",
        "data/state.sqlite",
    ]
    for entry in manifest.files:
        file = made.folder / entry.path
        assert (entry.size, entry.sha256) == hash_file(file, lambda _: None)
        assert entry.mtime_ns == file.stat().st_mtime_ns
    assert manifest.files[4].mtime_ns == MTIME_NS
    assert (manifest.anchord, manifest.home) == (__version__, str(home.base / "home"))
    created = manifest.created.replace("-", "").replace(":", "")
    assert created >= made.folder.name.replace("-", "")  # The name is given before the copying.
    assert made.remote_table == manifest.remote_table == "db://somewhere"
    assert made.file_count == made.copied_count == 6
    assert made.total_bytes == made.copied_bytes == sum(each.size for each in manifest.files)
    assert made.deleted_snapshots == ()
    assert problems(made.folder) == []
    for folder in (home.target, made.folder, made.folder / "data", made.folder / TABLE / "data"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for file in (each for each in made.folder.rglob("*") if each.is_file()):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_snapshot_without_changes_shares_every_file_with_the_one_before(home: Home) -> None:
    first, second = home.backup(), home.backup()
    assert (second.copied_count, second.copied_bytes) == (0, 0)
    assert (second.file_count, second.total_bytes) == (first.file_count, first.total_bytes)
    one, other = inodes(first), inodes(second)
    assert one.pop(MANIFEST_NAME) != other.pop(MANIFEST_NAME)
    assert one == other
    assert load_manifest(first.folder).files == load_manifest(second.folder).files
    assert home.backup().copied_count == 0


def test_a_file_with_a_random_name_is_shared_without_reading_it_and_a_version_is_read(
    home: Home,
) -> None:
    """A new generation of the table counts its versions from 1 again: same name, another file."""
    first = home.backup()
    for name in ("data/a.lance", "_indices/i/one.idx", "_versions/1.manifest"):
        home.write(name, bytes(reversed((home.table / name).read_bytes())))
    second = home.backup()
    one, other = inodes(first), inodes(second)
    differing = {path for path in one if one[path] != other[path]}
    assert differing == {MANIFEST_NAME, f"{TABLE}/_versions/1.manifest"}
    assert (second.folder / TABLE / "_versions/1.manifest").read_bytes() == b"eno noisrev"
    assert (second.copied_count, second.copied_bytes) == (1, 11)
    assert problems(second.folder) == []


@pytest.mark.parametrize("change", ["size", "time"])
def test_a_file_of_another_size_or_time_is_copied(home: Home, change: str) -> None:
    home.backup()
    if change == "size":
        home.write("data/a.lance", b"other")
    else:
        home.write("data/a.lance", b"sworr" * 100)
        os.utime(home.table / "data/a.lance", ns=(MTIME_NS, MTIME_NS + 1))
    second = home.backup()
    copied = (second.folder / TABLE / "data/a.lance").read_bytes()
    assert copied == (home.table / "data/a.lance").read_bytes()
    assert (second.copied_count, second.copied_bytes) == (1, len(copied))


def test_a_file_that_was_only_touched_gives_up_its_space_again(home: Home) -> None:
    first = home.backup()
    os.utime(home.table / "data/a.lance", ns=(1, 1))
    second = home.backup()
    assert second.copied_count == 0
    path = f"{TABLE}/data/a.lance"
    assert inodes(second)[path] == inodes(first)[path]


@pytest.mark.parametrize("damage", ["deleted", "truncated", "a link"])
def test_a_file_that_the_snapshot_before_lost_is_copied_again(home: Home, damage: str) -> None:
    first = home.backup()
    for name in (f"{TABLE}/data/a.lance", "config.toml"):
        victim = first.folder / name
        content = victim.read_bytes()
        victim.unlink()
        if damage == "truncated":
            victim.write_bytes(content[:-1])
        elif damage == "a link":
            victim.symlink_to(home.base / "elsewhere")
            (home.base / "elsewhere").write_bytes(content)
    second = home.backup()
    assert second.copied_count == 2
    assert problems(second.folder) == []


def test_a_changed_file_of_the_snapshot_before_is_not_shared(home: Home) -> None:
    first = home.backup()
    (first.folder / "config.toml").write_bytes(b"[xxxxx]\n")
    second = home.backup()
    assert (second.folder / "config.toml").read_bytes() == b"[watch]\n"
    assert second.copied_count == 1


def test_without_a_readable_manifest_the_snapshot_before_that_is_shared_with(home: Home) -> None:
    first = home.backup()
    second = home.backup()
    (second.folder / MANIFEST_NAME).write_bytes(b"{")
    third = home.backup()
    assert third.copied_count == 0
    (first.folder / MANIFEST_NAME).write_bytes(
        msgspec.json.encode(Manifest(version=99, anchord="9", created="", home="", files=()))
    )
    (third.folder / MANIFEST_NAME).unlink()
    assert home.backup().copied_count == third.file_count


def test_a_file_system_without_hard_links_gets_copies(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(1, "Operation not permitted")

    first = home.backup()
    monkeypatch.setattr(os, "link", refuse)
    second = home.backup()
    assert second.copied_count == second.file_count == first.file_count
    assert problems(second.folder) == []


def test_links_and_pipes_among_the_damaged_files_are_left_out(home: Home) -> None:
    (home.damaged.parent / "link").symlink_to(home.damaged)
    os.mkfifo(home.damaged.parent / "pipe")
    made = home.backup()
    assert made.file_count == 6


def test_progress_counts_the_bytes_that_are_copied_and_ends_with_all(home: Home) -> None:
    first = home.backup()
    plain = first.total_bytes - len(home.small["config.toml"])
    assert home.progress[-1] == (plain, plain)
    assert all(done <= total == plain for done, total in home.progress)
    assert [done for done, _ in home.progress] == sorted(done for done, _ in home.progress)
    home.backup()
    (database,) = (
        e
        for e in load_manifest(first.folder).files
        if e.path.endswith("/state.sqlite") and "damaged" not in e.path
    )
    versions = len(b"version one")
    assert home.progress[-1] == (database.size + versions, database.size + versions)


def test_a_backup_needs_just_the_space_of_what_it_copies(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = home.backup()
    plain = first.total_bytes - len(home.small["config.toml"])
    home.target.rename(home.base / "first")
    monkeypatch.setattr(module, "free_bytes", lambda _: plain - 1)
    with pytest.raises(StoreError, match=f"needs {plain:,} bytes, and its disk has {plain - 1:,}"):
        home.backup()
    assert home.names() == []
    monkeypatch.setattr(module, "free_bytes", lambda _: plain)
    home.backup()


@pytest.mark.parametrize(("keep", "left"), [(None, 4), (4, 4), (3, 3), (1, 1)])
def test_keep_counts_the_new_snapshot(home: Home, keep: int | None, left: int) -> None:
    made = [home.backup().folder.name for _ in range(3)]
    last = home.backup(keep)
    everything = [*made, last.folder.name]
    assert home.names() == everything[4 - left :]
    assert last.deleted_snapshots == tuple(everything[: 4 - left])


def test_what_an_interrupted_backup_left_is_deleted_first(home: Home) -> None:
    first = home.backup()
    half = home.target / "2026-01-01T000000Z.partial"
    half.mkdir()
    (half / "file").touch()
    second = home.backup()
    assert home.names() == [first.folder.name, second.folder.name]


def test_a_cancelled_backup_leaves_only_the_one_before(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = home.backup()

    def cancel(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as fault:
        fault.setattr(module, "write_file", cancel)
        with pytest.raises(KeyboardInterrupt):
            home.backup()
    assert home.names() == [first.folder.name]
    assert home.backup().copied_count == 0


def test_a_damaged_database_is_not_backed_up(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(*_: object) -> None:
        raise StoreDamagedError("state.sqlite is damaged", "")

    monkeypatch.setattr(module, "copy_database", damaged)
    with pytest.raises(StoreDamagedError):
        home.backup()
    assert home.names() == []


def test_two_backups_into_one_folder_do_not_run_at_once(home: Home) -> None:
    home.backup()
    open_before = len(os.listdir("/proc/self/fd"))
    with module._locked(home.target), pytest.raises(AlreadyRunningError, match="is running"):
        home.backup()
    assert len(os.listdir("/proc/self/fd")) == open_before
    home.backup()
    assert len(home.names()) == 2


def test_folders_and_the_backup_folder_are_flushed_before_and_after_it_appears(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[tuple[str, list[str]]] = []

    def note(path: Path) -> None:
        flushed.append((path.name, home.names()))

    monkeypatch.setattr(module, "flush", note)
    monkeypatch.setattr(module, "flush_folders", note)
    name = home.backup().folder.name
    assert flushed == [(f"{name}.partial", [f"{name}.partial"]), ("backups", [name])]


# Checking


def test_check_names_each_file_that_is_not_as_it_was_written(home: Home) -> None:
    folder = home.backup().folder
    manifest = load_manifest(folder)
    (folder / "config.toml").write_bytes(b"[xxxxx]\n")
    (folder / "data/state.sqlite").unlink()
    (folder / "data/damaged/then/state.sqlite").write_bytes(b"short")
    (folder / TABLE / "_indices/i/one.idx").unlink()
    (folder / TABLE / "_indices/i/one.idx").mkdir()
    (folder / "foreign").touch()
    found = problems(folder)
    assert found[:5] == [
        "config.toml: was changed",
        "data/damaged/then/state.sqlite: has 5 bytes instead of 7",
        f"{TABLE}/_indices/i/one.idx: is not a regular file",
        "data/state.sqlite: is missing",
        "foreign: is not part of the backup",
    ]
    assert len(found) == 6  # And that the database cannot be opened.
    assert found[5].startswith("data/state.sqlite: ")
    assert len(manifest.files) == 6


def test_check_reads_shared_files_once_and_tells_how_many_bytes(home: Home) -> None:
    first, second = home.backup(), home.backup()
    read: list[int] = []
    checker = SnapshotChecker(read.append)
    for made in (first, second):
        list(checker.find_problems(made.folder))
    assert sum(read) == first.total_bytes


def test_check_looks_into_databases_whose_bytes_are_as_written(home: Home) -> None:
    made = home.backup()
    database = made.folder / "data/state.sqlite"
    content = database.read_bytes()
    database.write_bytes(b"x" * len(content))
    digest = hash_file(database, lambda _: None)[1]
    manifest = load_manifest(made.folder)
    files = tuple(
        msgspec.structs.replace(entry, sha256=digest)
        if entry.path == "data/state.sqlite"
        else entry
        for entry in manifest.files
    )
    (made.folder / MANIFEST_NAME).write_bytes(
        msgspec.json.encode(msgspec.structs.replace(manifest, files=files))
    )
    (problem,) = problems(made.folder)
    assert problem.startswith("data/state.sqlite: ")
    assert "not a database" in problem


def test_check_says_that_a_table_does_not_open_only_where_its_files_are_sound(home: Home) -> None:
    folder = home.backup().folder
    checker = SnapshotChecker(lambda _: None)
    assert list(checker.find_problems(folder)) == [f"{TABLE}: cannot be opened as a table"]
    (folder / TABLE / "data/a.lance").unlink()
    assert list(SnapshotChecker(lambda _: None).find_problems(folder)) == [
        f"{TABLE}/data/a.lance: is missing"
    ]
