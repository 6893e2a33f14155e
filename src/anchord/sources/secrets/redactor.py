"""Replaces secrets in texts by `[REDACTED:kind]` before anything is hashed, embedded or stored.

The words around a secret stay, and so does the number of lines. A secret is found by its own form
(`tokens`), by the name that it is assigned to (`assignments`), or by the structure around it
(`structures`), also in base64 and behind escapes (`encodings`). Random text alone (hashes, ids,
base64) stays.
"""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from anchord.core.lazy_re import lazy_re
from anchord.sources.secrets import (
    assignments,
    commands,
    encoded_values,
    encodings,
    prose,
    structures,
    tables,
)
from anchord.sources.secrets.assignments import find_assigned
from anchord.sources.secrets.commands import find_in_commands
from anchord.sources.secrets.encoded_values import find_encoded
from anchord.sources.secrets.encodings import decode_escapes
from anchord.sources.secrets.finding import MARK_START, Finding
from anchord.sources.secrets.prose import find_in_prose
from anchord.sources.secrets.rule_pack import read_rule_pack_version
from anchord.sources.secrets.runs import generated_runs
from anchord.sources.secrets.structures import PEM_KIND, find_structured
from anchord.sources.secrets.tables import find_in_tables
from anchord.sources.secrets.tokens import shared_token_finder
from anchord.sources.secrets.values import is_random
from anchord.sources.secrets.words import WordPlaces, WordSearch

_MARK = lazy_re(r"\[REDACTED:[a-z0-9-]{0,40}\]?")
_MAX_PASSES = 6
_MIN_CUT = 100
"""A longer match may be cut: the patterns limit their values, so that they take linear time."""
_REST = lazy_re(r"[!#$%*+./0-9:=?A-Z^_a-z~-]*(?<![.:!?])")
"""The rest of a value that was cut, without the punctuation behind it."""
_CONTINUED = lazy_re(r"(?:\\\n[ \t]{0,40}[\w+/=.-]{8,2000})+")
"""The lines after a backslash at a line's end."""
_SOFT_BREAKS = lazy_re(r"(?:(?:(?<==)|=)\n[\w+/.-]{1,76})+")
"""Lines that go on in quoted-printable text (RFC 2045, 6.7)."""
_WRAPPED = lazy_re(r"\n(?P<rest>[\w+/=.-]{16,2000})(?=\n|$)")
_MIN_WRAPPED = 30
_MIN_LINE = 60
"""A terminal that is narrower is rare."""
_MAX_LINE = 2000
_SEALED_VALUE = lazy_re(r"Ag[A-Za-z0-9+/]{80,}={0,2}")
_MAX_SEALED = 20_000
"""How many characters of other values can stand before a sealed one."""
_LONG_I = "\u0130"
"""The one character whose lower case is longer."""


@dataclass(frozen=True, slots=True)
class RedactedText:
    """A text without its secrets."""

    text: str
    counts_by_kind: Counter[str]
    """Kind of secret -> how many were replaced."""


def rules_version() -> str:
    """Name the rules: what was redacted by other rules is read again."""
    return f"secrets {read_rule_pack_version()}"


def redact(text: str) -> RedactedText:
    """Replace each secret in a text by `[REDACTED:kind]`.

    Redacting the result again changes nothing. The number of line breaks stays.
    """
    counts: Counter[str] = Counter()
    # A replaced secret can be the word border that a token right beside it lacked. So look again.
    for _ in range(_MAX_PASSES):
        findings = find_secrets(text)
        if not findings:
            break
        counts.update(finding.kind for finding in findings)
        text = _replace(text, findings)
    return RedactedText(text, counts)


def find_secrets(text: str) -> list[Finding]:
    """Return the secrets in a text in their order. They do not overlap."""
    spans = [each for each in _all_findings(text) if not _is_sealed(text, each)]
    spans.sort(key=lambda each: (each.start, -each.end))
    marks = list(_MARK.finditer(text))
    found: list[Finding] = []
    for finding in spans:
        # The first mark that ends after the finding's start must begin after its end.
        next_mark = bisect.bisect_right(marks, finding.start, key=_end_of)
        if next_mark < len(marks) and marks[next_mark].start() < finding.end:
            continue
        last = found[-1] if found else None
        if last is None or finding.start >= last.end:
            found.append(_completed(text, finding))
        elif finding.end > last.end:  # They overlap: both are one secret.
            found[-1] = last._replace(end=finding.end)
    return found


