"""Every result code of SQLite, at each step of each database: the error class, and nothing is reset."""

from __future__ import annotations

import os
import resource
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest

from anchord.core import sqlite_connection
from anchord.core.sqlite_connection import translate_sqlite_errors
from anchord.core.sqlite_errors import RESULT_CODES
from anchord.core.types import Fingerprint, RootedPath
from anchord.errors import StoreDamagedError, StoreError, StoreUnavailableError
from anchord.sources.conversations.archive.reader import Archive
from anchord.sources.conversations.archive.writer import ArchiveWriter
from anchord.store.catalog.catalog import SqliteCatalog
from anchord.store.vector_cache import SqliteVectorCache

PRIMARY_CODES = {
    name: getattr(sqlite3, f"SQLITE_{name}")
    for name in [
        "ERROR",
        "INTERNAL",
        "PERM",
        "ABORT",
        "BUSY",
        "LOCKED",
        "NOMEM",
        "READONLY",
        "INTERRUPT",
        "IOERR",
        "CORRUPT",
        "NOTFOUND",
        "FULL",
        "CANTOPEN",
        "PROTOCOL",
        "EMPTY",
        "SCHEMA",
        "TOOBIG",
        "CONSTRAINT",
        "MISMATCH",
        "MISUSE",
        "NOLFS",
        "AUTH",
        "FORMAT",
        "RANGE",
        "NOTADB",
        "NOTICE",
        "WARNING",
    ]
}
DAMAGE = {"CORRUPT", "NOTADB"}
WAITABLE = {
    "PERM",
    "ABORT",
    "BUSY",
    "LOCKED",
    "NOMEM",
    "READONLY",
    "INTERRUPT",
    "IOERR",
    "FULL",
    "CANTOPEN",
    "PROTOCOL",
    "SCHEMA",
    "AUTH",
}
RAISED_AS = {
    **dict.fromkeys(("INTERNAL", "NOTFOUND"), sqlite3.InternalError),
    **dict.fromkeys(
        ("CORRUPT", "NOTADB", "AUTH", "NOLFS", "FORMAT", "NOTICE", "WARNING"), sqlite3.DatabaseError
    ),
    **dict.fromkeys(("CONSTRAINT", "MISMATCH"), sqlite3.IntegrityError),
    **dict.fromkeys(("MISUSE", "RANGE"), sqlite3.InterfaceError),
    "TOOBIG": sqlite3.DataError,
}
"""The class that Python's sqlite3 raises, where it is not OperationalError."""
FILE = RootedPath("talks", "a.jsonl")


@dataclass(frozen=True)
class Store:
    """A database, in the steps of the tests."""

    name: str
    open: Callable[[Path], Any]
    read: Callable[[Any], object]
    write: Callable[[Any], None]


def write_archive(archive: ArchiveWriter) -> None:
    with archive.transaction():
        archive.upsert_transcript_file(FILE, Fingerprint(1, 1, 1, 1, 1))


CATALOG = Store(
    "state.sqlite",
    SqliteCatalog,
    lambda catalog: catalog.get_meta("key"),
    lambda catalog: catalog.delete_root_records("talks"),
)
ARCHIVE = Store(
    "conversations.sqlite", ArchiveWriter, lambda archive: archive.get_meta("key"), write_archive
)
STORES = [CATALOG, ARCHIVE]
STEPS = {"open": "PRAGMA journal_mode", "read": "SELECT", "write": "BEGIN", "commit": "COMMIT"}
"""Step -> the first words of the statement that fails in it."""


def error_of(name: str) -> Exception:
    if name == "NOMEM":
        return MemoryError()
    error = RAISED_AS.get(name, sqlite3.OperationalError)(f"provoked {name}")
    error.sqlite_errorcode = PRIMARY_CODES[name] | 7 << 8  # An extended code.
    return error


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, statement: str, name: str) -> Iterator[None]:
    """Let SQLite fail in each statement that begins so."""

    class Failing(sqlite3.Cursor):
        def execute(self, sql: str, values: Any = ()) -> Self:  # noqa: ANN401 - as sqlite3 has it
            if sql.startswith(statement):
                raise error_of(name)
            return super().execute(sql, values)

    class FailingChecked(sqlite_connection.CheckedCursor, Failing):  # type: ignore[misc]  # signatures
        pass

    with monkeypatch.context() as patch:
        patch.setattr(sqlite_connection, "CheckedCursor", FailingChecked)
        yield


def use(store: Store, file: Path, step: str) -> None:
    with closing(store.open(file)) as opened:
        if step == "read":
            store.read(opened)
        elif step != "open":
            store.write(opened)


