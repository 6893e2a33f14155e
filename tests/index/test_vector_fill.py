"""Words first: chunks are written at once, and their vectors follow; no crash or change loses either."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random

import pytest
from fakes import FakeCatalogue, FakeFiles, FakeStore, FakeVanished
from hypothesis import given
from hypothesis import strategies as st
from index.test_reconcile import RECIPE

from anchord.core.ids import make_vector_key
from anchord.core.ports import IndexerDependencies
from anchord.core.types import Action, FileOutcome, RootedPath, SearchFilters, Vector
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.errors import EmbedderError, StoreError
from anchord.index import vector_fill as module
from anchord.index.indexer import Indexer

A, B = RootedPath("r", "a.md"), RootedPath("r", "b.md")
ANY = SearchFilters()
CRASHES = "crashes the model"


class SlowModel(HashEmbedder):
    """Vectors in batches of four, of a rate at which no commit waits for more than 16 texts."""

    is_immediate = False

    def __init__(self) -> None:
        """Begin with a model that works."""
        super().__init__()
        self.texts_per_second = 10.0
        self.texts: list[str] = []
        self.fails_after = 10**9
        self.calls = 0
        """How often texts were given to the model."""

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Vector]:
        """Embed texts at the rate that was set."""
        rate = self.texts_per_second
        vectors = super().embed(texts, is_query=is_query)
        self.texts_per_second = rate
        return vectors

    def embed_batches(self, texts: Sequence[str]) -> Iterator[Mapping[int, Vector]]:
        """Embed texts; record them."""
        self.calls += bool(texts)
        for start in range(0, len(texts), 4):
            if len(self.texts) >= self.fails_after:
                raise EmbedderError("the model is gone", "")
            batch = texts[start : start + 4]
            self.texts += batch
            vectors = self.embed(batch)
            yield {
                start + number: bytes(len(vector)) if CRASHES in text else vector
                for number, (text, vector) in enumerate(zip(batch, vectors, strict=True))
            }


class World:
    """An indexer over fakes that writes words first."""

    def __init__(self) -> None:
        """Begin without files."""
        self.files, self.catalog, self.store = FakeFiles(), FakeCatalogue(), FakeStore()
        self.cache, self.model = FakeVanished(), SlowModel()
        self.indexer = self.make()

    def make(self) -> Indexer:
        """Give the indexer of a new process."""
        dependencies = IndexerDependencies(
            files=self.files,
            catalog=self.catalog,
            store=self.store,
            embedder=self.model,
            vector_cache=self.cache,
            clock=lambda: 10**18,
        )
        return Indexer(
            dependencies,
            lambda texts: [len(text.split()) for text in texts],
            RECIPE,
            words_first=True,
        )

    def write(self, file: RootedPath, *words: str) -> None:
        """Write a file of a chunk a word."""
        sections = [f"# {word}\n\n" + f"All there is to say about {word}.\n" * 25 for word in words]
        self.files.put(file, "\n".join(sections))

    def index(self, *files: RootedPath) -> list[FileOutcome]:
        """Index files."""
        return list(self.indexer.index(files))

    def fill(self, *files: RootedPath, stop_after: int = 10**9) -> list[FileOutcome]:
        """Make the vectors of files; stop once the model has made some more."""
        limit = len(self.model.texts) + stop_after
        return list(self.indexer.vector_fill.fill(files, lambda: len(self.model.texts) >= limit))

    def due(self) -> int:
        """Count the chunks without vectors."""
        return self.store.count_due()


@pytest.fixture
def world() -> World:
    return World()


def names(count: int, kind: str = "word") -> list[str]:
    return [f"{kind}{number}" for number in range(count)]


def test_words_are_found_before_the_model_is_asked(world: World) -> None:
    world.write(A, *names(20))
    (outcome,) = world.index(A)
    assert (outcome.action, outcome.due, outcome.embedded, outcome.reused) == ("indexed", 20, 0, 0)
    assert world.model.texts == []
    assert len(world.store.search_by_words("word7", 5, ANY)) == 1
    assert list(world.store.search_by_vector(world.model.embed(["word7"])[0], 5, ANY)) == []
    record = world.catalog.get_record(A)
    assert record is not None
    assert record.is_confirmed


def test_the_fill_embeds_each_text_once_and_counts_it(world: World) -> None:
    world.write(A, *names(20))
    world.index(A)
    (outcome,) = world.fill(A)
    assert (outcome.action, outcome.embedded, outcome.reused) == (Action.EMBEDDED, 20, 0)
    assert (world.due(), len(world.model.texts)) == (0, 20)
    (hit, *_) = world.store.search_by_vector(world.model.embed(world.model.texts[:1])[0], 1, ANY)
    assert hit.score == pytest.approx(1)
    assert world.fill(A)[0].embedded == 0


def test_few_texts_are_embedded_with_the_commit(world: World) -> None:
    world.write(A, *names(16))
    (outcome,) = world.index(A)
    assert (outcome.due, outcome.embedded) == (0, 16)


def test_a_quick_model_is_waited_for(world: World) -> None:
    world.model.texts_per_second = 40.0
    world.write(A, *names(20))
    assert (world.index(A)[0].due, world.due()) == (0, 0)


def test_a_model_that_makes_vectors_at_once_is_waited_for_at_any_rate(world: World) -> None:
    world.model.is_immediate = True
    world.write(A, *names(20))
    assert world.index(A)[0].due == 0


def test_an_index_that_nobody_searches_yet_is_written_whole(world: World) -> None:
    world.indexer.complete_before_writing()
    world.write(A, *names(20))
    assert (world.index(A)[0].due, world.due()) == (0, 0)


def test_known_vectors_are_written_at_once(world: World) -> None:
    world.write(A, *names(16))
    world.index(A)
    world.write(A, *names(16), *names(20, "new"))
    (outcome,) = world.index(A)
    assert (outcome.due, outcome.embedded) == (20, 0)
    assert world.due() == 20


def test_files_that_share_texts_share_the_vectors(world: World) -> None:
    world.write(A, *names(20))
    world.write(B, *names(20))
    world.index(A, B)
    assert world.due() == 40
    one, other = world.fill(A, B)
    assert (one.embedded, one.reused, other.embedded, other.reused) == (20, 0, 0, 20)
    assert (world.due(), len(world.model.texts)) == (0, 20)


def test_a_vector_that_another_row_got_meanwhile_is_taken_from_it(world: World) -> None:
    world.write(A, *names(20))
    world.write(B, *names(20))
    world.index(A, B)
    world.fill(B)
    (outcome,) = world.fill(A)
    assert (outcome.embedded, outcome.reused, world.due()) == (0, 20, 0)


def test_a_fill_that_is_stopped_keeps_what_it_made_and_goes_on(world: World) -> None:
    world.write(A, *names(20))
    world.index(A)
    reads = len(world.model.texts)
    assert world.fill(A, stop_after=8) == []
    assert (world.due(), len(world.model.texts) - reads) == (12, 8)
    (outcome,) = world.fill(A)
    assert (outcome.embedded, world.due(), len(world.model.texts) - reads) == (20, 0, 20)


def test_a_model_that_fails_loses_no_vector(world: World) -> None:
    world.write(A, *names(20))
    world.index(A)
    world.model.fails_after = 8
    with pytest.raises(EmbedderError):
        world.fill(A)
    assert world.due() == 12
    world.model.fails_after = 10**9
    world.fill(A)
    assert (world.due(), len(world.model.texts)) == (0, 20)


def test_no_commit_waits_again_for_a_model_that_fails(world: World) -> None:
    world.model.fails_after = 0
    for number, file in enumerate((A, B)):
        world.write(file, f"word{number}")
        (outcome,) = world.index(file)
        assert (outcome.action, outcome.due) == (Action.INDEXED, 1)
    assert world.model.calls == 1, "the second commit asks nothing"
    with pytest.raises(EmbedderError):
        world.fill(A, B)
    world.model.fails_after = 10**9
    assert sum(outcome.embedded for outcome in world.fill(A, B)) == 2
    world.write(A, "word0", "another")
    assert [(each.due, each.embedded) for each in world.index(A)] == [(0, 1)]


def test_vectors_are_written_every_so_many_texts(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TEXTS_PER_WRITE", 8)
    world.write(A, *names(20))
    world.index(A)
    commits = world.indexer.commit_count
    world.fill(A)
    assert world.indexer.commit_count - commits == 3


def test_a_crash_loses_only_what_the_model_works_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With two seconds of a slow model lost, a fifth of a small index was embedded twice."""
    monkeypatch.setattr(module, "NS_PER_CACHING", 0)
    monkeypatch.setattr(module, "S_PER_WRITE", 1e9)
    world.write(A, *names(20))
    world.index(A)

    class Killed(BaseException):
        pass

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as kill:
        kill.setattr(world.store, "set_vectors", die)  # Nothing that was made is written.
        with pytest.raises(Killed):
            world.fill(A, stop_after=12)
    assert (world.due(), len(world.model.texts)) == (20, 12)
    world.indexer = world.make()
    (outcome,) = world.fill(A)
    assert (outcome.embedded, outcome.reused) == (8, 12)
    assert (world.due(), len(world.model.texts)) == (0, 20)
    assert world.cache.kept == {}, "once in the table they leave the cache"


