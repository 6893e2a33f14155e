"""`verify` finds whatever differs from a clean rebuild, whoever planted it, and `repair` mends that and only that."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import lancedb
import pytest
from fakes import FakeCatalogue, FakeFiles, FakeStore, plans
from hypothesis import given
from hypothesis import strategies as st
from index.running import index_all

from anchord.config.paths import find_paths
from anchord.config.schema import Config, EmbeddingConfig
from anchord.core.deletion_guard import recent_deletions_meta_key
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
    WalkResult,
)
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.index.file_plans import plan_row_removal
from anchord.index.heartbeat import MODEL_STEP_TIMEOUT_S
from anchord.index.indexer import Indexer
from anchord.index.integrity import repair
from anchord.index.integrity import verify as module
from anchord.index.integrity.repair import delete_damaged_rows, verify_index
from anchord.index.integrity.row_sample import RowSample
from anchord.index.integrity.verify import (
    Difference,
    DifferenceKind,
    ExpectedRows,
    VerifyResult,
    cosine,
    expected_rows_of_files,
    expected_rows_of_roots,
    verify,
    verify_unchanged_files,
)
from anchord.index.models import Models
from anchord.index.opening import open_writer
from anchord.index.recipe import Recipe
from anchord.index.rows import PreparedRow
from anchord.index.session import IndexWriter
from anchord.sources.conversations.events import Exchange
from anchord.sources.conversations.exchange_document import add_session_info, encode_exchange
from anchord.sources.files.folder_files import MAX_FILE_BYTES
from anchord.store.table.table import LanceStore

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
    index_all(writer)
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


def test_a_row_that_no_index_finds_is_extra_and_a_repair_builds_the_indices_again(
    writer: IndexWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = row_of(writer, "a.md")
    stranger = replace(row, id="2" * 32)
    writer.store.upsert([stranger], writer.store.vectors_by_key_of_rows([row.id]))
    look_up, rebuilt = LanceStore.get_rows, list[bool]()

    def without_the_stranger(store: LanceStore, ids: Sequence[str]) -> list[Row]:
        return [each for each in look_up(store, ids) if rebuilt or each.id != stranger.id]

    def build(*_: object, rebuild_indices: bool) -> list[str]:
        rebuilt.append(rebuild_indices)
        return ["built"]

    monkeypatch.setattr(LanceStore, "get_rows", without_the_stranger)
    monkeypatch.setattr(repair, "repair_index_table", build)
    assert found(writer) == [(DifferenceKind.EXTRA, "", stranger.id)]
    assert_mends(writer, embedded=0)
    assert rebuilt == [True]
    assert "built" in writer.repairs


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
        index_all(writer)
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

    def __init__(self, *names: str) -> None:
        """Index two files, or those with given names."""
        self.files, self.catalogue, self.store = FakeFiles(), FakeCatalogue(), FakeStore()
        for name in names or ("a.md", "deep/b.md"):
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
        return verify(self.rebuild(), self.catalogue, self.store, (Models(HashEmbedder()), None))


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


def kinds_of(result: VerifyResult) -> Counter[str]:
    return Counter(each.kind for each in result.differences)


class Guarded:
    """Files that the catalog knows, and what a verification says of those that are gone."""

    def __init__(self, count: int) -> None:
        """Record so many files."""
        self.files, self.catalogue = FakeFiles(), FakeCatalogue()
        self.paths = [RootedPath("r", f"{number:03}.md") for number in range(count)]
        for path in self.paths:
            record = FileRecord(self.files.put(path, "Words.\n"), 1, "", "", is_confirmed=True)
            self.catalogue.confirm_updates([plan_row_removal(path, (), "", record)])

    def held(self) -> set[RootedPath]:
        """Return the files whose rows are kept."""
        stores = (self.files, self.catalogue)
        return set(next(expected_rows_of_roots(["r"], stores, RECIPE, count_words)).held_deletions)


@pytest.mark.parametrize(
    ("known", "missing", "recent", "is_held"),
    [
        (97, 49, "", False),
        (97, 49, "1", True),
        (99, 50, "", True),
        (100, 50, "", False),
        (50, 50, "0", True),
        (60, 0, "60", False),
    ],
)
def test_the_guard_holds_as_a_walk_does(
    known: int,
    missing: int,
    recent: str,
    is_held: bool,  # noqa: FBT001 - a column of the table
) -> None:
    guarded = Guarded(known)
    for path in guarded.paths[:missing]:
        guarded.files.remove(path)
    guarded.catalogue.set_meta(recent_deletions_meta_key("r"), recent)
    assert guarded.held() == (set(guarded.paths[:missing]) if is_held else set())


def test_rows_of_files_that_moved_are_not_held() -> None:
    guarded = Guarded(60)
    for path in guarded.paths[:59]:
        guarded.files.move(path, RootedPath("r", f"new/{path.path}"))
    guarded.files.remove(guarded.paths[59])
    assert guarded.held() == set()


def test_rows_of_files_that_the_rules_exclude_are_not_held_and_not_counted() -> None:
    guarded = Guarded(159)
    for number, path in enumerate(guarded.paths[:60]):
        guarded.files.excluded[path] = "a rule"
        if number % 2:
            guarded.files.remove(path)
    assert guarded.held() == set()
    for path in guarded.paths[60:109]:
        guarded.files.remove(path)
    assert guarded.held() == set(), "49"
    guarded.files.remove(guarded.paths[109])
    assert guarded.held() == set(guarded.paths[60:110]), "50 of 99"


def test_ignore_files_that_cannot_be_read_are_counted_by_root(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = Small()
    real = small.files.walk

    def walk(root: str, prefix: str) -> object:
        found = real(root, prefix)
        assert isinstance(found, WalkResult)
        return replace(found, unknown_rules=("deep/.gitignore", "x/.gitignore"))

    monkeypatch.setattr(small.files, "walk", walk)
    assert small.verify().unread_rules == {"r": 2}
    assert [each.unread_rules for each in small.rebuild()] == [
        (RootedPath("r", "deep/.gitignore"), RootedPath("r", "x/.gitignore")),
        (),
    ]


def test_a_root_that_is_away_keeps_no_other_from_being_compared() -> None:
    small = Small()
    small.files.gone.add("away")
    small.store.table.clear()
    roots = ["away", "r"]
    parts = expected_rows_of_roots(roots, (small.files, small.catalogue), RECIPE, count_words)
    result = verify(parts, small.catalogue, small.store, (Models(HashEmbedder()), None))
    assert kinds_of(result) == {"missing": 2}


@pytest.mark.parametrize(
    ("path", "size", "count"),
    [
        ("a.md", MAX_FILE_BYTES, 1),
        ("a.md", MAX_FILE_BYTES + 1, 0),
        ("/codex/s/1", MAX_FILE_BYTES + 1, 1),
    ],
)
def test_only_exchanges_have_rows_at_any_size(path: str, size: int, count: int) -> None:
    files, origin = FakeFiles(), RootedPath("r", path)
    told = Exchange(id="1", session="s", number=1, question="How?", answer="So.", at="", until="")
    content = add_session_info(encode_exchange(told), "codex", "s", "", "")
    seen = files.put(origin, content if path.startswith("/") else "Words.\n")
    files.fingerprints[origin] = seen._replace(size=size)
    part = expected_rows_of_files([origin], files, RECIPE, count_words)
    assert (part.file_count, len(part.rows_by_id)) == (count, count)


class Vectors:
    """A model that gives every text the same vector."""

    def __init__(self, *numbers: float) -> None:
        """Give these numbers."""
        self.vector = array("f", numbers).tobytes()

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Give the vector of each text."""
        return [self.vector] * len(texts)


