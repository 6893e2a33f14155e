"""Languages are detected, and base forms are added where the index makes none itself."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from anchord.core.natural_language import COMMON_WORDS, detect_language
from anchord.core.query_syntax import matched_words, parse_query
from anchord.core.word_forms import forms_of_query, forms_of_text

SAMPLES = tomllib.loads(
    (Path(__file__).parents[1] / "search" / "languages.toml").read_text("utf-8")
)
DOCUMENTS = {
    language: list((kinds["documents"] | kinds["second_documents"]).values())
    for language, kinds in SAMPLES.items()
}


@pytest.mark.parametrize("language", ["English", "German", "Russian"])
def test_the_language_of_two_sentences_is_detected(language: str) -> None:
    detected = [detect_language(text) for text in DOCUMENTS[language]]
    assert set(detected) <= {language.lower(), ""}
    assert detected.count("") <= len(detected) // 3


@pytest.mark.parametrize(
    "text", ["", "x = 1", "for key in data: return key", "Die Hard", "https://example.com/de/index"]
)
def test_a_text_without_common_words_has_no_language(text: str) -> None:
    assert detect_language(text) in {"", "english"}


def test_an_english_text_gets_no_forms() -> None:
    assert [forms_of_text(text) for text in DOCUMENTS["English"]] == [""] * 15
    assert forms_of_query("how do I restore the backups of my houses") == []


@pytest.mark.parametrize(
    ("text", "language", "forms"),
    [
        ("Tests", "german", ""),  # The index has `test` of it by itself.
        ("Bücher", "german", "buch"),
        ("Bücher", "", ""),
        ("книги", "", "книг"),
        ("학교에서 학교들은", "", "학교"),
        ("走った", "", "走"),
        ("数据库", "", ""),
        ("das ist ein Buch und die Bücher", "", "buch"),
    ],
)
def test_a_text_gets_the_forms_that_the_index_does_not_make(
    text: str, language: str, forms: str
) -> None:
    assert forms_of_text(text, language) == forms


def test_decomposed_letters_have_the_same_forms() -> None:
    assert forms_of_text("Bu\u0308cher", "german") == "buch"


def test_a_query_of_unclear_language_gets_the_forms_of_every_language() -> None:
    ((forms, weight),) = forms_of_query("notizen")
    assert "notiz" in forms.split()
    assert 0 < weight < 1


def test_a_query_in_another_script_has_no_stems_of_its_latin_words() -> None:
    forms = dict(forms_of_query("книги notizen"))
    assert forms == {"книг": 1.0}


def test_characters_of_a_chinese_query_count_little() -> None:
    assert forms_of_query("浇水") == [("浇 水", 0.2)]


def test_every_language_has_common_words_and_a_stemmer() -> None:
    for language in COMMON_WORDS:
        assert isinstance(forms_of_text("word", language), str)


@pytest.mark.parametrize(
    ("query", "text", "matched"),
    [
        ("Haus", "Die Häuser stehen auf der Wiese und im Tal.", ["Häuser"]),
        ("Häuser", "Das Haus ist alt und steht im Tal.", ["Haus"]),
        ("книга", "Взятые книги возвращают внизу.", ["книги"]),
        ("학교", "학교에서 책을 읽었다", ["학교에서"]),
        ("怎么备份数据库", "先停止服务,再备份旧数据。", ["备份", "数据"]),
        ("本を読みました", "図書館で本を読んだ。", ["本を読"]),
        ("the notes", "Other themes: the houses", []),
    ],
)
def test_other_forms_of_words_are_highlighted(query: str, text: str, matched: list[str]) -> None:
    assert matched_words(parse_query(query), text) == matched