def test_the_table_names_every_primary_result_code_of_sqlite() -> None:
    assert set(RESULT_CODES) == set(PRIMARY_CODES.values()) == set(range(1, 29))


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.name)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", PRIMARY_CODES)
def test_a_result_code_is_damage_waitable_or_refused_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store, step: str, name: str
) -> None:
    file = tmp_path / store.name
    store.open(file).close()
    before = file.read_bytes()
    with failing(monkeypatch, STEPS[step], name), pytest.raises(StoreError) as raised:
        use(store, file, step)
    # A statement that the tables do not fit, while the file is opened: its schema is damaged.
    steps_of_open = ("open", "read") if store is ARCHIVE else ("open",)
    is_schema = name == "ERROR" and step in steps_of_open
    assert isinstance(raised.value, StoreDamagedError) == (name in DAMAGE or is_schema)
    assert isinstance(raised.value, StoreUnavailableError) == (name in WAITABLE)
    assert str(file) in raised.value.message
    assert raised.value.hint
    assert "\n" not in raised.value.message + raised.value.hint
    assert file.read_bytes() == before
    use(store, file, step)  # The same call works after the fault.


@pytest.mark.parametrize("name", PRIMARY_CODES)
def test_the_vector_cache_starts_again_only_if_its_file_is_of_no_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    file = tmp_path / "vectors.sqlite"
    is_of_no_use = name in {*DAMAGE, "FULL", "ERROR"}
    with closing(SqliteVectorCache(file)) as cache:
        cache.put({"a": b"1234"}, 1)
        with failing(monkeypatch, "SELECT key", name):
            assert cache.get(["a"]) == {}
        assert (cache.get(["a"]) == {}) == is_of_no_use
        with failing(monkeypatch, "COMMIT", name):
            cache.put({"b": b"1234"}, 1)
        if not is_of_no_use:
            with failing(monkeypatch, "DELETE", name), pytest.raises(StoreError):
                cache.clear()
    with failing(monkeypatch, "CREATE INDEX", name), pytest.raises(StoreError):
        SqliteVectorCache(file)
    assert file.exists()


# Real errors, where this machine can provoke them


@contextmanager
def locked(file: Path) -> Iterator[None]:
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


def do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_connection, "_LOCK_TIMEOUT_S", 0)


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.name)
def test_a_file_that_another_program_has_locked_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    do_not_wait(monkeypatch)
    file = tmp_path / store.name
    store.open(file).close()
    with locked(file), pytest.raises(StoreUnavailableError, match="another program has locked"):
        store.open(file)
    with closing(store.open(file)) as opened, closing(sqlite3.connect(file)) as other:
        other.execute("BEGIN IMMEDIATE")
        store.read(opened)
        with pytest.raises(StoreUnavailableError, match="another program has locked"):
            store.write(opened)


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.name)
def test_a_folder_in_place_of_the_file_cannot_be_opened(tmp_path: Path, store: Store) -> None:
    (tmp_path / store.name).mkdir()
    with pytest.raises(StoreUnavailableError, match="cannot be opened"):
        store.open(tmp_path / store.name)
    assert (tmp_path / store.name).is_dir()


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.name)
def test_a_full_disk_is_no_damage(tmp_path: Path, store: Store) -> None:
    with closing(store.open(tmp_path / store.name)) as opened:
        pages = opened._db.execute("PRAGMA page_count").fetchone()[0]
        opened._db.execute(f"PRAGMA max_page_count={pages}")
        with (
            pytest.raises(StoreUnavailableError, match=r"disk of .* is full"),
            opened._db.transaction(),
        ):
            opened._db.execute("INSERT INTO meta VALUES('big', hex(zeroblob(100000)))")
        assert store.read(opened) == ""


@pytest.mark.parametrize(("free", "reason"), [(0, "disk of .* is full"), (1 << 30, "disk failed")])
def test_a_log_index_that_cannot_grow_on_a_full_disk_is_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, reason: str
) -> None:
    failure = sqlite3.OperationalError("disk I/O error")
    failure.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
    space = SimpleNamespace(f_bavail=free // 4096, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda _: space)
    with (
        pytest.raises(StoreUnavailableError, match=reason),
        translate_sqlite_errors(tmp_path / "state.sqlite"),
    ):
        raise failure


def write_much(store: Any) -> None:  # noqa: ANN401 - either store
    with store._db.transaction():
        store._db.execute("PRAGMA cache_size=1")
        for number in range(20):
            store._db.execute(f"INSERT INTO meta VALUES('{number}', hex(zeroblob(50000)))")


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.name)
def test_a_limit_on_file_sizes_is_no_damage(tmp_path: Path, store: Store) -> None:
    with closing(store.open(tmp_path / store.name)) as opened:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
        try:
            with pytest.raises(StoreUnavailableError):
                write_much(opened)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert store.read(opened) == ""
        store.write(opened)


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.name)
def test_a_read_only_connection_refuses_to_write_and_is_no_damage(
    tmp_path: Path, store: Store
) -> None:
    store.open(tmp_path / store.name).close()
    connection = sqlite_connection.open_sqlite(tmp_path / store.name, read_only=True)
    with closing(connection), pytest.raises(StoreUnavailableError, match="read-only"):
        connection.execute("INSERT INTO meta VALUES('a','b')")


