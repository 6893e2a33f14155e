"""The exact cost of edits: texts embedded, rows written, rows deleted. Each result equals a rebuild."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from scenarios.conftest import Index

from anchord.core.types import FileOutcome

_SUBJECTS = (
    "Anchors",
    "Boundaries",
    "Chunks",
    "Digests",
    "Edits",
    "Fences",
    "Generations",
    "Hashes",
)


def section(subject: str, paragraphs: int = 6) -> str:
    """Return a section of some chunks; no two paragraphs share words."""
    lines = [f"## {subject}", ""]
    for n in range(paragraphs):
        words = " ".join(
            f"{subject.lower()}{n}word{m} says that the {m}th thing holds;" for m in range(9)
        )
        lines += [f"Paragraph {n} of {subject.lower()}. {words}", ""]
    return "\n".join(lines)


def guide() -> str:
    """A document of 8 sections, about 30 KB."""
    return "# Guide\n\nWhat this is about.\n\n" + "\n".join(
        section(subject) for subject in _SUBJECTS
    )


@dataclass(frozen=True)
class Cost:
    """Sums over the outcomes of one sync."""

    embedded: int
    upserted: int
    deleted: int


def cost(outcomes: list[FileOutcome]) -> Cost:
    return Cost(
        sum(outcome.embedded for outcome in outcomes),
        sum(outcome.upserted for outcome in outcomes),
        sum(outcome.deleted for outcome in outcomes),
    )


def change(index: Index, path: str, old: str, new: str) -> None:
    file = index.folder / path
    text = file.read_text("utf-8")
    assert text.count(old) == 1, "an edit names one place"
    index.write(path, text.replace(old, new))


def to_folder(index: Index, path: str) -> None:
    (index.folder / path).unlink()
    (index.folder / path).mkdir()


@pytest.fixture
def guided(index: Index) -> Index:
    """An index of the guide and a short note."""
    index.write("guide.md", guide())
    index.write("notes/note.md", "# Note\n\nRemember the milk.\n")
    index.sync()
    assert not index.verify().differences
    return index


Edit = Callable[[Index], None]
EDITS: dict[str, tuple[Edit, Cost]] = {
    "nothing": (lambda _: None, Cost(0, 0, 0)),
    "A9 touch": (lambda i: os.utime(i.folder / "guide.md"), Cost(0, 0, 0)),
    "A10 save without change": (lambda i: i.write("guide.md", guide()), Cost(0, 0, 0)),
    "A1 a word in a paragraph": (
        lambda i: change(i, "guide.md", "chunks3word4", "chunks3word4 indeed"),
        Cost(1, 1, 1),
    ),
    "a line at the top": (
        lambda i: i.write("guide.md", "A new first line.\n\n" + guide()),
        Cost(1, 1, 1),
    ),
    "blank lines and blanks at line ends": (
        lambda i: change(i, "guide.md", "\n## Edits\n", "  \n\n\n## Edits\n"),
        Cost(0, 0, 0),
    ),
    "a new file": (lambda i: i.write("new.md", "# New\n\nA fresh thought.\n"), Cost(1, 1, 0)),
    "a copy": (lambda i: i.write("copy.md", "# Note\n\nRemember the milk.\n"), Cost(0, 1, 0)),
    "rename": (
        lambda i: os.rename(i.folder / "notes/note.md", i.folder / "memo.md"),
        Cost(0, 1, 1),
    ),
    "B6 rename of a folder": (
        lambda i: os.rename(i.folder / "notes", i.folder / "memos"),
        Cost(0, 1, 1),
    ),
    "delete": (lambda i: (i.folder / "notes/note.md").unlink(), Cost(0, 0, 1)),
    "delete of a folder": (lambda i: shutil.rmtree(i.folder / "notes"), Cost(0, 0, 1)),
    "emptied file": (lambda i: i.write("notes/note.md", ""), Cost(0, 0, 1)),
    "A13 grown past the limit": (
        lambda i: i.write("notes/note.md", "x" * 2_000_001),
        Cost(0, 0, 1),
    ),
    "newly ignored": (lambda i: i.write(".gitignore", "notes/\n"), Cost(0, 0, 1)),
    "A18 file becomes a folder": (lambda i: to_folder(i, "notes/note.md"), Cost(0, 0, 1)),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_costs_what_it_changed(guided: Index, name: str) -> None:
    edit, expected = EDITS[name]
    edit(guided)
    assert cost(guided.sync()) == expected
    assert not guided.verify().differences


def test_a_heading_at_the_top_renamed_embeds_one_text_and_rewrites_the_ids_below(
    guided: Index,
) -> None:
    chunks = guided.store.count_rows()
    change(guided, "guide.md", "# Guide\n", "# Handbook\n")
    spent = cost(guided.sync())
    assert spent.embedded == 1
    assert (
        spent.upserted == spent.deleted == chunks - 1
    )  # all rows of the guide; the note is another file
    assert not guided.verify().differences


def test_swapped_sections_embed_at_most_one_text(guided: Index) -> None:
    text = guide()
    one, two = section("Chunks"), section("Fences")
    guided.write("guide.md", text.replace(one, "@").replace(two, one).replace("@", two))
    assert cost(guided.sync()).embedded <= 1
    assert not guided.verify().differences


def test_an_undone_edit_embeds_nothing(guided: Index) -> None:
    change(guided, "guide.md", "chunks3word4", "something else")
    guided.sync()
    change(guided, "guide.md", "something else", "chunks3word4")
    assert cost(guided.sync()).embedded == 0
    assert not guided.verify().differences


def test_an_undone_edit_under_a_heading_embeds_nothing_though_chunks_kept_their_ids_with_other_vectors(
    index: Index,
) -> None:
    def keys() -> dict[str, str]:
        return {row.id: row.vector_key for row in index.store.all_rows()}

    words, new = (" ".join(f"{word}{n} holds;" for n in range(120)) for word in ("word", "new"))
    text = f"# A\n\n{words}\n"
    index.write("a.md", text)
    index.sync()
    before = keys()
    index.write("a.md", text.replace("# A\n", f"# A\n\n{new}\n"))
    index.sync()
    after = keys()
    assert any(after[key] != before[key] for key in before.keys() & after.keys())
    index.write("a.md", text)
    assert cost(index.sync()).embedded == 0
    assert not index.verify().differences


def test_a_branch_switch_and_back_embeds_each_text_once(guided: Index) -> None:
    first, second = guide(), guide().replace("holds", "is so")
    guided.write("guide.md", second)
    assert cost(guided.sync()).embedded > 0
    for text in (first, second, first):
        guided.write("guide.md", text)
        assert cost(guided.sync()).embedded == 0
    assert not guided.verify().differences


def test_a_file_that_went_and_came_back_embeds_nothing(guided: Index) -> None:
    text = (guided.folder / "guide.md").read_text("utf-8")
    (guided.folder / "guide.md").unlink()
    guided.sync()
    guided.write("other/guide.md", text)
    assert cost(guided.sync()).embedded == 0
    assert not guided.verify().differences


def test_shifted_lines_write_nothing_to_the_table(guided: Index) -> None:
    before = guided.store.stats().versions
    (outcome,) = _shift(guided)
    assert outcome.shifted > 0
    assert outcome.upserted + outcome.deleted == 0
    assert guided.store.stats().versions == before
    assert not guided.verify().differences


def _shift(index: Index) -> list[FileOutcome]:
    """Blank lines between two sections: every chunk below moves, and none changes."""
    change(index, "guide.md", "\n## Boundaries\n", "\n\n\n\n## Boundaries\n")
    return index.sync()


def test_a_trailing_blank_rewrites_the_row_and_embeds_nothing(guided: Index) -> None:
    change(guided, "notes/note.md", "# Note\n", "# Note  \n")
    assert cost(guided.sync()) == Cost(0, 1, 0)
    assert not guided.verify().differences


def test_every_outcome_says_why(guided: Index) -> None:
    change(guided, "guide.md", "chunks3word4", "x")
    os.rename(guided.folder / "notes", guided.folder / "memos")
    reasons = {outcome.origin.path: outcome.reason for outcome in guided.sync()}
    assert reasons == {
        "guide.md": "its size changed",
        "memos/note.md": "new file",
        "notes/note.md": "the file is gone",
    }


def test_two_files_of_one_batch_share_a_text_and_it_is_embedded_once(index: Index) -> None:
    index.write("a.md", "# Same\n\nThe same words.\n")
    index.write("b.md", "# Same\n\nThe same words.\n")
    assert cost(index.sync()) == Cost(1, 2, 0)
    assert index.embedder.embedded == 1


def test_a_changed_recipe_reads_every_file_again_and_embeds_only_new_texts(guided: Index) -> None:
    smaller = limits_with_smaller_window(guided)
    assert cost(smaller.sync()).embedded > 0
    assert not smaller.verify().differences


def limits_with_smaller_window(index: Index) -> Index:
    from fakes import plans  # noqa: PLC0415
    from scenarios.conftest import COUNT, MODEL  # noqa: PLC0415

    from anchord.core.ports import IndexerDependencies  # noqa: PLC0415
    from anchord.index.indexer import Indexer  # noqa: PLC0415
    from anchord.index.recipe import Recipe  # noqa: PLC0415 - beside its only use

    index.recipe = Recipe(
        plans=plans(MODEL.window, max_chunk_tokens=128),
        model_identity=lambda: index.embedder.model_id,
        chunking_tools_identity="tokenizer",
    )
    world = IndexerDependencies(
        files=index.files,
        catalog=index.catalogue,
        store=index.store,
        embedder=index.embedder,
        vector_cache=index.vanished,
        clock=lambda: 1,
    )
    index.indexer = Indexer(world, COUNT, index.recipe)
    return index
