"""Scores: how two lists become one. Laws that hold for any lists, and the few cases that a person would name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from random import Random

import pytest
from fakes import FakeCatalogue, FakeStore
from hypothesis import given
from hypothesis import strategies as st

from anchord.adapters.hashing import HashEmbedder
from anchord.errors import EmbedderError
from anchord.model import UNSEEN, Diff, Filters, Known, Origin, Placed, Row, Scored, Update, Vector
from anchord.search import CANDIDATES, MODES, Question, fuse, grouped, search


def row(chunk_id: str, path: str = "a.md", text: str = "") -> Row:
    return Row(chunk_id, "doc", "r", path, "markdown", "", "hash", f"key-{chunk_id}", text, text)


def near(**cosines: float) -> list[Scored]:
    return [Scored(row(chunk_id), cosine, None) for chunk_id, cosine in cosines.items()]


def words(**scores: float) -> list[Scored]:
    return [Scored(row(chunk_id), None, score) for chunk_id, score in scores.items()]


def scores_of(one: Sequence[Scored], other: Sequence[Scored], share: float = 0.5) -> dict[str, float]:
    return {hit.row.id: hit.score for hit in fuse(one, other, share)}


# Laws

_ids = st.sampled_from([f"{n:02}" for n in range(12)])
_near = st.dictionaries(_ids, st.floats(-1, 1), max_size=8).map(lambda found: near(**found))
_words = st.dictionaries(_ids, st.floats(0, 1e6), max_size=8).map(lambda found: words(**found))
_share = st.sampled_from([0.0, 0.5, 1.0]) | st.floats(0, 1)


@given(_near, _words, _share)
def test_every_score_is_between_0_and_1(one: list[Scored], other: list[Scored], share: float) -> None:
    assert all(0.0 <= hit.score <= 1.0 for hit in fuse(one, other, share))


@given(_near, _words, _share)
def test_each_row_found_either_way_comes_once_and_none_is_lost(one: list[Scored], other: list[Scored], share: float) -> None:
    assert sorted(hit.row.id for hit in fuse(one, other, share)) == sorted({found.row.id for found in (*one, *other)})


@given(_near, _words, _share, st.randoms(use_true_random=False))
def test_the_order_of_the_lists_does_not_matter(one: list[Scored], other: list[Scored], share: float, random: Random) -> None:
    shuffled = [list(one), list(other)]
    for found in shuffled:
        random.shuffle(found)
    assert fuse(shuffled[0], shuffled[1], share) == fuse(one, other, share)


@given(_near, _words, _share)
def test_hits_come_best_first_and_ties_by_id(one: list[Scored], other: list[Scored], share: float) -> None:
    keys = [(-hit.score, hit.row.id) for hit in fuse(one, other, share)]
    assert keys == sorted(keys)


@given(_near, _words, _share)
def test_a_hit_says_how_it_was_found(one: list[Scored], other: list[Scored], share: float) -> None:
    cosines = {found.row.id: found.cosine for found in one}
    scores = {found.row.id: found.bm25 for found in other}
    assert all((hit.cosine, hit.bm25) == (cosines.get(hit.row.id), scores.get(hit.row.id)) for hit in fuse(one, other, share))


@given(_near)
def test_by_meaning_alone_the_order_is_that_of_the_cosines(found: list[Scored]) -> None:
    cosines = [hit.cosine for hit in fuse(found, (), 1.0) if hit.cosine is not None]
    assert all(a >= b - 1e-9 for a, b in pairwise(cosines))


@given(_words)
def test_by_words_alone_the_order_is_that_of_the_words_scores(found: list[Scored]) -> None:
    scores = [hit.bm25 for hit in fuse((), found, 0.0) if hit.bm25 is not None]
    assert all(a >= b - 1e-6 for a, b in pairwise(scores))


@given(_near, _words, _ids, st.floats(0, 1), st.floats(0, 0.5))
def test_a_better_cosine_never_lowers_the_rank_among_equals(
    one: list[Scored], other: list[Scored], chunk_id: str, low: float, more: float
) -> None:
    rest = [found for found in one if found.row.id != chunk_id]
    bounds = near(worst=-1.0, best=1.0)
    worse = scores_of([*bounds, *rest, *near(**{chunk_id: low})], other)
    better = scores_of([*bounds, *rest, *near(**{chunk_id: min(1.0, low + more)})], other)
    assert better[chunk_id] >= worse[chunk_id]


# Cases


def test_nothing_found_gives_nothing() -> None:
    assert fuse((), (), 0.5) == []


def test_the_best_both_ways_has_1_and_the_worst_found_by_meaning_alone_0() -> None:
    assert scores_of(near(a=0.9, b=0.1), words(a=7.0)) == {"a": 1.0, "b": 0.0}


def test_a_row_that_one_way_did_not_find_counts_as_its_worst_there() -> None:
    assert scores_of(near(a=0.8, b=0.2), words(c=3.0)) == {"a": 0.5, "b": 0.0, "c": 0.5}


def test_a_single_row_found_by_meaning_is_the_best_there_is() -> None:
    assert scores_of(near(a=-0.3), (), 1.0) == {"a": 1.0}


def test_rows_equally_near_are_equally_good() -> None:
    assert scores_of(near(a=0.4, b=0.4), (), 1.0) == {"a": 1.0, "b": 1.0}


def test_words_that_all_score_nothing_count_for_nothing() -> None:
    assert scores_of((), words(a=0.0, b=0.0), 0.0) == {"a": 0.0, "b": 0.0}


def test_the_share_weighs_meaning_against_words() -> None:
    found = near(a=1.0, b=0.0), words(b=5.0)
    assert scores_of(*found, 0.75) == {"a": 0.75, "b": 0.25}
    assert scores_of(*found, 0.25) == {"a": 0.25, "b": 0.75}


# Groups


def hits_of(paths: Sequence[str]) -> list[Scored]:
    return [Scored(row(f"{n:03}", path), 1.0 - n / 1000, None) for n, path in enumerate(paths)]


@given(st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=20))
def test_grouping_drops_none_and_keeps_the_order_in_each_group(paths: list[str]) -> None:
    hits = fuse(hits_of(paths), (), 1.0)
    groups = grouped(hits, len(hits) + 1)
    assert sorted(hit.row.id for group in groups for hit in group) == sorted(hit.row.id for hit in hits)
    assert all([hit.row.path for hit in group] == [group[0].row.path] * len(group) for group in groups)
    assert all([hit.score for hit in group] == sorted((hit.score for hit in group), reverse=True) for group in groups)


@given(st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=20), st.integers(1, 5))
def test_the_limit_counts_groups_and_their_order_is_that_of_their_best(paths: list[str], limit: int) -> None:
    groups = grouped(fuse(hits_of(paths), (), 1.0), limit)
    assert [group[0].row.path for group in groups] == list(dict.fromkeys(paths))[:limit]


def test_files_of_the_same_path_in_two_roots_are_two_groups() -> None:
    one, other = row("1"), row("2")
    hits = fuse([Scored(one, 0.9, None), Scored(replace(other, root="elsewhere"), 0.8, None)], (), 1.0)
    assert len(grouped(hits, 10)) == 2


# The whole search


@dataclass
class Shelf:
    """A few texts in fakes, one chunk a file."""

    store: FakeStore = field(default_factory=FakeStore)
    catalogue: FakeCatalogue = field(default_factory=FakeCatalogue)
    embedder: HashEmbedder = field(default_factory=HashEmbedder)

    def put(self, chunk_id: str, text: str, *, line: int = 1) -> None:
        """Store a text in a file of its own."""
        made = row(chunk_id, f"{chunk_id}.md", text)
        self.store.upsert([made], dict(zip([made.vector_key], HashEmbedder().embed([text]), strict=True)))
        known = Known(UNSEEN, 0, "digest", "recipe", settled=True, chunks=(Placed(chunk_id, made.vector_key, "", line, line),))
        self.catalogue.apply([Update(Origin("r", made.path), known, Diff((), (), (), 0, 0), (), "new file")])

    def find(self, text: str, mode: str = "hybrid") -> list[str]:
        """Return the ids that a search finds, best first."""
        hits = list(search(Question(text, mode), self.store, self.embedder, self.catalogue).hits)
        return [hit.row.id for hit in hits if hit.score > 0]


@pytest.fixture
def shelf() -> Shelf:
    """Give three texts."""
    made = Shelf()
    made.put("cats", "the cat sleeps on the sofa", line=7)
    made.put("banks", "the bank raised its interest rates")
    made.put("soup", "simmer the onions in the soup")
    return made


@pytest.mark.parametrize("mode", MODES)
def test_each_mode_finds_the_text_that_shares_the_words(shelf: Shelf, mode: str) -> None:
    assert shelf.find("onions soup", mode)[0] == "soup"


def test_the_mode_decides_what_is_asked(shelf: Shelf) -> None:
    shelf.find("onions", "text")
    assert shelf.embedder.embedded == 0
    shelf.find("onions", "vector")
    assert shelf.embedder.embedded == 1
    by_meaning = search(Question("onions", "vector"), shelf.store, shelf.embedder, shelf.catalogue).hits
    assert all(hit.bm25 is None for hit in by_meaning)
    by_words = search(Question("onions", "text"), shelf.store, shelf.embedder, shelf.catalogue).hits
    assert [(hit.row.id, hit.cosine, hit.score) for hit in by_words] == [("soup", None, 1.0)]


@pytest.mark.parametrize("mode", MODES)
def test_a_blank_question_finds_nothing_and_embeds_nothing(shelf: Shelf, mode: str) -> None:
    assert shelf.find(" \n", mode) == []
    assert shelf.embedder.embedded == 0


def test_a_hit_has_the_lines_that_its_chunk_has_now(shelf: Shelf) -> None:
    (hit, *_) = search(Question("sofa", "text"), shelf.store, shelf.embedder, shelf.catalogue).hits
    assert (hit.start_line, hit.end_line) == (7, 7)


def test_a_row_that_left_its_file_is_not_found(shelf: Shelf) -> None:
    shelf.catalogue.apply([Update(Origin("r", "soup.md"), None, Diff((), (), (), 0, 0), (), "the file is gone")])
    assert shelf.find("onions soup", "text") == []


def test_filters_hold_for_both_ways(shelf: Shelf) -> None:
    for mode in MODES:
        found = search(Question("the", mode, Filters(path_glob="cats.md")), shelf.store, shelf.embedder, shelf.catalogue).hits
        assert [hit.row.id for hit in found] == ["cats"]


def test_no_more_candidates_are_asked_for_than_the_limit() -> None:
    shelf = Shelf()
    for n in range(CANDIDATES + 10):
        shelf.put(f"{n:03}", f"word number{n}")
    assert len(search(Question("word", "text"), shelf.store, shelf.embedder, shelf.catalogue).hits) == CANDIDATES


# Without a model


class Unable(HashEmbedder):
    """Has no vectors just now."""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Sequence[Vector]:  # noqa: ARG002 - it refuses all
        """Refuse."""
        raise EmbedderError("the model is being made ready for this machine", "wait")


def test_a_hybrid_search_goes_by_words_while_there_is_no_model_and_says_so(shelf: Shelf) -> None:
    by_words = shelf.find("onions", "text")
    shelf.embedder = Unable()
    assert shelf.find("onions") == by_words
    answer = search(Question("onions"), shelf.store, shelf.embedder, shelf.catalogue)
    assert answer.note == "found by words alone: the model is being made ready for this machine"
    assert [hit.cosine for hit in answer.hits] == [None] * len(answer.hits)


def test_a_search_that_has_a_model_has_no_note(shelf: Shelf) -> None:
    assert search(Question("onions"), shelf.store, shelf.embedder, shelf.catalogue).note == ""


def test_a_search_by_meaning_alone_is_refused_while_there_is_no_model(shelf: Shelf) -> None:
    shelf.embedder = Unable()
    with pytest.raises(EmbedderError):
        shelf.find("onions", "vector")
