"""A new generation, step by step: what it starts with, waits for, takes over and leaves behind."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from index.running import index_all

from anchord.config.paths import find_paths
from anchord.config.schema import Config, EmbeddingConfig
from anchord.core.types import NO_FINGERPRINT, Action, FileOutcome, RootedPath
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.errors import StoreDamagedError, StoreError, UsageError
from anchord.index import generation, recovery
from anchord.index.further_models import NO_FURTHER_MODELS
from anchord.index.generation import (
    REBUILD,
    RECHUNK,
    BuildRequest,
    GenerationBuild,
    delete_next_generation,
    find_interrupted_build,
    find_required_build,
    find_unavailable_roots,
    require_local_table,
)
from anchord.index.indexer import Indexer
from anchord.index.integrity.repair import verify_index
from anchord.index.opening import open_writer
from anchord.index.profile import PinnedRecipe
from anchord.index.reconcile import ReconcileResult
from anchord.index.session import IndexWriter
from anchord.store.catalog.catalog import SqliteCatalog
from anchord.store.table import maintenance as table_maintenance
from anchord.store.table.connection import TableReadError
from anchord.store.table.table import NEXT_TABLE_NAME, TABLE_NAME
from anchord.store.table.versions import SCHEMA_VERSION

CONFIG = Config(embedding=EmbeddingConfig(provider="hash"))
NOTHING_CHANGES = BuildRequest("a test")


@pytest.fixture
def writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[IndexWriter]:
    """Give an index of three files in one root and two in another, long after they were written."""
    later = SimpleNamespace(time_ns=lambda: time.time_ns() + 10**10)
    monkeypatch.setattr("anchord.index.session.time", later)
    for root, count in (("docs", 3), ("more", 2)):
        (tmp_path / root).mkdir()
        for number in range(count):
            (tmp_path / root / f"{number}.md").write_text(f"Words of {root} {number}.\n")
    (tmp_path / "home").mkdir(mode=0o700)
    paths = find_paths({"ANCHORD_HOME": str(tmp_path / "home")})
    paths.create_folders()
    opened = open_writer(paths, CONFIG, [str(tmp_path / "docs"), str(tmp_path / "more")])
    index_all(opened)
    yield opened
    opened.close()


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the texts that are embedded."""
    texts: list[str] = []
    real = HashEmbedder.embed

    def embed(embedder: HashEmbedder, given: Sequence[str], *others: Any) -> Any:  # noqa: ANN401 - as in the original
        texts.extend(given)
        return real(embedder, given, *others)

    monkeypatch.setattr(HashEmbedder, "embed", embed)
    return texts


def step(build: GenerationBuild) -> list[FileOutcome]:
    return build.index_next_files(lambda: False)


def finished(writer: IndexWriter, request: BuildRequest) -> GenerationBuild:
    build = GenerationBuild(writer, request)
    while not build.is_finished:
        step(build)
    return build


def next_table(writer: IndexWriter) -> Path:
    return writer.paths.data_folder / "lance" / "next.lance"


def paths_in(writer: IndexWriter) -> set[str]:
    return {f"{row.root}/{row.path}" for row in writer.store.all_rows()}


ALL = {"docs/0.md", "docs/1.md", "docs/2.md", "more/0.md", "more/1.md"}


def test_a_build_is_finished_after_two_walks_that_leave_nothing_due(writer: IndexWriter) -> None:
    build = GenerationBuild(writer, RECHUNK)
    assert (build.files_done, build.files_due, build.is_finished) == (0, 0, False)
    assert build.reason == "asked for by `reindex --force-rechunk`"
    assert len(step(build)) == 5
    assert (build.files_done, build.files_due, build.is_finished) == (5, 0, False)
    (Path(writer.roots_by_name["docs"].path) / "new.md").write_text("A new one.\n")
    assert [outcome.origin.path for outcome in step(build)] == ["new.md"]
    assert (build.files_done, build.is_finished) == (6, True)
    build.delete()