def differ(stored: Sequence[float], fresh: Sequence[float]) -> bool:
    """Verify an index whose model gives `fresh`, and that has `stored`."""
    small = Small("a.md")
    ((chunk_id, (row, _)),) = small.store.table.items()
    small.store.table[chunk_id] = (row, array("f", stored).tobytes())
    model: Any = Vectors(*fresh)
    result = verify(small.rebuild(), small.catalogue, small.store, (Models(model), None))
    assert result.vectors_checked == 1
    assert set(kinds_of(result)) <= {"vector"}
    return bool(result.differences)


@pytest.mark.parametrize(
    ("cosine_of_both", "differs"),
    [(1.0, False), (0.9995, False), (0.9985, True), (0.5, True), (0.0, True), (-1.0, True)],
)
def test_a_vector_may_differ_by_rounding_only(
    cosine_of_both: float,
    differs: bool,  # noqa: FBT001 - a column of the table
) -> None:
    stored = (cosine_of_both, math.sqrt(1 - cosine_of_both**2))
    assert differ(stored, (1.0, 0.0)) is differs


@pytest.mark.parametrize(("found", "differs"), [(0.999, False), (0.99899, True)])
def test_a_vector_at_the_limit_is_the_same(
    monkeypatch: pytest.MonkeyPatch,
    found: float,
    differs: bool,  # noqa: FBT001 - a column of the table
) -> None:
    monkeypatch.setattr(module, "cosine", lambda *_: found)
    assert differ((1.0, 0.0), (1.0, 0.0)) is differs


