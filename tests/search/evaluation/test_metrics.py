"""Scores of ordered results: laws for any results, and the cases that define each measure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.search.evaluation.metrics import (
    COVERAGE_CHARS,
    NDCG_DEPTH,
    RECALL_DEPTHS,
    ExpectedSection,
    RetrievedChunk,
    Scores,
    mean_scores,
    score_results,
)

NOTHING = Scores((0.0,) * len(RECALL_DEPTHS), 0.0, 0.0, 0.0)


def wanted_of(lines: Mapping[int, str], chunks: int = 1, path: str = "a.md") -> ExpectedSection:
    """Return the section with these lines."""
    return ExpectedSection(
        path, {number: text.strip() for number, text in lines.items() if text.strip()}, chunks
    )


def result(first: int, *lines: str, path: str = "a.md") -> RetrievedChunk:
    return RetrievedChunk(path, first, first + len(lines) - 1, "\n".join(lines))


def numbers(scores: Scores) -> list[float]:
    return [*scores.recall, scores.mrr, scores.ndcg, scores.cov4k]


SECTION = {3: "## Make tea", 5: "Boil water.", 6: "Wait."}
RIGHT = result(3, "## Make tea", "", "Boil water.", "Wait.")
WRONG = result(1, "other words", "and more", path="b.md")


# Laws: any results of two documents, and a section somewhere in one of them

_line = st.text("ab ", max_size=30) | st.integers(0, 2500).map(lambda size: "x" * size)
_document = st.lists(_line, min_size=1, max_size=8)


@st.composite
def _cases(draw: st.DrawFn) -> tuple[list[RetrievedChunk], ExpectedSection]:
    texts = {path: draw(_document) for path in ("a.md", "b.md")}
    results = []
    for path in draw(st.lists(st.sampled_from(["a.md", "a.md", "b.md"]), max_size=14)):
        first = draw(st.integers(1, len(texts[path])))
        last = draw(st.integers(first, len(texts[path])))
        results.append(result(first, *texts[path][first - 1 : last], path=path))
    held = draw(st.sets(st.integers(1, len(texts["a.md"]))))
    chunks = draw(st.integers(0, 20))
    return results, wanted_of({number: texts["a.md"][number - 1] for number in held}, chunks)


cases = _cases()


def holds(found: RetrievedChunk, wanted: ExpectedSection) -> bool:
    return found.path == wanted.path and any(
        found.first_line <= line <= found.last_line for line in wanted.text_by_line
    )


@given(cases)
def test_every_score_is_between_0_and_1(case: tuple[list[RetrievedChunk], ExpectedSection]) -> None:
    assert all(0.0 <= number <= 1.0 for number in numbers(score_results(*case)))


@given(cases)
def test_recall_never_falls_with_k(case: tuple[list[RetrievedChunk], ExpectedSection]) -> None:
    recall = score_results(*case).recall
    assert len(recall) == len(RECALL_DEPTHS)
    assert sorted(recall) == list(recall)


@given(cases)
def test_recall_and_mrr_agree_on_the_first_right_result(
    case: tuple[list[RetrievedChunk], ExpectedSection],
) -> None:
    scores, (results, wanted) = score_results(*case), case
    first = next((rank for rank, found in enumerate(results, 1) if holds(found, wanted)), None)
    assert scores.mrr == (1 / first if first else 0.0)
    assert scores.recall == tuple(float(first is not None and first <= k) for k in RECALL_DEPTHS)


@given(cases, st.data())
def test_a_right_result_that_comes_earlier_never_lowers_recall_mrr_and_ndcg(
    case: tuple[list[RetrievedChunk], ExpectedSection], data: st.DataObject
) -> None:
    results, wanted = case
    right = [at for at, found in enumerate(results) if holds(found, wanted)]
    if right:
        at = data.draw(st.sampled_from(right))
        to = data.draw(st.integers(0, at))
        moved = [*results[:to], results[at], *results[to:at], *results[at + 1 :]]
        before, after = score_results(results, wanted), score_results(moved, wanted)
        assert all(
            new >= old - 1e-12
            for new, old in zip(numbers(after)[:-1], numbers(before)[:-1], strict=True)
        )


@given(cases, st.data())
def test_a_right_result_that_comes_before_wrong_ones_never_lowers_any_score(
    case: tuple[list[RetrievedChunk], ExpectedSection], data: st.DataObject
) -> None:
    results, wanted = case
    swaps = [
        n
        for n in range(1, len(results))
        if holds(results[n], wanted) and not holds(results[n - 1], wanted)
    ]
    if swaps:
        at = data.draw(st.sampled_from(swaps))
        swapped = [*results[: at - 1], results[at], results[at - 1], *results[at + 1 :]]
        before, after = score_results(results, wanted), score_results(swapped, wanted)
        assert all(
            new >= old - 1e-12 for new, old in zip(numbers(after), numbers(before), strict=True)
        )


@given(
    cases, st.lists(st.builds(result, st.integers(1, 9), _line, path=st.just("c.md")), max_size=5)
)
def test_wrong_results_behind_all_others_change_nothing(
    case: tuple[list[RetrievedChunk], ExpectedSection], more: list[RetrievedChunk]
) -> None:
    results, wanted = case
    assert score_results([*results, *more], wanted) == score_results(results, wanted)


@given(cases, st.text("ab\n", max_size=40))
def test_what_wrong_results_say_does_not_matter_where_all_fits_the_budget(
    case: tuple[list[RetrievedChunk], ExpectedSection], said: str
) -> None:
    results, wanted = case
    short = [found for found in results if len(found.text) < 100]
    repeated = [
        found
        if holds(found, wanted)
        else RetrievedChunk(found.path, found.first_line, found.last_line, said)
        for found in short
    ]
    assert score_results(repeated, wanted) == score_results(short, wanted)


@given(cases)
def test_all_scores_are_0_or_none_is_where_the_section_is_among_the_first(
    case: tuple[list[RetrievedChunk], ExpectedSection],
) -> None:
    results, wanted = case
    scores = score_results(results, wanted)
    if not any(holds(found, wanted) for found in results):
        assert scores == NOTHING
    if any(holds(found, wanted) for found in results[:NDCG_DEPTH]):
        assert min(scores.recall[-1], scores.mrr, scores.ndcg) > 0.0


@given(st.lists(_line.filter(str.strip), min_size=1, max_size=25), st.data())
def test_a_perfect_order_has_the_best_scores(lines: list[str], data: st.DataObject) -> None:
    """All chunks of a section come first, in any order, and other chunks follow."""
    ends = sorted({*data.draw(st.sets(st.integers(1, len(lines)))), len(lines)})
    starts = [0, *ends[:-1]]
    chunks = [result(10 + a, *lines[a:b]) for a, b in zip(starts, ends, strict=True)]
    wanted = wanted_of(dict(enumerate(lines, 10)), len(chunks))
    shuffled = data.draw(st.permutations(chunks))
    scores = score_results([*shuffled, *[WRONG] * 3], wanted)
    assert (scores.recall, scores.mrr, scores.ndcg) == ((1.0,) * len(RECALL_DEPTHS), 1.0, 1.0)
    if sum(len(line) + 1 for line in lines) < COVERAGE_CHARS:
        assert scores.cov4k == 1.0


@given(cases)
def test_ndcg_is_1_only_where_the_first_result_is_right(
    case: tuple[list[RetrievedChunk], ExpectedSection],
) -> None:
    results, wanted = case
    is_first = bool(results) and holds(results[0], wanted)
    assert (score_results(results, wanted).ndcg == 1.0) == is_first


_scores = st.builds(
    Scores, st.tuples(*[st.floats(0, 1)] * len(RECALL_DEPTHS)), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)
)  # fmt: skip


@given(st.lists(_scores, min_size=1, max_size=8))
def test_the_mean_of_many_is_the_mean_of_each_measure(many: list[Scores]) -> None:
    columns = zip(*map(numbers, many), strict=True)
    assert numbers(mean_scores(many)) == [fmean(column) for column in columns]


@given(_scores)
def test_the_mean_of_one_is_itself(one: Scores) -> None:
    assert numbers(mean_scores([one])) == pytest.approx(numbers(one))


def test_the_mean_of_none_is_zeros() -> None:
    assert mean_scores([]) == NOTHING


# Cases


def test_no_results_are_worth_nothing() -> None:
    assert score_results([], wanted_of(SECTION)) == NOTHING


@pytest.mark.parametrize(
    ("before", "recall", "mrr"),
    [(0, (1, 1, 1), 1), (1, (0, 1, 1), 1 / 2), (4, (0, 1, 1), 1 / 5), (5, (0, 0, 1), 1 / 6), (9, (0, 0, 1), 1 / 10),
     (10, (0, 0, 0), 1 / 11)],
)  # fmt: skip
def test_recall_and_mrr_go_by_the_place_of_the_first_right_result(
    before: int, recall: tuple[float, ...], mrr: float
) -> None:
    scores = score_results([*[WRONG] * before, RIGHT, RIGHT], wanted_of(SECTION))
    assert scores.recall == recall
    assert scores.mrr == pytest.approx(mrr)


@pytest.mark.parametrize(
    ("order", "rank"), [("R", 1), ("WR", 2), ("RWR", 1), ("W" * 9 + "R", 10), ("W" * 10 + "R", 0)]
)
def test_ndcg_counts_the_first_right_result_less_the_later_it_comes(order: str, rank: int) -> None:
    results = [RIGHT if one == "R" else WRONG for one in order]
    gain = 1 / math.log2(rank + 1) if rank else 0.0
    assert score_results(results, wanted_of(SECTION, 30)).ndcg == pytest.approx(gain)


def test_any_of_several_answers_counts() -> None:
    other = wanted_of({1: "other words", 2: "and more"}, path="b.md")
    scores = score_results([WRONG], wanted_of(SECTION), other)
    assert (scores.ndcg, scores.cov4k) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("found", "right"),
    [
        (result(3, "## Make tea"), True),
        (result(1, "# Top", "", "## Make tea"), True),
        (result(6, "Wait.", "", "## Next"), True),
        (result(4, ""), False),
        (result(1, "# Top", ""), False),
        (result(7, "## Next"), False),
        (result(3, "## Make tea", "", "Boil water.", path="b.md"), False),
    ],
)
def test_a_result_is_right_that_holds_a_line_of_the_section(
    found: RetrievedChunk,
    right: bool,  # noqa: FBT001 - of a table
) -> None:
    assert score_results([found], wanted_of(SECTION)).mrr == float(right)


def test_the_share_of_the_section_is_counted_in_characters_of_its_lines() -> None:
    sizes = len("## Make tea") + len("Boil water.") + len("Wait.")
    assert score_results([result(5, "Boil water.")], wanted_of(SECTION)).cov4k == pytest.approx(
        len("Boil water.") / sizes
    )
    assert score_results(
        [result(6, "Wait."), result(3, "## Make tea")], wanted_of(SECTION)
    ).cov4k == pytest.approx(16 / sizes)


def test_the_same_lines_twice_count_once() -> None:
    once = score_results([result(5, "Boil water.")], wanted_of(SECTION)).cov4k
    assert score_results([result(5, "Boil water.")] * 3, wanted_of(SECTION)).cov4k == once


def test_indentation_is_no_part_of_the_section_and_cannot_be_missed() -> None:
    assert (
        score_results([result(1, "- a", "  - b")], wanted_of({1: "- a", 2: "    - b  "})).cov4k
        == 1.0
    )


def test_what_comes_after_4000_characters_is_not_seen() -> None:
    filler = result(1, *["x" * 99] * 40, path="b.md")
    assert score_results([filler, RIGHT], wanted_of(SECTION)).cov4k == 0.0
    assert score_results([filler, RIGHT], wanted_of(SECTION)).recall[1] == 1.0
    shorter = result(1, *["x" * 99] * 39, path="b.md")
    assert score_results([shorter, RIGHT], wanted_of(SECTION)).cov4k == 1.0


def test_of_a_long_result_the_lines_within_4000_characters_count() -> None:
    lines = ["x" * 499] * 10
    assert score_results(
        [result(1, *lines)], wanted_of(dict(enumerate(lines, 1)))
    ).cov4k == pytest.approx(0.8)


def test_nothing_is_seen_behind_a_result_that_does_not_fit() -> None:
    assert (
        score_results([result(1, "x" * 5000, path="b.md"), RIGHT], wanted_of(SECTION)).cov4k == 0.0
    )


def test_a_section_without_text_has_no_share() -> None:
    assert score_results([result(1, "", "")], wanted_of({1: "", 2: "  "})) == NOTHING


def test_a_piece_of_a_line_counts_by_its_own_characters() -> None:
    line = "".join(f"word{number} " for number in range(1000)).strip()
    scores = score_results([RetrievedChunk("a.md", 3, 3, line[:500])], wanted_of({3: line}))
    assert scores.cov4k == pytest.approx(500 / len(line), abs=0.01)


def test_of_a_line_longer_than_4000_characters_the_first_4000_count() -> None:
    line = "".join(f"word{number} " for number in range(1000)).strip()
    scores = score_results([result(3, line)], wanted_of({3: line}))
    assert scores.cov4k == pytest.approx(COVERAGE_CHARS / len(line), abs=0.01)


def test_exactly_4000_characters_are_seen() -> None:
    assert (
        score_results([result(1, "x" * COVERAGE_CHARS)], wanted_of({1: "x" * COVERAGE_CHARS})).cov4k
        == 1.0
    )


def test_what_a_chunk_repeats_from_above_it_is_none_of_its_lines() -> None:
    head, rows = ("| a | b |", "|---|---|"), {20: "| the first | row |", 21: "| the second | row |"}
    filler = result(1, "x" * (COVERAGE_CHARS - 1 - len("\n".join(head)) - 1), path="b.md")
    chunk = RetrievedChunk("a.md", 20, 21, "\n".join([*head, *rows.values()]))
    assert score_results([chunk], wanted_of(rows)).cov4k == 1.0
    assert score_results([filler, chunk], wanted_of(rows)).cov4k == 0.0


@pytest.mark.parametrize("before", ["```", "boil", "}"])
def test_a_line_before_the_section_is_none_of_its_lines(before: str) -> None:
    section = {2: "## Make tea", 3: "```sh", 4: "boil() { water; }", 5: "```"}
    assert score_results([result(1, before, *section.values())], wanted_of(section)).cov4k == 1.0


def test_two_pieces_of_a_line_that_read_the_same_count_both() -> None:
    line = "word " * 100
    pieces = [RetrievedChunk("a.md", 3, 3, line[at : at + 100].strip()) for at in (0, 100, 200)]
    assert score_results(pieces, wanted_of({3: line})).cov4k == pytest.approx(
        300 / len(line), abs=0.02
    )


def test_lines_that_read_the_same_count_each_also_below_a_repeated_line() -> None:
    rows = {20: "| same | row |", 21: "| same | row |"}
    assert (
        score_results(
            [RetrievedChunk("a.md", 20, 21, "\n".join(["| a | b |", *rows.values()]))],
            wanted_of(rows),
        ).cov4k
        == 1.0
    )


def test_scores_are_values_in_the_order_of_the_table() -> None:
    assert astuple(Scores((1.0, 0.5), 0.4, 0.3, 0.2)) == ((1.0, 0.5), 0.4, 0.3, 0.2)
