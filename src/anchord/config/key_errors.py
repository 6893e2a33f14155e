"""Finds unknown keys in a parsed configuration, and words the errors about keys."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from anchord.errors import ConfigError

Table = type[msgspec.Struct]
"""A table of the schema; its fields are the known keys."""


class TablesByName(NamedTuple):
    """Tables of one schema, each below a name of the user's own."""

    table: Table


InnerTable = Table | TablesByName
InnerTables = Mapping[Table, Mapping[str, InnerTable]]
"""Table -> key -> the table or tables that the key holds."""


def refuse_unknown_keys(
    raw: Mapping[str, Any], table: Table, inner_tables: InnerTables, locate: Callable[[str], str]
) -> None:
    """Refuse the first unknown key.

    Args:
        raw: The parsed TOML.
        table: The schema of `raw`.
        inner_tables: The schemas below it.
        locate: Returns where a key is set, for the message.

    Raises:
        ConfigError: A key is unknown.
    """
    for key, known_names in _keys_with_known_names(raw, table, inner_tables):
        _, _, name = key.rpartition(".")
        if name in known_names:
            continue
        hint = did_you_mean(name, known_names)
        if not hint:
            listed_names = ", ".join(sorted(known_names))
            hint = f"known here: {listed_names}"
        place = locate(key)
        raise ConfigError(f"{place}: unknown key `{key}`", hint)


def did_you_mean(word: str, known_words: Iterable[str]) -> str:
    """Return a hint with the most similar known word; "" if none is similar."""
    similar_words = difflib.get_close_matches(
        word,
        known_words,
        n=1,
        cutoff=0.5,
    )
    if not similar_words:
        return ""
    most_similar = similar_words[0]
    return f"did you mean `{most_similar}`?"


def key_first(message: str) -> str:
    """Put the key before the text of a msgspec message.

    "Expected `int`, got `str` - at `$.watch.settle_ms`" becomes
    "watch.settle_ms: expected int, got str".
    """
    text, _, path = message.partition(" - at ")
    key = path.strip("`")
    key = key.removeprefix("$.")
    first_letter = text[:1].lower()
    remainder = text[1:]
    remainder = remainder.replace("`", "")
    text = first_letter + remainder
    if not key:
        return text
    return f"{key}: {text}"


def _keys_with_known_names(
    raw: Mapping[str, Any], table: Table, inner_tables: InnerTables, prefix: str = ""
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield (full key, known names in its table) for every key, in the order of the text."""
    known_names = table.__struct_fields__
    table_by_name = inner_tables.get(table, {})
    for name, value in raw.items():
        key = f"{prefix}{name}"
        yield key, known_names
        inner_table = table_by_name.get(name)
        if inner_table is None:
            continue
        if not isinstance(inner_table, TablesByName):
            items = value if isinstance(value, list) else [value]
            below = [(f"{key}.", item) for item in items]
        else:
            named = value if isinstance(value, dict) else {}
            below = [(f"{key}.{own_name}.", item) for own_name, item in named.items()]
            inner_table = inner_table.table
        for inner_prefix, item in below:
            if isinstance(item, dict):
                yield from _keys_with_known_names(item, inner_table, inner_tables, inner_prefix)
