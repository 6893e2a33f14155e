"""The indexer plans, commits and acknowledges in an order in which nothing can be lost; and each file's plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from fakes import FakeCatalogue, FakeFiles, FakeStore, FakeVanished
from index.test_reconcile import RECIPE
from index.test_vector_fill import SlowModel

from anchord.core.change_detection import TRANSCRIPT_DIGEST
from anchord.core.ports import IndexerDependencies, NoConversations
from anchord.core.types import (
    NO_FINGERPRINT,
    Absent,
    Action,
    FileOutcome,
    FileUpdate,
    IngestResult,
    Problem,
    RootedPath,
    Row,
)
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.errors import StoreError
from anchord.index import indexer as module
from anchord.index.file_planner import FilePlanner
from anchord.index.file_plans import (
    FingerprintRefresh,
    IngestNeeded,
    plan_row_removal,
)
from anchord.index.indexer import Indexer
from anchord.sources.conversations.events import Exchange
from anchord.sources.conversations.exchange_document import add_session_info, encode_exchange
from anchord.sources.files.folder_files import MAX_FILE_BYTES

TALK, OTHER_TALK = RootedPath("r", "talk.jsonl"), RootedPath("r", "other.jsonl")
ONE, TWO = RootedPath("r", "/codex/s/1"), RootedPath("r", "/codex/s/2")
FILE = RootedPath("r", "a.md")


def exchange(answer: str = "So.") -> bytes:
    """Give the content of an exchange."""
    told = Exchange(id="1", session="s", number=1, question="How?", answer=answer, at="", until="")
    return add_session_info(encode_exchange(told), "codex", "s", "", "")


class Talks(NoConversations):
    """An archive of given results."""

    def __init__(self) -> None:
        """Begin with two transcripts of nothing."""
        super().__init__()
        self.results: dict[RootedPath, IngestResult] = {}
        self.lost: set[RootedPath] = set()
        self.events: list[tuple[str, object]] = []

    def is_transcript_file(self, origin: RootedPath) -> bool:
        """Tell by the name."""
        return origin.path.endswith(".jsonl")

    def ingest(self, origin: RootedPath) -> IngestResult:
        """Return what was given."""
        self.events.append(("ingest", origin))
        return self.results.get(origin, IngestResult())

    def exclude(self, origin: RootedPath) -> IngestResult:
        """Return what was given."""
        self.events.append(("exclude", origin))
        return self.results.get(origin, IngestResult())

    def mark_indexed(self, origins: Sequence[RootedPath]) -> None:
        """Record it."""
        self.events.append(("indexed", list(origins)))

    def is_lost(self, origin: RootedPath) -> bool:
        """Tell what was given."""
        return origin in self.lost

    def restore(self, origin: RootedPath, rows: Sequence[Row]) -> None:
        """Record it."""
        self.events.append(("restored", (origin, [row.part_index for row in rows])))
        self.lost.discard(origin)


class World:
    """An indexer over fakes, long after its files were written."""

    def __init__(self) -> None:
        """Begin without files."""
        self.files, self.catalog, self.store = FakeFiles(), FakeCatalogue(), FakeStore()
        self.talks, self.cache, self.beats = Talks(), FakeVanished(), list[float]()
        self.now_ns = 10**18
        self.dependencies = IndexerDependencies(
            files=self.files,
            catalog=self.catalog,
            store=self.store,
            embedder=HashEmbedder(),
            vector_cache=self.cache,
            clock=lambda: self.now_ns,
            conversations=self.talks,
            heartbeat=self.beats.append,
        )
        self.indexer = self.make()

    def make(self) -> Indexer:
        """Give the indexer of a new process."""
        return Indexer(self.dependencies, self.count, RECIPE)

    @staticmethod
    def count(texts: Sequence[str]) -> list[int]:
        """Count words."""
        return [len(text.split()) for text in texts]

    def index(self, *files: RootedPath) -> list[FileOutcome]:
        """Index files."""
        return list(self.indexer.index(files))

    def plan(
        self, file: RootedPath, *, gone: set[RootedPath] | None = None
    ) -> FileOutcome | FingerprintRefresh | FileUpdate | IngestNeeded:
        """Plan for a file."""
        planner = FilePlanner(self.dependencies, self.count, RECIPE)
        planner.expect([file])
        return planner.plan(file, self.files.path_filter(), gone)

    def acknowledged(self) -> list[RootedPath]:
        """Return the exchanges that were marked as indexed."""
        return [each for name, given in self.talks.events if name == "indexed" for each in given]  # type: ignore[attr-defined]

    def unconfirmed(self) -> set[str]:
        """Return the files that must be read again."""
        records = self.catalog.list_records("r", "")
        return {path for path, record in records.items() if not record.is_confirmed}


@pytest.fixture
def world() -> World:
    return World()


# Plans


def test_a_file_that_left_after_the_walk_waits_for_the_next_one(world: World) -> None:
    world.files.put(FILE, "Words.\n")
    world.index(FILE)
    world.files.remove(FILE)
    plan = world.plan(FILE, gone=set())
    assert isinstance(plan, FileOutcome)
    assert (plan.action, plan.reason) == (Action.RETRY, "deleted after its folder was listed")
    for gone in ({FILE}, None):
        plan = world.plan(FILE, gone=gone)
        assert isinstance(plan, FileUpdate)
        assert (plan.new_record, len(plan.diff.removed)) == (None, 1)
        assert not plan.forgets_vectors
    unknown = world.plan(RootedPath("r", "never.md"), gone=set())
    assert isinstance(unknown, FileOutcome)
    assert unknown.action == Action.SKIPPED


def test_a_file_that_was_emptied_after_the_walk_waits_for_the_next_one(world: World) -> None:
    world.files.put(FILE, "Words.\n")
    world.index(FILE)
    world.files.put(FILE, "")
    plan = world.plan(FILE, gone=set())
    assert isinstance(plan, FileOutcome)
    assert (plan.action, plan.reason) == (Action.RETRY, "emptied after its folder was listed")
    for gone in ({FILE}, None):
        plan = world.plan(FILE, gone=gone)
        assert isinstance(plan, FileUpdate)
        assert len(plan.diff.removed) == 1
    new = RootedPath("r", "new.md")
    world.files.put(new, "")
    assert isinstance(world.plan(new, gone=set()), FileUpdate)  # It had no text before.


def test_a_file_that_changes_while_it_is_read_is_tried_again(world: World) -> None:
    world.files.put(FILE, "Words.\n")
    world.files.unstable.add(FILE)
    plan = world.plan(FILE)
    assert isinstance(plan, FileOutcome)
    assert (plan.action, plan.reason) == (Action.RETRY, "written while it was read")


@pytest.mark.parametrize("seen", [Absent(), Problem("permission denied")])
def test_a_file_that_cannot_be_read_after_it_was_seen(
    world: World, monkeypatch: pytest.MonkeyPatch, seen: Absent | Problem
) -> None:
    world.files.put(FILE, "Words.\n")
    monkeypatch.setattr(world.files, "read", lambda _: seen)
    plan = world.plan(FILE)
    if isinstance(seen, Absent):
        assert isinstance(plan, FileOutcome)
        assert (plan.action, plan.reason) == (Action.RETRY, "deleted while it was opened")
    else:
        assert isinstance(plan, FileUpdate)
        assert plan.new_record is not None
        assert plan.new_record.problem == seen
        assert plan.new_record.fingerprint == NO_FINGERPRINT
        assert (plan.new_record.content_digest, plan.new_record.is_confirmed) == ("", True)
        assert plan.new_record.read_ns == world.now_ns


def test_the_same_bytes_only_refresh_the_fingerprint_if_the_rows_are_right(world: World) -> None:
    world.files.put(FILE, "Words.\n")
    (indexed,) = world.index(FILE)
    assert (indexed.action, indexed.chunks) == (Action.INDEXED, 1)
    touched = replace_time(world, FILE)
    plan = world.plan(FILE)
    assert isinstance(plan, FingerprintRefresh)
    assert (plan.fingerprint, plan.read_ns) == (touched, world.now_ns)
    assert plan.outcome.action == Action.UNCHANGED
    assert (plan.outcome.chunks, plan.outcome.kept) == (1, 1)
    assert plan.outcome.reason.endswith(", but its content did not change")
    world.catalog.mark_for_reread([FILE])
    plan = world.plan(FILE)
    assert isinstance(plan, FileUpdate), "an interrupted commit: what the rows are is unknown"
    assert len(plan.diff.changed) == 1
    assert plan.reason == "an earlier update of it was interrupted"


def replace_time(world: World, file: RootedPath) -> object:
    before = world.files.fingerprints[file]
    world.files.fingerprints[file] = before._replace(mtime_ns=before.mtime_ns + 1)
    return world.files.fingerprints[file]


def test_a_file_with_the_same_bytes_is_read_once_for_its_new_time(world: World) -> None:
    world.files.put(FILE, "Words.\n")
    world.files.put(ONE, exchange())
    world.index(FILE, ONE)
    world.talks.events.clear()
    touched = [replace_time(world, file) for file in (FILE, ONE)]
    world.now_ns += 1
    assert [each.action for each in world.index(FILE, ONE)] == [Action.UNCHANGED] * 2
    records = [world.catalog.get_record(file) for file in (FILE, ONE)]
    assert [record and record.fingerprint for record in records] == touched
    assert [record and record.read_ns for record in records] == [world.now_ns] * 2
    assert world.acknowledged() == [ONE]
    world.files.reads.clear()
    world.index(FILE, ONE)
    assert world.files.reads == []


def test_an_unchanged_file_is_skipped(world: World) -> None:
    world.files.put(FILE, "Words.\n")
    world.index(FILE)
    plan = world.plan(FILE)
    assert isinstance(plan, FileOutcome)
    assert plan.action == Action.UNCHANGED
    world.files.excluded[RootedPath("r", "out.md")] = "a rule"
    world.files.put(RootedPath("r", "out.md"), "Out.\n")
    plan = world.plan(RootedPath("r", "out.md"))
    assert isinstance(plan, FileOutcome)
    assert (plan.action, plan.reason) == (Action.SKIPPED, "a rule")


def test_vectors_of_a_file_that_the_rules_exclude_are_forgotten(world: World) -> None:
    world.files.put(FILE, "Words.\n")
    world.index(FILE)
    world.files.excluded[FILE] = "a rule"
    plan = world.plan(FILE)
    assert isinstance(plan, FileUpdate)
    assert (plan.forgets_vectors, plan.new_record, plan.reason) == (True, None, "a rule")
    world.index(FILE)
    assert (world.store.table, world.cache.kept) == ({}, {})


@pytest.mark.parametrize(
    ("file", "size", "fits"),
    [
        (FILE, MAX_FILE_BYTES, True),
        (FILE, MAX_FILE_BYTES + 1, False),
        (TALK, MAX_FILE_BYTES + 1, True),
        (ONE, MAX_FILE_BYTES + 1, True),
    ],
)
def test_only_ordinary_files_have_a_limit_of_size(
    world: World,
    file: RootedPath,
    size: int,
    fits: bool,  # noqa: FBT001 - a column of the table
) -> None:
    seen = world.files.put(file, exchange() if file == ONE else "Words.\n")
    world.files.fingerprints[file] = seen._replace(size=size)
    plan = world.plan(file)
    record = plan.new_record if isinstance(plan, FileUpdate) else None
    assert (record is not None and record.problem is not None) == (not fits)
    if not fits:
        assert record is not None
        assert record.fingerprint.size == size, "it is looked at again when it changes"


def test_a_transcript_is_ingested_first(world: World) -> None:
    seen = world.files.put(TALK, "Words.\n")
    plan = world.plan(TALK, gone=set())
    assert plan == IngestNeeded(
        observed=seen,
        record=None,
        reason="new file",
        read_ns=world.now_ns,
        may_remove_rows=False,
        is_excluded=False,
    )
    world.index(TALK)
    world.files.excluded[TALK] = "a rule"
    plan = world.plan(TALK)
    assert isinstance(plan, IngestNeeded)
    assert (plan.is_excluded, plan.may_remove_rows, plan.reason) == (True, True, "a rule")
    world.files.remove(TALK)
    plan = world.plan(TALK)
    assert isinstance(plan, IngestNeeded)
    assert (plan.is_excluded, plan.observed) == (True, Absent()), "the rules exclude its path"


def test_the_record_of_a_transcript_names_its_problem_and_no_rows(world: World) -> None:
    seen = world.files.put(TALK, "Words.\n")
    problem = Problem("one line could not be read", is_partial=True)
    world.talks.results[TALK] = IngestResult(problem=problem)
    (outcome,) = world.index(TALK)
    assert outcome.action == Action.UNCHANGED
    record = world.catalog.get_record(TALK)
    assert record is not None
    assert (record.fingerprint, record.read_ns) == (seen, world.now_ns)
    assert (record.content_digest, record.chunks) == (TRANSCRIPT_DIGEST, ())
    assert (record.problem, record.is_confirmed) == (problem, True)
    assert record.recipe_digest == RECIPE.digest("r")
    assert world.store.table == {}


def test_a_document_that_becomes_a_transcript_loses_its_own_rows(world: World) -> None:
    world.files.put(TALK, "Words.\n")
    world.talks.results[TALK] = IngestResult(is_ordinary_document=True)
    (outcome,) = world.index(TALK)
    assert (outcome.action, len(world.store.table)) == (Action.INDEXED, 1)
    world.talks.results[TALK] = IngestResult()
    world.files.put(TALK, "Words, and more of them.\n")
    (outcome,) = world.index(TALK)
    assert (outcome.deleted, world.store.table) == (1, {})


@pytest.mark.parametrize("how", ["gone", "excluded", "unusable"])
def test_a_transcript_that_goes_leaves_the_catalog(world: World, how: str) -> None:
    world.files.put(TALK, "Words.\n")
    world.index(TALK)
    world.talks.events.clear()
    if how == "gone":
        world.files.remove(TALK)
    elif how == "excluded":
        world.files.excluded[TALK] = "a rule"
    else:
        world.files.problems[TALK] = Problem("permission denied")
        world.talks.results[TALK] = IngestResult(problem=Problem("permission denied"))
    (outcome,) = world.index(TALK)
    assert world.talks.events[0] == ("exclude" if how == "excluded" else "ingest", TALK)
    if how == "unusable":
        assert outcome.action == Action.FAILED
        assert list(world.catalog.files) == [TALK]
    else:
        assert outcome.action == Action.REMOVED
        assert world.catalog.files == {}


# Runs


def test_exchanges_are_indexed_before_their_transcript_is_recorded_and_acknowledged_after(
    world: World,
) -> None:
    for file in (ONE, TWO):
        world.files.put(file, exchange(file.path))
    world.files.put(TALK, "told\n")
    world.talks.results[TALK] = IngestResult(changed_exchanges=(ONE, TWO))
    outcomes = world.index(TALK)
    assert [each.origin for each in outcomes] == [ONE, TWO, TALK]
    assert world.acknowledged() == [ONE, TWO]
    assert world.beats[0] == 900.0
    assert {row.path for row, _ in world.store.table.values()} == {ONE.path, TWO.path}
    world.talks.events.clear()
    world.files.put(TALK, "told again\n")
    world.index(TALK)  # Both are as indexed: they are acknowledged at once.
    assert world.acknowledged() == [ONE, TWO]


def test_an_exchange_that_two_transcripts_changed_is_planned_once_for_each_version(
    world: World,
) -> None:
    world.files.put(ONE, exchange())
    for talk in (TALK, OTHER_TALK):
        world.files.put(talk, "told\n")
        world.talks.results[talk] = IngestResult(changed_exchanges=(ONE,))
    outcomes = world.index(TALK, OTHER_TALK)
    assert [each.origin for each in outcomes] == [ONE, TALK, OTHER_TALK]
    world = World()
    for talk in (TALK, OTHER_TALK):
        world.files.put(talk, "told\n")
    world.files.put(ONE, exchange("First."))

    def ingest(origin: RootedPath) -> IngestResult:
        if origin == OTHER_TALK:
            world.files.put(ONE, exchange("Second, which is longer."))
        return IngestResult(changed_exchanges=(ONE,))

    world.talks.ingest = ingest  # type: ignore[method-assign]
    outcomes = world.index(TALK, OTHER_TALK)
    assert [each.origin for each in outcomes] == [ONE, TALK, ONE, OTHER_TALK]
    (text,) = (row.text for row, _ in world.store.table.values())
    assert "Second, which is longer." in text


def test_an_exchange_that_is_due_itself_and_changes_with_its_transcript_keeps_no_old_row(
    world: World,
) -> None:
    # After a repair both are due. Their plans must not both begin from the record of before.
    world.files.put(ONE, exchange("First. " * 300))
    world.index(ONE)
    world.files.put(ONE, exchange("Second. " * 300))
    world.files.put(TALK, "told\n")

    def ingest(origin: RootedPath) -> IngestResult:
        assert origin == TALK
        world.files.put(ONE, exchange("Third."))
        return IngestResult(changed_exchanges=(ONE,))

    world.talks.ingest = ingest  # type: ignore[method-assign]
    world.index(ONE, TALK)
    record = world.catalog.get_record(ONE)
    assert record is not None
    assert set(world.store.table) == {chunk.chunk_id for chunk in record.chunks}
    assert all("Third." in row.text for row, _ in world.store.table.values())


def test_an_exchange_that_is_due_itself_is_not_planned_again_unchanged(world: World) -> None:
    world.files.put(ONE, exchange())
    world.files.put(TALK, "told\n")
    world.talks.results[TALK] = IngestResult(changed_exchanges=(ONE,))
    assert [each.origin for each in world.index(ONE, TALK)] == [ONE, TALK]
    assert world.indexer.commit_count == 1


def test_an_exchange_that_is_only_touched_is_not_planned_again(world: World) -> None:
    world.files.put(ONE, exchange())
    world.index(ONE)
    replace_time(world, ONE)
    world.files.put(TALK, "told\n")
    world.talks.results[TALK] = IngestResult(changed_exchanges=(ONE,))
    assert [each.origin for each in world.index(ONE, TALK)] == [ONE, TALK]


def test_a_new_time_that_waits_for_its_commit_is_written_before_the_file_is_planned_again(
    world: World,
) -> None:
    world.files.put(ONE, exchange())
    world.index(ONE)
    replace_time(world, ONE)
    world.files.put(TALK, "told\n")

    def ingest(origin: RootedPath) -> IngestResult:
        assert origin == TALK
        replace_time(world, ONE)
        return IngestResult(changed_exchanges=(ONE,))

    world.talks.ingest = ingest  # type: ignore[method-assign]
    world.catalog.writes.clear()
    assert [each.origin for each in world.index(ONE, TALK)] == [ONE, ONE, TALK]
    assert [each for each in world.catalog.writes if each[0] == "seen"] == [("seen", 1)] * 2
    record = world.catalog.get_record(ONE)
    assert record is not None
    assert record.fingerprint == world.files.fingerprints[ONE]


def test_an_exchange_after_one_that_was_planned_already_is_planned_too(world: World) -> None:
    for file in (ONE, TWO):
        world.files.put(file, exchange(file.path))
    for talk in (TALK, OTHER_TALK):
        world.files.put(talk, "told\n")
    world.talks.results[TALK] = IngestResult(changed_exchanges=(ONE,))
    world.talks.results[OTHER_TALK] = IngestResult(changed_exchanges=(ONE, TWO))
    outcomes = world.index(TALK, OTHER_TALK)
    assert [each.origin for each in outcomes] == [ONE, TALK, TWO, OTHER_TALK]


@pytest.mark.parametrize("told", ["exchanges", "files"])
def test_what_the_archive_told_before_a_stop_is_known_until_it_is_committed(
    world: World, told: str
) -> None:
    """The archive tells it once. A second run must find it, and a third has nothing more to do."""
    for file in (ONE, TWO):
        world.files.put(file, exchange(file.path))
    for talk in (TALK, OTHER_TALK):
        world.files.put(talk, "told\n")
    world.index(OTHER_TALK)
    world.talks.results[TALK] = (
        IngestResult(changed_exchanges=(ONE,))
        if told == "exchanges"
        else IngestResult(files_to_reread=(OTHER_TALK,))
    )

    def fail(*_: object) -> None:
        raise StoreError("the disk is full", "")

    with pytest.MonkeyPatch.context() as fault:
        fault.setattr(world.catalog, "confirm_updates", fail)
        with pytest.raises(StoreError):
            world.index(TALK)
    world.talks.results[TALK] = IngestResult(changed_exchanges=(TWO,))
    expected = [ONE, TWO, TALK] if told == "exchanges" else [TWO, TALK, OTHER_TALK]
    assert [each.origin for each in world.index(TALK)] == expected
    world.talks.results[TALK] = IngestResult()
    world.files.put(TALK, "told again\n")
    assert [each.origin for each in world.index(TALK)] == [TALK]


def test_a_file_that_must_be_read_again_in_the_same_run_waits_for_its_commit(world: World) -> None:
    world.files.put(OTHER_TALK, "told\n")
    world.files.put(TALK, "told\n")
    world.talks.results[TALK] = IngestResult(files_to_reread=(OTHER_TALK,))
    outcomes = world.index(OTHER_TALK, TALK)
    assert [each.origin for each in outcomes] == [OTHER_TALK, TALK, OTHER_TALK]
    ingested = [each for name, each in world.talks.events if name == "ingest"]
    assert ingested == [OTHER_TALK, TALK, OTHER_TALK]
    record = world.catalog.get_record(OTHER_TALK)
    assert record is not None
    assert record.is_confirmed


def test_transcripts_that_contain_the_same_are_read_again_in_the_same_run(world: World) -> None:
    for talk in (TALK, OTHER_TALK):
        world.files.put(talk, "told\n")
    world.index(OTHER_TALK)
    world.talks.events.clear()
    world.talks.results[TALK] = IngestResult(files_to_reread=(OTHER_TALK,))
    assert [each.origin for each in world.index(TALK)] == [TALK, OTHER_TALK]
    assert [each for name, each in world.talks.events if name == "ingest"] == [TALK, OTHER_TALK]


def test_nothing_is_planned_after_a_stop(world: World) -> None:
    files = [RootedPath("r", f"{number}.md") for number in range(4)]
    for file in files:
        world.files.put(file, f"Words of {file.path}.\n")
    answers = iter([False, False, True, False, False, False])
    outcomes = list(world.indexer.index([*files, *files], lambda: next(answers)))
    assert [each.origin for each in outcomes] == files[:2]
    assert len(world.store.table) == 2
    assert [each.action for each in world.index(*files, *files)] == [
        *[Action.UNCHANGED] * 2,
        *[Action.INDEXED] * 2,
    ]


def test_a_stop_among_exchanges_leaves_the_transcript_due(world: World) -> None:
    for file in (ONE, TWO):
        world.files.put(file, exchange(file.path))
    world.files.put(TALK, "told\n")
    world.talks.results[TALK] = IngestResult(changed_exchanges=(ONE, TWO))
    answers = iter([False, False, True])
    list(world.indexer.index([TALK], lambda: next(answers)))
    assert TALK not in world.catalog.files


@pytest.mark.parametrize(("limit", "commits"), [(1, 4), (2, 2), (3, 2), (200, 1)])
def test_so_many_files_are_committed_together(
    world: World, monkeypatch: pytest.MonkeyPatch, limit: int, commits: int
) -> None:
    monkeypatch.setattr(module, "FILES_PER_COMMIT", limit)
    files = [RootedPath("r", f"{number}.md") for number in range(4)]
    for file in files:
        world.files.put(file, f"Words of {file.path}.\n")
    world.index(*files)
    assert world.indexer.commit_count == commits
    world.indexer.commit_count = 9
    assert world.indexer.commit_count == 9


def test_refreshed_files_count_among_those_of_a_commit_too() -> None:
    batch = module._Batch()
    refresh = FingerprintRefresh(
        FileOutcome(origin=FILE, action=Action.UNCHANGED, reason=""), NO_FINGERPRINT, 1
    )
    for _ in range(module.FILES_PER_COMMIT - 1):
        batch.add(refresh)
    assert not batch.is_full(64)
    batch.add(refresh)
    assert batch.is_full(64)


@pytest.mark.parametrize(("texts", "is_full"), [(63, False), (64, True), (65, True)])
def test_the_new_texts_of_all_files_fill_a_commit(
    texts: int,
    is_full: bool,  # noqa: FBT001 - a column of the table
) -> None:
    batch = module._Batch()
    first = plan_row_removal(FILE, [], "")
    for count in (1, texts - 1):
        batch.add(replace(first, texts_to_embed=(("key", "text"),) * count))
    assert batch.is_full(64) is is_full
    assert (len(batch.updates), len(module._Batch().updates)) == (2, 0), "each has its own"


def test_a_text_of_several_files_is_counted_for_the_first(world: World) -> None:
    files = [RootedPath("r", f"{number}.txt") for number in range(2)]
    for file in files:
        world.files.put(file, "The very same words.\n")
    one, other = world.index(*files)
    assert (one.upserted, one.embedded, one.reused) == (1, 1, 0)
    assert (other.upserted, other.embedded, other.reused) == (1, 0, 1)


def test_an_outcome_says_what_became_of_each_chunk(world: World) -> None:
    def write(*words: str) -> FileOutcome:
        sections = [f"# {word}\n\n" + f"All there is to say about {word}.\n" * 25 for word in words]
        world.files.put(FILE, "\n".join(sections))
        (outcome,) = world.index(FILE)
        return outcome

    assert write("one", "two", "three") == FileOutcome(
        origin=FILE, action=Action.INDEXED, reason="new file", chunks=3, upserted=3, embedded=3
    )
    assert write("one", "new", "two") == FileOutcome(
        origin=FILE, action=Action.INDEXED, reason="its size changed", chunks=3, kept=1,
        shifted=1, upserted=1, deleted=1, embedded=1,
    )  # fmt: skip
    text = world.files.contents[FILE].decode()
    world.files.put(FILE, text + "\n\n")
    assert [each.action for each in world.index(FILE)] == [Action.UNCHANGED]
    world.files.put(FILE, text.replace("# two", "\n\n\n# two"))
    assert world.index(FILE) == [
        FileOutcome(
            origin=FILE, action=Action.SHIFTED, reason="its size changed", chunks=3, kept=2,
            shifted=1,
        )
    ]  # fmt: skip
    world.files.remove(FILE)
    assert world.index(FILE) == [
        FileOutcome(
            origin=FILE, action=Action.REMOVED, reason="the file is gone", chunks=0, deleted=3
        )
    ]


def test_vectors_come_with_the_rows_unless_words_are_asked_for_first(world: World) -> None:
    world.files.put(FILE, "".join(f"# {n}\n\n{f'Words of {n}. ' * 90}\n\n" for n in range(20)))
    slow = SlowModel()
    world.dependencies = replace(world.dependencies, embedder=slow)
    world.indexer = world.make()
    (outcome,) = world.index(FILE)
    assert outcome.due == world.store.count_due() == 0
    assert len(slow.texts) == outcome.embedded > 16


# Exchanges that only rows have


def test_an_exchange_that_the_archive_lost_is_given_back_from_its_rows(world: World) -> None:
    world.files.put(
        ONE, exchange("\n\n".join(f"Paragraph {n}. {'Words. ' * 90}" for n in range(9)))
    )
    for name in ("talk.jsonl", "other.jsonl"):
        world.files.put(RootedPath("r", name), "told\n")
    world.index(ONE, TALK, OTHER_TALK)
    assert len(world.store.table) > 1
    world.talks.events.clear()
    world.talks.lost = {ONE, TWO}
    world.files.remove(ONE)
    outcomes = world.index(ONE)
    name, given = world.talks.events[0]
    assert name == "restored"
    assert isinstance(given, tuple)
    assert given[0] == ONE
    assert given[1] == sorted(given[1])
    assert len(given[1]) > 1
    # With the first loss all files of the root are read again.
    assert {each.origin for each in outcomes} == {ONE, TALK, OTHER_TALK}
    world.talks.lost = {ONE}
    world.index(TWO)
    assert len([name for name, _ in world.talks.events if name == "ingest"]) == 2, "but once"
    world.talks.events.clear()
    world.talks.lost = {TWO}
    world.files.put(TWO, exchange())
    assert [each.origin for each in world.index(TWO)] == [TWO]
    assert world.talks.events == [("indexed", [TWO])], "TWO has no rows to be given back from"


def test_before_all_rows_are_made_anew_lost_exchanges_are_given_back(world: World) -> None:
    world.files.put(ONE, exchange())
    world.files.put(FILE, "Words.\n")
    world.index(ONE, FILE)
    world.talks.lost = {ONE, FILE}
    world.indexer.lost_exchanges.restore_root("other")
    assert [name for name, _ in world.talks.events if name == "restored"] == []
    world.indexer.lost_exchanges.restore_root("r")
    restored = [given for name, given in world.talks.events if name == "restored"]
    assert restored == [(ONE, [0])]
    assert world.unconfirmed() == {"a.md"}


def test_exchanges_without_any_copy_are_named_until_a_transcript_contains_them(
    world: World,
) -> None:
    for exchange_path in (ONE, TWO):
        world.files.put(exchange_path, exchange())
    world.files.put(TALK, "told\n")
    world.index(ONE, TWO)
    world.store.table.clear()
    world.talks.lost = {ONE, TWO}
    for exchange_path in (ONE, TWO):
        world.files.remove(exchange_path)
    world.index(ONE, TWO)
    assert list(world.talks.without_copy) == [ONE, TWO]
    world.talks.results[TALK] = IngestResult(changed_exchanges=(ONE,))
    world.index(TALK)
    assert list(world.talks.without_copy) == [TWO]


# Rows that are wrong


def test_stray_double_and_different_rows_are_deleted_or_written_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {name: RootedPath("r", f"{name}.md") for name in ("sound", "lost", "twice", "other")}
    for file in files.values():
        world.files.put(file, f"Words of {file.path}.\n")
    world.index(*files.values())
    ids = {name: world.store.ids_of_file(file)[0] for name, file in files.items()}
    row, vector = world.store.table[ids["sound"]]
    world.store.table["stray"] = (replace(row, id="stray", vector_key="of stray"), vector)
    del world.store.table[ids["lost"]]
    hashes = dict(world.store.all_row_hashes())
    hashes[ids["other"]] = "another"
    hashes[ids["sound"]] = ""  # Unknown: an older version wrote it.
    listed = [*hashes.items(), (ids["twice"], hashes[ids["twice"]])]
    monkeypatch.setattr(world.store, "all_row_hashes", lambda: listed)
    due = world.indexer.delete_stray_rows()
    assert list(due) == [files["lost"], files["twice"], files["other"]]
    assert world.unconfirmed() == {"lost.md", "twice.md", "other.md"}
    assert set(world.store.table) == {ids["sound"], ids["other"]}
    assert "of stray" in world.cache.kept
    stray = replace(row, id="stray")
    world.store.table["stray"] = (stray, vector)
    monkeypatch.setattr(world.store, "all_row_hashes", lambda: [("stray", ""), ("stray", "")])
    assert set(world.indexer.delete_stray_rows()) == set(files.values()), "all others are missing"
    assert "stray" not in world.store.table


def test_the_vectors_of_corrupt_rows_are_kept_nowhere(world: World) -> None:
    files = [RootedPath("r", f"{number}.md") for number in range(3)]
    for file in files:
        world.files.put(file, f"Words of {file.path}.\n")
    world.index(*files)
    extra, corrupt, _ = (world.store.ids_of_file(file)[0] for file in files)
    keys = {id_: world.store.table[id_][0].vector_key for id_ in (extra, corrupt)}
    world.cache.kept[keys[corrupt]] = (b"corrupt", 1)
    assert list(world.indexer.delete_damaged_rows([extra], files[:2], [corrupt])) == files[:2]
    assert len(world.store.table) == 1
    assert set(world.cache.kept) == {keys[extra]}
    assert world.unconfirmed() == {"0.md", "1.md"}
