"""Finds secrets that are written as numbers, in hexadecimal, in base32 or 64, or in pieces."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from anchord.core.lazy_re import lazy_re
from anchord.sources.secrets.finding import Finding
from anchord.sources.secrets.structures import decode_base64, printable_text
from anchord.sources.secrets.words import WordPlaces

_NUMBER = r"(?:0x[0-9a-fA-F]{2}|\d{1,3})"
_LIST = rf"(?P<list>{_NUMBER}(?:\s{{0,2}},\s{{0,20}}{_NUMBER}){{7,600}})"
_NUMBER_LIST = lazy_re(rf"\w{{4,12}}[^\n\d]{{0,12}}\s{{0,20}}{_LIST}")
_ONE_NUMBER = lazy_re(_NUMBER)
_LIST_WORDS = ("fromcharcode", "bytes([", "byte{", "byte[]", "bytearray(", "uint8array", "char[]")
"""What makes a text of numbers begins with one of these."""
_KEY_PAIR = lazy_re(r"\[\s{0,9}(?:\d{1,3}\s{0,2},\s{0,9}){63}\d{1,3}\s{0,9}\]")
"""A key pair of Solana: 64 bytes."""
_KEY_PAIR_WORDS = tuple(f"[{digit}" for digit in "123456789")
_MIN_DISTINCT_BYTES = 32
_MAX_BYTE = 255
_PIECES = lazy_re(r"[\"']([^\"'\n]{1,200})[\"']")
_ONLY_PIECES = lazy_re(r"(?:\s{0,20}[\"'][^\"'\n]{1,200}[\"']\s{0,20},?){2,200}\s{0,20}")
_JOINS = lazy_re(r"\.join\(\s?(?:[\"']{2}\s?\)|\[)")
_MAX_LIST = 2_000
_HEX = lazy_re(r"(?<![A-Za-z0-9])(?:[0-9a-f]{2}){12,500}(?![A-Za-z0-9])", re.IGNORECASE)
_BASE32 = lazy_re(r"(?<![A-Za-z0-9])[A-Z2-7]{24,800}(?![A-Za-z0-9])")
_BASE64 = lazy_re(r"[A-Za-z0-9+/]{16,}={0,2}")
_SAID_TO_BE_PASSWORD = lazy_re(r"pass\w{1,9}\b[^\n]{0,60}\bbase64\b", re.IGNORECASE)
_NAME_BEFORE = lazy_re(r"([A-Za-z_][\w.-]{2,60})[\"']?\s{0,4}(?::=|=>|=|:)[^=\n]{0,40}$")
_MAX_BEFORE = 110
WORDS = (*_LIST_WORDS, *_KEY_PAIR_WORDS, ".join(")


class EncodedValue(NamedTuple):
    """A part of a text that stands for another text."""

    start: int
    end: int
    plain: str
    """What it stands for."""


FindPlain = Callable[[str], Iterator[Finding]]


def find_encoded(
    text: str, runs: Sequence[tuple[int, int]], places: WordPlaces, find_plain: FindPlain
) -> Iterator[Finding]:
    """Yield the encoded values whose plain text contains a secret, or has the name of one.

    Args:
        text: The text.
        runs: Its `generated_runs`.
        places: Where the words of this module stand in it.
        find_plain: Yields the secrets of a text that is not encoded.
    """
    for value in _encoded_values(text, runs, places):
        inner = next(find_plain(value.plain), None) or _assigned(text, value, find_plain)
        if inner:
            yield Finding(value.start, value.end, inner.kind)
    for place in places.of_any(_KEY_PAIR_WORDS):
        pair = _KEY_PAIR.match(text, place)
        numbers = [int(number) for number in _ONE_NUMBER.findall(pair[0])] if pair else []
        is_random = len(set(numbers)) >= _MIN_DISTINCT_BYTES and max(numbers) <= _MAX_BYTE
        if pair and is_random:
            yield Finding(pair.start() + 1, pair.end() - 1, "private-key")


def _assigned(text: str, value: EncodedValue, find_plain: FindPlain) -> Finding | None:
    """Return the finding if the plain text would be one under the name that it is assigned to."""
    search_start = max(0, value.start - _MAX_BEFORE)
    line_start = text.rfind("\n", search_start, value.start) + 1
    before = text[max(line_start, value.start - _MAX_BEFORE) : value.start]
    name = _NAME_BEFORE.search(before)
    if _SAID_TO_BE_PASSWORD.search(before):
        return next(find_plain(f'password = "{value.plain}"'), None)
    if name is None or '"' in value.plain or "\n" in value.plain:
        return None
    assignment = f'{name[1]} = "{value.plain}"'
    return next(find_plain(assignment), None)


def _encoded_values(
    text: str, runs: Sequence[tuple[int, int]], places: WordPlaces
) -> Iterator[EncodedValue]:
    for place in places.of_any(_LIST_WORDS):
        match = _NUMBER_LIST.match(text, place)
        plain = _of_numbers(match["list"]) if match else ""
        if match and plain:
            yield EncodedValue(*match.span("list"), plain)
    for place in places.of(".join("):
        yield from _joined(text, place)
    for start, end in runs:
        for pattern, decode in (
            (_HEX, _decode_hex),
            (_BASE32, _decode_base32),
            (_BASE64, _decode_any_base64),
        ):
            for match in pattern.finditer(text, start, end):
                plain = decode(match[0])
                if plain:
                    yield EncodedValue(match.start(), match.end(), plain)


def _of_numbers(numbers: str) -> str:
    """Return the text whose characters have these codes; "" if one is no printable character."""
    codes: list[int] = []
    for number in _ONE_NUMBER.findall(numbers):
        base = 16 if number[:2] == "0x" else 10
        codes.append(int(number, base))
    data = bytes(code for code in codes if code <= _MAX_BYTE)
    return printable_text(data) if len(data) == len(codes) else ""


def _joined(text: str, place: int) -> Iterator[EncodedValue]:
    """Yield a list of strings that is joined without anything between: ['a', 'b'].join('')."""
    call = _JOINS.match(text, place)
    if call is None:
        return
    if call[0].endswith("["):  # Python: ''.join(['a', 'b'])
        start = call.end()
        end = text.find("]", start, start + _MAX_LIST)
        before = text[max(0, place - 2) : place]
        is_bare = before in ('""', "''")
    else:
        search_start = max(0, place - _MAX_LIST)
        start = text.rfind("[", search_start, place) + 1
        end = text.rfind("]", max(0, place - 2), place)
        is_bare = True
    if is_bare and 0 < start < end and _ONLY_PIECES.fullmatch(text, start, end):
        pieces = _PIECES.findall(text[start:end])
        yield EncodedValue(start, end, "".join(pieces))


def _decode_hex(digits: str) -> str:
    return printable_text(bytes.fromhex(digits))


def _decode_base32(encoded: str) -> str:
    try:
        padding = "=" * (-len(encoded) % 8)
        return printable_text(base64.b32decode(encoded + padding))
    except ValueError:
        return ""


def _decode_any_base64(encoded: str) -> str:
    """Decode base64 of ASCII, or of UTF-16 as PowerShell takes it."""
    if encoded[4:5] != "A" or encoded[7:8] != "A":  # Every second byte is 0 in UTF-16.
        return decode_base64(encoded)
    try:
        data = binascii.a2b_base64(encoded + "=" * (-len(encoded) % 4))
    except ValueError:
        return ""
    return "" if any(data[1::2]) else printable_text(data[::2])
