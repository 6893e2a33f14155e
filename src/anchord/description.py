"""Chunks as JSON values, with what can be said of each among its siblings.

Where a chunk stands (index, neighbours, position, number of siblings) is worked out here, when it is asked for, and stored
nowhere: an edit at the top of a file would change it in every row below.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from anchord.core.identity import fields_digest
from anchord.model import Chunk, Document, Origin, printable

_FINE_BELOW = 400
_MEDIUM_TO = 1200
_TYPICAL_FROM = 150
_KEYWORDS = 5
_FENCE = re.compile(r"^[ \t>]*(?:[-*+]|\d{1,9}[.)])?[ \t]*(?:`{3,}|~{3,})[ \t]*\{?\.?([\w+#-][\w+#.-]*)", re.MULTILINE)
_WORD = re.compile(r"[^\W\d_]\w{2,}")


def doc_id(origin: Origin) -> str:
    """Name a file as its rows do."""
    return fields_digest("doc", origin.root, origin.path)


def describe(
    chunks: Sequence[Chunk], document: Document, origin: Origin, strategy: str, *, keywords: bool = False
) -> list[dict[str, Any]]:
    """Return a dictionary a chunk; `keywords` costs as much as chunking does.

    - `chunk_id`, `content` (exact), `embed_text` (what the model sees), `content_hash`, `token_count` (of `embed_text`), `kind`
    - `start_line`, `end_line` (1-based, inclusive), `anchor_line` (its lines in the id count from there), `start_char`,
      `end_char` (of the text as read, the end left out)
    - `header_path` (titles, outermost first), `parent_section` (the last of them), `level` (of that heading, 1 to 6, or 0),
      `depth_level` (how many headings are above that one)
    - `chunk_type`: code_block, table or list where it is nothing else; section under a heading; text elsewhere
    - `contains_code`, `contains_table`, `language` (of its code), `exceeds_limit` (part of a block that fits in no chunk)
    - `parent_id`, `parent_title` (of the document), `chunk_index` (from 0), `sibling_count`, `chunk_position_ratio` (0 to 1],
      `prev_chunk_id`, `next_chunk_id`, `strategy`, `locator` (for people)
    - `granularity_level` (fine below 400 tokens, medium to 1,200, then coarse), `below_typical_size` (under 150 tokens),
      `is_contextually_enriched` (whether `embed_text` has a heading that `content` has not)
    - `keywords`: the words that tell it from its siblings
    """
    parent, path = doc_id(origin), printable(origin.path)
    title = next((piece.header_path[0] for piece in chunks if piece.header_path), "") or path.rpartition("/")[2]
    words = _keywords([piece.content for piece in chunks]) if keywords else []
    described = []
    for index, piece in enumerate(chunks):
        section = piece.header_path[-1] if piece.header_path else None
        tells = {
            "chunk_id": piece.chunk_id,
            "content": piece.content,
            "embed_text": piece.embed_text,
            "header_path": list(piece.header_path),
            "start_line": piece.start_line,
            "end_line": piece.end_line,
            "anchor_line": piece.anchor_line,
            "content_hash": piece.content_hash,
            "token_count": piece.tokens,
            "kind": piece.kind,
            "strategy": strategy,
            "parent_id": parent,
            "parent_title": title,
            "parent_section": section,
            "locator": "#".join([path, *([section] if section else []), str(index)]),
            "chunk_index": index,
            "sibling_count": len(chunks),
            "chunk_position_ratio": (index + 1) / len(chunks),
            "prev_chunk_id": chunks[index - 1].chunk_id if index else None,
            "next_chunk_id": chunks[index + 1].chunk_id if index + 1 < len(chunks) else None,
            "chunk_type": _type(piece),
            "level": piece.level,
            "depth_level": max(0, len(piece.header_path) - 1),
            "start_char": piece.start_char,
            "end_char": piece.end_char,
            "contains_code": "code_block" in piece.forms,
            "contains_table": "table" in piece.forms,
            "language": _language(piece, document),
            "exceeds_limit": piece.is_part,
            "granularity_level": _granularity(piece.tokens),
            "below_typical_size": piece.tokens < _TYPICAL_FROM,
            "is_contextually_enriched": piece.is_titled,
        }
        described.append({**tells, "keywords": words[index]} if keywords else tells)
    return described


def _type(piece: Chunk) -> str:
    if len(piece.forms) == 1 and piece.forms[0] in ("code_block", "table", "list"):
        return piece.forms[0]
    return "section" if piece.header_path else "text"


def _language(piece: Chunk, document: Document) -> str | None:
    if document.kind == "code":
        return document.language or None
    found = _FENCE.search(piece.content) if "code_block" in piece.forms else None
    return found[1].lower() if found else None


def _granularity(tokens: int) -> str:
    return "fine" if tokens < _FINE_BELOW else "medium" if tokens <= _MEDIUM_TO else "coarse"


def _keywords(contents: Sequence[str]) -> list[list[str]]:
    """Return the words of each text that are frequent in it and rare in the others; no list of stop words, no language."""
    counts = [Counter(_WORD.findall(content.lower())) for content in contents]
    spread = Counter(word for count in counts for word in count)
    weigh = {word: math.log((1 + len(counts)) / number) for word, number in spread.items()}
    ranked = [sorted((-number * weigh[word], word) for word, number in count.items()) for count in counts]
    return [[word for _, word in words[:_KEYWORDS]] for words in ranked]
