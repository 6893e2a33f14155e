"""Fusing two result lists and grouping hits into passages: laws, and some cases by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from random import Random

import pytest
from fakes import FakeCatalogue, FakeStore
from hypothesis import given
from hypothesis import strategies as st

from anchord.core.types import (
    NO_FINGERPRINT,
    ChunkDiff,
    ChunkLocation,
    ChunkRecord,
    FileRecord,
    FileUpdate,
    Hit,
    RootedPath,
    Row,
    ScoredRow,
    SearchFilters,
    Vector,
)
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.errors import EmbedderError, UsageError
from anchord.search.backends import Backends
from anchord.search.confidence import Confidence, CosineScale
from anchord.search.fusion import EXACT_MATCH_WEIGHT, HEADING_MATCH_WEIGHT, Boosts, fuse_scores
from anchord.search.groups import group_hits_by_file
from anchord.search.packing import Layout
from anchord.search.ranking import (
    MIN_CANDIDATES,
    SEARCH_MODES,
    SearchRequest,
    SearchResults,
    search,
)
from anchord.search.reranking import MAX_RERANKED, SURE


def row(chunk_id: str, path: str = "a.md", text: str = "", header_path: str = "") -> Row:
    return Row(
        id=chunk_id,
        doc_id="doc",
        root="r",
        path=path,
        kind="markdown",
        header_path=header_path,
        content_hash="hash",
        vector_key=f"key-{chunk_id}",
        text=text,
        search_text=f"{header_path}\n{text}",
    )


def scored(**scores: float) -> list[ScoredRow]:
    return [ScoredRow(chunk_id, score) for chunk_id, score in scores.items()]


near = words = scored


def spots_of(*lists: Sequence[ScoredRow]) -> Mapping[str, ChunkLocation]:
    return {
        found.id: ChunkLocation(RootedPath("r", "a.md"), 1, 1)
        for found in (item for each in lists for item in each)
    }


def fused(
    one: Sequence[ScoredRow],
    other: Sequence[ScoredRow],
    share: float = 0.5,
    exact: frozenset[str] = frozenset(),
) -> list[Hit]:
    return fuse_scores(
        one,
        other,
        spots_of(one, other, [ScoredRow(each, 0.0) for each in exact]),
        lambda _: share,
        Boosts(exact),
    )


def scores_of(
    one: Sequence[ScoredRow], other: Sequence[ScoredRow], share: float = 0.5
) -> dict[str, float]:
    return {hit.id: hit.score for hit in fused(one, other, share)}


# Laws

_ids = st.sampled_from([f"{n:02}" for n in range(12)])
_near = st.dictionaries(_ids, st.floats(-1, 1), max_size=8).map(lambda found: near(**found))
_words = st.dictionaries(_ids, st.floats(0, 1e6), max_size=8).map(lambda found: words(**found))
_share = st.sampled_from([0.0, 0.5, 1.0]) | st.floats(0, 1)


@given(_near, _words, _share)
def test_every_score_is_between_0_and_1(
    one: list[ScoredRow], other: list[ScoredRow], share: float
) -> None:
    assert all(0.0 <= hit.score <= 1.0 for hit in fused(one, other, share))


@given(_near, _words, _share)
def test_each_row_found_either_way_comes_once_and_none_is_lost(
    one: list[ScoredRow], other: list[ScoredRow], share: float
) -> None:
    assert sorted(hit.id for hit in fused(one, other, share)) == sorted(
        {found.id for found in (*one, *other)}
    )


@given(_near, _words, _share, st.randoms(use_true_random=False))
def test_the_order_of_the_lists_does_not_matter(
    one: list[ScoredRow], other: list[ScoredRow], share: float, random: Random
) -> None:
    shuffled = [list(one), list(other)]
    for found in shuffled:
        random.shuffle(found)
    assert fused(shuffled[0], shuffled[1], share) == fused(one, other, share)


@given(_near, _words, _share)
def test_hits_come_best_first_and_ties_by_id(
    one: list[ScoredRow], other: list[ScoredRow], share: float
) -> None:
    keys = [(-hit.score, hit.id) for hit in fused(one, other, share)]
    assert keys == sorted(keys)


@given(_near, _words, _share)
def test_a_hit_says_how_it_was_found(
    one: list[ScoredRow], other: list[ScoredRow], share: float
) -> None:
    cosines, scores = ({found.id: found.score for found in each} for each in (one, other))
    assert all(
        (hit.cosine, hit.bm25) == (cosines.get(hit.id), scores.get(hit.id))
        for hit in fused(one, other, share)
    )


@given(_near)
def test_by_meaning_alone_the_order_is_that_of_the_cosines(found: list[ScoredRow]) -> None:
    cosines = [hit.cosine for hit in fused(found, (), 1.0) if hit.cosine is not None]
    assert all(a >= b - 1e-9 for a, b in pairwise(cosines))


@given(_words)
def test_by_words_alone_the_order_is_that_of_the_words_scores(found: list[ScoredRow]) -> None:
    scores = [hit.bm25 for hit in fused((), found, 0.0) if hit.bm25 is not None]
    assert all(a >= b - 1e-6 for a, b in pairwise(scores))


@given(_near, _words, _ids, st.floats(0, 1), st.floats(0, 0.5))
def test_a_better_cosine_never_lowers_the_rank_among_equals(
    one: list[ScoredRow], other: list[ScoredRow], chunk_id: str, low: float, more: float
) -> None:
    rest = [found for found in one if found.id != chunk_id]
    bounds = near(worst=-1.0, best=1.0)
    worse = scores_of([*bounds, *rest, *near(**{chunk_id: low})], other)
    better = scores_of([*bounds, *rest, *near(**{chunk_id: min(1.0, low + more)})], other)
    assert better[chunk_id] >= worse[chunk_id]


# Cases


def test_nothing_found_gives_nothing() -> None:
    assert fused((), (), 0.5) == []


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


def test_a_kind_may_weigh_meaning_differently() -> None:
    spots = {
        "file": ChunkLocation(RootedPath("r", "a.md"), 1, 1),
        "talk": ChunkLocation(RootedPath("r", "b.md"), 1, 1),
    }
    share = {"a.md": 0.5, "b.md": 0.25}
    hits = fuse_scores(
        near(file=1.0, talk=1.0, low=0.0), (), spots, lambda spot: share[spot.origin.path]
    )
    assert {hit.id: hit.score for hit in hits} == {"file": 0.5, "talk": 0.25}


def test_what_holds_a_name_letter_by_letter_goes_before_what_only_resembles_it() -> None:
    hits = fused(
        near(like=0.9, has=0.5, none=0.1), words(like=2.0, has=1.8), exact=frozenset({"has", "far"})
    )
    assert [hit.id for hit in hits] == ["has", "like", "far", "none"]
    assert [hit.contains_identifier for hit in hits] == [True, False, True, False]
    assert hits[2].score == EXACT_MATCH_WEIGHT


def test_of_a_query_of_many_words_a_name_counts_for_less() -> None:
    found = near(like=0.9, has=0.5, none=0.1), words(like=2.0, has=1.8)
    for naming, first in ((1.0, "has"), (0.1, "like")):
        hits = fuse_scores(
            *found, spots_of(*found), lambda _: 0.5, Boosts(frozenset({"has"}), naming)
        )
        assert hits[0].id == first


def test_what_stands_below_a_heading_that_the_query_has_goes_before_what_only_has_its_words() -> (
    None
):
    found = (), words(best=2.0, below=1.8, beside=1.8)
    hits = fuse_scores(
        *found, spots_of(*found), lambda _: 0.5, Boosts(heading_match_by_id={"below": 1.0})
    )
    assert [(hit.id, hit.matches_heading) for hit in hits] == [
        ("below", True),
        ("best", False),
        ("beside", False),
    ]
    doubtful = fuse_scores(
        *found, spots_of(*found), lambda _: 0.5, Boosts(heading_match_by_id={"below": 0.5})
    )
    scores = [next(hit.score for hit in each if hit.matches_heading) for each in (hits, doubtful)]
    assert scores[0] - scores[1] == pytest.approx(HEADING_MATCH_WEIGHT / 2)


_lifts = st.builds(
    Boosts, st.frozensets(_ids), st.floats(0, 1), st.dictionaries(_ids, st.floats(0.01, 1))
)


@given(_near, _words, _share, _lifts)
def test_every_score_is_between_0_and_1_whatever_is_lifted(
    one: list[ScoredRow], other: list[ScoredRow], share: float, lifts: Boosts
) -> None:
    spots = spots_of(one, other, [ScoredRow(each, 0.0) for each in lifts.exact_match_ids])
    hits = fuse_scores(one, other, spots, lambda _: share, lifts)
    assert all(0.0 <= hit.score <= 1.0 for hit in hits)
    assert {hit.id for hit in hits} == spots.keys()


def test_ranks_count_from_1_in_each_list() -> None:
    hits = {
        hit.id: (hit.cosine_rank, hit.bm25_rank) for hit in fused(near(a=0.9, b=0.1), words(b=7.0))
    }
    assert hits == {"a": (1, None), "b": (2, 1)}


def test_what_has_no_place_any_more_is_left_out() -> None:
    assert fuse_scores(near(a=0.9), words(a=1.0), {}, lambda _: 0.5) == []


# Groups and passages


def hits_of(paths: Sequence[str]) -> list[Hit]:
    spots = {f"{n:03}": ChunkLocation(RootedPath("r", path), 1, 1) for n, path in enumerate(paths)}
    return fuse_scores(
        [ScoredRow(chunk, 1.0 - n / 1000) for n, chunk in enumerate(spots)],
        (),
        spots,
        lambda _: 1.0,
    )


@given(st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=20))
def test_grouping_drops_none_and_keeps_the_order_in_each_group(paths: list[str]) -> None:
    hits = hits_of(paths)
    groups = group_hits_by_file(hits)
    assert sorted(hit.id for group in groups for hit in group) == sorted(hit.id for hit in hits)
    assert all(
        [hit.location.origin for hit in group] == [group[0].location.origin] * len(group)
        for group in groups
    )
    assert all(
        [hit.score for hit in group] == sorted((hit.score for hit in group), reverse=True)
        for group in groups
    )
    assert [group[0].location.origin.path for group in groups] == list(dict.fromkeys(paths))


def test_files_of_the_same_path_in_two_roots_are_two_groups() -> None:
    one, other = (
        Hit(
            id=root,
            location=ChunkLocation(RootedPath(root, "a.md"), 1, 1),
            score=1.0,
            cosine=1.0,
            bm25=None,
            cosine_rank=1,
            bm25_rank=None,
        )
        for root in ("one", "other")
    )
    assert len(group_hits_by_file([one, other])) == 2


# The whole search


@dataclass
class Shelf:
    """A few texts in fake stores, one chunk per file."""

    store: FakeStore = field(default_factory=FakeStore)
    catalogue: FakeCatalogue = field(default_factory=FakeCatalogue)
    embedder: HashEmbedder = field(default_factory=HashEmbedder)

    def put(
        self, chunk_id: str, *texts: str, line: int = 1, heading: str = "", key: str = ""
    ) -> None:
        """Store a text as a file; several texts become consecutive chunks of one section, ten lines apart."""
        ids = [chunk_id, *(f"{chunk_id} {number}" for number in range(2, len(texts) + 1))]
        rows = [
            row(each, f"{chunk_id}.md", text, heading)
            for each, text in zip(ids, texts, strict=True)
        ]
        self.store.upsert(
            rows,
            {
                made.vector_key: vector
                for made in rows
                for vector in HashEmbedder().embed([made.text])
            },
        )
        chunks = [
            ChunkRecord(
                chunk_id=made.id,
                vector_key=key or made.vector_key,
                row_hash="",
                start_line=line + 10 * n,
                end_line=line + 10 * n,
            )
            for n, made in enumerate(rows)
        ]
        known = FileRecord(
            fingerprint=NO_FINGERPRINT,
            read_ns=0,
            content_digest="digest",
            recipe_digest="recipe",
            is_confirmed=True,
            chunks=tuple(chunks),
        )
        self.catalogue.confirm_updates(
            [
                FileUpdate(
                    origin=RootedPath("r", rows[0].path),
                    new_record=known,
                    diff=ChunkDiff(added=(), changed=(), removed=(), shifted=0, kept=0),
                    texts_to_embed=(),
                    reason="new file",
                )
            ]
        )

    def ask(self, question: SearchRequest) -> SearchResults:
        """Search."""
        return search(question, Backends(self.store, self.embedder), self.catalogue)

    def hits(self, text: str, mode: str = "hybrid") -> list[Hit]:
        """Return the best hits of each passage, best first."""
        answer = self.ask(SearchRequest(query=text, mode=mode, limit=1000))
        return [passage.hit for group in answer.groups for passage in group]

    def find(self, text: str, mode: str = "hybrid") -> list[str]:
        """Return the ids that a search finds, best first."""
        return [hit.id for hit in self.hits(text, mode) if hit.score > 0]


@pytest.fixture
def shelf() -> Shelf:
    """Give three texts."""
    made = Shelf()
    made.put("cats", "the cat sleeps on the sofa", line=7)
    made.put("banks", "the bank raised its interest rates")
    made.put("soup", "simmer the onions in the soup")
    return made


@pytest.mark.parametrize("mode", SEARCH_MODES)
def test_each_mode_finds_the_text_that_shares_the_words(shelf: Shelf, mode: str) -> None:
    assert shelf.find("onions soup", mode)[0] == "soup"


def test_the_mode_decides_what_is_asked(shelf: Shelf) -> None:
    shelf.find("onions", "text")
    assert shelf.embedder.embedded == 0
    shelf.find("onions", "vector")
    assert shelf.embedder.embedded == 1
    assert all(hit.bm25 is None for hit in shelf.hits("onions", "vector"))
    assert [(hit.id, hit.cosine, hit.score) for hit in shelf.hits("onions", "text")] == [
        ("soup", None, 1.0)
    ]


@pytest.mark.parametrize("mode", SEARCH_MODES)
def test_a_blank_question_finds_nothing_and_embeds_nothing(shelf: Shelf, mode: str) -> None:
    assert shelf.find(" \n", mode) == []
    assert shelf.embedder.embedded == 0


def test_a_hit_has_the_lines_that_its_chunk_has_now(shelf: Shelf) -> None:
    (hit, *_) = shelf.hits("sofa", "text")
    assert (hit.location.start_line, hit.location.end_line) == (7, 7)


def test_a_row_that_left_its_file_is_not_found(shelf: Shelf) -> None:
    shelf.catalogue.confirm_updates(
        [
            FileUpdate(
                origin=RootedPath("r", "soup.md"),
                new_record=None,
                diff=ChunkDiff(added=(), changed=(), removed=(), shifted=0, kept=0),
                texts_to_embed=(),
                reason="the file is gone",
            )
        ]
    )
    assert shelf.find("onions soup", "text") == []


def test_filters_hold_for_both_ways(shelf: Shelf) -> None:
    for mode in SEARCH_MODES:
        answer = shelf.ask(
            SearchRequest(query="the", mode=mode, filters=SearchFilters(path_glob="cats.md"))
        )
        assert [passage.chunk_ids for group in answer.groups for passage in group] == [("cats",)]


def test_more_candidates_are_asked_for_if_more_results_are() -> None:
    shelf = Shelf()
    for n in range(MIN_CANDIDATES + 10):
        shelf.put(f"{n:03}", f"word number{n}")
    many = SearchRequest(query="word", mode="text", limit=MIN_CANDIDATES + 5)
    assert len(shelf.ask(many).groups) == MIN_CANDIDATES + 5
    assert shelf.ask(many).note == ""


def test_a_search_that_considered_too_few_chunks_for_its_limit_says_so() -> None:
    shelf = Shelf()
    shelf.put("long", *(f"word number{n}" for n in range(MIN_CANDIDATES + 1)))
    shelf.put("short", "word and many others that make it rank lower than all of the long file")
    answer = shelf.ask(SearchRequest(query="word", mode="text", limit=2))
    assert len(answer.groups) == 1
    assert f"best {MIN_CANDIDATES} chunks" in answer.note
    assert not shelf.ask(SearchRequest(query="word", mode="text", limit=1)).note


def test_a_search_looks_further_where_most_of_what_it_found_are_copies() -> None:
    shelf = Shelf()
    for n in range(MIN_CANDIDATES + 20):
        shelf.put(f"copy{n:03}", "word word word", key="same")
    shelf.put("other", "word and many others that make it rank lower than every copy")
    answer = shelf.ask(SearchRequest(query="word", mode="text"))
    assert [group[0].hit.id for group in answer.groups] == ["copy000", "other"]
    assert len(answer.groups[0][0].hit.copies) == MIN_CANDIDATES + 19
    near = (RootedPath("r", "copy007.md"),)
    answer = shelf.ask(SearchRequest(query="word", mode="text", near=near))
    assert answer.groups[0][0].hit.id == "copy007"


def test_the_limit_counts_groups_and_in_a_flat_list_chunks(shelf: Shelf) -> None:
    shelf.put("herbs", "basil in the soup", "thyme in the soup")
    groups = shelf.ask(SearchRequest(query="soup", mode="text", limit=1)).groups
    assert [passage.chunk_ids for passage in groups[0]] == [("herbs", "herbs 2")]
    assert groups[0][0].text == "basil in the soup" + "\n" * 10 + "thyme in the soup"
    flat = shelf.ask(
        SearchRequest(query="soup", mode="text", limit=3, layout=Layout(is_flat=True))
    ).groups
    assert sorted(passage.chunk_ids for (passage,) in flat) == [("herbs",), ("herbs 2",), ("soup",)]


def test_a_passage_takes_in_neighbours_of_its_section_up_to_a_size(shelf: Shelf) -> None:
    shelf.put(
        "long",
        "first part",
        "second part",
        "third parts about cranberries",
        "fourth part",
        "fifth part",
    )
    taken = {
        most: shelf.ask(
            SearchRequest(query="cranberries", mode="text", layout=Layout(expand_chars=most))
        ).groups[0][0]
        for most in (0, 50, 71, 10_000)
    }
    assert all(len(taken[most].text) <= most for most in (50, 71))
    assert {most: passage.chunk_ids for most, passage in taken.items()} == {
        0: ("long 3",),
        50: ("long 3", "long 4"),
        71: ("long 2", "long 3", "long 4"),
        10_000: ("long", "long 2", "long 3", "long 4", "long 5"),
    }
    assert (taken[71].start_line, taken[71].end_line) == (11, 31)
    assert taken[10_000].text.startswith("first part\n\n")


# Filters in a query


@pytest.mark.parametrize("mode", SEARCH_MODES)
def test_a_quoted_phrase_must_be_there(shelf: Shelf, mode: str) -> None:
    shelf.put("other", "its rates of interest")
    assert shelf.find('"interest rates"', mode) == ["banks"]
    assert "other" in shelf.find("interest rates", mode)


@pytest.mark.parametrize("mode", SEARCH_MODES)
def test_a_word_after_a_minus_must_not_be_there(shelf: Shelf, mode: str) -> None:
    assert "soup" not in shelf.find("the -onions", mode)
    assert shelf.find("the cat", mode)


def test_the_beginning_of_a_word_finds_the_whole_one(shelf: Shelf) -> None:
    assert shelf.find("oni*", "text") == ["soup"]


def test_a_section_is_found_by_its_heading_before_a_text_that_repeats_its_words(
    shelf: Shelf,
) -> None:
    shelf.put("a", "The retry budget is told of elsewhere.")
    shelf.put(
        "z", "How often it is tried again, and when it stops.", heading="Guide > Retry budget"
    )
    (first, second, *_) = shelf.hits("retry budget", "text")
    assert [(first.id, first.matches_heading), (second.id, second.matches_heading)] == [
        ("z", True),
        ("a", False),
    ]


def test_the_title_of_a_session_lifts_none_of_its_exchanges(shelf: Shelf) -> None:
    shelf.put("/claude-code/s/1", "Of retry budgets.", heading="Retry budgets")
    assert not any(hit.matches_heading for hit in shelf.hits("retry budget"))


def test_a_query_that_only_excludes_is_refused(shelf: Shelf) -> None:
    with pytest.raises(UsageError, match="what to exclude"):
        shelf.ask(SearchRequest(query="-onions"))


def test_a_name_is_found_whole_and_by_case(shelf: Shelf) -> None:
    for chunk_id, text in {
        "a": "parse the config",
        "b": "def parse_config",
        "c": "PARSE_CONFIG",
        "d": "x_parse_configs",
    }.items():
        shelf.put(chunk_id, text)
    assert shelf.find("parse_config", "text")[0] in {"b", "d"}
    assert [hit.id for hit in shelf.hits("parse_config") if hit.contains_identifier] in (
        ["b", "d"],
        ["d", "b"],
    )
    assert [hit.id for hit in shelf.hits("PARSE_CONFIG") if hit.contains_identifier] == ["c"]


# Quoted terms, and queries that nothing is about


@pytest.mark.parametrize("mode", SEARCH_MODES)
def test_a_term_that_a_question_quotes_lifts_and_excludes_nothing(shelf: Shelf, mode: str) -> None:
    shelf.put("other", "how to set the interest of a bank, its rate")
    plain = shelf.find("how do I set the interest rates", mode)
    quoted = shelf.find('how do I set the "interest rates"', mode)
    assert set(quoted) >= set(plain)
    assert shelf.ask(SearchRequest(query='how do I set the "interest rates"', mode=mode)).note == ""


def test_a_hit_with_a_preferred_phrase_goes_before_an_equal_one() -> None:
    hits = fuse_scores(
        near(a=0.5, b=0.5),
        (),
        spots_of(near(a=0.5, b=0.5)),
        lambda _: 1.0,
        Boosts(phrase_match_ids={"b"}),
    )
    assert [hit.id for hit in hits] == ["b", "a"]
    assert all(0 <= hit.score <= 1 for hit in hits)


def test_a_phrase_beside_terms_that_too_little_has_is_relaxed_and_the_note_says_so(
    shelf: Shelf,
) -> None:
    answer = shelf.ask(SearchRequest(query='soup "interest rates"', mode="text"))
    assert {group[0].hit.id for group in answer.groups} == {"banks", "soup"}
    assert answer.note == 'only 1 chunk contains "interest rates": hits without it are shown too'


def test_a_query_in_quotes_as_a_whole_is_never_relaxed(shelf: Shelf) -> None:
    answer = shelf.ask(SearchRequest(query='"interest of rates"'))
    assert (answer.groups, answer.note, answer.is_about) == ((), "", False)


SCALE = CosineScale(0.0, 1.0)


def ask_with_a_scale(
    shelf: Shelf, query: str, mode: str = "hybrid", limit: int = 10
) -> SearchResults:
    backends = Backends(shelf.store, shelf.embedder, cosine_scale=lambda: SCALE)
    return search(SearchRequest(query=query, mode=mode, limit=limit), backends, shelf.catalogue)


@pytest.mark.parametrize("query", ["xqzzyvra", "how long do I boil eggs"])
@pytest.mark.parametrize("scale", [None, SCALE])
def test_of_what_nothing_is_about_only_the_nearest_three_are_shown(
    shelf: Shelf, query: str, scale: CosineScale | None
) -> None:
    for number in range(9):
        shelf.put(f"filler {number}", f"something else entirely, number {number}")
    backends = Backends(shelf.store, shelf.embedder, cosine_scale=lambda: scale)
    answer = search(SearchRequest(query=query), backends, shelf.catalogue)
    assert not answer.is_about
    assert len(answer.groups) == 3
    for group in answer.groups:
        assert answer.judgement_by_id[group[0].hit.id].confidence is Confidence.WEAK


@pytest.mark.parametrize("mode", SEARCH_MODES)
@pytest.mark.parametrize("limit", [1, 10])
def test_what_has_the_words_of_the_query_is_about_it_whatever_the_limit(
    shelf: Shelf, mode: str, limit: int
) -> None:
    answer = ask_with_a_scale(shelf, "simmer the onions", mode, limit)
    assert answer.is_about
    assert answer.judgement_by_id["soup"].confidence is not Confidence.WEAK


def test_by_words_alone_no_hit_is_hidden(shelf: Shelf) -> None:
    for number in range(9):
        shelf.put(f"filler {number}", f"the onions, number {number}")
    answer = ask_with_a_scale(shelf, "aaa bbb ccc ddd onions", "text")
    assert answer.is_about
    assert len(answer.groups) == 10


def test_by_meaning_alone_nothing_is_denied_if_cosines_cannot_be_judged(shelf: Shelf) -> None:
    answer = shelf.ask(SearchRequest(query="xqzzyvra", mode="vector"))
    assert answer.is_about
    assert len(answer.groups) == 3


def test_without_a_model_words_alone_judge_and_nothing_is_denied(shelf: Shelf) -> None:
    shelf.embedder = Unable()
    answer = ask_with_a_scale(shelf, "aaa bbb ccc ddd onions")
    assert answer.is_about
    assert answer.judgement_by_id["soup"].meaning is None


def test_strong_matches_alone_are_those_that_any_search_finds(shelf: Shelf) -> None:
    shelf.put("near", "the onions simmer in the soup")
    backends = Backends(shelf.store, shelf.embedder, cosine_scale=lambda: CosineScale(0.0, 0.5))
    request = SearchRequest(query="simmer the onions")
    answers = [
        search(replace(request, strong_only=only), backends, shelf.catalogue)
        for only in (False, True)
    ]
    found = [
        {
            passage.hit.id
            for group in answer.groups
            for passage in group
            if answer.judgement_by_id[passage.hit.id].confidence is Confidence.STRONG
        }
        for answer in answers
    ]
    assert found[0] == found[1] == {each.hit.id for group in answers[1].groups for each in group}
    assert found[1]


def test_where_no_meaning_is_near_enough_for_a_strong_match_no_text_is_read(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(FakeStore, "get_display_rows")
    backends = Backends(shelf.store, shelf.embedder, cosine_scale=lambda: CosineScale(0.9, 1.0))
    request = SearchRequest(query="how long do I boil eggs", strong_only=True)
    answer = search(request, backends, shelf.catalogue)
    assert (answer.groups, answer.is_about) == ((), False)


# Without a model


class Unable(HashEmbedder):
    """An embedder that is unavailable."""

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Vector]:  # noqa: ARG002 - it refuses all
        """Refuse."""
        raise EmbedderError("the model is being made ready for this machine", "wait")


def test_a_hybrid_search_goes_by_words_while_there_is_no_model_and_says_so(shelf: Shelf) -> None:
    by_words = shelf.find("onions", "text")
    shelf.embedder = Unable()
    assert shelf.find("onions") == by_words
    answer = shelf.ask(SearchRequest(query="onions"))
    assert answer.note == "found by words alone: the model is being made ready for this machine"
    assert all(passage.hit.cosine is None for group in answer.groups for passage in group)


def test_a_search_that_has_a_model_has_no_note(shelf: Shelf) -> None:
    assert shelf.ask(SearchRequest(query="onions")).note == ""


def test_a_search_by_meaning_alone_is_refused_while_there_is_no_model(shelf: Shelf) -> None:
    shelf.embedder = Unable()
    with pytest.raises(EmbedderError):
        shelf.find("onions", "vector")


def test_of_a_query_full_of_names_the_first_few_are_looked_for(shelf: Shelf) -> None:
    names = [f"name_{n}" for n in range(9)]
    for name in names:
        shelf.put(name, f"the {name} of it")
    assert {hit.id for hit in shelf.hits(" ".join(names)) if hit.contains_identifier} == {
        "name_0",
        "name_1",
        "name_2",
    }


# A reranker


class ByLength:
    """Scores a text by its length."""

    def __init__(self, error: EmbedderError | None = None) -> None:
        """Fail with this error, if there is one."""
        self.error = error
        self.asked: list[str] = []

    def score_texts(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the lengths."""
        self.asked.append(query)
        if self.error:
            raise self.error
        return [float(len(text)) for text in texts]

    def close(self) -> None:
        """Release nothing."""


