"""Finds passwords in command lines and in settings that are written as commands."""

from __future__ import annotations

import re
from collections.abc import Iterator

from anchord.core.lazy_re import lazy_re
from anchord.sources.secrets.finding import Finding
from anchord.sources.secrets.values import is_placeholder
from anchord.sources.secrets.words import WordPlaces

_MAX_COMMAND = 2000
_VALUE = (
    r"(?P<open>\\{0,3}[\"'])?(?P<secret>(?(open)[^\s\"'\\]|[^\s\"'|;&<>-])[^\s\"'|;&<>]{2,100})"
)
_NO_WORD = r"[^\"'\n]{0,60}[\d!#$%^&*+?~]"
"""A value with a digit or a sign."""
_CURL_USER = lazy_re(
    r"(?:\s-\w{0,4}u|\s--(?:proxy-)?user|\s--(?:http-)?auth|\s-a)[ =]{0,3}\\{0,3}[\"']?"
    r"[^\s:\"']{0,100}:(?P<secret>[^\s\"'@\\]{3,200})"
)
_STRING = r"[\"'][^\"'\n]{1,100}[\"']"
_JWT_CALL = r"jwt\.\w{4,6}\([^\n\"']{0,200},\s{0,3}(?=[\"'])@"
_CHARACTERS = r"char \w{2,30}\[\d{0,3}\]\s?=\s?\{\s?(?P<secret>'.'(?:,\s?'.'){5,80})"
_OPTIONS = (
    (" -p", r"\b(?:sshpass|cqlsh|mongo\w{0,8})\b|\slogin\b", r" -p ?@"),
    (" -p", r"\b(?:mysql|mariadb|7z)", r" -p@"),
    (" -P", r"\b(?:zip|unzip|sqlcmd)\b", r" -P ?@"),
    (" -a", r"\bredis-cli\b", r" -a @"),
    (" -w", r"\bldap(?:search|add|modify|delete|whoami|passwd|compare|modrdn)\b", r" -w @"),
    (" -k", r"\bopenssl\b", r" -k @"),
    (" -U", r"\b(?:smbclient|rpcclient)\b", r" -U ?[\w\\./-]{1,100}%@"),
    (" AE", r"\bcreateUser\b", r" AES @"),
    (" DE", r"\bcreateUser\b", r" DES @"),
    (" -b", r"\bhtpasswd\b", r" -b\w{0,5}(?: -\w{1,5}){0,3} \S{1,200} \S{1,100} @"),
)
"""An option, the command that it belongs to, and the option with its secret `@`."""
_WORDS = (
    ("net use ", r"net use [^\n]{0,200}/user:\S{1,100} @"),
    ("convertto-securestring", r"\S{1,30}\s{1,3}(?:-String\s{1,3})?@"),
    ("getconnection(", r".{14}[^\n,]{1,300},[^\n,]{1,100},\s{0,9}(?=[\"'])@"),
    ("networkcredential(", r".{18}[^\n,]{1,100},\s{0,9}(?=[\"'])@"),
    ("passwordcredentials(", r".{20}[^\n,]{1,100},\s{0,9}(?=[\"'])@"),
    ("passwordauthentication(", r".{23}[^\n,]{1,100},\s{0,9}(?=[\"'])@"),
    ("totp(", r"[Tt][Oo][Tt][Pp]\(\s?[\"'](?P<secret>[A-Z2-7]{16,64})[\"']"),
    ("credentials.basic(", r".{18}[^\n,()]{1,100},\s{0,9}(?=[\"'])@"),
    ("auth=(", rf".{{6}}[^\n,()]{{1,100}},\s{{0,9}}(?=[\"']{_NO_WORD})@"),
    (".login(", rf".{{7}}[^\n,()]{{1,100}},\s{{0,9}}(?=[\"']{_NO_WORD})@"),
    ("--token", r"--token[ =](?P<secret>[a-z0-9]{6}\.[a-z0-9]{16})\b"),
    *((f": {way} ", r": [A-Z]{3,5} (?=[\"'])@") for way in ("eap", "xauth", "ntlm", "pin", "psk")),
    ("api key", r".{7}[^\n:]{0,60}: (?P<secret>(?=\S{0,128}\d)[\w-]{32,128})(?=\s|$)"),
    ("ssws ", r"SSWS (?P<secret>[\w.~+/=-]{16,200})"),
    ("dns ", r"dns [a-z]{4,20} (?P<secret>(?=\S{0,60}\d)[\w-]{30,100})(?=\s|$)"),
    *((f"jwt.{verb}(", _JWT_CALL) for verb in ("sign", "verify", "encode", "decode")),
    (".connect(", rf"\.connect\(\s?{_STRING},\s?\d{{1,5}},\s?{_STRING},\s?(?=[\"'])@"),
    *((f"char {name}", _CHARACTERS) for name in ("pw", "pass", "secret", "key")),
    ("requirepass ", r".{12}@"),
    ("masterauth ", r".{11}@"),
    ("createuser ", r".{11}\S{1,60} (?:MD5|SHA(?:-\d{3})?) @"),
    ("importprivkey ", r".{14}@"),
    ("/ipk ", r"/ipk @"),
    ("unseal key", r".{10}(?: \d{1,2})?:\s{1,3}@"),
    ("unseal ", r"unseal \d{1,2}:\s{1,3}(?P<secret>[A-Za-z0-9+/=]{40,90})"),
    ("fernet(", r"Fernet\(b?(?=[\"'])@"),
    ("basicauth(", r".{10}[^\n,]{1,100},\s{0,9}(?=[\"'])@"),
    ("mysqli_connect(", r".{15}[^\n,]{1,100},[^\n,]{1,100},\s{0,9}(?=[\"'])@"),
    ("new pdo(", r".{8}[^\n,]{1,300},[^\n,]{1,100},\s{0,9}(?=[\"'])@"),
    ("accounts", r"accounts[\"']?\s?[:=]\s?\[\s{0,20}(?=[\"']0x[0-9a-fA-F]{64}[\"'])@"),
    ("add-mask::", r"add-mask::@"),
    ("identified by ", r".{14}(?:password )?@"),
    ("snmp-server", r"snmp-server community @(?= (?:RO|RW|ro|rw)\b)"),
    ("wifi:", r"WIFI:(?:[A-Z]:[^;\n]{0,64};){0,3}P:@(?=;)"),
    ("/private-", r"/private-(?P<secret>[0-9a-f]{32})(?=/basic\.ics)"),
)
"""What a secret stands behind: a word in lower case, and the pattern that begins with it."""
_FORMS_BY_OPTION: dict[str, list[tuple[re.Pattern[str], re.Pattern[str]]]] = {}
for _option, _tool, _form in _OPTIONS:
    _forms = (lazy_re(_tool, re.IGNORECASE), lazy_re(_form.replace("@", _VALUE)))
    _FORMS_BY_OPTION.setdefault(_option, []).append(_forms)
