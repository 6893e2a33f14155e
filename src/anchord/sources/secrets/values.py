"""Tells values that may be secrets from placeholders, expressions and words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from anchord.core.lazy_re import lazy_re

_PLACEHOLDER = lazy_re(
    r"your|xxxx|\*\*\*|\.\.\.|…|•••|<[\w\s./:-]{1,40}>|^[<>]|[<>]$|\{\{|\}\}|[$#]\{|\$\(|%\(\w+\)[sd]|\[redacted:|example|sample|"
    r"placeholder|^@microsoft\.keyvault|^(?:vault|op|ref\+\w+|awssm|arn:aws[\w-]{0,9}):|replac|change[_-]?(?:me|it|this)|insert|dummy|todo|fixme|lorem|not[_-]?a[_-]?real|"
    r"(?:^|[_\W])(?:my|fake|foo|bar|baz|test|mock|demo)(?:[_\W]|$)|^(?:some|the)(?:[_\W]|$)|"
    r"(?:[-_ ]|key|token|password|secret)here$|\\[swdb][+*)]|"
    r"(?:^|[_\W])an?(?:[_\s-]|$)|"
    r"(\w)\1{6,}|^(?:0?123456789?0?|0123456789abcdef|abcdefg\w{0,3}|abc123|deadbeef)$|"
    r"^(?:none|null|nil|true|false|undefined|yes|no|on|off|empty|default|string|str|text|bytes|"
    r"required|optional|hidden|bearer|basic|digest|password\d{0,4}!?|passwd|passw0rd|pass|pwd|"
    r"secrets?|tokens?|keys?|credentials?|api[_-]?key|admin|root|guest|user|username|letmein|qwerty)$"
)
_TOKEN_PLACEHOLDER = lazy_re(
    r"(?-i:xxxx|XXXX)|\*\*\*|\.\.\.|your[_-]|example|placeholder|replace|[_-]here$|"
    r"(\w)\1{15,}",
    re.IGNORECASE,
)
_EXPRESSION = lazy_re(
    r"\w\(|^[&*@!]?[A-Za-z_]\w*\[|^[$%@!{]|^[A-Z]\w*(?:Key|Token|Secret|String|Str|Bytes|Type)s?$|^[&*]?[A-Za-z_]\w*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)+[!?]?$|"
    r"^(?:self|this|process|os|env|args|config|settings|options|request|secrets|var|local|data|params)\."
)
_NAMES_AND_NUMBER = lazy_re(r"(?:[A-Z][a-z]{2,20}\.){1,3}[A-Z][a-z]{2,20}\d{2,4}[!?]?")
"""`Word.Word77`: an attribute in code, and in a sentence a password."""
_URL = lazy_re(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_DATE = lazy_re(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d.*)?")
_UUID = lazy_re(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PART = lazy_re(r"[A-Za-z0-9]+")
_WORD_AND_NUMBER = lazy_re(r"[A-Za-z]{1,}\d{0,3}|\d{1,4}|v\d{1,3}|\d{1,3}[a-z]{1,2}|[a-z]\d[a-z]+")
_CAMEL_PIECE = lazy_re(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_CONSONANTS = lazy_re(r"[bcdfghjklmnpqrstvwxz]{6,}", re.IGNORECASE)
_LETTER = lazy_re(r"[A-Za-z]")
_DIGIT = lazy_re(r"\d")
_SPECIAL = lazy_re(r"[!@#$%^&*+?~|=]")
_SYMBOL = lazy_re(r"[!@#$%^*~]")
SENTRY_HOST = r"[\w.-]{0,60}sentry[\w.-]{0,60}/\d"
_SENTRY_DSN = lazy_re(rf"https?://[0-9a-f]{{32}}@{SENTRY_HOST}+$")
_MAX_PLACEHOLDER = 80
"""Only so much of a value is compared with placeholders: a long random one contains their words."""
_MAX_TOKEN_PLACEHOLDER = 300
_MIN_SYMBOLS = 3
_MIN_DISTINCT = 6
_MIN_CAMEL_LENGTH = 2.5
_MIN_RANDOM_CHARS = 10
_MIN_MIXED_CHARS = 8
_MIN_LETTERS_ONLY_CHARS = 16
_MIN_PASSWORD_CHARS = 5
_MIN_PHRASE_WORDS = 3
_MIN_PHRASE_CHARS = 10
_PAIR = 2
_SEPARATORS = lazy_re(r"[-_.]")
_VERSION = lazy_re(r"v?\d+(?:\.\d+)+")
_BINDING_WORDS = frozenset(
    """
    a an and are as at be by for from in into is it its not of off on only or out per than that the
    then to up via was with without must should will can please same self auto non pre re sub multi
    server client side time case read write left right top first last one two level based well known
    long short old new next plain text base64 utf8 sha256 sha1 sha512 md5 md4 aes256 ascii
    """.split()  # noqa: SIM905 - a list of words
)
_DESCRIBED = lazy_re(r"(?:[A-Za-z]\w*-)+[a-z]+(?:ed|able|ible|only|based|like|compliant)")
_DESCRIBES = lazy_re(
    r"(?:.(?:ed|able|ible|less|ly|ive|ized|ised)|only|aware|free|safe|specific|dependent|insensitive)$"
)
_NAMES_ITSELF = lazy_re(r"pass|pwd|secret|token|credential|key|auth|login|user|required|valid")


def is_placeholder(value: str) -> bool:
    """Return whether a value stands for a secret that a reader is to fill in."""
    return bool(_PLACEHOLDER.search(value[:_MAX_PLACEHOLDER].lower()))


def is_token_placeholder(token: str) -> bool:
    """Return whether a token of a provider's form is one from a manual, such as `ghp_xxxx`."""
    head = token[:_MAX_TOKEN_PLACEHOLDER]
    distinct_at_end = set(token[-24:])
    return bool(_TOKEN_PLACEHOLDER.search(head)) or len(distinct_at_end) < _MIN_DISTINCT


