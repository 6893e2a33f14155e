"""The language of a text, and the share of a model's unknown ones."""

from __future__ import annotations

import pytest
from core.test_word_forms import DOCUMENTS

from anchord.core.text_language import code_of_language, text_language, unknown_shares

CODES = {
    "English": "en",
    "German": "de",
    "Russian": "ru",
    "Japanese": "ja",
    "Chinese": "zh",
    "Korean": "ko",
}


@pytest.mark.parametrize("language", sorted(CODES))
def test_documents_of_two_sentences_are_known_by_their_words_or_script(language: str) -> None:
    found = [text_language(text) for text in DOCUMENTS[language]]
    others = set(found) - {CODES[language], ""}
    assert others <= ({"Cyrl"} if language == "Russian" else set())
    assert found.count(CODES[language]) >= 0.6 * len(found)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("", ""),
        ("x = 1", ""),
        ("Привіт, як справи?", "Cyrl"),
        ("Γειά σου, κόσμε", "el"),  # noqa: RUF001 - Greek
        ("שלום עולם", "he"),
        ("مرحبا بالعالم", "Arab"),
        ("नमस्ते दुनिया", "Deva"),
        ("สวัสดีชาวโลก", "th"),
        ("東京は日本の首都です。", "ja"),
        ("北京是中国的首都。", "zh"),
        ("ᚠᚢᚦᚨᚱᚲ ᚷᚹᚺᚾᛁ", ""),
        ("the file `проект.md` is in the folder that you named", "en"),
    ],
)
def test_a_script_tells_the_language_or_a_group_of_them(text: str, language: str) -> None:
    assert text_language(text) == language


def test_shares_are_of_all_texts_and_the_largest_comes_first() -> None:
    texts = [*DOCUMENTS["Japanese"][:3], *DOCUMENTS["Korean"][:1], *DOCUMENTS["English"][:6]]
    assert unknown_shares(texts, {"en"}) == {"Japanese": 0.3, "Korean": 0.1}
    assert unknown_shares(texts, {"en", "ja", "ko"}) == {}
    assert list(unknown_shares(texts, {"ko"})) == ["English", "Japanese"]


def test_a_script_is_known_to_a_model_of_any_of_its_languages() -> None:
    texts = ["Привіт, як справи?"]
    assert unknown_shares(texts, {"bg", "en"}) == {}
    assert unknown_shares(texts, {"en"}) == {"Cyrillic script": 1}


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("en", "en"),
        ("EN-us", "en"),
        ("zh_CN", "zh"),
        ("German", "de"),
        ("multilingual", ""),
        ("", ""),
    ],
)
def test_languages_are_read_as_models_write_them(name: str, code: str) -> None:
    assert code_of_language(name) == code
