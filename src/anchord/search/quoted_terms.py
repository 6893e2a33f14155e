"""Quoted terms: which of them a hit must contain, and which only rank it higher.

Somebody who quotes a term within a question names a thing; its answer need not write it in the
same way. A query that is nothing but quoted phrases asks for these.
"""

from __future__ import annotations

from dataclasses import replace

from anchord.core.query_syntax import ParsedQuery, parse_query
from anchord.core.quoting import quote_names
from anchord.search.query_kind import QueryKind, kind_of_query

MIN_MATCHES = 3
"""If fewer chunks have the quoted phrases of a query with other words, the phrases are relaxed."""


def read_query(text: str) -> ParsedQuery:
    """Parse a query; the quoted phrases of a question or a sentence exclude no hits."""
    query = parse_query(text)
    if query.unquoted_words and kind_of_query(query) is not QueryKind.TERMS:
        return prefer_phrases(query)
    return query


def can_be_relaxed(query: ParsedQuery, matches: int) -> bool:
    """Return whether the phrases of a query should no longer exclude hits.

    Args:
        query: The query. One of quoted phrases alone stays as it is.
        matches: Number of chunks that have all of its phrases.
    """
    has_both = bool(query.required_phrases and query.unquoted_words)
    return has_both and matches < MIN_MATCHES


def prefer_phrases(query: ParsedQuery) -> ParsedQuery:
    """Return a query whose quoted phrases rank hits higher and exclude none."""
    return replace(
        query,
        required_phrases=(),
        preferred_phrases=query.required_phrases,
    )


def relaxed_note(query: ParsedQuery, matches: int) -> str:
    """Return a sentence that says that phrases were relaxed.

    Args:
        query: The query as it was before.
        matches: Number of chunks that have all of its phrases.
    """
    count = {0: "nothing contains", 1: "only 1 chunk contains"}.get(
        matches, f"only {matches} chunks contain"
    )
    return f"{count} {quote_names(query.required_phrases)}: hits without it are shown too"
