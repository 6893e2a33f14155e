"""Two models whose vectors take long: each row ends with the vector that its own model makes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from random import Random

import pytest
from fakes import FakeCatalogue, FakeFiles, FakeStore, FakeVanished, failing_at
from hypothesis import given, settings
from hypothesis import strategies as st
from index.test_reconcile import RECIPE

from anchord.core.ids import make_model_tag, make_vector_key, model_tag_of
from anchord.core.ports import IndexerDependencies
from anchord.core.types import RootedPath, SearchFilters, Vector
from anchord.daemon.writer.file_queue import Urgency
from anchord.daemon.writer.vector_queue import VectorQueue
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.errors import EmbedderError
from anchord.index.indexer import Indexer
from anchord.index.model_choice import DocumentModel, ModelChoice
from anchord.index.models import Models
from anchord.index.vector_fill import FILES_PER_FILL

A, B = RootedPath("r", "a.md"), RootedPath("r", "b.md")
TAG = make_model_tag("hash-64/1")
ENGLISH = "All there is to say about {}, and this is what you should know of it.\n"
GERMAN = "Das ist alles, was wir über {} wissen, und das ist nicht sehr viel.\n"


def count_tokens(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


GERMAN_MODEL = DocumentModel(
    tag=TAG,
    model_id="hash-64/1",
    plans=RECIPE.plans,
    count_tokens=count_tokens,
)
BY_LANGUAGE = replace(
    RECIPE,
    model_choice=ModelChoice(by_language={"de": GERMAN_MODEL}),
    _digests={},
)


class SlowModel(HashEmbedder):
    """Vectors in batches of four, of a rate at which no commit waits for more than 16 texts."""

    is_immediate = False

    def __init__(self, dimension: int, made: Counter[tuple[str, str]]) -> None:
        """Count in `made` what was embedded."""
        super().__init__(dimension)
        self.made = made
        self.is_away = False

    def embed_batches(self, texts: Sequence[str]) -> Iterator[Mapping[int, Vector]]:
        """Embed texts, and count them."""
        for start in range(0, len(texts), 4):
            if self.is_away:
                raise EmbedderError("it is away")
            batch = texts[start : start + 4]
            self.made.update((self.model_id, text) for text in batch)
            yield {start + number: vector for number, vector in enumerate(self.embed(batch))}
            self.texts_per_second = 10.0


class World:
    """An indexer over fakes that writes words first, with a model for German."""

    def __init__(self) -> None:
        """Begin without files."""
        self.files = FakeFiles(partial(next, count(1)))
        self.catalog, self.store = FakeCatalogue(), FakeStore()
        self.cache = FakeVanished()
        self.made: Counter[tuple[str, str]] = Counter()
        self.main, self.german = SlowModel(0, self.made), SlowModel(64, self.made)
        self.indexer = self.make(self.store)

    def make(self, store: FakeStore) -> Indexer:
        """Give the indexer of a new process."""
        dependencies = IndexerDependencies(
            files=self.files,
            catalog=self.catalog,
            store=store,
            embedder=self.main,
            vector_cache=self.cache,
            clock=lambda: 10**18,
            further_embedders={TAG: self.german},
        )
        return Indexer(
            dependencies,
            count_tokens,
            BY_LANGUAGE,
            words_first=True,
        )

    def write(self, file: RootedPath, sentence: str, *words: str) -> None:
        """Write a file of a chunk a word."""
        sections = [f"# {word}\n\n" + sentence.format(word) * 15 for word in words]
        self.files.put(file, "\n".join(sections))

    def finish(self) -> None:
        """Index both files, and make all vectors."""
        list(self.indexer.index([A, B]))
        list(self.indexer.vector_fill.fill([A, B], lambda: False))

    def wrong_rows(self) -> list[str]:
        """Return the rows with another vector than their own model makes of their text."""
        models = {"": self.main, TAG: self.german}
        texts = {
            make_vector_key(model_id, text, TAG if model_id == "hash-64/1" else ""): text
            for model_id, text in self.made
        }
        return [
            row.id
            for row, vector in self.store.table.values()
            if vector
            and vector != models[model_tag_of(row.vector_key)].embed([texts[row.vector_key]])[0]
        ]


@pytest.fixture
def world() -> World:
    return World()


WORDS = [f"word{number}" for number in range(20)]


def test_each_model_makes_the_vectors_of_its_documents(world: World) -> None:
    world.write(A, ENGLISH, *WORDS)
    world.write(B, GERMAN, *WORDS)
    world.finish()
    tags = {(row.path, model_tag_of(row.vector_key)) for row, _ in world.store.table.values()}
    assert tags == {("a.md", ""), ("b.md", TAG)}
    assert {len(vector) for _, vector in world.store.table.values()} == {4 * 384, 4 * 64}
    assert world.wrong_rows() == []


def test_no_provisional_vector_is_that_of_another_model(world: World) -> None:
    world.write(A, ENGLISH, *WORDS)
    world.finish()
    world.write(A, GERMAN, *WORDS)
    list(world.indexer.index([A]))
    assert world.store.count_due() == 20
    assert not any(world.store.provisional.values())
    query = world.main.embed(["word7"])[0]
    assert list(world.store.search_by_vector(query, 5, SearchFilters())) == []


def test_while_a_model_is_away_the_other_makes_its_vectors(world: World) -> None:
    world.write(A, GERMAN, *WORDS)
    world.write(B, ENGLISH, *WORDS)
    world.german.is_away = True
    list(world.indexer.index([A, B]))
    with pytest.raises(EmbedderError):
        list(world.indexer.vector_fill.fill([A, B], lambda: False))
    lacking = world.store.due_ids_of_files([A, B])
    assert (len(lacking[A]), len(lacking[B])) == (20, 0)
    world.german.is_away = False
    world.finish()
    assert (world.store.count_due(), set(world.made.values())) == (0, {1})


@pytest.mark.parametrize("is_away", ["german", "main"])
def test_more_texts_than_a_call_takes_do_not_keep_the_other_model_from_its_own(
    world: World, monkeypatch: pytest.MonkeyPatch, is_away: str
) -> None:
    monkeypatch.setattr("anchord.index.vector_fill._TEXTS_PER_CALL", 8)
    away, works = (A, B) if is_away == "german" else (B, A)
    world.write(A, GERMAN, *WORDS)
    world.write(B, ENGLISH, *WORDS)
    getattr(world, is_away).is_away = True
    list(world.indexer.index([A, B]))
    before = world.store.due_ids_of_files([A, B])
    fill = world.indexer.vector_fill
    with pytest.raises(EmbedderError):
        list(fill.fill([away, works], lambda: False))
    assert world.store.due_ids_of_files([A, B]) == {away: before[away], works: []}
    assert len(before[away]) > 8 < len(before[works])
    assert fill.failed_files == [away]
    getattr(world, is_away).is_away = False
    world.finish()
    assert (world.store.count_due(), set(world.made.values())) == (0, {1})


def test_a_file_that_is_completed_is_reported_though_the_other_model_is_away(world: World) -> None:
    world.write(A, GERMAN, *WORDS)
    world.write(B, ENGLISH, *WORDS)
    world.german.is_away = True
    list(world.indexer.index([A, B]))
    outcomes = world.indexer.vector_fill.fill([A, B], lambda: False)
    assert next(outcomes).origin == B
    with pytest.raises(EmbedderError):
        next(outcomes)


def test_a_model_that_is_away_does_not_starve_the_files_behind_its_own(world: World) -> None:
    queue = VectorQueue()
    files = [RootedPath("r", f"{number}.md") for number in range(2 * FILES_PER_FILL)]
    for file in files:
        world.write(file, GERMAN, f"word{file.path}")
    world.write(B, ENGLISH, *WORDS)
    world.german.is_away = True
    list(world.indexer.index([*files, B]))
    queue.add_found([*files, B])
    for time_s, file in enumerate([B, *files]):  # Those that fail are the newest.
        queue.remove(file)
        queue.add(file, Urgency.SAVED, float(time_s))

    def fill_next() -> None:
        """Do as `TurnWork.fill_vectors` does."""
        for outcome in world.indexer.vector_fill.fill(queue.next_files(), lambda: False):
            queue.note_made(outcome.origin)
            queue.remove(outcome.origin)

    for _ in range(3):
        with suppress(EmbedderError):
            fill_next()
            continue
        queue.set_back(world.indexer.vector_fill.failed_files)
    assert B not in queue
    assert set(queue.snapshot()) == set(files)
    world.german.is_away = False
    while queue:
        fill_next()
    assert (world.store.count_due(), set(world.made.values())) == (0, {1})


def test_the_models_of_an_index_are_as_slow_as_the_slowest() -> None:
    fast, slow = HashEmbedder(), SlowModel(64, Counter())
    assert Models(fast).texts_per_second == 0.0
    fast.texts_per_second, slow.texts_per_second = 50.0, 7.0
    assert Models(fast, {TAG: slow}).texts_per_second == 7.0
    assert (Models(fast).is_immediate, Models(fast, {TAG: slow}).is_immediate) == (True, False)


class Life:
    """Two files that change, one in each language, and a writer that is killed."""

    def __init__(self, dice: Random) -> None:
        """Begin with two files that are not indexed."""
        self.world, self.dice = World(), dice
        self.words, self.sentences = list(WORDS[:18]), [ENGLISH, GERMAN]
        self.edits = 0

    def edit(self) -> None:
        """Change the end of both files."""
        self.edits += 1
        place = self.dice.randrange(len(self.words))
        self.words[place:] = [f"other{self.edits}x{number}" for number in range(3)]

    def language(self) -> None:
        """Let both files change their language."""
        self.sentences.reverse()

    def crash(self) -> None:
        """Let one of the next writes kill the process."""
        writes = ("upsert", "delete_rows", "set_vectors")
        error = RuntimeError("killed")
        store = failing_at(self.world.store, self.dice.randrange(1, 4), error, *writes)
        self.world.indexer = self.world.make(store)

    def restart(self) -> None:
        """Start a new process."""
        self.world.indexer = self.world.make(self.world.store)

    def save(self, world: World) -> None:
        """Write both files."""
        for file, sentence in zip((A, B), self.sentences, strict=True):
            world.write(file, sentence, *self.words)

    def index(self) -> None:
        """Write and index both files."""
        self.save(self.world)
        list(self.world.indexer.index([A, B]))

    def fill(self, texts: int = 10**9) -> None:
        """Make vectors; stop after some texts."""
        made = self.world.made
        limit = made.total() + texts
        list(self.world.indexer.vector_fill.fill([A, B], lambda: made.total() >= limit))

    def some(self) -> None:
        """Make some of the vectors."""
        self.fill(8)


STEPS = st.lists(
    st.sampled_from(["edit", "language", "index", "index", "fill", "some", "restart", "crash"]),
    max_size=12,
)


@settings(max_examples=10)
@given(steps=STEPS, dice=st.randoms(use_true_random=False))
def test_whatever_happens_the_end_is_that_of_a_rebuild(steps: list[str], dice: Random) -> None:
    life = Life(dice)
    for step in steps:
        try:
            getattr(life, step)()
        except RuntimeError:
            life.restart()
        assert life.world.wrong_rows() == []
    life.restart()
    fresh = World()
    for world in (life.world, fresh):
        life.save(world)
        world.finish()
        world.finish()
    assert life.world.store.table == fresh.store.table
    assert life.world.store.count_due() == 0
    if "crash" not in steps:
        assert set(life.world.made.values()) == {1}, "no text is embedded twice by one model"
