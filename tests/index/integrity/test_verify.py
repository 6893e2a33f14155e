"""`verify` finds whatever differs from a clean rebuild, whoever planted it, and `repair` mends that and only that."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import lancedb
import pytest
from fakes import FakeCatalogue, FakeFiles, FakeStore, plans
from hypothesis import given
from hypothesis import strategies as st

from anchord.config.paths import find_paths
from anchord.config.schema import Config, EmbeddingConfig
from anchord.core.ports import IndexerDependencies
from anchord.core.types import (
    Action,
    ChunkDiff,
    FileRecord,
    FileUpdate,
    Problem,
    RootedPath,
    Row,
    Vector,
)
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.index.heartbeat import MODEL_STEP_TIMEOUT_S
from anchord.index.indexer import Indexer
from anchord.index.integrity import verify as module
from anchord.index.integrity.repair import delete_damaged_rows, verify_index
from anchord.index.integrity.row_sample import RowSample
from anchord.index.integrity.verify import (
    Difference,
    DifferenceKind,
    ExpectedRows,
    VerifyResult,
    cosine,
    expected_rows_of_roots,
    verify,
    verify_unchanged_files,
)
from anchord.index.opening import open_writer
from anchord.index.recipe import Recipe
from anchord.index.rows import PreparedRow
from anchord.index.run_once import index_once
from anchord.index.session import IndexWriter
from anchord.sources.files.folder_files import MAX_FILE_BYTES

TREE = {
    "a.md": "# Alpha\n\nThe first file speaks of apples.\n",
    "b.md": "# Beta\n\nThe second file speaks of bears.\n\n## More\n\n"
    + "It has a lot to say about bears. " * 60
    + "\n",
    "sub/c.py": "def third():\n    return 'of cats'\n",
    "twin-1.txt": "Two files say the very same.\n",
    "twin-2.txt": "Two files say the very same.\n",
}
CONFIG = Config(embedding=EmbeddingConfig(provider="hash"))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a few files."""
    base = tmp_path_factory.mktemp("verified")
    for name, text in TREE.items():
        file = base / "docs" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return base


@pytest.fixture(scope="module")
def opened(tree: Path) -> Iterator[IndexWriter]:
    """Give an index of it."""
    places = find_paths({"ANCHORD_HOME": str(tree / "home")})
    places.create_folders()
    writer = open_writer(places, CONFIG, [str(tree / "docs")])
    index_once(writer, (), lambda *_: None)
    yield writer
    writer.close()


@pytest.fixture
def writer(opened: IndexWriter) -> Iterator[IndexWriter]:
    """Give the index as it should be, and mend it after whatever a test did."""
    yield opened
    for _ in range(2):
        mend(opened, verify_index(opened, None))
    assert verify_index(opened, None).differences == ()


def mend(writer: IndexWriter, found: VerifyResult) -> int:
    """Repair as the command does; return how many texts were embedded for it."""
    return sum(
        outcome.embedded
        for outcome in writer.indexer.index(delete_damaged_rows(writer, found.differences))
    )


def table_of(writer: IndexWriter) -> Any:  # noqa: ANN401 - lancedb ships no types
    """Open the table as the interface says that anyone can."""
    return lancedb.connect(str(writer.paths.data_folder / "lance")).open_table("chunks")


def row_of(writer: IndexWriter, path: str) -> Row:
    return min((row for row in writer.store.all_rows() if row.path == path), key=lambda row: row.id)


def found(writer: IndexWriter) -> list[tuple[DifferenceKind, str, str]]:
    """Return all differences as (kind, path, chunk id)."""
    return sorted(
        (d.kind, d.origin.path, d.chunk_id) for d in verify_index(writer, None).differences
    )


def assert_mends(writer: IndexWriter, embedded: int) -> None:
    """Assert that one repair is enough and embeds no more than so many texts."""
    assert mend(writer, verify_index(writer, None)) <= embedded
    assert found(writer) == []


# An index that is right


def test_a_right_index_has_no_difference(writer: IndexWriter) -> None:
    result = verify_index(writer, None)
    assert (result.differences, result.changing_files) == ((), ())
    assert result.file_count == len(TREE)
    assert result.chunk_count == result.vectors_checked == writer.store.count_rows() > len(TREE)


