"""Wiring: places and configuration -> opened adapters, for the one writer and for readers beside it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from anchord.adapters.archive import Archive
from anchord.adapters.archive_writer import ArchiveWriter
from anchord.adapters.asked import Asked, load_asked, save_asked
from anchord.adapters.catalogue import SqliteCatalogue
from anchord.adapters.conversations import Conversations
from anchord.adapters.files import FolderFiles
from anchord.adapters.grammars import Grammars
from anchord.adapters.joined_files import JoinedFiles
from anchord.adapters.lance import LanceStore
from anchord.adapters.lock import WriterLock
from anchord.adapters.poison import PoisonFile
from anchord.adapters.reranker import CrossEncoderReranker
from anchord.adapters.vanished import VanishedVectors
from anchord.config import Config
from anchord.indexer import Indexer
from anchord.means import Given, Means, find_means, held_means, means_for, wanted_of
from anchord.model import Root
from anchord.places import Places
from anchord.ports import Reranker, World
from anchord.pulse import Pulse
from anchord.recovery import finish_promotion, open_archive, open_asked, open_catalogue, open_table
from anchord.roots import gather_roots
from anchord.rows import MAX_BYTES


@dataclass(slots=True)
class Reader:
    """What is needed to answer questions; any number beside one writer."""

    places: Places
    config: Config
    roots: list[Root]
    means: Means
    """What the rows of this index are made with; it can be what an older configuration said."""
    catalogue: SqliteCatalogue
    store: LanceStore
    files: JoinedFiles
    grammars: Grammars
    """The process that parses code, for whoever chunks with these handles."""
    reranker: Reranker | None = field(default=None, kw_only=True)

    def close(self) -> None:
        """Close what was opened."""
        self.means.embedder.close()
        self.grammars.close()
        if self.reranker:
            self.reranker.close()
        self.catalogue.close()
        if self.files.archive:
            self.files.archive.close()


@dataclass(slots=True)
class Writer(Reader):
    """A reader that holds the lock and may change the index."""

    wanted: Means
    """What the configuration says now; where it differs, a generation is to be built by it."""
    indexer: Indexer
    vanished: VanishedVectors
    archive: ArchiveWriter
    conversations: Conversations
    lock: WriterLock
    by_name: dict[str, Root]
    """The same roots for the file adapter; adding one here makes it readable."""
    asked: Asked
    was_clean: bool
    """Whether the last writer ended in good order."""
    poison: PoisonFile
    """What must not be parsed again."""
    repairs: list[str] = field(default_factory=list)
    """What was found damaged at the start, and what was done about it."""
    pulse: Pulse = field(default_factory=Pulse)
    """Whether what works on this index gets on."""

    def close(self) -> None:
        """Close everything; the lock last."""
        Reader.close(self)
        self.wanted.embedder.close()
        self.vanished.close()
        self.poison.close()
        self.lock.release()

    def drop_root(self, name: str) -> int:
        """Take a root's rows out of the index and forget it; return how many rows went."""
        ids = self.store.ids_of_root(name)
        self.indexer.drop(ids)
        self.catalogue.forget_root(name)
        self.archive.drop_root(name)
        self.ask(self.asked.without_root(name))
        self.by_name.pop(name, None)
        self.roots[:] = [root for root in self.roots if root.name != name]
        return len(ids)

    def keep_root(self, root: Root) -> None:
        """Take in a root; one that no configuration names is remembered until it is removed."""
        self.by_name[root.name] = root
        if root.kind == "conversations":
            for means in (self.means, self.wanted):
                means.recipe.of_roots[root.name] = self.conversations.reader
        self.roots[:] = [*(other for other in self.roots if other.name != root.name), root]
        self.ask(self.asked.without_root(root.name) if root.configured else self.asked.with_root(root))

    def ask(self, asked: Asked) -> None:
        """Keep what was asked for."""
        if asked != self.asked:
            save_asked(self.places.asked, asked)
            self.asked = asked
            self.files.forget(asked.paths)