def reranked_ids(shelf: Shelf, question: SearchRequest, reranker: ByLength) -> list[str]:
    answer = search(question, Backends(shelf.store, shelf.embedder), shelf.catalogue, reranker)
    return [passage.hit.id for group in answer.groups for passage in group]


class Counting(HashEmbedder):
    """Counts the queries that it embeds."""

    asked = 0

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Vector]:
        """Embed."""
        self.asked += len(texts) if is_query else 0
        return super().embed(texts, is_query=is_query)


def test_the_vector_of_a_former_text_is_no_evidence(shelf: Shelf) -> None:
    def meanings(*, all_have_vectors: bool) -> set[bool]:
        backends = Backends(
            store=shelf.store,
            embedder=shelf.embedder,
            cosine_scale=lambda: CosineScale(0.0, 0.5),
            all_have_vectors=all_have_vectors,
        )
        found = search(SearchRequest(query="cat or bank"), backends, shelf.catalogue)
        return {judgement.meaning is None for judgement in found.judgement_by_id.values()}

    shelf.store.due_ids = lambda: list(shelf.store.table)  # type: ignore[method-assign]
    assert meanings(all_have_vectors=True) == {False}
    assert meanings(all_have_vectors=False) == {True}


def test_a_query_is_embedded_once_although_its_phrases_are_relaxed(shelf: Shelf) -> None:
    shelf.embedder = Counting()
    assert "nothing contains" in shelf.ask(SearchRequest(query='cat "no such words"')).note
    assert shelf.embedder.asked == 1


