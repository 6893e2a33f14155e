"""What a walk finds to do, and which deletions it holds: without a disk, on fakes."""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterator

import pytest
from fakes import FakeCatalogue, FakeFiles, FakeStore, plans

from anchord.core.deletion_guard import DeletionPolicy, recent_deletions_meta_key
from anchord.core.ports import IndexerDependencies, NoConversations, ignore_enter_dir
from anchord.core.types import (
    Absent,
    Fingerprint,
    FoundFile,
    Problem,
    RootedPath,
    Vector,
    WalkResult,
)
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.index.indexer import Indexer
from anchord.index.recipe import Recipe
from anchord.index.reconcile import ReconcileResult, reconcile
from anchord.sources.files.folder_files import MAX_FILE_BYTES

RECIPE = Recipe(
    plans=plans(), model_identity=lambda: HashEmbedder.model_id, chunking_tools_identity="tokenizer"
)


class NoVectors:
    """An empty vector cache."""

    def get(self, vector_keys: object) -> dict[str, Vector]:
        """Find nothing."""
        del vector_keys
        return {}

    def put(self, vectors: object, now_ns: int) -> None:
        """Keep nothing."""

    def delete(self, vector_keys: object) -> None:
        """Delete nothing."""


class Talks(NoConversations):
    """Conversations of which a test says what they are."""

    def __init__(self) -> None:
        """Begin without any."""
        self.has_transcripts = False
        self.safe: dict[str, set[RootedPath]] = {"kept": set(), "lost": set(), "renamed": set()}
        """Paths whose rows are not lost with them, by the reason."""

    def is_transcript_file(self, origin: RootedPath) -> bool:
        """Tell the same of all."""
        del origin
        return self.has_transcripts

    def keeps_after_delete(self, origin: RootedPath) -> bool:
        """Tell what was given."""
        return origin in self.safe["kept"]

    def is_lost(self, origin: RootedPath) -> bool:
        """Tell what was given."""
        return origin in self.safe["lost"]

    def is_renamed(self, origin: RootedPath) -> bool:
        """Tell what was given."""
        return origin in self.safe["renamed"]


class World:
    """Files, a catalog that knows them, and what the heartbeat and the walk reported."""

    def __init__(self) -> None:
        """Begin with an empty root `r`."""
        self.files, self.catalog = FakeFiles(), FakeCatalogue()
        self.beats: list[float] = []
        self.entered: list[RootedPath] = []
        self.talks = Talks()
        self.dependencies = IndexerDependencies(
            files=self.files,
            catalog=self.catalog,
            store=FakeStore(),
            embedder=HashEmbedder(),
            vector_cache=NoVectors(),
            clock=lambda: 10**18,
            conversations=self.talks,
            heartbeat=self.beats.append,
        )

    def index(self, *names: str) -> None:
        """Write and index files."""
        for name in names:
            self.files.put(RootedPath("r", name), f"Words of {name}.\n")
        indexer = Indexer(self.dependencies, lambda texts: [len(t.split()) for t in texts], RECIPE)
        list(indexer.index(indexer.reconcile("r").paths_due))

    def remove(self, *names: str) -> None:
        """Delete files."""
        for name in names:
            self.files.remove(RootedPath("r", name))

    def walk(
        self,
        folder: str = "",
        *,
        recent: int = 0,
        confirmed: bool = False,
        released: Collection[RootedPath] = (),
    ) -> ReconcileResult:
        """Compare a folder with the catalog."""
        policy = DeletionPolicy(all_confirmed=confirmed, released=released, recent_count=recent)
        path = RootedPath("r", folder)
        return reconcile(self.dependencies, RECIPE, path, self.entered.append, policy)

    def note(self) -> str:
        """Return what the catalog keeps of the deletions just before a hold."""
        return self.catalog.get_meta(recent_deletions_meta_key("r"))


@pytest.fixture
def world() -> World:
    return World()


def names(count: int) -> list[str]:
    return [f"{number:03}.md" for number in range(count)]


def paths(*names: str) -> tuple[RootedPath, ...]:
    return tuple(RootedPath("r", name) for name in names)


# Whole walks


def test_a_root_that_is_missing_or_unreadable_has_nothing_to_do_and_says_why(world: World) -> None:
    world.index("a.md")
    world.files.gone.add("r")
    assert world.walk() == ReconcileResult(walk_error="the folder does not exist")
    result = ReconcileResult()
    assert (result.paths_due, result.gone_or_emptied, result.moved_from) == ((), {}, {})
    assert (result.held_deletions, result.released_deletions) == (0, 0)
    assert (result.file_count, result.skipped, result.is_refused) == (0, 0, False)
    assert (result.listed_folders, result.folder_problems, result.walk_error) == ((), (), "")