def test_a_step_indexes_a_limited_number_of_files_and_walks_only_when_none_is_left(
    writer: IndexWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generation, "_STEP_FILES", 3)
    build = GenerationBuild(writer, RECHUNK)
    assert (len(step(build)), build.files_due, build.is_finished) == (3, 2, False)
    assert (len(step(build)), build.files_due, build.is_finished) == (2, 0, False)
    assert (len(step(build)), build.files_due, build.is_finished) == (0, 0, True)
    build.delete()


def test_the_promoted_generation_takes_the_former_ones_place(writer: IndexWriter) -> None:
    former_store, former_commits = writer.store, writer.indexer.commit_count
    writer.catalog.set_meta("clean", "1")
    (Path(writer.roots_by_name["docs"].path) / "0.md").write_text("Other words.\n")
    build = finished(writer, RECHUNK)
    assert build._indexer.commit_count > 0
    build.promote()
    assert writer.indexer.commit_count == former_commits + build._indexer.commit_count
    assert writer.catalog.get_meta("clean") == "0", "until this process ends in good order"
    assert writer.catalog.get_meta("why") == ""
    assert writer.store is not former_store
    assert paths_in(writer) == ALL
    assert not next_table(writer).exists()
    assert not writer.paths.next_catalog_file.exists()
    assert not writer.paths.promotion_marker.exists()
    with pytest.raises((StoreError, sqlite3.Error)):
        build.catalog.get_meta("why")
    (Path(writer.roots_by_name["docs"].path) / "new.md").write_text("A new one.\n")
    index_all(writer)
    assert paths_in(writer) == {*ALL, "docs/new.md"}
    assert find_interrupted_build(writer) is None


def test_a_rebuild_embeds_every_text_again_and_a_rechunk_none(
    writer: IndexWriter, embedded: list[str]
) -> None:
    finished(writer, RECHUNK).promote()
    assert embedded == []
    finished(writer, REBUILD).promote()
    assert len(embedded) == 5
    assert paths_in(writer) == ALL


def test_without_a_reason_in_the_files_a_build_reads_none_of_them_again(
    writer: IndexWriter, embedded: list[str]
) -> None:
    build = finished(writer, NOTHING_CHANGES)
    assert (build.files_done, embedded) == (0, [])
    build.promote()
    assert paths_in(writer) == ALL


def test_a_table_of_the_first_version_with_these_columns_is_cloned(
    writer: IndexWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(writer.store), "schema_version", SCHEMA_VERSION)
    build = GenerationBuild(writer, NOTHING_CHANGES)
    assert build.store.count_rows() == 5
    build.delete()


@pytest.mark.parametrize("difference", ["dimension", "schema"])
def test_a_table_with_other_columns_is_not_cloned(
    writer: IndexWriter, monkeypatch: pytest.MonkeyPatch, difference: str
) -> None:
    if difference == "dimension":
        monkeypatch.setattr(writer, "profile", replace(writer.profile, embedder=HashEmbedder(7)))
    else:
        monkeypatch.setattr(type(writer.store), "schema_version", SCHEMA_VERSION - 1)
    build = GenerationBuild(writer, NOTHING_CHANGES)
    assert build.store.count_rows() == 0
    build.delete()
    monkeypatch.undo()


