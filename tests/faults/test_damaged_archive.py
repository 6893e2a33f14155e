"""Bad pages in the archive under a running service are found, reported and repaired; all else goes on."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from conversations.conftest import answer, claude
from faults.service import SETTINGS, Service, until

from anchord.config.file import load_config
from anchord.core import sqlite_connection
from anchord.daemon import main as daemon_main
from anchord.errors import StoreDamagedError, StoreUnavailableError
from anchord.sources.conversations.archive.reader import Archive
from anchord.sources.conversations.archive.writer import ArchiveWriter

SESSIONS = 40
GONE = SESSIONS // 2
"""Number of deleted transcripts, which only the archive has."""


@pytest.fixture
def talking(tmp_path: Path) -> Iterator[Service]:
    """Return a stopped service whose archive has the only copy of half of its conversations."""
    talks = tmp_path / "talks"
    talks.mkdir()
    made = Service(tmp_path)
    made.settings = (
        SETTINGS
        + f'[[root]]\npath = "{made.folder}"\n'
        + f'[[root]]\npath = "{talks}"\nkind = "conversations"\n'
    )
    for number in range(SESSIONS):
        session = f"s{number:02}"
        data = claude((f"Question {session}?", answer(session, 3)), session=session)
        (talks / f"{session}.jsonl").write_bytes(data)
    made.notes(2)
    made.start().sync()
    for number in range(GONE):
        (talks / f"s{number:02}.jsonl").unlink()
    made.sync()
    made.stop()
    yield made
    made.stop()


def damage_a_page(file: Path) -> None:
    """Overwrite a leaf of the exchanges' table: the file opens, and most of it can be read."""
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name='exchanges'").fetchone()
    data = bytearray(file.read_bytes())
    child = int.from_bytes(data[(root - 1) * 4096 + 8 :][:4])
    data[(child - 1) * 4096 : child * 4096] = b"\xff" * 4096
    file.write_bytes(data)


def exchange_count(service: Service) -> int:
    with closing(Archive(service.places.archive_file, read_only=True)) as archive:
        return int(archive.counts_by_root()["talks"]["exchanges"])


def restarted(service: Service) -> Service:
    """Do what the daemon does when its writer asks for a new process."""
    until(lambda: service.restarts)
    assert "is damaged" in service.restarts.pop()
    service.stop()
    service.restarts.clear()
    service.start().sync()
    return service


