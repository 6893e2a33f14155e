"""An index in a temporary folder: real stores, an embedder without a model, and a check against a rebuild."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fakes import plans

from anchord.core.ports import IndexerDependencies
from anchord.core.types import FileOutcome, Root
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.embedding.model_files import find_model
from anchord.embedding.tokenizer import TokenCounter
from anchord.index.indexer import Indexer
from anchord.index.integrity.verify import VerifyResult, expected_rows_of_roots, verify
from anchord.index.models import Models
from anchord.index.recipe import Recipe
from anchord.sources.files.folder_files import MAX_FILE_BYTES, FolderFiles
from anchord.store.catalog.catalog import SqliteCatalog
from anchord.store.table.table import LanceStore
from anchord.store.vector_cache import SqliteVectorCache

MODEL = find_model("all-MiniLM-L6-v2")
COUNT = TokenCounter(MODEL.tokenizer)


@dataclass
class Index:
    """An index over `folder`; `sync` indexes as the daemon's sync barrier does."""

    base: Path
    folder: Path = field(init=False)
    embedder: HashEmbedder = field(default_factory=HashEmbedder)

    def __post_init__(self) -> None:
        """Open everything."""
        self.folder = self.base / "tree"
        self.folder.mkdir(exist_ok=True)
        self.open()

    def open(self) -> None:
        """Open the stores, as a start of the daemon does."""
        # No test here waits for the debounce of ignore files.
        self.files = FolderFiles(
            {"tree": Root(name="tree", path=str(self.folder))},
            (),
            MAX_FILE_BYTES,
            clock=lambda: time.time_ns() + 60_000_000_000,
        )
        self.catalogue = SqliteCatalog(self.base / "state.sqlite")
        self.store = LanceStore(
            str(self.base / "lance"), self.embedder.dimension, self.embedder.model_id
        )
        self.vanished = SqliteVectorCache(self.base / "vectors.sqlite")
        self.recipe = Recipe(
            plans=plans(MODEL.window),
            model_identity=lambda: self.embedder.model_id,
            chunking_tools_identity="tokenizer",
        )
        world = IndexerDependencies(
            files=self.files,
            catalog=self.catalogue,
            store=self.store,
            embedder=self.embedder,
            vector_cache=self.vanished,
            clock=time.time_ns,
        )
        self.indexer = Indexer(world, COUNT, self.recipe)

    def close(self) -> None:
        """Close the stores."""
        self.catalogue.close()
        self.vanished.close()

    def write(self, path: str, text: str) -> None:
        """Write a file of the tree."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def sync(self) -> list[FileOutcome]:
        """Walk and index; return the outcomes, without those of unchanged files."""
        due = self.indexer.reconcile("tree").paths_due
        return [
            outcome
            for outcome in self.indexer.index(due)
            if outcome.action not in ("unchanged", "skipped")
        ]

    def verify(self) -> VerifyResult:
        """Compare with a clean rebuild, every vector included."""
        made = expected_rows_of_roots(["tree"], (self.files, self.catalogue), self.recipe, COUNT)
        return verify(made, self.catalogue, self.store, (Models(HashEmbedder()), None))


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """Give an empty index."""
    made = Index(tmp_path)
    yield made
    made.close()