def test_a_closed_build_of_the_same_request_goes_on_and_another_begins_anew(
    writer: IndexWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    restored: list[str] = []
    monkeypatch.setattr(writer.indexer.lost_exchanges, "restore_root", restored.append)
    monkeypatch.setattr(generation, "_STEP_FILES", 3)
    writer.roots[:] = [
        replace(root, kind="conversations") if root.name == "more" else root
        for root in writer.roots
    ]
    build = GenerationBuild(writer, RECHUNK)
    assert (build.was_resumed, restored) == (False, ["more"])
    step(build)
    build.close()
    with pytest.raises((StoreError, sqlite3.Error)):
        build.catalog.get_meta("why")
    assert find_interrupted_build(writer) == RECHUNK
    build = GenerationBuild(writer, RECHUNK)
    assert (build.was_resumed, len(restored)) == (True, 1)
    assert len(step(build)) == 2  # The other three were done before.
    build.close()
    build = GenerationBuild(writer, REBUILD)
    assert (build.was_resumed, len(restored)) == (False, 2)
    assert build.store.count_rows() == 0
    build.delete()


def test_a_root_that_left_since_the_build_was_closed_leaves_nothing_in_it(
    writer: IndexWriter,
) -> None:
    finished(writer, RECHUNK).close()
    writer.drop_root("more")
    build = finished(writer, RECHUNK)
    assert build.was_resumed
    build.promote()
    assert {row.root for row in writer.store.all_rows()} == {"docs"}
    assert verify_index(writer, None).differences == ()


@pytest.mark.parametrize("lost", ["catalog", "table", "damaged"])
def test_half_of_an_unfinished_build_is_not_continued(writer: IndexWriter, lost: str) -> None:
    build = GenerationBuild(writer, RECHUNK)
    build.close()
    if lost == "catalog":
        writer.paths.next_catalog_file.unlink()
    elif lost == "table":
        next_table(writer).rename(writer.paths.data_folder / "elsewhere")
    else:
        writer.paths.next_catalog_file.write_bytes(b"no catalog at all " * 400)
        assert find_interrupted_build(writer) is None
    build = GenerationBuild(writer, RECHUNK)
    assert not build.was_resumed
    assert build.store.count_rows() == 5
    build.delete()


def test_a_deleted_build_leaves_nothing(writer: IndexWriter) -> None:
    build = GenerationBuild(writer, RECHUNK)
    assert next_table(writer).is_dir()
    build.delete()
    with pytest.raises((StoreError, sqlite3.Error)):
        build.catalog.get_meta("why")
    assert not next_table(writer).exists()
    assert not writer.paths.next_catalog_file.exists()
    delete_next_generation(writer)  # Nothing is there.
    assert paths_in(writer) == ALL


def test_a_root_that_is_removed_leaves_nothing_in_the_build(
    writer: IndexWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generation, "_STEP_FILES", 1)
    build = GenerationBuild(writer, RECHUNK)
    step(build)
    build.drop_root("docs")
    assert set(build._queue) == {RootedPath("more", "0.md"), RootedPath("more", "1.md")}
    assert {row.root for row in build.store.all_rows()} == {"more"}
    assert list(build.catalog.root_names()) == ["more"]
    build.delete()


class Walks:
    """Walks with given results, in place of an indexer's."""

    def __init__(self, **results: ReconcileResult) -> None:
        """Begin with the results by root."""
        self.results = results
        self.outcomes: list[FileOutcome] = []
        self.asked: list[tuple[list[RootedPath], set[RootedPath]]] = []
        self.vector_fill = SimpleNamespace(find_due=list, fill=lambda *_: [])

    def reconcile(self, root: str) -> ReconcileResult:
        """Return the result of a root."""
        return self.results.get(root, ReconcileResult())

    def index(
        self, files: list[RootedPath], _: object, confirmed_gone: set[RootedPath]
    ) -> list[FileOutcome]:
        """Return the outcomes that were given."""
        self.asked.append((files, set(confirmed_gone)))
        return self.outcomes


class Fill:
    """Vectors that some files lack; each fill gives the next outcomes."""

    def __init__(self, due: Sequence[RootedPath], *outcomes: Sequence[FileOutcome]) -> None:
        """Begin with the files, and the outcomes of each fill."""
        self.due = due
        self.outcomes = list(outcomes)
        self.asked: list[list[RootedPath]] = []

    def find_due(self) -> list[RootedPath]:
        """Return the files."""
        return list(self.due)

    def fill(self, files: Sequence[RootedPath], _: object) -> Sequence[FileOutcome]:
        """Return the next outcomes."""
        self.asked.append(list(files))
        return self.outcomes.pop(0)


def building(walks: Any) -> GenerationBuild:  # noqa: ANN401 - a stand-in
    """Give a build of two roots over walks, without catalog and table."""
    build = object.__new__(GenerationBuild)
    roots: Any = [SimpleNamespace(name=name) for name in ("docs", "more")]
    build._writer = SimpleNamespace(roots=roots)  # type: ignore[assignment]
    build._indexer = walks
    build._queue, build._confirmed_gone = {}, set()
    build._walk_count = build.files_done = 0
    build._may_lack_vectors, build._has_begun_again = True, False
    build.reason, build.unavailable_roots = NOTHING_CHANGES.reason, ()
    return build


@pytest.mark.parametrize(
    "result",
    [ReconcileResult(walk_error="gone"), ReconcileResult(held_deletions=1)],
    ids=["missing", "held"],
)
def test_a_build_waits_for_roots_that_cannot_be_seen_as_a_whole(result: ReconcileResult) -> None:
    walks = Walks(more=result)
    build = building(walks)
    for _ in range(3):
        step(build)
    assert (build.unavailable_roots, build.is_finished) == (("more",), False)
    walks.results.clear()
    step(build)
    assert (build.unavailable_roots, build.is_finished) == ((), True)


def test_files_that_are_changing_count_and_are_not_told() -> None:
    one, other = RootedPath("docs", "0.md"), RootedPath("docs", "1.md")
    gone = {one: NO_FINGERPRINT}
    walks = Walks(docs=ReconcileResult(paths_due=(one, other), gone_or_emptied=gone))
    walks.outcomes = [
        FileOutcome(origin=one, action=Action.RETRY, reason="written while it was read"),
        FileOutcome(origin=other, action=Action.INDEXED, reason="new"),
    ]
    build = building(walks)
    assert [outcome.origin for outcome in step(build)] == [other]
    assert (build.files_done, build.files_due) == (2, 0)
    assert walks.asked == [([one, other], {one})]
    walks.results.clear()
    walks.outcomes = []
    step(build)
    assert walks.asked[1] == ([], set()), "the files that were gone at the walk before"


def filled(name: str, action: Action = Action.EMBEDDED, embedded: int = 1) -> FileOutcome:
    return FileOutcome(origin=RootedPath("docs", name), action=action, reason="", embedded=embedded)


def test_a_build_makes_the_vectors_that_its_rows_lack_before_it_is_finished() -> None:
    due = [RootedPath("docs", f"{number}.md") for number in range(3)]
    fill = Fill(
        due,
        [filled("0.md"), filled("1.md", embedded=0)],
        [
            filled("0.md", embedded=0),
            filled("1.md", embedded=0),
            filled("2.md", Action.RETRY, embedded=2),
        ],
        [],
    )
    walks = Walks()
    walks.vector_fill = fill  # type: ignore[assignment]
    build = building(walks)
    assert step(build) == [filled("0.md")], "what nothing was made for is not told"
    assert (build._walk_count, build.files_due, build.is_finished) == (1, 0, False)
    build._walk_count = 2
    assert not build.is_finished, "one file was not handled"
    build._walk_count = 1
    told = step(build)
    assert told == [filled("2.md", embedded=2)], "it was made, though the file changed"
    assert (build.files_due, build.is_finished) == (1, False), "the changed file is indexed again"
    walks.outcomes = [filled("2.md", Action.INDEXED)]
    assert step(build) == walks.outcomes
    assert walks.asked[-1] == ([due[2]], set())
    assert (fill.asked, build.is_finished) == ([due, due], True), "no more than was lacking"


def test_so_many_files_get_their_vectors_in_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "FILES_PER_FILL", 2)
    due = [RootedPath("docs", f"{number}.md") for number in range(3)]
    fill = Fill(due, [filled("0.md"), filled("1.md")], [filled("2.md")])
    walks = Walks()
    walks.vector_fill = fill  # type: ignore[assignment]
    build = building(walks)
    step(build)
    fill.due = due[2:]
    step(build)
    assert (fill.asked, build.is_finished) == ([due[:2], due[2:]], True)


