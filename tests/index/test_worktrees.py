"""With `worktrees = "one"` the index is what a clean rebuild gives, whatever the order of events.

The property tests draw edits, deletions, worktrees that come and go, runs that stop early and commits that fail, and
compare the result with a fresh index, and with the rule said in one line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from fakes import FakeCatalogue, FakeFiles, FakeStore, FakeVanished, HandClock
from hypothesis import given, settings
from hypothesis import strategies as st
from index.test_reconcile import RECIPE

from anchord.core.deletion_guard import DeletionPolicy
from anchord.core.ids import hash_content
from anchord.core.ports import IndexerDependencies
from anchord.core.types import Action, FileOutcome, RootedPath, Row
from anchord.core.worktrees import Checkouts, is_left_out
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.errors import StoreError
from anchord.index.indexer import Indexer
from anchord.index.integrity.merged_files import MergedFiles
from anchord.index.integrity.verify import (
    expected_rows_of_roots,
    verify,
    verify_unchanged_files,
)
from anchord.index.models import Models

MAINS = {
    "/r/a": "/r/main",
    "/r/b": "/r/main",
    "/r/main/nested": "/r/main",  # below the main checkout
    "/r/a/inner": "/r/main",  # a worktree in a worktree
    "/r/c": "/r/b/lib",  # of another repository, whose main checkout is in a worktree
}
FOLDERS = ("main", "a", "b", "c", "main/nested", "a/inner", "b/lib", "main/lib", "other")
TEXTS = ("# One\n\nFirst.\n", "# Two\n\nSecond.\n", "")
MAIN, COPY, THIRD = (RootedPath("r", f"{folder}/x.md") for folder in ("main", "a", "b"))


def count_words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


class Mapped:
    """Worktrees of a root at `/r`, or of several roots `/r/NAME`."""

    def __init__(self) -> None:
        """Begin with all of `MAINS`."""
        self.mains = dict(MAINS)
        self.is_on = True

    def merges(self, root: str) -> bool:
        """Tell whether the option is set and there are worktrees."""
        return root == "r" and self.is_on and bool(self.mains)

    def main_file(self, origin: RootedPath) -> RootedPath | None:
        """Map the path."""
        if not self.merges(origin.root):
            return None
        main = Checkouts(self.mains).main_path(f"/r/{origin.path}")
        return None if main is None else RootedPath("r", main.removeprefix("/r/"))

    def copies_of(self, origin: RootedPath) -> Sequence[RootedPath]:
        """Map the path back."""
        if not self.merges(origin.root):
            return ()
        copies = Checkouts(self.mains).copy_paths(f"/r/{origin.path}")
        return [RootedPath("r", path.removeprefix("/r/")) for path in copies]


class FailingStore(FakeStore):
    """Fails to write when told so."""

    fails = False

    def delete_rows(self, ids: Sequence[str]) -> None:
        """Delete, or fail: the new rows are written, and nothing is confirmed."""
        if self.fails:
            raise StoreError("a full disk")
        super().delete_rows(ids)


class World:
    """An index over fakes."""

    def __init__(self, files: FakeFiles | None = None, worktrees: Mapped | None = None) -> None:
        """Begin empty, over these files."""
        self.clock = HandClock()
        self.files = files or FakeFiles(self.clock)
        self.worktrees = worktrees or Mapped()
        self.catalog, self.store = FakeCatalogue(), FailingStore()
        self.dependencies = IndexerDependencies(
            files=self.files,
            catalog=self.catalog,
            store=self.store,
            embedder=HashEmbedder(),
            vector_cache=FakeVanished(),
            clock=lambda: self.clock.now_ns + 10**12,
            worktrees=self.worktrees,
        )
        self.restart()

    def restart(self) -> None:
        """Use a new process."""
        self.indexer = Indexer(self.dependencies, count_words, RECIPE)

    def write(self, origin: RootedPath, text: str) -> None:
        """Write a file at a new time."""
        self.clock.move(10)
        self.files.put(origin, text)

    def sync(self) -> list[FileOutcome]:
        """Walk and index."""
        return list(self.indexer.index(self.indexer.reconcile("r").paths_due))

    def rows(self) -> list[Row]:
        """Return the table."""
        return sorted((row for row, _ in self.store.table.values()), key=lambda row: row.id)

    def left_out(self) -> set[str]:
        """Return the files that are left out."""
        return {
            origin.path
            for origin, file in self.catalog.files.items()
            if is_left_out(file.known.content_digest)
        }

    def differences(self) -> int:
        """Compare with what `verify` expects."""
        files = MergedFiles(self.files, self.catalog, self.worktrees)
        counted = expected_rows_of_roots(["r"], (files, self.catalog), RECIPE, count_words)
        return len(
            verify(counted, self.catalog, self.store, (Models(HashEmbedder()), None)).differences
        )

    def differences_at_rest(self) -> int:
        """Compare as the check at rest does."""
        entries = [
            (origin, file.known)
            for origin, file in self.catalog.files.items()
            if file.known.content_digest
        ]
        files = MergedFiles(self.files, self.catalog, self.worktrees)
        checked = (RECIPE, count_words)
        return len(verify_unchanged_files(entries, files, self.catalog, self.store, checked))


def expected_left_out(world: World) -> set[str]:
    """Say the rule: the main checkout's file is there, can be indexed, and has the same bytes."""
    found = set()
    for origin, data in world.files.contents.items():
        main = world.worktrees.main_file(origin)
        if main is None or main not in world.files.contents or main in world.files.excluded:
            continue
        if world.files.contents[main] == data and origin not in world.files.excluded:
            found.add(origin.path)
    return found


