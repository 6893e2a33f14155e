"""Filters of many parts cost little, or are refused with the limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from anchord.core.query_syntax import parse_query
from anchord.core.types import SearchFilters
from anchord.errors import UsageError
from anchord.store.table.filters import MAX_HEADINGS, MAX_TEXT_CONDITIONS, sql_condition
from anchord.store.table.maintenance import delete_temporary_files


def test_a_section_of_many_headings_is_refused_with_the_limit() -> None:
    assert sql_condition(SearchFilters(section=" > ".join(["a"] * MAX_HEADINGS)))
    with pytest.raises(UsageError, match="800 headings") as refused:
        sql_condition(SearchFilters(section=" > ".join(["a"] * 800)))
    assert str(MAX_HEADINGS) in refused.value.hint


def test_many_phrases_prefixes_and_excluded_words_are_refused_with_the_limit() -> None:
    parsed = parse_query("".join(f' ab{n}* -w{n} "p {n}"' for n in range(MAX_TEXT_CONDITIONS)))
    filters = SearchFilters(
        required_phrases=parsed.required_phrases,
        required_prefixes=parsed.required_prefixes,
        excluded_phrases=parsed.excluded_phrases,
    )
    with pytest.raises(UsageError, match="300"):
        sql_condition(filters)


def test_a_path_of_many_wildcards_is_refused() -> None:
    with pytest.raises(UsageError, match="wildcards"):
        sql_condition(SearchFilters(path_glob="a*" * 1_000))


def test_the_sweep_leaves_files_that_are_not_of_anchords_tables(tmp_path: Path) -> None:
    ours = tmp_path / "chunks.lance" / "data" / ".tmpAbCdEf"
    others = [tmp_path / "novel.tmp", tmp_path / "mine" / ".tmpx", tmp_path / "own.lance" / "a.tmp"]
    for file in (ours, *others):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    assert delete_temporary_files(tmp_path) == 1
    assert not ours.exists()
    assert all(file.exists() for file in others)
