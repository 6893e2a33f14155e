"""What the catalog keeps of the last commits: changes of files, and the successors of chunk ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from anchord.core.types import (
    ChunkDiff,
    ChunkRecord,
    FileRecord,
    FileUpdate,
    Fingerprint,
    RootedPath,
)
from anchord.store.catalog import change_history
from anchord.store.catalog.catalog import SqliteCatalog
from anchord.store.catalog.change_history import Replacement

A, B = RootedPath("notes", "a.md"), RootedPath("notes", "b.md")
EXCHANGE = RootedPath("talks", "/claude-code/s/1")


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqliteCatalog]:
    with SqliteCatalog(tmp_path / "state.sqlite") as made:
        yield made


def record(ids: str, digest: str) -> FileRecord:
    chunks = tuple(
        ChunkRecord(
            chunk_id=chunk_id,
            vector_key=f"key {chunk_id}",
            row_hash=f"row {chunk_id}",
            start_line=10 * number + 1,
            end_line=10 * number + 10,
        )
        for number, chunk_id in enumerate(ids)
    )
    return FileRecord(
        fingerprint=Fingerprint(size=1, mtime_ns=1, ctime_ns=1, inode=1, device=1),
        read_ns=1,
        content_digest=digest,
        recipe_digest="recipe",
        is_confirmed=True,
        chunks=chunks,
    )


def make_update(origin: RootedPath, before: str, after: str | None, digest: str = "") -> FileUpdate:
    """Return the update of a file whose chunks have ids of one digit."""
    now = after or ""
    diff = ChunkDiff(
        added=(None,) * len(set(now) - set(before)),  # type: ignore[arg-type]  # only counted
        changed=(),
        removed=tuple(each for each in before if each not in now),
        shifted=0,
        kept=len(set(now) & set(before)),
    )
    new_record = None if after is None else record(after, digest or after)
    return FileUpdate(
        origin=origin, new_record=new_record, diff=diff, texts_to_embed=(), reason="a reason"
    )


def commit(catalog: SqliteCatalog, *updates: FileUpdate) -> None:
    catalog.save_intents(updates)
    catalog.confirm_updates(updates)


def edits(catalog: SqliteCatalog) -> list[tuple[str, int, int, int]]:
    return [
        (each.origin.path, each.kept, each.new, each.gone) for each in catalog.history.iter_edits(0)
    ]


def test_an_id_has_the_chunk_at_its_place_as_successor_through_several_edits(
    catalog: SqliteCatalog,
) -> None:
    commit(catalog, make_update(A, "", "abc"))
    commit(catalog, make_update(A, "abc", "adc"))
    assert catalog.history.find_replacement("b") == Replacement("b", "d", A)
    commit(catalog, make_update(A, "adc", "aec"))
    assert catalog.history.find_replacement("b") == Replacement("b", "e", A)
    assert catalog.history.find_replacement("d") == Replacement("d", "e", A)
    assert edits(catalog) == [("a.md", 2, 1, 1), ("a.md", 2, 1, 1), ("a.md", 0, 3, 0)]


def test_a_deleted_section_has_no_successor_and_a_deleted_file_is_named(
    catalog: SqliteCatalog,
) -> None:
    commit(catalog, make_update(A, "", "abc"))
    commit(catalog, make_update(A, "abc", "ac"))
    assert catalog.history.find_replacement("b") == Replacement("b", "", A)
    commit(catalog, make_update(A, "ac", "dc"))
    commit(catalog, make_update(A, "dc", None))
    assert catalog.history.find_replacement("a") == Replacement("a", "", A)
    assert catalog.history.find_replacement("f") is None
    assert catalog.history.find_replacement("") is None


def test_an_edit_that_is_undone_ends_at_the_chunk_that_exists(catalog: SqliteCatalog) -> None:
    commit(catalog, make_update(A, "", "ab"))
    commit(catalog, make_update(A, "ab", "ac"))
    commit(catalog, make_update(A, "ac", "ab"))
    assert catalog.history.find_replacement("c") == Replacement("c", "b", A)
    commit(catalog, make_update(A, "ab", "a"))
    assert catalog.history.find_replacement("c") == Replacement("c", "", A)


def test_a_moved_file_has_its_chunks_at_the_new_path_in_whichever_order_it_is_committed(
    catalog: SqliteCatalog,
) -> None:
    for old, new, old_id, new_id in ((A, B, "a", "b"), (B, A, "b", "c")):
        commit(catalog, make_update(old, "", old_id, "same"))
        arrival = replace(
            make_update(new, "", new_id, "same"), row_with_vector={f"key {new_id}": old_id}
        )
        both = [arrival, make_update(old, old_id, None)]
        commit(catalog, *(both if old == A else reversed(both)))
        assert catalog.history.find_replacement(old_id) == Replacement(old_id, new_id, new)


def test_after_an_interrupted_commit_the_successor_is_known_all_the_same(
    catalog: SqliteCatalog,
) -> None:
    commit(catalog, make_update(A, "", "abc"))
    catalog.save_intents([make_update(A, "abc", "adc")])
    commit(catalog, make_update(A, "abc", "aec"))
    assert catalog.history.find_replacement("b") == Replacement("b", "e", A)


def test_a_repair_of_the_same_content_is_no_change_and_an_exchange_only_a_successor(
    catalog: SqliteCatalog,
) -> None:
    commit(catalog, make_update(A, "", "ab", "same"), make_update(EXCHANGE, "", "1"))
    commit(catalog, make_update(A, "ab", "ac", "same"), make_update(EXCHANGE, "1", "2"))
    assert edits(catalog) == [("a.md", 0, 2, 0)]
    assert catalog.history.find_replacement("b") == Replacement("b", "c", A)
    assert catalog.history.find_replacement("1") == Replacement("1", "2", EXCHANGE)


def test_the_history_is_bounded_and_says_where_it_begins(
    catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_history, "MAX_CHANGES", 2)
    commit(catalog, make_update(A, "", "a"))
    assert catalog.history.begin_ns() == 0
    for before, after in ("ab", "bc", "cd"):
        commit(catalog, make_update(A, before, after))
    assert edits(catalog) == [("a.md", 0, 1, 1)] * 2
    assert catalog.history.begin_ns() > 0
    assert catalog.history.find_replacement("a") is None
    assert catalog.history.find_replacement("b") == Replacement("b", "d", A)


def test_nothing_of_a_forgotten_folder_is_left(catalog: SqliteCatalog) -> None:
    inside = RootedPath("notes", "private/a.md")
    commit(catalog, make_update(inside, "", "a"), make_update(B, "", "b"))
    commit(catalog, make_update(inside, "a", "c"), make_update(B, "b", "d"))
    catalog.history.forget([RootedPath("notes", "private")])
    assert {path for path, *_ in edits(catalog)} == {"b.md"}
    assert catalog.history.find_replacement("a") is None
    assert catalog._db.execute("SELECT count(*) FROM replaced").fetchone() == (1,)


def test_a_new_generation_keeps_the_history_and_adds_nothing(
    catalog: SqliteCatalog, tmp_path: Path
) -> None:
    commit(catalog, make_update(A, "", "a"))
    commit(catalog, make_update(A, "a", "b"))
    with SqliteCatalog(tmp_path / "next.sqlite", records_changes=False) as generation:
        commit(generation, make_update(A, "", "b"))
        assert edits(generation) == []
    catalog.overwrite_from(tmp_path / "next.sqlite")
    assert edits(catalog) == [("a.md", 0, 1, 1), ("a.md", 0, 1, 0)]
    assert catalog.history.find_replacement("a") == Replacement("a", "b", A)


def test_a_catalog_without_a_history_has_an_empty_one_until_a_writer_migrates_it(
    catalog: SqliteCatalog, tmp_path: Path
) -> None:
    catalog._db.executescript("DROP TABLE replaced; DROP TABLE changes;")
    with SqliteCatalog(tmp_path / "state.sqlite", read_only=True) as reader:
        assert list(reader.history.iter_edits(0)) == []
        assert reader.history.begin_ns() == 0
        assert reader.history.find_replacement("a") is None
    catalog.migrate_schema()
    commit(catalog, make_update(A, "", "a"))
    assert len(edits(catalog)) == 1


def test_the_changes_of_a_root_are_deleted_with_its_files(catalog: SqliteCatalog) -> None:
    other = RootedPath("other", "c.md")
    commit(catalog, make_update(A, "", "ab"), make_update(other, "", "ef"))
    commit(catalog, make_update(A, "ab", "ac"))
    assert sorted(catalog.history.root_names()) == ["notes", "other"]
    catalog.delete_root_records("notes")
    assert catalog.history.root_names() == ["other"]
    assert edits(catalog) == [("c.md", 0, 2, 0)]
    assert catalog.history.find_replacement("b") is None
