"""Text formats are cut at headings, listings, keys and rows; plain text at paragraphs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from anchord.chunking.chunker import split_into_chunks
from anchord.chunking.engine.layout import CountTokens
from anchord.chunking.formats.text_headings import (
    TextHeading,
    find_delimited_blocks,
    find_text_headings,
)
from anchord.chunking.plan import Plan
from anchord.core.types import Chunk, Document

Cutter = Callable[[str, str], list[Chunk]]
Prose = Callable[[int, int], str]


@pytest.fixture(scope="module")
def cut(count: CountTokens) -> Cutter:
    """Cut a text of a format."""
    return lambda text, form: split_into_chunks(
        Document(text=text, kind="text", language=form), Plan(), count, "file"
    )


HEADINGS: dict[str, tuple[str, str, list[tuple[int, str]]]] = {
    "rst": (
        "rst", "Title\n=====\n\nPart\n----\n\nwords\n\nOther\n-----\n\nDeep\n~~~~\n",
        [(1, "Title"), (2, "Part"), (2, "Other"), (3, "Deep")],
    ),
    "rst with lines above": ("rst", "=====\n Top\n=====\n\nPart\n====\n", [(1, "Top"), (2, "Part")]),
    "rst, too short a line": ("rst", "A long title\n---\n\nwords\n", []),
    "adoc": ("adoc", "= Title\n\n== Part\n\nwords\n\n=== Deep\n", [(1, "Title"), (2, "Part"), (3, "Deep")]),
    "adoc, a listing": ("adoc", "== Part\n\n----\n== no heading\n----\n\n== Other\n", [(2, "Part"), (2, "Other")]),
    "org": ("org", "* TODO Title\n** Part\nwords *bold*\n", [(1, "TODO Title"), (2, "Part")]),
    "org, a block": ("org", "* A\n#+BEGIN_SRC sh\n* no heading\n#+END_SRC\n* B\n", [(1, "A"), (1, "B")]),
    "html": ("html", "<h1 class='x'>A &amp; <b>B</b></h1>\n<p>words</p>\n  <H2>Part</H2>\n", [(1, "A & B"), (2, "Part")]),
    "yaml": (
        "yaml", "name: a\njobs:\n  test:\n    steps:\n      - deep: 1\n# no: key\n",
        [(1, "name"), (1, "jobs"), (2, "test"), (2, "steps")],
    ),
    "toml": ("toml", "a = 1\n[tool.ruff]\nb = [1]\n[[root]]\n", [(1, "tool.ruff"), (1, "root")]),
    "json": (
        "json", '{\n  "a": {\n    "b": "} {",\n    "c": {\n      "d": 1\n    }\n  },\n  "e": 2\n}\n',
        [(1, "a"), (2, "b"), (2, "c"), (1, "e")],
    ),
    "plain text": ("", "Title\n=====\n", []),
}  # fmt: skip


@pytest.mark.parametrize("case", HEADINGS)
def test_headings_are_found_with_level_and_title(case: str) -> None:
    form, text, wanted = HEADINGS[case]
    assert [
        (mark.level, mark.title) for mark in find_text_headings(text.split("\n"), form)
    ] == wanted


def test_a_heading_with_lines_above_and_below_is_one() -> None:
    assert find_text_headings(["===", "Top", "==="], "rst") == [TextHeading(0, 3, 1, "Top")]


def test_listings_are_found() -> None:
    assert find_delimited_blocks(
        ["a", "----", "x", "....", "----", "```sh", "y", "```", ""], "adoc"
    ) == [(1, 5), (5, 8)]
    assert find_delimited_blocks(["a", "#+begin_src", "x", "#+end_src", ""], "org") == [(1, 4)]
    assert find_delimited_blocks(["```", "a", "```"], "") == []


SECTIONS = {
    "rst": lambda title, words: f"{title}\n{'=' * len(title)}\n\n{words}\n\n",
    "adoc": lambda title, words: f"== {title}\n\n{words}\n\n",
    "org": lambda title, words: f"* {title}\n{words}\n\n",
    "html": lambda title, words: f"<h2>{title}</h2>\n<p>{words}</p>\n\n",
    "toml": lambda title, words: f'[{title}]\ntext = "{words}"\n\n',
    "yaml": lambda title, words: f"{title}:\n  text: {words}\n",
}


@pytest.mark.parametrize("form", SECTIONS)
def test_sections_are_chunks_with_their_title_and_an_edit_reaches_one(
    form: str, cut: Cutter, prose: Prose
) -> None:
    titles = [f"part{number}" for number in range(12)]
    before = cut(
        "".join(SECTIONS[form](title, prose(100, n)) for n, title in enumerate(titles)), form
    )
    assert [piece.header_path for piece in before if len(piece.header_path) == 1] or form == "yaml"
    assert {piece.header_path[0] for piece in before if piece.header_path} == set(titles)
    after = cut(
        "".join(
            SECTIONS[form](title, prose(100, n + (n == 5) * 99)) for n, title in enumerate(titles)
        ),
        form,
    )
    assert len({piece.chunk_id for piece in after} - {piece.chunk_id for piece in before}) == 1


def test_a_listing_that_fits_is_whole(cut: Cutter, prose: Prose) -> None:
    listing = "----\n" + "\n\n".join(f"value_{n} = {n}" for n in range(10)) + "\n----"
    chunks = cut(f"== Part\n\n{prose(150, 1)}\n\n{listing}\n\n{prose(150, 2)}\n", "adoc")
    assert any(listing in piece.content for piece in chunks)


@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_each_part_of_a_table_begins_with_the_names_of_its_columns(
    form: str, cut: Cutter, prose: Prose
) -> None:
    sign = "," if form == "csv" else "\t"
    rows = [sign.join([f"row{n}", prose(4, n), prose(4, 900 + n)]) for n in range(200)]
    head = sign.join(["name", "first", "second"])
    chunks = cut("\n".join([head, *rows]), form)
    assert len(chunks) > 5
    assert all(piece.content.split("\n")[0] == head for piece in chunks)
    assert [row for piece in chunks for row in piece.content.split("\n")[1:]] == rows


def test_plain_text_is_cut_between_paragraphs_and_lists_between_items(
    cut: Cutter, prose: Prose
) -> None:
    paragraphs = [f"{prose(60, n)}\n{prose(60, 500 + n)}" for n in range(20)]
    assert all(
        piece.content in "\n\n".join(paragraphs) for piece in cut("\n\n".join(paragraphs), "")
    )
    starts = {piece.content.split("\n")[0] for piece in cut("\n\n".join(paragraphs), "")}
    assert starts <= {paragraph.split("\n")[0] for paragraph in paragraphs}
    items = "\n".join(f"- {prose(20, n)}\n  {prose(20, 700 + n)}" for n in range(60))
    assert all(piece.content.startswith("- ") for piece in cut(items, ""))


def test_json_is_cut_before_keys(cut: Cutter, prose: Prose) -> None:
    text = (
        "{\n"
        + ",\n".join(f'  "key{n}": {{\n    "text": "{prose(60, n)}"\n  }}' for n in range(30))
        + "\n}\n"
    )
    chunks = cut(text, "json")
    assert len(chunks) > 8
    assert all(piece.content.lstrip().startswith(('"key', "{")) for piece in chunks)
    assert {path for piece in chunks for path in piece.header_path} <= {
        *(f"key{n}" for n in range(30)),
        "text",
    }


@pytest.mark.parametrize(
    "hidden",
    [
        "<!-- <h2>no</h2> -->",
        "<script>let x = '<h2>no</h2>'</script>",
        "<textarea>\n<h2>no</h2></textarea>",
    ],
)
def test_a_heading_that_no_reader_of_html_sees_is_none(hidden: str) -> None:
    found = find_text_headings(
        f"<h1>One</h1>\n{hidden}\n<h2\n class=a>\n Two\n lines</h2>\n<p>x".split("\n"), "html"
    )
    assert [(mark.level, mark.title) for mark in found] == [(1, "One"), (2, "Two lines")]


@pytest.mark.parametrize(
    "text",
    [
        "<!--" * 50_000,
        "-->" + "<!--" * 50_000,
        "<h1>" * 50_000,
        "<script>" * 30_000,
        "<h1 " * 50_000,
    ],
)
def test_hostile_html_is_read_in_bounded_time(text: str) -> None:
    assert find_text_headings([text], "html") == []


def test_tables_of_toml_are_not_nested_in_those_before_them(cut: Cutter) -> None:
    rows = "\n".join(f"key{n} = 'some words to fill a chunk with {n}'" for n in range(20))
    chunks = cut(f"[a]\n{rows}\n\n[c.d]\n{rows}\n", "toml")
    assert {piece.header_path for piece in chunks} == {("a",), ("c.d",)}
