"""Detect the language of a text by its most common words.

It needs no model and no data files. Measured on the help of Obsidian in 13 languages, in pieces of
800 characters: 95 % are detected correctly (Danish and Norwegian count as one language), 4 % not at
all; of 7,900 pieces of English documentation and code 0.2 % are taken for another language. A piece
takes about 0.1 ms.
"""

from __future__ import annotations

import re
from collections import Counter
from operator import itemgetter

ENGLISH = "english"
RUSSIAN = "russian"

_COMMON_WORDS = {
    ENGLISH: (
        "the and that this with you your are which from have been were they their there when "
        "what should would could about into only then than these those does because how why "
        "where to of in is it for on at as be or by do not if an can no we will was but all any "
        "each return"
    ),
    "german": (
        "der das und ist nicht ein eine einen einem einer eines mit auf für von dem des sich "
        "auch werden wird wurde sind im zum zur bei nach oder wenn dass daß wie noch nur über "
        "ich wir sie kann können haben durch aus bis vor als man diese dieser dieses keine die "
        "hat es um"
    ),
    "french": (
        "le les une dans pour qui que sur avec par pas ce cette sont au aux du ou où vous nous "
        "être avoir fait mais comme leur elle ils était même ces dont sans et la est des plus "
        "de"
    ),
    "spanish": (
        "el los las una que por con del se como más pero este esta está su sus lo al cuando "
        "también muy sin sobre ser hay donde entre todos desde y para la de es en"
    ),
    "italian": (
        "il lo gli di che è una per con della delle dei nel nella sono come anche più questo "
        "questa alla dal essere degli dalla quando si non la un"
    ),
    "portuguese": (
        "os uma que não por da dos das em mais mas ao foi são você isso este esta pelo pela ou "
        "ser está também muito seu sua quando para um de se como"
    ),
    "dutch": (
        "het een van niet met voor zijn ook aan maar wordt worden deze dit naar uit nog kan "
        "heeft hebben wij je ik geen om dan te door en de"
    ),
    "swedish": (
        "och att det som är på av för till inte har ett jag ska från eller också när vi sig "
        "detta efter alla mycket du en kan om"
    ),
    "danish": (
        "og det er på af til ikke har som et jeg fra eller også når vi sig denne efter skal "
        "være hvor hvis blev meget du en kan"
    ),
    "norwegian": (
        "og det er på av til ikke har som et jeg fra eller også når vi seg denne etter skal "
        "være hvor hvis ble mye noen du en kan"
    ),
    "polish": (
        "nie się na jest że jak ale przez dla od tak czy są oraz tego być który która które "
        "może tylko już jego przy jako"
    ),
    "czech": (
        "se na je že jak ale pro od jsou nebo být který která které může není také jako při "
        "podle pokud když jen už její této tento můžete"
    ),
    "finnish": (
        "ja on ei että se joka kuin niin mutta tai jos myös voit kun ovat sen tämä tämän ole "
        "kanssa voi jotka kaikki mukaan"
    ),
    RUSSIAN: (
        "и в не на что он она они как это по но из за от так же для все "
        "его то был была было у о или если когда мы вы который чтобы "  # noqa: RUF001 - Russian
        "нет к с до при надо их"  # noqa: RUF001 - Russian
    ),
}
"""Language -> its most common words, without most that are also English words or in code."""
COMMON_WORDS = {name: frozenset(words.split()) for name, words in _COMMON_WORDS.items()}
"""Language -> its most common words, in lower case."""
_MIN_VOTES = 2
OTHER_LETTER = re.compile(r"(?![\u0000-\u024f\u1e00-\u1eff])[^\W\d_]")
"""A letter of another script than Latin."""
_WORD = re.compile(r"[^\W\d_]+")
_SPACE_FOR_OTHERS = "".join(chr(code) if chr(code).isalpha() else " " for code in range(128))
"""A table for `str.translate` of texts in ASCII."""


def _languages_by_word() -> dict[str, list[str]]:
    languages: dict[str, list[str]] = {}
    for language, words in COMMON_WORDS.items():
        for word in words:
            languages.setdefault(word, []).append(language)
    return languages


_LANGUAGES_BY_WORD = _languages_by_word()


def detect_language(text: str) -> str:
    """Return the language of a text as in `COMMON_WORDS`, "" if it is another or not clear.

    Args:
        text: Any text. Texts of fewer than ten words often have too few common words.
    """
    votes: dict[str, int] = {}  # A Counter takes twice as long.
    # In the order of their first words, which decides between languages of as many votes.
    counts = Counter(filter(_LANGUAGES_BY_WORD.__contains__, _words(text.lower())))
    for word, count in counts.items():
        for language in _LANGUAGES_BY_WORD[word]:
            votes[language] = votes.get(language, 0) + count
    best, best_count = max(votes.items(), key=itemgetter(1), default=("", 0))
    return best if best_count >= _MIN_VOTES else ""


def _words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    if text.isascii():  # The same words in a quarter of the time.
        return text.translate(_SPACE_FOR_OTHERS).split()
    return _WORD.findall(text)
