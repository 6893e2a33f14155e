"""Search in detached exchanges: they are in the archive and not in the table."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from anchord.core.quoting import escape_non_utf8
from anchord.ipc.messages.searching import DetachedHit
from anchord.ipc.messages.status import DetachedCounts
from anchord.sources.conversations.archive.detached import DetachedExchange, DetachedGroup

_SNIPPET_CHARS = 200


def search_detached(
    exchanges: Iterable[DetachedExchange],
    groups: Mapping[str, DetachedGroup],
    query: str,
    limit: int,
) -> list[DetachedHit]:
    """Return the exchanges that hold most words of a query, the best first.

    Reads every exchange: about a second for 20,000. Upper and lower case are the same.

    Args:
        exchanges: The exchanges to search.
        groups: Their groups by key.
        query: Words; quotes and operators have no meaning here.
        limit: How many exchanges to return.
    """
    words = {word.strip("\"'-*") for word in query.casefold().split()} - {""}
    scored = []
    for order, exchange in enumerate(exchanges):
        fields = json.loads(exchange.content)
        text = f"{fields['question']}\n\n{fields['answer']}"
        counts = [text.casefold().count(word) for word in words]
        found_words = sum(count > 0 for count in counts)
        # At least half of the words: else every text with "the" in it is a hit.
        if words and 2 * found_words >= len(words):
            hit = _make_hit(
                exchange,
                groups[exchange.group_key],
                fields,
                text,
                words,
            )
            scored.append((-found_words, -sum(counts), order, hit))
    scored.sort(key=lambda entry: entry[:3])
    return [hit for *_, hit in scored[:limit]]


def count_detached(groups: Iterable[DetachedGroup]) -> list[DetachedCounts]:
    """Return the counts of groups of detached exchanges, for `status`; empty ones are left out."""
    return [
        DetachedCounts(
            reason=str(group.reason),
            root=group.root,
            folder=escape_non_utf8(group.folder),
            sessions=group.session_count,
            exchanges=group.exchange_count,
            source_missing=group.sourceless_count,
        )
        for group in groups
        if group.exchange_count
    ]


def _make_hit(
    exchange: DetachedExchange,
    group: DetachedGroup,
    fields: Mapping[str, Any],
    text: str,
    words: Iterable[str],
) -> DetachedHit:
    transcript = os.path.join(group.folder, exchange.transcript_path)
    return DetachedHit(
        reason=str(group.reason),
        root=group.root,
        path=exchange.path,
        transcript=escape_non_utf8(transcript) if exchange.transcript_path else "",
        source=exchange.source,
        session=exchange.session,
        title=exchange.title,
        project=exchange.project,
        at=fields["at"],
        question=fields["question"],
        snippet=_snippet(text, words),
    )


def _snippet(text: str, words: Iterable[str]) -> str:
    """Return about 200 characters around the first word that occurs, in one line."""
    folded = text.casefold()
    places = [place for word in words if (place := folded.find(word)) >= 0]
    start = max(0, min(places, default=0) - _SNIPPET_CHARS // 4)
    return " ".join(text[start : start + _SNIPPET_CHARS].split())
