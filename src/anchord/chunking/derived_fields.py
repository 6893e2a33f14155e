"""The fields of a chunk's record that follow from its other fields.

They are derived when a record is made, and stored nowhere: an edit at the top of a file would
change the place of every chunk below it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from anchord.chunking.keywords import keywords_of
from anchord.core.types import ChunkPlace

SECTION_SEPARATOR = " > "
"""Between the titles of a header path that is one text, as the table has it."""
_MEDIUM_MIN_TOKENS = 400
_MEDIUM_MAX_TOKENS = 1200
_TYPICAL_MIN_TOKENS = 150
_QUOTE_AND_LIST_MARKS = r"^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?"
_FENCE = re.compile(_QUOTE_AND_LIST_MARKS + r"(?:`{3,}|~{3,})", re.MULTILINE)
_TABLE_DELIMITER = re.compile(
    r"\n(?<=[^\n]\n)(?=[^\n]*\|)[ \t>]*(?:\|[ \t]*)?:?-+:?[ \t]*"
    r"(?:\|[ \t]*:?-+:?[ \t]*)*(?:\|[ \t]*)?$",
    re.MULTILINE,
)
"""The line below the first row of a Markdown table."""


def split_section(section: str) -> tuple[str, ...]:
    """Return the titles of a header path that is one text."""
    return tuple(section.split(SECTION_SEPARATOR)) if section else ()


def text_fields(text: str, kind: str, chunk_type: str | None) -> dict[str, Any]:
    """Return what follows from a chunk's text, by the names of `ChunkAnswer`.

    Args:
        text: The text.
        kind: The kind of its document.
        chunk_type: As in the record; None for unknown.
    """
    is_code = kind == "code" or chunk_type == "code_block"
    return {
        "char_count": len(text),
        "contains_code": is_code or _FENCE.search(text) is not None,
        "contains_table": chunk_type == "table" or _TABLE_DELIMITER.search(text) is not None,
        "keywords": keywords_of(text),
    }


def heading_fields(header_path: Sequence[str], path: str) -> dict[str, Any]:
    """Return what follows from the titles above a chunk and the path of its file."""
    return {
        "header_path": tuple(header_path),
        "section": SECTION_SEPARATOR.join(header_path),
        "depth": max(0, len(header_path) - 1),
        "parent_title": header_path[0] if header_path else path.rpartition("/")[2],
        "parent_section": header_path[-1] if header_path else None,
    }


def size_fields(token_count: int) -> dict[str, Any]:
    """Return what follows from the number of tokens of a chunk."""
    granularity = "coarse"
    if token_count < _MEDIUM_MIN_TOKENS:
        granularity = "fine"
    elif token_count <= _MEDIUM_MAX_TOKENS:
        granularity = "medium"
    return {
        "token_count": token_count,
        "granularity": granularity,
        "below_typical_size": token_count < _TYPICAL_MIN_TOKENS,
    }


def place_fields(place: ChunkPlace | None, header_path: Sequence[str], path: str) -> dict[str, Any]:
    """Return what follows from where a chunk is in its file; nothing without a place."""
    if place is None:
        return {}
    count = place.sibling_count
    locator_parts = [path, *header_path[-1:], str(place.ordinal)]
    return {
        "chunk_index": place.ordinal,
        "sibling_count": count,
        "position": (place.ordinal + 1) / count if count else None,
        "prev_id": place.prev_id,
        "next_id": place.next_id,
        "locator": "#".join(filter(None, locator_parts)),
    }