@pytest.mark.parametrize("sample", [0, 2])
def test_of_vectors_only_so_many_are_embedded_again(writer: IndexWriter, sample: int) -> None:
    before = writer.profile.embedder.embedded
    assert verify_index(writer, sample).vectors_checked == sample
    assert writer.profile.embedder.embedded == before + sample


def test_a_sample_larger_than_the_index_is_all_of_it(writer: IndexWriter) -> None:
    assert verify_index(writer, 10_000).vectors_checked == writer.store.count_rows()


# Planted in the table


def test_a_row_that_was_deleted_is_missing(writer: IndexWriter) -> None:
    row = row_of(writer, "a.md")
    writer.store.delete_rows([row.id])
    assert found(writer) == [(DifferenceKind.MISSING, "a.md", row.id)]
    assert_mends(writer, embedded=1)


@pytest.mark.parametrize("path", ["a.md", "never/was.md"])
def test_a_row_of_no_chunk_is_extra(writer: IndexWriter, path: str) -> None:
    row = row_of(writer, "a.md")
    stranger = replace(row, id="0" * 32, path=path)
    writer.store.upsert([stranger], writer.store.vectors_by_key_of_rows([row.id]))
    assert found(writer) == [(DifferenceKind.EXTRA, path, stranger.id)]
    assert_mends(writer, embedded=0)


def test_a_row_of_another_root_is_extra(writer: IndexWriter) -> None:
    row = row_of(writer, "a.md")
    stranger = replace(row, id="1" * 32, root="elsewhere")
    writer.store.upsert([stranger], writer.store.vectors_by_key_of_rows([row.id]))
    assert found(writer) == [(DifferenceKind.EXTRA, "a.md", stranger.id)]
    assert_mends(writer, embedded=0)


def test_a_row_that_is_there_twice_is_a_duplicate(writer: IndexWriter) -> None:
    row, table = row_of(writer, "a.md"), table_of(writer)
    table.add(table.search().where(f"id = '{row.id}'").limit(None).to_arrow())
    assert writer.store.all_ids().count(row.id) == 2
    assert found(writer) == [(DifferenceKind.DUPLICATE, "a.md", row.id)]
    assert_mends(writer, embedded=0)


@pytest.mark.parametrize(
    "column",
    [
        "text",
        "search_text",
        "header_path",
        "content_hash",
        "vector_key",
        "kind",
        "path",
        "root",
        "doc_id",
        "room",
    ],
)
def test_any_other_value_of_a_row_is_found(writer: IndexWriter, column: str) -> None:
    row = row_of(writer, "a.md")
    table_of(writer).update(where=f"id = '{row.id}'", values={column: "spoiled"})
    assert found(writer) == [(DifferenceKind.SPOILED, "a.md", row.id)]
    assert_mends(writer, embedded=1)


def test_a_row_of_another_text_in_good_order_is_found(writer: IndexWriter) -> None:
    row = row_of(writer, "a.md")
    writer.store.upsert(
        [replace(row, text="of another time")], writer.store.vectors_by_key_of_rows([row.id])
    )
    assert found(writer) == [(DifferenceKind.TEXT, "a.md", row.id)]
    assert_mends(writer, embedded=0)


SPOILED: dict[str, Vector] = {
    "of another text": HashEmbedder().embed(["quite something else"])[0],
    "of no length": array("f", [0.0] * HashEmbedder.dimension).tobytes(),
}


def spoil(writer: IndexWriter, row: Row, how: str = "of another text") -> None:
    writer.store.upsert([row], {row.vector_key: SPOILED[how]})


@pytest.mark.parametrize("how", SPOILED)
def test_a_vector_that_is_not_the_texts_is_found(writer: IndexWriter, how: str) -> None:
    row = row_of(writer, "a.md")
    spoil(writer, row, how)
    assert found(writer) == [(DifferenceKind.VECTOR, "a.md", row.id)]
    assert_mends(writer, embedded=1)