def is_sentry_dsn(value: str) -> bool:
    """Return whether a value is a Sentry DSN. It has no secret: web pages contain it."""
    return bool(_SENTRY_DSN.match(value))


def is_expression(value: str) -> bool:
    """Return whether an unquoted value is code or a path: it names a secret and is none."""
    if _EXPRESSION.search(value) or _URL.match(value):
        return True
    return value[0] in "/~.[" and (value[0] == "[" or is_wordy(value))


def is_wordy(value: str) -> bool:
    """Return whether a value consists of words, short numbers and separators."""
    is_symbols = len(_SYMBOL.findall(value)) >= _MIN_SYMBOLS
    return not is_symbols and all(_is_word(part) for part in _PART.findall(value))


def is_random(value: str) -> bool:
    """Return whether a value looks generated: key material, a hash or an id."""
    if len(value) < _MIN_MIXED_CHARS or len(set(value)) < _MIN_DISTINCT:
        return False
    if _UUID.fullmatch(value):
        return True
    if _DATE.fullmatch(value) or is_wordy(value) or not _LETTER.search(value):
        return False
    if value.isalpha() and (value.istitle() or not value.isascii()):  # A long word.
        return False
    if not _DIGIT.search(value):
        return len(value) >= _MIN_LETTERS_ONLY_CHARS
    return len(value) >= _MIN_RANDOM_CHARS or _is_mixed(value)


def is_password(value: str, *, is_quoted: bool) -> bool:
    """Return whether a value that is assigned to a password's name is one.

    Args:
        value: The value without quotes.
        is_quoted: Whether it is in quotes. Without them it can be a variable or a type.
    """
    if len(value) < _MIN_PASSWORD_CHARS or any(char.isspace() for char in value):
        return False
    has_digit = bool(_DIGIT.search(value))
    has_letter = bool(_LETTER.search(value))
    if has_digit:
        return has_letter or len(value) > _MIN_DISTINCT
    if not is_wordy(value) or (has_letter and _SPECIAL.search(value[1:])):
        return True
    return _is_pass_phrase(value, is_quoted=is_quoted)


def is_description(value: str) -> bool:
    """Return whether a word says of what kind something is, such as `base64-encoded`."""
    return bool(_DESCRIBED.fullmatch(value))


def is_chosen(value: str) -> bool:
    """Return whether a word in a sentence looks like a password and not like a word of prose."""
    if "://" in value or value[0] in "/~$%{([<-#@" or _NAMES_ITSELF.search(value.lower()):
        return False
    parts = _SEPARATORS.split(value)
    if not all(_is_free_word(part) for part in parts):
        return False
    has_digit = bool(_DIGIT.search(value))
    if has_digit or _SPECIAL.search(value[1:-1]):
        is_code = _EXPRESSION.search(value) and not _NAMES_AND_NUMBER.fullmatch(value)
        is_part_of_code = is_code or _DATE.fullmatch(value)
        return any(map(str.isalpha, value)) and not is_part_of_code and not _VERSION.match(value)
    return is_word_list(parts)


def is_word_list(words: Sequence[str]) -> bool:
    """Return whether words are strung together as in a pass phrase, and not as in a sentence."""
    letter_count = sum(map(len, words))
    is_long = len(words) >= _MIN_PHRASE_WORDS and letter_count >= _MIN_PHRASE_CHARS
    return is_long and all(word.isalpha() and _is_free_word(word) for word in words)


def is_two_words(value: str) -> bool:
    """Return whether a value is two words with a separator, such as `quiet-mountain`."""
    words = _SEPARATORS.split(value)
    is_pair = len(words) == _PAIR and "." not in value and len(value) >= _MIN_PHRASE_CHARS
    is_free = all(word.isalpha() and _is_free_word(word) for word in words)
    return is_pair and is_free and not _NAMES_ITSELF.search(value.lower())


def _is_free_word(word: str) -> bool:
    """Return whether a word can stand in a pass phrase: it binds no others and describes none."""
    lower = word.lower()
    return lower not in _BINDING_WORDS and not _DESCRIBES.search(lower)


def _is_pass_phrase(value: str, *, is_quoted: bool) -> bool:
    """Return whether letters are a password: a long word in quotes, or three with hyphens."""
    if _NAMES_ITSELF.search(value.lower()):
        return False
    if value.islower() and value.isalpha():
        return is_quoted and len(value) >= _MIN_MIXED_CHARS
    if value.isalpha():
        return is_quoted and is_word_list(_CAMEL_PIECE.findall(value))
    return is_word_list(_SEPARATORS.split(value.replace(",", "-")))


def _is_mixed(value: str) -> bool:
    has_upper = any(map(str.isupper, value))
    return has_upper and any(map(str.islower, value))


def _is_word(part: str) -> bool:
    if not _WORD_AND_NUMBER.fullmatch(part):
        return False
    letters = part.rstrip("0123456789")
    if _CONSONANTS.search(letters):
        return False
    pieces = _CAMEL_PIECE.findall(letters)
    return len(pieces) <= 1 or len(letters) / len(pieces) >= _MIN_CAMEL_LENGTH