def _end_of(match: re.Match[str]) -> int:
    return match.end()


def _is_sealed(text: str, finding: Finding) -> bool:
    """Return whether a value is of a SealedSecret: only its cluster can decrypt it."""
    start, end, kind = finding
    if kind != "assigned" or not _SEALED_VALUE.fullmatch(text, start, end):
        return False
    return text.rfind("encryptedData", max(0, start - _MAX_SEALED), start) >= 0


def _completed(text: str, finding: Finding) -> Finding:
    """Return a finding that runs to the end of its value."""
    if finding.kind == PEM_KIND:
        return finding
    end = finding.end
    if end - finding.start >= _MIN_CUT:
        rest = _REST.match(text, end)
        end = rest.end() if rest else end
    is_quoted_printable = text.startswith("3D", finding.start) and text[end - 1] == "="
    if next_lines := (_SOFT_BREAKS if is_quoted_printable else _CONTINUED).match(text, end):
        return finding._replace(end=next_lines.end())
    start = finding.start
    while rest := _wrapped(text, start, end):
        start, end = rest.span("rest")
    return finding._replace(end=end)


def _wrapped(text: str, start: int, end: int) -> re.Match[str] | None:
    """Return the rest of a value that a terminal broke off: the next line has nothing else."""
    line_start = text.rfind("\n", max(0, start - _MAX_LINE), start) + 1
    if end - start < _MIN_WRAPPED or end - line_start < _MIN_LINE:
        return None
    rest = _WRAPPED.match(text, end)
    return rest if rest and is_random(rest["rest"]) else None


def _all_findings(text: str) -> Iterator[Finding]:
    runs = generated_runs(text)
    lower_text = _in_lower_case(text)
    places = _word_search().find(lower_text)
    yield from _findings_at(text, lower_text, runs, places)
    decoded = decode_escapes(text, places)
    if decoded:
        for finding in _plain_findings(decoded.text):
            yield Finding(*decoded.original_span(finding.start, finding.end), finding.kind)
    yield from find_encoded(text, runs, places, _plain_findings)


def _plain_findings(text: str) -> Iterator[Finding]:
    """Yield the secrets that stand in a text as they are, some of them twice."""
    lower_text = _in_lower_case(text)
    places = _word_search().find(lower_text)
    yield from _findings_at(text, lower_text, generated_runs(text), places)


def _findings_at(
    text: str, lower_text: str, runs: Sequence[tuple[int, int]], places: WordPlaces
) -> Iterator[Finding]:
    yield from shared_token_finder().find(text, runs)
    if not places:  # As in most ids and titles.
        return
    yield from find_structured(text, lower_text, places)
    yield from find_assigned(text, lower_text, places)
    yield from find_in_commands(text, lower_text, places)
    yield from find_in_prose(text, lower_text, places)
    yield from find_in_tables(text, places)


def _in_lower_case(text: str) -> str:
    """Return a text in lower case, of the same length."""
    lower_text = text.lower()
    if len(lower_text) == len(text):
        return lower_text
    return text.replace(_LONG_I, "i").lower()


@cache
def _word_search() -> WordSearch:
    """Return the search for the words of all finders."""
    finders = (assignments, commands, encoded_values, encodings, prose, structures, tables)
    return WordSearch(word for finder in finders for word in finder.WORDS)


def _replace(text: str, findings: list[Finding]) -> str:
    parts: list[str] = []
    done = 0
    for start, end, kind in findings:
        line_breaks = "\n" * text.count("\n", start, end)
        parts += [text[done:start], f"{MARK_START}{kind}]", line_breaks]
        done = end
    parts.append(text[done:])
    return "".join(parts)
