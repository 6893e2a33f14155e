"""Which quoted terms a hit must contain, and which only rank it higher."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.core.query_syntax import parse_query
from anchord.search.quoted_terms import can_be_relaxed, prefer_phrases, read_query, relaxed_note


@pytest.mark.parametrize(
    "query",
    ['how do I set "alias" in config', 'The "alias" of a note is shown in the list of all links'],
)
def test_a_term_that_a_question_or_a_sentence_quotes_is_preferred(query: str) -> None:
    read = read_query(query)
    assert (read.required_phrases, read.preferred_phrases) == ((), ("alias",))


@pytest.mark.parametrize(
    "query",
    ['"how do I set it"', '"how do I" "set it up"', '"how do I set" -alias', 'rates "big bank"'],
)
def test_phrases_alone_and_beside_terms_are_required(query: str) -> None:
    read = read_query(query)
    assert read.required_phrases
    assert read.preferred_phrases == ()


def test_exclusions_and_prefixes_stay_in_a_question() -> None:
    read = read_query('how do I set "alias" in conf* -"old server"')
    assert (read.required_prefixes, read.excluded_phrases) == (("conf",), ("old server",))


@given(st.text(alphabet='ab "-*?', max_size=30))
def test_reading_changes_nothing_but_what_phrases_do(query: str) -> None:
    parsed, read = parse_query(query), read_query(query)
    assert read in (parsed, prefer_phrases(parsed))
    assert read.text == parsed.text


@pytest.mark.parametrize(
    ("query", "matches", "relaxed"),
    [
        ('rates "big bank"', 2, True),
        ('rates "big bank"', 3, False),
        ('"big bank"', 0, False),
        ('"big bank" rat* -money', 0, False),
        ("big bank", 0, False),
    ],
)
def test_phrases_beside_words_are_relaxed_if_fewer_than_three_chunks_have_them(
    query: str, matches: int, *, relaxed: bool
) -> None:
    assert can_be_relaxed(read_query(query), matches) is relaxed


@pytest.mark.parametrize(
    ("matches", "sentence"),
    [
        (0, 'nothing contains "big bank": hits without it are shown too'),
        (1, 'only 1 chunk contains "big bank": hits without it are shown too'),
        (2, 'only 2 chunks contain "big bank": hits without it are shown too'),
    ],
)
def test_a_note_says_that_phrases_were_relaxed(matches: int, sentence: str) -> None:
    assert relaxed_note(read_query('rates "big bank"'), matches) == sentence