def test_vectors_that_cannot_be_written_stay_in_the_cache(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "NS_PER_CACHING", 0)
    monkeypatch.setattr(module, "TEXTS_PER_WRITE", 12)
    world.write(A, *names(20))
    world.index(A)

    def fail(*_: object) -> None:
        raise StoreError("the table is away", "")

    with monkeypatch.context() as away:
        away.setattr(world.store, "set_vectors", fail)
        with pytest.raises(StoreError):
            world.fill(A)
    assert (len(world.model.texts), len(world.cache.kept)) == (12, 8)
    assert world.fill(A)[0].reused == 8
    assert world.cache.kept == {}


def test_a_new_process_finds_the_files_that_lack_vectors(world: World) -> None:
    world.write(A, *names(20))
    world.write(B, "other")
    world.index(A, B)
    world.fill(A, stop_after=4)
    world.indexer = world.make()
    assert list(world.indexer.vector_fill.find_due()) == [A, B]
    assert [outcome.origin for outcome in world.fill(A, B)] == [A, B]
    assert list(world.indexer.vector_fill.find_due()) == []
    assert len(world.model.texts) == 21


def test_what_a_file_got_counts_though_others_are_filled_in_between(world: World) -> None:
    world.write(A, *names(20))
    world.write(B, *names(20, "other"))
    world.index(A, B)
    assert world.fill(A, stop_after=8) == []
    assert [outcome.embedded for outcome in world.fill(B)] == [20]
    (outcome,) = world.fill(A)
    assert (outcome.embedded, outcome.reused) == (20, 0)
    assert world.fill(A)[0].embedded == 0


