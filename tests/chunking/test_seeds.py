"""The chunking rules of the five seed designs, through the public function; names have the row's number.

Where a seed loses text or breaks its own goal, the test states what anchord does instead.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from anchord import chunk_text
from anchord.config.strategies import STRATEGIES

ALL = list(STRATEGIES)
WINDOW = 254
"""Tokens that all-MiniLM-L6-v2 takes besides its two special ones."""

Chunks = list[dict[str, Any]]


def prose(number: int, word: str = "river") -> str:
    return " ".join(f"{word}{n} flows past stone {n}." for n in range(number))


def joined(text: str, chunks: Chunks) -> str:
    """Join the chunks by their offsets; overlapping text is taken once."""
    out, reached = "", 0
    for chunk in chunks:
        out += text[max(reached, chunk["start_char"]) : chunk["end_char"]]
        reached = max(reached, chunk["end_char"])
    return out


def without_blanks(text: str) -> str:
    return "".join(text.split())


DOCUMENT = "\n\n".join(
    [
        "# Guide\n\nAn introduction of a few words.",
        "## Install\n\n" + prose(60),
        "### Linux\n\n"
        + prose(40, "penguin")
        + "\n\n```sh\napt install thing\n\n# not a heading\n```",
        "## Use\n\n- one\n- two\n- three\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
        + prose(50, "lake"),
    ]
)


# 000 Fixed window and Q&A pairs


@pytest.mark.parametrize("strategy", ALL)
def test_000_01_a_file_is_never_one_vector_for_all_of_it(strategy: str) -> None:
    assert len(chunk_text(DOCUMENT, strategy=strategy)) > 1


@pytest.mark.parametrize("strategy", ALL)
def test_000_29_no_chunk_is_over_what_the_model_can_take(strategy: str) -> None:
    text = DOCUMENT + "\n\n" + "x" * 5_000 + "\n\n" + "word " * 3_000 + "\n\n" + "漢字" * 2_000
    assert max(chunk["token_count"] for chunk in chunk_text(text, strategy=strategy)) <= WINDOW


@pytest.mark.parametrize("strategy", ALL)
def test_nothing_is_lost_and_nothing_is_turned_around(strategy: str) -> None:
    text = DOCUMENT + "\n\n" + "word " * 3_000 + "end"
    assert without_blanks(joined(text, chunk_text(text, strategy=strategy))) == without_blanks(text)


def test_000_03_a_window_has_800_characters() -> None:
    chunks = chunk_text("stones " * 600, strategy="window", path="a.txt")
    assert {chunk["end_char"] - chunk["start_char"] for chunk in chunks[:-1]} <= {
        798,
        799,
        800,
    }  # A blank at an end is left out.


def test_000_04_windows_overlap_by_100_characters() -> None:
    chunks = chunk_text("stones " * 600, strategy="window", path="a.txt")
    overlaps = [before["end_char"] - after["start_char"] for before, after in pairwise(chunks)]
    assert set(overlaps) <= {96, 97, 98, 99, 100}


def test_000_05_a_window_is_cut_at_a_blank_line_before_a_newline() -> None:
    text = "a" * 300 + "\n\n" + "b" * 200 + "\n" + "c" * 600
    assert (
        chunk_text(text, strategy="window", path="a.txt")[0]["text"]
        == "a" * 300 + "\n\n" + "b" * 200
    )
    text = "a" * 500 + "\n\n" + "b" * 200 + "\n" + "c" * 600
    assert chunk_text(text, strategy="window", path="a.txt")[0]["text"] == "a" * 500


def test_000_06_a_blank_line_in_the_first_half_of_a_window_does_not_cut_it() -> None:
    first = chunk_text("short\n\n" + "word " * 400, strategy="window", path="a.txt")[0]
    assert first["end_char"] >= 799


def test_000_07_what_is_under_50_characters_stays_with_what_is_before_it_instead_of_being_dropped() -> (
    None
):
    assert [chunk["text"] for chunk in chunk_text("A few words.", strategy="window")] == [
        "A few words."
    ]
    chunks = chunk_text(
        "x" * 790 + "\n\n" + "tail", strategy="window", path="a.txt", overlap_chars=0
    )
    assert chunks[-1]["text"].endswith("tail")
    assert all(len(chunk["text"]) >= 50 for chunk in chunks)


@pytest.mark.parametrize("names", [("max_chars", "overlap_chars"), ("chunk_size", "chunk_overlap")])
def test_000_19_the_sizes_of_a_window_have_names(names: Sequence[str]) -> None:
    sizes = dict(zip(names, (400, 40), strict=True))
    chunks = chunk_text("stones " * 600, strategy="window", path="a.txt", **sizes)
    assert {chunk["end_char"] - chunk["start_char"] for chunk in chunks[:-1]} <= {
        396,
        397,
        398,
        399,
        400,
    }


TALK = """Notes before.

