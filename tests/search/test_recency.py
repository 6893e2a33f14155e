"""Older hits are weighed down on request, and a time that a query names is offered."""

from __future__ import annotations

import pytest
from fakes import FakeCatalogue, FakeStore

from anchord.core.types import (
    NO_FINGERPRINT,
    ChunkDiff,
    ChunkLocation,
    FileRecord,
    FileUpdate,
    Hit,
    RootedPath,
    Row,
    SearchFilters,
)
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.search.backends import Backends
from anchord.search.ranking import SearchRequest, search
from anchord.search.recency import Recency, weigh_by_age

DAY_NS = 86_400 * 10**9
NOW_NS = 1_000 * DAY_NS
MONTH = Recency(30 * 86_400.0, NOW_NS)


def hit(chunk_id: str, path: str, score: float) -> Hit:
    return Hit(
        id=chunk_id,
        location=ChunkLocation(RootedPath("r", path), 1, 1),
        score=score,
        cosine=None,
        bm25=None,
        cosine_rank=None,
        bm25_rank=None,
    )


def catalogue(days_ago: dict[str, float]) -> FakeCatalogue:
    made = FakeCatalogue()
    made.confirm_updates(
        [
            FileUpdate(
                origin=RootedPath("r", path),
                new_record=FileRecord(
                    fingerprint=NO_FINGERPRINT._replace(mtime_ns=NOW_NS - int(days * DAY_NS)),
                    read_ns=0,
                    content_digest="digest",
                    recipe_digest="recipe",
                    is_confirmed=True,
                    chunks=(),
                ),
                diff=ChunkDiff(added=(), changed=(), removed=(), shifted=0, kept=0),
                texts_to_embed=(),
                reason="new",
            )
            for path, days in days_ago.items()
        ]
    )
    return made


@pytest.mark.parametrize(
    ("days", "factor"), [(0, 1.0), (30, 0.5), (60, 0.25), (-5, 1.0), (None, 1.0)]
)
def test_a_half_life_halves_what_is_left(days: int | None, factor: float) -> None:
    time_ns = None if days is None else NOW_NS - days * DAY_NS
    assert MONTH.factor(time_ns) == pytest.approx(factor)


def test_a_newer_file_passes_an_older_one_that_fits_little_better() -> None:
    hits = [hit("old", "old.md", 0.9), hit("new", "new.md", 0.8), hit("lost", "lost.md", 0.1)]
    weighed = weigh_by_age(hits, MONTH, FakeStore(), catalogue({"old.md": 30, "new.md": 0}))
    assert [each.id for each in weighed] == ["new", "old", "lost"]
    assert [each.score for each in weighed] == pytest.approx([0.8, 0.45, 0.1])
    assert [each.recency for each in weighed] == [1.0, pytest.approx(0.5), 1.0]


def test_an_exchange_is_as_old_as_its_end() -> None:
    store = FakeStore()
    said = Row(
        id="said",
        doc_id="doc",
        root="r",
        path="/codex/s/1",
        kind="exchange",
        header_path="",
        content_hash="hash",
        vector_key="key",
        text="words",
        search_text="words",
        session="s",
        source="codex",
        at="1972-08-28T00:00:00.000Z",
        until="1972-08-28T00:00:00.000Z",  # 970 days after 1970-01-01.
    )
    store.upsert([said], {"key": HashEmbedder().embed(["words"])[0]})
    (weighed,) = weigh_by_age([hit("said", said.path, 1.0)], MONTH, store, FakeCatalogue())
    assert weighed.score == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("query", "since", "note"),
    [
        ("boats last week", "", 'add --since "last week" to search only there'),
        ("boats last week", "2026-01-01T00:00:00.000Z", ""),
        ("boats", "", ""),
    ],
)
def test_a_time_in_a_query_is_offered_and_not_applied(query: str, since: str, note: str) -> None:
    request = SearchRequest(query=query, filters=SearchFilters(since=since))
    answer = search(request, Backends(FakeStore(), HashEmbedder()), FakeCatalogue())
    assert answer.note == note