@pytest.mark.parametrize("right_one_written", ["before", "after"])
def test_a_spoiled_vector_is_found_beside_a_right_one_of_the_same_text(
    writer: IndexWriter, right_one_written: str
) -> None:
    row, twin = row_of(writer, "twin-1.txt"), row_of(writer, "twin-2.txt")
    assert row.vector_key == twin.vector_key
    right = writer.store.vectors_by_key_of_rows([twin.id])
    spoil(writer, row)
    if right_one_written == "after":
        writer.store.upsert([twin], right)
    assert (DifferenceKind.VECTOR, "twin-1.txt", row.id) in found(writer)
    assert_mends(writer, embedded=1)


def test_a_spoiled_vector_that_was_kept_of_a_row_gone_by_is_not_taken_again(
    writer: IndexWriter, tree: Path
) -> None:
    file = tree / "docs" / "a.md"
    spoil(writer, row_of(writer, "a.md"))
    for text in ("# Alpha\n\nFor a while it speaks of plums.\n", TREE["a.md"]):
        file.write_text(text, "utf-8")
        index_once(writer, (), lambda *_: None)
    try:
        assert [kind for kind, _, _ in found(writer)] == [DifferenceKind.VECTOR]
        assert_mends(writer, embedded=1)
    finally:
        writer.vector_cache.put(
            dict.fromkeys([row_of(writer, "a.md").vector_key], right_vector("a.md")), 0
        )


def right_vector(path: str) -> Vector:
    return HashEmbedder().embed([TREE[path].rstrip("\n")])[0]


# Planted in the catalogue


def test_lines_that_are_not_the_chunks_are_found(writer: IndexWriter) -> None:
    origin = RootedPath("docs", "a.md")
    known = writer.catalog.get_record(origin)
    assert isinstance(known, FileRecord)
    (placed,) = known.chunks
    moved = known._replace(chunks=(replace(placed, start_line=7, end_line=9),))
    writer.catalog.confirm_updates(
        [
            FileUpdate(
                origin=origin,
                new_record=moved,
                diff=ChunkDiff(added=(), changed=(), removed=(), shifted=1, kept=0),
                texts_to_embed=(),
                reason="planted",
            )
        ]
    )
    assert found(writer) == [(DifferenceKind.LINES, "a.md", placed.chunk_id)]
    assert_mends(writer, embedded=0)


def test_a_file_that_the_catalogue_does_not_know_has_no_lines(writer: IndexWriter) -> None:
    row = row_of(writer, "a.md")
    writer.catalog.confirm_updates(
        [
            FileUpdate(
                origin=RootedPath("docs", "a.md"),
                new_record=None,
                diff=ChunkDiff(added=(), changed=(), removed=(), shifted=0, kept=0),
                texts_to_embed=(),
                reason="planted",
            )
        ]
    )
    assert found(writer) == [(DifferenceKind.LINES, "a.md", row.id)]
    assert_mends(writer, embedded=0)


# Changed in the tree


def test_an_edited_file_differs_until_it_is_indexed(writer: IndexWriter, tree: Path) -> None:
    row, file = row_of(writer, "a.md"), tree / "docs" / "a.md"
    file.write_text(TREE["a.md"].replace("apples", "oranges"), "utf-8")
    kinds = [(kind, path) for kind, path, _ in found(writer)]
    assert kinds == [(DifferenceKind.EXTRA, "a.md"), (DifferenceKind.MISSING, "a.md")]
    assert_mends(writer, embedded=1)
    file.write_text(TREE["a.md"], "utf-8")
    assert_mends(writer, embedded=0)
    assert row_of(writer, "a.md") == row


def test_a_line_put_before_a_chunk_changes_only_lines(writer: IndexWriter, tree: Path) -> None:
    file = tree / "docs" / "sub" / "c.py"
    file.write_text("\n" + TREE["sub/c.py"], "utf-8")
    assert {kind for kind, _, _ in found(writer)} <= {
        DifferenceKind.LINES,
        DifferenceKind.EXTRA,
        DifferenceKind.MISSING,
    }
    assert_mends(writer, embedded=0)
    file.write_text(TREE["sub/c.py"], "utf-8")
    assert_mends(writer, embedded=0)