> What should we look at?
First, the queries.

Second, the size of the data.

> How do the two compare?
> And which is older?
One is stronger in JSON.
---
An afterthought of somebody.

> What language?
Python.
"""


def test_000_08_an_exchange_is_a_question_with_its_whole_answer() -> None:
    chunks = [chunk["text"] for chunk in chunk_text(TALK, strategy="exchange", path="talk.txt")]
    assert chunks[0] == "Notes before."
    assert (
        chunks[1]
        == "> What should we look at?\nFirst, the queries.\n\nSecond, the size of the data."
    )


def test_000_09_lines_that_begin_with_the_sign_open_one_turn() -> None:
    chunks = chunk_text(TALK, strategy="exchange", path="talk.txt")
    assert (
        chunks[2]["text"]
        == "> How do the two compare?\n> And which is older?\nOne is stronger in JSON."
    )
    assert chunks[2]["header_path"] == ["How do the two compare? And which is older?"]


def test_000_09_a_quoted_line_in_a_fence_opens_no_turn() -> None:
    text = "> one\n```\n> not a question\n```\n> two\nb\n> three\nc\n"
    assert [chunk["start_line"] for chunk in chunk_text(text, strategy="exchange")] == [1, 5, 7]


def test_000_10_exchanges_never_share_a_chunk_however_short_they_are() -> None:
    questions = [
        chunk["text"].count(">")
        for chunk in chunk_text("> a\nb\n> c\nd\n> e\nf\n", strategy="exchange")
    ]
    assert questions == [1, 1, 1]


def test_000_11_a_rule_ends_an_exchange_and_the_text_after_it_is_kept() -> None:
    chunks = chunk_text(TALK, strategy="exchange", path="talk.txt")
    (after,) = [chunk for chunk in chunks if "afterthought" in chunk["text"]]
    assert after["text"] == "---\nAn afterthought of somebody."
    assert after["header_path"] == []


def test_000_11_the_rule_is_an_option() -> None:
    chunks = chunk_text(TALK, strategy="exchange", path="talk.txt", rule_ends_exchange=False)
    (whole,) = [chunk for chunk in chunks if "afterthought" in chunk["text"]]
    assert whole["text"].startswith("> How do the two compare?")


def test_000_12_an_answer_of_more_than_eight_lines_is_whole_and_as_it_was_written() -> None:
    answer = "\n".join(f"{n}. line of the answer\n" for n in range(20))
    text = f"> one\n{answer}> two\nb\n> three\nc\n"
    chunks = chunk_text(text, strategy="exchange", path="talk.txt")
    assert chunks[0]["text"] == f"> one\n{answer}".rstrip()


def test_000_13_004_07_a_long_answer_is_split_and_every_part_is_embedded_with_its_question() -> (
    None
):
    text = "> Why is the sky blue\n" + prose(300) + "\n> two\nb\n> three\nc\n"
    parts = [
        chunk
        for chunk in chunk_text(text, strategy="exchange", path="talk.txt")
        if chunk["header_path"] == ["Why is the sky blue"]
    ]
    assert len(parts) > 3
    assert all("Why is the sky blue" in part["embed_text"] for part in parts)
    assert without_blanks("".join(part["text"] for part in parts)) == without_blanks(
        "> Why is the sky blue\n" + prose(300)
    )


def test_000_14_exchanges_do_not_overlap() -> None:
    chunks = chunk_text(TALK, strategy="exchange", path="talk.txt")
    assert all(a["end_char"] <= b["start_char"] for a, b in pairwise(chunks))


def test_000_15_an_exchange_has_no_least_size() -> None:
    contents = [chunk["text"] for chunk in chunk_text(TALK, strategy="exchange", path="talk.txt")]
    assert contents[-1] == "> What language?\nPython."


@pytest.mark.parametrize("strategy", ALL)
def test_000_16_chunks_are_numbered_from_nought(strategy: str) -> None:
    chunks = chunk_text(DOCUMENT, strategy=strategy)
    assert [chunk["chunk_index"] for chunk in chunks] == list(range(len(chunks)))


def test_000_17_fewer_than_three_questions_are_no_transcript_but_paragraphs() -> None:
    assert [c["text"] for c in chunk_text("> one\na\n\n> two\nb\n", strategy="exchange")] == [
        "> one\na",
        "> two\nb",
    ]
    assert len(chunk_text("first\n\nsecond\n", strategy="exchange")) == 2


def test_000_18_one_long_paragraph_is_cut_every_25_lines() -> None:
    chunks = chunk_text(
        "\n".join(f"line {n}" for n in range(60)), strategy="exchange", path="a.txt"
    )
    assert [(chunk["start_line"], chunk["end_line"]) for chunk in chunks] == [
        (1, 25),
        (26, 50),
        (51, 60),
    ]


@pytest.mark.parametrize("strategy", ALL)
@pytest.mark.parametrize(
    "text", ["", "x", "\0\0", "{", "<p>", "a\rb", "> ", "---", "```", "\ud800"]
)
def test_000_28_any_input_can_be_cut(strategy: str, text: str) -> None:
    assert len(chunk_text(text, strategy=strategy)) == (1 if text.strip() else 0)


# 001 Stable markdown chunking


@pytest.mark.parametrize("strategy", ALL)
def test_001_01_the_same_document_gives_the_same_chunks(strategy: str) -> None:
    assert chunk_text(DOCUMENT, strategy=strategy) == chunk_text(DOCUMENT, strategy=strategy)


def test_001_02_a_small_edit_leaves_the_ids_of_the_rest_alone() -> None:
    before = {chunk["id"] for chunk in chunk_text(DOCUMENT)}
    after = {chunk["id"] for chunk in chunk_text(DOCUMENT.replace("lake7 ", "sea7 "))}
    assert len(after - before) == 1


def test_001_03_an_inserted_line_does_not_change_the_ids_below_it() -> None:
    before = chunk_text(DOCUMENT)
    after = chunk_text(DOCUMENT.replace("# Guide\n", "# Guide\n\nOne more line.\n"))
    assert len({chunk["id"] for chunk in after} - {chunk["id"] for chunk in before}) == 1
    assert after[-1]["start_line"] == before[-1]["start_line"] + 2


@pytest.mark.parametrize("path", ["a.md", "b.md"])
def test_001_03_the_id_is_of_file_header_path_lines_and_content(path: str) -> None:
    section = "\n\n".join(["## S\n\n" + prose(50), "## T\n\n" + prose(50)])
    ids = {chunk["id"] for chunk in chunk_text(f"# A\n\n{section}", path=path)}
    assert not ids & {chunk["id"] for chunk in chunk_text(f"# B\n\n{section}", path=path)}
    assert not ids & {chunk["id"] for chunk in chunk_text(f"# A\n\n{section}", path="c.md")}


@pytest.mark.parametrize(("depth", "path"), [(None, "ABCD"), (3, "ABC"), (1, "A")])
def test_001_04_12_the_header_path_is_as_deep_as_asked(depth: int | None, path: str) -> None:
    text = "# A\n\n## B\n\n### C\n\n#### D\n\n" + prose(120)
    options = {} if depth is None else {"max_heading_level_for_path": depth}
    assert "".join(chunk_text(text, **options)[-1]["header_path"]) == path


@pytest.mark.parametrize("strategy", ALL)
def test_001_05_17_lines_count_from_one_and_map_back_to_the_source(strategy: str) -> None:
    lines = DOCUMENT.split("\n")
    for chunk in chunk_text(DOCUMENT, strategy=strategy):
        source = "\n".join(lines[chunk["start_line"] - 1 : chunk["end_line"]])
        assert chunk["text"] in source
        assert DOCUMENT[chunk["start_char"] : chunk["end_char"]] == chunk["text"]


@pytest.mark.parametrize(
    "strategy", ["anchored", "headers", "two_stage", "semantic", "paragraph", "sentences"]
)
def test_001_06_07_headings_make_sections_but_not_in_fences(strategy: str) -> None:
    paths = {tuple(chunk["header_path"]) for chunk in chunk_text(DOCUMENT, strategy=strategy)}
    assert ("Guide", "Install", "Linux") in paths
    assert not any("not a heading" in title for path in paths for title in path)


def test_001_08_09_10_units_are_merged_up_to_the_most_characters() -> None:
    for most in (300, 800, 1_700):
        chunks = chunk_text("\n\n".join(prose(4, f"w{n}x") for n in range(30)), max_chars=most)
        assert max(len(chunk["text"]) for chunk in chunks) <= most
    assert max(len(chunk["text"]) for chunk in chunk_text(DOCUMENT)) <= 1_800


def test_001_11_small_sections_stay_with_a_neighbour_and_min_chars_says_what_is_small() -> None:
    text = "\n\n".join(f"## Section {n}\n\n{'stones and rivers and lakes ' * 5}" for n in range(12))
    sizes = {
        least: [len(chunk["text"]) for chunk in chunk_text(text, min_chars=least)]
        for least in (100, 250, 600)
    }
    assert all(min(found) >= least for least, found in sizes.items())
    assert len(sizes[100]) == 12 > len(sizes[250]) > len(sizes[600])
    assert min(len(chunk["text"]) for chunk in chunk_text(text)) >= 250


def test_001_13_a_fence_that_fits_is_whole_unless_asked_otherwise() -> None:
    fence = "```py\n" + "\n\n".join(f"value_{n} = {n}" for n in range(40)) + "\n```"
    texts = ["word " * n + "\n\n" + fence for n in range(20, 40, 4)]
    assert all(any(fence in chunk["text"] for chunk in chunk_text(text)) for text in texts)
    cut = [chunk_text(text, keep_code_blocks_intact=False) for text in texts]
    assert not any(fence in chunk["text"] for chunks in cut for chunk in chunks)


def test_001_15_the_function_gives_dictionaries_with_the_five_fields() -> None:
    assert {"id", "text", "header_path", "start_line", "end_line"} <= set(chunk_text(DOCUMENT)[0])


def test_001_16_equal_content_in_an_equal_place_has_an_equal_id_whatever_else_the_document_holds() -> (
    None
):
    section = "## Use\n\n" + prose(60)
    one = chunk_text("# Guide\n\n## Install\n\n" + prose(60, "sea") + "\n\n" + section)
    other = chunk_text("# Guide\n\n## Another\n\n" + prose(99, "lake") + "\n\n" + section)
    same = [[c["id"] for c in chunks if c["parent_section"] == "Use"] for chunks in (one, other)]
    assert same[0]
    assert same[0] == same[1]


def test_001_21_the_plain_splitter_knows_no_structure() -> None:
    chunks = chunk_text(DOCUMENT, strategy="recursive")
    assert not any(chunk["is_contextually_enriched"] for chunk in chunks)


# 002 Configurable strategies


def test_002_02_headers_gives_a_section_a_chunk() -> None:
    text = "# A\n\n## B\n\none\n\n## C\n\ntwo\n\n### D\n\nthree\n"
    assert [chunk["text"] for chunk in chunk_text(text, strategy="headers")] == [
        "# A\n\n## B\n\none", "## C\n\ntwo", "### D\n\nthree",
    ]  # fmt: skip


def test_002_09_paragraph_cuts_at_blank_lines_and_keeps_fences() -> None:
    text = "First.\n\nSecond\nof two lines.\n\n```py\na = 1\n\nb = 2\n```\n\nThird."
    assert [chunk["text"] for chunk in chunk_text(text, strategy="paragraph")] == [
        "First.", "Second\nof two lines.", "```py\na = 1\n\nb = 2\n```", "Third.",
    ]  # fmt: skip


def test_002_09_a_heading_stays_with_its_first_paragraph() -> None:
    chunks = chunk_text("# A\n\n## B\n\none\n\ntwo", strategy="paragraph")
    assert [chunk["text"] for chunk in chunks] == ["# A\n\n## B\n\none", "two"]
    assert chunks[1]["embed_text"] == "B\ntwo"


def test_002_08_paragraphs_under_the_least_size_are_put_together_where_one_is_asked_for() -> None:
    text = "\n\n".join(f"Paragraph {n}." for n in range(40))
    assert len(chunk_text(text, strategy="paragraph")) == 40
    sizes = [
        chunk["token_count"]
        for chunk in chunk_text(text, strategy="paragraph", min_chunk_tokens=20)
    ]
    assert len(sizes) > 3
    assert min(sizes) >= 20


def test_002_10_semantic_fills_chunks_with_sentences_up_to_the_limit() -> None:
    chunks = chunk_text(prose(200), strategy="semantic", max_chunk_tokens=128)
    assert len(chunks) > 5
    assert all(40 <= chunk["token_count"] <= 126 for chunk in chunks[:-1])
    assert all(chunk["text"].endswith(".") for chunk in chunks)


def test_002_07_semantic_repeats_the_end_of_the_chunk_before() -> None:
    chunks = chunk_text(prose(200), strategy="semantic")
    for before, after in pairwise(chunks):
        repeated = prose(200)[after["start_char"] : before["end_char"]]
        assert repeated
        assert len(repeated.split()) <= 32
    assert not any(
        after["start_char"] < before["end_char"]
        for chunks in [chunk_text(prose(200), strategy="semantic", overlap_tokens=0)]
        for before, after in pairwise(chunks)
    )


def test_002_08_semantic_leaves_no_tiny_chunk_where_it_fits_elsewhere() -> None:
    chunks = chunk_text(
        "# A\n\n" + prose(20) + "\n\n# B\n\nTiny.\n\n# C\n\n" + prose(10, "lake"),
        strategy="semantic",
    )
    assert min(chunk["token_count"] for chunk in chunks) >= 20
    assert sum("Tiny." in chunk["text"] for chunk in chunks) == 1


def test_002_11_sentences_gives_one_a_chunk() -> None:
    sentences = [
        "Dr. Smith met e.g. Mr. Jones at 5 p.m. yesterday.",
        "Version 1.2.3 is out!",
        "Was it late?",
        "It was.",
    ]
    assert [
        chunk["text"] for chunk in chunk_text(" ".join(sentences), strategy="sentences")
    ] == sentences
    assert [
        chunk["text"] for chunk in chunk_text("\n".join(sentences), strategy="sentences")
    ] == sentences
    assert [chunk["text"] for chunk in chunk_text("他来了。她走了。", strategy="sentences")] == [
        "他来了。",
        "她走了。",
    ]


def test_002_12_sentences_have_the_offsets_of_their_characters() -> None:
    text = "Emoji \N{GRINNING FACE} first. Then a second.\n\nAnd a third."
    assert [text[c["start_char"] : c["end_char"]] for c in chunk_text(text, strategy="sentences")] == [
        "Emoji \N{GRINNING FACE} first.", "Then a second.", "And a third.",
    ]  # fmt: skip


@pytest.mark.parametrize("strategy", ["semantic", "sentences"])
def test_002_13_code_is_no_sentence_and_a_very_long_one_is_cut(strategy: str) -> None:
    fence = "```py\nprint('one. two. three.')\n\nx = 1. + 2.\n```"
    text = f"Before. It is.\n\n{fence}\n\n" + "word " * 1_000 + "end."
    chunks = chunk_text(text, strategy=strategy)
    assert sum(fence in chunk["text"] for chunk in chunks) == 1
    assert max(chunk["token_count"] for chunk in chunks) <= WINDOW
    assert chunks[-1]["text"].endswith("end.")


def test_002_14_the_locator_names_path_section_and_index() -> None:
    assert chunk_text(DOCUMENT, path="docs/a.md")[-1]["locator"].startswith("docs/a.md#Use#")
    assert chunk_text("words", path="a.md")[0]["locator"] == "a.md#0"


@pytest.mark.parametrize("strategy", ALL)
def test_002_15_a_chunk_says_its_strategy_section_and_offsets(strategy: str) -> None:
    last = chunk_text(DOCUMENT, strategy=strategy)[-1]
    assert (last["strategy"], last["parent_section"]) == (strategy, "Use")
    assert last["end_char"] == len(DOCUMENT)


# 003 Two stages, token limits, context headers


def test_003_01_sections_come_first_and_keep_their_headings() -> None:
    chunks = chunk_text("# A\n\none\n\n## B\n\ntwo\n\n###### C\n\nthree", strategy="two_stage")
    assert [chunk["text"] for chunk in chunks] == [
        "# A\n\none",
        "## B\n\ntwo",
        "###### C\n\nthree",
    ]


@pytest.mark.parametrize("strategy", ["anchored", "two_stage", "headers", "paragraph", "semantic"])
def test_003_03_fences_and_their_indentation_are_never_broken(strategy: str) -> None:
    fence = "```py\ndef f():\n    if x:\n\n        return 1\n```"
    for words in range(0, 400, 40):
        chunks = chunk_text(
            f"# A\n\n{'word ' * words}\n\n{fence}\n\n{'word ' * 200}", strategy=strategy
        )
        assert sum(fence in chunk["text"] for chunk in chunks) == 1


def test_003_04_the_target_is_450_tokens_or_what_the_model_takes() -> None:
    sizes = [chunk["token_count"] for chunk in chunk_text(prose(300), strategy="two_stage")]
    assert max(sizes) <= WINDOW
    assert sizes[0] > 120
    assert (
        max(c["token_count"] for c in chunk_text(prose(300), strategy="two_stage", chunk_size=100))
        <= 98
    )


def test_003_05_chunks_of_one_section_overlap_by_up_to_50_tokens_and_sections_do_not() -> None:
    text = "# A\n\n" + prose(120) + "\n\n# B\n\n" + prose(120, "lake")
    chunks = chunk_text(text, strategy="two_stage")
    overlaps = [
        (a["header_path"] == b["header_path"], a["end_char"] - b["start_char"])
        for a, b in pairwise(chunks)
    ]
    assert all(overlap > 0 for same, overlap in overlaps if same)
    assert all(overlap <= 0 for same, overlap in overlaps if not same)


def test_003_06_separators_go_from_fence_to_blank_line_to_newline_to_sentence_to_word() -> None:
    fence = "```sh\nls\n```"
    text = f"{prose(12)}\n\n{fence}\n\n{prose(12, 'lake')}"
    chunks = chunk_text(text, strategy="two_stage", chunk_size=130, overlap_tokens=0)
    assert sum(fence in chunk["text"] for chunk in chunks) == 1
    lines = "\n".join(f"line {n} of a paragraph without an end" for n in range(60))
    assert all(
        c["text"].startswith("line")
        for c in chunk_text(lines, strategy="two_stage", overlap_tokens=0)
    )
    assert all(
        c["text"].endswith(".")
        for c in chunk_text(prose(200), strategy="two_stage", overlap_tokens=0)
    )
    assert all(
        c["text"].rstrip().endswith("word")
        for c in chunk_text("word " * 900, strategy="two_stage", overlap_tokens=0)
    )


@pytest.mark.parametrize("strategy", ["anchored", "two_stage", "headers", "semantic"])
def test_003_07_004_01_a_fence_over_the_limit_is_flagged_balanced_and_all_of_it_is_embedded(
    strategy: str,
) -> None:
    rows = [f"value_{n} = compute({n}, {n + 1})" for n in range(120)]
    text = "# Code\n\nWords.\n\n```python\n" + "\n".join(rows) + "\n```\n\nMore words."
    parts = [chunk for chunk in chunk_text(text, strategy=strategy) if "value_" in chunk["text"]]
    assert len(parts) > 1
    assert all(part["exceeds_limit"] and part["token_count"] <= WINDOW for part in parts)
    assert all(part["text"].count("```") % 2 == 0 for part in parts)
    embedded = "\n".join(part["embed_text"] for part in parts)
    assert all(row in embedded for row in rows)


def test_003_09_tokens_are_those_of_the_model() -> None:
    assert chunk_text("unaffable")[0]["token_count"] == len(["un", "##aff", "##able"])


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("a.md", "markdown"),
        ("a.txt", "text"),
        ("a.py", "code"),
        ("a.rst", "text"),
        ("a.ipynb", "text"),
        ("", "markdown"),
    ],
)
def test_003_11_the_format_is_known_by_the_name(path: str, kind: str) -> None:
    assert chunk_text("x = 1", path=path)[0]["kind"] == kind


TYPES = {
    "# A\n\nwords": "section",
    "words alone": "text",
    "```py\nx = 1\n```": "code_block",
    "| a |\n|---|\n| 1 |": "table",
    "- a\n- b\n\n  c": "list",
}


@pytest.mark.parametrize(("text", "kind"), TYPES.items())
def test_003_14_a_chunk_has_a_type(text: str, kind: str) -> None:
    assert chunk_text(text)[0]["chunk_type"] == kind


def test_003_13_16_a_chunk_knows_its_document_and_its_neighbours() -> None:
    chunks = chunk_text(DOCUMENT, path="docs/a.md")
    assert [chunk["prev_id"] for chunk in chunks] == [
        None,
        *(chunk["id"] for chunk in chunks[:-1]),
    ]
    assert [chunk["next_id"] for chunk in chunks] == [
        *(chunk["id"] for chunk in chunks[1:]),
        None,
    ]
    assert {(chunk["parent_id"], chunk["parent_title"]) for chunk in chunks} == {
        (chunks[0]["parent_id"], "Guide")
    }


def test_003_15_level_is_that_of_the_heading_and_depth_counts_those_above() -> None:
    deep = chunk_text("# A\n\n### C\n\n" + prose(120))[-1]
    assert (deep["header_path"], deep["level"], deep["depth"]) == (["A", "C"], 3, 1)
    flat = chunk_text("words")[0]
    assert (flat["level"], flat["depth"]) == (0, 0)


def test_003_17_19_the_heading_goes_before_what_is_embedded_and_the_content_stays_as_it_is() -> (
    None
):
    chunks = [
        chunk
        for chunk in chunk_text(DOCUMENT, strategy="two_stage")
        if chunk["is_contextually_enriched"]
    ]
    assert chunks
    for chunk in chunks:
        assert chunk["embed_text"] == f"{chunk['header_path'][-1]}\n{chunk['text']}"


@pytest.mark.parametrize("strategy", ALL)
def test_003_18_no_number_of_siblings_is_embedded_so_that_a_new_one_leaves_them_alone(
    strategy: str,
) -> None:
    before = chunk_text(DOCUMENT, strategy=strategy)
    after = chunk_text(DOCUMENT + "\n\n# Another\n\n" + prose(40, "sea"), strategy=strategy)
    texts = {chunk["embed_text"] for chunk in before[:-1]}
    assert texts <= {chunk["embed_text"] for chunk in after}
    assert after[0]["sibling_count"] == len(after) > len(before)


@pytest.mark.parametrize(("words", "level", "small"), [(60, "fine", True), (200, "fine", False)])
def test_003_20_25_granularity_and_small_size_go_by_tokens(
    words: int, level: str, *, small: bool
) -> None:
    chunk = chunk_text("word " * words)[0]
    assert (chunk["granularity"], chunk["below_typical_size"]) == (level, small)


def test_003_21_a_chunk_knows_its_position() -> None:
    ratios = [chunk["position"] for chunk in chunk_text(DOCUMENT)]
    assert ratios == sorted(ratios)
    assert ratios[-1] == 1.0


def test_003_23_a_chunk_says_whether_it_has_code_or_a_table() -> None:
    chunk = chunk_text("Words.\n\n- item\n  ```py\n  x\n  ```\n\n| a |\n|---|\n| 1 |\n")[0]
    assert (chunk["contains_code"], chunk["contains_table"], chunk["language"]) == (
        True,
        True,
        "py",
    )
    plain = chunk_text("Words.")[0]
    assert (plain["contains_code"], plain["contains_table"], plain["language"]) == (
        False,
        False,
        None,
    )


def test_003_24_the_language_is_that_of_the_fence_or_of_the_file() -> None:
    assert chunk_text("~~~Rust\nfn f() {}\n~~~")[0]["language"] == "rust"
    assert chunk_text("def f(): ...", path="a.py")[0]["language"] == "python"


@pytest.mark.parametrize(
    "text",
    [
        "# Empty\n\n## Section\n\n### Deep",
        "#\n#\n#",
        "one",
        "####### seven",
        "```\n```\n```",
        "| a\n|-\n",
    ],
)
@pytest.mark.parametrize("strategy", ALL)
def test_003_31_small_empty_and_malformed_texts_are_cut_without_loss(
    strategy: str, text: str
) -> None:
    assert without_blanks(joined(text, chunk_text(text, strategy=strategy))) == without_blanks(text)


def test_003_31_headings_six_deep_make_a_path_of_six() -> None:
    text = "\n\n".join(f"{'#' * n} H{n}" for n in range(1, 7)) + "\n\n" + prose(120)
    assert chunk_text(text)[-1]["header_path"] == [f"H{n}" for n in range(1, 7)]


def test_seed_003_32_limits_count_tokens_so_dense_text_has_shorter_chunks() -> None:
    table = "| a | b | c |\n|---|---|---|\n" + "\n".join(
        f"| {n} | {n * 7} | x{n} |" for n in range(300)
    )
    lengths = {
        name: max(len(chunk["text"]) for chunk in chunk_text(text))
        for name, text in (("prose", prose(300)), ("table", table))
    }
    assert lengths["table"] < lengths["prose"]


def test_003_32_tables_and_lists_are_cut_between_rows_and_items() -> None:
    table = "| name | value |\n|---|---|\n" + "\n".join(
        f"| row {n} | {prose(2)} |" for n in range(60)
    )
    assert all(
        re.search(r"\|$", chunk["text"]) and chunk["text"].startswith("| name")
        for chunk in chunk_text(table)
    )
    items = "\n".join(f"- item {n}: {prose(2)}" for n in range(60))
    assert all(chunk["text"].startswith("- item") for chunk in chunk_text(items))


def test_000_02_the_kind_of_a_file_decides_how_it_is_cut() -> None:
    text = "def f():\n    return 1\n\n\n# Not a heading of code\n" + "x = 1\n" * 80
    assert {tuple(chunk["header_path"]) for chunk in chunk_text(text, path="a.py")} <= {(), ("f",)}
    assert ("Not a heading of code",) in {
        tuple(chunk["header_path"]) for chunk in chunk_text(text, path="a.md")
    }


def test_001_14_the_core_of_ids_and_cuts_needs_no_package_but_the_hash() -> None:
    code = "import sys; import anchord.chunking.engine.anchored_cut; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {
        name
        for name in loaded
        if name.split(".")[0] in ("torch", "lancedb", "langchain", "numpy", "msgspec")
    }


def test_001_18_the_header_path_goes_with_every_chunk_of_its_section() -> None:
    chunks = chunk_text(DOCUMENT)
    assert all(
        chunk["header_path"] == ["Guide", "Use"] for chunk in chunks if "lake" in chunk["text"]
    )


def test_002_03_08_the_defaults_are_those_of_the_seed() -> None:
    semantic = STRATEGIES["semantic"]
    assert (
        semantic["max_chunk_tokens"],
        semantic["overlap_tokens"],
        semantic["min_chunk_tokens"],
    ) == (256, 32, 20)
    assert {"headers", "paragraph", "semantic", "sentences"} <= set(STRATEGIES)


def test_003_02_headings_of_all_levels_stay_in_the_text() -> None:
    text = "\n\n".join(f"{'#' * n} H{n}\n\nwords {n}" for n in range(1, 7))
    found = "\n".join(chunk["text"] for chunk in chunk_text(text, strategy="two_stage"))
    assert all(f"{'#' * n} H{n}" in found for n in range(1, 7))


def test_003_10_the_overlap_is_counted_in_tokens_of_the_model() -> None:
    chunks = chunk_text("unaffable " * 400, strategy="two_stage", overlap_tokens=30)
    repeated = [a["end_char"] - b["start_char"] for a, b in pairwise(chunks)]
    assert all(20 <= 3 * (characters / len("unaffable ")) <= 30 for characters in repeated)


def test_003_22_a_chunk_knows_how_many_siblings_it_has_and_how_deep_it_stands() -> None:
    chunks = chunk_text(DOCUMENT)
    assert {chunk["sibling_count"] for chunk in chunks} == {len(chunks)}
    assert max(chunk["depth"] for chunk in chunks) == 2


# 004, as far as it is about cutting


def test_004_02_04_05_20_recursive_joins_to_the_text_and_overlaps_by_up_to_280_characters() -> None:
    text = "\n\n".join(prose(9, f"w{n}x") for n in range(20))
    chunks = chunk_text(text, strategy="recursive", path="a.txt")
    overlaps = [a["end_char"] - b["start_char"] for a, b in pairwise(chunks)]
    assert all(0 < overlap <= 280 for overlap in overlaps)
    assert without_blanks(joined(text, chunks)) == without_blanks(text)
    assert all(len(chunk["text"]) <= 1_400 + 280 for chunk in chunks)


@pytest.mark.parametrize(
    "options",
    [{"max_chunk_tokens": 64}, {"overlap_chars": 5_000}, {"max_chars": 64, "overlap_chars": 64}],
    ids=str,
)
def test_004_03_an_overlap_larger_than_a_chunk_does_not_take_it_apart(
    options: dict[str, int],
) -> None:
    text = prose(400)
    sizes = [chunk["token_count"] for chunk in chunk_text(text, strategy="recursive", **options)]
    assert sum(sizes) / len(sizes) >= 15
