"""The compaction process: same result as in this process, it can crash, and no writer starts meanwhile."""

from __future__ import annotations

import os
import random
import sys
from array import array
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import lance
import psutil
import pytest

from anchord.core.types import Row, SearchFilters
from anchord.store.table import compaction as lance_fold
from anchord.store.table import maintenance
from anchord.store.table.compaction import CompactionWorker, verify_fragments
from anchord.store.table.maintenance import erase_deleted_rows, maintain, slows_searches
from anchord.store.table.table import LanceStore
from anchord.store.table.version_files import delete_damaged_versions
from anchord.store.writer_lock import WriterLock, lock_holder_pid

VECTOR = array("f", [1.0, 0.0, 0.0, 0.0]).tobytes()
COMMITS = 6


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[WriterLock]:
    """Run a block with an index's lock."""
    (tmp_path / "data").mkdir()
    held = WriterLock(tmp_path / "data" / "anchord.lock")
    yield held
    held.release()


@pytest.fixture
def folding(lock: WriterLock) -> Iterator[CompactionWorker]:
    """Return a compactor that uses a process."""
    with closing(CompactionWorker(lock.descriptor)) as made:
        yield made


def numbered(number: int, search_text: str) -> Row:
    return Row(
        id=str(number),
        doc_id="doc",
        root="root",
        path="a.md",
        kind="markdown",
        header_path="",
        content_hash="hash",
        vector_key=f"key {number}",
        text="text",
        search_text=search_text,
    )


def filled(folder: Path, commits: int = COMMITS) -> LanceStore:
    """Make a table of several commits."""
    store = LanceStore(str(folder / "lance"), 4, "model")
    for number in range(commits):
        row = numbered(number, "text")
        store.upsert([row], {row.vector_key: VECTOR})
    return store


def test_a_table_is_folded_by_another_process_and_nothing_is_lost(
    tmp_path: Path, folding: CompactionWorker
) -> None:
    store = filled(tmp_path)
    assert store.stats().fragments == COMMITS
    assert maintain(store, compact=folding) == []
    assert store.stats().fragments == 1
    assert sorted(store.all_ids()) == [str(number) for number in range(COMMITS)]


def test_many_rows_in_no_index_slow_searches_until_they_are_compacted(tmp_path: Path) -> None:
    store = filled(tmp_path, 1)
    (row,) = store.all_rows()
    rows = [replace(row, id=f"x{number}") for number in range(200)]
    store.upsert(rows, {row.vector_key: VECTOR})
    assert slows_searches(store)
    maintain(store)
    assert not slows_searches(store)


def test_many_deleted_rows_slow_searches_until_they_are_compacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "MANY_DELETED_ROWS", 50)
    store = filled(tmp_path, 1)
    (row,) = store.all_rows()
    rows = [replace(row, id=f"x{number}") for number in range(100)]
    store.upsert(rows, {row.vector_key: VECTOR})
    maintain(store)
    store.delete_rows([f"x{number}" for number in range(49)])
    assert (store.stats().deleted_rows, slows_searches(store)) == (49, False)
    store.delete_rows(["x50"])
    assert (store.stats().deleted_rows, slows_searches(store)) == (50, True)
    maintain(store)
    assert (store.stats().deleted_rows, slows_searches(store)) == (0, False)


def test_the_library_that_folds_is_not_in_this_process(
    tmp_path: Path, folding: CompactionWorker
) -> None:
    before = "lance" in sys.modules
    maintain(filled(tmp_path), compact=folding)
    assert ("lance" in sys.modules) is before


def test_a_process_that_was_lost_is_reported_and_replaced(
    tmp_path: Path, folding: CompactionWorker
) -> None:
    store = filled(tmp_path)
    maintain(store, compact=folding)
    child = folding._child
    assert child is not None
    child.popen.kill()
    child.popen.wait()
    assert maintain(store, compact=folding) == []
    assert folding._child is not child


def test_a_process_that_ends_in_the_middle_is_reported(
    tmp_path: Path, folding: CompactionWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(tmp_path)
    program = tmp_path / "no-python"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o700)
    with monkeypatch.context() as fault:
        fault.setattr(sys, "executable", str(program))
        assert maintain(store, compact=folding) == [
            "the compaction process ended before it answered"
        ]
    assert maintain(store, compact=folding) == []