def test_a_new_and_a_deleted_file_differ(writer: IndexWriter, tree: Path) -> None:
    one, other = tree / "docs" / "a.md", tree / "docs" / "new.md"
    one.rename(other)
    assert [(kind, path) for kind, path, _ in found(writer)] == [
        (DifferenceKind.EXTRA, "a.md"),
        (DifferenceKind.MISSING, "new.md"),
    ]
    assert_mends(writer, embedded=0)
    other.rename(one)
    assert_mends(writer, embedded=0)


def test_several_differences_are_mended_at_once(writer: IndexWriter) -> None:
    a, b = row_of(writer, "a.md"), row_of(writer, "b.md")
    spoil(writer, a)
    writer.store.delete_rows([b.id])
    writer.store.upsert(
        [replace(b, id="2" * 32, path="never/was.md", vector_key="other")],
        {"other": SPOILED["of no length"]},
    )
    assert {kind for kind, _, _ in found(writer)} == {
        DifferenceKind.MISSING,
        DifferenceKind.EXTRA,
        DifferenceKind.VECTOR,
    }
    assert_mends(writer, embedded=2)


def test_a_root_that_is_away_is_left_out(writer: IndexWriter, tree: Path) -> None:
    (tree / "docs").rename(tree / "away")
    try:
        result = verify_index(writer, None)
    finally:
        (tree / "away").rename(tree / "docs")
    assert (result.differences, result.kept_files) == ((), {"docs": len(TREE)})


# Without a disk


def count_words(texts: Any) -> list[int]:  # noqa: ANN401 - a counter of tokens
    return [len(text.split()) for text in texts]


RECIPE = Recipe(
    plans=plans(), model_identity=lambda: HashEmbedder.model_id, chunking_tools_identity="tokenizer"
)


class Small:
    """A right index in fakes."""

    def __init__(self) -> None:
        """Index two files."""
        self.files, self.catalogue, self.store = FakeFiles(), FakeCatalogue(), FakeStore()
        for name in ("a.md", "deep/b.md"):
            self.files.put(RootedPath("r", name), f"# {name}\n\nWords of {name}.\n")
        world = IndexerDependencies(
            files=self.files,
            catalog=self.catalogue,
            store=self.store,
            embedder=HashEmbedder(),
            vector_cache=_Nothing(),
            clock=lambda: 10**18,
        )
        indexer = Indexer(world, count_words, RECIPE)
        outcomes = list(indexer.index(indexer.reconcile("r").paths_due))
        assert {outcome.action for outcome in outcomes} == {Action.INDEXED}

    def rebuild(self) -> list[ExpectedRows]:
        """Read and chunk the files."""
        return list(
            expected_rows_of_roots(["r"], (self.files, self.catalogue), RECIPE, count_words)
        )

    def verify(self) -> VerifyResult:
        """Compare, with all vectors."""
        return verify(self.rebuild(), self.catalogue, self.store, (HashEmbedder(), None))


class _Nothing:
    def get(self, vector_keys: object) -> dict[str, bytes]:
        del vector_keys
        return {}

    def put(self, vectors: object, now_ns: int) -> None:
        pass

    def delete(self, vector_keys: object) -> None:
        pass


def test_the_rebuild_looks_at_files_alone() -> None:
    small = Small()
    small.catalogue.files.clear()
    small.store.table.clear()
    assert sum(part.file_count for part in small.rebuild()) == 2


def test_rows_below_a_folder_that_cannot_be_read_are_left_out() -> None:
    small = Small()
    small.files.unread.add(("r", "deep"))
    assert small.verify().differences == ()
    assert small.verify().file_count == 1


def test_a_root_that_is_away_has_no_files_and_all_its_rows_are_kept() -> None:
    small = Small()
    small.files.gone.add("r")
    result = small.verify()
    assert (result.file_count, result.chunk_count, result.differences) == (0, 0, ())
    assert result.kept_files == {"r": 2}


def test_a_file_that_is_being_written_is_named_and_left_out() -> None:
    small = Small()
    small.files.unstable.add(RootedPath("r", "a.md"))
    result = small.verify()
    assert (result.differences, result.changing_files) == ((), (RootedPath("r", "a.md"),))


def test_a_file_that_became_unusable_should_have_no_rows() -> None:
    small = Small()
    small.files.problems[RootedPath("r", "a.md")] = Problem("permission denied")
    assert [d.kind for d in small.verify().differences] == [DifferenceKind.EXTRA]