@pytest.mark.parametrize(("how", "action"), [("changed", Action.RETRY), ("gone", Action.SKIPPED)])
def test_what_a_file_got_before_it_changed_or_could_not_be_read_counts(
    world: World, how: str, action: Action
) -> None:
    world.write(A, *names(20))
    world.write(B, "other")
    world.index(A, B)
    world.fill(A, stop_after=8)
    world.fill(B)  # What is prepared for A is forgotten.
    if how == "gone":
        world.files.remove(A)
    else:
        world.write(A, *names(19), "another")
    (outcome,) = world.fill(A)
    assert (outcome.action, outcome.embedded) == (action, 8)


def test_a_file_that_changed_before_its_fill_is_indexed_again(world: World) -> None:
    world.write(A, *names(20))
    world.index(A)
    world.write(A, *names(19), "another")
    (outcome,) = world.fill(A)
    assert outcome.action is Action.RETRY
    (again,) = world.index(A)
    # Else a file that changes all the time would never get vectors.
    assert (again.action, again.due, again.embedded, world.due()) == ("indexed", 0, 20, 0)
    world.write(A, *names(20, "later"))
    assert world.index(A)[0].due == 20


def test_a_row_that_got_other_words_meanwhile_keeps_its_own_vector(world: World) -> None:
    world.write(A, *names(20))
    world.index(A)
    world.fill(A, stop_after=4)
    world.write(A, *names(20, "else"))
    world.index(A)
    world.fill(A)
    keys = {row.vector_key for row, _ in world.store.table.values()}
    assert (world.due(), len(keys)) == (0, 20)
    for row, vector in world.store.table.values():
        assert vector in {world.model.embed([text])[0] for text in world.model.texts}, row.id