def test_a_reranker_orders_what_was_found_and_loses_nothing(shelf: Shelf) -> None:
    found = reranked_ids(shelf, SearchRequest(query="cat or bank"), ByLength())
    assert found == ["banks", "soup", "cats"]
    assert sorted(found) == sorted(
        shelf.find("cat or bank") + ["soup"] * ("soup" not in shelf.find("cat or bank"))
    )


def test_scores_stay_in_order_when_it_has_spoken(shelf: Shelf) -> None:
    hits = search(
        SearchRequest(query="cat or bank"),
        Backends(shelf.store, shelf.embedder),
        shelf.catalogue,
        ByLength(),
    ).groups
    scores = [passage.hit.score for group in hits for passage in group]
    assert scores == sorted(scores, reverse=True)


def test_only_the_best_are_reordered() -> None:
    shelf = Shelf()
    for n in range(MAX_RERANKED + 5):
        shelf.put(f"{n:03}", "word " * (n + 1))
    before = [hit.id for hit in shelf.hits("word")]
    after = reranked_ids(shelf, SearchRequest(query="word", limit=1000), ByLength())
    assert set(after[:MAX_RERANKED]) == set(before[:MAX_RERANKED])
    assert after[MAX_RERANKED:] == before[MAX_RERANKED:]


