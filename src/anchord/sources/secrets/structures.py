"""Finds secrets by the structure around them: PEM, URLs, headers, commands, netrc, Kubernetes."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator, Sequence

from anchord.core.lazy_re import lazy_re
from anchord.sources.secrets.commands import WEAK_PASSWORDS
from anchord.sources.secrets.finding import Finding
from anchord.sources.secrets.values import (
    SENTRY_HOST,
    is_chosen,
    is_placeholder,
    is_random,
    is_wordy,
)
from anchord.sources.secrets.words import WordPlaces

_MAX_KEY_CHARS = 40_000
_MIN_KEY_CHARS = 16
_PEM_BEGIN = lazy_re(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = lazy_re(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_BODY = lazy_re(
    r"(?:(?:\\[nr]|[\s\"'\\+>|])*(?:[A-Z][A-Za-z-]{2,20}: [^\n]{1,100}(?=\n)|[A-Za-z0-9+/=]{16,}))*"
)
"""Lines of key material and of headers; a shorter last line stays."""
_KEY_LINE = lazy_re(r"[A-Za-z0-9+/=]+")
_URL_PASSWORD = lazy_re(
    r"://(?P<user>[^\s/:@\"'<>`]{0,100}):(?P<secret>[^\s\"'<>@/`]{3,})@(?=[\w\[$.{-])"
)
_URL_USER = lazy_re(rf"://(?P<secret>[A-Za-z0-9_-]{{32,}})@(?!{SENTRY_HOST})")
_QUERY = lazy_re(
    r"[?&](?:amp;)?(?:sig|signature|x-amz-signature|x-goog-signature|x-amz-security-token|key|code|"
    r"password|pwd|access_key|hapikey|client_secret|apikey|api_key|token)=(?P<secret>[^\s\"'<>&;]{12,512})",
    re.IGNORECASE,
)
_QUERY_WORDS = tuple(f"{sign}{first}" for sign in "?&" for first in "sxkcpaht\u017f")
"""A parameter begins so: the last is a long s, which stands for an s where case is ignored."""
_BEARER = lazy_re(r"bearer[\s:=]{1,3}\\{0,3}[\"']?(?P<secret>[a-z0-9._~+/=-]{16,2000})")
"""Matches lower-case text."""
_BASIC = lazy_re(r"basic\s{1,3}(?P<secret>[a-z0-9+/_-]{8,500}={0,2})")
_NETRC = lazy_re(
    r"machine\s{1,9}\S{1,200}\s{1,9}login\s{1,9}\S{1,200}\s{1,9}password\s{1,9}(?P<secret>\S{3,200})"
)
_WORDPRESS = lazy_re(
    r"define\(\s?[\"']\w{3,20}_(?:KEY|SALT)[\"'],\s{1,12}(?P<quote>[\"'])(?P<secret>[^\n]{64})(?P=quote)"
)
"""Its keys are 64 of any characters."""
_RAILS_KEY = lazy_re(
    r"(?:_key|_salt)[\"']?:[ \t]{1,4}[\"']?(?P<secret>[A-Za-z0-9]{32,64})(?![A-Za-z0-9])"
)
_PORT_WORDS = tuple(f":{first}" for first in "0123456789*")
_PGPASS_PORT = lazy_re(r":(?:\d{2,5}|\*):")
_PGPASS = lazy_re(
    r"[\w.*-]{1,200}:(?:\d{2,5}|\*):[^\s:]{1,100}:[^\s:]{1,100}:(?P<secret>\S{3,1000})$",
    re.MULTILINE,
)
_GO_DSN = lazy_re(r"(?:^|[\s\"'`=])[\w.-]{1,60}:(?P<secret>[^\s\"'`@/]{3,100})$")
_GO_DSN_WORDS = ("@tcp(", "@unix(")
"""A connection string of Go's MySQL driver: `user:password@tcp(host:port)/database`."""
_JWK_OBJECT = lazy_re(r"[^{}]{0,4000}\}")
_JWK_PRIVATE = lazy_re(r"\"(?:d|k|p|q|dp|dq|qi)\"\s{0,4}:\s{0,4}\"(?P<secret>[\w-]{16,1400})\"")
"""The private numbers of a JSON Web Key (RFC 7518, 6.2.2 to 6.4)."""
_WIF = lazy_re(r"(?<![A-Za-z0-9])[5KL][1-9A-HJ-NP-Za-km-z]{50,51}(?![A-Za-z0-9])")
_BITLOCKER = lazy_re(r"(?<![\d-])\d{6}(?:-\d{6}){7}(?![\d-])")
_BY_WORD = (
    ("wif", _WIF, "wallet-key"),
    ("wallet", _WIF, "wallet-key"),
    ("private key", _WIF, "wallet-key"),
    ("bitlocker", _BITLOCKER, "recovery-code"),
    ("recovery key", _BITLOCKER, "recovery-code"),
)
"""A word, and the form of the key that stands within some lines of it."""
_NEAR = 300
_TWITTER = lazy_re(r"(?<![A-Za-z0-9])A{18,24}(?P<tail>[A-Za-z0-9%]{60,120})(?![A-Za-z0-9])")
_TWITTER_WORD = "a" * 18
_COOKIE = lazy_re(
    r"\b[\w.-]{0,40}(?:sess|sid|auth|token|jwt|csrf|login)[\w.-]{0,40}=(?P<secret>[^\s;\"',]{16,2000})",
    re.IGNORECASE,
)
_MANIFEST = lazy_re(r"^kind:[ \t]*[\"']?Secret\b", re.MULTILINE)
_MANIFEST_DATA = lazy_re(
    r"^(?:data|stringData):[ \t]*\n((?:[ \t]+\S.*\n?|[ \t]*\n)*)", re.MULTILINE
)
_MANIFEST_VALUE = lazy_re(r"^[ \t]+[\w.-]+:[ \t]*[\"']?(?P<secret>[^\s\"'|>]{4,})", re.MULTILINE)
WORDS = (
    *("private key", "://", "sig=", "machine", "cookie", "kind:", "secret", "basic", "bearer"),
    *_QUERY_WORDS,
    *_PORT_WORDS,
    *("define(", "active_record_encryption"),
    '"kty"',
    *_GO_DSN_WORDS,
    *(word for word, _, _ in _BY_WORD),
    _TWITTER_WORD,
)
PEM_KIND = "private-key"
_MAX_COMMAND = 2000
_MAX_DSN = 170
_HEAD = 24
"""As many characters of base64 are decoded to see whether the rest is worth it."""
_PRINTABLE = lazy_re(rb"[\t\r\n -~]+")