def test_a_file_that_cannot_be_read_is_left_for_later(world: World) -> None:
    world.write(A, *names(20))
    world.index(A)
    world.files.remove(A)
    (outcome,) = world.fill(A)
    assert (outcome.action, outcome.due, world.due()) == (Action.SKIPPED, 20, 20)


def test_a_deleted_file_needs_no_vectors(world: World) -> None:
    world.write(A, *names(20))
    world.index(A)
    world.files.remove(A)
    world.index(A)
    assert world.store.table == {}
    assert world.fill(A)[0].embedded == 0
    assert world.model.texts == []


def test_an_excluded_file_leaves_no_vector_in_the_cache(world: World) -> None:
    world.write(A, *names(20))
    world.index(A)
    key = next(iter(world.store.table.values()))[0].vector_key
    world.cache.kept[key] = (b"left by a stopped commit", 1)
    world.files.excluded[A] = "an ignore rule"
    world.index(A)
    assert world.cache.kept == {}


def test_a_text_that_crashes_the_model_is_listed(world: World) -> None:
    world.write(A, *names(20), CRASHES)
    world.index(A)
    (outcome,) = world.fill(A)
    assert outcome.action is Action.EMBEDDED
    assert world.due() == 0
    (failure,) = world.catalog.list_failures()
    assert "only word search finds them" in failure.problem.reason
    world.index(A)
    assert len(world.catalog.list_failures()) == 1


# Provisional vectors


def nearest(world: World, word: str) -> str:
    """Return the heading of the chunk that is nearest to what is said about a word."""
    text = next(text for text in world.model.texts if f"about {word}." in text)
    (hit, *_) = world.store.search_by_vector(world.model.embed([text])[0], 1, ANY)
    return world.store.table[hit.id][0].header_path if hit.score > 0.999 else ""


def filled(world: World, *words: str) -> World:
    """Index a file of twenty chunks or more, with their vectors."""
    world.write(A, *words)
    world.index(A)
    world.fill(A)
    return world


def wrong_vectors(world: World) -> list[str]:
    """Return the keys with another vector than that of their text, in the table and the cache."""
    made = {make_vector_key(world.model.model_id, text): text for text in world.model.texts}
    known = {key: vector for key, (vector, _) in world.cache.kept.items()}
    keys = {row.vector_key for row, _ in world.store.table.values()}
    known.update(world.store.vectors_by_key(sorted(keys)))
    return [key for key, vector in known.items() if vector != world.model.embed([made[key]])[0]]


def test_a_changed_chunk_is_found_by_meaning_before_its_vector_is_made(world: World) -> None:
    filled(world, "first", *names(20), "last")
    world.write(A, "first", *names(20, "new"), "last")
    (outcome,) = world.index(A)
    assert (outcome.due, world.due(), outcome.reused) == (20, 20, 0)
    assert [nearest(world, f"word{number}") for number in range(20)] == names(20, "new")
    assert wrong_vectors(world) == []
    (outcome,) = world.fill(A)
    assert (outcome.embedded, world.due()) == (20, 0)
    assert [nearest(world, f"new{number}") for number in range(20)] == names(20, "new")
    assert nearest(world, "word7") == ""