def test_a_file_over_the_limit_should_have_no_rows() -> None:
    small = Small()
    small.files.put(RootedPath("r", "a.md"), b"x" * (MAX_FILE_BYTES + 1))
    assert [d.kind for d in small.verify().differences] == [DifferenceKind.EXTRA]


def test_a_row_whose_bytes_changed_on_the_disk_is_found() -> None:
    small = Small()
    (chunk_id, _), *_ = small.store.table.items()
    small.store.rotten.add(chunk_id)
    assert [(d.kind, d.chunk_id) for d in small.verify().differences] == [
        (DifferenceKind.SPOILED, chunk_id)
    ]


def test_rows_that_the_delete_guard_holds_are_left_out() -> None:
    small = Small()
    small.files.remove(RootedPath("r", "a.md"))
    assert [d.kind for d in small.verify().differences] == [DifferenceKind.EXTRA]
    small.files.remove(RootedPath("r", "deep/b.md"))
    small.files.device = 2
    assert small.verify().differences == ()


def test_a_vector_of_no_numbers_is_found() -> None:
    small = Small()
    (chunk_id, (row, _)), *_ = small.store.table.items()
    small.store.table[chunk_id] = (row, array("f", [math.nan] * HashEmbedder.dimension).tobytes())
    assert [(d.kind, d.chunk_id) for d in small.verify().differences] == [
        (DifferenceKind.VECTOR, chunk_id)
    ]


def test_files_whose_rows_are_kept_are_counted_by_root_without_exchanges() -> None:
    small = Small()
    small.files.put(RootedPath("r", "deep/c.md"), "Words.\n")
    world = small.catalogue
    world.files[RootedPath("r", "deep/c.md")] = world.files[RootedPath("r", "deep/b.md")]
    world.files[RootedPath("r", "/codex/s/1")] = world.files[RootedPath("r", "a.md")]

    def kept(*paths: str) -> dict[str, int]:
        held = tuple(RootedPath("r", path) for path in paths)
        part = ExpectedRows({}, 0, held_deletions=held)
        return dict(verify([part], world, small.store, (HashEmbedder(), 0)).kept_files)

    assert kept("") == {"r": 3}
    assert kept("deep/") == {"r": 2}
    assert kept("deep/", "deep/b.md", "a.md") == {"r": 3}
    assert kept("gone.md") == {"r": 1}
    assert kept("/codex/s/1") == {}
    assert kept("nothing/") == {}
    assert kept() == {}


def test_only_rows_of_what_is_held_are_left_out() -> None:
    small = Small()

    def extra(*held: RootedPath) -> set[str]:
        part = ExpectedRows({}, 0, held_deletions=held)
        found = verify([part], small.catalogue, small.store, (HashEmbedder(), 0)).differences
        assert {each.kind for each in found} <= {DifferenceKind.EXTRA}
        return {each.origin.path for each in found}

    assert extra() == {"a.md", "deep/b.md"}
    assert extra(RootedPath("r", "")) == set()
    assert extra(RootedPath("other", "")) == {"a.md", "deep/b.md"}
    assert extra(RootedPath("r", "deep/")) == {"a.md"}
    assert extra(RootedPath("r", "a")) == {"a.md", "deep/b.md"}
    assert extra(RootedPath("r", "deep")) == {"a.md", "deep/b.md"}
    assert extra(RootedPath("r", "a.md"), RootedPath("r", "deep/b.md")) == set()


def test_a_check_of_unchanged_files_skips_what_changed_or_was_interrupted() -> None:
    small = Small()
    one, other = RootedPath("r", "a.md"), RootedPath("r", "deep/b.md")

    def check() -> list[tuple[str, str]]:
        records = [(path, small.catalogue.get_record(path)) for path in (one, other)]
        entries = [(path, record) for path, record in records if record]
        stores = (small.files, small.catalogue, small.store)
        found = verify_unchanged_files(entries, *stores, (RECIPE, count_words))
        return sorted((each.kind, each.origin.path) for each in found)

    assert check() == []
    rows = dict(small.store.table)
    small.store.table.clear()
    assert check() == [("missing", "a.md"), ("missing", "deep/b.md")]
    small.catalogue.mark_for_reread([one])
    assert check() == [("missing", "deep/b.md")]
    small.files.put(other, "Changed meanwhile.\n", None)
    assert check() == []
    small.store.table.update(rows)