def find_structured(text: str, lower_text: str, places: WordPlaces) -> Iterator[Finding]:
    """Yield the secrets that stand in a known structure.

    Args:
        text: The text.
        lower_text: The same in lower case, of the same length.
        places: Where the words of this module stand in it.
    """
    if places.of("private key"):
        yield from _find_pem(text)
    urls = places.of("://")
    if urls:
        yield from _find_in_urls(text, urls)
    if urls or places.of("sig="):
        yield from _random_values(_QUERY, text, places.of_any(_QUERY_WORDS), "assigned")
    yield from _find_authorization(text, lower_text, places)
    for match in _matches_at(_NETRC, text, places.of("machine")):
        if not is_placeholder(match["secret"]) and match["secret"].lower() not in WEAK_PASSWORDS:
            yield Finding(*match.span("secret"), "assigned")
    yield from _find_keys(text, places)
    yield from _find_in_cookies(text, places.of("cookie"))
    if places.of("kind:") and places.of("secret"):
        yield from _find_in_manifests(text)
    yield from _find_pgpass(text, places.of_any(_PORT_WORDS))
    yield from _find_framework_keys(text, places)


def _find_framework_keys(text: str, places: WordPlaces) -> Iterator[Finding]:
    """Find the keys of WordPress and Rails, whose names say little."""
    matches = list(_matches_at(_WORDPRESS, text, places.of("define(")))
    for place in places.of("active_record_encryption"):
        end = place + _NEAR
        matches += _RAILS_KEY.finditer(text, place, end)
    for match in matches:
        start, end = match.span("secret")
        yield Finding(start, end, "assigned")


def _find_pem(text: str) -> Iterator[Finding]:
    place = 0
    while begin := _PEM_BEGIN.search(text, place):
        start = begin.end()
        limit = start + _MAX_KEY_CHARS
        end = _PEM_END.search(text, start, limit)
        next_begin = _PEM_BEGIN.search(text, start, limit)
        if end and (not next_begin or end.start() < next_begin.start()):
            body_end = end.start()
            stop = end.end()
        else:
            body = _KEY_BODY.match(text, start, limit)
            body_end = body.end() if body else start
            stop = body_end
        body_text = text[start:body_end].replace("\\n", "\n")
        key_lines = _KEY_LINE.findall(body_text)
        if sum(map(len, key_lines)) >= _MIN_KEY_CHARS:
            yield Finding(begin.start(), stop, PEM_KIND)
        place = stop


def _find_in_urls(text: str, places: Sequence[int]) -> Iterator[Finding]:
    for match in _matches_at(_URL_PASSWORD, text, places):
        secret, user = match["secret"], match["user"]
        is_weak = secret.lower() in WEAK_PASSWORDS or secret == user
        if not is_weak and secret[0] not in "{$[" and not is_placeholder(secret):
            yield Finding(*match.span("secret"), "password-in-url")
    yield from _random_values(_URL_USER, text, places, "password-in-url")


def _random_values(
    pattern: re.Pattern[str], text: str, places: Sequence[int], kind: str
) -> Iterator[Finding]:
    end = 0
    for match in _matches_at(pattern, text, places):
        if match.start() < end:
            continue
        end = match.end()
        secret = match["secret"]
        if is_random(secret) and not is_placeholder(secret):
            yield Finding(*match.span("secret"), kind)


def _find_authorization(text: str, lower_text: str, places: WordPlaces) -> Iterator[Finding]:
    yield from _find_basic(text, lower_text, places.of("basic"))
    for match in _matches_at(_BEARER, lower_text, places.of("bearer")):
        start, end = match.span("secret")
        secret = text[start:end]
        if is_random(secret) and not is_placeholder(secret):
            yield Finding(start, end, "authorization")


