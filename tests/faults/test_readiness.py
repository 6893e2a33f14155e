"""Group J: no answer says "up to date", "equal" or "not found" too early; the table is repaired at run time."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

import lance
import pytest
from faults.service import PATIENCE_S, Service, until
from live.conftest import delete_folder
from sample_messages import message

from anchord.cli.commands.index import _print_verify_result
from anchord.core.types import RootedPath
from anchord.daemon.writer import index_check
from anchord.errors import AnchordError, PausedError, StoreError
from anchord.index.integrity.table_repair import audit_index
from anchord.index.session import IndexWriter
from anchord.ipc.messages.searching import SearchAnswer
from anchord.ipc.messages.upkeep import VerifyAnswer
from anchord.mcp.answers import search_answer
from anchord.store.table import maintenance as table_maintenance
from anchord.store.table.damage import list_table_files
from anchord.store.table.table import LanceStore

pytestmark = pytest.mark.usefixtures("pylance_here")
NOTES = 40


def table(service: Service) -> Path:
    return service.home / "data" / "lance" / "chunks.lance"


def rows(service: Service) -> int:
    return service.pipeline.submit(service.writer.store.count_rows).result(PATIENCE_S)


def killed(service: Service) -> None:
    """Stop without recording a clean stop."""
    service.stop()
    with sqlite3.connect(service.places.catalog_file) as catalog:
        catalog.execute("UPDATE meta SET value='0' WHERE key='clean'")
    catalog.close()


def indexed(service: Service) -> Service:
    """Index some notes, compact them, and change a few: fragments, deletions and index parts."""
    service.notes(NOTES)
    service.start().sync()
    service.pipeline.submit(service.pipeline.maintenance.compact).result(PATIENCE_S)
    for number in range(3):
        service.write(f"{number:03}.md", f"# Changed {number}\n\nOther words {number}.\n")
        service.sync()
    return service


def in_use(service: Service, kind: str) -> list[Path]:
    """Return the files of a kind that the newest version of the table refers to."""
    dataset = lance.dataset(str(table(service)))
    fragments = dataset.get_fragments()
    parts = [part for index in dataset.describe_indices() for part in index.segments]
    by_kind: dict[str, Callable[[], list[Path]]] = {
        "data": lambda: [Path("data") / f.path for each in fragments for f in each.data_files()],
        "deletions": lambda: [Path(f) for each in fragments if (f := each.deletion_file())],
        "indices": lambda: [
            file
            for part in parts
            for file in (table(service) / "_indices" / str(part.uuid)).iterdir()
        ],
        "manifest": lambda: [min((table(service) / "_versions").glob("*.manifest"))],
    }
    return [table(service) / file for file in by_kind[kind]()]


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    dice = Random(7)  # noqa: S311 - any bytes
    for _ in range(40):
        content[dice.randrange(len(content))] ^= 0x5A
    file.write_bytes(content)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-40])


def empty(file: Path) -> None:
    file.write_bytes(b"")


DAMAGES: dict[str, Callable[[Path], None]] = {
    "lost": Path.unlink,
    "flipped": flip,
    "cut": cut,
    "emptied": empty,
}


# The barrier and the audit


def test_sync_after_a_crash_returns_only_once_lost_rows_are_back(service: Service) -> None:
    service.notes(NOTES)
    service.start().sync()
    killed(service)
    shutil.rmtree(table(service))
    service.start()
    assert service.ask("sync")["synced"]
    assert service.methods.status.store.count_rows() == NOTES


def test_status_says_checking_while_the_audit_is_due_and_not_idle(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.notes(3)
    service.start().sync()
    killed(service)
    states = []

    def audit(writer: IndexWriter) -> Sequence[RootedPath]:
        states.append(service.status()["state"])
        return audit_index(writer)

    monkeypatch.setattr(index_check, "audit_index", audit)
    service.start()
    until(lambda: service.status()["state"] == "idle")
    assert states == ["checking"]


# Held deletions


def test_verify_counts_what_is_held_and_is_not_equal_while_something_is(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    service.notes(60, "gone/")
    service.notes(40)
    service.start().sync()
    (service.folder / "gone").rename(service.base / "gone")
    service.sync()
    answer = service.ask("verify")
    assert (answer["ok"], answer["held"], answer["differences"]) == (False, {"docs": 60}, [])
    assert (answer["files"], answer["chunks"]) == (100, 100)
    _print_verify_result(message(VerifyAnswer, answer), repair=False)
    printed = capsys.readouterr()
    assert '60 files of "docs"' in printed.out
    assert "confirm-delete" in printed.err
    found = service.ask("search", query="words", mode="text")
    assert found["coverage"]["held"] == {"docs": 60}
    assert "anchord confirm-delete docs" in found["note"]


# The table is repaired at run time


@pytest.mark.parametrize(
    ("kind", "damage"),
    [
        pytest.param(
            kind,
            damage,
            marks=()
            if damage == "lost" or (kind, damage) == ("data", "flipped")
            else pytest.mark.slow,
        )
        for kind in ("data", "deletions", "indices", "manifest")
        for damage in DAMAGES
    ],
)
def test_a_damaged_file_of_the_table_is_repaired_while_the_daemon_runs(
    service: Service, kind: str, damage: str
) -> None:
    indexed(service)
    before = service.embedded()
    file = max(in_use(service, kind), key=lambda file: file.stat().st_size)
    DAMAGES[damage](file)
    service.write("new.md", "# New\n\nQuite new words.\n")
    assert service.is_right()
    lost = NOTES if kind == "data" else 0
    assert service.embedded() - before <= lost + 1
    assert service.restarts == []
    if kind in {"data", "indices"}:
        assert service.status()["repairs"]
    service.stop()
    service.start()
    assert service.is_right()
    assert service.embedded() == 0


def test_vectors_are_salvaged_when_a_deletion_file_is_lost(service: Service) -> None:
    indexed(service)
    before = service.embedded()
    for file in in_use(service, "deletions"):
        file.unlink()
    assert service.is_right()
    assert service.embedded() == before


def test_the_rows_of_lost_files_are_looked_up_for_many_at_once(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.notes(450)
    service.start().sync()
    real, asked = LanceStore.ids_of_files, []

    def count(store: LanceStore, files: Sequence[RootedPath]) -> Mapping[RootedPath, Sequence[str]]:
        asked.append(len(files))
        return real(store, files)

    monkeypatch.setattr(LanceStore, "ids_of_files", count)
    for file in in_use(service, "data"):
        file.unlink()
    service.sync()
    # The backlog comes in batches of 200 files, in an order of their own.
    assert sum(asked) == 450
    assert len(asked) <= 4
    assert service.is_right()


@pytest.mark.parametrize("method", ["search", "verify"])
def test_a_query_that_cannot_read_the_table_repairs_it_and_answers(
    service: Service, method: str
) -> None:
    indexed(service)
    max(in_use(service, "data"), key=lambda file: file.stat().st_size).unlink()
    params = {"query": "note", "mode": "text"} if method == "search" else {"repair": True}
    answer = service.ask(method, **params)
    if method == "verify":
        assert answer["ok"]
    else:  # The rows that were lost may not be written again yet: then the answer says so.
        assert answer["groups"] or not answer["complete"]
    assert service.status()["repairs"]


def test_a_file_lost_while_nothing_waits_is_noticed_at_rest(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anchord.daemon.writer.maintenance._CHECK_EVERY_S", 0.05)
    indexed(service)
    max(in_use(service, "data"), key=lambda file: file.stat().st_size).unlink()
    until(lambda: service.status()["repairs"])
    until(lambda: rows(service) == NOTES)


@pytest.mark.parametrize("kind", ["data", "indices", "manifest"])
def test_a_file_lost_right_before_a_clean_stop_is_repaired_at_the_next_start(
    service: Service, kind: str
) -> None:
    indexed(service)
    file = max(in_use(service, kind), key=lambda file: file.stat().st_size)
    service.pipeline.submit(file.unlink).result(PATIENCE_S)
    service.stop()
    service.start()
    assert service.is_right()


def test_a_file_lost_while_nobody_runs_is_noticed_after_a_clean_stop(service: Service) -> None:
    indexed(service)
    service.stop()
    max(in_use(service, "data"), key=lambda file: file.stat().st_size).unlink()
    service.start().sync()
    assert rows(service) == NOTES
    assert "data files of the table" in service.status()["repairs"][0]


def test_a_compaction_does_not_delete_old_versions_of_a_damaged_table(service: Service) -> None:
    indexed(service)

    def lose_and_compact() -> set[str]:
        in_use(service, "data")[0].unlink()
        files = set(list_table_files(table(service)))
        service.pipeline.maintenance.compact(idle=True)
        return files - set(list_table_files(table(service)))

    assert service.pipeline.submit(lose_and_compact).result(PATIENCE_S) == set()
    assert service.is_right()


def test_files_that_maintenance_deletes_are_not_taken_for_lost(service: Service) -> None:
    indexed(service)
    service.pipeline.submit(
        lambda: table_maintenance.erase_deleted_rows(service.writer.store)
    ).result(PATIENCE_S)
    service.pipeline.submit(service.pipeline.maintenance.compact).result(PATIENCE_S)
    service.sync()
    assert service.status()["repairs"] == []


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_forget_ends_though_a_file_of_the_table_is_damaged(
    service: Service, monkeypatch: pytest.MonkeyPatch, *, is_interrupted: bool
) -> None:
    """Rewriting the table without the rows was what failed: for good, with a wrong reason."""
    gone = service.write("gone.md", "# Gone\n\nThese words go.\n")
    indexed(service)
    if is_interrupted:
        with monkeypatch.context() as fault:
            fault.setattr(table_maintenance, "erase_deleted_rows", _fail)
            with pytest.raises(AnchordError, match="in use"):
                service.ask("forget", path=str(gone))
        service.stop()
    for file in in_use(service, "data"):
        flip(file)
    if is_interrupted:
        service.start().sync()
        assert "`forget`" in str(service.status()["repairs"])
        assert "is complete now" in str(service.status()["repairs"])
    else:
        assert service.ask("forget", path=str(gone))["files"] == 1
        service.sync()
    assert "gone.md" not in service.paths()
    assert service.is_right()


def _fail(_: object) -> None:
    raise StoreError("a file is in use", "")


# Pause


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("sync", {}),
        ("sync", {"timeout": 2.0}),
        ("index", {}),
        ("search", {"query": "words", "fresh": True}),
        ("rescan", {}),
        ("reindex", {}),
        ("rebuild", {}),
        ("verify", {}),
        ("confirm-delete", {"name": "docs"}),
    ],
)
def test_a_command_that_would_wait_says_at_once_that_indexing_is_paused(
    service: Service, method: str, params: dict[str, object]
) -> None:
    service.notes(2)
    service.start().sync()
    service.ask("pause")
    with pytest.raises(PausedError) as refused:
        service.ask(method, **params)
    assert "paused" in refused.value.message
    assert "anchord resume" in refused.value.hint
    service.ask("resume")
    service.sync()


def test_a_pause_ends_the_calls_of_sync_that_wait(service: Service) -> None:
    service.start().sync()
    errors: list[AnchordError] = []
    inside, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        inside.set()
        assert go_on.wait(PATIENCE_S)

    def wait() -> None:
        try:
            service.ask("sync")
        except AnchordError as error:
            errors.append(error)

    service.pipeline.submit(hold)
    assert inside.wait(PATIENCE_S)
    waiter = threading.Thread(target=wait)
    waiter.start()
    until(lambda: service.pipeline._barrier.has_waiters)
    service.ask("pause")
    waiter.join(PATIENCE_S)
    go_on.set()
    assert [type(error) for error in errors] == [PausedError]


# While it indexes


def test_a_search_says_how_much_is_indexed_yet(service: Service) -> None:
    service.notes(5)
    service.start().sync()
    complete = service.ask("search", query="words", mode="text")
    assert (complete["complete"], complete["note"]) == (True, "")
    service.pipeline.submit(service.writer.catalog.mark_all_for_reread).result(PATIENCE_S)
    service.ask("pause")
    service.pipeline.submit(lambda: service.pipeline.work_queue.reconcile("docs")).result(
        PATIENCE_S
    )
    found = service.ask("search", query="xyzzyplugh", mode="text")
    assert (found["complete"], found["groups"]) == (False, [])
    assert found["coverage"]["found"] == 5
    assert "0 of 5 files are up to date" in found["note"]
    note = search_answer(message(SearchAnswer, found))["note"]
    assert "0 of 5 files" in note
    assert "Try other words" not in note
    service.ask("resume")
    service.sync()
    until(lambda: service.ask("search", query="words", mode="text")["complete"])


# One count of files and of chunks


def test_status_verify_and_index_count_the_same_files_and_chunks(service: Service) -> None:
    service.notes(4)
    service.write("empty.md", "")
    service.write(
        "long.md", "# Long\n\n" + "".join(f"## S{n}\n\n{'word ' * 90}\n\n" for n in range(9))
    )
    service.start().sync()
    status, verified, run = service.status(), service.ask("verify"), service.ask("index")
    assert status["files"] == verified["files"] == run["files"]
    assert status["chunks"] == verified["chunks"] == run["chunks"]
    assert sum(root["files"] for root in status["roots"]) == status["files"]


# The data folder


def test_a_deleted_data_folder_asks_for_a_restart_and_is_not_written_to(service: Service) -> None:
    service.notes(3)
    service.start().sync()
    delete_folder(service.places.data_folder)
    service.write("new.md", "# New\n\nNew words.\n")
    until(lambda: service.restarts)
    assert "was deleted" in service.restarts[0]
    with pytest.raises(StoreError, match="was deleted"):
        service.ask("sync")
    service.stop()
    assert not service.places.data_folder.exists()


def test_a_data_folder_that_was_put_in_place_of_another_asks_for_a_restart(
    service: Service,
) -> None:
    service.notes(3)
    service.start().sync()
    service.places.data_folder.rename(service.base / "old data")
    service.places.data_folder.mkdir()
    until(lambda: service.restarts)
    # Between the two calls above it was deleted.
    assert "was replaced" in service.restarts[0] or "was deleted" in service.restarts[0]
    service.stop()
    assert list(service.places.data_folder.iterdir()) == []
