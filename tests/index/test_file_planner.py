"""A file that cannot be chunked is listed and stops no other file; and what the plan of one file holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from fakes import FakeCatalogue, FakeFiles, FakeStore, plans
from index.test_indexer import FILE, ONE, OTHER_TALK, TALK, World
from index.test_reconcile import RECIPE, NoVectors

from anchord.chunking.chunker import split_into_chunks
from anchord.core.ports import IndexerDependencies
from anchord.core.types import (
    Absent,
    Action,
    ChunkDiff,
    FileOutcome,
    FileUpdate,
    IngestResult,
    PathMatch,
    Problem,
    RootedPath,
)
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.index.file_planner import FilePlanner
from anchord.index.file_plans import IngestNeeded, plan_row_removal
from anchord.index.indexer import Indexer
from anchord.index.recipe import Recipe

BAD, GOOD = RootedPath("r", "bad.md"), RootedPath("r", "good.md")


def indexer_over(files: FakeFiles, catalog: FakeCatalogue, store: FakeStore) -> Indexer:
    dependencies = IndexerDependencies(
        files=files,
        catalog=catalog,
        store=store,
        embedder=HashEmbedder(),
        vector_cache=NoVectors(),
        clock=lambda: 10**18,
    )
    return Indexer(dependencies, lambda texts: [len(text.split()) for text in texts], RECIPE)


def test_a_new_file_that_a_rule_leaves_out_or_that_is_gone_is_skipped_with_its_reason() -> None:
    files, catalog = FakeFiles(), FakeCatalogue()
    files.put(BAD, "Words.\n")
    files.excluded[BAD] = "a rule of the fake"
    outcomes = list(indexer_over(files, catalog, FakeStore()).index([BAD, GOOD]))
    assert [(each.origin, each.action) for each in outcomes] == [
        (BAD, Action.SKIPPED),
        (GOOD, Action.SKIPPED),
    ]
    assert "a rule of the fake" in outcomes[0].reason
    assert all(each.reason for each in outcomes)
    assert catalog.files == {}


def test_a_file_whose_chunking_fails_is_listed_until_it_can_be_chunked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files, catalog, store = FakeFiles(), FakeCatalogue(), FakeStore()
    files.put(BAD, "Words of the bad file.\n")
    files.put(GOOD, "Words of the good file.\n")
    indexer = indexer_over(files, catalog, store)
    real = split_into_chunks

    def failing(document: Any, *given: Any) -> Sequence[Any]:  # noqa: ANN401 - as in the original
        if "bad" in document.text:
            raise ValueError("a bug")
        return real(document, *given)

    with monkeypatch.context() as fault:
        fault.setattr("anchord.index.rows.split_into_chunks", failing)
        outcomes = list(indexer.index([BAD, GOOD]))
    assert [each.action for each in outcomes if each.origin == GOOD] == [Action.INDEXED]
    listed = [(each.origin, each.problem) for each in catalog.list_failures()]
    assert listed == [(BAD, Problem("not indexed: chunking failed with ValueError"))]
    assert list(store.ids_of_file(BAD)) == []
    files.put(BAD, "Words of the bad file, written again.\n")
    list(indexer.index(indexer.reconcile("r").paths_due))
    assert list(catalog.list_failures()) == []
    assert len(store.ids_of_file(BAD)) == 1


# Plans


@pytest.fixture
def world() -> World:
    return World()


def planner_of(world: World) -> FilePlanner:
    return FilePlanner(world.dependencies, world.count, RECIPE)


def test_the_record_of_a_file_that_was_read_is_complete(world: World) -> None:
    world.files.put(FILE, "Words.\n")
    plan = world.plan(FILE)
    assert isinstance(plan, FileUpdate)
    assert plan.new_record is not None
    assert plan.new_record.is_confirmed
    assert plan.new_record.read_ns == world.now_ns
    (chunk,) = plan.new_record.chunks
    (row,) = plan.diff.added
    assert (chunk.chunk_id, chunk.vector_key) == (row.id, row.vector_key)
    assert (chunk.start_line, chunk.end_line) == (1, 1)
    assert plan.texts_to_embed == ((row.vector_key, "Words."),)


def test_the_record_of_a_transcript_is_complete(world: World) -> None:
    world.files.put(TALK, "told\n")
    needed = world.plan(TALK)
    assert isinstance(needed, IngestNeeded)
    plan = planner_of(world).plan_ingested(TALK, needed, IngestResult())
    assert isinstance(plan, FileUpdate)
    assert plan.new_record is not None
    assert (plan.new_record.is_confirmed, plan.new_record.chunks) == (True, ())


def test_a_transcript_that_cannot_be_seen_and_has_no_problem_is_skipped(world: World) -> None:
    world.files.problems[TALK] = Problem("permission denied")
    needed = world.plan(TALK)
    assert isinstance(needed, IngestNeeded)
    plan = planner_of(world).plan_ingested(TALK, needed, IngestResult())
    assert plan == FileOutcome(origin=TALK, action=Action.SKIPPED, reason="permission denied")


@pytest.mark.parametrize("is_undecided", [True, False])
def test_vectors_stay_while_the_rules_of_a_file_are_unknown(
    world: World,
    is_undecided: bool,  # noqa: FBT001 - a column of the table
) -> None:
    world.files.put(FILE, "Words.\n")
    world.index(FILE)
    match = PathMatch(is_included=False, reason="rules", is_undecided=is_undecided)
    plan = planner_of(world).plan(FILE, lambda _: match, None)
    assert isinstance(plan, FileUpdate)
    assert plan.forgets_vectors is not is_undecided
    assert (plan.new_record, len(plan.diff.removed)) == (None, 1)


def test_a_removal_writes_keeps_and_embeds_nothing() -> None:
    plan = plan_row_removal(FILE, ["1", "2"], "gone")
    assert plan.diff == ChunkDiff(added=(), changed=(), removed=("1", "2"), shifted=0, kept=0)
    assert (plan.new_record, plan.texts_to_embed, plan.reason) == (None, (), "gone")
    assert not plan.forgets_vectors


def test_the_rows_of_interrupted_files_are_looked_up_together(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [RootedPath("r", f"{number}.md") for number in range(3)]
    for file in files:
        world.files.put(file, f"Words of {file.path}.\n")
    world.index(*files)
    world.catalog.mark_for_reread(files)
    asked: list[list[RootedPath]] = []
    real = world.store.ids_of_files

    def ids_of_files(origins: Sequence[RootedPath]) -> Mapping[RootedPath, Sequence[str]]:
        asked.append(list(origins))
        return real(origins)

    monkeypatch.setattr(world.store, "ids_of_files", ids_of_files)
    world.index(*files)
    assert asked == [files]
    assert world.unconfirmed() == set()


# Texts of rows that are there


def test_the_texts_of_a_files_rows_are_read_again_only_while_they_are_right(world: World) -> None:
    planner = planner_of(world)
    assert planner.texts_of_rows(FILE) is None, "it is not in the index"
    world.files.put(FILE, "Words.\n")
    world.index(FILE)
    ((row, _),) = world.store.table.values()
    assert planner.texts_of_rows(FILE) == {row.id: (row.vector_key, "Words.")}
    other = Recipe(
        plans=plans(), model_identity=lambda: "other", chunking_tools_identity="tokenizer"
    )
    assert FilePlanner(world.dependencies, world.count, other).texts_of_rows(FILE) is None
    world.files.unstable.add(FILE)
    assert planner.texts_of_rows(FILE) is None, "it is being written"
    world.files.unstable.clear()
    world.files.problems[FILE] = Problem("permission denied")
    assert planner.texts_of_rows(FILE) == Absent()
    world.files.problems.clear()
    world.files.put(FILE, "Other words.\n")
    assert planner.texts_of_rows(FILE) is None
    world.files.put(FILE, "Words.\n")
    assert planner.texts_of_rows(FILE) is not None
    world.catalog.mark_for_reread([FILE])
    assert planner.texts_of_rows(FILE) is None, "nobody knows which rows are there"
    world.files.remove(FILE)
    assert planner.texts_of_rows(OTHER_TALK) is None
    assert planner.texts_of_rows(ONE) is None