def _matches_at(
    pattern: re.Pattern[str], text: str, places: Sequence[int]
) -> Iterator[re.Match[str]]:
    """Yield the matches of a pattern that begin at some places."""
    for place in places:
        match = pattern.match(text, place)
        if match:
            yield match


def _find_basic(text: str, lower_text: str, places: Sequence[int]) -> Iterator[Finding]:
    for match in _matches_at(_BASIC, lower_text, places):
        start, end = match.span("secret")
        user, colon, password = decode_base64(text[start:end]).partition(":")
        if not colon or len(password) < len("pass") or is_placeholder(password):
            continue
        if password.lower() not in WEAK_PASSWORDS and password != user:
            yield Finding(start, end, "authorization")


def decode_base64(encoded: str) -> str:
    """Decode base64 of printable ASCII text; return "" for anything else.

    Args:
        encoded: Standard or URL-safe base64, with or without padding.
    """
    if len(encoded) > _HEAD and not decode_base64(encoded[:_HEAD]):
        return ""
    bare = encoded.rstrip("=").replace("-", "+").replace("_", "/")
    if len(bare) % 4 == 1:
        bare = bare[:-1]
    try:
        data = binascii.a2b_base64(bare + "=" * (-len(bare) % 4))
    except ValueError:  # Also a letter that is ASCII in lower case alone, such as the Kelvin sign.
        return ""
    return printable_text(data)


def printable_text(data: bytes) -> str:
    """Return bytes as text if they are printable ASCII; "" for anything else."""
    return data.decode("ascii") if _PRINTABLE.fullmatch(data) else ""


def _find_keys(text: str, places: WordPlaces) -> Iterator[Finding]:
    """Yield what has a form of its own: connection strings, private keys, bearers."""
    for place in places.of_any(_GO_DSN_WORDS):
        yield from _find_in_go_dsn(text, place)
    for place in places.of('"kty"'):
        yield from _find_in_jwk(text, place)
    for word, form, kind in _BY_WORD:
        for place in places.of(word):
            match = form.search(text, place, place + _NEAR)
            if match:
                yield Finding(*match.span(), kind)
    for place in places.of(_TWITTER_WORD)[:1]:
        yield from _find_twitter_bearers(text, place)


def _find_in_go_dsn(text: str, place: int) -> Iterator[Finding]:
    match = _GO_DSN.search(text, max(0, place - _MAX_DSN), place)
    if match and not is_placeholder(match["secret"]) and match["secret"][0] not in "$%{":
        yield Finding(*match.span("secret"), "password-in-url")


def _find_twitter_bearers(text: str, place: int) -> Iterator[Finding]:
    for match in _TWITTER.finditer(text, place):
        if is_random(match["tail"]):
            yield Finding(*match.span(), "twitter")


def _find_in_jwk(text: str, place: int) -> Iterator[Finding]:
    start = text.rfind("{", max(0, place - _MAX_COMMAND), place)
    body = _JWK_OBJECT.match(text, start + 1) if start >= 0 else None
    if body:
        for match in _JWK_PRIVATE.finditer(text, *body.span()):
            yield Finding(*match.span("secret"), "private-key")


def _find_in_cookies(text: str, places: Sequence[int]) -> Iterator[Finding]:
    end = 0
    for place in places:
        if place < end:
            continue
        end = text.find("\n", place)
        end = len(text) if end < 0 else end
        for match in _COOKIE.finditer(text, place, end):
            secret = match["secret"]
            if is_random(secret) and not is_placeholder(secret):
                yield Finding(*match.span("secret"), "assigned")


def _find_in_manifests(text: str) -> Iterator[Finding]:
    """Find all values of Secrets of Kubernetes: under `data` they are in base64."""
    if not _MANIFEST.search(text):
        return
    start = 0
    for part in text.split("\n---"):
        if _MANIFEST.search(part):
            for block in _MANIFEST_DATA.finditer(part):
                yield from _manifest_values(part, block, start)
        start += len(part) + len("\n---")


def _manifest_values(part: str, block: re.Match[str], start: int) -> Iterator[Finding]:
    for match in _MANIFEST_VALUE.finditer(part, *block.span(1)):
        if not is_placeholder(match["secret"]):
            first, last = match.span("secret")
            yield Finding(start + first, start + last, "kubernetes-secret")


def _find_pgpass(text: str, places: Sequence[int]) -> Iterator[Finding]:
    end = 0
    for port in _matches_at(_PGPASS_PORT, text, places):
        if port.start() < end:
            continue
        end = port.end()
        first = max(0, port.start() - _MAX_COMMAND)
        line_start = text.rfind("\n", first, port.start()) + 1
        match = _PGPASS.match(text, line_start)
        if match is None:
            continue
        secret = match["secret"]
        is_word = is_wordy(secret) and not is_chosen(secret)
        if secret.isdigit() or is_word or is_placeholder(secret):
            continue
        start, stop = match.span("secret")
        yield Finding(start, stop, "assigned")
