"""Wiring: places and configuration -> opened adapters, for the one writer and for readers beside it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from anchord.adapters.catalogue import SqliteCatalogue
from anchord.adapters.embedder import WorkerEmbedder
from anchord.adapters.files import FolderFiles
from anchord.adapters.hashing import HashEmbedder
from anchord.adapters.lance import LanceStore
from anchord.adapters.lock import WriterLock
from anchord.adapters.models import ModelFiles, find_model
from anchord.adapters.tokenizer import TokenCounter
from anchord.adapters.vanished import VanishedVectors
from anchord.chunkers.sentences import sentence_version
from anchord.chunkers.symbols import grammar_versions
from anchord.config import Config, chunking_by_kind
from anchord.core.identity import digest
from anchord.core.recipe import Plans, Recipe, plans_of
from anchord.indexer import Indexer
from anchord.model import Root
from anchord.places import Places
from anchord.ports import World
from anchord.roots import gather_roots
from anchord.rows import MAX_BYTES

AnyEmbedder = WorkerEmbedder | HashEmbedder


@dataclass(slots=True)
class Reader:
    """What is needed to answer questions; any number beside one writer."""

    places: Places
    config: Config
    roots: list[Root]
    model: ModelFiles
    catalogue: SqliteCatalogue
    store: LanceStore
    embedder: AnyEmbedder
    files: FolderFiles
    recipe: Recipe
    count: TokenCounter

    def close(self) -> None:
        """Close what was opened."""
        self.embedder.close()
        self.catalogue.close()


@dataclass(slots=True)
class Writer(Reader):
    """A reader that holds the lock and may change the index."""

    indexer: Indexer
    vanished: VanishedVectors
    lock: WriterLock
    by_name: dict[str, Root]
    """The same roots for the file adapter; adding one here makes it readable."""

    def close(self) -> None:
        """Close everything; the lock last."""
        Reader.close(self)
        self.vanished.close()
        self.lock.release()

    def drop_root(self, name: str) -> int:
        """Take a root's rows out of the index and forget it; return how many rows went."""
        ids = self.store.ids_of_root(name)
        self.indexer.drop(ids)
        self.catalogue.forget_root(name)
        self.by_name.pop(name, None)
        self.roots[:] = [root for root in self.roots if root.name != name]
        return len(ids)

    def keep_root(self, root: Root) -> None:
        """Take in a root; one that no configuration names is remembered until it is removed."""
        self.by_name[root.name] = root
        self.roots[:] = [*(other for other in self.roots if other.name != root.name), root]
        if root.configured:
            self.catalogue.unremember_root(root.name)
        else:
            self.catalogue.remember_root(root)


def open_reader(places: Places, config: Config) -> Reader:
    """Open an index to read it.

    Raises:
        StoreError: there is none yet, or it cannot be opened.
    """
    catalogue = SqliteCatalogue(places.catalogue, read_only=True)
    roots = gather_roots(config, catalogue.remembered_roots(), (), places.own)
    model, embedder, count, recipe = _model_of(config, roots)
    store = LanceStore(store_uri(places, config), embedder.dimension, "", read_only=True)
    files = FolderFiles({root.name: root for root in roots}, places.own, MAX_BYTES)
    return Reader(places, config, roots, model, catalogue, store, embedder, files, recipe, count)


def open_writer(places: Places, config: Config, paths: Sequence[str]) -> Writer:
    """Take the lock and open an index to write it; roots that left the configuration leave the index.

    Raises:
        AlreadyRunningError: another process writes it. StoreError: it cannot be opened. UsageError: a path cannot be a root.
    """
    with ExitStack() as undo:
        lock = WriterLock(places.lock)
        undo.callback(lock.release)
        catalogue = SqliteCatalogue(places.catalogue)
        undo.callback(catalogue.close)
        roots = gather_roots(config, catalogue.remembered_roots(), paths, places.own)
        model, embedder, count, recipe = _model_of(config, roots)
        store = LanceStore(store_uri(places, config), embedder.dimension, embedder.model)
        vanished = VanishedVectors(places.vanished)
        by_name = {root.name: root for root in roots}
        files = FolderFiles(by_name, places.own, MAX_BYTES)
        indexer = Indexer(World(files, catalogue, store, embedder, vanished, time.time_ns), count, recipe)
        writer = Writer(
            places, config, list(roots), model, catalogue, store, embedder, files, recipe, count,
            indexer, vanished, lock, by_name,
        )  # fmt: skip
        for name in {*catalogue.root_names(), *(root.name for root in catalogue.remembered_roots())} - by_name.keys():
            writer.drop_root(name)
        for root in roots:
            writer.keep_root(root)
        undo.pop_all()
        return writer


def store_uri(places: Places, config: Config) -> str:
    """Return where the table is."""
    return config.store.uri or str(places.data / "lance")


def cutting_plans(config: Config, roots: Sequence[Root], window: int) -> Plans:
    """Return how documents are cut for a model's window, in each root."""
    own = {root.name: chunking_by_kind(config, root.strategy) for root in roots if root.strategy}
    return plans_of(window, {"": chunking_by_kind(config), **own})


def _model_of(config: Config, roots: Sequence[Root]) -> tuple[ModelFiles, AnyEmbedder, TokenCounter, Recipe]:
    model = find_model(config.embedding.model)
    embedder: AnyEmbedder
    if config.embedding.provider == "hash":
        embedder = HashEmbedder()
    else:
        embedder = WorkerEmbedder(model, config.embedding.threads, config.embedding.idle_unload_s)
    tokenizer = f"{digest(model.tokenizer.read_bytes())} {grammar_versions()} {sentence_version()}"
    recipe = Recipe(cutting_plans(config, roots, model.window), lambda: embedder.model, tokenizer)
    return model, embedder, TokenCounter(model.tokenizer), recipe