@pytest.fixture
def start_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the start from reading exchanges without a transcript, one of which is on the bad page."""
    monkeypatch.setattr(ArchiveWriter, "orphans_by_last_file", lambda *_: ())


def test_a_bad_page_that_the_start_meets_is_repaired_without_a_restart(talking: Service) -> None:
    damage_a_page(talking.places.archive_file)
    talking.start().sync()
    assert f"of {SESSIONS} exchanges" in talking.status()["repairs"][0]
    assert exchange_count(talking) == SESSIONS
    assert talking.is_right()
    assert talking.restarts == []


@pytest.mark.usefixtures("start_reads_nothing")
def test_a_bad_page_is_found_at_rest_and_repaired_by_one_restart(talking: Service) -> None:
    damage_a_page(talking.places.archive_file)
    talking.start()
    restarted(talking)
    assert f"of {SESSIONS} exchanges" in talking.status()["repairs"][0]
    # Those with transcripts are read again, and the index gives the others back.
    assert exchange_count(talking) == SESSIONS
    (copy,) = talking.places.damaged_folder.rglob("conversations.sqlite")
    assert copy.stat().st_size
    talking.write("after.md", "# After\n\nIndexed after the repair.\n")
    talking.sync()
    assert "after.md" in talking.paths()
    assert talking.is_right()
    assert talking.restarts == []


@pytest.mark.usefixtures("start_reads_nothing")
def test_a_bad_page_that_the_writer_meets_is_repaired_by_one_restart(
    talking: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anchord.daemon.writer.page_check.PageCheck.run_if_due", lambda *_: None)
    damage_a_page(talking.places.archive_file)
    talking.start()
    talks = talking.base / "talks"
    for number in range(GONE, SESSIONS):  # One of them has its exchange on the bad page.
        with (talks / f"s{number:02}.jsonl").open("ab") as stream:
            more = claude(("More?", "Yes, more."), session=f"s{number:02}", start=1)
            stream.write(more)
    restarted(talking)
    assert "were saved" in talking.status()["repairs"][0]
    assert talking.is_right()
    assert talking.restarts == []


def test_status_names_an_archive_that_cannot_be_read_and_does_not_fail(
    talking: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anchord.daemon.writer.page_check.PageCheck.run_if_due", lambda *_: None)
    talking.start().sync()

    def refuse(*_: object) -> None:
        raise StoreUnavailableError("another program has locked the archive", "wait")

    monkeypatch.setattr(Archive, "counts_by_root", refuse)
    talking.methods.status.build_report(talking.writer.catalog)
    assert "another program has locked the archive" in talking.reasons()


def test_status_that_meets_damage_names_it_and_has_the_pages_checked_once(
    talking: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anchord.daemon.writer.page_check.PageCheck.run_if_due", lambda *_: None)
    talking.start().sync()
    checks: list[float] = []
    monkeypatch.setattr("anchord.daemon.archive_counts._MAX_AGE_S", -1.0)
    page_check = talking.pipeline.maintenance.page_check
    page_check._next_check = float("inf")

    def damaged(*_: object) -> None:
        raise StoreDamagedError("a page of the archive is damaged", "restart")

    monkeypatch.setattr(Archive, "counts_by_root", damaged)
    report = talking.methods.status.build_report(talking.writer.catalog)
    assert any("a page of the archive is damaged" in reason for reason in report.degraded)
    checks.append(page_check._next_check)
    page_check._next_check = float("inf")
    talking.methods.status.build_report(talking.writer.catalog)
    checks.append(page_check._next_check)
    assert checks == [float("-inf"), float("inf")]


def test_an_archive_that_is_locked_at_the_start_stays_as_it_is(
    talking: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_connection, "_LOCK_TIMEOUT_S", 0)
    with closing(sqlite3.connect(talking.places.archive_file, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreUnavailableError, match="another program has locked") as raised:
            talking.start()
        other.execute("ROLLBACK")
    assert raised.value.exit_code == 75
    assert not talking.places.damaged_folder.exists()
    talking.start().sync()
    assert exchange_count(talking) == SESSIONS


def test_an_archive_that_is_locked_while_running_blocks_with_its_reason_until_it_is_free(
    talking: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_connection, "_LOCK_TIMEOUT_S", 0)
    talking.start().sync()
    new = claude(("Another question?", answer("another")), session="another")
    with closing(sqlite3.connect(talking.places.archive_file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        (talking.base / "talks" / "another.jsonl").write_bytes(new)
        until(lambda: "another program has locked" in talking.reasons())
        other.execute("ROLLBACK")
    talking.sync()
    assert exchange_count(talking) == SESSIONS + 1
    assert talking.restarts == []
    assert not talking.places.damaged_folder.exists()


def test_under_systemd_a_start_waits_for_a_locked_file(
    talking: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []
    pauses: list[float] = []

    def refuse_twice(*_: object) -> str:
        tries.append(1)
        if len(tries) < 3:
            raise StoreUnavailableError("locked", "wait")
        return "opened"

    def open_daemon() -> object:
        return daemon_main._open_writer_when_available(
            talking.places, load_config(talking.places.config_file), [], "project"
        )

    monkeypatch.setattr(daemon_main, "open_writer", refuse_twice)
    monkeypatch.setattr(time, "sleep", pauses.append)
    with pytest.raises(StoreUnavailableError):
        open_daemon()
    monkeypatch.setenv("NOTIFY_SOCKET", str(talking.base / "nobody"))
    tries.clear()
    assert open_daemon() == "opened"
    assert pauses == [1.0, 2.0]
