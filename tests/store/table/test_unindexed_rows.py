"""The writer's cache of row addresses gives the same answers as the table, after any changes."""

from __future__ import annotations

import shutil
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import lance
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anchord.core.types import Row, Vector
from anchord.errors import StoreError
from anchord.store.table import unindexed_rows as lance_recent
from anchord.store.table.event_loop import run_sync
from anchord.store.table.maintenance import maintain
from anchord.store.table.schema import rows_to_arrow
from anchord.store.table.table import LanceStore

IDS = [f"id {n}" for n in range(6)]
KEYS = [f"key {n}" for n in range(4)]
VECTORS: dict[str, Vector] = {
    key: array("f", [n, 1.0, 0.0, 0.0]).tobytes() for n, key in enumerate(KEYS)
}


class Change(NamedTuple):
    """Run a commit: look up, write some rows, delete others."""

    coming: list[str]
    key: str
    leaving: list[str]


class Write(NamedTuple):
    """Rows that are not looked up before."""

    coming: list[str]
    key: str


class Delete(NamedTuple):
    """Rows that are not looked up before."""

    leaving: list[str]


class Fold(NamedTuple):
    """Run maintenance."""

    merge: bool


class Open(NamedTuple):
    """Continue in another process."""


ids = st.lists(st.sampled_from(IDS), min_size=1, max_size=3, unique=True)
keys = st.sampled_from(KEYS)
changes = st.builds(Change, ids, keys, ids)
steps = st.one_of(
    changes,
    changes,
    st.builds(Write, ids, keys),
    st.builds(Delete, ids),
    st.builds(Fold, st.booleans()),
    st.builds(Open),
)


def opened(folder: Path) -> LanceStore:
    return LanceStore(str(folder / "lance"), 4, "model")


def row(row_id: str, key: str) -> Row:
    return Row(
        id=row_id,
        doc_id="doc",
        root="root",
        path="a.md",
        kind="markdown",
        header_path="",
        content_hash="hash",
        vector_key=key,
        text=f"text of {row_id}",
        search_text="text",
    )


def write(store: LanceStore, rows: Sequence[str], key: str, absent: Sequence[str] = ()) -> None:
    store.upsert([row(each, key) for each in rows], VECTORS, absent)


def folded(folder: Path, rows: Sequence[str] = IDS, key: str = KEYS[0]) -> LanceStore:
    """Create a table whose indices contain every row, and a writer that knows it."""
    store = opened(folder)
    write(store, rows, key)
    assert maintain(store) == []
    assert store.count_unindexed_rows() == 0
    assert store._row_writer.unindexed_rows.rows == {}
    return store


@settings(
    max_examples=settings().max_examples // 2,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(done=st.lists(steps, min_size=4, max_size=14), most=st.sampled_from([2, 1_000]))
def test_a_look_up_finds_what_is_there_after_any_write_delete_and_compaction(
    tmp_path: Path, done: Sequence[Change | Write | Delete | Fold | Open], most: int
) -> None:
    shutil.rmtree(tmp_path / "lance", ignore_errors=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lance_recent, "_MAX_ROWS", most)
        store, there = folded(tmp_path, IDS[:3]), dict.fromkeys(IDS[:3], KEYS[0])
        for step in done:
            match step:
                case Change(coming, key, leaving):
                    gone = [each for each in leaving if each not in coming]
                    looked = store.look_up_vectors([*gone, *coming], [key])
                    assert looked.keyed_vectors_by_id == {
                        each: (there[each], VECTORS[there[each]])
                        for each in [*gone, *coming]
                        if each in there
                    }
                    assert looked.vectors_by_key == (
                        {key: VECTORS[key]} if key in there.values() else {}
                    )
                    write(
                        store,
                        coming,
                        key,
                        [each for each in coming if each not in looked.keyed_vectors_by_id],
                    )
                    store.delete_rows(gone)
                    there = {
                        each: held for each, held in there.items() if each not in gone
                    } | dict.fromkeys(coming, key)
                case Write(coming, key):
                    write(store, coming, key)
                    there |= dict.fromkeys(coming, key)
                case Delete(leaving):
                    store.delete_rows(leaving)
                    there = {each: held for each, held in there.items() if each not in leaving}
                case Fold(merge):
                    assert maintain(store, merge_indices=merge) == []
                case Open():
                    store = opened(tmp_path)
            assert sorted(opened(tmp_path).all_ids()) == sorted(there)
        assert {each.id: each.vector_key for each in store.all_rows()} == there
        assert store.look_up_vectors(IDS, KEYS).keyed_vectors_by_id == {
            each: (key, VECTORS[key]) for each, key in there.items()
        }


def test_a_writer_remembers_from_a_fold_on_what_no_index_has(tmp_path: Path) -> None:
    store = folded(tmp_path, IDS[:4])
    write(store, IDS[3:5], KEYS[1])
    store.delete_rows(IDS[4:5])
    assert store._row_writer.unindexed_rows.rows == {IDS[3]: (KEYS[1], VECTORS[KEYS[1]])}
    assert store.count_unindexed_rows() == 1


def test_a_writer_that_did_not_write_them_all_looks_at_the_table(tmp_path: Path) -> None:
    write(folded(tmp_path, IDS[:1]), IDS[1:2], KEYS[1])
    store = opened(tmp_path)
    assert store.count_unindexed_rows() == 1
    assert store._row_writer.unindexed_rows.rows is None
    assert store.look_up_vectors(IDS, []).keyed_vectors_by_id.keys() == set(IDS[:2])


def test_a_first_index_of_many_rows_is_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lance_recent, "_MAX_ROWS", 3)
    store = folded(tmp_path, IDS[:1])
    write(store, IDS[1:], KEYS[1])
    assert store._row_writer.unindexed_rows.rows is None
    assert store.look_up_vectors(IDS, []).keyed_vectors_by_id.keys() == set(IDS)