def test_a_chunk_that_changes_again_keeps_the_vector_of_the_first_one(world: World) -> None:
    filled(world, *names(20))
    for kind in ("second", "third"):
        world.write(A, *names(20, kind))
        world.index(A)
    assert [nearest(world, f"word{number}") for number in range(20)] == names(20, "third")
    assert set(world.cache.kept) == {
        make_vector_key(world.model.model_id, text) for text in world.model.texts
    }, "a provisional vector is not cached"
    assert wrong_vectors(world) == []


def test_a_text_that_returns_gets_its_own_vector_from_the_cache(world: World) -> None:
    filled(world, *names(20))
    for kind in ("new", "word"):
        world.write(A, *names(20, kind))
        world.index(A)
    assert (world.due(), len(world.model.texts)) == (0, 20)
    assert wrong_vectors(world) == []


def test_a_chunk_that_was_inserted_has_no_vector_until_its_own_is_made(world: World) -> None:
    filled(world, *names(20))
    world.write(A, *names(20), *names(20, "new"))
    world.index(A)
    assert world.due() == 20
    assert sum(bool(vector) for vector in world.store.provisional.values()) == 0


def test_no_vector_is_taken_over_from_rows_of_another_recipe(world: World) -> None:
    filled(world, *names(20))
    file = world.catalog.files[A]
    file.known = file.known._replace(recipe_digest="of another model")
    world.write(A, *names(20, "new"))
    world.index(A)
    assert world.due() == 20
    assert not any(world.store.provisional.values())


def test_no_vector_is_taken_over_after_a_crash_which_leaves_rows_of_unknown_texts(
    world: World,
) -> None:
    filled(world, *names(20))
    world.catalog.files[A].wanted = ()
    world.write(A, *names(20, "new"))
    world.index(A)
    assert world.due() == 20
    assert not any(world.store.provisional.values())
    world.fill(A)
    assert world.due() == 0


def test_an_excluded_file_leaves_no_provisional_vector(world: World) -> None:
    filled(world, *names(20))
    world.write(A, *names(20, "new"))
    world.index(A)
    world.cache.kept.clear()
    world.files.excluded[A] = "an ignore rule"
    world.index(A)
    assert (world.cache.kept, world.store.table) == ({}, {})


STEPS = st.lists(
    st.sampled_from(["edit", "insert", "delete", "swap", "index", "index", "fill", "some", "new"]),
    max_size=14,
)


@given(steps=STEPS, dice=st.randoms(use_true_random=False))
def test_whatever_happens_no_vector_is_that_of_another_text_and_at_rest_none_is_missing(
    steps: list[str], dice: Random
) -> None:
    world = filled(World(), *(words := names(18)))
    for number, step in enumerate(steps):
        place = dice.randrange(len(words))
        if step == "edit":
            start = dice.randrange(len(words))
            words[start:] = [f"{word}v{number}" for word in words[start:]]
        elif step == "insert":
            words.insert(place, f"inserted{number}")
        elif step == "delete" and len(words) > 1:
            del words[place]
        elif step == "swap":
            words[0], words[place] = words[place], words[0]
        elif step == "index":
            world.write(A, *words)
            world.index(A)
        elif step in ("fill", "some"):
            world.fill(A, stop_after=10**9 if step == "fill" else 4)
        elif step == "new":
            world.indexer = world.make()
        assert wrong_vectors(world) == []
    world.write(A, *words)
    world.index(A)
    world.fill(A)
    assert world.due() == 0
    assert len(world.store.table) == len(words)
    assert wrong_vectors(world) == []
    own = {row.vector_key: vector for row, vector in world.store.table.values()}
    assert all(own.values())
