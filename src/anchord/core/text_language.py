"""The language of a text as an ISO 639-1 code, and which texts a model does not know."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence

from anchord.core.natural_language import OTHER_LETTER, detect_language

_CODES = {
    "english": "en",
    "german": "de",
    "french": "fr",
    "spanish": "es",
    "italian": "it",
    "portuguese": "pt",
    "dutch": "nl",
    "swedish": "sv",
    "danish": "da",
    "norwegian": "no",
    "polish": "pl",
    "czech": "cs",
    "finnish": "fi",
    "russian": "ru",
}
_SCRIPTS = {
    "ja": "\u3040-\u30ff",
    "zh": "\u3400-\u9fff\uf900-\ufaff",
    "ko": "\u1100-\u11ff\uac00-\ud7af",
    "Cyrl": "\u0400-\u052f",
    "el": "\u0370-\u03ff\u1f00-\u1fff",
    "he": "\u0590-\u05ff",
    "Arab": "\u0600-\u06ff\u0750-\u077f",
    "Deva": "\u0900-\u097f",
    "th": "\u0e00-\u0e7f",
    "ka": "\u10a0-\u10ff",
    "hy": "\u0530-\u058f",
}
"""Language or script -> its letters. A script of several languages has four letters."""
_PATTERNS = {code: re.compile(f"[{letters}]") for code, letters in _SCRIPTS.items()}
_LANGUAGES_OF = {
    "Cyrl": {"ru", "uk", "bg", "sr", "mk", "be", "kk", "mn", "ky", "tg"},
    "Arab": {"ar", "fa", "ur", "ps"},
    "Deva": {"hi", "mr", "ne", "sa"},
    "da": {"da", "no", "nb", "nn"},  # The detection does not tell these apart.
    "no": {"da", "no", "nb", "nn"},
}
"""What is detected -> the languages that it can be, where these are several."""
_OTHER_NAMES = {
    "ja": "Japanese",
    "zh": "Chinese",
    "ko": "Korean",
    "Cyrl": "Cyrillic script",
    "el": "Greek",
    "he": "Hebrew",
    "Arab": "Arabic script",
    "Deva": "Devanagari script",
    "th": "Thai",
    "ka": "Georgian",
    "hy": "Armenian",
}
_NAMES = {code: name.capitalize() for name, code in _CODES.items()} | _OTHER_NAMES
DETECTED_LANGUAGES = frozenset(_NAMES)
"""Whatever `text_language` returns, but for ""."""
_MIN_KANA_SHARE = 0.05
"""Japanese is written in Chinese characters and kana, Chinese has no kana."""


def text_language(text: str) -> str:
    """Return the language of a text, "" if it is not clear.

    Args:
        text: Any text, such as a chunk. Code counts as unclear, and so do most short texts.

    Returns:
        An ISO 639-1 code, or the ISO 15924 code of a script of several languages.
    """
    letters = sum(map(str.isalpha, text))
    others = "".join(OTHER_LETTER.findall(text))
    detected = _CODES.get(detect_language(text), "")
    if 3 * len(others) <= letters:
        return detected
    counts = {code: len(pattern.findall(others)) for code, pattern in _PATTERNS.items()}
    if counts["ja"] > _MIN_KANA_SHARE * (counts["ja"] + counts["zh"]):
        return "ja"
    script = max(counts, key=lambda code: counts[code])
    if not counts[script]:
        return ""
    return detected if script == "Cyrl" and detected == "ru" else script


def code_of_language(name: str) -> str:
    """Return the code of a language in a model's description: `en-US`, `zh_CN` and `English`.

    Returns:
        An ISO 639 code in lower case, as it stands there; "" for what names no language.
    """
    plain = re.split(r"[-_]", name.strip().lower())[0]
    if plain in _CODES:
        return _CODES[plain]
    return plain if re.fullmatch(r"[a-z]{2,3}", plain) else ""


def unknown_shares(texts: Sequence[str], known: Collection[str]) -> dict[str, float]:
    """Return the share of texts in each language that is not among some, the largest first.

    Args:
        texts: A sample.
        known: Codes of languages.

    Returns:
        Name of a language -> 0 to 1 of all texts. Texts in an unclear language count as known.
    """
    languages = Counter(filter(None, map(text_language, texts)))
    return {
        _NAMES[code]: count / len(texts)
        for code, count in languages.most_common()
        if _LANGUAGES_OF.get(code, {code}).isdisjoint(known)
    }
