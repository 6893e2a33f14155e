"""A file that cannot be chunked has no rows, is listed with its reason, and stops no other file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from fakes import FakeCatalogue, FakeFiles, FakeStore
from index.test_reconcile import RECIPE, NoVectors

from anchord.chunking.chunker import split_into_chunks
from anchord.core.ports import IndexerDependencies
from anchord.core.types import Action, Problem, RootedPath
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.index.indexer import Indexer

BAD, GOOD = RootedPath("r", "bad.md"), RootedPath("r", "good.md")


def indexer_over(files: FakeFiles, catalog: FakeCatalogue, store: FakeStore) -> Indexer:
    dependencies = IndexerDependencies(
        files=files,
        catalog=catalog,
        store=store,
        embedder=HashEmbedder(),
        vector_cache=NoVectors(),
        clock=lambda: 10**18,
    )
    return Indexer(dependencies, lambda texts: [len(text.split()) for text in texts], RECIPE)


def test_a_new_file_that_a_rule_leaves_out_or_that_is_gone_is_skipped_with_its_reason() -> None:
    files, catalog = FakeFiles(), FakeCatalogue()
    files.put(BAD, "Words.\n")
    files.excluded[BAD] = "a rule of the fake"
    outcomes = list(indexer_over(files, catalog, FakeStore()).index([BAD, GOOD]))
    assert [(each.origin, each.action) for each in outcomes] == [
        (BAD, Action.SKIPPED),
        (GOOD, Action.SKIPPED),
    ]
    assert "a rule of the fake" in outcomes[0].reason
    assert all(each.reason for each in outcomes)
    assert catalog.files == {}


def test_a_file_whose_chunking_fails_is_listed_until_it_can_be_chunked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files, catalog, store = FakeFiles(), FakeCatalogue(), FakeStore()
    files.put(BAD, "Words of the bad file.\n")
    files.put(GOOD, "Words of the good file.\n")
    indexer = indexer_over(files, catalog, store)
    real = split_into_chunks

    def failing(document: Any, *given: Any) -> Sequence[Any]:  # noqa: ANN401 - as in the original
        if "bad" in document.text:
            raise ValueError("a bug")
        return real(document, *given)

    with monkeypatch.context() as fault:
        fault.setattr("anchord.index.rows.split_into_chunks", failing)
        outcomes = list(indexer.index([BAD, GOOD]))
    assert [each.action for each in outcomes if each.origin == GOOD] == [Action.INDEXED]
    listed = [(each.origin, each.problem) for each in catalog.list_failures()]
    assert listed == [(BAD, Problem("not indexed: chunking failed with ValueError"))]
    assert list(store.ids_of_file(BAD)) == []
    files.put(BAD, "Words of the bad file, written again.\n")
    list(indexer.index(indexer.reconcile("r").paths_due))
    assert list(catalog.list_failures()) == []
    assert len(store.ids_of_file(BAD)) == 1
