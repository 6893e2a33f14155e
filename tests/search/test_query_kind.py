"""What a query is taken for: the same words always the same, and each kind weighed in its own way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.core.query_syntax import parse_query
from anchord.search.query_kind import WEIGHTS, QueryKind, kind_of_query

TERMS, SENTENCE, QUESTION = QueryKind.TERMS, QueryKind.SENTENCE, QueryKind.QUESTION


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("how do I restore a backup", QUESTION),
        ("How do I restore a backup?", QUESTION),
        ("my notes are gone after syncing two laptops", QUESTION),
        ("why is the build slow", QUESTION),
        ("it doesn't find what we wrote yesterday", QUESTION),
        ("wie stelle ich ein Backup wieder her?", QUESTION),
        ("バックアップを復元するには\uff1f", QUESTION),
        ("バックアップを復元するには", TERMS),  # One word to the word index.
        ("where can", TERMS),
        ("restore", TERMS),
        ("restore a backup", TERMS),
        ("Restoring from a backup", TERMS),
        ("Removing snapshots by policy", TERMS),
        ("Installing Python versions", TERMS),
        ("src/anchord/search/ranking.py", TERMS),
        ("is_exchange_path", TERMS),
        ("what is_exchange_path parse_query", TERMS),
        ("HTTP 404 retry backoff", TERMS),
        ("The daemon rewrites the whole file after a crash of the machine", SENTENCE),
        ("A repository can be copied to another disk and opened there", SENTENCE),
        ("", TERMS),
        ("?", TERMS),
        ("-excluded", TERMS),
    ],
)
def test_what_a_query_is_taken_for(query: str, kind: QueryKind) -> None:
    assert kind_of_query(parse_query(query)) is kind


@given(st.text(max_size=200))
def test_every_text_is_of_some_kind_and_spaces_change_nothing(text: str) -> None:
    kind = kind_of_query(parse_query(text))
    assert kind in QueryKind
    assert kind_of_query(parse_query(f"  {text}\n")) is kind


def test_meaning_counts_the_more_the_less_the_words_are_the_texts_own() -> None:
    weights = [WEIGHTS[kind].vector for kind in (TERMS, SENTENCE, QUESTION)]
    assert weights == sorted(weights)
    assert WEIGHTS[TERMS].file == 0
    assert all(0 <= each.vector <= 1 and 0 <= each.file < 1 for each in WEIGHTS.values())