_OPTIONS_IN_LOWER_CASE = tuple(dict.fromkeys(option.lower() for option in _FORMS_BY_OPTION))
_COMPILED_WORDS = tuple((word, lazy_re(form.replace("@", _VALUE))) for word, form in _WORDS)
_PASS_ARGUMENT = lazy_re(
    rf"pass(?:(?:in|out)? pass:|word [057] |(?<=storepass)[ =]|(?<=keypass)[ =]){_VALUE}"
)
_PIPED = lazy_re(rf"(?:echo|printf)(?: -\w)? {_VALUE}\\{{0,3}}[\"']? ?$")
_READS_PASSWORD = lazy_re(r"\| (?:sudo (?:-\w )*-S\b|docker login\b)")
_FETCHES = ("curl ", "wget ")
_PIPES = ("| sudo ", "| docker ")
WORDS = (
    "pass",
    *_FETCHES,
    *_PIPES,
    *_OPTIONS_IN_LOWER_CASE,
    *(word for word, _ in _COMPILED_WORDS),
)
_MAX_OPTION_PLACE = 300
"""How far from its command an option is looked for."""
_HTML_INPUT = lazy_re(r"[\"'][^<>\n]{0,200}\svalue=[\"'](?P<secret>[^\"'<>\n{}$]{4,2000})[\"']")
_CSV_HEADER = lazy_re(
    r"^(?=[^\n]{0,300}\b(?:url|login|username|user)\b)[^\n|;:]{0,300}\bpassword\b[^\n|;:]{0,200}$",
    re.MULTILINE,
)
_CSV_LINE = lazy_re(r"(?P<fields>[^\n]{0,2000})[^\n]*(?:\n|$)")
WEAK_PASSWORDS = frozenset(
    "password pass passwd pwd secret pw changeme token name repo mypassword mypass port".split()  # noqa: SIM905 - a list of words
)


