"""Trials of chunking, embedding and search variants, with an embedder without a model and one that knows the answer."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import cast

import pytest
from documents import calm_documents, documents
from hypothesis import given, settings
from hypothesis import strategies as st

from anchord.config.schema import parse_config
from anchord.config.strategies import STRATEGIES
from anchord.core.types import Vector
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.index.embedders import ProfileInputs
from anchord.index.profile import build_configured_profile
from anchord.search.evaluation.metrics import RECALL_DEPTHS, Scores
from anchord.search.evaluation.questions import (
    GIVEN,
    HEADING,
    LINK,
    EvaluationQuestion,
    Section,
    generate_questions,
    sections_of,
)
from anchord.search.evaluation.trial import (
    EMBED_FORMS,
    Variant,
    VariantBenchmark,
    VariantChunker,
    VariantResult,
    embed_text_of,
    mean_embeds_per_edit,
)
from anchord.sources.documents.normalize import normalize_text

CONFIG = parse_config('[embedding]\nprovider = "hash"\n', "here")
MEANS = build_configured_profile(ProfileInputs(config=CONFIG, roots=(), models_folder=Path()))
CUTTER = VariantChunker(CONFIG, MEANS.model_files.window, MEANS.token_counter)
WORDS = (
    "river", "stone", "light", "paper", "garden", "window", "letter", "morning", "silver", "bridge", "winter", "summer",
    "kitchen", "music", "travel",
)  # fmt: skip
DRINKS = {
    "tea.md": "# All about tea\n\n## Make green tea\n\nBoil water, pour it over leaves.\n\n## Drink it slowly\n\nFrom a cup.\n",
    "coffee.md": "# All about coffee\n\n## Roast your beans\n\nWait.\n\nFor leaves see [green](tea.md#make-green-tea).\n",
}  # fmt: skip


def silent(done: int, total: int, what: str) -> None:
    """Ignore progress."""


def prose(seed: int, words: int) -> str:
    """Return sentences, all on one line."""
    random = Random(seed)  # noqa: S311 - no secret
    sentences = (" ".join(random.choices(WORDS, k=12)).capitalize() for _ in range(words // 12))
    return ". ".join(sentences) + "."


class Oracle(HashEmbedder):
    """Embeds the given texts near every query, and all others far from it."""

    def __init__(self, known: Collection[str]) -> None:
        """Store the texts."""
        super().__init__()
        self.known = known

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Vector]:
        """Return one of two vectors."""
        near, far = (
            array("f", [float(n == at) for n in range(self.dimension)]).tobytes() for at in (0, 1)
        )
        return [near if is_query or text in self.known else far for text in texts]


class Shuffled(HashEmbedder):
    """Embeds every text as a random vector from a seed."""

    def __init__(self, seed: int) -> None:
        """Begin with the seed."""
        super().__init__()
        self.random = Random(seed)  # noqa: S311 - no secret

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Vector]:  # noqa: ARG002 - alike
        """Return any vectors."""
        return [
            array("f", [self.random.uniform(-1, 1) for _ in range(self.dimension)]).tobytes()
            for _ in texts
        ]


def bench(
    texts: Mapping[str, str],
    questions: Sequence[EvaluationQuestion],
    embedder: HashEmbedder | None = None,
) -> VariantBenchmark:
    return VariantBenchmark(
        documents=texts,
        questions=questions,
        chunker=CUTTER,
        embedder=embedder or HashEmbedder(),
        progress=silent,
    )


def run(
    texts: Mapping[str, str],
    *variants: Variant,
    questions: Sequence[EvaluationQuestion] | None = None,
) -> list[VariantResult]:
    return list(
        bench(texts, generate_questions(texts) if questions is None else questions).run(variants)
    )


def numbers(scores: Scores) -> list[float]:
    return [*scores.recall, scores.mrr, scores.ndcg, scores.cov4k]


def given_for(path: str, text: str, title: str, words: str = "where is it") -> EvaluationQuestion:
    section = next(section for section in sections_of(path, text) if section.title == title)
    return EvaluationQuestion(words, GIVEN, section)


# Variants


@pytest.mark.parametrize(
    ("variant", "name"),
    [
        (Variant(), "anchored, heading, hybrid"),
        (Variant(strategy="headers", form="path"), "headers, path, hybrid"),
        (Variant(mode="text"), "anchored, heading, text"),
        (Variant(mode="vector", share=0.3), "anchored, heading, vector"),
        (Variant(share=0.3), "anchored, heading, hybrid 0.3"),
        (Variant(share=0.0), "anchored, heading, hybrid 0"),
        (Variant(model="mine"), "anchored, heading, hybrid, mine"),
    ],
)
def test_a_variant_is_named_by_what_it_does(variant: Variant, name: str) -> None:
    assert variant.name == name


# Cutting


@given(st.sampled_from(sorted(STRATEGIES)), documents.map(normalize_text))
def test_the_forms_of_a_strategy_differ_in_what_is_embedded_alone(strategy: str, text: str) -> None:
    by_form = [CUTTER.prepare_rows_of(strategy, form, {"a.md": text}) for form in EMBED_FORMS]
    assert (
        len(
            {
                tuple((made.row.text, made.start_line, made.end_line) for made in each)
                for each in by_form
            }
        )
        == 1
    )
    for made in zip(*by_form, strict=True):
        content, _, path = (each.embed_text for each in made)
        row = made[0].row
        assert content == row.text
        assert path == (f"{row.header_path}\n{row.text}" if row.header_path else row.text)


def test_the_heading_of_a_part_is_embedded_with_it_and_the_whole_path_on_request() -> None:
    text = "# Drinks\n\n## Tea\n\n" + "\n\n".join(prose(n, 120) for n in range(8)) + "\n"
    last = {
        form: CUTTER.prepare_rows_of("headers", form, {"a.md": text})[-1].embed_text
        for form in EMBED_FORMS
    }
    assert last["content"] == prose(7, 120)
    assert last["heading"] == f"Tea\n{last['content']}"
    assert last["path"] == f"Drinks > Tea\n{last['content']}"


def test_a_form_is_made_of_the_row_alone() -> None:
    (made,) = CUTTER.prepare_rows_of("anchored", "heading", {"a.md": "Words.\n"})
    reported = replace(
        made, row=replace(made.row, header_path="A > B", text="Words."), embed_text="B\nWords."
    )
    assert [embed_text_of(reported, form) for form in EMBED_FORMS] == [
        "Words.",
        "B\nWords.",
        "A > B\nWords.",
    ]


def test_documents_are_cut_in_order_each_by_itself() -> None:
    apart = [
        made.row.text
        for path, text in DRINKS.items()
        for made in CUTTER.prepare_rows_of("headers", "heading", {path: text})
    ]
    assert [made.row.text for made in CUTTER.prepare_rows_of("headers", "heading", DRINKS)] == apart
    assert CUTTER.prepare_rows_of("headers", "heading", {}) == []


def test_every_chunk_has_a_vector_of_its_own() -> None:
    made = CUTTER.prepare_rows_of(
        "headers", "heading", {"a.md": "# One\n\nsame\n", "b.md": "# One\n\nsame\n"}
    )
    assert len({each.row.vector_key for each in made}) == len(made) == 2


# Trials


def test_each_variant_has_one_outcome_and_each_kind_of_question_its_scores() -> None:
    variants = [
        Variant(strategy="headers"),
        Variant(strategy="headers", mode="text"),
        Variant(strategy="paragraph"),
        Variant(strategy="headers", form="content"),
    ]
    found = run(DRINKS, *variants)
    assert {outcome.variant for outcome in found} == set(variants)
    assert len(found) == len(variants)
    assert all(list(outcome.by_kind) == [LINK, HEADING] for outcome in found)
    assert all(outcome.embeds_an_edit is None for outcome in found)


def test_the_sizes_are_those_of_what_is_embedded() -> None:
    for outcome in run(DRINKS, *(Variant(strategy="headers", form=form) for form in EMBED_FORMS)):
        texts = [
            made.embed_text
            for made in CUTTER.prepare_rows_of("headers", outcome.variant.form, DRINKS)
        ]
        assert (outcome.chunks, outcome.tokens) == (len(texts), sum(CUTTER.count_tokens(texts)))


def test_a_section_is_found_by_its_heading_by_meaning_and_by_words() -> None:
    for outcome in run(
        DRINKS, *(Variant(strategy="headers", mode=mode) for mode in ("hybrid", "vector", "text"))
    ):
        assert outcome.by_kind[HEADING].recall[1] == 1.0
        assert outcome.by_kind[HEADING].cov4k == 1.0
        assert outcome.by_kind[HEADING].mrr > 0.8


def test_the_chunk_that_a_link_stands_in_is_no_result() -> None:
    sentence = "Cups and leaves and water and patience are the art of it, as [told](b.md#make-it)."
    texts = {
        "a.md": f"# Cups\n\n{sentence}\n",
        "b.md": "# Make it\n\nOnly leaves.\n",
        "c.md": "# Else\n\nNothing.\n",
    }
    for outcome in run(
        texts,
        *(
            Variant(strategy=strategy, mode="text")
            for strategy in ("anchored", "headers", "paragraph")
        ),
    ):
        assert outcome.by_kind[LINK] == Scores((1.0,) * len(RECALL_DEPTHS), 1.0, 1.0, 1.0)


def test_the_whole_document_that_a_link_stands_in_is_left_out() -> None:
    sentence = "Cups and leaves and water and patience are the art of it, as [told](b.md#make-it)."
    texts = {
        "a.md": f"# Cups\n\n{sentence}\n\n# Cups and leaves\n\nWater and patience, the art.\n",
        "b.md": "# Make it\n\nLeaves.\n",
    }
    (outcome,) = run(texts, Variant(strategy="headers", mode="text"))
    assert outcome.by_kind[LINK].mrr == 1.0


def test_the_chunk_that_a_heading_stands_in_is_a_result() -> None:
    (outcome,) = run({"a.md": "# A lonely page\n\nWords.\n"}, Variant())
    assert outcome.by_kind == {HEADING: Scores((1.0,) * len(RECALL_DEPTHS), 1.0, 1.0, 1.0)}


def test_the_share_of_meaning_decides_between_words_and_vectors() -> None:
    texts = {"near.md": "# Near\n\nzebra\n", "words.md": "# Words\n\nstones of the river\n"}
    questions = [given_for("words.md", texts["words.md"], "Words", "river stones")]
    variants = [Variant(strategy="headers", share=share) for share in (0.0, 1.0)]
    found = bench(texts, questions, Oracle({"# Near\n\nzebra"})).run(variants)
    assert [outcome.by_kind[GIVEN].mrr for outcome in found] == [1.0, 0.5]


def test_a_text_is_embedded_once_for_all_variants() -> None:
    embedder = HashEmbedder()
    variants = [
        Variant(strategy=strategy, mode="text") for strategy in ("headers", "paragraph", "headers")
    ]
    made = bench({**DRINKS, "copy.md": DRINKS["tea.md"]}, generate_questions(DRINKS), embedder)
    outcomes = list(made.run([*variants, Variant(strategy="headers", form="content", mode="text")]))
    ways = [("headers", "heading"), ("paragraph", "heading"), ("headers", "content")]
    texts = {
        each.embed_text
        for strategy, form in ways
        for each in CUTTER.prepare_rows_of(strategy, form, made.documents)
    }
    assert embedder.embedded == len(texts)
    assert len(outcomes) == 4
    list(made.run(variants))
    assert embedder.embedded == len(texts)


def test_progress_goes_up_to_what_is_to_do_and_says_what() -> None:
    reported: list[tuple[int, int, str]] = []
    made = VariantBenchmark(
        documents=DRINKS,
        questions=generate_questions(DRINKS),
        chunker=CUTTER,
        embedder=HashEmbedder(),
        progress=lambda *of: reported.append(of),
    )
    list(made.run([Variant(strategy="headers")]))
    assert all(0 <= done < total for done, total, _ in reported)
    assert {what for _, _, what in reported} == {
        "embedding headers",
        "asking headers, heading, hybrid",
    }


def test_without_questions_there_are_sizes_and_no_scores() -> None:
    (outcome,) = run(DRINKS, Variant(strategy="headers"), questions=[])
    assert outcome.by_kind == {}
    assert outcome.chunks > 0


def test_documents_without_text_have_no_chunks_and_answer_nothing() -> None:
    section = Section(path="a.md", title="", anchors=(), first_line=1, last_line=1)
    (outcome,) = run(
        {"a.md": ""}, Variant(), questions=[EvaluationQuestion("where is it", GIVEN, section)]
    )
    assert (outcome.chunks, outcome.by_kind[GIVEN]) == (
        0,
        Scores((0.0,) * len(RECALL_DEPTHS), 0.0, 0.0, 0.0),
    )


@pytest.mark.parametrize(
    "words",
    [
        "",
        " ",
        "-",
        "?!",
        '"',
        '"a phrase" -not',
        '"Feed me"',
        "a AND (b",
        "x" * 5000,
        "\0",
        "*",
        "日本語",
        "a:b^2~",
        "-tea",
        "' OR 1=1",
    ],
)
def test_any_text_can_be_asked(words: str) -> None:
    question = given_for("tea.md", DRINKS["tea.md"], "Make green tea", words)
    (outcome,) = run(DRINKS, Variant(strategy="headers"), questions=[question])
    assert all(0.0 <= number <= 1.0 for number in numbers(outcome.by_kind[GIVEN]))


def _sectioned(parts: Sequence[str], wanted: int) -> str:
    """Return a document of sections; only the wanted section has words in capitals."""
    sections = [f"## Section {n}\n\n{part}" for n, part in enumerate(parts)]
    sections[wanted] = sections[wanted].upper()
    return "# Page\n\nIntroduction.\n\n" + "\n\n".join(sections) + "\n"


_lines = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join), min_size=1, max_size=20
)


@given(
    st.sampled_from(sorted(STRATEGIES)),
    st.lists(_lines, min_size=1, max_size=4),
    st.booleans(),
    st.data(),
)
@settings(deadline=None, max_examples=15)
def test_an_embedder_that_knows_the_answer_scores_best_under_any_strategy(
    strategy: str, parts: list[list[str]], apart: bool, data: st.DataObject  # noqa: FBT001 - drawn
) -> None:  # fmt: skip
    wanted = data.draw(st.integers(0, len(parts) - 1))
    texts = {
        "a.md": _sectioned([("\n\n" if apart else "\n").join(lines) for lines in parts], wanted),
        "b.md": "Other words.\n",
    }
    target = next(
        section
        for section in sections_of("a.md", texts["a.md"])
        if section.title == f"SECTION {wanted}"
    )
    made = CUTTER.prepare_rows_of(strategy, "heading", {"a.md": texts["a.md"]})
    right = {
        each.embed_text: each.row.text
        for each in made
        if each.start_line <= target.last_line and target.first_line <= each.end_line
    }
    (outcome,) = bench(
        texts, [EvaluationQuestion("where is it", GIVEN, target)], Oracle(right)
    ).run([Variant(strategy=strategy, mode="vector")])
    scores = outcome.by_kind[GIVEN]
    assert (scores.recall, scores.mrr, scores.ndcg) == ((1.0,) * len(RECALL_DEPTHS), 1.0, 1.0)
    if sum(len(text) + 1 for text in right.values()) < 4_000:
        assert scores.cov4k == 1.0


@given(
    st.integers(),
    st.sampled_from(sorted(STRATEGIES)),
    st.sampled_from(EMBED_FORMS),
    st.lists(calm_documents, min_size=1, max_size=3),
)
@settings(deadline=None, max_examples=8)
def test_scores_are_between_0_and_1_and_recall_never_falls_with_k(
    seed: int, strategy: str, form: str, texts: list[str]
) -> None:
    named = {f"{number}.md": normalize_text(text) for number, text in enumerate(texts)}
    questions = [
        *generate_questions(named),
        *(given_for(path, f"# T\n{text}", "T") for path, text in named.items()),
    ]
    questions = [
        replace(
            each,
            answer_section=replace(
                each.answer_section, last_line=named[each.answer_section.path].count("\n") + 1
            ),
        )
        for each in questions
    ][:9]
    for outcome in bench(named, questions, Shuffled(seed)).run(
        [
            Variant(strategy=strategy, form=form),
            Variant(strategy=strategy, form=form, mode="vector"),
        ]
    ):
        for scores in outcome.by_kind.values():
            assert all(0.0 <= number <= 1.0 for number in numbers(scores))
            assert sorted(scores.recall) == list(scores.recall)


@pytest.mark.parametrize("strategy", ["anchored", "sentences", "window"])
def test_no_more_of_a_section_is_covered_than_fits_4000_characters(strategy: str) -> None:
    text = f"# The page\n\n{prose(1, 1200)}\n"
    (outcome,) = run(
        {"a.md": text},
        Variant(strategy=strategy),
        questions=[given_for("a.md", text, "The page", "river")],
    )
    assert outcome.by_kind[GIVEN].cov4k <= 4_000 / len(text)


@pytest.mark.parametrize(("first", "last"), [(999, 999), (5, 999)])
def test_lines_beyond_a_document_hold_nothing(first: int, last: int) -> None:
    question = EvaluationQuestion(
        "boil water",
        GIVEN,
        Section(path="tea.md", title="", anchors=(), first_line=first, last_line=last),
    )
    (outcome,) = run(DRINKS, Variant(strategy="headers"), questions=[question])
    assert outcome.by_kind[GIVEN].mrr == float(first < 10)


# Costs of edits


def cost(before: str, after: str, strategy: str = "anchored", form: str = "heading") -> float:
    return cast(
        "float",
        mean_embeds_per_edit(
            CUTTER, Variant(strategy=strategy, form=form), [("a.md", before, after)]
        ),
    )


def test_without_edits_there_is_no_cost() -> None:
    assert mean_embeds_per_edit(CUTTER, Variant(), []) is None


@given(st.sampled_from(sorted(STRATEGIES)), st.sampled_from(EMBED_FORMS), documents)
def test_an_edit_that_changes_nothing_costs_nothing(strategy: str, form: str, text: str) -> None:
    assert cost(text, text, strategy, form) == 0.0


@given(st.sampled_from(sorted(STRATEGIES)), st.sampled_from(EMBED_FORMS), documents, documents)
def test_an_edit_costs_at_most_all_texts_of_what_it_leaves(
    strategy: str, form: str, before: str, after: str
) -> None:
    texts = {made.embed_text for made in CUTTER.prepare_rows_of(strategy, form, {"a.md": after})}
    assert cost("", after, strategy, form) == len(texts)
    assert 0.0 <= cost(before, after, strategy, form) <= len(texts)
    assert cost(before, "", strategy, form) == 0.0


@given(documents, documents)
@settings(deadline=None, max_examples=20)
def test_an_edit_and_the_way_back_and_the_way_over_a_third_text_cost_no_less(
    one: str, other: str
) -> None:
    assert cost(one, other) <= cost(one, "") + cost("", other)


def _page(changed: int | None = None) -> str:
    parts = [f"## Section {n}\n\n{prose(n, 120)}" for n in range(6)]
    if changed is not None:
        parts[changed] += " And one thing more."
    return "# Page\n\n" + "\n\n".join(parts) + "\n"


@pytest.mark.parametrize("changed", range(6))
def test_a_change_of_one_section_costs_one_text(changed: int) -> None:
    assert cost(_page(), _page(changed)) == 1.0
    assert cost(_page(), _page(changed), "headers") == 1.0


def test_a_change_moves_the_windows_behind_it() -> None:
    assert cost(_page(), _page(0), "window") > 1.0


def test_a_renamed_title_costs_more_where_the_path_of_headings_is_embedded() -> None:
    renamed = _page().replace("# Page", "# Other", 1)
    assert cost(_page(), renamed, "headers", "path") > cost(_page(), renamed, "headers", "heading")


def test_line_ends_and_a_byte_order_mark_cost_nothing() -> None:
    assert cost(_page(), "\ufeff" + _page().replace("\n", "\r\n")) == 0.0


def test_the_cost_is_the_mean_over_edits() -> None:
    edits = [
        ("a.md", _page(), _page(1)),
        ("b.md", _page(), _page()),
        ("c.md", _page(1), _page()),
        ("a.md", _page(), _page()),
    ]
    assert mean_embeds_per_edit(CUTTER, Variant(), edits) == 0.5
