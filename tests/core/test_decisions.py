"""Which sentence of an exchange decides something."""

from __future__ import annotations

import pytest

from anchord.core.decisions import find_decision


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("Thanks. Let's go with SQLite for the archive.", "Let's go with SQLite for the archive."),
        ("don't use mutable_defaults, use a factory", "don't use mutable_defaults, use a factory"),
        ("- **use the spinner instead** of the bar", "use the spinner instead of the bar"),
        ("instead of mocking the clock, pass it in", "instead of mocking the clock, pass it in"),
        ("We have decided that ids never change", "We have decided that ids never change"),
        ("yes do that, rather than guessing", "yes do that, rather than guessing"),
    ],
)
def test_what_a_person_settles_is_a_decision(question: str, sentence: str) -> None:
    decision = find_decision(question, "Done.")
    assert decision is not None
    assert (decision.sentence, decision.is_users) == (sentence, True)


@pytest.mark.parametrize(
    "question",
    [
        "Should we go with SQLite instead?",
        "Maybe we go with the second option.",
        "Why did you use the spinner instead of the bar",
        "let's see how it renders now",
        "```\nlet's go with this in a comment\n```",
        "> we decided to keep it in the quoted mail",
        "we should be good to go for a new release",
        "word " * 70 + "we decided",
        "",
    ],
)
def test_a_question_a_wish_a_quotation_and_code_are_none(question: str) -> None:
    assert find_decision(question, "Let me look.") is None


def test_the_assistant_is_believed_only_where_it_says_that_it_decided() -> None:
    answer = "I looked at both.\n\nI'll go with the table because a scan is quick. It works."
    decision = find_decision("Which one", answer)
    assert decision is not None
    assert (decision.sentence, decision.is_users) == (
        "I'll go with the table because a scan is quick.",
        False,
    )
    assert find_decision("Which one", "I would use the table instead. You could use both.") is None


def test_a_long_text_takes_no_long_time() -> None:
    for text in ("instead " * 100_000, "use " * 100_000, "a" * 400_000, "```\n" * 100_000):
        assert find_decision(text, text) is None