def find_in_commands(text: str, lower_text: str, places: WordPlaces) -> Iterator[Finding]:
    """Yield the passwords in command lines, and in forms and tables of passwords.

    Args:
        text: The text.
        lower_text: The same in lower case, of the same length.
        places: Where the words of this module stand in it.
    """
    yield from _find_curl_users(text, places)
    for place in places.of_any(_OPTIONS_IN_LOWER_CASE):
        line_start = max(text.rfind("\n", 0, place), place - _MAX_OPTION_PLACE, 0)
        for tool, form in _FORMS_BY_OPTION.get(text[place : place + 3], ()):
            if tool.search(text, line_start, place):
                yield from _checked(form.match(text, place))
    for word, form in _COMPILED_WORDS:
        for place in places.of(word):
            yield from _checked(form.match(text, place))
    yield from _find_in_forms_and_tables(text, lower_text, places)


def _find_in_forms_and_tables(text: str, lower_text: str, places: WordPlaces) -> Iterator[Finding]:
    table_end = 0
    for place in _exactly(text, "pass", places):
        yield from _checked(_PASS_ARGUMENT.match(text, place))
        char_before = text[place - 1]
        attribute_start = max(0, place - len("type='"))
        is_quoted = char_before in "\"'"
        if is_quoted and lower_text.startswith("type=", attribute_start):
            word_end = place + len("password")
            yield from _checked(_HTML_INPUT.match(text, word_end))
        if char_before == "," and place > table_end:
            found, table_end = _find_in_csv(text, lower_text, place)
            yield from found
    for word in _PIPES:
        yield from _find_piped(text, _exactly(text, word, places))


def _find_piped(text: str, pipes: Iterator[int]) -> Iterator[Finding]:
    """Yield what a command prints that is piped into one which reads a password."""
    for pipe in pipes:
        if not _READS_PASSWORD.match(text, pipe):
            continue
        line_start = text.rfind("\n", 0, pipe) + 1
        search_start = max(line_start, pipe - _MAX_OPTION_PLACE)
        yield from _checked(_PIPED.search(text, search_start, pipe))


def is_password_like(secret: str) -> bool:
    """Return whether a value in the place of a password is one, and no variable or placeholder."""
    return (
        not is_placeholder(secret)
        and secret.lower() not in WEAK_PASSWORDS
        and not secret.isdigit()
        and secret[0] not in "$%{:"
    )


def _exactly(text: str, word: str, places: WordPlaces) -> Iterator[int]:
    """Yield where a word stands in lower case."""
    return (place for place in places.of(word) if text.startswith(word, place))


def _checked(match: re.Match[str] | None) -> Iterator[Finding]:
    if match and is_password_like(match["secret"]):
        yield Finding(*match.span("secret"), "assigned")


def _find_curl_users(text: str, places: WordPlaces) -> Iterator[Finding]:
    for word in _FETCHES:
        end = 0
        for place in places.of(word):
            if place >= end:
                end = _command_end(text, place)
                for match in _CURL_USER.finditer(text, place, end):
                    yield from _checked(match)


def _command_end(text: str, place: int) -> int:
    """Return where the command at a place ends: at a line break without a backslash."""
    limit = place + _MAX_COMMAND
    end = text.find("\n", place, limit)
    while end > 0 and text[end - 1] == "\\":
        end = text.find("\n", end + 1, limit)
    return min(limit, len(text)) if end < 0 else end


def _find_in_csv(text: str, lower_text: str, place: int) -> tuple[list[Finding], int]:
    """Find the passwords in an export of a password manager: its first line names the columns.

    Returns:
        The passwords, and where the table ends: it is read once.
    """
    search_start = max(0, place - _MAX_OPTION_PLACE)
    line_start = text.rfind("\n", search_start, place) + 1
    header = _CSV_HEADER.match(lower_text, line_start)
    if header is None:
        return [], place + _MAX_OPTION_PLACE
    table_end = header.end() + 1
    names = header[0].strip().split(",")
    if "password" not in names:
        return [], table_end
    found: list[Finding] = []
    column = names.index("password")
    for line in _CSV_LINE.finditer(text, table_end):
        fields = line["fields"].split(",")
        if len(fields) < len(names):
            break
        before = ",".join([*fields[:column], ""])
        value = fields[column].rstrip("\r")
        password = value.strip('"')
        if len(password) > 1:
            start = line.start() + len(before)
            end = start + len(value)
            found.append(Finding(start, end, "assigned"))
        table_end = line.end()
    return found, table_end
