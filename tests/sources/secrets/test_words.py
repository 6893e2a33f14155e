"""One pass over a text finds every word that the rules begin at."""

from __future__ import annotations

import pytest

from anchord.sources.secrets.redactor import redact
from anchord.sources.secrets.words import WordSearch


def test_words_are_found_in_order_also_inside_each_other() -> None:
    places = WordSearch(["pass", "password", "word", "absent"]).find("a password, pass")
    found = {word: list(places.of(word)) for word in ("pass", "password", "word", "absent")}
    assert found == {"pass": [2, 12], "password": [2], "word": [6], "absent": []}
    assert places.of_any(["word", "password", "pass"]) == [2, 6, 12]


def test_places_count_characters_and_not_bytes() -> None:
    assert WordSearch(["пароль", "\u200b"]).find("zum пароль\u200b").of("пароль") == [4]


def test_a_word_that_was_not_looked_for_is_an_error() -> None:
    with pytest.raises(KeyError):
        WordSearch(["pass"]).find("pass").of("token")


@pytest.mark.parametrize(
    "text", ["the password is :::::", "password: .....", "Authorization: Basic YWxpY2U6T\u212aB"]
)
def test_text_with_nothing_but_punctuation_or_a_letter_beyond_ascii_is_read(text: str) -> None:
    assert redact(text).text == text