def test_it_ends_when_it_had_nothing_to_do_for_a_while(
    tmp_path: Path, folding: CompactionWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    maintain(filled(tmp_path), compact=folding)
    folding.stop_if_idle()
    assert folding._child is not None
    monkeypatch.setattr("anchord.store.table.compaction._IDLE_S", 0.0)
    folding.stop_if_idle()
    assert folding._child is None


def test_it_holds_the_writers_lock_as_long_as_it_lives(
    tmp_path: Path, lock: WriterLock, folding: CompactionWorker
) -> None:
    maintain(filled(tmp_path), compact=folding)
    child = folding._child
    assert child is not None
    assert (
        lock.descriptor in {int(name) for name in os.listdir(f"/proc/{child.popen.pid}/fd")}
        or sys.platform != "linux"
    )
    lock.release()  # As a writer that is killed does.
    assert lock_holder_pid(tmp_path / "data" / "anchord.lock") is not None
    folding.close()
    assert lock_holder_pid(tmp_path / "data" / "anchord.lock") is None
    lock.descriptor = os.open(tmp_path, os.O_RDONLY)  # For the fixture to close.


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills a process with its parent")
def test_it_is_gone_at_once_when_its_parent_is_killed(tmp_path: Path) -> None:
    program = """
import sys
from anchord.ipc.worker_process import WorkerProcess
child = WorkerProcess("anchord.store.table.compaction", ())
child.call_or_kill(60, {"dataset": "nowhere", "merge": False, "kept_s": 1.0})
print(child.popen.pid, flush=True)
sys.stdin.read()
"""
    with psutil.Popen(
        [sys.executable, "-c", program], stdin=-1, stdout=-1, text=True, cwd=tmp_path
    ) as parent:
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
        parent.wait()
    child.wait(timeout=60)


@pytest.mark.slow
def test_many_passes_leave_few_parts_of_an_index_and_few_fragments(tmp_path: Path) -> None:
    store = LanceStore(str(tmp_path / "lance"), 4, "model")
    most = 0
    for passes in range(1, 31):
        for number in (2 * passes, 2 * passes + 1):
            row = numbered(number, f"word{number}")
            store.upsert([row], {row.vector_key: VECTOR})
        assert maintain(store, merge_indices=passes % 10 == 0) == []
        most = max(most, parts(store))
        if passes % 10 == 0:
            assert (parts(store), store.stats().fragments) == (1, 1)
    assert most <= 11
    assert [
        len(store.search_by_words(f"word{number}", 5, SearchFilters())) for number in (2, 33, 61)
    ] == [1, 1, 1]


def test_all_fragments_and_parts_become_one_where_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lance_fold, "SMALL_FRAGMENT_ROWS", 8)
    store, _ = many(tmp_path, 30)
    maintain(store)
    for number in range(30, 40):
        row = numbered(number, f"word{number}")
        store.upsert([row], {row.vector_key: 4 * VECTOR})
    assert maintain(store, merge_indices=True) == []
    assert store.stats().fragments == 2
    assert maintain(store, merge_indices=True, merge_all=True) == []
    assert (parts(store), store.stats().fragments) == (1, 1)
    assert store.count_rows() == 40
    assert len(store.search_by_words("word35", 5, SearchFilters())) == 1


@pytest.mark.slow
def test_what_is_large_is_written_again_once_there_is_a_third_of_it_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lance_fold, "SMALL_FRAGMENT_ROWS", 8)
    store, _ = many(tmp_path, 100)
    maintain(store)
    (base,) = data_files(store)
    most, most_fragments = 0, 0
    for passes in range(1, 51):
        number = 100 + passes
        row = numbered(number, f"word{number}")
        store.upsert([row], {row.vector_key: 4 * VECTOR})
        assert maintain(store, merge_indices=passes % 10 == 0) == []
        most, most_fragments = max(most, parts(store)), max(most_fragments, store.stats().fragments)
        assert (base in data_files(store)) == (passes < 50)
        if passes % 10 == 0:
            assert parts(store) == {40: 4, 50: 1}.get(
                passes, 3
            )  # The first was made with the empty table.
    assert (most, most_fragments) == (13, 14)
    assert [
        len(store.search_by_words(f"word{number}", 5, SearchFilters()))
        for number in (101, 133, 150)
    ] == [1, 1, 1]


