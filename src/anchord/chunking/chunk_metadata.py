"""The chunks of a document as records, with what the index does not store of a chunk."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from anchord.chunking.derived_fields import (
    heading_fields,
    place_fields,
    size_fields,
    text_fields,
)
from anchord.core.ids import make_doc_id
from anchord.core.quoting import escape_non_utf8
from anchord.core.types import Chunk, ChunkPlace, Document, ExchangeMetadata, RootedPath, Row
from anchord.ipc.messages.chunks import ChunkAnswer

CHUNK_TYPES = ("section", "text", "code_block", "table", "list")
_FENCE = re.compile(
    r"^[ \t>]*(?:[-*+]|\d{1,9}[.)])?[ \t]*(?:`{3,}|~{3,})[ \t]*\{?\.?([\w+#-][\w+#.-]*)",
    re.MULTILINE,
)


def describe_chunks(
    chunks: Sequence[Chunk],
    document: Document,
    origin: RootedPath,
    strategy: str,
    turn: int | None = None,
) -> list[ChunkAnswer]:
    """Describe all chunks of a document.

    Args:
        chunks: All chunks of the document, in order.
        document: The document.
        origin: The document's file, or exchange.
        strategy: The strategy that cut it.
        turn: Number of an exchange in its conversation, if the caller knows it.

    Returns:
        One record for each chunk, in order. What only an index knows is null: the vector key, the
        file and the room.
    """
    path = escape_non_utf8(origin.path)
    document_fields: dict[str, Any] = {
        "root": origin.root,
        "path": path,
        "strategy": strategy,
        "parent_id": make_doc_id(origin),
        "turn": turn,
    }
    ids = [None, *(chunk.chunk_id for chunk in chunks), None]
    described: list[ChunkAnswer] = []
    for index, chunk in enumerate(chunks):
        place = ChunkPlace(index, len(chunks), ids[index], ids[index + 2])
        answer = ChunkAnswer(
            **document_fields,
            **_own_fields(chunk, document),
            **heading_fields(chunk.header_path, path),
            **size_fields(chunk.token_count),
            **place_fields(place, chunk.header_path, path),
            **_part_fields(document.exchange_metadata, place),
        )
        described.append(answer)
    return described


def _own_fields(chunk: Chunk, document: Document) -> dict[str, Any]:
    """Return what a chunk is, apart from its headings, its size and its place."""
    chunk_type = chunk_type_of(chunk)
    return {
        "id": chunk.chunk_id,
        "text": chunk.content,
        "kind": chunk.kind,
        "content_hash": chunk.content_hash,
        "embed_text": chunk.embed_text,
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        "anchor_line": chunk.anchor_line,
        "start_char": chunk.start_char,
        "end_char": chunk.end_char,
        "chunk_type": chunk_type,
        "language": language_of(chunk, document) or None,
        "level": chunk.heading_level,
        "exceeds_limit": chunk.is_partial_block,
        "is_contextually_enriched": chunk.has_added_heading,
        **text_fields(chunk.content, chunk.kind, chunk_type),
    }


def _part_fields(metadata: ExchangeMetadata, place: ChunkPlace) -> dict[str, Any]:
    """Return the fields that only chunks of an exchange have."""
    if not metadata.session:
        return {}
    return {
        **exchange_fields(metadata),
        "part_index": place.ordinal,
        "total_parts": place.sibling_count,
    }


def exchange_fields(metadata: ExchangeMetadata | Row) -> dict[str, Any]:
    """Return the metadata of an exchange, by the names of `ChunkAnswer`."""
    return {
        "source": metadata.source,
        "session": metadata.session,
        "exchange_id": metadata.exchange_id,
        "at": metadata.at or None,
        "until": metadata.until or None,
        "project": metadata.project or None,
        "model": metadata.model or None,
        "branch": metadata.branch or None,
        "tools": tuple(metadata.tools.split("\n")) if metadata.tools else (),
        "files": tuple(metadata.files.split("\n")) if metadata.files else (),
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
