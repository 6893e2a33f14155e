"""Finds passwords that a sentence or a list names: "the password is ...", `**PW:** ...`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from anchord.core.lazy_re import lazy_re
from anchord.sources.secrets.finding import Finding
from anchord.sources.secrets.values import is_chosen, is_placeholder, is_random, is_word_list
from anchord.sources.secrets.words import WordPlaces

_PASS_NAMES = lazy_re(r"pass(?:word|wort|phrase|code|e)(?:s|es)?")
_NAMES = (
    *"kennwort senha wachtwoord adgangskode adgangskoden passord passordet salasana".split(),  # noqa: SIM905 - a list of words
    *("heslo", "geslo", "lozinka", "parola", "contrasenya", "kata sandi", " pw"),
    " clave",
)
_NAMES_BEYOND_ASCII = (
    *("contraseña", "lösenord", "lösenordet", "hasło", "jelszó", "şifre", "şifresi", "şifreniz"),
    *("parolas\u0131", "mật khẩu", "пароль", "парола", "лозинка", "κωδικός", "סיסמה"),
    *("كلمة المرور", "पासवर्ड", "schlüssel"),
)
"""What people call a password, in a text in lower case."""
_NAMES_WITHOUT_SPACES = ("パスワード", "密码", "密碼", "비밀번호")
_SAID_WITHOUT_SPACES = lazy_re(
    r"(?:\uff08[^\uff08\uff09\n]{1,20}\uff09)?(?:は|为|為|是|은|는|가|\s|[:=\uff1a]){1,4}[「『“\"'`]?(?P<value>[!#-&(-;=?-_a-~]{5,200})"
)
_SAID = lazy_re(
    r"[*_]{0,2}(?:\s(?:for|of|at|on|in|für|der|des|zum|zur|im|am|vom|van|voor|pour|du|de|del|per|do|da|dla|til|för|для|от|to)"
    r"(?:\s[\w@./'-]{1,40}){1,3})?"
    r"\s{0,2}(?:(?:\s(?:is|was|lautet|ist|war|est|es|er|är|è|é|jest|to|auf|à|a|это|\u2013|\u2014)"
    r"(?:\s(?:now|jetzt|désormais|maintenant|ahora|ora|nu|set to))?)?\s?:?|:[*_]{0,2})\s{1,3}"
    r"(?P<open>[*_]{0,2}(?:[`\"'“„]|«\s?)?)(?P<value>[^\s`\"'“”«»|<>]{5,200})"
)
_DIRECT = lazy_re(r"\s(?P<value>(?=\S{0,60}\d)[^\W\d]\S{5,60}?)(?=[.,;]?(?:\s|$))")
"""Without a verb: in languages whose letters are no ASCII, code has no such words."""
_QUOTED_PHRASE = lazy_re(
    r"[*_]{0,2}(?:\s(?:for|of|on|to)(?:\s[\w'-]{1,20}){1,4})?\s{0,2}"
    r"(?:is|was|lautet|ist|est|es|è|é|=|:)\s{0,3}"
    r"[`\"“„](?P<value>[a-z]{1,12}(?:[ ](?:[a-z]{1,12}|\d{1,4})){2,9})[`\"”“]"
)
_SAID_BEFORE = lazy_re(
    r"[`\"'“](?P<value>[^\s`\"'“”]{5,80})[`\"'”]\s(?:as|als|comme|como|come|is|ist)\s"
    r"(?:(?:the|your|my|its|das|mein|dein|le|la|el)\s)?(?:[\w-]{1,20}\s){0,2}$"
)
_MAX_BEFORE = 120
_MAIL_WORDS = ("gmail", "smtp")
_MAX_AFTER_MAIL = 200
_OTHER_NAMES = ("one is ", "one was ", "new value: ")
_OTHER = lazy_re(r"[`\"'“]?(?P<value>[^\s`\"'”]{6,80})")
"""The password that is said after another one was named."""
_PIN_NAMES = (
    *("pin is ", "pin: ", "pin code is ", "pin lautet ", "pin ist ", "pin est ", "pin es ", "pin "),
    *("pincode is ", "pincode: ", "pin-kod är ", "pin-koden är ", "puk: ", "puk is ", "puk "),
    *(
        f"{what} code{verb} "
        for what in ("door", "gate", "alarm", "keypad")
        for verb in (" is", ":")
    ),
)
_PIN_WITHOUT_SPACES = lazy_re(
    r"(?:\uff08[^\uff08\uff09\n]{1,20}\uff09)?(?:は|为|是|\s|[:=\uff1a]){1,3}(?P<value>\d{4,8})(?![\w.])"
)
_PIN_NAMES_WITHOUT_SPACES = ("暗証番号", "个人识别码")
_PIN = lazy_re(r"(?P<value>\d{4,12}[#*]?)(?![\w.]*\w)")
_CELL = lazy_re(
    r"[*_`]{0,3}\s{0,20}\|\s{0,20}[`*]{0,3}(?P<value>[^\s|`*]{5,200})[`*]{0,3}\s{0,20}\|"
)
_HTML_CELL = lazy_re(
    r"\s{0,4}</t[hd]>\s{0,40}<td[^<>\n]{0,80}>\s{0,20}(?P<value>[^\s<>]{5,200})\s{0,20}</td>"
)
_NEXT_LINE = lazy_re(
    r"[^\n]{0,120}:[ \t]{0,4}\n[ \t]{0,8}[`*]{0,3}(?P<value>[^\s`*]{8,100})[`*]{0,3}"
    r"[ \t]{0,4}(?=\n|$)"
)
_IN_NAME = lazy_re(r"[-_](?P<value>(?=\w{0,40}\d)[A-Za-z0-9]{8,40})(?![\w-])")
"""In the name of a file: `router-password-Kd83nvQe.txt`."""
_SHELL_PROMPT = lazy_re(r"[\w.-]{1,40}@[\w.-]{1,60}:\S{0,80}[$#%]")
_FROM_TO = lazy_re(
    r"\sfrom\s[`\"']?(?P<old>[^\s`\"']{5,80})[`\"']?\sto\s[`\"']?(?P<value>[^\s`\"']{5,80})"
)
_PAIR_NAMES = ("log in", "login", "logins", "credential", "creds", "sign in", "zugang")
_PAIR = lazy_re(r"[^\n]{0,90}?[\w@.] / (?P<value>[^\s/|`\"']{6,80})(?=\s|$)")
"""User and password: `lena@example.org / secret`."""
_APP_PASSWORD = lazy_re(r"[^\n.]{0,30}?[\s:\"'`](?P<value>[a-z]{4}(?: [a-z]{4}){3})\b")
_QUOTED_APP_PASSWORD = lazy_re(r"[\"'](?P<value>[a-z]{4}(?: [a-z]{4}){3})[\"']")
_NO_WORD = lazy_re(r"[bcdfghjklmnpqrstvwxz]{3}")
"""Four letters of a word rarely have three consonants in a row."""
_PROMPT = lazy_re(r" for '[^'\n]{1,200}': (?P<value>\S{4,2000})$", re.MULTILINE)
_WORD = lazy_re(r"[a-z]+")
_SEED_NAMES = (
    " phrase",
    "seed",
    "seed words",
    "recovery words",
    "mnemonic",
    *(f"{n} words" for n in (12, 15, 18, 21, 24)),
)
_SEED = lazy_re(
    r"[^\n:=]{0,30}(?:[:=]|\sis)[\s\"'`]{1,4}(?:\d{1,2}[.)] )?"
    r"(?P<value>[a-z]{3,8}(?:(?:[ ,\n]{1,2}[a-z]{3,8}){11,23}"
    r"|(?:[ ,\n]{1,2}\d{1,2}[.)] [a-z]{3,8}){11,23}))\b"
)
_CODE_NAMES = ("recovery code", "backup code")
_CODES = lazy_re(
    r"[^\n]{0,60}:[ \t]*(?:\n[ \t]*){0,3}"
    r"(?P<codes>(?:[ \t*\-\d.)]{0,6}[a-z0-9]{4,10}(?:[- ][a-z0-9]{4,10}){0,3}"
    r"(?:[ ,\t\n]{1,3}|$)){1,20})"
)
_CODE_LINES = lazy_re(
    r"[^\n]{0,80}\n(?:[^\n]{0,80}\n){0,3}?"
    r"(?P<codes>(?:[ \t*\-\d.)]{0,6}[a-z0-9]{4,10}(?:[- ][a-z0-9]{4,10}){1,3}"
    r"[ \t]{0,4}(?:\n|$)){2,20})"
)
_OTP_NAMES = ("setup key", "2fa key", "authenticator key", "manual key", "entry key", "totp secret")
_OTP = lazy_re(r"(?:\sis)?[\s:=\"'`]{1,4}(?P<value>(?:[a-z2-7]{4}[ -]?){3,15}[a-z2-7]{4})\b")
WORDS = (
    "pass",
    *_NAMES,
    *_NAMES_BEYOND_ASCII,
    *_NAMES_WITHOUT_SPACES,
    *_SEED_NAMES,
    *_CODE_NAMES,
    *_OTP_NAMES,
    *_PAIR_NAMES,
    *_OTHER_NAMES,
    *_PIN_NAMES,
    *_PIN_NAMES_WITHOUT_SPACES,
    "app pass",
    *_MAIL_WORDS,
)
_CODE = lazy_re(r"[a-z0-9]{4,10}(?:-[a-z0-9]{4,10})+|\b\d{4} \d{4}\b|[a-z0-9]{8,10}")
_DIGIT_CODE = lazy_re(r"\d{4} ?\d{4}")


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
    for word, place in places.each((*_NAMES, *_NAMES_BEYOND_ASCII)):
        yield from _find_at(text, lower_text, place, place + len(word))
    for word, place in places.each((*_NAMES_BEYOND_ASCII, " clave")):
        match = _DIRECT.match(text, place + len(word))
        if match and (found := _chosen_value(match)):
            yield found
    yield from _find_without_spaces(text, places)
    yield from _find_pairs(text, places)
    yield from _find_app_passwords(lower_text, places)
    yield from _find_others(text, lower_text, places)
    for word, place in places.each(_SEED_NAMES):
        match = _SEED.match(lower_text, place + len(word))
        if match and len(set(_WORD.findall(match["value"]))) >= _MIN_SEED_WORDS:
            yield Finding(*match.span("value"), "seed-phrase")
    yield from _find_otp_seeds(lower_text, places)
    for word, place in places.each(_CODE_NAMES):
        yield from _find_codes(lower_text, place + len(word))


def _find_otp_seeds(lower_text: str, places: WordPlaces) -> Iterator[Finding]:
    for word, place in places.each(_OTP_NAMES):
        match = _OTP.match(lower_text, place + len(word))
        if match and not _WORD.fullmatch(match["value"].replace(" ", "").replace("-", "")):
            yield Finding(*match.span("value"), "otp-seed")


def _find_pairs(text: str, places: WordPlaces) -> Iterator[Finding]:
    for place in places.of_any(_PAIR_NAMES):
        match = _PAIR.match(text, place)
        has_digit = match is not None and any(map(str.isdigit, match["value"]))
        if match and has_digit and (found := _chosen_value(match)):
            yield found


def _find_others(text: str, lower_text: str, places: WordPlaces) -> Iterator[Finding]:
    """Yield the password in "the new one is ..." after another password; PINs and PUKs."""
    for word, place in places.each(_OTHER_NAMES):
        match = _OTHER.match(text, place + len(word))
        is_after_password = "pass" in lower_text[max(0, place - _MAX_BEFORE) : place]
        if match and is_after_password and (found := _chosen_value(match)):
            yield found
    yield from _find_pins(text, places)


def _find_pins(text: str, places: WordPlaces) -> Iterator[Finding]:
    matches: list[re.Match[str] | None] = []
    for word, place in places.each(_PIN_NAMES):
        before = text[place - 1 : place]
        is_name = not word.startswith(("pin ", "pin:")) or text.startswith("PIN", place)
        is_name = is_name and not before.isalnum()
        if is_name:
            matches.append(_PIN.match(text, place + len(word)))
    for word, place in places.each(_PIN_NAMES_WITHOUT_SPACES):
        after = place + len(word)
        matches.append(_PIN_WITHOUT_SPACES.match(text, after))
    for match in filter(None, matches):
        start, end = match.span("value")
        yield Finding(start, end, "pin")


def _find_app_passwords(lower_text: str, places: WordPlaces) -> Iterator[Finding]:
    """Find app passwords of Google: four times four letters that are no words."""
    for place in places.of_any(_MAIL_WORDS):
        stop = place + _MAX_AFTER_MAIL
        for found in _QUOTED_APP_PASSWORD.finditer(lower_text, place, stop):
            if _NO_WORD.search(found["value"]):
                start, end = found.span("value")
                yield Finding(start, end, "assigned")
    for place in places.of("app pass"):
        line_start = lower_text.rfind("\n", max(0, place - _MAX_BEFORE), place) + 1
        match = _APP_PASSWORD.match(lower_text, place + len("app password"))
        match = match or _QUOTED_APP_PASSWORD.search(lower_text, line_start, place)
        if match and _NO_WORD.search(match["value"]):
            yield Finding(*match.span("value"), "assigned")


def _find_without_spaces(text: str, places: WordPlaces) -> Iterator[Finding]:
    for word, place in places.each(_NAMES_WITHOUT_SPACES):
        match = _SAID_WITHOUT_SPACES.match(text, place + len(word))
        if match and (found := _chosen_value(match)):
            yield found


_MIN_SEED_WORDS = 9
"""A phrase may have a word twice; prose has few words so often."""


def _find_at(text: str, lower_text: str, start: int, after: int) -> Iterator[Finding]:
    following = text[after : after + 1]
    if in_name := _IN_NAME.match(text, after):
        value = in_name["value"]
        if is_random(value) and value.lower() != value:
            yield Finding(*in_name.span("value"), "assigned")
    if following.isalnum() or following in "_-.(":
        return  # Part of a longer name.
    yield from (
        _find_after(text, start, after)
        or _find_phrase(lower_text, start, after)
        or _find_before(text, start)
    )


def _find_after(text: str, start: int, after: int) -> list[Finding]:
    """Return the password that follows a name; with the old one, if it was changed."""
    for pattern in (_SAID, _CELL, _PROMPT, _HTML_CELL, _NEXT_LINE, _FROM_TO):
        match = pattern.match(text, after)
        if pattern is _CELL and "{{" in text[max(0, start - _MAX_BEFORE) : start]:
            continue  # A template: `|` passes a value on.
        if match and (found := _chosen_value(match)):
            if pattern is _FROM_TO:
                return [Finding(*match.span("old"), "assigned"), found]
            return [found]
    return []


def _find_phrase(lower_text: str, start: int, after: int) -> list[Finding]:
    """Return the quoted pass phrase that follows a name."""
    match = _QUOTED_PHRASE.match(lower_text, after)
    is_sentence = lower_text.endswith("phrase", start, after)
    if match and (is_sentence or is_word_list(_WORD.findall(match["value"]))):
        return [Finding(*match.span("value"), "assigned")]
    return []


def _find_before(text: str, start: int) -> list[Finding]:
    """Return the quoted password that stands before its name: "`x` as the password"."""
    end = start + 1 if text[start] == " " else start
    match = _SAID_BEFORE.search(text, max(0, start - _MAX_BEFORE), end)
    if match and is_chosen(match["value"]) and not is_placeholder(match["value"]):
        return [Finding(*match.span("value"), "assigned")]
    return []


def _chosen_value(match: re.Match[str]) -> Finding | None:
    start = match.start("value")
    value = match["value"].removesuffix("**").rstrip(".,;:)]}?\\")
    if not value or _SHELL_PROMPT.fullmatch(match["value"]):  # Nothing, or nothing was typed.
        return None
    if match.re is not _PROMPT and (is_placeholder(value) or not is_chosen(value)):
        return None
    return Finding(start, start + len(value), "assigned")


def _find_codes(lower_text: str, after: int) -> Iterator[Finding]:
    match = _CODES.match(lower_text, after) or _CODE_LINES.match(lower_text, after)
    if match is None:
        return
    for code in _CODE.finditer(lower_text, *match.span("codes")):
        has_digit = any(map(str.isdigit, code[0]))
        is_mixed = has_digit and any(map(str.isalpha, code[0]))
        if is_mixed or _DIGIT_CODE.fullmatch(code[0]):
            yield Finding(*code.span(), "recovery-code")