@pytest.mark.parametrize(
    ("stored", "fresh", "differs"),
    [
        ((0.0, 0.0), (0.0, 0.0), False),
        ((0.0, 0.0), (1.0, 0.0), True),
        ((1.0, 0.0), (0.0, 0.0), True),
    ],
)
def test_only_a_text_that_still_crashes_the_model_may_have_a_vector_of_zeros(
    stored: Sequence[float],
    fresh: Sequence[float],
    differs: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert differ(stored, fresh) is differs


def test_a_model_that_leaves_out_a_text_is_not_believed() -> None:
    small = Small()
    model: Any = Vectors(1.0)
    model.embed = lambda texts: [model.vector] * (len(texts) - 1)
    with pytest.raises(ValueError, match="shorter"):
        verify(small.rebuild(), small.catalogue, small.store, (Models(model), None))


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
        return dict(verify([part], world, small.store, (Models(HashEmbedder()), 0)).kept_files)

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
        found = verify(
            [part], small.catalogue, small.store, (Models(HashEmbedder()), 0)
        ).differences
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


def test_a_file_that_changes_while_it_is_compared_is_not_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = Small()
    one, other = RootedPath("r", "a.md"), RootedPath("r", "deep/b.md")
    records = [(path, small.catalogue.get_record(path)) for path in (one, other)]
    entries = [(path, record) for path, record in records if record]
    small.store.table.clear()
    real = small.files.read

    def read(origin: RootedPath) -> object:
        content = real(origin)
        if origin == one:
            small.files.put(one, "Changed as soon as it was read.\n")
        return content

    monkeypatch.setattr(small.files, "read", read)
    stores = (small.files, small.catalogue, small.store)
    found = verify_unchanged_files(entries, *stores, (RECIPE, count_words))
    assert [(each.kind, each.origin) for each in found] == [(DifferenceKind.MISSING, other)]


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
    found = verify(
        [*parts, *reversed(parts)], small.catalogue, small.store, (Models(HashEmbedder()), 0)
    )
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
    verify(
        small.rebuild(), small.catalogue, small.store, (Models(HashEmbedder()), None), beats.append
    )
    assert beats == [0, 0, MODEL_STEP_TIMEOUT_S, MODEL_STEP_TIMEOUT_S]


def test_an_empty_index_of_nothing_is_right() -> None:
    catalogue = FakeCatalogue()
    made = expected_rows_of_roots([], (FakeFiles(), catalogue), RECIPE, count_words)
    result = verify(made, catalogue, FakeStore(), (Models(HashEmbedder()), None))
    assert result == VerifyResult(file_count=0, chunk_count=0, vectors_checked=0, differences=())
    assert (result.exchange_count, result.transcript_count, result.without_vector) == (0, 0, 0)


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
        ids = [each.row_id for each in sample.chosen]
        assert len(set(ids)) == len(ids) == 10
        counts.update(ids)
    assert len(counts) == 50
    assert 20 < min(counts.values()) <= max(counts.values()) < 110