@pytest.mark.parametrize(
    ("provoke", "message"),
    [
        (lambda db: db.set_authorizer(lambda *_: sqlite3.SQLITE_DENY), "access to .* was denied"),
        (lambda db: db.set_progress_handler(lambda: 1, 1), "was interrupted"),
    ],
)
@pytest.mark.parametrize("store", STORES, ids=lambda store: store.name)
def test_a_refused_and_an_interrupted_read_are_no_damage(
    tmp_path: Path, store: Store, provoke: Callable[[sqlite3.Connection], None], message: str
) -> None:
    with closing(store.open(tmp_path / store.name)) as opened:
        provoke(opened._db)
        with pytest.raises(StoreUnavailableError, match=message):
            store.read(opened)
        opened._db.set_authorizer(None)
        opened._db.set_progress_handler(None, 0)


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.name)
def test_a_value_that_is_too_large_is_refused(tmp_path: Path, store: Store) -> None:
    with closing(store.open(tmp_path / store.name)) as opened:
        opened._db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1000)
        with pytest.raises(StoreError, match="too large") as raised:
            opened._db.execute("INSERT INTO meta VALUES('a', hex(zeroblob(5000)))")
        assert type(raised.value) is StoreError


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.name)
def test_a_contradictory_record_is_refused(tmp_path: Path, store: Store) -> None:
    with closing(store.open(tmp_path / store.name)) as opened:
        opened._db.execute("INSERT INTO meta VALUES('a', 'b')")
        with pytest.raises(StoreError, match="contradicts") as raised:
            opened._db.execute("INSERT INTO meta VALUES('a', 'b')")
        assert type(raised.value) is StoreError


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.name)
@pytest.mark.parametrize(
    "content", [b"no database at all\n" * 500, b"SQLite format 3\0" + b"\xff" * 9000]
)
def test_a_file_that_is_no_database_is_damaged_and_stays_as_it_is(
    tmp_path: Path, store: Store, content: bytes
) -> None:
    file = tmp_path / store.name
    file.write_bytes(content)
    with pytest.raises(StoreDamagedError, match="is damaged"):
        store.open(file)
    assert file.read_bytes() == content


def test_a_bad_page_found_while_rows_are_fetched_is_damage(tmp_path: Path) -> None:
    file = tmp_path / "conversations.sqlite"
    with closing(ArchiveWriter(file)) as archive, archive.transaction():
        for number in range(2000):
            archive.upsert_transcript_file(
                RootedPath("talks", f"{number}"), Fingerprint(1, 1, 1, 1, 1)
            )
    with closing(sqlite3.connect(file)) as db:
        (root_page,) = db.execute(
            "SELECT rootpage FROM sqlite_master WHERE name='carriers'"
        ).fetchone()
    data = bytearray(file.read_bytes())
    child = int.from_bytes(data[(root_page - 1) * 4096 + 8 :][:4])  # The last leaf of the table.
    data[(child - 1) * 4096 : child * 4096] = b"\xff" * 4096
    file.write_bytes(data)
    with closing(Archive(file, read_only=True)) as reader:
        rows = iter(reader._db.execute("SELECT source FROM carriers NOT INDEXED"))
        assert next(rows)
        with pytest.raises(StoreDamagedError, match="is damaged"):
            list(rows)


def test_an_error_in_another_thread_is_translated_as_well(tmp_path: Path) -> None:
    with closing(SqliteCatalog(tmp_path / "state.sqlite")) as catalog:
        found: list[BaseException] = []

        def read() -> None:
            try:
                catalog._db.execute("SELECT * FROM nothing")
            except StoreError as error:
                found.append(error)

        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
    assert type(found[0]) is StoreError


@contextmanager
def limited(kind: int, soft: int) -> Iterator[None]:
    former = resource.getrlimit(kind)
    resource.setrlimit(kind, (soft, former[1]))
    try:
        yield
    finally:
        resource.setrlimit(kind, former)


def test_a_database_that_no_descriptor_is_left_for_names_the_limit(tmp_path: Path) -> None:
    SqliteCatalog(tmp_path / "state.sqlite").close()
    opened = []
    try:
        with limited(resource.RLIMIT_NOFILE, 64):
            with suppress(OSError):
                while True:
                    opened.append(os.open(os.devnull, os.O_RDONLY))
            os.close(opened.pop())  # One is left: enough for the database, and not for its log.
            with pytest.raises(StoreUnavailableError, match="too many open files") as refused:
                SqliteCatalog(tmp_path / "state.sqlite")
        assert "ulimit -n" in refused.value.hint
    finally:
        for descriptor in opened:
            os.close(descriptor)


def test_a_limit_on_the_size_of_files_is_named(tmp_path: Path) -> None:
    with (
        limited(resource.RLIMIT_FSIZE, 8_192),
        pytest.raises(StoreUnavailableError, match="a limit on the size of files") as refused,
    ):
        SqliteCatalog(tmp_path / "state.sqlite")
    assert "ulimit -f" in refused.value.hint
    SqliteCatalog(tmp_path / "state.sqlite").close()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_folder_in_the_place_of_a_database_is_not_blamed_on_the_disk(
    tmp_path: Path, *, read_only: bool
) -> None:
    (tmp_path / "state.sqlite").mkdir()
    with pytest.raises(StoreError) as refused:
        SqliteCatalog(tmp_path / "state.sqlite", read_only=read_only)
    assert "disk" not in refused.value.message
    assert "is a file" in refused.value.hint or "not a file" in refused.value.message
