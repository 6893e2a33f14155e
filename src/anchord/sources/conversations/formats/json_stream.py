"""Reads a JSON file with one conversation or an array of them, holding one in memory at a time.

The array's elements are decoded one after the other by the standard library's decoder. A streaming
parser (ijson 3.6) keeps the path of every open bracket as a string: 40 KB of brackets took 3.8 GB.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import BinaryIO

from anchord.core.lazy_re import lazy_re
from anchord.sources.conversations.events import TranscriptFile, UnknownRecord
from anchord.sources.conversations.formats.json_records import Record

_READ_BYTES = 1 << 20
_MAX_CONVERSATION_CHARS = 128 << 20
"""A value that is not complete within so many characters counts as broken."""
_SEPARATORS = " \t\r\n,"
_STRINGS_AND_BRACKETS = lazy_re(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_MAX_INT_DIGITS = 4_000
"""Python refuses to parse an integer of more digits."""

_BROKEN = object()
"""Read in place of what is not JSON; nothing after it can be read."""
_TOO_DEEP = object()
"""Read in place of a value that is nested too deeply to decode; the next value can be read."""


def stream_conversations(transcript_file: TranscriptFile) -> Iterator[Record | UnknownRecord]:
    """Yield the objects of a file's array, or the one object that the file is.

    Reading ends at the first broken place: what comes before it is yielded, then
    `UnknownRecord("broken JSON")`. A value that is no object gives `UnknownRecord("no
    conversation")`.
    """
    with transcript_file.open() as stream:
        text = _JsonStream(stream)
        text.skip_separators()
        if text.starts_with("["):
            yield from _stream_array(text)
        else:
            yield _to_conversation(text.read_value())


def _stream_array(text: _JsonStream) -> Iterator[Record | UnknownRecord]:
    text.position += 1
    text.skip_separators()
    while not text.starts_with("]"):
        value = text.read_value()
        yield _to_conversation(value)
        if value is _BROKEN:
            return
        text.skip_separators()


def _to_conversation(value: object) -> Record | UnknownRecord:
    if isinstance(value, dict):
        return value
    if value is _BROKEN or value is _TOO_DEEP:
        return UnknownRecord("broken JSON")
    return UnknownRecord("no conversation")


def _parse_int(digits: str) -> int | float:
    return int(digits) if len(digits) < _MAX_INT_DIGITS else float(digits)


_DECODER = json.JSONDecoder(parse_int=_parse_int)


class _JsonStream:
    """UTF-8 that is decoded as far as needed; `position` is the next character to read."""

    def __init__(self, stream: BinaryIO) -> None:
        self.position = 0
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._text = ""
        self._ended = False

    def skip_separators(self) -> None:
        """Move past white space and commas, up to the next element or the end of the file."""
        while True:
            while self.position < len(self._text) and self._text[self.position] in _SEPARATORS:
                self.position += 1
            if self.position < len(self._text) or self._ended:
                return
            self._read_more(_READ_BYTES)

    def starts_with(self, char: str) -> bool:
        return self._text.startswith(char, self.position)

    def read_value(self) -> object:
        """Decode the value at the position and move past it; _BROKEN or _TOO_DEEP on failure."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self.position)
            except RecursionError:
                return _TOO_DEEP if self._skip_value() else _BROKEN
            except ValueError:
                if not self._can_grow():
                    return _BROKEN
                self._double_unread_text()
            else:
                self.position = end
                return value

    def _skip_value(self) -> bool:
        """Move past the value at the position by its brackets; return whether it has an end."""
        while True:
            depth = 0
            for token in _STRINGS_AND_BRACKETS.finditer(self._text, self.position):
                if token[0] in "[{":
                    depth += 1
                elif token[0] in "]}":
                    depth -= 1
                if depth == 0:
                    self.position = token.end()
                    return True
            if not self._can_grow():
                return False
            self._double_unread_text()

    def _can_grow(self) -> bool:
        return not self._ended and self._unread_length() <= _MAX_CONVERSATION_CHARS

    def _unread_length(self) -> int:
        return len(self._text) - self.position

    def _double_unread_text(self) -> None:
        # Doubling decodes an element of n blocks about log2(n) times, and not once a block.
        self._read_more(max(_READ_BYTES, self._unread_length()))

    def _read_more(self, byte_count: int) -> None:
        data = self._stream.read(byte_count)
        self._ended = not data
        rest = self._text[self.position :]
        self._text = rest + self._decoder.decode(data, final=not data)
        self.position = 0