def open_reader(places: Places, config: Config) -> Reader:
    """Open an index to read it.

    Raises:
        StoreError: there is none yet, or it cannot be opened.
    """
    catalogue = SqliteCatalogue(places.catalogue, read_only=True)
    asked = load_asked(places.asked)
    roots = gather_roots(config, asked.roots, (), places.own)
    grammars = Grammars()
    given = Given(config, roots, places.models, PoisonFile(places.data, read_only=True), grammars)
    means = means_for(catalogue, find_means(given), given)
    store = LanceStore(store_uri(places, config), means.dimension, "", read_only=True)
    by_name = {root.name: root for root in roots}
    archive = Archive(places.conversations, read_only=True) if places.conversations.exists() else None
    files = JoinedFiles(FolderFiles(by_name, places.own, MAX_BYTES), by_name, archive)
    files.forget(asked.paths)
    return Reader(places, config, roots, means, catalogue, store, files, grammars, reranker=reranker_of(config))


def reranker_of(config: Config) -> Reranker | None:
    """Return the reranker that a configuration names.

    Raises:
        ConfigError: there is no such model on this machine.
    """
    name = config.search.reranker
    return CrossEncoderReranker(name, config.embedding.idle_unload_s) if name else None


def open_writer(places: Places, config: Config, paths: Sequence[str], kind: str = "project") -> Writer:
    """Take the lock and open an index to write it; roots that left the configuration leave the index.

    What a crash or a failing disk left behind is mended on the way, and told in `repairs`. `kind` is that of the `paths`.

    Raises:
        AlreadyRunningError: another process writes it. StoreError: it cannot be opened. UsageError: a path cannot be a root.
    """
    repairs: list[str] = []
    with ExitStack() as undo:
        lock = WriterLock(places.lock)
        undo.callback(lock.release)
        uri = store_uri(places, config)
        finish_promotion(places, uri, repairs)
        asked = open_asked(places, repairs)
        catalogue = open_catalogue(places, repairs)
        undo.callback(catalogue.close)
        roots = gather_roots(config, asked.roots, paths, places.own, kind)
        poison = PoisonFile(places.data)
        undo.callback(poison.close)
        grammars = Grammars()
        given = Given(config, roots, places.models, poison, grammars)
        wanted = find_means(given)
        undo.callback(wanted.embedder.close)
        means = means_for(catalogue, wanted, given) if is_local(uri) else wanted
        was_clean = catalogue.noted("clean") == "1"
        store = open_table(places, uri, means, repairs, was_clean=was_clean)
        means.note_in(catalogue)
        means = held_means(catalogue, means, wanted) if is_local(uri) else means
        vanished = VanishedVectors(places.vanished)
        by_name = {root.name: root for root in roots}
        archive = open_archive(places, repairs)
        undo.callback(archive.close)
        catalogue.bring_forward()
        folders = FolderFiles(by_name, places.own, MAX_BYTES)
        files = JoinedFiles(folders, by_name, archive)
        files.forget(asked.paths)
        conversations = Conversations(folders, archive, time.time_ns, by_name, wanted_of(config))
        pulse = Pulse()
        world = World(files, catalogue, store, means.embedder, vanished, time.time_ns, conversations, pulse.beat)
        indexer = Indexer(world, means.count, means.recipe)
        writer = Writer(
            places, config, list(roots), means, catalogue, store, files, grammars, wanted, indexer,
            vanished, archive, conversations, lock, by_name, asked, was_clean, poison, repairs, pulse,
        )  # fmt: skip
        for name in {*catalogue.root_names(), *(root.name for root in asked.roots)} - by_name.keys():
            writer.drop_root(name)
        for root in roots:
            writer.keep_root(root)
        undo.pop_all()
        return writer


def store_uri(places: Places, config: Config) -> str:
    """Return where the table is."""
    return config.store.uri or str(places.data / "lance")


def is_local(uri: str) -> bool:
    """Whether a table at this uri is a folder of this machine."""
    return "://" not in uri
