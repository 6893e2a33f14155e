"""Fields of a JSON object, each of its expected type or empty: nothing in an export is certain."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from anchord.sources.conversations.formats.json_records import (
    Record,
    dict_or_empty,
    list_or_empty,
    normalize_timestamp,
    str_or_empty,
)


def get_str(record: Record, key: str) -> str:
    """Return the text under a key, "" where there is none."""
    return str_or_empty(record.get(key))


def get_dict(record: Record, key: str) -> Record:
    """Return the object under a key, an empty one where there is none."""
    return dict_or_empty(record.get(key))


def get_list(record: Record, key: str) -> list[Any]:
    """Return the list under a key, an empty one where there is none."""
    return list_or_empty(record.get(key))


def get_dicts(record: Record, key: str) -> list[Record]:
    """Return the list under a key, with an empty object for each element that is no object."""
    return [dict_or_empty(each) for each in list_or_empty(record.get(key))]


def get_time(record: Record, key: str) -> str:
    """Return the time under a key as UTC in ISO 8601 with milliseconds, "" where there is none."""
    return normalize_timestamp(record.get(key))


def first_str(record: Record, *keys: str) -> str:
    """Return the first text under these keys that is not empty, "" where there is none."""
    return next(filter(None, (get_str(record, key) for key in keys)), "")


def iter_strs(records: list[Record], key: str) -> Iterator[str]:
    """Yield the texts under a key of each object that are not empty."""
    for record in records:
        if text := get_str(record, key):
            yield text


def decode_json_text(value: object) -> object:
    """Return the value of a JSON text; a text that is no JSON, and anything else, as it is."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
