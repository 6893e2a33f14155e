"""Questions generated from documents: sections, anchors, and the sentences of links."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

import pytest
from documents import documents
from hypothesis import given
from hypothesis import strategies as st

from anchord.chunking.formats.markdown import find_headings
from anchord.chunking.formats.rendered_text import strip_markdown
from anchord.search.evaluation.questions import (
    HEADING,
    LINK,
    EvaluationQuestion,
    Section,
    generate_questions,
    sections_of,
    slug,
)
from anchord.sources.documents.normalize import normalize_text

TEA = "# All about drinks\n\n## Make tea\n\nBoil water.\n\n## Other things\n\nNothing.\n"
ASKS = "Whoever is thirsty is told of it"
USAGE = "# Page\n\n## Usage\n\nLike so.\n"


def links_of(texts: Mapping[str, str]) -> list[EvaluationQuestion]:
    return [question for question in generate_questions(texts) if question.kind == LINK]


def asked(text: str, target: str = TEA) -> list[str]:
    """Return the questions that the links of a document give for `b.md`."""
    return [question.text for question in links_of({"a.md": text, "b.md": target})]


def reached(link: str, texts: Mapping[str, str], path: str = "a.md") -> list[tuple[str, str]]:
    """Return (path, title) of the target of a link."""
    found = links_of({path: f"{ASKS} {link} in full.\n\n[a page]: b.md#usage\n", **texts})
    return [(question.answer_section.path, question.answer_section.title) for question in found]


# Sections


def sections(text: str) -> list[Section]:
    return list(sections_of("a.md", text))


@given((st.text() | documents).map(normalize_text))
def test_a_section_begins_at_its_heading_and_ends_before_the_next_of_its_level_or_above(
    text: str,
) -> None:
    lines, found = text.count("\n") + 1, find_headings(text)
    made = sections(text)
    assert [section.first_line for section in made] == [heading.line + 1 for heading in found]
    for number, section in enumerate(made):
        assert 1 <= section.first_line <= section.last_line <= lines
        inside = [
            heading
            for heading in found
            if section.first_line < heading.line + 1 <= section.last_line
        ]
        assert all(heading.level > found[number].level for heading in inside)
        follower = next(
            (heading for heading in found if heading.line + 1 == section.last_line + 1), None
        )
        assert section.last_line == lines or (follower and follower.level <= found[number].level)


@given((st.text() | documents).map(normalize_text))
def test_two_sections_are_apart_or_one_is_within_the_other(text: str) -> None:
    made = sections(text)
    for one in made:
        for other in made:
            lines, others = (
                set(range(each.first_line, each.last_line + 1)) for each in (one, other)
            )
            assert lines <= others or others <= lines or not lines & others


@given((st.text() | documents).map(normalize_text))
def test_every_line_from_the_first_heading_on_is_in_a_section(text: str) -> None:
    made = sections(text)
    held = {line for section in made for line in range(section.first_line, section.last_line + 1)}
    assert held == (set(range(made[0].first_line, text.count("\n") + 2)) if made else set())


def test_a_section_holds_the_sections_below_it() -> None:
    text = "intro\n\n# One\n\nx\n\n## Two\n\ny\n\n# Three\n\nz"
    assert [(each.title, each.first_line, each.last_line) for each in sections(text)] == [
        ("One", 3, 10),
        ("Two", 7, 10),
        ("Three", 11, 13),
    ]


def test_what_looks_like_a_heading_in_a_fence_begins_no_section() -> None:
    assert [each.title for each in sections("# One\n\n```sh\n# not this\n```\n")] == ["One"]


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [("## Usage {#how-to}", "how-to"), ("## Usage {/*how-to*/}", "how-to"), ('## <a id="how-to"></a>Usage', "how-to"),
     ('## Usage <a name="how_to">', "how_to"), ("Usage {#how-to}\n-----", "how-to")],
)  # fmt: skip
def test_an_author_gives_a_section_its_anchor_and_the_title_is_without_it(
    heading: str, anchor: str
) -> None:
    (section,) = sections(heading)
    assert (section.title, anchor in section.anchors, "usage" in section.anchors) == (
        "Usage",
        True,
        True,
    )


# Anchors


@pytest.mark.parametrize(
    ("title", "anchor"),
    [
        ("Usage", "usage"),
        ("Getting Started", "getting-started"),
        ("What's new?", "whats-new"),
        ("Hello, World!", "hello-world"),
        ("A & B", "a--b"),
        ("A — B", "a--b"),
        ("A - B", "a---b"),
        ("C++", "c"),
        ("v1.2.3", "v123"),
        ("foo/bar", "foobar"),
        ("100% sure", "100-sure"),
        ("--flag and more", "--flag-and-more"),
        ("Über uns", "über-uns"),
        ("日本語 テスト", "日本語-テスト"),
        ("Привет, мир", "привет-мир"),
        ("**Bold** and *not*", "bold-and-not"),
        ("`code` here", "code-here"),
        ("[A link](x.md) here", "a-link-here"),
        ("[A link](x.md#y) here", "a-link-here"),
        ("<b>Bold</b> tag", "bold-tag"),
        ("Already-with-hyphens", "already-with-hyphens"),
        ("1. Introduction", "1-introduction"),
        ("2) Setup", "2-setup"),
        ("snake_case function", "snake_case-function"),
        ("an _ underscore", "an-_-underscore"),
        ("`__init__`", "__init__"),
        ("`Vec<T>` methods", "vect-methods"),
        ("2 * 3", "2--3"),
        ("🎉 Party", "-party"),
        ("🎉-🎉 Party", "--party"),
        ("हिन्दी भाषा", "हिन्दी-भाषा"),
        ("Q&amp;A", "qa"),
        (r"a\_b", "a_b"),
        ("a period.txt", "a-periodtxt"),
        ("apostrophe’s end", "apostrophes-end"),  # noqa: RUF001
        ("I ♥ unicode", "i--unicode"),
        ("en–dash", "endash"),  # noqa: RUF001
        ("f(x, g [, h])", "fx-g--h"),
        (":smile: - a gemoji", "smile---a-gemoji"),
        ("Chapter Ⅳ", "chapter-ⅳ"),
        ("x² and ½", "x-and-"),
        ("a ‿ b", "a-‿-b"),
    ],
)
def test_a_slug_is_the_anchor_that_github_gives(title: str, anchor: str) -> None:
    assert slug(title) == anchor


@given(st.text())
def test_a_slug_is_one_word_in_small_letters(title: str) -> None:
    anchor = slug(title)
    assert " " not in anchor
    assert anchor == anchor.lower()


# Words of a line


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("A **bold** and an *odd* `name`", "A bold and an odd name"),
        ("See [the text](a.md#b) for it", "See the text for it"),
        ('See [the text](a.md "Title") for it', "See the text for it"),
        ("See [[Page]] and [[Page|shown]]", "See Page and shown"),
        ("See [[Page#Part]] and [[Page#Part|shown]]", "See Part and shown"),
        ("many   blanks\nand lines", "many blanks and lines"),
        ("Set `max_chunk_tokens` first", "Set max_chunk_tokens first"),
        ("Set max_chunk_tokens first", "Set max_chunk_tokens first"),
        ("A `Vec<T>` of them", "A Vec<T> of them"),
        ("if a < b and c > d", "if a < b and c > d"),
        ("this is 2 * 3", "this is 2 * 3"),
        ("See ![a picture](a.png) of it", "See a picture of it"),
        ("Fish &amp; chips", "Fish & chips"),
        ("", ""),
    ],
)
def test_plain_words_are_those_that_a_reader_sees(line: str, words: str) -> None:
    assert strip_markdown(line) == words


# Questions from links


@pytest.mark.parametrize(
    ("path", "link", "target"),
    [
        ("a.md", "[so](b.md#usage)", "b.md"),
        ("a.md", "[so](./b.md#usage)", "b.md"),
        ("a.md", '[so](b.md#usage "A title")', "b.md"),
        ("a.md", "[so](b.md#Usage)", "b.md"),
        ("a.md", "[so](B.md#usage)", "b.md"),
        ("a.md", "[so](b#usage)", "b.md"),
        ("a.md", "[so](b.html#usage)", "b.md"),
        ("a.md", "[so](b/#usage)", "b.md"),
        ("a.md", "[so](x/y.md#usage)", "x/y.md"),
        ("x/a.md", "[so](y.md#usage)", "x/y.md"),
        ("a.md", "[so](<b.md#usage>)", "b.md"),
        ("a.md", "[so](b.md#usage 'A title')", "b.md"),
        ("a.md", "[it is\nso](b.md#usage)", "b.md"),
        ("a.md", "[`a[0]`](b.md#usage)", "b.md"),
        ("a.md", "[so][a page]", "b.md"),
        ("x/a.md", "[so](../b.md#usage)", "b.md"),
        ("x/a.md", "[so](../x/y.md#usage)", "x/y.md"),
        ("x/y/z/a.md", "[so](../../../b.md#usage)", "b.md"),
        ("x/a.md", "[so](/b.md#usage)", "b.md"),
        ("x/a.md", "[so](/x/y#usage)", "x/y.md"),
        ("a.md", "[so](/x/y/#usage)", "x/y.md"),
        ("a.md", "[so](y.md#usage)", "x/y.md"),
        ("a.md", "[so](n%C3%B6tes%20of%20mine.md#usage)", "nötes of mine.md"),
        ("a.md", "[so](guide/#usage)", "guide/index.md"),
        ("a.md", "[so](guide/index.md#usage)", "guide/index.md"),
        ("guide/a.md", "[so](../pkg/README.md#usage)", "pkg/README.md"),
        ("a.md", "[so](pkg#usage)", "pkg/README.md"),
        ("a.md", "[so](README.md#usage)", "README.md"),
        ("x/a.md", "[[b#Usage]]", "b.md"),
        ("a.md", "[[b#usage|so]]", "b.md"),
        ("a.md", "[[x/y#Usage]]", "x/y.md"),
        ("a.md", "[[b#Page#Usage]]", "b.md"),
        ("a.md", "[[nötes of mine#Usage|so]]", "nötes of mine.md"),
    ],
)
def test_a_link_leads_to_a_section_of_another_document(path: str, link: str, target: str) -> None:
    names = ("b.md", "x/y.md", "nötes of mine.md", "guide/index.md", "pkg/README.md", "README.md")
    assert reached(link, dict.fromkeys(names, USAGE), path) == [(target, "Usage")]


@pytest.mark.parametrize(
    ("link", "title"),
    [
        ("[so](b.md#usage)", "Usage"),
        ("[so](b.md#how-to)", "How Köln sounds"),
        ("[so](b.md#how-k%C3%B6ln-sounds)", "How Köln sounds"),
        ("[so](b.md#how-köln-sounds)", "How Köln sounds"),
        ("[so](b.md#-party-time)", "🎉 Party time"),
        ("[so](b.md#whats-new)", "What's new?"),
        ("[[b#What's new?]]", "What's new?"),
        ("[[b#How Köln sounds|so]]", "How Köln sounds"),
        ("[so](b.md#snake_case-name)", "snake_case name"),
    ],
)
def test_a_link_leads_to_the_section_that_its_anchor_names(link: str, title: str) -> None:
    other = "\n\n".join(
        f"## {heading}"
        for heading in (
            "Usage",
            "How Köln sounds {#how-to}",
            "🎉 Party time",
            "What's new?",
            "snake_case name",
        )
    )
    assert reached(link, {"b.md": other}) == [("b.md", title)]


@pytest.mark.parametrize(
    "link",
    [
        "[so](b.md)", "[so](b.md#)", "[so](#usage)", "[so](a.md#usage)", "[so](b.md#nothing)", "[so](c.md#usage)",
        "[so](https://example.org/b.md#usage)", "[so](mailto:b.md#usage)", "[so](//example.org/b.md#usage)",
        "[[b]]", "[[#Usage]]", "[[a#Usage]]", "[[c#Usage]]", "[so][b.md#usage]", "b.md#usage", "[so] (b.md#usage)",
    ],
)  # fmt: skip
def test_what_leads_to_no_section_of_another_document_asks_nothing(link: str) -> None:
    assert reached(link, {"b.md": USAGE}) == []


@pytest.mark.parametrize(
    "link", ["[so](#usage)", "[so](a.md#usage)", "[so](./a#usage)", "[[#Usage]]", "[[a#Usage]]"]
)
def test_a_link_to_a_section_of_its_own_document_asks_nothing(link: str) -> None:
    assert asked(f"# Page\n\n{ASKS} {link} below.\n\n## Usage\n\nLike so.\n", USAGE) == []


@pytest.mark.parametrize("link", ["../a.md", "/a.md", "sub/../../a.md", "../docs/../a"])
def test_a_path_is_followed_from_where_the_link_stands_or_from_the_top(link: str) -> None:
    texts = {"docs/a.md": USAGE, "a.md": USAGE, "x/a.md": USAGE}
    assert reached(f"[so]({link}#usage)", texts, "docs/from.md") == [("a.md", "Usage")]


@pytest.mark.parametrize("texts", [("docs/{}",), ("docs/{}", "{}")])
@pytest.mark.parametrize("name", ["index.md", "README.md"])
@pytest.mark.parametrize("before", ["", "./", "../docs/", "/docs/"])
def test_a_link_to_the_index_of_its_own_folder_leads_there(
    before: str, name: str, texts: tuple[str, ...]
) -> None:
    found = reached(
        f"[so]({before}{name}#usage)", {text.format(name): USAGE for text in texts}, "docs/a.md"
    )
    assert found == [(f"docs/{name}", "Usage")]


@pytest.mark.parametrize(
    "link", ["../README.md", "../index.md", "./../README.md", "../", "..", "/README.md", "/"]
)
def test_a_link_to_the_index_of_the_folder_above_leads_there(link: str) -> None:
    name = "index.md" if "index" in link else "README.md"
    assert reached(f"[so]({link}#usage)", {f"docs/{name}": USAGE, name: USAGE}, "docs/a.md") == [
        (name, "Usage")
    ]


@pytest.mark.parametrize("link", ["sub/../b.md", "./sub/../b.md", "../docs/./b.md", "./b", "b.md/"])
def test_dots_within_a_path_are_followed(link: str) -> None:
    assert reached(f"[so]({link}#usage)", {"docs/b.md": USAGE, "b.md": USAGE}, "docs/a.md") == [
        ("docs/b.md", "Usage")
    ]


def test_of_pages_of_one_name_the_nearest_is_meant_where_no_path_leads_to_one() -> None:
    texts = {"x/deep/er/b.md": USAGE, "y/deep/b.md": USAGE}
    assert reached("[so](deep/b#usage)", texts, "x/a.md") == [("y/deep/b.md", "Usage")]
    assert reached("[so](b#usage)", texts, "x/a.md") == [("x/deep/er/b.md", "Usage")]
    assert reached("[so](../../../deep/b#usage)", texts, "x/a.md") == [("y/deep/b.md", "Usage")]
    assert reached("[[b#Usage]]", texts, "y/a.md") == [("y/deep/b.md", "Usage")]
    assert (
        reached("[so](/site/y/deep/b/#usage)", {"content/site/y/deep/b.md": USAGE}, "x/a.md") != []
    )


def test_a_name_may_hold_a_number_sign() -> None:
    assert reached("[so](c%23.md#usage)", {"c#.md": USAGE}) == [("c#.md", "Usage")]


@pytest.mark.parametrize(
    ("titles", "anchors"),
    [
        (("Usage", "Usage", "Usage"), ("usage", "usage-1", "usage-2")),
        (("Usage", "Usage!", "`usage`"), ("usage", "usage-1", "usage-2")),
        (("Usage", "Setup", "Usage"), ("usage", "setup", "usage-1")),
        (("Echo", "Echo", "Echo 1", "Echo"), ("echo", "echo-1", "echo-1-1", "echo-2")),
        (("Echo 1", "Echo", "Echo"), ("echo-1", "echo", "echo-2")),
    ],
)  # fmt: skip
def test_of_sections_of_one_name_all_but_the_first_have_a_number(
    titles: tuple[str, ...], anchors: tuple[str, ...]
) -> None:
    text = "\n\n".join(f"## {title}\n\ntext" for title in titles)
    for number, anchor in enumerate(anchors):
        (question,) = links_of({"a.md": f"{ASKS} [so](b.md#{anchor}).\n", "b.md": text})
        assert question.answer_section.first_line == 1 + 4 * number


@pytest.mark.parametrize(
    ("anchor", "title"),
    [
        ("1-introduction", "1. Introduction"),
        ("2-setup", "2) Setup"),
        ("vect-methods", "`Vec<T>` methods"),
        ("-party", "🎉 Party"),
    ],
)
def test_a_link_leads_to_a_numbered_section_and_to_one_of_code(anchor: str, title: str) -> None:
    assert reached(f"[so](b.md#{anchor})", {"b.md": f"# Page\n\n## {title}\n\nx\n"}) == [
        ("b.md", title)
    ]


@pytest.mark.parametrize(
    "link", ["[so](b.md#%F0%9F%8E%8A)", "[[b#???]]", "[so](b.md#!)", "[[b#^]]"]
)
def test_an_anchor_without_letters_leads_to_no_title_without_letters(link: str) -> None:
    assert reached(link, {"b.md": "# Page\n\n## 🎉\n\nx\n"}) == []


def test_a_wiki_link_to_a_block_is_none_to_a_section_of_that_name() -> None:
    assert reached("[[b#^usage]]", {"b.md": USAGE}) == []


def test_the_sentence_that_links_asks() -> None:
    text = "# A\n\nFirst of all. If you are **thirsty**, see [how](b.md#make-tea) to make it. Then rest.\n\nThe end of it.\n"
    assert asked(text) == ["If you are thirsty, see how to make it."]


def test_a_sentence_goes_over_lines_and_ends_with_its_paragraph() -> None:
    text = "Before it all\n\nIf you are thirsty\nsee [how](b.md#make-tea) to\nmake it\n\nafter it all.\n"
    assert asked(text) == ["If you are thirsty see how to make it"]


@pytest.mark.parametrize(
    ("sentence", "asks"),
    [("Now see [how](b.md#make-tea).", 0), ("Now you see [how](b.md#make-tea).", 1)],
)
def test_a_sentence_of_less_than_four_words_asks_nothing(sentence: str, asks: int) -> None:
    assert len(asked(sentence)) == asks


def test_items_of_a_list_ask_each_for_itself() -> None:
    text = "- [Make some very good tea](b.md#make-tea)\n- [All of the other things](b.md#other-things)\n"
    assert asked(text) == ["Make some very good tea", "All of the other things"]


def test_of_sentences_of_a_document_that_link_to_one_section_the_first_asks() -> None:
    text = "The first one says [so](b.md#make-tea).\n\nThe second one says [so](b.md#make-tea).\n"
    assert asked(text) == ["The first one says so."]


def test_sentences_of_two_documents_may_ask_for_one_section() -> None:
    found = links_of({
        "a.md": "The first one says [so](b.md#make-tea).", "c.md": "The second one says [so](b.md#make-tea).", "b.md": TEA,
    })  # fmt: skip
    assert [(question.source_lines or ("",))[0] for question in found] == ["a.md", "c.md"]


def test_one_text_asks_once() -> None:
    same = "They say [this](b.md#make-tea) and [that](b.md#other-things)."
    assert [
        question.answer_section.title
        for question in links_of({"a.md": same, "c.md": same, "b.md": TEA})
    ] == ["Make tea"]


def test_the_target_is_the_section_with_its_lines() -> None:
    (question,) = links_of({"a.md": f"{ASKS} [so](b.md#make-tea).", "b.md": TEA})
    target = question.answer_section
    assert (target.path, target.title, target.first_line, target.last_line) == (
        "b.md",
        "Make tea",
        3,
        6,
    )
    assert "make-tea" in target.anchors


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("# A\n\n{}\n\nThe end.\n", 3, 3),
        ("# A\n{}\n# The end.\n", 2, 2),
        ("# A\n\nBefore. {}\nThe end of it.\n", 3, 3),
        ("# A\n\nBefore.\n{}\nThe end of it.\n", 4, 4),
        ("Before.\nBut then {} And then\nthe end of it.\n", 2, 2),
        ("Before it is\n{}\n", 1, 2),
        ("- {}\n- The end.\n", 1, 1),
        ("Begin here.\n\n- x\n- {}\n- The end.\n", 4, 4),
        ("- x\n\n  1. y\n\n     > {}\n", 5, 5),
        ("| a |\n|---|\n| x |\n| {} |\n", 4, 4),
        ("---\ntitle: x\n---\n\n{}\n", 5, 5),
        ("One\\\ntwo.\n{}\n", 3, 3),
    ],
)
def test_the_source_is_the_lines_of_the_sentence(text: str, first: int, last: int) -> None:
    (question,) = links_of({"a.md": text.format(f"{ASKS} [so](b.md#make-tea)."), "b.md": TEA})
    assert question.source_lines == ("a.md", first, last)


@pytest.mark.parametrize(
    "before",
    [
        "Some `code\nof it` here.",
        "Some <b\nid='x'>tag</b> here.",
        "![it](x.png\n'T') here.",
        "![it\nis](x.png) here.",
        "[it](x.md\n'T') here.",
        "One\\\n* `two.",
        "One  \n`two.",
    ],
)
def test_the_source_is_counted_over_all_line_feeds(before: str) -> None:
    (question,) = links_of({"a.md": f"{before}\n{ASKS} [so](b.md#make-tea).\n", "b.md": TEA})
    assert question.source_lines == ("a.md", 3, 3)


@pytest.mark.parametrize(
    "text",
    [
        "```md\n{}\n```\n",
        "---\nnote: {}\n---\n\nText.\n",
        "Write `{}` for it.\n",
        "    {}\n",
        "<!-- {} -->\n",
        "# {}\n",
    ],
)
def test_what_is_code_or_hidden_or_a_heading_asks_nothing_by_its_links(text: str) -> None:
    assert asked(text.format(f"{ASKS} [so](b.md#make-tea) there.")) == []


def test_a_heading_is_no_part_of_the_sentence_below_it() -> None:
    assert asked("## My setup\nSee [here](b.md#make-tea) for more.\n") == ["See here for more."]


@pytest.mark.parametrize("text", ["- {}", "12. {}", "> {}", "> - {}", "- [ ] {}", "* x\n  * {}"])
def test_marks_of_lists_and_quotes_are_no_part_of_the_sentence(text: str) -> None:
    (sentence,) = asked(text.format(f"{ASKS} [so](b.md#make-tea)."))
    assert sentence.removeprefix("[ ] ") == f"{ASKS} so."


def test_a_row_of_a_table_asks_for_itself() -> None:
    text = "| a | b |\n|---|---|\n| the very first thing | [x](b.md#make-tea) |\n| and a second one | [y](b.md#other-things) |\n"
    found = [
        (question.text, question.answer_section.title)
        for question in links_of({"a.md": text, "b.md": TEA})
    ]
    assert found == [("the very first thing x", "Make tea"), ("and a second one y", "Other things")]


@pytest.mark.parametrize(
    "text",
    [
        "One thing<br>and [another](b.md#make-tea).",
        "| a |\n|---|\n| One thing<br/>and [another](b.md#make-tea). |",
    ],
)
def test_a_line_break_parts_words(text: str) -> None:
    assert asked(text) == ["One thing and another."]


def test_a_name_of_code_stays_whole_in_a_question() -> None:
    assert asked("Set `max_chunk_tokens` to *5* as [told](b.md#make-tea).") == [
        "Set max_chunk_tokens to 5 as told."
    ]


# Questions from headings


def test_a_heading_asks_for_its_own_section() -> None:
    found = generate_questions({"a.md": "# One page\n\n## Make *good* tea\n\nx\n"})
    assert [
        (
            each.text,
            each.kind,
            each.answer_section.first_line,
            each.answer_section.last_line,
            each.source_lines,
        )
        for each in found
    ] == [
        ("One page", HEADING, 1, 6, ("a.md", 1, 1)),
        ("Make good tea", HEADING, 3, 6, ("a.md", 3, 3)),
    ]


def test_a_heading_of_one_word_asks_nothing() -> None:
    assert generate_questions({"a.md": "# Usage\n\n## `name`\n\nx\n"}) == []


def test_a_heading_that_stands_twice_asks_nothing() -> None:
    texts = {
        "a.md": "# How to do it\n\n## See also this\n",
        "b.md": "# Another thing here\n\n## see *also* this\n",
    }
    assert [question.text for question in generate_questions(texts)] == [
        "How to do it",
        "Another thing here",
    ]


def test_links_come_before_headings() -> None:
    kinds = [
        question.kind
        for question in generate_questions({"a.md": TEA, "b.md": f"{ASKS} [so](a.md#make-tea).\n"})
    ]
    assert kinds == [LINK, HEADING, HEADING, HEADING]


def test_no_documents_ask_nothing() -> None:
    assert generate_questions({}) == []


# Laws

_NAMES = ("a.md", "b.md", "docs/a.md", "docs/index.md", "README.md", "nötes of mine.mdx")
_HEADINGS = (
    "Usage",
    "Make tea",
    "What's new?",
    "🎉",
    "1. Introduction",
    "a_b {#own-id}",
    "[x](b.md#usage) y",
)
_FORMS = (
    "[so]({0}#{1})",
    "[so](/{0}#{1})",
    '[a b](<{0}#{1}> "T")',
    "[[{0}#{1}|so]]",
    "[[{0}#{1}]]",
    "[({0}#{1})",
    "[so](https://{0}#{1})",
)
_AROUND = (
    "Some words of it {} are here.",
    "This\nis {} told\nhere and",
    "- Of {} all items\n",
    "\n\n| a |\n|--|\n| in a row {} |\n\n",
    "{}",
)
_between = st.sampled_from(["\n\n", "\n\n", " ", "```\n", "<br>", "***"]) | st.text(max_size=5)


@st.composite
def _folders(draw: st.DrawFn) -> dict[str, str]:
    """Draw documents with sections and, among other things, links to these."""
    titles = draw(
        st.dictionaries(
            st.sampled_from(_NAMES), st.lists(st.sampled_from(_HEADINGS), min_size=1), min_size=2
        )
    )
    texts = {}
    for name, own in titles.items():
        pieces = [f"\n\n## {title}\n\n" for title in own]
        for _ in range(draw(st.integers(0, 4))):
            other = draw(st.sampled_from(sorted(titles)))
            title = draw(st.sampled_from(titles[other]))
            anchor = draw(
                st.sampled_from(
                    [slug(title), slug(title), quote(slug(title)), title, "own-id", "^x", "usage-1"]
                )
            )
            link = draw(st.sampled_from(_FORMS)).format(quote(other), anchor)
            pieces.insert(
                draw(st.integers(0, len(pieces))), draw(st.sampled_from(_AROUND)).format(link)
            )
            pieces.insert(draw(st.integers(0, len(pieces))), draw(_between))
        texts[name] = normalize_text("".join(pieces))
    return texts


_folder = _folders() | st.dictionaries(
    st.sampled_from(_NAMES), documents.map(normalize_text), max_size=2
)


@given(_folder)
def test_questions_are_words_and_stand_inside_the_documents_and_so_do_their_answers(
    texts: dict[str, str],
) -> None:
    found = generate_questions(texts)
    for question in found:
        target = question.answer_section
        assert 1 <= target.first_line <= target.last_line <= texts[target.path].count("\n") + 1
        assert target in sections_of(target.path, texts[target.path])
        assert question.source_lines is not None
        path, first, last = question.source_lines
        assert 1 <= first <= last <= texts[path].count("\n") + 1
        assert len(question.text.split()) >= {LINK: 4, HEADING: 2}[question.kind]
        assert question.text == " ".join(question.text.split())
    assert len({question.text for question in found}) == len(found)


@given(_folder)
def test_no_link_is_answered_by_the_document_that_it_stands_in(texts: dict[str, str]) -> None:
    assert all(
        question.source_lines and question.source_lines[0] != question.answer_section.path
        for question in links_of(texts)
    )


@given(_folder, st.text().map(normalize_text))
def test_a_document_without_links_and_headings_changes_no_link_question(
    texts: dict[str, str], words: str
) -> None:
    more = {"zzz.md": "".join(char for char in words if char.isalpha() or char in " .\n")}
    assert links_of({**texts, **more}) == links_of(texts)


@given(st.text())
def test_any_text_has_plain_words_and_no_question_raises(text: str) -> None:
    assert strip_markdown(text) == " ".join(strip_markdown(text).split())
    generate_questions({"a.md": normalize_text(text), "b.md": normalize_text(text[::-1])})


_title = st.text("abcdefgh XYZäöñ日本0123456789'.,:&+()/?!-", min_size=1, max_size=30).map(
    lambda text: " ".join(text.split())
)


@given(st.lists(_title, min_size=1, max_size=6), st.data())
def test_a_link_by_the_slug_of_a_heading_leads_to_a_heading_of_the_same_letters(
    titles: list[str], data: st.DataObject
) -> None:
    wanted = f"x{data.draw(st.sampled_from(titles))}"
    text = "\n\n".join(f"## x{title}\n\ntext" for title in titles)
    (question,) = links_of(
        {"a.md": f"{ASKS} [so](b.md#{quote(slug(wanted))}) there.\n", "b.md": text}
    )
    letters, others = (
        [char for char in title.lower() if char.isalnum()]
        for title in (wanted, question.answer_section.title)
    )
    assert letters == others
