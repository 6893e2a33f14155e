"""A whole index in a temporary folder: the real adapters, the embedder without a model, and a judge."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fakes import plans

from anchord.adapters.catalogue import SqliteCatalogue
from anchord.adapters.files import FolderFiles
from anchord.adapters.hashing import HashEmbedder
from anchord.adapters.lance import LanceStore
from anchord.adapters.models import find_model
from anchord.adapters.tokenizer import TokenCounter
from anchord.adapters.vanished import VanishedVectors
from anchord.core.recipe import Recipe
from anchord.indexer import Indexer
from anchord.model import Outcome, Root
from anchord.ports import World
from anchord.rows import MAX_BYTES
from anchord.verification import Verification, rebuild, verify

MODEL = find_model("all-MiniLM-L6-v2")
COUNT = TokenCounter(MODEL.tokenizer)


@dataclass
class Index:
    """An index over `folder`; `sync` does what the daemon's barrier does."""

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
        self.files = FolderFiles({"tree": Root("tree", str(self.folder))}, (), MAX_BYTES)
        self.catalogue = SqliteCatalogue(self.base / "state.sqlite")
        self.store = LanceStore(str(self.base / "lance"), self.embedder.dimension, self.embedder.model)
        self.vanished = VanishedVectors(self.base / "vectors.sqlite")
        self.recipe = Recipe(plans(MODEL.window), lambda: self.embedder.model, "tokenizer")
        world = World(self.files, self.catalogue, self.store, self.embedder, self.vanished, time.time_ns)
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

    def sync(self) -> list[Outcome]:
        """Walk and index; return what happened, without the files that were only read again."""
        due = self.indexer.reconcile("tree").due
        return [outcome for outcome in self.indexer.index(due) if outcome.action not in ("unchanged", "skipped")]

    def verify(self) -> Verification:
        """Compare with a clean rebuild, every vector included."""
        made = rebuild(["tree"], (self.files, self.catalogue), self.recipe, COUNT)
        return verify(made, self.catalogue, self.store, (HashEmbedder(), None))


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """Give an empty index."""
    made = Index(tmp_path)
    yield made
    made.close()