def data_files(store: LanceStore) -> set[str]:
    """Return the data files of the newest version."""
    return {
        file.path
        for fragment in lance.dataset(store.dataset_uri).get_fragments()
        for file in fragment.data_files()
    }


def parts(store: LanceStore) -> int:
    """Count the parts of the index with the most."""
    return max(len(index.segments) for index in lance.dataset(store.dataset_uri).describe_indices())


# The index of vectors


def many(folder: Path, count: int) -> tuple[LanceStore, dict[str, bytes]]:
    """Make a table of as many rows, each with a vector of its own."""
    choose = random.Random(1)  # noqa: S311 - the same numbers each time
    store = LanceStore(str(folder / "lance"), 16, "model")
    rows = [
        Row(
            id=f"{n:05}",
            doc_id="doc",
            root="root",
            path=f"{n % 7}.md",
            kind="markdown",
            header_path="",
            content_hash="hash",
            vector_key=f"key {n}",
            text="text",
            search_text="text",
        )
        for n in range(count)
    ]
    vectors = {
        row.vector_key: array("f", [choose.gauss(0, 1) for _ in range(16)]).tobytes()
        for row in rows
    }
    vectors["key 3"] = bytes(64)  # of a text that the model could not embed
    store.upsert(rows, vectors)
    return store, vectors


def test_a_large_table_gets_an_index_of_vectors_and_finds_what_it_found_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, vectors = many(tmp_path, 3_000)
    asked = [vectors[f"key {n}"] for n in range(100, 120)]
    before = [store.search_by_vector(each, 20, SearchFilters()) for each in asked]
    monkeypatch.setattr(lance_fold, "MIN_VECTOR_INDEX_ROWS", 3_001)
    assert (maintain(store), "vector_idx" in indices(store)) == ([], False)
    monkeypatch.setattr(lance_fold, "MIN_VECTOR_INDEX_ROWS", 3_000)
    assert (maintain(store), "vector_idx" in indices(store)) == ([], True)
    after = [store.search_by_vector(each, 20, SearchFilters()) for each in asked]
    assert [[found.id for found in each] for each in after] == [
        [found.id for found in each] for each in before
    ]
    found = store.search_by_vector(asked[0], 5, SearchFilters(path_glob="3.md"))
    assert len(found) == 5
    assert all(int(each.id) % 7 == 3 for each in found)


def test_rows_that_came_or_went_after_the_index_was_made_are_found_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lance_fold, "MIN_VECTOR_INDEX_ROWS", 1_000)
    store, vectors = many(tmp_path, 1_000)
    assert maintain(store) == []
    new = Row(
        id="new",
        doc_id="doc",
        root="root",
        path="new.md",
        kind="markdown",
        header_path="",
        content_hash="hash",
        vector_key="key new",
        text="text",
        search_text="text",
    )
    store.upsert([new], {"key new": vectors["key 5"]})
    store.delete_rows(["00005"])
    for _ in range(2):
        assert [
            each.id for each in store.search_by_vector(vectors["key 5"], 1, SearchFilters())
        ] == ["new"]
        assert "00003" not in {
            each.id for each in store.search_by_vector(vectors["key 5"], 1_000, SearchFilters())
        }
        assert maintain(store, merge_indices=True) == []


def test_what_was_purged_is_in_no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lance_fold, "MIN_VECTOR_INDEX_ROWS", 1_000)
    store, _ = many(tmp_path, 1_000)
    assert maintain(store) == []
    before = {path.parent.name for path in Path(store.dataset_uri).glob("_indices/*/*")}
    store.delete_rows(["00007"])
    erase_deleted_rows(store)
    after = {path.parent.name for path in Path(store.dataset_uri).glob("_indices/*/*")}
    assert "vector_idx" in indices(store)
    assert before & after == set()


def indices(store: LanceStore) -> set[str]:
    return {index.name for index in lance.dataset(store.dataset_uri).describe_indices()}


# Power