def test_no_vector_is_made_after_a_stop_or_while_files_are_due() -> None:
    one = RootedPath("docs", "0.md")
    fill = Fill([one], [filled("0.md")])
    walks = Walks(docs=ReconcileResult(paths_due=(one,)))
    walks.vector_fill = fill  # type: ignore[assignment]
    build = building(walks)
    step(build)
    assert (fill.asked, build.files_due) == ([], 1)
    walks.outcomes = [filled("0.md", Action.INDEXED)]
    build.index_next_files(lambda: True)
    assert (fill.asked, build.files_due) == ([], 0)
    build._walk_count = 2
    assert not build.is_finished
    walks.results.clear()
    walks.outcomes = []
    assert step(build) == [filled("0.md")]
    assert build.is_finished


def test_a_build_that_is_not_finished_has_files_or_vectors_left() -> None:
    build = building(Walks())
    one = RootedPath("docs", "0.md")
    for walks, files, lacks, unavailable, is_finished in (
        (2, [], False, (), True),
        (3, [], False, (), True),
        (1, [], False, (), False),
        (2, [one], False, (), False),
        (2, [], True, (), False),
        (2, [], False, ("docs",), False),
    ):
        build._walk_count = walks
        build._queue = dict.fromkeys(files)
        build._may_lack_vectors = lacks
        build.unavailable_roots = unavailable
        assert build.is_finished is is_finished


