"""Base forms of words in languages other than English, for the full-text index.

The index cuts Chinese and Japanese by a dictionary and stems English. For the other languages this
module computes base forms, which are appended to a text, and in the same way to a query:
- the stem of a word in German, Russian and other European languages;
- a Korean word without its particle or ending;
- the Chinese character of a Japanese verb or adjective, which its endings follow.

Only a form that the index would not make itself is appended. An English text gets none, so the
index of English documents stays as it is. docs/design/search.md has the measurements.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

import Stemmer

from anchord.core.lazy_re import lazy_re
from anchord.core.natural_language import COMMON_WORDS, ENGLISH, RUSSIAN, detect_language

STEMMER_IDENTITY = f"snowball {Stemmer.version()}"
"""Identity of what makes the stems: the forms of a text can differ between two of them."""
_HAN = "\u3005\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_HANGUL = "\uac00-\ud7af"
_HIRAGANA = "\u3041-\u309f"
_UNSPACED_RUN = lazy_re(f"[{_HAN}{_HIRAGANA}\u30a0-\u30ff]+")
_HIRAGANA_PAIR = lazy_re(f"[{_HIRAGANA}]{{2}}")
"""Endings and particles for the most part."""
_INFLECTED_WORD = lazy_re(rf"[a-zA-ZÀ-ɏ]{{2,40}}|[\u0400-\u052f]{{2,40}}|[{_HANGUL}]{{1,40}}")
_LATIN_WORD = lazy_re(r"[a-zß-ɏ]{2,40}")
_CYRILLIC_WORD = lazy_re(r"[\u0400-\u052f]{2,40}")
_KOREAN_WORD = lazy_re(f"[{_HANGUL}]{{2,40}}")
_HAN_CHARACTER = lazy_re(f"[{_HAN}]")
_LONE_HAN = lazy_re(f"(?<![{_HAN}])[{_HAN}](?![{_HAN}])")
_NOT_LATIN = lazy_re(f"[\u0400-\u052f\u0e00-\u0eff\u3040-\u30ff{_HAN}{_HANGUL}]")
_KOREAN_ENDING = lazy_re(
    f"(?<=[{_HANGUL}])(?:들)?(?:은|는|이|가|을|를|의|에|에서|에게|께서|한테|으로|로|와|과|랑|이랑|도|만|까지"
    "|부터|마다|보다|처럼|같이|조차|마저|밖에|이나|나|라도|이라도|으로서|로서|으로써|로써|에는|에도|에서는"
    "|에서도|으로는|로는|과는|와는|까지는|이라는|라는|입니다|이다|이며|이고|합니다|하다|했다|한다|하는|하고"
    "|하여|해서|하면|할|한|된|되는|됩니다|되어|됐다|되었다|하세요|하기|했습니다|하려면|해야|들)$"
)
"""Particles, and the endings of verbs made of a noun; the longest that fits is found first."""
_WEAK_WEIGHT = 0.2
"""Of stems in Latin letters, and of single Chinese characters. If stems counted more, a text in one
language would rank above one in another with the same names, because only the first has stems."""
_LATIN_LANGUAGES = tuple(name for name in COMMON_WORDS if name not in {ENGLISH, RUSSIAN})


def forms_of_text(text: str, surrounding_language: str = "") -> str:
    """Return the base forms that the full-text index should hold of a text besides its words.

    Args:
        text: What is indexed.
        surrounding_language: The language of the document, for a text too short to detect its own.

    Returns:
        The forms, separated by spaces, each once; "" for an English text.
    """
    language = detect_language(text) or surrounding_language
    return " ".join(_forms(text, [language]))


def forms_of_query(query: str) -> list[tuple[str, float]]:
    """Return the base forms to search for besides the words of a query.

    Args:
        query: Any text. If its language is not clear, as with a single word, the forms of every
            language in Latin letters are returned: an index without a language rarely has them.

    Returns:
        (forms separated by spaces, how much they count beside the words, 0 to 1). Empty for an
        English query.
    """
    if _NOT_LATIN.search(query):  # Its Latin words are names.
        by_script = " ".join(_forms(query, ()))
        # A text can have the characters of a word apart: to "water flowers" one waters them.
        characters = " ".join(dict.fromkeys(_HAN_CHARACTER.findall(query)))
        weighted = [(by_script, 1.0), (characters, _WEAK_WEIGHT)]
    else:
        language = detect_language(query)
        languages = [language] if language else _LATIN_LANGUAGES
        weighted = [(" ".join(_forms(query, languages)), _WEAK_WEIGHT)]
    return [(forms, weight) for forms, weight in weighted if forms]


def _forms(text: str, languages: Sequence[str]) -> dict[str, None]:
    """Return the forms of a text as keys; of its Latin words in each of these languages."""
    lower = unicodedata.normalize("NFKC", text).lower()
    forms: dict[str, None] = {}
    if not lower.isascii():
        forms.update(dict.fromkeys(_iter_forms_by_script(lower)))
    for language in languages:
        if language in _LATIN_LANGUAGES:
            forms.update(dict.fromkeys(_iter_stems(_LATIN_WORD.findall(lower), language)))
    return forms


def _iter_forms_by_script(text: str) -> Iterator[str]:
    """Yield the forms of those words whose language follows from their script."""
    yield from _iter_stems(_CYRILLIC_WORD.findall(text), RUSSIAN)
    for word in _KOREAN_WORD.findall(text):
        if ending := _KOREAN_ENDING.search(word):
            yield word[: ending.start()]
    yield from _LONE_HAN.findall(text)


def _iter_stems(words: Sequence[str], language: str) -> Iterator[str]:
    """Yield the stems of words, without those that the index makes of the word by itself."""
    meaningful = [word for word in dict.fromkeys(words) if word not in COMMON_WORDS[language]]
    if not meaningful:
        return
    # A stemmer must not be used by two threads at once; making one takes 2 µs.
    stems = Stemmer.Stemmer(language, 0).stemWords(meaningful)
    changed = [pair for pair in zip(meaningful, stems, strict=True) if pair[0] != pair[1]]
    english = Stemmer.Stemmer(ENGLISH, 0)
    for word, stem in changed:
        if _fold(english.stemWord(word)) != _fold(english.stemWord(stem)):
            yield stem


def _fold(word: str) -> str:
    """Return a word without its accents, as the index holds it."""
    if word.isascii():
        return word
    decomposed = unicodedata.normalize("NFKD", word).replace("ß", "ss")
    return "".join(filter(str.isalnum, decomposed))


def spans_of_other_forms(query: str, text: str) -> list[tuple[int, int]]:
    """Return where a text has other forms of the words of a query, to highlight them.

    Of Chinese and Japanese these are pairs of characters that the query has, too.

    Args:
        query: A query.
        text: A text that it found.

    Returns:
        Ranges [start, end) of characters, in no order; they may overlap.
    """
    pairs = {
        run[start : start + 2]
        for run in _UNSPACED_RUN.findall(query)
        for start in range(len(run) - 1)
        if not _HIRAGANA_PAIR.match(run, start)
    }
    spans = [match.span() for pair in pairs for match in re.finditer(pair, text)]
    language = _language_of(text)
    # Words of such a text have no other form in ASCII.
    if language not in _LATIN_LANGUAGES and (text.isascii() or query.isascii()):
        return spans
    wanted = _searched_words(query)
    spans += [
        word.span()
        for word in _INFLECTED_WORD.finditer(text)
        if not wanted.isdisjoint(_forms_of_word(word[0].lower(), language))
    ]
    return spans


@lru_cache(maxsize=64)
def _language_of(text: str) -> str:
    """Return the language of a text: one search asks for each of its words."""
    return detect_language(text)


@lru_cache(maxsize=256)
def _searched_words(query: str) -> frozenset[str]:
    """Return the words of a query and their other forms."""
    forms = " ".join(forms for forms, _ in forms_of_query(query))
    return frozenset([*_INFLECTED_WORD.findall(query.lower()), *forms.split()])


@lru_cache(maxsize=16_384)
def _forms_of_word(word: str, language: str) -> frozenset[str]:
    """Return a word in lower case and its other forms, without words of every text."""
    is_common = word in COMMON_WORDS.get(language, ())
    return frozenset() if is_common else frozenset([word, *_forms(word, [language])])