def test_a_best_hit_that_is_sure_is_not_reranked() -> None:
    shelf = Shelf()
    shelf.put("sure", "Escalation of pager duty.", heading="Pager duty escalation")
    shelf.put("other", "Of duty and other matters, at some length and without a pager.")
    reranker = ByLength()
    question = SearchRequest(query="pager duty escalation")
    backends = Backends(shelf.store, shelf.embedder)
    answer = search(question, backends, shelf.catalogue, reranker)
    assert reranker.asked == []
    assert answer.reranked
    assert (answer.reranked.count, answer.reranked.reason) == (0, SURE)
    assert answer.groups[0][0].hit.id == "sure"
    assert answer.note == ""


def test_a_search_by_words_is_left_as_it_is(shelf: Shelf) -> None:
    reranker = ByLength()
    reranked_ids(shelf, SearchRequest(query="the cat", mode="text"), reranker)
    assert reranker.asked == []


def test_a_reranker_that_fails_costs_its_order_and_says_so(shelf: Shelf) -> None:
    failing = ByLength(EmbedderError("it is away", "wait"))
    answer = search(
        SearchRequest(query="cat or bank"),
        Backends(shelf.store, shelf.embedder),
        shelf.catalogue,
        failing,
    )
    assert answer.note == "not reranked: it is away"
    assert [group[0].hit.id for group in answer.groups] == [
        group[0].hit.id for group in shelf.ask(SearchRequest(query="cat or bank")).groups
    ]
