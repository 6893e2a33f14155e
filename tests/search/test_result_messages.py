"""Rows of an index as records of chunks."""

from __future__ import annotations

from typing import Any

from anchord.core.ids import make_doc_id
from anchord.core.types import ChunkLocation, ChunkPlace, RootedPath, Row
from anchord.search.result_messages import ChunkDescriber

ORIGIN = RootedPath("notes", "a.md")


def row(**changes: Any) -> Row:  # noqa: ANN401 - any field
    fields: dict[str, Any] = {
        "id": "b", "doc_id": "d", "root": "notes", "path": "a.md", "kind": "markdown", "header_path": "Guide > Use",
        "content_hash": "h", "vector_key": "v", "text": "Use it.", "search_text": "", "chunk_type": "section",
        "level": 2, "token_count": 500,
    }  # fmt: skip
    return Row(**(fields | changes))


def describer(
    location: ChunkLocation | None = None, place: ChunkPlace | None = None
) -> ChunkDescriber:
    return ChunkDescriber(
        root_path_by_name={"notes": "/home/me/notes"},
        strategy_of=lambda _root, _kind: "anchored",
        locations={"b": location} if location else {},
        places={"b": place} if place else {},
        exchange_places={},
    )


def test_a_row_has_its_file_its_lines_and_its_place() -> None:
    known = describer(ChunkLocation(ORIGIN, 3, 9, 1), ChunkPlace(1, 4, "a", "c"))
    chunk = known.describe(row())
    assert (chunk.file, chunk.start_line, chunk.end_line) == ("/home/me/notes/a.md", 3, 9)
    assert (chunk.prev_id, chunk.next_id, chunk.chunk_index, chunk.position) == ("a", "c", 1, 0.5)
    assert (chunk.header_path, chunk.parent_id) == (("Guide", "Use"), make_doc_id(ORIGIN))
    assert (chunk.locator, chunk.granularity) == ("a.md#Use#1", "medium")


def test_while_its_file_is_being_changed_a_row_has_lines_and_no_siblings() -> None:
    chunk = describer(ChunkLocation(ORIGIN, 3, 9, 1)).describe(row())
    assert (chunk.start_line, chunk.chunk_index, chunk.locator) == (3, 1, "a.md#Use#1")
    assert (chunk.sibling_count, chunk.position, chunk.prev_id, chunk.next_id) == (None,) * 4


def test_a_row_that_the_catalog_does_not_know_has_no_place() -> None:
    chunk = describer().describe(row())
    assert (chunk.start_line, chunk.end_line, chunk.chunk_index, chunk.locator) == (None,) * 4
    assert (chunk.file, chunk.parent_id) == ("/home/me/notes/a.md", make_doc_id(ORIGIN))


def test_of_a_table_of_a_former_version_type_size_and_language_are_unknown() -> None:
    chunk = describer().describe(row(chunk_type="", level=0, token_count=0))
    assert (chunk.chunk_type, chunk.language, chunk.level, chunk.token_count) == (None,) * 4
    assert (chunk.granularity, chunk.below_typical_size) == (None, None)
    assert (chunk.char_count, chunk.keywords) == (7, ("use",))


def test_an_exchange_has_its_metadata_and_its_part() -> None:
    exchange = row(session="s", source="codex", tools="ls\nrg", part_index=1, total_parts=3)
    chunk = describer().describe(exchange)
    assert (chunk.session, chunk.source, chunk.tools, chunk.files) == (
        "s",
        "codex",
        ("ls", "rg"),
        (),
    )
    assert (chunk.part_index, chunk.total_parts, chunk.turn) == (1, 3, None)
    assert describer().describe(row()).part_index is None
