"""Parsing a query, and finding its words in a text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.core.query_syntax import (
    ParsedQuery,
    find_match_spans,
    matched_words,
    parse_query,
    phrase_regex,
)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("plain words", ParsedQuery("plain words")),
        ("  blanks\t and\nlines ", ParsedQuery("blanks and lines")),
        (
            'the "exact  phrase" here',
            ParsedQuery("the exact phrase here", required_phrases=("exact phrase",)),
        ),
        ("cats -dogs", ParsedQuery("cats", excluded_phrases=("dogs",))),
        ('cats -"big dogs" -birds', ParsedQuery("cats", excluded_phrases=("big dogs", "birds"))),
        ("conf* files", ParsedQuery("conf files", required_prefixes=("conf",))),
        ('"one" "two"', ParsedQuery("one two", required_phrases=("one", "two"))),
        ("", ParsedQuery("")),
        ("-only", ParsedQuery("", excluded_phrases=("only",))),
    ],
)
def test_each_form_is_understood(query: str, wanted: ParsedQuery) -> None:
    assert parse_query(query) == wanted


@pytest.mark.parametrize(
    "query",
    [
        "--force-rechunk",
        "a-b",
        "2 * 3",
        "*args",
        "a*b",
        "- dash",
        "a -",
        "-",
        "--",
        "f(x)-1",
        "x -- y",
    ],
)
def test_what_only_looks_like_a_form_is_words(query: str) -> None:
    assert parse_query(query) == ParsedQuery(" ".join(query.split()))


@pytest.mark.parametrize(
    "query", ['a lone " quote', '"', '""', '" "', '5" and 6" disks', 'say "hi']
)
def test_a_lone_quote_asks_for_no_phrase(query: str) -> None:
    assert parse_query(query).required_phrases == ()


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("where is parse_config used", ("parse_config",)),
        ("src/app/config.py", ("src/app/config.py",)),
        ("what does parseConfig() do?", ("parseConfig",)),
        ("HTTPServer and MyClass", ("HTTPServer", "MyClass")),
        ("std::vector or utf8", ("std::vector", "utf8")),
        ("the --force-rechunk option", ()),
        ("plain English Words, and 3.5 or 10:30", ()),
        ("max_chars max_chars", ("max_chars",)),
        ("_private", ("_private",)),
        ("python 3.11.2, v1.2.3 and 10.0.0.1", ("3.11.2", "v1.2.3", "10.0.0.1")),
        ("C++ or C#?", ("C++", "C#")),
        ("mail bob.x+y@example.co.uk", ("bob.x+y@example.co.uk",)),
        ("浅草寺 の 地図", ("浅草寺", "地図")),
    ],
)
def test_names_of_code_and_paths_are_known_by_their_form(
    query: str, wanted: tuple[str, ...]
) -> None:
    assert parse_query(query).identifiers == wanted


@pytest.mark.parametrize(
    ("phrase", "text", "found"),
    [
        ("浅草寺", "東京の浅草寺に行く", True),
        ("서울", "서울에서 만나다", True),
        ("กรุงเทพ", "ไปกรุงเทพวันนี้", True),
        ("cat", "concat", False),
        ("это", "поэтому", False),
    ],
)
def test_a_phrase_is_whole_words_where_words_have_borders(
    phrase: str,
    text: str,
    found: bool,  # noqa: FBT001
) -> None:
    assert bool(re.search(phrase_regex(phrase), text)) == found


@given(st.text())
def test_any_text_is_a_query_and_no_pattern_of_it_is_broken(query: str) -> None:
    wording = parse_query(query)
    for phrase in (*wording.required_phrases, *wording.excluded_phrases):
        assert re.search(phrase_regex(phrase), f"({phrase})")
    for prefix in wording.required_prefixes:
        assert re.search(phrase_regex(prefix, is_prefix=True), f"{prefix}tail")
    assert find_match_spans(wording, query) == sorted(find_match_spans(wording, query))


@given(
    st.lists(
        st.sampled_from(["a", "cats", "-dogs", '"two words"', "pre*", "--x", "snake_case", '"'])
    )
)
def test_nothing_that_is_not_excluded_is_lost(words: list[str]) -> None:
    wording = parse_query(" ".join(words))
    kept = {
        part.strip("-*")
        for part in " ".join((wording.text, *wording.excluded_phrases)).replace('"', " ").split()
    }
    assert kept >= {part.strip('-*"') for word in words for part in word.split()} - {"", "x"}


# What matched


def test_words_are_shown_where_their_stems_stand() -> None:
    text = "Indexing makes an index; the indexed files are in The Index. Nothing else."
    assert matched_words(parse_query("index files"), text) == [
        "Indexing",
        "index",
        "indexed",
        "files",
    ]


def test_common_words_are_not_shown() -> None:
    assert matched_words(parse_query("how is the cat"), "How the cat is.") == ["cat"]


def test_phrases_and_names_are_shown_whole() -> None:
    text = "Call parse_config twice: the quick\nbrown fox."
    assert matched_words(parse_query('parse_config "quick brown" tw*'), text) == [
        "parse_config",
        "twice",
        "quick\nbrown",
    ]


@given(st.text("ab c_-", max_size=30), st.text("ab c_-", max_size=60))
def test_spans_lie_in_the_text_and_do_not_touch(query: str, text: str) -> None:
    found = find_match_spans(parse_query(query), text)
    flat = [place for span in found for place in span]
    assert flat == sorted(set(flat))
    assert all(0 <= start < end <= len(text) for start, end in found)


@pytest.mark.parametrize(
    ("query", "heading", "sure"),
    [
        ("how do restatement plans work", "Restatement plans", 1.0),
        ("the plan of a restatement", "Restatement plans", 1.0),
        ("restatement plans", "Restatement plans in production", 0.0),
        ("which plugin", "Plugins", 0.5),
        ("where is parse_config", "parse_config", 0.5),
        ("what is it", "What is it?", 0.0),
        ("anything", "", 0.0),
        ("", "Plugins", 0.0),
    ],
)
def test_a_heading_is_spoken_of_when_a_query_has_all_its_words(
    query: str, heading: str, sure: float
) -> None:
    assert parse_query(query).heading_score(heading) == sure


@given(st.text(), st.text())
def test_a_query_names_itself_and_whatever_is_part_of_what_it_names(query: str, more: str) -> None:
    wording = parse_query(f"{query} {more}".replace('"', " "))
    assert 0.0 <= wording.heading_score(query) <= 1.0
    assert wording.identifier_share <= 1.0


def test_a_query_of_names_alone_is_naming_and_one_of_none_is_not() -> None:
    assert parse_query("parse_config").identifier_share == 1.0
    assert parse_query("how does parse_config work").identifier_share == 0.25
    assert parse_query("how does it work").identifier_share == 0.0