def assert_like_a_fresh_index(world: World) -> None:
    fresh = World(world.files, world.worktrees)
    fresh.sync()
    fresh.sync()
    assert world.rows() == fresh.rows()
    assert world.left_out() == fresh.left_out() == expected_left_out(world)
    assert world.differences() == world.differences_at_rest() == 0
    assert world.sync() == [], "nothing is due any more"


FILES = [RootedPath("r", f"{folder}/{name}") for folder in FOLDERS for name in ("x.md", "y.md")]
STEPS = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(FILES), st.sampled_from(TEXTS)),
    st.tuples(st.just("delete"), st.sampled_from(FILES), st.none()),
    st.tuples(st.just("exclude"), st.sampled_from(FILES), st.none()),
    st.tuples(st.just("hint"), st.sampled_from(FILES), st.none()),
    st.tuples(st.just("sync"), st.none(), st.sampled_from(["", "stops", "fails"])),
    st.tuples(st.just("worktree"), st.sampled_from(sorted(MAINS)), st.none()),
    st.tuples(st.just("option"), st.none(), st.none()),
)


def do(world: World, step: tuple[str, object, object]) -> None:
    kind, what, how = step
    match kind, what:
        case "write", RootedPath():
            world.write(what, str(how))
        case "delete", RootedPath() if what in world.files.contents:
            world.files.remove(what)
        case "exclude", RootedPath():
            world.files.excluded.pop(what, None) or world.files.excluded.update({what: "a rule"})
        case "hint", RootedPath():
            list(world.indexer.index([what]))
        case "worktree", str():
            world.worktrees.mains.pop(what, None) or world.worktrees.mains.update(
                {what: MAINS[what]}
            )
        case "option", _:
            world.worktrees.is_on = not world.worktrees.is_on
        case "sync", _:
            sync_badly(world, str(how))
        case _:
            pass


def sync_badly(world: World, how: str) -> None:
    """Walk and index; `stops` after two files, `fails` in the first commit, like a crash."""
    due = world.indexer.reconcile("r").paths_due
    asked = iter((False, False))
    world.store.fails = how == "fails"
    try:
        list(world.indexer.index(due, (lambda: next(asked, True)) if how == "stops" else _never))
    except StoreError:
        world.restart()
    world.store.fails = False


def _never() -> bool:
    return False


@settings(max_examples=150)
@given(st.lists(STEPS, max_size=25))
def test_any_order_of_events_ends_as_a_fresh_index(steps: list[tuple[str, object, object]]) -> None:
    world = World()
    for step in steps:
        do(world, step)
    world.sync()
    world.sync()
    assert_like_a_fresh_index(world)


@settings(max_examples=80)
@given(st.lists(st.tuples(st.sampled_from(FILES), st.sampled_from(TEXTS)), max_size=12))
def test_hints_alone_keep_it_so(writes: list[tuple[RootedPath, str]]) -> None:
    """Each save is indexed by its hint, without a walk: the files of other worktrees follow."""
    world = World()
    for file in FILES:
        world.write(file, TEXTS[0])
    world.sync()
    for file, text in writes:
        world.write(file, text)
        list(world.indexer.index([file]))
    assert_like_a_fresh_index(world)


@pytest.fixture
def world() -> Iterator[World]:
    """Give three checkouts with one equal file."""
    made = World()
    for file in (COPY, MAIN, THIRD):  # The copies are found first.
        made.write(file, TEXTS[0])
    made.sync()
    yield made
    assert_like_a_fresh_index(made)


def test_equal_files_of_worktrees_have_no_rows(world: World) -> None:
    assert {row.path for row in world.rows()} == {MAIN.path}
    assert world.left_out() == {COPY.path, THIRD.path}


def test_nothing_is_written_twice_for_them(world: World) -> None:
    assert world.store.upserted == 1
    assert world.store.deleted == 0


def test_the_reason_names_the_main_file() -> None:
    world = World()
    for file in (COPY, MAIN):
        world.write(file, TEXTS[0])
    outcomes = {outcome.origin: outcome for outcome in world.sync()}
    assert outcomes[COPY].action is Action.SKIPPED
    assert outcomes[COPY].reason == "equal to the main checkout's r:main/x.md"
    again = list(world.indexer.index([COPY]))
    assert again[0].reason == "equal to the main checkout's r:main/x.md"


