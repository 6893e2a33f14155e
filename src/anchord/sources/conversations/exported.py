"""Exports: a JSON file with one conversation or with an array of them, of any length, of which one is in memory at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator

import ijson

from anchord.conversation import Carrier, Unknown
from anchord.sources.conversations.records import Record

_BLANKS = b" \t\r\n\xef\xbb\xbf"


def conversations(carrier: Carrier) -> Iterator[Record | Unknown]:
    """Yield each object of a file's array, or the one object that it is. What comes before a broken place is told."""
    with carrier.open() as stream:
        first = stream.read(64).lstrip(_BLANKS)[:1]
    with carrier.open() as stream:
        try:
            if first == b"[":
                for value in ijson.items(stream, "item", use_float=True):
                    yield value if isinstance(value, dict) else Unknown("no conversation")
            else:
                value = json.load(stream)
                yield value if isinstance(value, dict) else Unknown("no conversation")
        except (ijson.JSONError, ValueError, RecursionError):
            yield Unknown("broken JSON")
