"""Chunks as JSON values, with their place among the other chunks of the document.

The place of a chunk (index, neighbours, position, number of chunks) is computed here on demand and
stored nowhere: an edit at the top of a file would change it in every row below.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from anchord.core.ids import make_doc_id
from anchord.core.quoting import escape_non_utf8
from anchord.core.types import Chunk, Document, RootedPath

CHUNK_TYPES = ("section", "text", "code_block", "table", "list")
_MEDIUM_MIN_TOKENS = 400
_MEDIUM_MAX_TOKENS = 1200
_TYPICAL_MIN_TOKENS = 150
_MAX_KEYWORDS = 5
_FENCE = re.compile(
    r"^[ \t>]*(?:[-*+]|\d{1,9}[.)])?[ \t]*(?:`{3,}|~{3,})[ \t]*\{?\.?([\w+#-][\w+#.-]*)",
    re.MULTILINE,
)
_WORD = re.compile(r"[^\W\d_]\w{2,}")


def chunks_to_dicts(
    chunks: Sequence[Chunk],
    document: Document,
    origin: RootedPath,
    strategy: str,
    *,
    include_keywords: bool = False,
) -> list[dict[str, Any]]:
    """Describe the chunks of a document as JSON values.

    Args:
        chunks: All chunks of the document, in order.
        document: The document.
        origin: The document's file.
        strategy: The strategy that cut it.
        include_keywords: Whether to add `keywords`, which takes as long as chunking.

    Returns:
        One dictionary for each chunk:

        - `chunk_id`, `content` (exact), `embed_text` (what the model reads), `content_hash`,
          `token_count` (of `embed_text`), `kind`, `strategy`
        - `start_line`, `end_line` (1-based, inclusive), `anchor_line` (1-based; the lines in the id
          count from it), `start_char`, `end_char` (in the text as read, the end excluded)
        - `header_path` (titles, outermost first), `parent_section` (the last title, or None),
          `level` (of that heading, 1 to 6, or 0), `depth_level` (headings above that one)
        - `chunk_type`: code_block, table or list if the chunk is nothing else; otherwise section
          under a heading, and text elsewhere
        - `contains_code`, `contains_table`, `language` (of its code, or None; several are
          separated by spaces), `exceeds_limit` (part of a block that fits in no chunk)
        - `parent_id`, `parent_title` (of the document), `chunk_index` (from 0), `sibling_count`,
          `chunk_position_ratio` (over 0, up to 1), `prev_chunk_id`, `next_chunk_id` (or None),
          `locator` (for people)
        - `granularity_level` (fine below 400 tokens, medium to 1,200, then coarse),
          `below_typical_size` (under 150 tokens), `is_contextually_enriched` (whether `embed_text`
          has a heading that `content` has not)
        - `keywords`: up to five words that are frequent in the chunk and rare in the others
    """
    path = escape_non_utf8(origin.path)
    titles = (chunk.header_path[0] for chunk in chunks if chunk.header_path)
    document_fields = {
        "strategy": strategy,
        "parent_id": make_doc_id(origin),
        "parent_title": next(titles, "") or path.rpartition("/")[2],
    }
    described: list[dict[str, Any]] = []
    for index, chunk in enumerate(chunks):
        fields = {
            **_text_fields(chunk),
            **document_fields,
            **_place_fields(chunks, index, path),
            **_form_fields(chunk, document),
        }
        described.append(fields)
    if include_keywords:
        keywords = _keywords([chunk.content for chunk in chunks])
        for fields, words in zip(described, keywords, strict=True):
            fields["keywords"] = words
    return described


def _text_fields(chunk: Chunk) -> dict[str, Any]:
    """Return the text of a chunk, and what the index stores of it."""
    return {
        "chunk_id": chunk.chunk_id,
        "content": chunk.content,
        "embed_text": chunk.embed_text,
        "header_path": list(chunk.header_path),
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        "anchor_line": chunk.anchor_line,
        "content_hash": chunk.content_hash,
        "token_count": chunk.token_count,
        "kind": chunk.kind,
    }


def _place_fields(chunks: Sequence[Chunk], index: int, path: str) -> dict[str, Any]:
    """Return where a chunk is in its document and among the other chunks."""
    header_path = chunks[index].header_path
    section = header_path[-1] if header_path else None
    locator_parts = [path, section, str(index)] if section else [path, str(index)]
    has_next = index + 1 < len(chunks)
    return {
        "parent_section": section,
        "locator": "#".join(locator_parts),
        "chunk_index": index,
        "sibling_count": len(chunks),
        "chunk_position_ratio": (index + 1) / len(chunks),
        "prev_chunk_id": chunks[index - 1].chunk_id if index else None,
        "next_chunk_id": chunks[index + 1].chunk_id if has_next else None,
    }


def _form_fields(chunk: Chunk, document: Document) -> dict[str, Any]:
    """Return what a chunk is made of, and how large it is."""
    return {
        "chunk_type": chunk_type_of(chunk),
        "level": chunk.heading_level,
        "depth_level": max(0, len(chunk.header_path) - 1),
        "start_char": chunk.start_char,
        "end_char": chunk.end_char,
        "contains_code": "code_block" in chunk.block_types,
        "contains_table": "table" in chunk.block_types,
        "language": language_of(chunk, document) or None,
        "exceeds_limit": chunk.is_partial_block,
        "granularity_level": _granularity(chunk.token_count),
        "below_typical_size": chunk.token_count < _TYPICAL_MIN_TOKENS,
        "is_contextually_enriched": chunk.has_added_heading,
    }


def chunk_type_of(chunk: Chunk) -> str:
    """Return "code_block", "table", "list", "section" or "text"; see `Row.chunk_type`."""
    if len(chunk.block_types) == 1:
        (block_type,) = chunk.block_types
        if block_type in {"code_block", "table", "list"}:
            return block_type
    return "section" if chunk.header_path else "text"


def language_of(chunk: Chunk, document: Document) -> str:
    """Return the language of code, or those that the chunk's fences name, separated by spaces.

    "" if nothing names one. A fence that nothing closes is no block yet, and names its language.
    """
    if document.kind == "code":
        return document.language
    if "code_block" not in chunk.block_types and document.kind != "markdown":
        return ""
    names = (fence[1].lower() for fence in _FENCE.finditer(chunk.content))
    return " ".join(dict.fromkeys(names))


def _granularity(tokens: int) -> str:
    if tokens < _MEDIUM_MIN_TOKENS:
        return "fine"
    return "medium" if tokens <= _MEDIUM_MAX_TOKENS else "coarse"


def _keywords(contents: Sequence[str]) -> list[list[str]]:
    """Return the words of each text that are frequent in it and rare in the others (tf-idf).

    There is no list of stop words, so every language works.
    """
    words_of_texts = [_WORD.findall(content.lower()) for content in contents]
    word_counts = [Counter(words) for words in words_of_texts]
    document_counts: Counter[str] = Counter()
    for counts in word_counts:
        document_counts.update(counts.keys())
    rarity: dict[str, float] = {}
    for word, count in document_counts.items():
        rarity[word] = math.log((1 + len(contents)) / count)
    keywords: list[list[str]] = []
    for counts in word_counts:
        scored = [(-count * rarity[word], word) for word, count in counts.items()]
        ranked = sorted(scored)
        keywords.append([word for _, word in ranked[:_MAX_KEYWORDS]])
    return keywords