def test_another_folder_in_the_roots_place_is_not_read_until_somebody_accepts_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.index("a.md")

    def check_root(root: str, known_paths: Callable[[], Collection[str]], *, accept: bool) -> str:
        assert (root, list(known_paths())) == ("r", ["a.md"])
        return "" if accept else "another folder"

    monkeypatch.setattr(world.files, "check_root", check_root)
    world.files.walks.clear()
    refused = world.walk()
    assert (refused.walk_error, refused.is_refused) == ("another folder", True)
    assert (refused.paths_due, world.files.walks) == ((), [])
    accepted = world.walk(confirmed=True)
    assert (accepted.walk_error, accepted.is_refused, accepted.file_count) == ("", False, 1)


@pytest.mark.parametrize("reason", ["", "another folder"])
def test_archived_exchanges_that_the_index_lacks_are_due_without_the_roots_folder(
    world: World, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    world.talks.has_transcripts = True
    exchange = FoundFile("/codex/s/1", Fingerprint(20, 1, 1, 1, 1))

    def walk(root: str, prefix: str, *_: object) -> WalkResult | Absent:
        assert root == "r"
        return WalkResult(files=(exchange,)) if prefix == "/" else Absent("gone")

    monkeypatch.setattr(world.files, "walk", walk)
    monkeypatch.setattr(world.files, "check_root", lambda *_, **__: reason)
    result = world.walk()
    assert result.walk_error == (reason or "the folder does not exist")
    assert (result.paths_due, result.is_refused) == (paths("/codex/s/1"), bool(reason))


def test_a_root_that_cannot_be_listed_says_the_reason(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.index("a.md")
    monkeypatch.setattr(world.files, "walk", lambda *_: Problem("permission denied"))
    assert world.walk() == ReconcileResult(walk_error="permission denied")


def test_changed_files_are_due_before_missing_ones(world: World) -> None:
    world.index("a.md", "b.md", "c.md")
    assert world.walk().paths_due == ()
    seen = world.catalog.list_records("r", "")["a.md"].fingerprint
    world.remove("a.md")
    world.files.put(RootedPath("r", "c.md"), "Other words than before.\n")
    world.files.put(RootedPath("r", "d.md"), "Words of its own.\n")
    result = world.walk()
    assert result.paths_due == paths("c.md", "d.md", "a.md")
    assert result.gone_or_emptied == {RootedPath("r", "a.md"): seen}
    assert (result.file_count, result.listed_folders) == (3, ("",))


def test_another_recipe_makes_every_file_due(world: World) -> None:
    world.index("a.md", "b.md")
    other = Recipe(
        plans=plans(), model_identity=lambda: "other", chunking_tools_identity="tokenizer"
    )
    root = RootedPath("r", "")
    result = reconcile(world.dependencies, other, root, ignore_enter_dir, DeletionPolicy())
    assert result.paths_due == paths("a.md", "b.md")


def test_an_emptied_file_keeps_its_last_fingerprint(world: World) -> None:
    world.index("a.md", "b.md")
    seen = world.catalog.list_records("r", "")["a.md"].fingerprint
    world.files.put(RootedPath("r", "a.md"), "")
    world.files.put(RootedPath("r", "new.md"), "")
    result = world.walk()
    assert set(result.paths_due) == set(paths("a.md", "new.md"))
    assert result.gone_or_emptied == {RootedPath("r", "a.md"): seen}


def test_what_rules_leave_out_and_what_cannot_be_listed_is_counted_and_named(world: World) -> None:
    world.index("a.md", "deep/b.md")
    world.files.put(RootedPath("r", "left-out.md"), "Words.\n")
    world.files.excluded[RootedPath("r", "left-out.md")] = "a rule"
    world.files.unread.add(("r", "deep"))
    result = world.walk()
    assert (result.skipped, result.file_count, result.paths_due) == (1, 1, ())
    assert result.folder_problems == (("deep", Problem("permission denied")),)


def test_every_folder_is_a_sign_of_life_and_is_reported_before_it_is_listed(world: World) -> None:
    world.index("a.md")
    world.beats.clear()
    world.entered.clear()
    world.walk()
    assert (world.beats, world.entered) == ([0], [RootedPath("r", "")])


def test_a_file_that_cannot_be_used_is_due_until_its_problem_is_recorded(world: World) -> None:
    world.index("a.md", "b.md")
    (new, known) = paths("new.md", "a.md")
    for file in (new, known):
        world.files.problems[file] = Problem("permission denied")
    world.remove("b.md")  # A file that could have moved.
    result = world.walk()
    assert result.paths_due == (known, new, *paths("b.md"))
    assert (result.moved_from, result.mtimes_ns) == ({}, {})
    assert set(result.gone_or_emptied) == set(paths("b.md"))
    world.index()
    assert world.walk().paths_due == ()


def test_files_that_are_due_come_with_the_time_of_their_change(world: World) -> None:
    world.index("a.md", "b.md", "c.md")
    world.files.put(RootedPath("r", "a.md"), "Other words.\n", Fingerprint(13, 77, 78, 1, 1))
    world.files.put(RootedPath("r", "new.md"), "Words.\n", Fingerprint(7, 99, 98, 9, 1))
    world.remove("b.md")
    result = world.walk()
    assert result.paths_due == paths("a.md", "new.md", "b.md")
    assert result.mtimes_ns == {RootedPath("r", "a.md"): 77, RootedPath("r", "new.md"): 99}


def test_what_the_rules_exclude_now_is_due_first_and_no_deletion(world: World) -> None:
    world.index(*names(60), "z.md")
    for number, file in enumerate(paths(*names(60))):
        world.files.excluded[file] = "a rule"
        if number % 2:
            world.files.remove(file)
    world.files.put(RootedPath("r", "new.md"), "Words.\n")
    world.remove("z.md")
    result = world.walk()
    assert result.paths_due == paths(*names(60), "new.md", "z.md")
    assert set(result.gone_or_emptied) == set(paths(*names(60), "z.md"))
    assert (result.held_deletions, result.released_deletions) == (0, 1)


@pytest.mark.parametrize("has_transcripts", [True, False])
def test_only_transcripts_may_have_any_size(
    world: World,
    has_transcripts: bool,  # noqa: FBT001 - a column of the table
) -> None:
    world.talks.has_transcripts = has_transcripts
    fits = Fingerprint(MAX_FILE_BYTES, 1, 1, 1, 1)
    large = Fingerprint(MAX_FILE_BYTES + 1, 1, 1, 2, 1)
    world.files.put(RootedPath("r", "fits.md"), "Words.\n", fits)
    world.files.put(RootedPath("r", "large.md"), "Words.\n", large)
    assert world.walk().paths_due == paths("fits.md", "large.md")
    world.index()
    assert world.walk().paths_due == ()
    (record,) = world.catalog.list_records("r", "large.md").values()
    assert bool(record.problem) is not has_transcripts
    # What is in the catalog is judged anew by the limit that holds now.
    world.talks.has_transcripts = not has_transcripts
    assert world.walk().paths_due == paths("large.md")


# Folders


def test_a_folder_that_is_gone_takes_its_files_with_it_and_holds_none(world: World) -> None:
    deep = [f"deep/{name}" for name in names(60)]
    world.index(*deep)
    world.remove(*deep)
    result = world.walk("deep")
    assert set(result.paths_due) == set(paths(*deep)) == set(result.gone_or_emptied)
    assert (result.held_deletions, result.walk_error) == (0, "")
    assert world.walk("gone.md").paths_due == paths("gone.md")


def test_a_folder_is_compared_alone(world: World) -> None:
    world.index("a.md", "deep/b.md", "deep/c.md")
    world.remove("a.md", "deep/b.md")
    assert world.walk("deep").paths_due == paths("deep/b.md")


# Moves


def test_a_moved_file_is_no_deletion(world: World) -> None:
    world.index(*names(60))
    for name in names(60):
        world.files.move(RootedPath("r", name), RootedPath("r", f"new/{name}"))
    result = world.walk()
    assert result.held_deletions == 0
    assert result.moved_from == {
        RootedPath("r", f"new/{name}"): RootedPath("r", name) for name in names(60)
    }
    assert set(result.paths_due) == set(paths(*names(60), *(f"new/{name}" for name in names(60))))


def test_a_file_that_was_moved_over_another_is_no_move_to_a_new_path(world: World) -> None:
    world.index("a.md", "b.md")
    world.files.move(RootedPath("r", "a.md"), RootedPath("r", "b.md"))
    result = world.walk()
    assert (result.paths_due, result.moved_from) == (paths("b.md", "a.md"), {})
    assert result.released_deletions == 1


# The guard


def test_deletions_that_pass_are_counted_unless_a_person_confirmed_them(world: World) -> None:
    world.index(*names(60))
    assert world.walk().released_deletions == 0
    world.remove(*names(2))
    assert (world.walk().released_deletions, world.walk().held_deletions) == (2, 0)
    assert world.walk(confirmed=True).released_deletions == 0
    assert world.walk(released=paths("000.md")).released_deletions == 1
    world.remove(*names(60)[2:])
    assert (world.walk().released_deletions, world.walk().held_deletions) == (0, 60)
    assert world.walk(confirmed=True).released_deletions == 0


def test_a_move_among_deletions_does_not_hide_them(world: World) -> None:
    world.index(*names(99))
    world.files.move(RootedPath("r", "000.md"), RootedPath("r", "moved.md"))
    world.remove(*names(51)[1:])
    result = world.walk()
    assert (result.held_deletions, result.paths_due) == (50, paths("moved.md", "000.md"))


@pytest.mark.parametrize("why", ["excluded", "released"])
@pytest.mark.parametrize(("known", "held"), [(140, 50), (141, 0)])
def test_what_left_otherwise_is_not_among_the_files_that_half_is_counted_of(
    world: World, why: str, known: int, held: int
) -> None:
    left = names(41)
    world.index(*names(known))
    world.remove(*names(91))
    if why == "excluded":
        world.files.excluded.update(dict.fromkeys(paths(*left), "a rule"))
    result = world.walk(released=paths(*left) if why == "released" else ())
    assert result.held_deletions == held
    assert set(paths(*left)) <= set(result.paths_due)
    assert len(result.paths_due) == 91 - held


def test_released_files_of_another_root_do_not_count(world: World) -> None:
    world.index(*names(100))
    world.remove(*names(50))
    others = [RootedPath("other", name) for name in names(60)]
    result = world.walk(released=others)
    assert (result.held_deletions, len(result.paths_due)) == (0, 50)
    assert result.released_deletions == 50


@pytest.mark.parametrize("why", ["kept", "lost", "renamed"])
def test_a_transcript_or_exchange_that_loses_no_row_is_no_deletion(world: World, why: str) -> None:
    world.index(*names(60))
    world.remove(*names(60))
    world.talks.safe[why] = set(paths(*names(11)))
    result = world.walk()
    assert (result.held_deletions, result.released_deletions) == (0, 49)
    assert len(result.paths_due) == 60
    world.talks.safe[why] = set(paths(*names(10)))
    result = world.walk()
    assert (result.held_deletions, result.paths_due) == (50, paths(*names(10)))


def test_a_mass_deletion_is_held_and_everything_else_goes_on(world: World) -> None:
    world.index(*names(99))
    world.remove(*names(50))
    world.files.put(RootedPath("r", "new.md"), "Words.\n")
    result = world.walk()
    assert (result.held_deletions, result.paths_due) == (50, paths("new.md"))
    assert result.gone_or_emptied == {}
    assert world.note() == "0"
    confirmed = world.walk(confirmed=True)
    assert (confirmed.held_deletions, len(confirmed.paths_due)) == (0, 51)
    assert world.note() == ""


def test_what_left_just_before_is_noted_for_as_long_as_the_hold_lasts(world: World) -> None:
    """30 left before and 30 leave now: later walks know of the 30 from the catalog alone."""
    world.index(*names(50))
    world.remove(*names(30))
    assert world.walk(recent=19).held_deletions == 0
    assert world.note() == ""
    assert world.walk(recent=30).held_deletions == 30
    assert world.note() == "30"
    assert world.walk().held_deletions == 30
    assert world.walk(recent=5).held_deletions == 30
    assert world.note() == "30"
    assert world.walk(recent=31).held_deletions == 30
    assert world.note() == "31"


def test_the_note_goes_when_the_files_are_back(world: World) -> None:
    world.index(*names(50))
    kept = {name: world.files.fingerprints[RootedPath("r", name)] for name in names(30)}
    world.remove(*names(30))
    assert world.walk(recent=30).held_deletions == 30
    for name, seen in kept.items():
        world.files.put(RootedPath("r", name), f"Words of {name}.\n", seen)
    result = world.walk()
    assert (result.held_deletions, result.paths_due, world.note()) == (0, (), "")


def test_a_released_file_went_through_the_guard_before(world: World) -> None:
    world.index(*names(60))
    world.remove(*names(60))
    result = world.walk(released=paths(*names(11)))
    assert (result.held_deletions, result.paths_due) == (0, paths(*names(60)))
    result = world.walk(released=paths(*names(10)))
    assert (result.held_deletions, result.paths_due) == (50, paths(*names(10)))


# The garbage collector


@pytest.fixture(params=[True, False])
def collects(request: pytest.FixtureRequest) -> Iterator[bool]:
    was_enabled = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if was_enabled else gc.disable)()


def test_the_garbage_collector_rests_during_a_walk_and_is_as_before_after_it(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    collects: bool,  # noqa: FBT001 - a fixture
) -> None:
    during: list[bool] = []

    def broken(*_: object) -> None:
        during.append(gc.isenabled())
        raise OSError("the disk is gone")

    monkeypatch.setattr(world.files, "walk", broken)
    with pytest.raises(OSError, match="the disk is gone"):
        world.walk()
    assert (during, gc.isenabled()) == ([False], collects)
