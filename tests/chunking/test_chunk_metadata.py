"""Metadata of a chunk and its siblings, and the comparison of two versions of a file."""

from __future__ import annotations

from typing import Any

from anchord import chunk_text
from anchord.api.chunks import compare_chunks
from anchord.chunking.chunk_metadata import describe_chunks
from anchord.core.ids import make_doc_id
from anchord.core.types import Chunk, Document, ExchangeMetadata, RootedPath
from anchord.ipc.messages.chunks import ChunkAnswer

ORIGIN = RootedPath("notes", "docs/a.md")


def piece(number: int, content: str = "words", path: tuple[str, ...] = (), **changes: Any) -> Chunk:  # noqa: ANN401 - any field
    fields: dict[str, Any] = {
        "chunk_id": f"id{number}", "content": content, "embed_text": content, "header_path": path, "start_line": number,
        "end_line": number, "anchor_line": 1, "content_hash": "h", "token_count": 10, "kind": "markdown",
    }  # fmt: skip
    return Chunk(**(fields | changes))


def described(*pieces: Chunk, document: Document | None = None) -> list[ChunkAnswer]:
    return describe_chunks(
        pieces, document or Document(text="", kind="markdown"), ORIGIN, "anchored"
    )


def test_neighbours_index_and_position() -> None:
    first, second = described(piece(1), piece(2))
    assert (first.prev_id, first.next_id, first.chunk_index, first.position) == (
        None, "id2", 0, 0.5,
    )  # fmt: skip
    assert (second.prev_id, second.next_id, second.sibling_count) == ("id1", None, 2)


def test_the_title_is_the_first_heading_or_else_the_name_of_the_file() -> None:
    above, below = described(piece(1), piece(2, path=("Guide", "Use")))
    assert (above.parent_title, below.parent_title) == ("a.md", "Guide")


def test_the_parent_is_the_document_of_the_rows() -> None:
    assert described(piece(1))[0].parent_id == make_doc_id(ORIGIN)
    assert make_doc_id(ORIGIN) != make_doc_id(RootedPath("other", ORIGIN.path))


def test_an_exchange_has_its_metadata_its_parts_and_its_turn() -> None:
    metadata = ExchangeMetadata(source="codex", session="s", exchange_id="e", tools="ls\nrg")
    document = Document(text="", kind="exchange", exchange_metadata=metadata)
    first, second = describe_chunks([piece(1), piece(2)], document, ORIGIN, "anchored", 7)
    assert (first.source, first.session, first.exchange_id, first.turn) == ("codex", "s", "e", 7)
    assert (first.tools, first.files, first.model, first.at) == (("ls", "rg"), (), None, None)
    assert (first.part_index, second.part_index, second.total_parts) == (0, 1, 2)


def test_a_name_that_is_no_utf_8_can_be_printed() -> None:
    (chunk,) = describe_chunks(
        [piece(1)], Document(text="", kind="text"), RootedPath("", "b\udcff.md"), "anchored"
    )
    assert chunk.locator == "b\\xff.md#0"


# Two versions

SECTIONS = [f"## Part {n}\n\n" + f"words of part {n} and more of them. " * 12 for n in range(6)]


def compared(before: list[str], now: list[str]) -> dict[str, Any]:
    return compare_chunks(
        *(chunk_text("# Title\n\n" + "\n\n".join(some), path="a.md") for some in (before, now))
    )


def changes(found: dict[str, Any]) -> list[str]:
    return [row["change"] for row in found["chunks"]]


def test_equal_versions_are_all_kept_and_cost_nothing() -> None:
    found = compared(SECTIONS, SECTIONS)
    assert set(changes(found)) == {"kept"}
    assert (found["embedded"], found["tokens"]) == (0, 0)


def test_a_changed_section_stands_beside_what_it_was() -> None:
    found = compared(SECTIONS, [*SECTIONS[:2], SECTIONS[2] + "One more.", *SECTIONS[3:]])
    at = changes(found).index("vanished")
    assert {"vanished", "new"} == {*changes(found)[at : at + 2]} or changes(found)[at - 1] == "new"
    (new,) = [row for row in found["chunks"] if row["change"] == "new"]
    assert (found["embedded"], found["tokens"]) == (1, new["token_count"])


def test_what_moved_says_where_it_was() -> None:
    found = compared(SECTIONS, ["A line above.\n", *SECTIONS])
    moved = [row for row in found["chunks"] if row["change"] == "moved"]
    assert moved
    assert all(row["start_line"] == row["before_lines"][0] + 3 for row in moved)


def test_a_vanished_section_stands_where_it_was_among_those_that_stay() -> None:
    found = compared(SECTIONS, [*SECTIONS[:3], *SECTIONS[4:]])
    vanished = [n for n, what in enumerate(changes(found)) if what == "vanished"]
    assert vanished
    assert 0 < vanished[0] < len(found["chunks"]) - 1
    assert found["embedded"] == sum(row["embeds"] for row in found["chunks"])


def test_swapped_sections_are_not_embedded_again() -> None:
    big = [
        section + " " + f"something else about it {n}. " * 30 for n, section in enumerate(SECTIONS)
    ]
    found = compared(big, [big[0], big[2], big[1], *big[3:]])
    assert found["embedded"] <= 1
    assert found["vanished"] + found["new"] <= 2