def test_a_reader_takes_nothing_for_known(tmp_path: Path) -> None:
    writer = folded(tmp_path, IDS[:1])
    reader = LanceStore(str(tmp_path / "lance"), 4, "", read_only=True)
    assert reader.count_unindexed_rows() == 0
    write(writer, IDS[1:2], KEYS[1])
    assert reader.look_up_vectors(IDS, []).keyed_vectors_by_id.keys() == set(IDS[:2])


def test_after_a_write_that_failed_nothing_is_taken_for_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit may exist nevertheless: a full disk is reported before or after the rows are written."""
    store = folded(tmp_path, IDS[:1])

    class Failing:
        def __init__(self, table: object) -> None:
            self._table = table

        def __getattr__(self, name: str) -> object:
            return getattr(self._table, name)

        async def add(self, batch: object) -> None:
            await self._table.add(batch)  # type: ignore[attr-defined]
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(store._table, "handle", Failing(store._table.handle))
        with pytest.raises(StoreError):
            write(store, IDS[1:2], KEYS[1], IDS[1:2])
    assert store.look_up_vectors(IDS, []).keyed_vectors_by_id.keys() == set(IDS[:2])


def test_rows_that_another_program_moved_are_deleted_where_they_stand_now(tmp_path: Path) -> None:
    store = folded(tmp_path, IDS[:4])
    store.delete_rows(IDS[:1])
    store.look_up_vectors(IDS[1:2], [])
    before = store._row_writer.unindexed_rows.addresses_of(IDS[1:2])
    lance.dataset(store.dataset_uri).optimize.compact_files(materialize_deletions_threshold=0.0)
    run_sync(store._table.handle.checkout_latest())
    store.delete_rows(IDS[1:2])
    assert sorted(store.all_ids()) == IDS[2:4]
    store.look_up_vectors(IDS[2:3], [])
    assert before is not None
    assert store._row_writer.unindexed_rows.addresses_of(IDS[2:3]) != before


@pytest.mark.parametrize("indexed", [False, True])
def test_a_row_that_stands_twice_is_deleted_twice(tmp_path: Path, *, indexed: bool) -> None:
    """A writer that looked it up before knows only indexed rows: the repair does not look up."""
    store = folded(tmp_path, IDS[:2])
    run_sync(
        store._table.handle.add(rows_to_arrow([row(IDS[0], KEYS[0])], VECTORS, store._table.schema))
    )
    store.look_up_vectors(IDS[:1], [])
    store.delete_rows(IDS[2:])
    if indexed:
        assert maintain(store) == []
        store.look_up_vectors(IDS[:1], [])
    assert sorted(store.all_ids()) == [IDS[0], *IDS[:2]]
    store.delete_rows(IDS[:1])
    assert sorted(store.all_ids()) == IDS[1:2]
