"""Filters -> SQL, with LanceDB's engine as the reference.

An input's first line is a query; each line after it is `field text`, a field of `Filters` and what is wanted of it.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import asdict, fields
from functools import cache
from typing import Any

import lancedb
from tools.fuzz.inputs import headed, pick
from tools.fuzz.laws import hold

from anchord.core.query_syntax import parse_query, phrase_regex
from anchord.core.types import SearchFilters
from anchord.store.table.filters import sql_condition, sql_in_conditions, sql_literal

_LITERAL = re.compile(r"'((?:[^']|'')*)'")
_TEXTS = tuple(each.name for each in fields(SearchFilters) if each.type == "str")
_COLUMNS = (
    "root",
    "kind",
    "room",
    "session",
    "chunk_type",
    "language",
    "source",
    "doc_id",
    "branch",
    "tools",
    "files",
    "project",
    "until",
    "at",
    "header_path",
    "text",
    "path",
    "search_text",
)


def filters(data: bytes) -> None:
    """Write filters as SQL: no text gets out of its quotes, and the engine takes it, with the very same text in it."""
    head, body = headed(data)
    asked = parse_query(head)
    named: dict[str, Any] = {}
    for line in body.decode("utf-8", "replace").split("\n")[:12]:
        name, _, text = line.partition(" ")
        named[pick(_TEXTS, name)] = text
    wanted = SearchFilters(
        **named,
        required_phrases=asked.required_phrases,
        excluded_phrases=asked.excluded_phrases,
        required_prefixes=asked.required_prefixes,
    )
    sql = sql_condition(wanted)
    plain = sql_condition(_harmless(wanted))
    hold(
        _skeleton(sql) == _skeleton(plain),
        "only what is between quotes depends on a text",
        sql,
        plain,
    )
    for name in ("root", "kind", "room", "session", "since", "until"):
        text = getattr(wanted, name)
        hold(not text or text in _values(sql), "a text parses back to itself", text, sql)
    if sql:
        _taken(sql)
    for text in {text for text in named.values() if text}:
        _same(text)
    for phrase in asked.required_phrases:
        _found(phrase)
    listed = [
        text for where in sql_in_conditions("id", list(named.values())) for text in _values(where)
    ]
    hold(
        listed == list(dict.fromkeys(named.values())),
        "a list of texts parses back to itself",
        named,
    )


def _harmless(wanted: SearchFilters) -> SearchFilters:
    """Return filters of the same form without a character that could mean anything."""
    given: dict[str, Any] = asdict(wanted)
    made: dict[str, Any] = {
        name: tuple("x" for _ in value) if isinstance(value, tuple) else "x" if value else ""
        for name, value in given.items()
    }
    made["dated_files"] = made["projects"] = None
    made["section"] = ">".join("x" for _ in wanted.section.split(">")) if wanted.section else ""
    return SearchFilters(**made)


def _skeleton(sql: str) -> str:
    """Return SQL without its texts, as SQL itself has them: two quotes in a text are one."""
    return _LITERAL.sub("'", sql)


def _values(sql: str) -> list[str]:
    return [text.replace("''", "'") for text in _LITERAL.findall(sql)]


@cache
def _table() -> Any:  # noqa: ANN401 - lancedb ships no types
    row = dict.fromkeys(_COLUMNS, "")
    return lancedb.connect("memory://").create_table(
        "chunks", [{**row, "search_text": "some words", "vector": [0.0]}]
    )


def _taken(sql: str) -> None:
    """The engine accepts the condition; its result is not checked."""
    _table().count_rows(sql)


def _same(text: str) -> None:
    """The engine reads the very same text out of the quotes."""
    summed = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    found = _table().count_rows(f"md5({sql_literal(text)}) = '{summed}'")
    hold(found == 1, "the engine reads the same text", text)


def _found(phrase: str) -> None:
    """The engine finds a phrase in the same places as Python."""
    found = _table().count_rows(
        f"regexp_like({sql_literal(f'({phrase})')}, {sql_literal(phrase_regex(phrase))})"
    )
    hold(found == 1, "the engine finds a phrase where it stands", phrase)
