"""How surely a hit is about the query: laws, and some cases by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.core.query_syntax import parse_query
from anchord.core.types import ChunkLocation, Hit, RootedPath, Vector
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.errors import EmbedderError
from anchord.search.confidence import (
    Confidence,
    CosineScale,
    Judgement,
    is_about,
    judge_hits,
    query_words,
    words_in,
)
from anchord.search.cosine_scale import scale_of

SCALE = CosineScale(0.0, 0.5)
HIT = Hit(
    id="a",
    location=ChunkLocation(RootedPath("r", "a.md"), 1, 1),
    score=1.0,
    cosine=0.3,
    bm25=2.0,
    cosine_rank=1,
    bm25_rank=1,
)
_share = st.floats(0, 1)
_meaning = st.none() | _share
_names = list(Confidence)


def judged(
    query: str, text: str, *, hit: Hit = HIT, scale: CosineScale | None = SCALE
) -> Judgement:
    return judge_hits(parse_query(query), [(hit, text)], scale, None)[hit.id]


# Laws


@given(st.floats(-1, 1), st.floats(-1, 0.5), st.floats(0.01, 1))
def test_nearness_is_within_0_and_1(cosine: float, unrelated: float, above: float) -> None:
    assert 0 <= CosineScale(unrelated, unrelated + above).nearness(cosine) <= 1


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_a_higher_cosine_is_never_less_near(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert SCALE.nearness(low) <= SCALE.nearness(high)


@given(_meaning, _share, _share)
def test_the_score_is_within_0_and_1(meaning: float | None, words: float, known: float) -> None:
    assert 0 <= Judgement(meaning, words, known).score <= 1 + 1e-9


@given(_share, _share, _share, _share)
def test_no_part_lowers_the_score(meaning: float, words: float, known: float, more: float) -> None:
    judgement = Judgement(meaning, words, known)
    for better in (
        replace(judgement, meaning=max(meaning, more)),
        replace(judgement, words=max(words, more)),
        replace(judgement, all_words=max(known, more)),
    ):
        assert better.score >= judgement.score
        assert _names.index(better.confidence) <= _names.index(judgement.confidence)


@given(st.text(max_size=60), st.text(max_size=200))
def test_shares_are_within_0_and_1_for_any_text(query: str, text: str) -> None:
    judgement = judged(query, text)
    assert 0 <= judgement.words <= judgement.all_words <= 1


_few_letters = st.text("abS_ ", max_size=60)


@given(_few_letters, _few_letters, _few_letters)
def test_more_text_never_has_fewer_words(text_of_query: str, text: str, more: str) -> None:
    query = parse_query(text_of_query)
    words = query_words(query)
    assert words_in(text, words, query) <= words_in(f"{text} {more}", words, query)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("Bücher", "Man kann ein Buch lesen, und das ist nicht schwer"),
        ("книгу", "книги и книга"),
        ("Datenbanken einrichten", "Wie man eine Datenbank einrichtet und was das ist"),
        ("token budget", "def passages(token_budget)"),
        ("token budget", "tokenBudget = 3"),
        ("authen*", "authentication of users"),
        ("E4711X", "error E4711X: a bad thing"),
    ],
)
def test_what_words_found_in_another_form_is_never_denied(query: str, text: str) -> None:
    hit = replace(HIT, cosine=0.02)
    parsed = parse_query(query)
    judgements = judge_hits(parsed, [(hit, text)], SCALE, None)
    assert judgements["a"].words == 1
    assert is_about([hit], judgements)


def test_what_is_very_near_is_likely_in_whatever_words() -> None:
    hit = replace(HIT, cosine=0.6, bm25=None, bm25_rank=None)
    judgement = judged("wie stelle ich das wieder her", "Restoring from a backup", hit=hit)
    assert (judgement.words, judgement.confidence) == (0, Confidence.LIKELY)


def test_where_only_meaning_was_asked_for_it_counts_alone() -> None:
    hit = replace(HIT, cosine=0.4, bm25=None, bm25_rank=None)
    query = parse_query("wie stelle ich das wieder her")
    judgements = judge_hits(query, [(hit, "Restoring")], SCALE, None, by_words=False)
    assert judgements["a"].score == pytest.approx(0.8)


def test_a_query_without_words_is_judged_by_meaning() -> None:
    assert judged("=>", "a => b", hit=replace(HIT, cosine=0.4)).score == pytest.approx(0.8)


# Cases


def test_with_all_words_and_a_cosine_as_of_an_answer_a_hit_is_strong() -> None:
    hit = replace(HIT, cosine=0.5)
    assert judged("how do I restore a backup", "Restoring backups", hit=hit) == Judgement(1, 1, 1)
    assert judged("restore a backup", "Restoring backups", hit=hit).confidence is Confidence.STRONG


def test_without_a_word_of_the_query_and_far_in_meaning_a_hit_is_weak() -> None:
    hit = replace(HIT, cosine=0.1, bm25=None)
    judgement = judged("how long do I boil eggs", "Link to a heading of a note", hit=hit)
    assert (judgement.words, judgement.confidence) == (0, Confidence.WEAK)


def test_small_words_do_not_count_unless_there_are_no_others() -> None:
    assert query_words(parse_query("how do I restore my notes")) == {"restor", "not"}
    assert query_words(parse_query("why don't Obsidian's themes work")) == {
        "obsidian",
        "them",
        "work",
    }
    assert query_words(parse_query("where can I"))


def test_a_word_of_a_script_without_spaces_counts_by_pairs_of_characters() -> None:
    assert query_words(parse_query("備份還原")) == {"備份", "份還", "還原"}
    assert judged("備份還原", "如何還原您的備份").words == pytest.approx(2 / 3)


def test_an_identifier_within_a_longer_word_counts_for_its_share_of_the_query() -> None:
    text = "def x_parse_config(): ..."
    assert judged("parse_config", text).words == 0
    assert judged("parse_config", text, hit=replace(HIT, contains_identifier=True)).words == 1


def test_words_of_other_hits_count_less_than_those_of_the_hit() -> None:
    other = replace(HIT, id="b")
    texts = [(HIT, "alpha"), (other, "alpha beta")]
    judgements = judge_hits(parse_query("alpha beta"), texts, SCALE, None)
    assert [judgements[each].words for each in "ab"] == [0.5, 1]
    assert [judgements[each].all_words for each in "ab"] == [1, 1]


def test_what_only_words_found_has_the_bound_as_its_cosine() -> None:
    hit = replace(HIT, cosine=None)
    (bounded,) = judge_hits(parse_query("alpha"), [(hit, "alpha")], SCALE, 0.1).values()
    assert bounded.meaning == pytest.approx(0.2)
    assert judged("alpha", "alpha", hit=hit).meaning is None


@pytest.mark.parametrize("scale", [None, SCALE])
def test_a_search_by_words_alone_is_never_denied(scale: CosineScale | None) -> None:
    hit = replace(HIT, cosine=None)
    judgements = judge_hits(parse_query("one two three four"), [(hit, "one of many")], scale, None)
    assert judgements["a"].confidence is Confidence.WEAK
    assert is_about([hit], judgements)


def test_nothing_found_is_about_nothing() -> None:
    assert not is_about([], {})


# The scale of a model


class Model(HashEmbedder):
    """Embeds a question and the answer after it alike; everything else is at right angles."""

    model_id = "test model of scales"

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Vector]:  # noqa: ARG002
        """Return pairs of equal vectors."""
        self.embedded += len(texts)
        return HashEmbedder().embed([f"word{number // 2}" for number in range(len(texts))])


def test_the_scale_of_a_model_is_measured_once() -> None:
    model = Model()
    scale = scale_of(model)
    assert scale is not None
    assert scale.related == pytest.approx(1, abs=0.01)
    assert scale.unrelated == pytest.approx(0, abs=0.1)
    assert scale_of(model) is scale
    assert model.embedded == 24


def test_a_model_that_keeps_nothing_apart_has_no_scale() -> None:
    class Same(Model):
        model_id = "test model of one vector"

        def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Vector]:  # noqa: ARG002
            return HashEmbedder().embed(["same"] * len(texts))

    assert scale_of(Same()) is None


def test_a_model_that_is_not_available_is_asked_again() -> None:
    class Late(Model):
        model_id = "test model that comes late"
        is_there = False

        def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Vector]:
            if not self.is_there:
                raise EmbedderError("not yet", "wait")
            return super().embed(texts, is_query=is_query)

    model = Late()
    assert scale_of(model) is None
    model.is_there = True
    assert scale_of(model)


def test_the_hash_of_words_has_no_scale_and_embeds_nothing_for_it() -> None:
    model = HashEmbedder()
    assert scale_of(model) is None
    assert model.embedded == 0
