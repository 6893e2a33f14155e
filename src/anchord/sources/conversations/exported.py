"""Exports: a JSON file with one conversation or with an array of them, of any length, of which one is in memory at a time.

The elements of the array are decoded one after the other by the standard library's decoder. A streaming parser (ijson 3.6)
keeps the path of every open bracket as a text: 40 KB of them took 3.8 GB.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import BinaryIO

from anchord.conversation import Carrier, Unknown
from anchord.sources.conversations.records import Record

_BLOCK = 1 << 20
_MOST_CHARS = 128 << 20
"""No conversation is longer; what does not end before that is broken."""
_BETWEEN = " \t\r\n,"


def conversations(carrier: Carrier) -> Iterator[Record | Unknown]:
    """Yield each object of a file's array, or the one object that it is. What comes before a broken place is told."""
    with carrier.open() as stream:
        text = _Text(stream)
        text.skip()
        if not text.starts_with("["):
            found = text.value()
            broken = found is _BROKEN or found is _DEEP
            yield found if isinstance(found, dict) else Unknown("broken JSON" if broken else "no conversation")
            return
        text.at += 1
        while True:
            text.skip()
            if text.starts_with("]"):
                return
            found = text.value()
            if found is _BROKEN or found is _DEEP:
                yield Unknown("broken JSON")
            if found is _BROKEN:
                return
            if found is not _DEEP:
                yield found if isinstance(found, dict) else Unknown("no conversation")


_BROKEN, _DEEP = object(), object()
"""What is no JSON, where nothing more can be read, and what is nested deeper than is read of anything, behind which all can."""
_MARKS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_MOST_DIGITS = 4_000
"""Python makes no whole number of more."""


def _number(digits: str) -> int | float:
    return int(digits) if len(digits) < _MOST_DIGITS else float(digits)


_DECODER = json.JSONDecoder(parse_int=_number)


class _Text:
    """A stream of UTF-8 that is decoded as far as it is needed; `at` is where it is read."""

    def __init__(self, stream: BinaryIO) -> None:
        self.at = 0
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._text = ""
        self._ended = False

    def skip(self) -> None:
        """Go to what is not between two elements."""
        while True:
            while self.at < len(self._text) and self._text[self.at] in _BETWEEN:
                self.at += 1
            if self.at < len(self._text) or self._ended:
                return
            self._more(_BLOCK)

    def starts_with(self, letter: str) -> bool:
        return self._text.startswith(letter, self.at)

    def value(self) -> object:
        """Return the JSON value here and go behind it."""
        while True:
            try:
                found, end = _DECODER.raw_decode(self._text, self.at)
            except RecursionError:
                return _DEEP if self._passed() else _BROKEN
            except ValueError:
                left = len(self._text) - self.at
                if self._ended or left > _MOST_CHARS:
                    return _BROKEN
                self._more(max(_BLOCK, left))  # As much again: an element is tried a few times, and not at each block.
            else:
                self.at = end
                return found

    def _passed(self) -> bool:
        """Go behind the value here, by its brackets alone; say whether it has an end."""
        while True:
            depth = 0
            for mark in _MARKS.finditer(self._text, self.at):
                depth += (mark[0] in "[{") - (mark[0] in "]}")
                if depth == 0:
                    self.at = mark.end()
                    return True
            if self._ended or len(self._text) - self.at > _MOST_CHARS:
                return False
            self._more(max(_BLOCK, len(self._text) - self.at))

    def _more(self, count: int) -> None:
        data = self._stream.read(count)
        self._ended = not data
        self._text = self._text[self.at :] + self._decoder.decode(data, final=not data)
        self.at = 0
