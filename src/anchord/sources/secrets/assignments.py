"""Finds secrets that are assigned to a name: `password = ...`, `"apiKey": "..."`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from functools import lru_cache

from anchord.core.lazy_re import lazy_re
from anchord.sources.secrets.finding import Finding
from anchord.sources.secrets.values import (
    is_description,
    is_expression,
    is_password,
    is_placeholder,
    is_random,
    is_sentry_dsn,
    is_two_words,
    is_wordy,
)
from anchord.sources.secrets.words import WordPlaces

_MAX_VALUE = 512
_MAX_NAME = 60
WORDS = ("pass", "pwd", "secret", "token", "credential", "key", "auth", "psk", "sess", "pepper")
"""A name of a secret has one of them."""
_ASSIGNS = (
    r"\s{0,2}(?:\|\||\?\?|={2,3})\s{0,2}(?=[\"'])"  # a default, or what it is compared with
    r"|\s{0,4}:\s{0,2}[&\w\[\]<>'.|; ]{1,30}=(?!=)\s{0,4}"  # a type between name and value
    r"|(?:\s?\[[^\]\n]{0,24}\])?(?:\s{0,4}|[ \t]{5,40})(?:=>|:=|\?=|=|::?)\s{0,8}"
    r"(?:[|>][-+]?\s{1,40})?"
    r"|\s{0,2},?\s{0,40}[\"']?value[\"']?\s{0,2}[:=]\s{0,2}"  # {"name": ..., "value": ...}
    r"|</key>\s{0,40}<(?:string|data)>\s{0,40}"  # a property list
)
_WRAPS = (
    r"(?:(?:\[\]byte|bytes|bytearray|string(?:::from)?|secretstr|buffer\.from"
    r"|bytes\.fromhex|encoding\.\w{1,10}\.getbytes)\(\s{0,4}"
    r"|[bru]{1,2}(?=[\"'])|!{1,2}binary\s|\$(?=')|\(\s{0,40}(?=[\"']))?"
)
"""What makes bytes or an object of a string: `[]byte("...")`, `b"..."`, and a shell's `$'...'`."""
_ASSIGNMENT = lazy_re(
    rf"[a-z]{{3,10}}[\w.-]{{0,40}}(?P<close>\\{{0,3}}[\"'`]?\]?)(?:"
    rf"(?P<assign>{_ASSIGNS})|(?P<call>\(\s?|,(?:\s|[ \t]{{2,16}})?)|(?P<tag>>)"
    r"|(?P<said>(?:\s(?:is|was|are|to|contains|holds)\s|\??[ \t]{1,16})(?=\S{0,200}\d)))"
    rf"(?:(?:bearer|token|ssws|bot|apikey|genie-?key|aws4-hmac-sha256)[ =]{{1,3}})?{_WRAPS}"
    rf"(?=(?P<open>\\{{0,3}}[\"'`])?"
    rf"(?P<value>(?(open)[^\s\"'`][^\n\"'`]{{0,{_MAX_VALUE}}}|[^\s\"'`<>][^\n\"'`<>]{{0,{_MAX_VALUE}}})))"
)
"""Matches lower-case text. The value is looked at and not taken: it can hold another name."""
_NAME_CHARS = lazy_re(r"[\w.-]{0,60}")
_WORD_BEFORE = lazy_re(r"\w+(?= $)")
_NAME_WORD = lazy_re(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_BLOCK = lazy_re(r"[|>][-+]?\s*\n\s*$")
_BARE_END = lazy_re(r"[\s,;)}\]]|&\w+=|\\[nrt]|\\*$|$")
_QUALIFIER = frozenset(
    """
    prod production dev development staging live old new current previous value val plain plaintext
    raw string str base encoded default primary secondary one two a b data text b64 base64
    """.split()  # noqa: SIM905 - a list of words
)
_HARMLESS = frozenset(
    """
    public publishable pub next page continuation pagination cursor pad eos bos unk mask csrf xsrf
    cancellation max min num count total primary foreign sort partition cache lookup
    idempotency anon
    """.split()  # noqa: SIM905 - likewise
)
"""With one of these words a name is not a secret's: `next_page_token`."""
_PASSWORD_ENDS = ("password", "passwd", "passwort", "passphrase", "passcode", "pwd")
_PASSWORD_WORDS = frozenset("pass pw psw dbpass userpass psk rootpass smtppass".split())  # noqa: SIM905 - likewise
_SECRET_ENDS = (
    "secret", "token", "apikey", "secretkey", "accesskey", "authkey", "privatekey", "accountkey",
    "sharedkey", "masterkey", "signingkey", "encryptionkey", "signature", "credential", "sessid",
    "sessionid", "pepper",
)  # fmt: skip
_SECRET_WORDS = frozenset(
    """
    secrets credentials creds auth authorization jwt bearer pat sas cookie sessionid sessid session
    sid dsn signature
    """.split()  # noqa: SIM905 - likewise
)
_KEY_OWNERS = frozenset(
    """
    api access secret private auth account encryption signing master shared license licence
    application app sdk admin
    service client subscription webhook storage deploy ssh session cipher aes hmac jwt
    personal server root integration write ingest ingestion crypto symmetric preshared psk wpa
    validation decryption
    functions function host data security user org team project bot tsig rndc instrumentation
    recovery bitlocker filevault product activation unlock
    linode vultr namecheap godaddy porkbun gandi ovh hetzner cloudflare rails
    """.split()  # noqa: SIM905 - likewise
)
"""`X key` is a secret if X is one of these."""
_MIN_SAID_SECRET = 16
_MIN_SAID_PASSWORD = 6
_MIN_LOOSE_KEY = 24
_MIN_WIFI_PHRASE = 8
_SET_OPTION = lazy_re(r"--set(?:-string)?[ =]\S{0,40}$")
_ASSIGNED_WORD = lazy_re(r"(?=\D{0,60}\d)[\w.!-]{6,60}")
_ENV_LINE = lazy_re(r"(?:^|\n)[ \t]{0,8}(?:env|arg|export|setenv)[ \t]{1,4}$", re.IGNORECASE)
_CONSTANT = lazy_re(r"[A-Z][A-Z0-9_]{3,60}")
_ARN = lazy_re(r"\barn:aws[\w-]{0,20}:secretsmanager:[\w-]{0,40}:\d{0,12}:$")
"""What stands before `secret:NAME` of AWS's store: NAME is none."""
_MAX_ARN = 90
_NEAR = 200
_BESIDE_SECRET = lazy_re(r"\bsecret[\"']?\s{0,3}[:=]", re.IGNORECASE)
"""A key and a secret are given together."""
_HEX = lazy_re(r"[0-9a-fA-F]+")


class NameClass(Enum):
    """What a name says about its value."""

    PASSWORD = auto()
    """A value that a person may have chosen."""
    SECRET = auto()
    """A generated value."""
    LOOSE_KEY = auto()
    """Some key: of an API or of a dictionary."""
    NONE = auto()


def find_assigned(text: str, lower_text: str, places: WordPlaces) -> Iterator[Finding]:
    """Yield the values that are assigned to the name of a secret.

    Args:
        text: The text.
        lower_text: The same in lower case, of the same length.
        places: Where the words of this module stand in it.
    """
    for keyword in WORDS:
        done = -1
        for place in places.of(keyword):
            if place <= done:
                continue
            match = _ASSIGNMENT.match(lower_text, place)
            value = _value_of(text, match) if match else ""
            if match and value and _is_secret(text, match, value):
                start = match.start("value")
                done = _block_end(text, match, start + len(value))
                yield Finding(start, done, "assigned")


def _block_end(text: str, match: re.Match[str], end: int) -> int:
    """Return where a value ends: one of YAML's block scalars goes on for all its lines."""
    if match["open"] or not _BLOCK.search(match["assign"] or ""):
        return end
    start = match.start("value")
    line_start = text.rfind("\n", 0, start) + 1
    indent = text[line_start:start]
    stop = min(len(text), start + _MAX_VALUE)
    line_end = text.find("\n", end, stop)
    while line_end >= 0:
        next_line = line_end + 1
        end = line_end
        if not indent or not text.startswith(indent, next_line):
            break
        line_end = text.find("\n", next_line, stop)
    else:
        end = stop
    block = text[start:end].rstrip()
    return start + len(block)


def _value_of(text: str, match: re.Match[str]) -> str:
    start, end = match.span("value")
    value = text[start:end]
    if not match["open"]:
        bare_end = _BARE_END.search(value)
        if bare_end:
            value = value[: bare_end.start()]
        before_name = max(0, match.start() - 1)
        if text.startswith(("?", "&"), before_name):
            value, _, _ = value.partition("&")
        return value.rstrip(".:")
    quote = match["open"][-1]
    is_closed = text[end : end + 1] == quote
    has_space = any(char.isspace() for char in value)
    is_cut = len(value) > _MAX_VALUE and not has_space
    return value.rstrip("\\") if is_closed or is_cut else ""


def _is_secret(text: str, match: re.Match[str], value: str) -> bool:
    start = _name_start(text, match.start())
    name = text[start : match.start("close")]
    name_class = _class_at(text, start, name)
    if name_class is NameClass.NONE or is_placeholder(value) or is_sentry_dsn(value):
        return False
    if name == "secret" and _ARN.search(text, max(0, start - _MAX_ARN), start):
        return False
    is_quoted = bool(match["open"])
    if not is_quoted:
        is_set = _is_option(text, start, value) or text.startswith(";", start - 1)
        if is_expression(value) and not is_set:
            return False
        if match["said"] is not None and not _is_env_line(text, start):
            return _is_said_secret(name_class, value, text[:start], name)
    return _is_assigned_secret(match, name_class, name, value)


def _is_assigned_secret(match: re.Match[str], name_class: NameClass, name: str, value: str) -> bool:
    """Return whether a value that is assigned to a name, or passed to a call, is a secret."""
    is_quoted = bool(match["open"])
    names_password = name_class is NameClass.PASSWORD
    is_compared = "==" in (match["assign"] or "")
    if is_compared and not names_password:
        return False  # What a key of a dictionary is compared with.
    is_set = _is_constant_set(match, name) or (is_quoted and match["assign"] is not None)
    if names_password and is_set and is_two_words(value):
        return True
    if match["call"] is not None and not (is_quoted and _is_call_value(match, name)):
        return False
    return _has_secret_value(name_class, name, value, is_quoted=is_quoted)


def _class_at(text: str, start: int, name: str) -> NameClass:
    """Return what a name says about its value; of a mere "key", with the word before it."""
    name_class = classify_name(name)
    if name_class is NameClass.NONE and name.lower() in {"key", "keys"}:
        words_before = _WORD_BEFORE.findall(text[max(0, start - 20) : start])
        named_by_words = classify_name(f"{words_before} {name}")
        if named_by_words is NameClass.NONE and _BESIDE_SECRET.search(
            text, max(0, start - _NEAR), start + _NEAR
        ):
            return NameClass.LOOSE_KEY
        return named_by_words
    return name_class


def _is_env_line(text: str, start: int) -> bool:
    before = text[max(0, start - _MAX_NAME) : start]
    return bool(_ENV_LINE.search(before))


def _is_constant_set(match: re.Match[str], name: str) -> bool:
    return match["assign"] == "=" and bool(_CONSTANT.fullmatch(name))


def _is_option(text: str, start: int, value: str) -> bool:
    """Return whether a name is one of a command's settings: what has a digit there is no code."""
    line_start = max(text.rfind("\n", 0, start) + 1, start - _MAX_NAME)
    is_set = bool(_SET_OPTION.search(text, line_start, start))
    return is_set and bool(_ASSIGNED_WORD.fullmatch(value))


def _name_start(text: str, place: int) -> int:
    """Return where the name begins that a place is in."""
    before = text[max(0, place - _MAX_NAME) : place]
    match = _NAME_CHARS.match(before[::-1])
    return place - (match.end() if match else 0)


def _is_call_value(match: re.Match[str], name: str) -> bool:
    is_constant = bool(_CONSTANT.fullmatch(name.rpartition(".")[2]))
    return "(" in match["call"] or bool(match["close"]) or is_constant


def _has_secret_value(name_class: NameClass, name: str, value: str, *, is_quoted: bool) -> bool:
    if name_class is NameClass.PASSWORD:
        is_wifi_phrase = is_quoted and name.lower() == "psk" and len(value) >= _MIN_WIFI_PHRASE
        return is_wifi_phrase or is_password(value, is_quoted=is_quoted)
    if " " in value or not is_random(value):
        return False
    if name_class is NameClass.SECRET:
        return True
    is_constant = name.isupper()
    is_hash = bool(_HEX.fullmatch(value)) or "-" in value
    return len(value) >= _MIN_LOOSE_KEY and (is_constant or not is_hash)


def _is_said_secret(name_class: NameClass, value: str, before: str, name: str) -> bool:
    """Return whether a word after a name without a sign of assignment is a secret."""
    line_start = before.rpartition("\n")[2]
    if name.lower() == "pass" or is_description(value):  # Rather the verb.
        return False
    has_digit = any(map(str.isdigit, value))
    if name_class is NameClass.PASSWORD:
        is_listed = not line_start.strip() or "login" in line_start or name.isupper()
        return (is_listed and not is_wordy(value)) or _is_said_password(value)
    is_long = len(value) >= _MIN_SAID_SECRET
    return name_class is NameClass.SECRET and is_long and has_digit and is_random(value)


def _is_said_password(value: str) -> bool:
    """Return whether a word is long and mixed enough to be no word of a sentence."""
    has_digit = any(map(str.isdigit, value))
    has_both = has_digit and any(map(str.isalpha, value))
    return has_both and len(value) >= _MIN_SAID_PASSWORD


@lru_cache(maxsize=10_000)
def classify_name(name: str) -> NameClass:
    """Return what a name says about its value.

    Args:
        name: A variable, key, header or option, such as `AWS_SECRET_ACCESS_KEY`.
    """
    words = [word.lower() for word in _NAME_WORD.findall(name)]
    if not _HARMLESS.isdisjoint(words):
        return NameClass.NONE
    while len(words) > 1 and (words[-1] in _QUALIFIER or words[-1].isdigit()):
        words.pop()
    if not words:
        return NameClass.NONE
    last = words[-1]
    if words[-2:] == ["security", "credentials"]:  # The property of a directory's login.
        return NameClass.PASSWORD
    if last.endswith(_PASSWORD_ENDS) or last in _PASSWORD_WORDS:
        return NameClass.PASSWORD
    if last.endswith(_SECRET_ENDS) or last in _SECRET_WORDS:
        return NameClass.SECRET
    return _classify_key(words)


def _classify_key(words: list[str]) -> NameClass:
    last = words[-1]
    if last not in {"key", "keys"}:
        return NameClass.NONE
    if len(words) > 1 and words[-2] in _KEY_OWNERS:
        return NameClass.SECRET
    return NameClass.LOOSE_KEY if len(words) > 1 else NameClass.NONE
