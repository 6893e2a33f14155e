"""Finds secrets by the structure around them: PEM, URLs, headers, commands, netrc, Kubernetes."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator

from anchord.sources.secrets.commands import WEAK_PASSWORDS
from anchord.sources.secrets.finding import Finding
from anchord.sources.secrets.values import SENTRY_HOST, is_placeholder, is_random, is_wordy

_MAX_KEY_CHARS = 40_000
_MIN_KEY_CHARS = 16
_PEM_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_BODY = re.compile(
    r"(?:(?:\\[nr]|[\s\"'\\+>|])*(?:[A-Z][A-Za-z-]{2,20}: [^\n]{1,100}(?=\n)|[A-Za-z0-9+/=]{16,}))*"
)
"""Lines of key material and of headers; a shorter last line stays."""
_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]+")
_URL_PASSWORD = re.compile(
    r"://(?P<user>[^\s/:@\"'<>`]{0,100}):(?P<secret>[^\s\"'<>@/`]{3,})@(?=[\w\[$.{-])"
)
_URL_USER = re.compile(rf"://(?P<secret>[A-Za-z0-9_-]{{32,}})@(?!{SENTRY_HOST})")
_QUERY = re.compile(
    r"[?&](?:amp;)?(?:sig|signature|x-amz-signature|x-goog-signature|x-amz-security-token|key|code|"
    r"password|pwd|access_key|hapikey|client_secret|apikey|api_key|token)=(?P<secret>[^\s\"'<>&;]{12,512})",
    re.IGNORECASE,
)
_BEARER = re.compile(r"bearer[\s:=]{1,3}\\{0,3}[\"']?(?P<secret>[a-z0-9._~+/=-]{16,2000})")
"""Matches lower-case text."""
_BASIC = re.compile(r"basic\s{1,3}(?P<secret>[a-z0-9+/_-]{8,500}={0,2})")
_NETRC = re.compile(
    r"machine\s{1,9}\S{1,200}\s{1,9}login\s{1,9}\S{1,200}\s{1,9}password\s{1,9}(?P<secret>\S{3,200})"
)
_PGPASS_PORT = re.compile(r":(?:\d{2,5}|\*):")
_PGPASS = re.compile(
    r"[\w.*-]{1,200}:(?:\d{2,5}|\*):[^\s:]{1,100}:[^\s:]{1,100}:(?P<secret>\S{3,1000})$",
    re.MULTILINE,
)
_COOKIE = re.compile(
    r"\b[\w.-]{0,40}(?:sess|sid|auth|token|jwt|csrf|login)[\w.-]{0,40}=(?P<secret>[^\s;\"',]{16,2000})",
    re.IGNORECASE,
)
_MANIFEST = re.compile(r"^kind:[ \t]*[\"']?Secret\b", re.MULTILINE)
_MANIFEST_DATA = re.compile(
    r"^(?:data|stringData):[ \t]*\n((?:[ \t]+\S.*\n?|[ \t]*\n)*)", re.MULTILINE
)
_MANIFEST_VALUE = re.compile(r"^[ \t]+[\w.-]+:[ \t]*[\"']?(?P<secret>[^\s\"'|>]{4,})", re.MULTILINE)
PEM_KIND = "private-key"
_MAX_COMMAND = 2000
_HEAD = 24
"""As many characters of base64 are decoded to see whether the rest is worth it."""
_PRINTABLE = re.compile(rb"[\t\r\n -~]+")


def find_structured(text: str, lower_text: str) -> Iterator[Finding]:
    """Yield the secrets that stand in a known structure.

    Args:
        text: The text.
        lower_text: The same in lower case, of the same length.
    """
    if "PRIVATE KEY" in text:
        yield from _find_pem(text)
    if "://" in text:
        yield from _find_in_urls(text)
    if ("?" in text or "&" in text) and ("://" in text or "sig=" in text):
        yield from _random_values(_QUERY, text, "assigned")
    yield from _find_authorization(text, lower_text)
    for match in _matches_at(_NETRC, text, "machine"):
        if not is_placeholder(match["secret"]) and match["secret"].lower() not in WEAK_PASSWORDS:
            yield Finding(*match.span("secret"), "assigned")
    if "cookie" in lower_text:
        yield from _find_in_cookies(text, lower_text)
    if "Secret" in text:
        yield from _find_in_manifests(text)
    if ":" in text:
        yield from _find_pgpass(text)


def _find_pem(text: str) -> Iterator[Finding]:
    place = 0
    while begin := _PEM_BEGIN.search(text, place):
        end = _PEM_END.search(text, begin.end(), begin.end() + _MAX_KEY_CHARS)
        next_begin = _PEM_BEGIN.search(text, begin.end(), begin.end() + _MAX_KEY_CHARS)
        if end and (not next_begin or end.start() < next_begin.start()):
            stop, body_end = end.end(), end.start()
        else:
            body = _KEY_BODY.match(text, begin.end(), begin.end() + _MAX_KEY_CHARS)
            stop = body_end = body.end() if body else begin.end()
        body_text = text[begin.end() : body_end].replace("\\n", "\n")
        if sum(map(len, _KEY_LINE.findall(body_text))) >= _MIN_KEY_CHARS:
            yield Finding(begin.start(), stop, PEM_KIND)
        place = stop


def _find_in_urls(text: str) -> Iterator[Finding]:
    for match in _URL_PASSWORD.finditer(text):
        secret, user = match["secret"], match["user"]
        is_weak = secret.lower() in WEAK_PASSWORDS or secret == user
        if not is_weak and secret[0] not in "{$[" and not is_placeholder(secret):
            yield Finding(*match.span("secret"), "password-in-url")
    yield from _random_values(_URL_USER, text, "password-in-url")


def _random_values(pattern: re.Pattern[str], text: str, kind: str) -> Iterator[Finding]:
    for match in pattern.finditer(text):
        secret = match["secret"]
        if is_random(secret) and not is_placeholder(secret):
            yield Finding(*match.span("secret"), kind)


def _find_authorization(text: str, lower_text: str) -> Iterator[Finding]:
    yield from _find_basic(text, lower_text)
    for match in _matches_at(_BEARER, lower_text, "bearer"):
        start, end = match.span("secret")
        secret = text[start:end]
        if is_random(secret) and not is_placeholder(secret):
            yield Finding(start, end, "authorization")


def _matches_at(pattern: re.Pattern[str], text: str, word: str) -> Iterator[re.Match[str]]:
    """Yield the matches of a pattern that begin with a word. Faster than to look everywhere."""
    place = text.find(word)
    while place >= 0:
        match = pattern.match(text, place)
        if match:
            yield match
        place = text.find(word, place + 1)


def _find_basic(text: str, lower_text: str) -> Iterator[Finding]:
    for match in _matches_at(_BASIC, lower_text, "basic"):
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
    except binascii.Error:
        return ""
    return data.decode("ascii") if _PRINTABLE.fullmatch(data) else ""


def _find_in_cookies(text: str, lower_text: str) -> Iterator[Finding]:
    place = lower_text.find("cookie")
    while place >= 0:
        end = text.find("\n", place)
        end = len(text) if end < 0 else end
        for match in _COOKIE.finditer(text, place, end):
            secret = match["secret"]
            if is_random(secret) and not is_placeholder(secret):
                yield Finding(*match.span("secret"), "assigned")
        place = lower_text.find("cookie", end)


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


def _find_pgpass(text: str) -> Iterator[Finding]:
    for port in _PGPASS_PORT.finditer(text):
        line_start = text.rfind("\n", max(0, port.start() - _MAX_COMMAND), port.start()) + 1
        match = _PGPASS.match(text, line_start)
        if match is None:
            continue
        secret = match["secret"]
        if not secret.isdigit() and not is_wordy(secret) and not is_placeholder(secret):
            yield Finding(*match.span("secret"), "assigned")
