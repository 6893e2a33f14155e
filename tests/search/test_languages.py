"""Words are found in six languages: as a text has them, in other forms, and beside other languages.

`languages.toml` has the documents and the queries. Its second documents chose nothing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from anchord.config.schema import parse_config
from anchord.core.query_syntax import parse_query
from anchord.core.types import ChunkLocation, RootedPath
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.index.embedders import ProfileInputs
from anchord.index.profile import build_configured_profile
from anchord.search.backends import Backends
from anchord.search.evaluation.trial import VariantChunker
from anchord.search.ranking import SearchRequest, find_hits
from anchord.store.table.table import LanceStore

SAMPLES: dict[str, dict[str, dict[str, str]]] = tomllib.loads(
    (Path(__file__).parent / "languages.toml").read_text("utf-8")
)
LANGUAGES = sorted(SAMPLES)
CONFIG = parse_config('[embedding]\nprovider = "hash"\n', "here")
MEANS = build_configured_profile(ProfileInputs(config=CONFIG, roots=(), models_folder=Path()))
CUTTER = VariantChunker(CONFIG, MEANS.model_files.window, MEANS.token_counter)


class Shelf:
    """An index of documents that are searched by words."""

    def __init__(self, folder: Path, documents: Mapping[str, str]) -> None:
        """Index documents by path."""
        embedder = HashEmbedder()
        rows = [made.row for made in CUTTER.prepare_rows_of("anchored", "heading", dict(documents))]
        vectors = dict(
            zip(
                [row.vector_key for row in rows],
                embedder.embed([row.text for row in rows]),
                strict=True,
            )
        )
        self._store = LanceStore(str(folder), embedder.dimension, embedder.model_id)
        self._store.upsert(rows, vectors)
        self._backends = Backends(self._store, embedder)
        self._locations = {row.id: ChunkLocation(RootedPath("r", row.path), 1, 1) for row in rows}

    def first(self, query: str) -> str:
        """Return the path of the best hit, "" if there is none or another is as good."""
        request = SearchRequest(query=query, mode="text")
        found = find_hits(request, parse_query(query), self._backends, lambda _: self._locations)
        best, *others = [*found.hits, None]
        if best is None or (others[0] and others[0].score == best.score):
            return ""
        return best.location.origin.path

    def missed(self, language: str, queries: Mapping[str, str]) -> list[str]:
        """Return the queries of a language that do not find their document first."""
        return [
            query for query, name in queries.items() if self.first(query) != path_of(language, name)
        ]


def path_of(language: str, name: str) -> str:
    """Return a path that says nothing of what the document is about."""
    documents = SAMPLES[language]["documents"] | SAMPLES[language]["second_documents"]
    return f"{LANGUAGES.index(language)}{list(documents).index(name):02}.md"


def documents_of(language: str, *kinds: str) -> dict[str, str]:
    return {
        path_of(language, name): text
        for kind in kinds
        for name, text in SAMPLES[language][kind].items()
    }


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    """Return an index of the first documents of all six languages."""
    documents: dict[str, str] = {}
    for language in LANGUAGES:
        documents |= documents_of(language, "documents")
    return Shelf(tmp_path_factory.mktemp("six"), documents)


@pytest.mark.parametrize("language", LANGUAGES)
def test_words_as_written_find_their_document_first_in_nine_of_ten(
    shelf: Shelf, language: str
) -> None:
    queries = SAMPLES[language]["as_written"]
    assert len(queries) == 10
    assert len(missed := shelf.missed(language, queries)) <= 1, missed


@pytest.mark.parametrize("language", LANGUAGES)
def test_other_forms_of_words_find_their_document_first_in_seven_of_eight(
    shelf: Shelf, language: str
) -> None:
    queries = SAMPLES[language]["other_forms"]
    assert len(queries) == 8
    assert len(missed := shelf.missed(language, queries)) <= 1, missed


@pytest.mark.parametrize("language", LANGUAGES)
def test_documents_that_chose_nothing_are_found_as_well(tmp_path: Path, language: str) -> None:
    second = Shelf(tmp_path, documents_of(language, "second_documents"))
    assert len(missed := second.missed(language, SAMPLES[language]["second_queries"])) <= 1, missed