def test_nothing_old_goes_before_all_of_the_newest_version_was_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power loss in between, at least one version is complete."""
    store = filled(tmp_path)
    store.delete_rows(["0"])
    table = Path(store.dataset_uri)
    flushed: list[Path] = []
    dropped: list[set[Path]] = []
    fsync, cleanup = os.fsync, lance.LanceDataset.cleanup_old_versions

    def noting(descriptor: int) -> None:
        flushed.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    def watching(dataset: lance.LanceDataset, **options: object) -> object:
        dropped.append(set(flushed))
        return cleanup(dataset, **options)

    monkeypatch.setattr(os, "fsync", noting)
    monkeypatch.setattr(lance.LanceDataset, "cleanup_old_versions", watching)
    monkeypatch.setattr("anchord.store.table.maintenance._MIN_VERSION_AGE", timedelta(0))
    assert maintain(store) == []
    (before,) = dropped
    left = {
        file
        for file in table.rglob("*")
        if file.is_file() and file.name != "latest_version_hint.json"
    }
    needed = {
        file for file in left if "_transactions" not in file.parts
    }  # The transaction of a version is not read again.
    assert needed
    assert needed <= before
    assert {file.parent for file in needed} <= before


def test_where_a_file_of_the_newest_version_cannot_be_read_nothing_old_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(tmp_path)
    monkeypatch.setattr("anchord.store.table.maintenance._MIN_VERSION_AGE", timedelta(0))
    versions = store.stats().versions
    (spoiled, *_) = (Path(store.dataset_uri) / "data").iterdir()
    spoiled.write_bytes(spoiled.read_bytes()[:100])
    assert any(problem.startswith("deleting old versions failed") for problem in maintain(store))
    assert store.stats().versions >= versions


def test_an_old_version_that_cannot_be_read_keeps_no_other_from_being_deleted(
    tmp_path: Path,
) -> None:
    store = filled(tmp_path)
    versions = Path(store.dataset_uri) / "_versions"
    oldest, newest = max(versions.glob("*.manifest")), min(versions.glob("*.manifest"))
    for damaged in (b"", oldest.read_bytes()[:-30] + b"LANC", b"\xff" * 400 + b"LANC"):
        oldest.write_bytes(damaged)
        assert delete_damaged_versions(Path(store.dataset_uri)) == [oldest.name]
        assert newest.exists()
        oldest.write_bytes(damaged)
        erase_deleted_rows(store)
        assert len(list(versions.glob("*.manifest"))) == 1
        assert store.count_rows() == COMMITS
        maintain(store)
        newest = min(versions.glob("*.manifest"))


def test_old_versions_wait_until_there_are_very_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(tmp_path)
    monkeypatch.setattr("anchord.store.table.maintenance._MIN_VERSION_AGE", timedelta(0))
    monkeypatch.setattr("anchord.store.table.maintenance._KEPT_OF_MANY", timedelta(0))
    before = store.stats().versions
    assert maintain(store, drop_old_versions=False) == []
    assert store.stats().versions > before
    monkeypatch.setattr("anchord.store.table.maintenance._MANY_VERSIONS", before)
    assert maintain(store, drop_old_versions=False) == []
    assert store.stats().versions < before


def test_each_fragment_is_read_whole_once_and_again_when_rows_of_it_were_deleted(
    tmp_path: Path,
) -> None:
    store = filled(tmp_path)
    asked: list[int] = []

    class Watched:
        """A dataset that counts how many fragments it is asked to read."""

        def __init__(self) -> None:
            self._dataset = lance.dataset(store.dataset_uri)
            self.get_fragments = self._dataset.get_fragments

        def scanner(self, columns: list[str], fragments: list[object]) -> object:
            asked.append(len(fragments))
            return self._dataset.scanner(columns=columns, fragments=fragments)

    read: set[str] = set()
    for _ in range(2):
        verify_fragments(Watched(), read)
    maintain(store)
    verify_fragments(Watched(), read)
    store.delete_rows(["0"])
    verify_fragments(Watched(), read)
    assert asked == [COMMITS, 1, 1]
    assert len(read) == 1, "what is gone is forgotten"


def test_where_the_newest_version_cannot_be_flushed_nothing_old_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(tmp_path)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr("anchord.store.table.maintenance._MIN_VERSION_AGE", timedelta(0))
    (problem,) = maintain(store)
    assert problem.startswith("deleting old versions failed")
    assert store.stats().versions > 1
    assert len(store.all_ids()) == COMMITS
