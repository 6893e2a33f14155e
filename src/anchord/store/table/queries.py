"""The queries of the chunk table, as coroutines over an open LanceDB table."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lancedb.query import BooleanQuery, FullTextOperator, MatchQuery, Occur

from anchord.core.query_syntax import is_unspaced, phrase_regex
from anchord.core.types import SearchFilters, Vector
from anchord.core.word_forms import forms_of_query
from anchord.store.table.filters import (
    frequent_words_with_prefix,
    sql_condition,
    sql_in_conditions,
    sql_literal,
)
from anchord.store.table.schema import ArrowTable, LanceTable, has_indexed_words, ids_containing

_VECTOR_INDEX_PROBES = 20
_REFINE_FACTOR = 2
_SEARCHED_COLUMN = "search_text"
_PREFIX_SAMPLE_ROWS = 500
_LITERAL_CANDIDATES = 300
_PHRASE_CANDIDATES = 1_000


async def any_id_exists(table: LanceTable, ids: Sequence[str]) -> bool:
    """Return whether the table has a row of any of these ids."""
    for condition in sql_in_conditions("id", ids):
        if await table.count_rows(condition):
            return True
    return False


async def vectors_of(
    table: LanceTable, condition: str, vector_columns: Sequence[str], *, indexed_only: bool = False
) -> ArrowTable:
    """Return id, vector key, vectors and address of the rows that meet a SQL condition.

    Args:
        table: The table.
        condition: A condition on columns that have an index.
        vector_columns: The table's columns of vectors.
        indexed_only: Use the indices alone, and so leave out rows that they do not cover.
    """
    columns = ["id", "vector_key", *vector_columns]
    query = table.query().select(columns).where(condition).with_row_id()
    if indexed_only:
        query = query.fast_search()
    return await query.to_arrow()


async def find_nearest(
    table: LanceTable, column: str, vector: Vector, limit: int, filters: SearchFilters
) -> list[dict[str, Any]]:
    """Return id, `_distance` (1 - cosine similarity) and address of the nearest rows, in order.

    Rows without a vector in the column are not found.
    """
    query = table.query().nearest_to(array("f", vector).tolist())
    query = query.column(column).distance_type("cosine")
    condition = await _condition(table, filters)
    if condition:
        # The vector index visits a part of the rows. Where few rows meet the condition, it would
        # find fewer than there are.
        query = query.where(condition).bypass_vector_index()
    else:
        query = query.nprobes(_VECTOR_INDEX_PROBES).refine_factor(_REFINE_FACTOR)
    selected = query.select(["id", "_distance"]).with_row_id()
    rows = await selected.limit(limit).to_list()
    return list(rows)


async def find_by_words(
    table: LanceTable, text: str, limit: int, filters: SearchFilters
) -> list[dict[str, Any]]:
    """Return id, heading path, `_score` (BM25) and address of rows with words of a text, in order.

    The full-text index holds whole words only, so a required prefix is expanded to words first.
    """
    terms = " ".join([text, *await _expand_prefixes(table, filters)])
    query = table.query().nearest_to_text(_words_query(text, terms))
    condition = await _condition(table, filters)
    if condition:
        query = query.where(condition)
    columns = ["id", "header_path", "_score"]
    rows = await query.select(columns).with_row_id().limit(limit).to_list()
    return list(rows)


def _words_query(text: str, terms: str) -> MatchQuery | BooleanQuery:
    """Return the query for terms, and for the base forms of the words of a text."""
    # MatchQuery, because LanceDB takes a bare text in quotes for a phrase.
    queries = [MatchQuery(terms, _SEARCHED_COLUMN)]
    queries += [
        MatchQuery(forms, _SEARCHED_COLUMN, boost=weight) for forms, weight in forms_of_query(text)
    ]
    if len(queries) == 1:
        return queries[0]
    return BooleanQuery([(Occur.SHOULD, query) for query in queries])


async def _expand_prefixes(table: LanceTable, filters: SearchFilters) -> set[str]:
    """Return frequent words with the required prefixes, from the first 500 rows that have them."""
    if not filters.required_prefixes:
        return set()
    query = table.query().where(sql_condition(filters)).select(["search_text"])
    rows = await query.limit(_PREFIX_SAMPLE_ROWS).to_arrow()
    return frequent_words_with_prefix(rows["search_text"].to_pylist(), filters.required_prefixes)


async def _condition(table: LanceTable, filters: SearchFilters) -> str:
    """Return the SQL condition of some filters; "" if they let every row through.

    A required phrase is looked for in the rows with its words, and in every row only if there are
    too many of those. Comparing every row takes 0.1 s for 100,000 of them.
    """
    for phrase in filters.required_phrases:
        ids = await _ids_with_phrase(table, phrase) if has_indexed_words(phrase) else None
        if ids is not None:
            rest = tuple(other for other in filters.required_phrases if other != phrase)
            others = sql_condition(replace(filters, required_phrases=rest))
            has_phrase = sql_in_conditions("id", ids) or ["false"]
            return " AND ".join(filter(None, (*has_phrase, others)))
    return sql_condition(filters)


async def _ids_with_phrase(table: LanceTable, phrase: str) -> list[str] | None:
    """Return the ids of all rows with a phrase; None if too many rows have its words."""
    rows = await _rows_with_words(table, phrase, _PHRASE_CANDIDATES, "")
    if rows.num_rows == _PHRASE_CANDIDATES:
        return None
    pattern = re.compile(phrase_regex(phrase))
    texts = zip(
        rows["id"].to_pylist(),
        rows[_SEARCHED_COLUMN].to_pylist(),
        strict=True,
    )
    return [row_id for row_id, text in texts if pattern.search(text)]


async def _rows_with_words(table: LanceTable, text: str, limit: int, condition: str) -> ArrowTable:
    """Return id and search text of the best rows by BM25 that have all words of a text."""
    words = MatchQuery(text, _SEARCHED_COLUMN, operator=FullTextOperator.AND)
    query = table.query().nearest_to_text(words).select(["id", _SEARCHED_COLUMN, "_score"])
    if condition:
        query = query.where(condition)
    return await query.limit(limit).to_arrow()


async def find_ids_containing(
    table: LanceTable, literal: str, limit: int, filters: SearchFilters
) -> list[str]:
    """Return the ids of rows whose search text contains a text exactly, in no order.

    Of the rows that have its words the best are looked at first: comparing every row takes 0.1 s
    for 100,000 of them. Every row is compared where none of those contains it, because it may be
    a part of a longer word.
    """
    if not is_unspaced(literal):  # Those are cut into words in another way in each text.
        found = await _find_among_best(table, literal, limit, filters)
        if found:
            return found
    conditions = [f"contains(search_text, {sql_literal(literal)})"]
    if filter_condition := sql_condition(filters):
        conditions.insert(0, filter_condition)
    query = table.query().where(" AND ".join(conditions)).select(["id"])
    rows = await query.limit(limit).to_arrow()
    return list(rows["id"].to_pylist())


async def _find_among_best(
    table: LanceTable, literal: str, limit: int, filters: SearchFilters
) -> list[str]:
    """Return the ids of rows that contain a text exactly, of the best by BM25 with its words."""
    condition = await _condition(table, filters)
    rows = await _rows_with_words(
        table,
        literal,
        _LITERAL_CANDIDATES,
        condition,
    )
    return ids_containing(rows, _SEARCHED_COLUMN, literal)[:limit]


async def count_unindexed_rows(table: LanceTable) -> int:
    """Return how many rows the id or key index lacks; all rows if one of them is missing."""
    unindexed = []
    for column in ("id", "vector_key"):
        stats = await table.index_stats(f"{column}_idx")
        if not stats:
            return int(await table.count_rows())
        unindexed.append(int(stats.num_unindexed_rows))
    return max(unindexed)


async def count_stored_rows(table: LanceTable) -> tuple[int, int, int]:
    """Return the numbers of rows, of fragments, and of deleted rows that fragments still hold.

    The last is exact but for one a fragment.
    """
    fragment_stats = (await table.stats())["fragment_stats"]
    rows, fragments = int(await table.count_rows()), int(fragment_stats["num_fragments"])
    # The lengths count deleted rows, too; their mean is a whole number.
    stored_rows = fragments * int(fragment_stats["lengths"]["mean"])
    return rows, fragments, max(0, stored_rows - rows)
