"""Rows, passages and conversations as the messages that answer requests."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from anchord.chunking.chunk_metadata import exchange_fields
from anchord.chunking.derived_fields import (
    heading_fields,
    place_fields,
    size_fields,
    split_section,
    text_fields,
)
from anchord.core.dates import format_utc
from anchord.core.ids import make_doc_id
from anchord.core.query_syntax import ParsedQuery, matched_words
from anchord.core.quoting import escape_non_utf8
from anchord.core.types import ChunkLocation, ChunkPlace, RootedPath, Row
from anchord.ipc.messages.chunks import ChunkAnswer
from anchord.ipc.messages.searching import (
    ConfidenceParts,
    ConversationAnswer,
    NeighborExchange,
    PlaceAnswer,
)
from anchord.ipc.messages.searching import (
    Passage as PassageMessage,
)
from anchord.search.confidence import Judgement
from anchord.search.passages import Passage, match_line
from anchord.sources.conversations.archive.reader import ConversationContext, ExchangePlace
from anchord.sources.conversations.exchange_document import is_exchange_path
from anchord.store.catalog.catalog import SqliteCatalog

_SCORE_DIGITS = 4


@dataclass(frozen=True, slots=True)
class ChunkDescriber:
    """Turns rows of an index into records. For one answer: it holds what was looked up for it.

    Attributes:
        root_path_by_name: Root name -> absolute path.
        strategy_of: Root name and kind -> the strategy that is configured; None for no known kind.
        locations: Chunk id -> where it is; without an entry its place and lines are null.
        places: Chunk id -> where it is among its siblings, likewise.
        exchange_places: Exchange -> where it is.
        change_times: File -> when it changed last, in ns; needed for passages only.
    """

    root_path_by_name: Mapping[str, str]
    strategy_of: Callable[[str, str], str | None]
    locations: Mapping[str, ChunkLocation]
    places: Mapping[str, ChunkPlace]
    exchange_places: Mapping[RootedPath, ExchangePlace]
    change_times: Mapping[RootedPath, int] = field(default_factory=dict)

    def describe(self, row: Row) -> ChunkAnswer:
        """Return the record of a row."""
        return ChunkAnswer(**self._fields(row))

    def describe_passage(
        self, passage: Passage, parsed_query: ParsedQuery, judgement: Judgement
    ) -> PassageMessage:
        """Return a passage: the record of its best chunk, with the text and lines of all.

        Args:
            passage: The passage; the locations have its best chunk.
            parsed_query: The query, for `matched`.
            judgement: How surely the passage is about the query.
        """
        row, hit = passage.row, passage.hit
        matched = tuple(matched_words(parsed_query, f"{row.header_path}\n{passage.text}"))
        fields = self._fields(replace(row, text=passage.text)) | {
            "start_line": passage.start_line,
            "end_line": passage.end_line,
            "vector_key": None,
        }
        return PassageMessage(
            score=round(hit.score, _SCORE_DIGITS),
            confidence=judgement.confidence,
            confidence_parts=_confidence_parts(judgement),
            cosine=_rounded(hit.cosine),
            cosine_rank=hit.cosine_rank,
            bm25=_rounded(hit.bm25),
            bm25_rank=hit.bm25_rank,
            exact=hit.contains_identifier,
            named=hit.matches_heading,
            matched=matched,
            ids=tuple(passage.chunk_ids),
            match_line=match_line(passage, matched),
            also_at=tuple(map(self._copy_place, hit.copies)),
            date=self._date(row, hit.location.origin),
            recency=_rounded(hit.recency),
            heading=passage.heading or None,
            **fields,
        )

    def _copy_place(self, copy: ChunkLocation) -> PlaceAnswer:
        origin = copy.origin
        exchange_place = self.exchange_places.get(origin)
        return PlaceAnswer(
            root=origin.root,
            path=escape_non_utf8(origin.path),
            file=absolute_file(origin, self.root_path_by_name, exchange_place),
            start_line=copy.start_line,
            end_line=copy.end_line,
        )

    def _date(self, row: Row, origin: RootedPath) -> str | None:
        """Return when an exchange ended, or a file changed last."""
        if row.session:
            return row.until or row.at or None
        changed_ns = self.change_times.get(origin)
        return None if changed_ns is None else format_utc(changed_ns) or None

    def _fields(self, row: Row) -> dict[str, Any]:
        """Return the fields of `ChunkAnswer`."""
        location = self.locations.get(row.id)
        origin = location.origin if location else RootedPath(row.root, row.path)
        exchange_place = self.exchange_places.get(origin)
        header_path = split_section(row.header_path)
        return {
            "id": row.id,
            "text": row.text,
            "root": row.root,
            "path": row.path,
            "kind": row.kind,
            "content_hash": row.content_hash,
            "vector_key": row.vector_key,
            "room": row.room or None,
            "file": absolute_file(origin, self.root_path_by_name, exchange_place),
            "strategy": self.strategy_of(row.root, row.kind),
            "parent_id": make_doc_id(origin),
            "turn": exchange_place.turn if exchange_place else None,
            **self._place_fields(row, location, header_path),
            **heading_fields(header_path, row.path),
            **text_fields(row.text, row.kind, row.chunk_type),
            **_form_fields(row),
            **_exchange_fields(row),
        }

    def _place_fields(
        self, row: Row, location: ChunkLocation | None, header_path: Sequence[str]
    ) -> dict[str, Any]:
        if location is None:
            return {}
        place = self.places.get(row.id, ChunkPlace(location.ordinal))
        return {
            "start_line": location.start_line,
            "end_line": location.end_line,
            **place_fields(place, header_path, row.path),
        }


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


def _confidence_parts(judgement: Judgement) -> ConfidenceParts:
    return ConfidenceParts(
        score=round(judgement.score, _SCORE_DIGITS),
        meaning=_rounded(judgement.meaning),
        words=round(judgement.words, _SCORE_DIGITS),
        all_words=round(judgement.all_words, _SCORE_DIGITS),
    )


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, _SCORE_DIGITS)


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
    """Return what a chunk is made of and its size; nothing if the table is of a former version."""
    if not row.chunk_type:
        return {}
    return {
        "chunk_type": row.chunk_type,
        "language": row.language or None,
        "level": row.level,
        **size_fields(row.token_count),
    }


def _exchange_fields(row: Row) -> dict[str, Any]:
    """Return the fields that only exchanges have."""
    if not row.session:
        return {}
    return {
        **exchange_fields(row),
        "part_index": row.part_index,
        "total_parts": row.total_parts,
    }
