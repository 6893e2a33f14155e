"""Of a very long question or answer the beginning is indexed, and what is left out is said."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from conversations.conftest import Talks, claude

from anchord.core.types import Document
from anchord.sources.conversations import exchange_document
from anchord.sources.conversations.events import Exchange
from anchord.sources.conversations.exchange_document import (
    MAX_TEXT_CHARS,
    add_session_info,
    decode_exchange,
    encode_exchange,
)


def document_of(question: str, answer: str) -> Document:
    """Return the document of an exchange."""
    exchange = Exchange(session="s", id="1", number=0, question=question, answer=answer)
    stored = add_session_info(encode_exchange(exchange), "claude-code", "s", "", "")
    document = decode_exchange(stored)
    assert isinstance(document, Document)
    return document


def test_texts_of_the_greatest_length_are_indexed_whole() -> None:
    document = document_of("q" * MAX_TEXT_CHARS, "a" * MAX_TEXT_CHARS)
    assert document.problem is None
    assert document.text == "q" * MAX_TEXT_CHARS + "\n\n" + "a" * MAX_TEXT_CHARS
    assert document.question_line_count == 1


def test_the_answer_to_a_question_that_is_too_long_is_indexed() -> None:
    document = document_of("q" * (MAX_TEXT_CHARS + 1), "short")
    assert document.text == "q" * MAX_TEXT_CHARS + "\n\nshort"
    assert document.question_line_count == 1
    assert document.problem
    assert document.problem.is_partial
    assert document.problem.reason == (
        "the first 2,000,000 of 2,000,001 characters of the question are indexed; "
        "the archive has all of it"
    )


def test_what_is_left_out_of_both_texts_is_said() -> None:
    with patch.object(exchange_document, "MAX_TEXT_CHARS", 6):
        document = document_of("first\n\nsecond", "one\ntwo\nthree")
    assert document.text == "first\n\none\ntw"
    assert document.question_line_count == 1
    assert document.problem
    assert document.problem.reason.startswith(
        "the first 6 of 13 characters of the question and of 13 characters of the answer are "
    )


@pytest.mark.parametrize("length", [59, 61])
def test_a_long_line_costs_its_transcript_nothing_else(talks: Talks, length: int) -> None:
    with patch.object(exchange_document, "MAX_TEXT_CHARS", 60):
        talks.write(
            "s1.jsonl", claude(("pasted " + "x" * (length - 7), "seen"), ("after it", "answered"))
        )
        talks.sync()
        texts = [row.text for row in talks.rows()]
        assert any("seen" in text for text in texts)
        assert any("answered" in text for text in texts)
        assert sum(text.count("x") for text in texts) == min(length, 60) - 7
        problems = talks.problems()
    assert len(problems) == (length > 60)
    assert all("of 61 characters of the question" in reason for reason in problems.values())
