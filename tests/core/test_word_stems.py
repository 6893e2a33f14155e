"""The pattern of a query's stems finds what a look at each word of a text finds."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from anchord.core.word_stems import _stem, find_words, stems_among, word_stems

WORDS = st.sampled_from(
    [
        "index",
        "indexes",
        "Indexing",
        "indexed",
        "reindex",
        "files",
        "FILE",
        "file_name",
        "tables",
        "café",
        "Straße",
        "snake",
        "2nd",
        "x",
    ]
)
TEXTS = st.lists(st.one_of(WORDS, st.text(max_size=6)), max_size=12).map(" ".join)
QUERIES = st.one_of(TEXTS, st.lists(WORDS, min_size=3).map(" ".join))


@given(QUERIES, TEXTS)
def test_words_are_found_by_their_stems(query: str, text: str) -> None:
    stems = word_stems(query)
    words = [word for word in re.finditer(r"\w+", text) if _stem(word[0].lower()) in stems]
    assert [word.span() for word in words] == [word.span() for word in find_words(stems, text)]


@given(QUERIES, st.lists(WORDS, max_size=30).map(" ".join))
def test_of_some_stems_those_of_a_text_are_returned(query: str, text: str) -> None:
    stems = word_stems(query)
    assert stems_among(stems, text) == stems & word_stems(text)


def test_many_stems_and_none_are_found_too() -> None:
    many = frozenset(f"w{number}" for number in range(100))
    assert stems_among(many, "W7 and w700") == {"w7"}
    assert stems_among(frozenset(), "any words") == frozenset()
    assert list(find_words(frozenset(), "any words")) == []
