"""The numbered edge cases of the chunker's specification, one fact a test, with the tokenizer that is shipped.

Cases 1 to 19 are about structure and look at the outline; the rest are about sizes and identity and look at chunks.
Where a case names several inputs it has several tests. Nothing is timed: counts say the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from anchord.chunking.chunker import split_into_chunks
from anchord.chunking.engine.layout import NO_CUT, CountTokens, Limits, Sizing
from anchord.chunking.formats.markdown import build_markdown_layout
from anchord.chunking.formats.markdown_outline import parse_outline
from anchord.chunking.plan import Plan
from anchord.core.types import Chunk, Document
from anchord.sources.documents.normalize import normalize_text
from anchord.sources.documents.parse import parse_document

Cutter = Callable[[str], list[Chunk]]
Prose = Callable[[int, int], str]

_BODY = Limits().body
_WINDOW = Limits().window


def _headings(text: str) -> list[tuple[int, int, str]]:
    """Return (1-based line, level, title) of each heading."""
    return [
        (heading.line + 1, heading.level, heading.title)
        for heading in parse_outline(text.split("\n")).headings
    ]


def _blocks(text: str, kind: str) -> list[tuple[int, int]]:
    """Return the 1-based, inclusive lines of each top-level block of a kind."""
    return [
        (block.first_line + 1, block.end_line)
        for block in parse_outline(text.split("\n")).blocks
        if block.kind == kind
    ]


def _fences(text: str) -> list[tuple[int, int]]:
    return [
        (fence.first_line + 1, fence.end_line) for fence in parse_outline(text.split("\n")).fences
    ]


def _vectors(chunks: list[Chunk]) -> set[str]:
    return {piece.embed_text for piece in chunks}


def _ids(chunks: list[Chunk]) -> set[str]:
    return {piece.chunk_id for piece in chunks}


def _section(title: str, body: str) -> str:
    return f"## {title}\n\n{body}\n\n"


# Structure


def test_case_01_front_matter_is_a_block_and_no_setext_heading() -> None:
    text = "---\ntitle: Foo\ntags: [a]\n---\n\n# Real\n\nbody"
    assert _headings(text) == [(6, 1, "Real")]
    assert _blocks(text, "front_matter") == [(1, 4)]


def test_case_02_setext_headings_are_headings() -> None:
    assert _headings("Title\n=====\n\nIntro\n\nSub\n---\n\nbody") == [
        (1, 1, "Title"),
        (6, 2, "Sub"),
    ]


def test_case_02_a_setext_heading_is_never_cut_from_its_underline(count: CountTokens) -> None:
    layout = build_markdown_layout(
        "Title\n=====\n\nIntro\n\nSub\n---\n\nbody", Sizing(Limits(), count)
    )
    assert layout.cut_strengths[1] == layout.cut_strengths[6] == NO_CUT


def test_case_03_a_comment_in_a_fence_is_no_heading() -> None:
    assert _headings("# A\n\n```sh\n# not a heading\n```") == [(1, 1, "A")]


def test_case_04_a_tilde_fence_may_hold_backticks() -> None:
    text = "# A\n\n~~~md\n```\n# no\n```\n~~~\n\n## B\nx"
    assert _headings(text) == [(1, 1, "A"), (9, 2, "B")]
    assert _fences(text) == [(3, 7)]


def test_case_05_a_longer_fence_may_hold_a_shorter_one() -> None:
    text = "# A\n\n````md\n```\n# no\n```\n````\n## B"
    assert _headings(text) == [(1, 1, "A"), (8, 2, "B")]
    assert _fences(text) == [(3, 7)]


def test_case_06_an_indented_fence_in_an_item_is_a_fence() -> None:
    text = "- item\n\n    ```py\n    # c\n    ```\n\n# H"
    assert _headings(text) == [(7, 1, "H")]
    assert _fences(text) == [(3, 5)]


def test_case_07_a_fence_that_is_never_closed_is_text() -> None:
    text = "# A\n\n```py\ncode\n\n# still code"
    assert _headings(text) == [(1, 1, "A"), (6, 1, "still code")]
    assert _fences(text) == []


def test_case_08_a_comment_in_indented_code_is_no_heading() -> None:
    assert _headings("# A\n\n    # code\n\ntext") == [(1, 1, "A")]


def test_case_09_only_the_lone_hash_is_a_heading_and_it_is_empty() -> None:
    text = "#hashtag\n\n#\n\n####### seven"
    assert _headings(text) == [(3, 1, "")]
    assert _blocks(text, "paragraph_open") == [(1, 1), (5, 5)]


def test_case_10_dashes_after_a_blank_line_are_a_rule() -> None:
    text = "para\n\n---\n\npara2"
    assert _headings(text) == []
    assert _blocks(text, "hr") == [(3, 3)]


def test_case_11_a_table_is_no_setext_heading() -> None:
    text = "a | b\n--- | ---\n1 | 2"
    assert _headings(text) == []
    assert _blocks(text, "table_open") == [(1, 3)]


def test_case_12_a_heading_in_a_comment_is_hidden() -> None:
    assert _headings("<!--\n# hidden\n-->\n\n# Shown") == [(5, 1, "Shown")]


def test_case_13_closing_hashes_are_no_part_of_a_title() -> None:
    assert _headings("## Foo ##\n\n## Bar #baz") == [(1, 2, "Foo"), (3, 2, "Bar #baz")]


def test_case_14_a_quoted_heading_is_no_section() -> None:
    assert _headings("> # quoted\n\n# Real") == [(3, 1, "Real")]


def test_case_15_a_heading_in_a_list_is_no_section() -> None:
    assert _headings("- # in list\n\n# Real") == [(3, 1, "Real")]


def test_case_16_only_a_line_feed_ends_a_line() -> None:
    assert _headings("# A\n\nfoo\u2028# no\x0cbar\n\n## B") == [(1, 1, "A"), (5, 2, "B")]


def test_case_16_chunks_count_lines_by_line_feeds(markdown: Cutter, prose: Prose) -> None:
    body = prose(80, 1)
    chunks = markdown(f"# A\n\nfoo\u2028x\x0c\x85bar {body}\n\n## B\n\n{prose(80, 2)}")
    assert [(piece.start_line, piece.end_line) for piece in chunks] == [(1, 3), (5, 7)]


def test_case_17_three_backticks_within_a_line_open_no_fence() -> None:
    text = "# A\n\n``` not a fence ``` text\n\n## B"
    assert _headings(text) == [(1, 1, "A"), (5, 2, "B")]
    assert _fences(text) == []


def test_case_18_an_html_block_of_pre_goes_on_over_blank_lines() -> None:
    assert _headings("<pre>\n# x\n\n# heading? (pre continues)\n</pre>\n\n# H") == [(7, 1, "H")]


def test_case_19_a_blank_line_ends_an_html_block_of_details() -> None:
    assert _headings("<details>\n\n# inside\n\n</details>") == [(3, 1, "inside")]


@pytest.mark.parametrize("line_end", ["\r\n", "\r"])
def test_case_20_line_ends_change_no_chunk(line_end: str, count: CountTokens, prose: Prose) -> None:
    text = "---\na: b\n---\n\n# T\n\n" + "".join(
        _section(f"S{i}", f"{prose(60, i)}\n{prose(60, i + 50)}\n\n```py\nx = {i}\n\n\ny\n```")
        for i in range(6)
    )
    plain = parse_document(text.encode(), "a.md")
    other = parse_document(text.replace("\n", line_end).encode(), "a.md")
    assert isinstance(plain, Document)
    assert isinstance(other, Document)
    assert (
        split_into_chunks(plain, Plan(), count, "k")
        == split_into_chunks(other, Plan(), count, "k")
        != []
    )


# Sizes


def test_case_21_a_line_that_counts_as_one_token_is_still_cut(markdown: Cutter) -> None:
    line = "x" * 200_000
    chunks = markdown(line)
    assert "".join(piece.content for piece in chunks) == line
    assert 110 <= len(chunks) <= 140
    assert max(len(piece.content) for piece in chunks) <= 8 * _BODY


def test_case_22_equal_items_share_vectors_and_not_ids(markdown: Cutter) -> None:
    chunks = markdown("\n".join(["- item same text here"] * 20_000))
    assert 400 <= len(chunks) <= 1000
    assert len(_ids(chunks)) == len(chunks)
    assert (
        len(_vectors(chunks)) <= _BODY // 5
    )  # an item weighs 5, and a chunk of n items is like any other of n


def test_case_23_a_line_typed_into_100_kb_without_headings_embeds_at_most_four_chunks(
    markdown: Cutter, prose: Prose
) -> None:
    lines = [prose(12, i) for i in range(1250)]
    before = markdown("\n".join(lines))
    assert sum(map(len, lines)) > 90_000
    assert 75 <= len(before) <= 150
    assert max(piece.token_count for piece in before) <= _BODY
    known = _vectors(before)
    for at in range(5, len(lines), 50):
        after = markdown(
            "\n".join([*lines[:at], "A line that somebody has just typed.", *lines[at:]])
        )
        assert len(_vectors(after) - known) <= 4
        assert len(_ids(after) - _ids(before)) <= 5


def test_case_24_each_part_of_a_fence_is_a_fence_of_whole_lines(markdown: Cutter) -> None:
    code = [f"    value_{i} = compute({i}, other={i + 1})" if i % 6 else "" for i in range(1, 599)]
    lines = ["```python", *code, "```"]
    chunks = markdown("\n".join(lines))
    assert len(chunks) > 20
    for piece in chunks:
        assert piece.content.startswith("```python\n")
        assert piece.content.endswith("\n```")
        inner = piece.content.removeprefix("```python\n").removesuffix("\n```").split("\n")
        assert [line for line in inner if line] == [
            line for line in lines[piece.start_line - 1 : piece.end_line] if "value" in line
        ]


def test_case_24_blank_lines_are_where_long_code_is_cut_first(markdown: Cutter) -> None:
    code = [f"    value_{i} = compute({i}, other={i + 1})" if i % 6 else "" for i in range(1, 599)]
    lines = ["```python", *code, "```"]
    anchors = {piece.anchor_line for piece in markdown("\n".join(lines))} - {1}
    assert len(anchors) > 5
    assert sum(bool(lines[anchor - 2]) for anchor in anchors) <= len(anchors) // 10


def test_case_25_each_part_of_a_table_is_a_table_of_whole_rows(
    markdown: Cutter, prose: Prose
) -> None:
    head = ["| name | value | note |", "|---|---|---|"]
    rows = [f"| {prose(2, i)} | {i} | {prose(6, 1000 + i)} |" for i in range(500)]
    chunks = markdown("\n".join([*head, *rows]))
    assert len(chunks) > 20
    assert all(piece.content.split("\n")[:2] == head for piece in chunks)
    assert [row for piece in chunks for row in piece.content.split("\n")[2:]] == rows


def test_case_26_a_long_line_is_cut_between_sentences(markdown: Cutter, prose: Prose) -> None:
    line = " ".join(f"{prose(9, i).capitalize()}." for i in range(50))
    chunks = markdown(line)
    assert len(line) > 3000
    assert "".join(piece.content for piece in chunks) == line
    assert all(piece.content.rstrip().endswith(".") for piece in chunks)


# Identity


def test_case_27_equal_sections_are_two_rows_of_one_vector(markdown: Cutter, prose: Prose) -> None:
    notes = _section("Notes", prose(90, 1))
    chunks = markdown(
        f"# Doc\n\n{prose(90, 900)}\n\n{notes}{_section('Other', prose(90, 2))}{notes}"
    )
    twins = [piece for piece in chunks if piece.content.startswith("## Notes")]
    assert len(twins) == 2
    assert len(_ids(twins)) == 2
    assert len(_vectors(twins)) == 1


def test_case_28_a_renamed_h1_gives_new_ids_below_and_one_vector(
    markdown: Cutter, prose: Prose
) -> None:
    sections = "".join(
        _section(f"Part {i}", f"{prose(90, i)}\n\n{prose(90, 100 + i)}") for i in range(8)
    )
    before = markdown(f"# Old name\n\n{prose(90, 900)}\n\n{sections}")
    after = markdown(f"# New name\n\n{prose(90, 900)}\n\n{sections}")
    assert len(before) == len(after) >= 9
    assert not _ids(before) & _ids(after)
    assert len(_vectors(after) - _vectors(before)) == 1


def test_case_29_two_swapped_sections_keep_their_ids_and_vectors(
    markdown: Cutter, prose: Prose
) -> None:
    parts = [_section(f"Part {i}", f"{prose(90, i)}\n\n{prose(90, 100 + i)}") for i in range(6)]
    swapped = [*parts[:2], parts[4], parts[3], parts[2], *parts[5:]]
    before, after = (
        markdown(f"# Doc\n\n{prose(90, 900)}\n\n{''.join(order)}") for order in (parts, swapped)
    )
    assert _ids(before) == _ids(after)
    assert _vectors(before) == _vectors(after)


def test_case_30_a_line_at_the_top_gives_at_most_two_new_ids(
    markdown: Cutter, prose: Prose
) -> None:
    text = f"# Doc\n\n{prose(60, 900)}\n\n" + "".join(
        _section(f"Part {i}", prose(150, i)) for i in range(20)
    )
    before, after = markdown(text), markdown(f"A new first line.\n\n{text}")
    assert 1 <= len(_ids(after) - _ids(before)) <= 2


def test_case_31_more_blank_lines_between_blocks_embed_nothing(
    markdown: Cutter, prose: Prose
) -> None:
    text = "# Doc\n\n" + "".join(
        _section(f"Part {i}", f"{prose(50, i)}\n\n{prose(70, 99 + i)}") for i in range(9)
    )
    assert _vectors(markdown(text.replace("\n\n", "\n\n\n\n"))) == _vectors(markdown(text))


def test_case_31_a_blank_line_of_blanks_embeds_nothing(markdown: Cutter, prose: Prose) -> None:
    text = f"{prose(100, 1)}\n\n{prose(100, 2)}"
    assert _vectors(markdown(text.replace("\n\n", "\n   \n"))) == _vectors(markdown(text))


def test_case_31_blanks_at_a_line_end_embed_nothing(markdown: Cutter, prose: Prose) -> None:
    text = f"{prose(99, 1)}\n\n{prose(99, 2)}\n\nresponsibilities"  # 198 tokens, and 16 characters weigh 2
    assert _vectors(markdown(text + " ")) == _vectors(markdown(text))


def test_case_31_blank_lines_within_a_fence_are_content(markdown: Cutter) -> None:
    assert _vectors(markdown("```\na\n\nb\n```")) != _vectors(markdown("```\na\n\n\nb\n```"))


@pytest.mark.parametrize("text", ["", "\n\n", "  \n\t\n", "\n"])
def test_case_32_a_text_of_blanks_has_no_chunks(text: str, markdown: Cutter) -> None:
    assert markdown(text) == []


def test_case_33_a_heading_stays_with_the_sub_heading_that_follows_it(
    markdown: Cutter, prose: Prose
) -> None:
    text = f"{prose(150, 1)}\n\n# A\n\n## B\n\n{prose(150, 2)}\n\n# C\n\n## D\n\n### E\n\n{prose(190, 3)}"
    chunks = markdown(text)
    assert [piece.content.split("\n")[0] for piece in chunks[1:]] == ["# A", "# C"]


def test_case_34_a_heading_of_400_tokens_gives_a_context_line_of_at_most_32(
    markdown: Cutter, count: CountTokens, prose: Prose
) -> None:
    below = f"{prose(150, 2)}\n\n{prose(150, 3)}"
    chunks = [piece for words in (60, 400) for piece in markdown(f"# {prose(words, 1)}\n\n{below}")]
    contexts = [
        piece.embed_text.removesuffix(piece.content).rstrip("\n")
        for piece in chunks
        if piece.start_line > 1
    ]
    assert max(count(contexts)) == 32
    assert max(piece.token_count for piece in chunks) <= _WINDOW


def test_case_34_a_heading_without_blanks_is_cut_to_32_tokens_as_well(
    markdown: Cutter, count: CountTokens, prose: Prose
) -> None:
    title = "見出しが長い文書の例" * 5
    chunks = markdown(f"# {title}\n\n{prose(150, 2)}\n\n{prose(150, 3)}")
    context = chunks[-1].embed_text.removesuffix(chunks[-1].content).rstrip("\n")
    assert context
    assert title.startswith(context)
    assert count([context])[0] <= 32


def test_case_28_a_renamed_heading_embeds_three_at_most_whatever_stands_directly_under_it(
    markdown: Cutter, prose: Prose
) -> None:
    body = "\n\n".join(prose(90, i) for i in range(40))
    before, after = markdown(f"# Old name\n\n{body}"), markdown(f"# New name\n\n{body}")
    assert len(before) > 10
    assert 1 <= len(_vectors(after) - _vectors(before)) <= 3


def test_case_34_a_header_path_of_300_tokens_is_kept_whole_and_not_embedded(
    markdown: Cutter, prose: Prose
) -> None:
    titles = [prose(50, level) for level in range(6)]
    heads = "\n\n".join(f"{'#' * (level + 1)} {title}" for level, title in enumerate(titles))
    chunks = markdown(f"{heads}\n\n" + "\n\n".join(prose(90, 10 + i) for i in range(6)))
    assert chunks[-1].header_path == tuple(titles)
    assert max(piece.token_count for piece in chunks) <= _WINDOW


@pytest.mark.parametrize("lone", [b"\xed\xa0\x80", b"\xed\xb0\x80", b"\xed\xa0\xbd"])
def test_case_35_a_lone_surrogate_in_utf_8_is_replaced(lone: bytes, count: CountTokens) -> None:
    document = parse_document(
        b"# Title\n\nsome words before " + lone + b" and many words after it, to be text", "a.md"
    )
    assert isinstance(document, Document)
    assert "before \ufffd" in document.text
    assert len(split_into_chunks(document, Plan(), count)) == 1


def test_case_35_a_lone_surrogate_in_utf_16_is_replaced(count: CountTokens) -> None:
    document = parse_document(
        "\ufeff# Title\n\nwords \ud800 words".encode("utf-16-le", "surrogatepass"), "a.md"
    )
    assert isinstance(document, Document)
    assert document.text.startswith("# Title\n\nwords \ufffd")
    assert len(split_into_chunks(document, Plan(), count)) == 1


def test_case_35_a_surrogate_decoded_from_json_is_replaced(markdown: Cutter) -> None:
    assert normalize_text("a \ud83d b \udc00") == "a \ufffd b \ufffd"
    assert len(markdown(normalize_text("a \ud83d b"))) == 1


def test_case_35_nul_is_replaced(count: CountTokens) -> None:
    document = parse_document(
        b"# Title\n\nsome words before \0 and many words after it, to be text", "a.md"
    )
    assert isinstance(document, Document)
    assert "\0" not in document.text
    assert "before \ufffd and" in document.text
    assert len(split_into_chunks(document, Plan(), count)) == 1


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_case_35_a_byte_order_mark_is_no_part_of_the_first_line(
    encoding: str, count: CountTokens
) -> None:
    text = "---\na: b\n---\n\n# Title\n\nbody"
    plain, marked = (
        parse_document(text.encode(), "a.md"),
        parse_document(text.encode(encoding), "a.md"),
    )
    assert isinstance(plain, Document)
    assert isinstance(marked, Document)
    assert replace(plain, problem=None) == replace(marked, problem=None)
    assert split_into_chunks(plain, Plan(), count, "k") == split_into_chunks(
        marked, Plan(), count, "k"
    )


@pytest.mark.parametrize("before", ["> ", "- ", "1. ", "> - "])
def test_a_fence_within_a_quote_or_an_item_that_does_not_fit_is_whole_where_it_fits(
    before: str, markdown: Cutter, prose: Prose
) -> None:
    inner = [f"{prose(12, i)}" for i in range(14)]
    inner += ["", "```py", *(f"x{i} = {i}" for i in range(20)), "```", ""] + [
        f"{prose(12, 90 + i)}" for i in range(14)
    ]
    rest = "".join(" " if mark != ">" else mark for mark in before)
    lines = [before + inner[0], *(rest + line for line in inner[1:])]
    first, last = lines.index(rest + "```py") + 1, lines.index(rest + "```") + 1
    chunks = markdown("\n".join(lines))
    assert len(chunks) > 1
    assert any(piece.start_line <= first and last <= piece.end_line for piece in chunks)


@pytest.mark.parametrize(
    ("line", "opening"),
    [("> ```py", "> ```py"), ("- ```py", "  ```py"), ("   ```py x", "   ```py")],
)
def test_a_part_of_a_fence_repeats_its_opening_with_what_stands_before_it(
    line: str, opening: str, markdown: Cutter
) -> None:
    rest = "> " if line.startswith(">") else "  "
    chunks = markdown(
        "\n".join([line, *(f"{rest}value_{i} = compute({i})" for i in range(120)), f"{rest}```"])
    )
    assert len(chunks) > 2
    assert {piece.content.split("\n")[0] for piece in chunks[1:]} == {opening}


# Promises that the cases rest on, at the inputs that strain them


def test_a_long_paragraph_over_dashes_stays_within_the_window(
    markdown: Cutter, prose: Prose
) -> None:
    """It is a setext heading of many lines (case 2), which is never cut between its lines."""
    text = "\n".join(prose(4, i) for i in range(100)) + "\n---\n\nbody"
    assert max(piece.token_count for piece in markdown(text)) <= _WINDOW


def test_a_long_paragraph_over_dashes_leaves_the_other_chunks_alone(
    markdown: Cutter, prose: Prose
) -> None:
    text = "# A\n\n" + "".join(_section(f"Part {i}", prose(150, i)) for i in range(10))
    odd = "\n".join(prose(14, 100 + i) for i in range(20)) + "\n---\n\nend"
    assert len(_vectors(markdown(text + odd)) & _vectors(markdown(text))) >= 9


def test_a_word_of_hangul_and_slashes_stays_within_the_window(markdown: Cutter) -> None:
    """A syllable is up to three tokens, so 200 characters without a blank are up to 400."""
    assert max(piece.token_count for piece in markdown("한/" * 100)) <= _WINDOW


def test_a_fence_with_a_long_first_word_of_info_stays_within_the_window(
    markdown: Cutter, prose: Prose
) -> None:
    info = "js{" + ",".join(map(str, range(1, 200))) + "}"
    code = "\n".join(prose(8, i) for i in range(100))
    assert max(piece.token_count for piece in markdown(f"```{info}\n{code}\n```")) <= _WINDOW


@pytest.mark.parametrize("between", ["", "   "])
def test_a_cut_between_a_heading_and_its_text_is_a_last_resort(
    between: str, count: CountTokens, prose: Prose
) -> None:
    text = f"# T\n{between}\n" + "\n".join(prose(20, i) for i in range(15))
    layout = build_markdown_layout(text, Sizing(Limits(), count))
    assert layout.cut_strengths[2] == 1


def test_chunks_follow_one_another(markdown: Cutter, prose: Prose) -> None:
    chunks = markdown("".join(_section(f"Part {i}", prose(150, i)) for i in range(5)))
    assert all(one.end_line < other.start_line for one, other in pairwise(chunks))
