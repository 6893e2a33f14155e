"""The diff turns the stored rows into the wanted rows, and writes no row that is stored already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.core.diff import diff_chunks, row_hash
from anchord.core.types import ChunkDiff, ChunkRecord, Row


def row(chunk_id: str, text: str = "text") -> Row:
    return Row(
        id=chunk_id,
        doc_id="doc",
        root="root",
        path="a.md",
        kind="markdown",
        header_path="A",
        content_hash="hash",
        vector_key=f"key of {text}",
        text=text,
        search_text=f"a.md {text}",
    )


def placed(of: Row, start: int = 1, end: int = 1) -> ChunkRecord:
    return ChunkRecord(
        chunk_id=of.id,
        vector_key=of.vector_key,
        row_hash=row_hash(of),
        start_line=start,
        end_line=end,
    )


@st.composite
def files(draw: st.DrawFn) -> list[tuple[Row, ChunkRecord]]:
    """Rows of few ids, texts and lines, so that equal values are common."""
    ids = draw(st.lists(st.sampled_from("abcdef"), unique=True))
    rows = [row(chunk_id, draw(st.sampled_from(["one", "two"]))) for chunk_id in ids]
    starts = st.integers(1, 3)
    return [(each, placed(each, draw(starts), draw(starts))) for each in rows]


def between(
    known: Sequence[tuple[Row, ChunkRecord]], wanted: Sequence[tuple[Row, ChunkRecord]]
) -> ChunkDiff:
    return diff_chunks(
        [place for _, place in known], [each for each, _ in wanted], [place for _, place in wanted]
    )


def applied(table: dict[str, Row], change: ChunkDiff) -> dict[str, Row]:
    kept = {chunk_id: each for chunk_id, each in table.items() if chunk_id not in change.removed}
    return kept | {each.id: each for each in (*change.added, *change.changed)}


@given(files(), files())
def test_applying_the_diff_to_the_known_rows_gives_the_wanted_rows(
    known: list[tuple[Row, ChunkRecord]], wanted: list[tuple[Row, ChunkRecord]]
) -> None:
    table = {each.id: each for each, _ in known}
    assert applied(table, between(known, wanted)) == {each.id: each for each, _ in wanted}


@given(files(), files())
def test_every_wanted_chunk_is_counted_once(
    known: list[tuple[Row, ChunkRecord]], wanted: list[tuple[Row, ChunkRecord]]
) -> None:
    change = between(known, wanted)
    assert len(change.added) + len(change.changed) + change.shifted + change.kept == len(wanted)
    assert len(change.removed) == len(
        {each.id for each, _ in known} - {each.id for each, _ in wanted}
    )


@given(files(), files())
def test_no_row_is_written_that_stands_already(
    known: list[tuple[Row, ChunkRecord]], wanted: list[tuple[Row, ChunkRecord]]
) -> None:
    change = between(known, wanted)
    before = {each.id: each for each, _ in known}
    assert not {each.id for each in change.added} & set(before)
    assert all(before[each.id] != each for each in change.changed)


@given(files(), files())
def test_the_table_is_touched_only_when_rows_differ(
    known: list[tuple[Row, ChunkRecord]], wanted: list[tuple[Row, ChunkRecord]]
) -> None:
    assert between(known, wanted).changes_table == (
        {e.id: e for e, _ in known} != {e.id: e for e, _ in wanted}
    )


@given(files())
def test_a_file_against_itself_changes_nothing(known: list[tuple[Row, ChunkRecord]]) -> None:
    assert between(known, known) == ChunkDiff(
        added=(), changed=(), removed=(), shifted=0, kept=len(known)
    )


@given(files())
def test_a_new_file_adds_all_and_a_gone_file_removes_all(
    rows: list[tuple[Row, ChunkRecord]],
) -> None:
    ids = tuple(each.id for each, _ in rows)
    assert between([], rows) == ChunkDiff(
        added=tuple(each for each, _ in rows), changed=(), removed=(), shifted=0, kept=0
    )
    assert between(rows, []) == ChunkDiff(added=(), changed=(), removed=ids, shifted=0, kept=0)


def test_rows_that_only_moved_to_other_lines_are_not_written() -> None:
    one, two = row("a"), row("b")
    change = diff_chunks(
        [placed(one, 1, 2), placed(two, 3, 4)], [one, two], [placed(one, 1, 2), placed(two, 9, 10)]
    )
    assert change == ChunkDiff(added=(), changed=(), removed=(), shifted=1, kept=1)
    assert not change.changes_table


def test_a_row_that_moved_and_differs_is_written_once() -> None:
    old, new = row("a", "one"), row("a", "two")
    assert diff_chunks([placed(old, 1, 2)], [new], [placed(new, 5, 6)]) == ChunkDiff(
        added=(), changed=(new,), removed=(), shifted=0, kept=0
    )


def test_the_order_of_the_file_is_kept() -> None:
    rows = [row(chunk_id) for chunk_id in "cab"]
    assert [each.id for each in diff_chunks([], rows, [placed(each) for each in rows]).added] == [
        "c",
        "a",
        "b",
    ]


def test_a_row_of_unknown_content_is_written_again() -> None:
    # After an interrupted change only the ids in the store are known.
    assert diff_chunks(
        [ChunkRecord(chunk_id="a", vector_key="", row_hash="", start_line=0, end_line=0)],
        [row("a")],
        [placed(row("a"))],
    ).changed == (row("a"),)


def test_an_id_that_the_store_names_twice_is_removed_once() -> None:
    twice = [ChunkRecord(chunk_id="a", vector_key="", row_hash="", start_line=0, end_line=0)] * 2
    assert diff_chunks(twice, [], []).removed == ("a",)


def test_rows_and_places_of_different_number_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        diff_chunks([], [row("a")], [])


FIXED_BY_THE_ID = ("id", "doc_id", "content_hash")


@pytest.mark.parametrize(
    "name", [field.name for field in fields(Row) if field.name not in FIXED_BY_THE_ID]
)
def test_the_row_hash_covers_every_field_that_can_differ_under_one_id(name: str) -> None:
    changes: dict[str, Any] = {
        name: 7 if isinstance(getattr(row("a"), name), int) else "something else"
    }
    assert row_hash(row("a")) != row_hash(replace(row("a"), **changes))