def test_vectors_that_the_present_generation_lacks_are_made_for_the_next(
    writer: IndexWriter, embedded: list[str]
) -> None:
    row = next(iter(writer.store.all_rows()))
    writer.store.upsert([row], {}, due={row.vector_key: b""})
    assert writer.store.count_due() == 1
    build = GenerationBuild(writer, NOTHING_CHANGES)
    (told,) = step(build)
    assert (told.origin, told.action) == (RootedPath(row.root, row.path), Action.EMBEDDED)
    assert (embedded, build.store.count_due(), build.is_finished) == ([row.text], 0, False)
    assert step(build) == []
    build.promote()
    assert writer.store.count_due() == 0


def test_a_build_writes_no_chunk_without_its_vector(writer: IndexWriter) -> None:
    build = GenerationBuild(writer, RECHUNK)
    assert writer.indexer._committer.words_first
    assert not build._indexer._committer.words_first
    build.delete()


def test_a_build_knows_the_files_of_the_archive_that_are_gone_or_excluded(
    writer: IndexWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[tuple[object, ...]] = []
    monkeypatch.setattr(generation, "list_unlisted_files", lambda *given: listed.append(given))
    build = GenerationBuild(writer, REBUILD)
    files = writer.files.folder_files
    assert listed == [(writer.archive, build.catalog, writer.roots, files)]
    build.delete()


def test_roots_that_cannot_be_seen_as_a_whole_are_named() -> None:
    roots = [SimpleNamespace(name=name) for name in ("sound", "missing", "held")]
    walks = Walks(
        missing=ReconcileResult(walk_error="gone"), held=ReconcileResult(held_deletions=3)
    )
    writer: Any = SimpleNamespace(roots=roots, indexer=walks)
    assert find_unavailable_roots(writer) == ("missing", "held")


def test_the_reason_of_an_interrupted_build_tells_what_to_go_on_with(writer: IndexWriter) -> None:
    assert find_interrupted_build(writer) is None
    for reason, request in (
        (REBUILD.reason, REBUILD),
        (RECHUNK.reason, RECHUNK),
        ("the model changed", None),
    ):
        with SqliteCatalog(writer.paths.next_catalog_file) as catalog:
            catalog.set_meta("why", f"{reason}\ndigest\n9")
        assert find_interrupted_build(writer) == request


def test_a_changed_recipe_model_or_form_of_the_table_requires_a_build(
    writer: IndexWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_required_build(writer) is None
    configured = writer.configured_profile
    monkeypatch.setattr(writer, "profile", replace(configured))
    model_changed = BuildRequest("the model changed")
    assert find_required_build(writer) == model_changed  # Not a pinned recipe: nobody knows it.
    pinned: Any = object.__new__(PinnedRecipe)
    monkeypatch.setattr(writer, "profile", replace(configured, recipe=pinned))
    assert find_required_build(writer) == BuildRequest("the recipe changed")
    other: Any = HashEmbedder()
    monkeypatch.setattr(writer, "profile", replace(configured, recipe=pinned, embedder=other))
    assert find_required_build(writer) == model_changed
    monkeypatch.setattr(type(writer.store), "schema_version", SCHEMA_VERSION)
    assert find_required_build(writer) == model_changed
    monkeypatch.setattr(type(writer.store), "schema_version", SCHEMA_VERSION - 1)
    assert find_required_build(writer) == BuildRequest("a new form of the table")
    require_local_table(writer)
    monkeypatch.setattr(generation, "is_local", lambda _: False)
    assert find_required_build(writer) is None
    with pytest.raises(UsageError, match="cannot be rebuilt beside itself"):
        require_local_table(writer)


def test_a_table_that_cannot_be_moved_into_place_is_said(
    writer: IndexWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(13, "no")

    build = finished(writer, RECHUNK)
    monkeypatch.setattr(generation, "finish_promotion", refuse)
    with pytest.raises(StoreDamagedError, match="Permission denied"):
        build.promote()
    assert writer.paths.promotion_marker.exists(), "the next start completes it"
    assert not writer.paths.next_catalog_file.exists(), "its content is in place already"
    recovery.finish_promotion(writer.paths, str(next_table(writer).parent), [])
    assert not writer.paths.promotion_marker.exists()


def test_an_error_without_a_number_that_keeps_a_table_from_its_place_is_said_too(
    writer: IndexWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no number")

    build = finished(writer, RECHUNK)
    monkeypatch.setattr(generation, "finish_promotion", refuse)
    with pytest.raises(StoreDamagedError, match="could not be moved into place") as raised:
        build.promote()
    assert os.strerror(0) in raised.value.message
    assert raised.value.hint == "the next start of anchord completes it"


def test_the_writer_goes_on_with_the_profile_of_the_promoted_generation(
    writer: IndexWriter,
) -> None:
    configured = writer.configured_profile
    closed: list[str] = []
    former = HashEmbedder()
    former.close = lambda: closed.append("former")  # type: ignore[method-assign]
    writer.profile = replace(configured, embedder=former)
    writer.catalog.set_meta("made with", "")
    former_indexer = writer.indexer
    build = finished(writer, BuildRequest("the model changed"))
    build.promote()
    assert writer.profile is configured
    assert (closed, writer.indexer is former_indexer) == (["former"], False)
    made_with = writer.catalog.get_meta("made with").split("\n")
    assert made_with[2:] == [configured.embedder.model_id, str(configured.dimension)]
    (Path(writer.roots_by_name["docs"].path) / "new.md").write_text("A new one.\n")
    index_all(writer)
    assert paths_in(writer) == {*ALL, "docs/new.md"}
    assert verify_index(writer, None).differences == ()


def test_an_embedder_that_serves_on_is_not_closed(
    writer: IndexWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    with monkeypatch.context() as recorded:
        recorded.setattr(HashEmbedder, "close", lambda _: closed.append("the same"))
        finished(writer, RECHUNK).promote()
    assert closed == []


def test_vectors_come_from_the_table_that_serves_and_from_the_cache() -> None:
    changes: list[object] = []

    def get(keys: list[str]) -> dict[str, bytes]:
        assert keys == ["b", "c"], "what the table has is not looked up again"
        return {"b": b"2"}

    cache = SimpleNamespace(
        get=get,
        put=lambda *each: changes.append(each),
        delete=lambda *each: changes.append(each),
    )
    store = SimpleNamespace(vectors_by_key=lambda _: {"a": b"1"})
    profile = SimpleNamespace(further=NO_FURTHER_MODELS, embedder=HashEmbedder())
    writer: Any = SimpleNamespace(
        store=store,
        vector_cache=cache,
        profile=profile,
        configured_profile=profile,
    )
    shared = generation._SharedVectors(writer)
    assert shared.get(["a", "b", "c"]) == {"a": b"1", "b": b"2"}
    vectors: Any = {"x": b"3"}
    shared.put(vectors, 5)
    shared.delete(["x"])
    assert changes == [(vectors, 5), (["x"],)]
    assert generation._NoVectors().get(["a"]) == {}


@pytest.mark.parametrize("lost", ["data", "_indices"])
def test_a_build_whose_table_is_damaged_begins_again(
    writer: IndexWriter, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    monkeypatch.setattr(generation, "_STEP_FILES", 3)
    build = GenerationBuild(writer, REBUILD)
    step(build)
    assert table_maintenance.maintain(build.store) == []
    for file in (next_table(writer) / lost).rglob("*"):
        if file.is_file():
            file.write_bytes(b"")
    (Path(writer.roots_by_name["docs"].path) / "0.md").write_text("Other words.\n")
    build._queue[RootedPath("docs", "0.md")] = None
    while not build.is_finished:
        step(build)
    build.promote()
    assert paths_in(writer) == ALL
    assert verify_index(writer, None).differences == ()


def test_a_build_that_begins_again_forgets_what_it_had_done(
    writer: IndexWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generation, "_STEP_FILES", 2)
    build = GenerationBuild(writer, REBUILD)
    step(build)
    former = build.catalog
    build._queue = {RootedPath("docs", "never.md"): None, **build._queue}
    build._may_lack_vectors = False
    real, fails = Indexer.index, [True]

    def fail_once(*given: Any) -> Any:  # noqa: ANN401 - as in the original
        if fails:
            fails.clear()
            raise TableReadError("reading rows failed", "", NEXT_TABLE_NAME)
        return real(*given)

    monkeypatch.setattr(Indexer, "index", fail_once)
    assert {outcome.origin.root for outcome in step(build)} == {"docs"}
    assert (build.files_done, build.files_due, build._walk_count) == (2, 3, 1)
    assert build._may_lack_vectors
    with pytest.raises((StoreError, sqlite3.Error)):
        former.get_meta("why")
    assert {f"{row.root}/{row.path}" for row in build.store.all_rows()} <= ALL
    assert build.store.count_rows() == 2
    build.delete()


def test_damage_that_comes_back_is_raised(
    writer: IndexWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = GenerationBuild(writer, REBUILD)
    starts: list[str] = []

    def fail(*_: object) -> NoReturn:
        starts.append("index")
        raise TableReadError("reading rows failed", "", NEXT_TABLE_NAME)

    monkeypatch.setattr(Indexer, "index", fail)
    with pytest.raises(TableReadError):
        step(build)
    with pytest.raises(TableReadError):
        step(build)
    assert len(starts) == 3, "the first step tried twice, the second did not begin again"
    build.delete()


def test_damage_of_the_table_that_serves_costs_the_build_nothing(
    writer: IndexWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generation, "_STEP_FILES", 3)
    build = GenerationBuild(writer, RECHUNK)
    step(build)
    done = build.files_done
    (Path(writer.roots_by_name["docs"].path) / "0.md").write_text("Other words.\n")
    changed = RootedPath("docs", "0.md")
    list(writer.indexer.index([changed]))  # Only the table that serves has their vector.
    for file in next_table(writer).with_name(f"{TABLE_NAME}.lance").glob("data/*"):
        file.unlink()  # The build has links of its own.
    build._queue[changed] = None
    with pytest.raises(TableReadError) as raised:
        step(build)
    assert raised.value.table_name == TABLE_NAME
    assert build.files_done == done > 0
    build.delete()