def test_an_edit_in_a_worktree_indexes_its_file_alone(world: World) -> None:
    world.write(COPY, TEXTS[1])
    outcomes = list(world.indexer.index([COPY]))
    assert [(outcome.origin, outcome.action) for outcome in outcomes] == [(COPY, Action.INDEXED)]


def test_an_edit_of_the_main_file_brings_its_copies_back_in_the_same_commit(world: World) -> None:
    commits = world.indexer.commit_count
    world.write(MAIN, TEXTS[1])
    outcomes = list(world.indexer.index([MAIN]))
    assert [outcome.origin for outcome in outcomes] == [MAIN, COPY, THIRD]
    assert world.indexer.commit_count == commits + 1
    assert sum(outcome.embedded for outcome in outcomes) == 1, "the old text has its vector"


def test_an_edit_back_takes_them_out_again(world: World) -> None:
    for text in (TEXTS[1], TEXTS[0]):
        world.write(MAIN, text)
        list(world.indexer.index([MAIN]))
    assert world.left_out() == {COPY.path, THIRD.path}


def test_the_copies_come_back_when_the_main_file_is_deleted(world: World) -> None:
    world.files.remove(MAIN)
    list(world.indexer.index([MAIN]))
    assert {row.path for row in world.rows()} == {COPY.path, THIRD.path}


def test_a_deletion_that_the_guard_has_not_seen_changes_nothing(world: World) -> None:
    world.files.remove(MAIN)
    assert [each.action for each in world.indexer.index([MAIN], confirmed_gone=())] == ["retry"]
    assert [each.action for each in world.indexer.index([COPY], confirmed_gone=())] == ["unchanged"]
    assert {row.path for row in world.rows()} == {MAIN.path}
    world.sync()


def test_a_main_file_that_the_rules_exclude_stands_for_no_other(world: World) -> None:
    world.files.excluded[MAIN] = "a rule"
    world.sync()
    assert {row.path for row in world.rows()} == {COPY.path, THIRD.path}


def test_a_copy_that_is_found_first_has_its_main_file_indexed_first() -> None:
    world = World()
    for file in (COPY, MAIN):
        world.write(file, TEXTS[0])
    outcomes = list(world.indexer.index([COPY]))
    assert [(each.origin, each.action) for each in outcomes] == [
        (MAIN, Action.INDEXED),
        (COPY, Action.SKIPPED),
    ]


def test_without_the_option_nothing_is_left_out_any_more(world: World) -> None:
    world.worktrees.is_on = False
    world.sync()
    assert {row.path for row in world.rows()} == {COPY.path, MAIN.path, THIRD.path}
    assert world.left_out() == set()


def test_a_walk_reads_nothing_where_nothing_changed(world: World) -> None:
    world.files.reads.clear()
    world.sync()
    assert world.files.reads == []


def test_a_new_recipe_chunks_the_main_file_only(world: World) -> None:
    recipe = replace(RECIPE, chunking_tools_identity="another", _digests={})
    world.indexer = Indexer(world.dependencies, count_words, recipe)
    world.sync()
    assert {row.path for row in world.rows()} == {MAIN.path}
    world.restart()
    world.sync()


def test_the_mark_is_before_the_digest_of_the_content(world: World) -> None:
    digest = world.catalog.files[COPY].known.content_digest
    assert digest == "=" + hash_content(TEXTS[0].encode())


def test_worktrees_that_are_removed_need_no_confirmation_for_files_without_rows() -> None:
    world = World()
    for number in range(60):
        for folder in ("main", "a", "b"):
            world.write(RootedPath("r", f"{folder}/{number}.md"), f"# {number}\n\nText.\n")
    world.write(RootedPath("r", "a/own.md"), "# Own\n\nText.\n")
    world.sync()
    for origin in list(world.files.contents):
        if not origin.path.startswith("main"):
            world.files.remove(origin)
    found = world.indexer.reconcile("r")
    assert (found.held_deletions, len(found.paths_due)) == (0, 121)
    world.sync()
    assert_like_a_fresh_index(world)


def test_a_main_checkout_that_is_deleted_at_once_is_held_with_its_copies_left_out() -> None:
    world = World()
    for number in range(60):
        for folder in ("main", "a"):
            world.write(RootedPath("r", f"{folder}/{number}.md"), f"# {number}\n\nText.\n")
    world.write(RootedPath("r", "main/own.md"), "# Own\n\nText.\n")
    world.sync()
    for origin in list(world.files.contents):
        if origin.path.startswith("main"):
            world.files.remove(origin)
    assert world.indexer.reconcile("r").held_deletions == 61
    assert len(world.left_out()) == 60
    assert world.differences() == 0
    policy = DeletionPolicy(all_confirmed=True)
    list(world.indexer.index(world.indexer.reconcile("r", deletion_policy=policy).paths_due))
    assert {row.path.partition("/")[0] for row in world.rows()} == {"a"}
    assert_like_a_fresh_index(world)
