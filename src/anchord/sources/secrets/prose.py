"""Finds passwords that a sentence or a list names: "the password is ...", `**PW:** ...`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from anchord.sources.secrets.finding import Finding
from anchord.sources.secrets.values import is_chosen, is_placeholder, is_word_list
from anchord.sources.secrets.words import WordPlaces

_PASS_NAMES = re.compile(r"pass(?:word|wort|phrase|code|e)(?:s|es)?")
_NAMES = (
    *("kennwort", "senha", "wachtwoord", "adgangskode", "passord", "salasana", "heslo", "geslo"),
    *("lozinka", "parola", "contrasenya", "kata sandi", " pw"),
)
_NAMES_BEYOND_ASCII = (
    *("contraseña", "lösenord", "hasło", "jelszó", "şifre", "şifresi", "şifreniz", "parolas\u0131"),
    *("mật khẩu", "пароль", "парола", "лозинка", "κωδικός", "סיסמה", "كلمة المرور", "पासवर्ड"),
)
"""What people call a password, in a text in lower case."""
_NAMES_WITHOUT_SPACES = ("パスワード", "密码", "密碼", "비밀번호")
_SAID_WITHOUT_SPACES = re.compile(
    r"(?:は|为|為|是|은|는|가|\s|[:=\uff1a]){1,4}[「『“\"'`]?(?P<value>[!#-&(-;=?-_a-~]{5,200})"
)
_SAID = re.compile(
    r"[*_]{0,2}(?:\s(?:for|of|at|on|in|für|zum|zur|im|am|vom|van|voor|pour|du|de|del|per|do|da|dla|til|för|для|от|to)"
    r"(?:\s[\w@./'-]{1,40}){1,3})?"
    r"\s{0,2}(?:(?:\s(?:is|was|lautet|ist|war|est|es|è|é|jest|to|auf|à|a|это|\u2013|\u2014)"
    r"(?:\s(?:now|jetzt|set to))?)?\s?:?|:[*_]{0,2})\s{1,3}"
    r"(?P<open>[*_]{0,2}[`\"'“„«]?)(?P<value>[^\s`\"'“”«»|<>]{5,200})"
)
_QUOTED_PHRASE = re.compile(
    r"[*_]{0,2}\s{0,2}(?:is|was|lautet|ist|est|es|è|é|=|:)\s{0,3}"
    r"[`\"“„](?P<value>[a-z]{3,12}(?:[ ](?:[a-z]{3,12}|\d{1,4})){2,9})[`\"”“]"
)
_SAID_BEFORE = re.compile(
    r"[`\"'“](?P<value>[^\s`\"'“”]{5,80})[`\"'”]\s(?:as|als|comme|como|come|is|ist)\s"
    r"(?:(?:the|your|my|its|das|mein|dein|le|la|el)\s)?(?:[\w-]{1,20}\s){0,2}$"
)
_MAX_BEFORE = 120
_CELL = re.compile(
    r"[*_`]{0,3}\s{0,20}\|\s{0,20}[`*]{0,3}(?P<value>[^\s|`*]{5,200})[`*]{0,3}\s{0,20}\|"
)
_PROMPT = re.compile(r" for '[^'\n]{1,200}': (?P<value>\S{4,2000})$", re.MULTILINE)
_WORD = re.compile(r"[a-z]+")
_SEED_NAMES = (" phrase", "seed words", "recovery words", "mnemonic")
_SEED = re.compile(
    r"[^\n:=]{0,30}(?:[:=]|\sis)[\s\"'`]{1,4}(?:\d{1,2}[.)] )?"
    r"(?P<value>[a-z]{3,8}(?:(?:[ ,\n]{1,2}[a-z]{3,8}){11,23}"
    r"|(?:[ ,\n]{1,2}\d{1,2}[.)] [a-z]{3,8}){11,23}))\b"
)
_CODE_NAMES = ("recovery code", "backup code")
_CODES = re.compile(
    r"[^\n]{0,60}:[ \t]*(?:\n[ \t]*){0,3}"
    r"(?P<codes>(?:[ \t*\-\d.]{0,6}[a-z0-9]{4,10}(?:-[a-z0-9]{4,10}){0,3}[ ,\t\n]{1,3}){1,20})"
)
_OTP_NAMES = ("setup key", "2fa key", "authenticator key")
_OTP = re.compile(r"(?:\sis)?[\s:=\"'`]{1,4}(?P<value>(?:[a-z2-7]{4}[ -]){3,15}[a-z2-7]{4})\b")
WORDS = (
    "pass",
    *_NAMES,
    *_NAMES_BEYOND_ASCII,
    *_NAMES_WITHOUT_SPACES,
    *_SEED_NAMES,
    *_CODE_NAMES,
    *_OTP_NAMES,
)
_CODE = re.compile(r"[a-z0-9]{4,10}(?:-[a-z0-9]{4,10})+|[a-z0-9]{8,10}")


def find_in_prose(text: str, lower_text: str, places: WordPlaces) -> Iterator[Finding]:
    """Yield the passwords, seed phrases and recovery codes that words beside them name.

    Args:
        text: The text.
        lower_text: The same in lower case, of the same length.
        places: Where the words of this module stand in it.
    """
    for place in places.of("pass"):
        name = _PASS_NAMES.match(lower_text, place)
        if name:
            yield from _find_at(text, lower_text, place, name.end())
    for word in (*_NAMES, *_NAMES_BEYOND_ASCII):
        for place in places.of(word):
            yield from _find_at(text, lower_text, place, place + len(word))
    yield from _find_without_spaces(text, places)
    for word in _SEED_NAMES:
        for place in places.of(word):
            match = _SEED.match(lower_text, place + len(word))
            if match and len(set(_WORD.findall(match["value"]))) >= _MIN_SEED_WORDS:
                yield Finding(*match.span("value"), "seed-phrase")
    yield from _find_otp_seeds(lower_text, places)
    for word in _CODE_NAMES:
        for place in places.of(word):
            yield from _find_codes(lower_text, place + len(word))


def _find_otp_seeds(lower_text: str, places: WordPlaces) -> Iterator[Finding]:
    for word in _OTP_NAMES:
        for place in places.of(word):
            match = _OTP.match(lower_text, place + len(word))
            if match and not _WORD.fullmatch(match["value"].replace(" ", "").replace("-", "")):
                yield Finding(*match.span("value"), "otp-seed")


def _find_without_spaces(text: str, places: WordPlaces) -> Iterator[Finding]:
    for word in _NAMES_WITHOUT_SPACES:
        for place in places.of(word):
            match = _SAID_WITHOUT_SPACES.match(text, place + len(word))
            if match and (found := _chosen_value(match)):
                yield found


_MIN_SEED_WORDS = 9
"""A phrase may have a word twice; prose has few words so often."""


def _find_at(text: str, lower_text: str, start: int, after: int) -> Iterator[Finding]:
    following = text[after : after + 1]
    if following.isalnum() or following in "_-.(":
        return  # Part of a longer name.
    for pattern in (_SAID, _CELL, _PROMPT):
        match = pattern.match(text, after)
        if match and (found := _chosen_value(match)):
            yield found
            return
    match = _QUOTED_PHRASE.match(lower_text, after)
    if match and is_word_list(_WORD.findall(match["value"])):
        yield Finding(*match.span("value"), "assigned")
        return
    end = start + 1 if text[start] == " " else start
    match = _SAID_BEFORE.search(text, max(0, start - _MAX_BEFORE), end)
    if match and is_chosen(match["value"]) and not is_placeholder(match["value"]):
        yield Finding(*match.span("value"), "assigned")


def _chosen_value(match: re.Match[str]) -> Finding | None:
    start = match.start("value")
    value = match["value"].removesuffix("**").rstrip(".,;:)]}?\\")
    if not value:  # Nothing but punctuation.
        return None
    if match.re is not _PROMPT and (is_placeholder(value) or not is_chosen(value)):
        return None
    return Finding(start, start + len(value), "assigned")


def _find_codes(lower_text: str, after: int) -> Iterator[Finding]:
    match = _CODES.match(lower_text, after)
    if match is None:
        return
    for code in _CODE.finditer(lower_text, *match.span("codes")):
        has_digit = any(map(str.isdigit, code[0]))
        if has_digit and any(map(str.isalpha, code[0])):
            yield Finding(*code.span(), "recovery-code")