def test_a_row_that_the_catalog_lists_and_the_file_does_not_give_is_extra() -> None:
    small = Small()
    one = RootedPath("r", "a.md")
    record = small.catalogue.get_record(one)
    assert record is not None
    stray = replace(record.chunks[0], chunk_id="stray")
    entries = [(one, record._replace(chunks=(*record.chunks, stray)))]
    stores = (small.files, small.catalogue, small.store)
    assert verify_unchanged_files(entries, *stores, (RECIPE, count_words)) == [
        Difference(DifferenceKind.EXTRA, one, "stray")
    ]
    small.files.unstable.add(one)
    assert verify_unchanged_files(entries, *stores, (RECIPE, count_words)) == []


def test_the_differences_are_sorted_by_file_kind_and_id_and_named_once() -> None:
    small = Small()
    small.store.table.clear()
    parts = small.rebuild()
    found = verify([*parts, *reversed(parts)], small.catalogue, small.store, (HashEmbedder(), 0))
    assert [(each.kind, each.origin.path) for each in found.differences] == [
        ("missing", "a.md"),
        ("missing", "deep/b.md"),
    ]
    assert (found.exchange_count, found.transcript_count) == (0, 0)
    assert found.chunk_count == 2


def test_a_verification_gives_signs_of_life_for_each_part_and_each_batch_of_texts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = Small()
    beats: list[float] = []
    monkeypatch.setattr(module, "_TEXTS_PER_BATCH", 1)
    verify(small.rebuild(), small.catalogue, small.store, (HashEmbedder(), None), beats.append)
    assert beats == [0, 0, MODEL_STEP_TIMEOUT_S, MODEL_STEP_TIMEOUT_S]


def test_an_empty_index_of_nothing_is_right() -> None:
    catalogue = FakeCatalogue()
    made = expected_rows_of_roots([], (FakeFiles(), catalogue), RECIPE, count_words)
    result = verify(made, catalogue, FakeStore(), (HashEmbedder(), None))
    assert result == VerifyResult(file_count=0, chunk_count=0, vectors_checked=0, differences=())
    assert (result.exchange_count, result.transcript_count) == (0, 0)


# The cosine

_numbers = st.lists(st.floats(-1, 1, width=32), min_size=3, max_size=3)


@given(_numbers, _numbers)
def test_a_cosine_is_between_minus_1_and_1_and_the_same_both_ways(
    one: list[float], other: list[float]
) -> None:
    a, b = array("f", one).tobytes(), array("f", other).tobytes()
    assert -1.000001 <= cosine(a, b) <= 1.000001
    assert cosine(a, b) == cosine(b, a)


def test_vectors_of_no_or_of_different_length_have_nothing_in_common() -> None:
    one = array("f", [1.0, 0.0]).tobytes()
    assert cosine(one, one) == 1.0
    assert cosine(one, array("f", [0.0, 0.0]).tobytes()) == 0.0
    assert cosine(one, array("f", [1.0]).tobytes()) == 0.0


def test_every_row_is_as_likely_in_a_sample_of_the_vectors() -> None:
    """Of 50 rows in five parts, 300 samples of 10 have each row about 60 times, and no row twice."""
    fields: dict[str, Any] = dict.fromkeys(Row.__dataclass_fields__, "")
    prepared = PreparedRow(Row(**fields), 1, 1, "text")
    parts = [
        {f"{number}": (RootedPath("r", "a.md"), prepared) for number in range(start, start + 10)}
        for start in range(0, 50, 10)
    ]
    counts: Counter[str] = Counter()
    for _ in range(300):
        sample = RowSample(10)
        for part in parts:
            sample.offer(part)
        ids = [row_id for row_id, _, _ in sample.chosen]
        assert len(set(ids)) == len(ids) == 10
        counts.update(ids)
    assert len(counts) == 50
    assert 20 < min(counts.values()) <= max(counts.values()) < 110
