"""Rows, passages and conversations as the messages that answer requests."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from anchord.core.query_syntax import ParsedQuery, matched_words
from anchord.core.quoting import escape_non_utf8
from anchord.core.types import ChunkLocation, RootedPath, Row
from anchord.ipc.messages.searching import (
    ConversationAnswer,
    NeighborExchange,
    StoredChunk,
)
from anchord.ipc.messages.searching import (
    Passage as PassageMessage,
)
from anchord.search.passages import Passage
from anchord.sources.conversations.archive.reader import ConversationContext, ExchangePlace
from anchord.sources.conversations.exchange_document import is_exchange_path
from anchord.store.catalog.catalog import SqliteCatalog

_SCORE_DIGITS = 4


def passage_message(
    passage: Passage,
    parsed_query: ParsedQuery,
    strategy: str,
    file: str | None,
    turn: int | None,
) -> PassageMessage:
    """Return a passage as a message.

    Args:
        passage: The passage.
        parsed_query: The query, for `matched`.
        strategy: The chunking strategy of its file.
        file: Absolute path of the file that holds its text, as `absolute_file` returns it.
        turn: The number of its exchange in the conversation.
    """
    row, hit = passage.row, passage.hit
    return PassageMessage(
        id=row.id,
        score=round(hit.score, _SCORE_DIGITS),
        cosine=_rounded(hit.cosine),
        cosine_rank=hit.cosine_rank,
        bm25=_rounded(hit.bm25),
        bm25_rank=hit.bm25_rank,
        exact=hit.contains_identifier,
        named=hit.matches_heading,
        matched=tuple(matched_words(parsed_query, f"{row.header_path}\n{passage.text}")),
        root=row.root,
        path=row.path,
        file=file,
        kind=row.kind,
        room=row.room or None,
        header_path=row.header_path,
        start_line=passage.start_line,
        end_line=passage.end_line,
        ids=tuple(passage.chunk_ids),
        chunk_index=hit.location.ordinal,
        locator=_locator(row, hit.location),
        content_hash=row.content_hash,
        vector_key=None,
        text=passage.text,
        turn=turn,
        **_form_fields(row),
        strategy=strategy,
        **_exchange_fields(row),
    )


def row_message(
    row: Row,
    location: ChunkLocation | None,
    file: str | None = None,
    turn: int | None = None,
) -> StoredChunk:
    """Return a row as a message; its lines are None without a location.

    Args:
        row: The row.
        location: Where its text is in its file.
        file: Absolute path of its file, where the answer has it.
        turn: The number of its exchange in the conversation, where the answer has it.
    """
    return StoredChunk(
        id=row.id,
        root=row.root,
        path=row.path,
        kind=row.kind,
        header_path=row.header_path,
        start_line=location.start_line if location else None,
        end_line=location.end_line if location else None,
        content_hash=row.content_hash,
        vector_key=row.vector_key,
        text=row.text,
        turn=turn,
        **_form_fields(row),
        file=file,
        **_exchange_fields(row),
    )


def conversation_message(
    context: ConversationContext, root: str, catalog: SqliteCatalog
) -> ConversationAnswer:
    """Return an exchange's conversation as a message, with the ids of its neighbours."""
    return ConversationAnswer(
        source=context.source,
        session=context.session,
        title=context.title or None,
        project=context.project or None,
        number=context.position + 1,
        exchanges=context.exchange_count,
        source_missing=context.source_missing,
        previous=_neighbor_exchange(context.previous, root, catalog),
        next=_neighbor_exchange(context.next, root, catalog),
    )


def _neighbor_exchange(
    path_and_question: tuple[str, str], root: str, catalog: SqliteCatalog
) -> NeighborExchange | None:
    """Return the first chunk and the question of an exchange; None where it is not indexed."""
    path, question = path_and_question
    record = catalog.get_record(RootedPath(root, path)) if path else None
    if record is None or not record.chunks:
        return None
    return NeighborExchange(id=record.chunks[0].chunk_id, question=question)


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, _SCORE_DIGITS)


def _locator(row: Row, location: ChunkLocation) -> str:
    """Return a short name of a chunk for people: path#heading#number."""
    last_heading = row.header_path.rpartition(" > ")[2]
    parts = [row.path, last_heading, str(location.ordinal)]
    return "#".join(part for part in parts if part)


def absolute_file(
    origin: RootedPath,
    root_path_by_name: Mapping[str, str],
    place: ExchangePlace | None,
) -> str | None:
    """Return the file that holds a row's text; None for an exchange whose files are all deleted.

    Args:
        origin: The file or exchange of the row.
        root_path_by_name: Root name -> absolute path.
        place: Where the exchange is; None for a file.
    """
    path: str | None = origin.path
    if is_exchange_path(origin.path):
        path = place.transcript if place else None
    if not path:
        return None
    return escape_non_utf8(os.path.join(root_path_by_name.get(origin.root, ""), path))


def _form_fields(row: Row) -> dict[str, Any]:
    """Return what a chunk is made of, by the names of `StoredChunk`."""
    if not row.chunk_type:  # The table is of a version that did not know.
        return {}
    return {
        "chunk_type": row.chunk_type,
        "language": row.language or None,
        "level": row.level,
        "token_count": row.token_count,
    }


def _exchange_fields(row: Row) -> dict[str, Any]:
    """Return the fields that only exchanges have, by the names of `StoredChunk`."""
    if not row.session:
        return {}
    return {
        "source": row.source,
        "session": row.session,
        "exchange_id": row.exchange_id,
        "at": row.at or None,
        "until": row.until or None,
        "project": row.project or None,
        "model": row.model or None,
        "tools": tuple(row.tools.split("\n")) if row.tools else (),
        "files": tuple(row.files.split("\n")) if row.files else (),
        "part_index": row.part_index,
        "total_parts": row.total_parts,
    }
